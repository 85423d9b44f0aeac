"""Copies of databases that are in use: whole, checked, and never over a file that is there."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from support import query

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    Gate,
    GuessAndCheck,
    Ladder,
    store,
)

M = 300
Y = np.arange(M) % 2
RNG = np.random.default_rng(3)
ROWS = Y ^ (RNG.random((12, M)) < 0.3)


def ask_by_key(search, row):
    return search.query(row, key=int(row[:20] @ 2 ** np.arange(20)))


def ask_and_confirm(search, row):
    answer = search.score(row)
    if search.n_answered == 0:
        search.confirm(row)
    return answer


# of each kind of guard: how it is opened, and how it is asked about predictions
KINDS = {
    "FixedSequence": (
        lambda path, **how: FixedSequence.open(path, Y, epsilon=0.3, delta=0.1, **how), query),
    "GuessAndCheck": (
        lambda path, **how: GuessAndCheck.open(path, Y, epsilon=0.3, delta=0.1, **how),
        lambda guard, row: guard.query(row, guess=0.3)),
    "Ladder": (
        lambda path, **how: Ladder.open(path, Y, step=0.1, delta=0.1, **how), query),
    "DeclaredSearch": (
        lambda path, **how: DeclaredSearch.open(path, Y, 2**20, delta=0.1, **how), ask_by_key),
    "ConfirmedSearch": (
        lambda path, **how: ConfirmedSearch.open(path, Y, delta=0.1, **how), ask_and_confirm),
    "Gate": (
        lambda path, **how: Gate.open(path, Y, at_least=0.5, **how), query),
}  # fmt: skip


QUICK = ("FixedSequence", "DeclaredSearch")


def the_others_thorough(names):
    marks = {name: () if name in QUICK else pytest.mark.thorough for name in names}
    return [pytest.param(name, marks=marks[name]) for name in names]


@pytest.fixture(params=the_others_thorough(KINDS))
def used(request, tmp_path):
    """A guard of each kind that was asked six times, open, with how it is opened and asked."""
    open_one, ask = KINDS[request.param]
    with contextlib.closing(open_one(tmp_path / "guard.db", durability="process")) as guard:
        for row in ROWS[:6]:
            ask(guard, row)
        yield guard, open_one, ask


def names_in(folder):
    return sorted(os.listdir(folder))


def test_a_copy_goes_on_as_the_guard_does(used, tmp_path):
    guard, open_one, ask = used
    (tmp_path / "copies").mkdir()
    copy = tmp_path / "copies" / "copy.db"
    assert store.back_up(tmp_path / "guard.db", copy) == guard.kind
    assert names_in(copy.parent) == ["copy.db"]
    assert os.name == "nt" or copy.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(open_one(copy)) as again:
        assert again.n_answered == guard.n_answered
        assert [repr(ask(again, row)) for row in ROWS[6:]] == [
            repr(ask(guard, row)) for row in ROWS[6:]
        ]


def test_a_served_database_keeps_its_log(used, tmp_path):
    guard, open_one, _ = used
    guard.share_transactions()
    store.back_up(tmp_path / "guard.db", tmp_path / "copy.db")
    with contextlib.closing(store.open_any(tmp_path / "copy.db")) as copy:
        assert copy.look(lambda database: database.execute("SELECT * FROM served").fetchall()) == []


TAKEN = {
    "a file": lambda path: path.write_text("mine"),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to("nothing.db"),
    "a log": lambda path: path.with_name(path.name + "-wal").write_text("mine"),
    "an index": lambda path: path.with_name(path.name + "-shm").write_text("mine"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("taken", TAKEN)
def test_nothing_is_written_over(taken, tmp_path):
    guard, copy = tmp_path / "guard.db", tmp_path / "copy.db"
    KINDS["Ladder"][0](guard).close()
    TAKEN[taken](copy)
    before = {path.name: path.lstat() for path in tmp_path.iterdir() if path != guard}
    if taken == "a link to nothing":  # it is the name that the link has
        store.back_up(guard, copy)
        assert (tmp_path / "nothing.db").exists() and copy.is_symlink()
        return
    with pytest.raises((FileExistsError, ValueError), match="copy.db"):
        store.back_up(guard, copy)
    assert before == {path.name: path.lstat() for path in tmp_path.iterdir() if path != guard}
    with pytest.raises(FileExistsError):
        store.back_up(guard, guard)


NO_DATABASES = {
    "nothing": (lambda path: None, FileNotFoundError, "guard.db"),
    "text": (lambda path: path.write_text("depth,error\n" * 100), ValueError, "not a database"),
    "an empty file": (lambda path: path.touch(), ValueError, "not the database of a guard"),
    "another program's": (
        lambda path: sqlite3.connect(path).execute("CREATE TABLE a (b)").connection.close(),
        ValueError, "not the database of a guard"),
    "a folder": (lambda path: path.mkdir(), (OSError, ValueError), "guard.db"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_DATABASES)
def test_what_is_no_database_of_ours_is_not_copied(kind, tmp_path):
    make, error, message = NO_DATABASES[kind]
    make(tmp_path / "guard.db")
    before = names_in(tmp_path)
    with pytest.raises(error, match=message):
        store.back_up(tmp_path / "guard.db", tmp_path / "copy.db")
    assert names_in(tmp_path) == before


def test_a_copy_in_a_folder_that_is_not_there_names_the_folder(tmp_path):
    KINDS["Ladder"][0](tmp_path / "guard.db").close()
    with pytest.raises(FileNotFoundError, match="none"):
        store.back_up(tmp_path / "guard.db", tmp_path / "none" / "copy.db")


DAMAGES = {
    "FixedSequence": "UPDATE guard SET state = zeroblob(length(state))",
    "DeclaredSearch": "UPDATE query SET nats = nats + 1 WHERE rowid = 2",
    "ConfirmedSearch": "UPDATE event SET content = zeroblob(length(content) + 1) WHERE rowid = 2",
    "Gate": "UPDATE event SET event = event || ' ' WHERE rowid = 2",
}


@pytest.mark.parametrize("kind", the_others_thorough(DAMAGES))
def test_a_damaged_database_is_not_copied_and_is_named(kind, tmp_path):
    guard, (open_one, ask) = tmp_path / "guard.db", KINDS[kind]
    with contextlib.closing(open_one(guard)) as used:
        for row in ROWS[:3]:
            ask(used, row)
    with contextlib.closing(sqlite3.connect(guard)) as database:
        changed = database.execute(DAMAGES[kind]).rowcount
        database.commit()
    assert changed == 1
    with pytest.raises(ValueError, match="guard.db is damaged") as damaged:
        store.back_up(guard, tmp_path / "copy.db")
    assert ".tmp" not in str(damaged.value) and names_in(tmp_path) == ["guard.db"]


WRITER = """
    import sys
    import numpy as np
    from radabound_fast import {kind}

    y = np.arange({m}) % 2
    rng = np.random.default_rng(0)
    guard = {opened}
    print("ready", flush=True)
    for number in range(1_000_000):
        guard.query(rng.integers(0, 2, {m}){key})
        print(number + 1, flush=True)
"""
KINDS_OF_GUARDS = {"FixedSequence": FixedSequence, "DeclaredSearch": DeclaredSearch}
WRITERS = {
    "FixedSequence": (
        "FixedSequence.open(sys.argv[1], y, epsilon=0.4, delta=0.1, durability='process')", ""),
    "DeclaredSearch": (
        "DeclaredSearch.open(sys.argv[1], y, 1_000_000, delta=0.1, durability='process')",
        ", key=number"),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("kind", WRITERS)
def test_copies_made_while_another_process_writes_are_each_of_one_moment(kind, tmp_path):
    opened, key = WRITERS[kind]
    program = textwrap.dedent(WRITER).format(kind=kind, m=M, opened=opened, key=key)
    path = tmp_path / "guard.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True
    )
    counts, released = [], 0
    try:
        assert writer.stdout.readline() == "ready\n"
        for number in range(10):
            while released <= (counts[-1][1] if counts else 5):  # it goes on between the copies
                released = int(writer.stdout.readline())
            copy = tmp_path / f"copy{number}.db"
            store.back_up(path, copy)
            with contextlib.closing(KINDS_OF_GUARDS[kind].open(copy)) as held:
                counts.append((released, held.n_answered))
    finally:
        writer.kill()
        left = writer.communicate(timeout=60)[0].split()
    assert all(before <= held for before, held in counts), counts
    assert [held for _, held in counts] == sorted({held for _, held in counts})
    last = int(left[-1]) if left else released
    assert counts[-1][1] <= last + 1  # it had counted one that it had not released


@pytest.mark.thorough
def test_a_service_answers_while_it_is_copied(tmp_path):
    serving = pytest.importorskip("serving", reason="the extra serve is not installed")
    options = ["--guard", "fixed-sequence", "--epsilon", "0.4", "--delta", "0.1"]
    backup = [sys.executable, "-m", "radabound_fast", "backup", tmp_path / "guard.db"]
    with serving.Command(tmp_path, Y, *options) as command:
        remote, numbers, stop = command.start().remote(), [], threading.Event()

        def asking():
            while not stop.is_set():
                numbers.append(remote.query(ROWS[len(numbers) % len(ROWS)]).number)

        client = threading.Thread(target=asking)
        client.start()
        try:
            for number in range(3):
                before, copy = len(numbers), tmp_path / f"copy{number}.db"
                done = subprocess.run(
                    [*backup, copy], capture_output=True, text=True, check=True, timeout=60
                )
                assert done.stdout.startswith(f"{copy} has the FixedSequence of ")
                with contextlib.closing(FixedSequence.open(copy, Y)) as held:
                    assert before <= held.n_answered <= len(numbers) + 1
        finally:
            stop.set()
            client.join()
        assert numbers == list(range(1, len(numbers) + 1))
