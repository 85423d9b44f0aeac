"""A guard's state in a file: all of it or an error, and one owner at a time."""

import contextlib
import errno
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from radabound_fast import RadaBound, store

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes, links and modes")

DESCRIPTION = {
    "kind": "RadaBound",
    "parameters": {
        "bound": "bernstein",
        "epsilon": 0.1 + 0.2,  # a float that decimal text of 16 digits would change
        "seed": 2**64 - 1,
        "estimator": None,
        "two_sided": False,
    },
}
PROGRESS = np.array([2**62, -1, 0, -(2**63), 2**63 - 1], dtype=np.int64)
MADE = {"n_samples": 1000, "epsilon": 0.1, "delta": 0.1, "seed": 3}
LOSSES = np.random.default_rng(0).integers(0, 2, (60, 1000))

# a state of two numbers, byte by byte: files already written must stay readable
KNOWN = bytes.fromhex(
    "89524144410d0a1a"  # magic
    "01000000"  # version 1
    "50000000"  # 80 bytes of header
    "9800000000000000"  # 152 bytes in all
)
KNOWN_HEADER = b'{"arrays": {"progress": [2]}, "state": {"kind": "x", "parameters": {"seed": 7}}}'
KNOWN_BODY = bytes.fromhex("0100000000000000ffffffffffffffff")


def save(path, number=0):
    store.save_state(path, DESCRIPTION, PROGRESS + number)


def number_in(path):
    """What was saved there; nobody owns it afterwards."""
    file = store.StateFile(path)
    number = int(file.stored(len(PROGRESS))[1] - PROGRESS[1])
    file.release()
    return number


def in_another_process(code, *arguments):
    """Run `code` in a new interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.strip()


TRY_TO_LOAD = """
    import sys
    from radabound_fast import store
    try:
        print(store.StateFile(sys.argv[1]).description["kind"])
    except BlockingIOError:
        print("in use")
"""


# ---- the format ----------------------------------------------------------------------------------


def test_a_saved_state_comes_back_equal(tmp_path):
    store.save_state(tmp_path / "guard", DESCRIPTION, PROGRESS)
    file = store.StateFile(tmp_path / "guard")
    assert json.dumps(file.description, sort_keys=True) == json.dumps(DESCRIPTION, sort_keys=True)
    for _ in range(2):
        found = file.stored(len(PROGRESS))
        assert found.dtype == np.int64 and found.tolist() == PROGRESS.tolist()
        found[0] = 5  # it is the caller's own


def test_the_format_is_a_promise():
    content = KNOWN + KNOWN_HEADER + KNOWN_BODY
    blob = content + hashlib.sha256(content).digest()
    description, progress = {"kind": "x", "parameters": {"seed": 7}}, np.array([1, -1])
    assert store.to_bytes(description, progress) == blob
    found = store.from_bytes(blob)
    assert found[0] == description and found[1].tolist() == [1, -1]


def test_every_truncation_is_refused():
    blob = store.to_bytes(DESCRIPTION, PROGRESS)
    for length in range(len(blob)):
        with pytest.raises(ValueError, match="truncated|not a saved guard"):
            store.from_bytes(blob[:length])


def test_every_flipped_bit_is_refused():
    blob = store.to_bytes(DESCRIPTION, PROGRESS)
    for bit in range(8 * len(blob)):
        altered = bytearray(blob)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="altered|not a saved guard|format version"):
            store.from_bytes(bytes(altered))


def test_bytes_past_the_end_are_refused():
    with pytest.raises(ValueError, match="altered"):
        store.from_bytes(store.to_bytes(DESCRIPTION, PROGRESS) + b"\0")


def test_a_later_format_is_refused_by_its_number():
    blob = bytearray(store.to_bytes(DESCRIPTION, PROGRESS))
    blob[8] = 2
    with pytest.raises(ValueError, match="format version 2, this program reads 1"):
        store.from_bytes(bytes(blob))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b'{"bound": "x"}'])
def test_a_foreign_file_is_refused_by_name_and_then_free(tmp_path, content):
    path = tmp_path / "guard"
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"guard cannot be loaded: not a saved guard"):
            store.StateFile(path)


# ---- where it is ---------------------------------------------------------------------------------


def test_a_missing_file_is_not_found_and_leaves_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match="guard"):
        store.StateFile(tmp_path / "guard")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["a folder", "a pipe"])
@posix
def test_what_is_no_file_is_refused_at_once(tmp_path, what):
    path = tmp_path / "guard"
    path.mkdir() if what == "a folder" else os.mkfifo(path)
    with pytest.raises(ValueError, match="guard is not a regular file"):
        RadaBound.load(path)
    with pytest.raises(ValueError, match="guard exists"):
        RadaBound(**MADE).save(path)
    with pytest.raises(ValueError, match="guard is not a regular file"):
        RadaBound.open(path, **MADE)


def test_a_live_guard_saves_over_the_file_it_was_loaded_from(tmp_path):
    path = tmp_path / "guard"
    save(path, 1)
    file = store.StateFile(path)
    for number in (2, 3):
        file.replace(DESCRIPTION, PROGRESS + number)
        assert file.held
        with pytest.raises(BlockingIOError, match="guard is in use"):  # the rename frees nothing
            store.StateFile(path)
    file.release()
    file.release()
    assert number_in(path) == 3 and os.listdir(tmp_path) == ["guard"]


def test_a_file_that_somebody_else_saved_is_not_overwritten(tmp_path):
    path, other = tmp_path / "guard", tmp_path / "other"
    save(path, 1)
    with pytest.raises(ValueError, match="exists and this guard was not loaded from it"):
        save(path, 2)
    RadaBound(**MADE).save(other)
    guard = RadaBound.load(other)
    for to in (path, tmp_path / "new"):
        with pytest.raises(ValueError, match="path must be .*other, from which this guard was"):
            guard.save(to)
    guard.save(other)
    assert number_in(path) == 1 and sorted(os.listdir(tmp_path)) == ["guard", "other"]


@posix
@pytest.mark.parametrize("then", ["nothing", "another guard", "itself"])
def test_a_guard_whose_file_was_moved_away_is_saved_when_it_is_back(tmp_path, then):
    path, moved = tmp_path / "guard", tmp_path / "moved"
    RadaBound(**MADE).save(path)
    guard = RadaBound.load(path)
    guard.query(LOSSES[0])
    path.rename(moved)
    if then == "another guard":
        save(path)
    if then == "itself":
        moved.rename(path)
        guard.save(path)
    else:
        saying = "was moved away" if then == "nothing" else "is another file than the one"
        with pytest.raises(RuntimeError, match=f"guard {saying}"):
            guard.save(path)
        with pytest.raises(BlockingIOError, match="moved is in use"):
            RadaBound.load(moved)
        with pytest.raises(ValueError, match="path must be"):
            guard.save(moved)
        os.replace(moved, path)
        guard.save(path)
    assert RadaBound.load(path).n_answered == 1
    assert os.listdir(tmp_path) == ["guard"]


@posix
def test_a_guard_whose_file_was_deleted_is_saved_anywhere(tmp_path):
    for to in ("guard", "elsewhere"):
        RadaBound(**MADE).save(tmp_path / "guard")
        guard = RadaBound.load(tmp_path / "guard")
        guard.query(LOSSES[0])
        (tmp_path / "guard").unlink()
        guard.save(tmp_path / to)
        assert RadaBound.load(tmp_path / to).n_answered == 1
        (tmp_path / to).unlink()


# ---- failures, and deaths ------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_state_and_nothing_else(
    tmp_path, monkeypatch, step, failure
):
    path = tmp_path / "guard"
    save(path)
    file = store.StateFile(path)
    before = path.read_bytes(), sorted(os.listdir(tmp_path))

    def fail(*_):
        raise failure

    with monkeypatch.context() as patch, pytest.raises(type(failure)) as raised:
        patch.setattr(os, step, fail)
        file.replace(DESCRIPTION, PROGRESS + 2)
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before
    assert file.held
    if isinstance(failure, OSError):  # a name that was asked for, and no part file's
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(path))


@pytest.mark.parametrize("n_syncs", [1, 2])  # of the file, and after the rename of its folder
def test_a_first_save_that_fails_leaves_nothing_and_the_guard_goes_on(
    tmp_path, monkeypatch, n_syncs
):
    calls = []

    def fail(_):
        calls.append(1)
        if len(calls) == n_syncs:
            raise OSError(errno.EIO, "broken")

    guard = RadaBound(**MADE)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="broken: .*guard'"):
        patch.setattr(os, "fsync", fail)
        guard.save(tmp_path / "guard")
    assert len(calls) == n_syncs and os.listdir(tmp_path) == []
    assert guard.query(LOSSES[0]).number == 1
    guard.save(tmp_path / "guard")
    assert RadaBound.load(tmp_path / "guard").n_answered == 1


@posix
def test_a_failure_after_the_rename_leaves_one_owner(tmp_path, monkeypatch):
    path = tmp_path / "guard"
    RadaBound(**MADE).save(path)
    guard = RadaBound.load(path)
    guard.query(LOSSES[0])

    def fail(*_):
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="broken"):
        patch.setattr(store.file, "sync_folder", fail)
        guard.save(path)
    with pytest.raises(BlockingIOError):
        RadaBound.load(path)
    assert guard.query(LOSSES[1]).number == 2
    guard.save(path)
    assert RadaBound.load(path).n_answered == 2


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_process_that_dies_while_saving_leaves_the_old_state_unlocked(tmp_path, step):
    path = tmp_path / "guard"
    RadaBound(**MADE).save(path)
    code = """
        import os, sys
        from radabound_fast import RadaBound
        guard = RadaBound.load(sys.argv[1])
        guard.query([0] * 1000)
        setattr(os, sys.argv[2], lambda *_: (print("dying", flush=True), os._exit(0)))
        guard.save(sys.argv[1])
    """
    assert in_another_process(code, path, step) == "dying"
    assert RadaBound.load(path).n_answered == 0


SAVES_FOR_EVER = """
    import sys
    import numpy as np
    from radabound_fast import RadaBound
    path = sys.argv[1]
    while True:
        guard = RadaBound.load(path)
        guard.query(np.zeros(1000))
        guard.save(path)
        print("saved", flush=True)
"""


def tell_to_end(process, number):
    # a KeyboardInterrupt that is raised while an object is freed is dropped by Python
    while process.poll() is None:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_process_that_is_told_to_end_while_it_saves_leaves_no_part_of_a_file(tmp_path, number):
    path = tmp_path / "guard"
    RadaBound(**MADE).save(path)
    rng = np.random.default_rng(5)
    for _ in range(8):
        saver = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SAVES_FOR_EVER), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # a parent may ignore them
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        )
        with saver:
            for _ in range(3):
                assert saver.stdout.readline() == b"saved\n"
            try:
                saver.wait(rng.uniform(0, 0.02))
            except subprocess.TimeoutExpired:
                tell_to_end(saver, number)
        assert saver.returncode == -number
        assert os.listdir(tmp_path) == ["guard"]
    assert RadaBound.load(path).n_answered >= 24


# ---- one owner -----------------------------------------------------------------------------------


def test_one_process_at_a_time(tmp_path):
    path = tmp_path / "guard"
    save(path)
    file = store.StateFile(path)
    assert in_another_process(TRY_TO_LOAD, path) == "in use"
    file.release()
    assert in_another_process(TRY_TO_LOAD, path) == "RadaBound"


def test_one_owner_at_a_time_within_a_process_also_by_another_name(tmp_path, monkeypatch):
    path = tmp_path / "guard"
    save(path)
    file = store.StateFile(path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BlockingIOError, match="guard is in use"):
        store.StateFile("guard")
    file.release()
    store.StateFile("guard").release()


@posix
def test_no_lock_lies_beside_that_somebody_could_delete(tmp_path):
    RadaBound(**MADE).save(tmp_path / "guard")
    guard = RadaBound.load(tmp_path / "guard")
    assert os.listdir(tmp_path) == ["guard"] and guard.n_answered == 0


@posix
def test_a_symbolic_link_is_the_file_it_points_to(tmp_path):
    path, link = tmp_path / "guard", tmp_path / "link"
    save(path)
    link.symlink_to(path)
    file = store.StateFile(link)
    with pytest.raises(BlockingIOError):
        store.StateFile(path)
    file.replace(DESCRIPTION, PROGRESS + 2)
    file.release()
    assert link.is_symlink()
    assert number_in(path) == 2


@posix
def test_a_file_with_a_second_name_has_no_owner(tmp_path):
    path, link = tmp_path / "guard", tmp_path / "link"
    RadaBound(**MADE).save(path)
    os.link(path, link)
    for name in (path, link):
        with pytest.raises(RuntimeError, match=f"{name.name} is one of 2 names of one file"):
            RadaBound.load(name)
    link.unlink()
    guard = RadaBound.load(path)
    guard.query(LOSSES[0])
    os.link(path, link)  # and one that was made since: saving would leave the old state there
    with pytest.raises(RuntimeError, match="link is one of 2 names"):
        RadaBound.load(link)
    with pytest.raises(RuntimeError, match="guard is one of 2 names"):
        guard.save(path)
    link.unlink()
    guard.save(path)
    assert RadaBound.load(path).n_answered == 1


def test_a_file_that_nobody_owns_any_more_is_released(tmp_path):
    save(tmp_path / "guard")
    file = store.StateFile(tmp_path / "guard")
    del file
    gc.collect()
    store.StateFile(tmp_path / "guard").release()


def test_a_guard_is_let_go_without_a_step_of_python_that_ctrl_c_could_break_off(tmp_path):
    RadaBound(**MADE).save(tmp_path / "guard")
    guard, steps = RadaBound.load(tmp_path / "guard"), []
    sys.setprofile(lambda frame, event, _: steps.append((event, frame.f_code.co_name)))
    del guard
    sys.setprofile(None)
    assert [name for event, name in steps if event == "call"] == []
    assert RadaBound.load(tmp_path / "guard").n_answered == 0


@posix
def test_a_process_that_is_killed_releases_its_file(tmp_path):
    path = tmp_path / "guard"
    save(path)
    code = """
        import sys
        from radabound_fast import store
        file = store.StateFile(sys.argv[1])
        print("loaded", flush=True)
        sys.stdin.read()
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout.readline() == b"loaded\n"
        with pytest.raises(BlockingIOError):
            store.StateFile(path)
        owner.kill()
    store.StateFile(path).release()


@posix
@pytest.mark.parametrize("given", [(), ("x",), (2**40,), (1, 2)])
def test_a_descriptor_that_was_never_made_closes_no_file(given):
    code = f"""
        import os
        from radabound_fast._kernel import Descriptor
        before = os.fstat(0)
        try:
            Descriptor{given!r}
        except (TypeError, OverflowError):
            print(os.fstat(0) == before)
    """
    assert in_another_process(code) == "True"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_forked_worker_neither_holds_nor_breaks_its_parents_lock(tmp_path, replaced):
    # in a process of its own: pytest's may have threads, and forking those is an error here
    path = tmp_path / "guard"
    save(path)
    code = """
        import os, sys
        from radabound_fast import store
        file = store.StateFile(sys.argv[1])
        if sys.argv[2] == "True":
            file.replace(file.description, file.stored(9))
        to_parent, to_worker = os.pipe(), os.pipe()
        worker = os.fork()
        if worker == 0:
            os.close(to_parent[0])
            assert not file.held
            number = os.open(sys.argv[1], os.O_RDONLY)  # may be what the parent's was
            del file
            os.close(number)
            os.write(to_parent[1], b"x")
            os.read(to_worker[0], 1)  # stay alive until the parent has looked
            os._exit(0)
        os.close(to_parent[1])
        assert os.read(to_parent[0], 1)  # nothing, if the worker failed
        assert file.held
        try:
            store.StateFile(sys.argv[1])
        except BlockingIOError:
            print("in use")
        file.release()
        store.StateFile(sys.argv[1])
        print("free")
        os.write(to_worker[1], b"x")
        os.waitpid(worker, 0)
    """
    assert in_another_process(code, path, replaced) == "in use\nfree"


@posix
def test_the_seed_is_readable_by_its_owner_alone(tmp_path):
    path = tmp_path / "guard"
    RadaBound(**MADE).save(path)
    RadaBound.load(path).save(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_crash_costs_what_was_asked_since_the_load_and_asking_again_restores_it(tmp_path):
    path = tmp_path / "guard"
    RadaBound(**MADE).save(path)
    guard = RadaBound.load(path)
    first = guard.query_many(LOSSES)
    assert first.halted and first.n_answered > 1
    del guard  # as a crash would: never saved

    guard = RadaBound.load(path)
    assert guard.n_answered == 0 and not guard.halted
    again = guard.query_many(LOSSES)
    assert again.values.tolist() == first.values.tolist()
    assert again.complexity == first.complexity and guard.halted


def test_a_guard_is_saved_once(tmp_path):
    guard = RadaBound(**MADE)
    guard.save(tmp_path / "guard")
    for path in ("guard", "other"):
        with pytest.raises(RuntimeError, match="saved already and is retired"):
            guard.save(tmp_path / path)
    assert os.listdir(tmp_path) == ["guard"]


def test_a_description_that_is_too_long_is_refused_before_it_is_written(tmp_path):
    with pytest.raises(ValueError, match="at most 65536 bytes, got .*: shorten holdout_id"):
        RadaBound.open(tmp_path / "guard.db", **MADE, holdout_id="x" * 70_000)
    assert os.listdir(tmp_path) == []
