"""A guard's state on disk: all of it or an error, and one owner at a time."""

import errno
import gc
import hashlib
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from radabound_fast import RadaBound, store

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes and modes")

STATE = {
    "bound": "bernstein",
    "epsilon": 0.1 + 0.2,  # a float that decimal text of 16 digits would change
    "halted": False,
    "n_queries": 2**40,
    "seed": 2**64 - 1,
    "estimator": None,
}
ARRAYS = {
    "maxima": np.array([2**62, -1, 0], dtype=np.int64),
    "minima": np.array([-(2**62), -3, -7], dtype=np.int64),
}

# {"bound": "x"} and maxima [1, -1], byte by byte: files already written must stay readable
KNOWN = bytes.fromhex(
    "89524144410d0a1a"  # magic
    "01000000"  # version 1
    "34000000"  # 52 bytes of header
    "7c00000000000000"  # 124 bytes in all
)
KNOWN_HEADER = b'{"arrays": {"maxima": [2]}, "state": {"bound": "x"}}'
KNOWN_BODY = bytes.fromhex("0100000000000000ffffffffffffffff")


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert found[name].dtype == np.int64
            assert found[name].tolist() == value.tolist()
        else:
            assert found[name] == value and type(found[name]) is type(value)


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
        print(store.load_state(sys.argv[1])[0]["n_queries"])
    except BlockingIOError:
        print("in use")
"""


@pytest.mark.parametrize("state", [STATE | ARRAYS, STATE, {}])
def test_a_saved_state_comes_back_equal(tmp_path, state):
    store.save_state(tmp_path / "guard", state)
    loaded, _lock = store.load_state(tmp_path / "guard")
    assert_same(loaded, state)


def test_loaded_arrays_can_be_written_to(tmp_path):
    store.save_state(tmp_path / "guard", STATE | ARRAYS)
    loaded, _lock = store.load_state(tmp_path / "guard")
    loaded["maxima"][0] = 5
    assert loaded["maxima"].tolist() == [5, -1, 0]


def test_the_format_is_a_promise():
    content = KNOWN + KNOWN_HEADER + KNOWN_BODY
    blob = content + hashlib.sha256(content).digest()
    state = {"bound": "x", "maxima": np.array([1, -1], dtype=np.int64)}
    assert store.to_bytes(state) == blob
    assert_same(store.from_bytes(blob), state)


def test_every_truncation_is_refused():
    blob = store.to_bytes(STATE | ARRAYS)
    for length in range(len(blob)):
        with pytest.raises(ValueError, match="truncated|not a saved guard"):
            store.from_bytes(blob[:length])


def test_every_flipped_bit_is_refused():
    blob = store.to_bytes(STATE | ARRAYS)
    for bit in range(8 * len(blob)):
        altered = bytearray(blob)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="altered|not a saved guard|format version"):
            store.from_bytes(bytes(altered))


def test_bytes_past_the_end_are_refused():
    with pytest.raises(ValueError, match="altered"):
        store.from_bytes(store.to_bytes(STATE) + b"\0")


def test_a_later_format_is_refused_by_its_number():
    blob = bytearray(store.to_bytes(STATE))
    blob[8] = 2
    with pytest.raises(ValueError, match="format version 2, this program reads 1"):
        store.from_bytes(bytes(blob))


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00", b'{"bound": "x"}'])
def test_a_foreign_file_is_refused_by_name_and_then_free(tmp_path, content):
    path = tmp_path / "guard"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"guard cannot be loaded: not a saved guard"):
        store.load_state(path)
    store.Lock(path).release()


def test_a_missing_file_is_not_found_and_leaves_no_lock_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="guard"):
        store.load_state(tmp_path / "guard")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [np.zeros(2), np.zeros(2, dtype=np.int32)])
def test_only_int64_arrays_are_saved(tmp_path, value):
    with pytest.raises(TypeError, match=r"state\['maxima'\] must be int64, got"):
        store.save_state(tmp_path / "guard", {"maxima": value})
    assert list(tmp_path.iterdir()) == []


def test_a_live_guard_saves_over_the_file_it_was_loaded_from(tmp_path):
    path = tmp_path / "guard"
    store.save_state(path, STATE | {"n_queries": 1})
    _, lock = store.load_state(path)
    store.save_state(path, STATE | {"n_queries": 2}, lock=lock)
    assert lock.held
    with pytest.raises(BlockingIOError):  # the rename has not freed the path
        store.load_state(path)
    lock.release()
    assert store.load_state(path)[0]["n_queries"] == 2


def test_a_file_that_somebody_else_saved_is_not_overwritten(tmp_path):
    path = tmp_path / "guard"
    store.save_state(path, STATE | {"n_queries": 1})
    store.save_state(tmp_path / "other", STATE)
    _, other = store.load_state(tmp_path / "other")
    released = store.Lock(path)
    released.release()
    for lock in (None, other, released):
        with pytest.raises(ValueError, match="exists and this guard was not loaded from it"):
            store.save_state(path, STATE, lock=lock)
    assert store.load_state(path)[0]["n_queries"] == 1


def test_a_path_that_a_live_guard_owns_is_not_saved_to(tmp_path):
    owner = store.Lock(tmp_path / "guard")
    with pytest.raises(BlockingIOError, match="guard is in use"):
        store.save_state(tmp_path / "guard", STATE)
    owner.release()


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_state_and_nothing_else(
    tmp_path, monkeypatch, step, failure
):
    path = tmp_path / "guard"
    store.save_state(path, STATE)
    _, lock = store.load_state(path)
    before = path.read_bytes(), sorted(os.listdir(tmp_path))

    def fail(*_):
        raise failure

    with monkeypatch.context() as patch, pytest.raises(type(failure)):
        patch.setattr(os, step, fail)
        store.save_state(path, STATE | {"n_queries": 2}, lock=lock)
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before
    assert lock.held


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_process_that_dies_while_saving_leaves_the_old_state_unlocked(tmp_path, step):
    path = tmp_path / "guard"
    store.save_state(path, STATE)
    code = """
        import os, sys
        from radabound_fast import store
        state, lock = store.load_state(sys.argv[1])
        setattr(os, sys.argv[2], lambda *_: (print("dying", flush=True), os._exit(0)))
        store.save_state(sys.argv[1], state | {"n_queries": 2}, lock=lock)
    """
    assert in_another_process(code, path, step) == "dying"
    assert store.load_state(path)[0]["n_queries"] == STATE["n_queries"]


def test_one_process_at_a_time(tmp_path):
    path = tmp_path / "guard"
    store.save_state(path, STATE)
    _, lock = store.load_state(path)
    assert in_another_process(TRY_TO_LOAD, path) == "in use"
    lock.release()
    lock.release()
    assert in_another_process(TRY_TO_LOAD, path) == str(STATE["n_queries"])


def test_one_owner_at_a_time_within_a_process_also_by_another_name(tmp_path, monkeypatch):
    path = tmp_path / "guard"
    store.save_state(path, STATE)
    with store.Lock(path):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(BlockingIOError, match="guard is in use"):
            store.load_state("guard")
    store.load_state("guard")[1].release()


@posix
def test_a_symbolic_link_is_the_file_it_points_to(tmp_path):
    path, link = tmp_path / "guard", tmp_path / "link"
    store.save_state(path, STATE)
    link.symlink_to(path)
    _, lock = store.load_state(link)
    with pytest.raises(BlockingIOError):
        store.load_state(path)
    store.save_state(link, STATE | {"n_queries": 2}, lock=lock)
    lock.release()
    assert link.is_symlink()
    assert store.load_state(path)[0]["n_queries"] == 2


def test_a_lock_that_nobody_holds_any_more_is_released(tmp_path):
    store.save_state(tmp_path / "guard", STATE)
    state, lock = store.load_state(tmp_path / "guard")
    del lock
    gc.collect()
    store.load_state(tmp_path / "guard")[1].release()


@posix
def test_a_process_that_is_killed_releases_its_lock(tmp_path):
    path = tmp_path / "guard"
    store.save_state(path, STATE)
    code = """
        import sys
        from radabound_fast import store
        state, lock = store.load_state(sys.argv[1])
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
            store.load_state(path)
        owner.kill()
    store.load_state(path)[1].release()


@posix
def test_a_forked_worker_neither_holds_nor_breaks_its_parents_lock(tmp_path):
    # in a process of its own: pytest's may have threads, and forking those is an error here
    path = tmp_path / "guard"
    store.save_state(path, STATE)
    code = """
        import os, sys
        from radabound_fast import store
        state, lock = store.load_state(sys.argv[1])
        to_parent, to_worker = os.pipe(), os.pipe()
        worker = os.fork()
        if worker == 0:
            assert not lock.held
            del lock
            os.write(to_parent[1], b"x")
            os.read(to_worker[0], 1)  # stay alive until the parent has looked
            os._exit(0)
        os.read(to_parent[0], 1)
        assert lock.held
        try:
            store.load_state(sys.argv[1])
        except BlockingIOError:
            print("in use")
        lock.release()
        store.load_state(sys.argv[1])
        print("free")
        os.write(to_worker[1], b"x")
        os.waitpid(worker, 0)
    """
    assert in_another_process(code, path) == "in use\nfree"


@posix
def test_the_seed_is_readable_by_its_owner_alone(tmp_path):
    store.save_state(tmp_path / "guard", STATE)
    assert (tmp_path / "guard").stat().st_mode & 0o777 == 0o600


def test_a_crash_costs_what_was_asked_since_the_load_and_asking_again_restores_it(tmp_path):
    path = tmp_path / "guard"
    losses = np.random.default_rng(0).integers(0, 2, (60, 1000))
    RadaBound(1000, epsilon=0.1, delta=0.1, seed=3).save(path)
    guard = RadaBound.load(path)
    first = guard.query_many(losses)
    assert first.halted and first.n_answered > 1
    del guard  # as a crash would: never saved

    guard = RadaBound.load(path)
    assert guard.n_queries == 0 and not guard.halted
    again = guard.query_many(losses)
    assert again.values.tolist() == first.values.tolist()
    assert again.complexity == first.complexity and guard.halted
