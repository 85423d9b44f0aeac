"""A database has one name, and beside it its log: nobody answers where others would not see it."""

import fcntl
import os
import shutil
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from support import query, query_many

from radabound_fast import GuessAndCheck, Ladder, RadaBound, store
from radabound_fast._kernels.support import are_files

if sys.platform == "win32":
    pytest.skip("links, mounts and files deleted while they are open", allow_module_level=True)

M = 300
LOSSES = np.arange(M) % 3 == 0
QUICK = {"durability": "process"}
KINDS = {
    "RadaBound": (RadaBound, {"epsilon": 0.9, "delta": 0.1}),
    "GuessAndCheck": (GuessAndCheck, {"epsilon": 0.9, "delta": 0.1}),
    "Ladder": (Ladder, {"step": 0.01, "delta": 0.1}),
}
LOG, INDEX = "-wal", "-shm"


@pytest.fixture(params=KINDS)
def made(request):
    """(kind, parameters) of a guard."""
    return KINDS[request.param]


@pytest.fixture(autouse=True)
def closing_takes_a_minute(monkeypatch):
    monkeypatch.setattr(store.place, "CLOSING_SECONDS", 60.0)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in" / "guard.db"


def beside(path, end):
    return path.with_name(path.name + end)


def ask(guard):
    return query(guard, LOSSES, LOSSES.mean()).number


def opened(made, path):
    """A guard that has answered three queries."""
    kind, parameters = made
    guard = kind.open(path, M, **QUICK, **parameters)
    for _ in range(3):
        ask(guard)
    return guard


def everything(guard):
    """All that looks into the database."""
    return [
        lambda: ask(guard),
        lambda: query_many(guard, LOSSES[np.newaxis], [0.5]),
        lambda: guard.n_answered,
        lambda: guard.halted,
    ]


def openings(made, path):
    kind, parameters = made
    return [lambda: kind.open(path), lambda: kind.open(path, M, **parameters)]


def refused(calls, saying, error=RuntimeError):
    """What waits here for another process waits a minute."""
    for call in calls:
        begun = time.monotonic()
        with pytest.raises(error, match=saying):
            call()
        assert time.monotonic() - begun < 30


def in_another_process(made, path, code="kind.open(path).n_answered"):
    """What it finds: a number, or the error."""
    program = f"""
        import sys
        import numpy as np
        from radabound_fast import RadaBound, store
        from radabound_fast import GuessAndCheck, Ladder
        store.place.CLOSING_SECONDS = 0.1  # nobody here is about to close it
        kind, path = {made[0].__name__}, {str(path)!r}
        try:
            print({code})
        except Exception as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.strip()


def crashed(made, path):
    """What a process leaves that dies after three answers: a database, its log and the index."""
    code = """[
        guard := kind.open(path),
        given := {"guess": 1 / 3} if guard.needs else {},
        [guard.query(np.arange(300) % 3 == 0, **given) for _ in range(3)],
        __import__("os")._exit(0),
    ]"""
    kind, parameters = made
    kind.open(path, M, **parameters).close()
    in_another_process(made, path, " ".join(code.split()))
    assert beside(path, LOG).stat().st_size > 0 and beside(path, INDEX).exists()


# ---- hard links ----------------------------------------------------------------------------------


def test_a_second_name_is_refused_under_either(made, path):
    opened(made, path).close()
    link, before = path.with_name("link"), path.read_bytes()
    os.link(path, link)
    for name in (path, link):
        refused(openings(made, name), f"{name.name} is one of 2 names of one file .hard links")
    assert sorted(os.listdir(path.parent)) == ["guard.db", "link"] and path.read_bytes() == before
    link.unlink()
    with made[0].open(path) as guard:
        assert guard.n_answered == 3


def test_a_second_name_given_later_ends_all_answers_until_it_is_gone(made, path):
    link = path.with_name("link")
    with opened(made, path) as guard:
        os.link(path, link)
        refused(everything(guard), "guard.db is one of 2 names")
        refused([*openings(made, path), *openings(made, link)], "is one of 2 names")
        for name in (path, link):
            assert "is one of 2 names" in in_another_process(made, name)
        link.unlink()
        assert ask(guard) == 4
        os.link(beside(path, LOG), link)
        refused(everything(guard), "guard.db-wal is one of 2 names")
        link.unlink()
        assert ask(guard) == 5
    assert made[0].open(path).n_answered == 5


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["renamed", "linked, and the old name deleted"])
def test_a_database_moved_while_it_is_open_is_opened_by_nobody_before_it_is_closed(made, path, way):
    moved = path.with_name("moved")
    guard = opened(made, path)
    if way == "renamed":
        path.rename(moved)
    else:
        os.link(path, moved)
        path.unlink()
    refused(everything(guard), "guard.db is gone, which an open guard needs: close this guard")
    refused(openings(made, moved), "moved is open in this process as .*guard.db, and the log")
    assert "moved-wal is gone, and another process has" in in_another_process(made, moved)
    assert sorted(os.listdir(path.parent)) == ["guard.db-shm", "guard.db-wal", "moved"]
    guard.close()
    assert beside(path, LOG).stat().st_size == 0
    with made[0].open(moved) as again:
        assert again.n_answered == 3 and ask(again) == 4


# ---- mounts --------------------------------------------------------------------------------------

IN_A_NAMESPACE = """
import os, subprocess, sys
import numpy as np
from radabound_fast import RadaBound
def mount(source, target):
    subprocess.run(["mount", "--bind", source, target], check=True)
folder = sys.argv[1]
one, other, alone = (os.path.join(folder, name) for name in ("in", "same folder", "al\\\\one"))
os.mkdir(other)
os.mkdir(alone)
mount(one, other)
open(os.path.join(alone, "guard.db"), "w").close()
mount(os.path.join(one, "guard.db"), os.path.join(alone, "guard.db"))
print("mounted", flush=True)
losses = np.arange(300) % 3 == 0
def tell(call):
    try:
        print(call(), flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
tell(lambda: RadaBound.open(os.path.join(alone, "guard.db")))
tell(lambda: os.listdir(alone))
guard = RadaBound.open(os.path.join(one, "guard.db"))
again = RadaBound.open(os.path.join(other, "guard.db"))  # the folder: its log is the same
tell(lambda: [guard.query(losses).number, again.query(losses).number, guard.n_answered])
tell(lambda: RadaBound.open(os.path.join(alone, "guard.db")))
"""


def test_a_file_mounted_without_its_folder_is_refused_and_a_folder_is_not(path):
    with opened(KINDS["RadaBound"], path) as guard:
        command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", IN_A_NAMESPACE]
        try:
            done = subprocess.run(
                [*command, str(path.parent.parent)], capture_output=True, text=True, timeout=60
            )
        except FileNotFoundError:
            pytest.skip("nothing can be mounted here: there is no unshare")
        if not done.stdout:
            pytest.skip(f"nothing can be mounted here: {done.stderr[-200:]}")
        assert done.stderr == ""
        assert guard.n_answered == 5  # with those that were answered there
    told = done.stdout.splitlines()
    for line in (told[1], told[4]):
        assert line.startswith("RuntimeError ") and line.endswith(": mount the folder")
        assert "al\\one/guard.db is mounted without its folder" in line
    assert told[2:4] == ["['guard.db']", "[4, 5, 5]"]


# ---- what belongs beside it ----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("missing", [[LOG], [INDEX], [LOG, INDEX]], ids=str)
def test_what_is_missing_beside_an_open_database_is_named_by_everybody(made, path, missing):
    guard = opened(made, path)
    for end in missing:
        beside(path, end).unlink()
    named = f"guard.db{missing[0]} is gone"
    refused(everything(guard), f"{named}, which an open guard needs: close this guard, which puts")
    refused(openings(made, path), named)
    assert named in in_another_process(made, path)
    assert f"{named}, and another process has" in in_another_process(
        made, path, f"kind.open(path, {M}, **{made[1]!r})"
    )
    guard.close()  # as the error says
    with made[0].open(path) as again:
        assert again.n_answered == 3 and ask(again) == 4
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("end", [LOG, INDEX])
def test_what_is_replaced_beside_an_open_database_is_noticed(made, path, end):
    with opened(made, path) as guard:
        copy = path.with_name("copy")
        shutil.copy(beside(path, end), copy)
        os.replace(copy, beside(path, end))
        saying = f"guard.db{end} is another file than when .*guard.db was opened"
        refused([*everything(guard), *openings(made, path)], saying)


def test_the_log_of_a_guard_that_crashed_is_missed_and_its_index_is_not(made, path):
    crashed(made, path)
    log = beside(path, LOG).read_bytes()
    beside(path, LOG).unlink()
    refused(openings(made, path), "guard.db-wal is gone, and .*guard.db-shm shows")
    assert "guard.db-wal is gone" in in_another_process(made, path)
    assert sorted(os.listdir(path.parent)) == ["guard.db", "guard.db-shm"]
    beside(path, LOG).write_bytes(log)
    beside(path, INDEX).unlink()  # which SQLite makes anew from the log
    with made[0].open(path) as guard:
        assert guard.n_answered == 3 and ask(guard) == 4


@pytest.mark.parametrize("end", [LOG, "-journal"])
def test_the_log_of_another_database_is_not_taken_for_the_new_ones(made, path, end):
    kind, parameters = made
    beside(path, end).write_bytes(b"of another")
    before = os.listdir(path.parent)
    refused(
        [lambda: kind.open(path, M, **parameters)], f"guard.db{end} is the log of a", ValueError
    )
    refused([lambda: kind.open(path)], "guard.db", FileNotFoundError)
    assert os.listdir(path.parent) == before
    beside(path, end).unlink()
    beside(path, INDEX).write_bytes(b"of another")  # which holds no answers
    kind.open(path, M, **parameters).close()
    assert os.listdir(path.parent) == ["guard.db"]


def test_a_log_that_no_guard_has_is_refused(made, path):
    opened(made, path).close()
    beside(path, "-journal").write_bytes(path.read_bytes())
    refused(openings(made, path), "guard.db-journal would be taken for a log", ValueError)


# ---- the folder's turn ---------------------------------------------------------------------------


def test_a_folder_that_somebody_has_locked_is_waited_for_and_not_for_ever(path, monkeypatch):
    descriptor = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    monkeypatch.setattr(store.folder, "BUSY_SECONDS", 0.1)
    made = KINDS["RadaBound"]
    refused(openings(made, path), "in was locked for 0.1 seconds", TimeoutError)
    os.close(descriptor)
    assert os.listdir(path.parent) == []
    opened(made, path).close()


def test_a_folder_that_a_child_has_inherited_is_free(path):
    """In a process of its own: a fork while another thread makes a database."""
    code = """
        import os, sys, time
        from radabound_fast import RadaBound, store
        create = store.opening._make_ledger
        children = []
        def slow(*arguments):
            children.append(os.fork())
            if children[0] == 0:
                time.sleep(60)
                os._exit(0)
            create(*arguments)
        store.opening._make_ledger = slow
        RadaBound.open(sys.argv[1], 300, epsilon=0.9, delta=0.1).close()
        begun = time.monotonic()
        RadaBound.open(sys.argv[1]).close()
        print(time.monotonic() - begun < 30)
        os.kill(children[0], 9)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_guard_on_labels_says_the_same(path):
    labels = np.arange(M) % 2
    with RadaBound.open(path, labels, epsilon=0.9, delta=0.1) as guard:
        guard.query(labels)
        beside(path, INDEX).unlink()
        for call in (lambda: guard.query(labels), lambda: RadaBound.open(path, labels)):
            refused([call], "guard.db-shm is gone")


def test_a_file_is_known_again_by_what_os_stat_found(tmp_path):
    file = tmp_path / "g\N{LATIN SMALL LETTER U WITH DIAERESIS}.db"

    def seen():
        return os.fsencode(file), *(number % 2**64 for number in os.stat(file)[1:4])

    file.write_bytes(b"as it was")
    then = seen()
    assert are_files([then]) and are_files([then, then])
    file.write_bytes(b"written to")
    assert are_files([then])
    os.link(file, tmp_path / "second")
    assert not are_files([then]) and not are_files([seen(), then]) and are_files([seen()])
    (tmp_path / "second").unlink()
    file.rename(tmp_path / "kept")  # so that the next file has another inode
    assert not are_files([then])
    file.write_bytes(b"as it was")
    assert not are_files([then]) and are_files([seen()])
