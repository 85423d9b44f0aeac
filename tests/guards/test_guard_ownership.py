"""A guard has one owner: threads share it; copies, pickles and forks are refused; files keep it."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import (
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    RademacherAverage,
    SignMatrix,
)
from radabound_fast.experiments.thresholdout import Thresholdout


def guard_of(n_samples=1000, **kwargs):
    return RadaBound(
        n_samples, **{"epsilon": 0.09, "delta": 0.1, "bound": "mclt", "seed": 1} | kwargs
    )


def coins(seed, n_queries, n_samples=1000):
    return np.random.default_rng(seed).random((n_queries, n_samples)) < 0.3


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, pickle.dumps, lambda guard: pickle.dumps(guard, protocol=0)],
)
@pytest.mark.parametrize("make", [guard_of, lambda: Holdout([0, 1] * 500, guard_of())])
def test_a_guard_cannot_be_copied(make, copied):
    with pytest.raises(TypeError, match="cannot be copied or pickled.*send pred"):
        copied(make())


def test_sklearn_clone_keeps_the_same_guard():
    guard = guard_of()
    assert guard.__sklearn_clone__() is guard


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_is_not():
    guard, holdout = guard_of(), Holdout([0, 1] * 500, guard_of())
    losses = coins(0, 1)[0]
    child = os.fork()
    if child == 0:
        refused = 0
        for ask in [
            lambda: guard.query(losses),
            lambda: guard.query_many(losses[np.newaxis]),
            lambda: holdout.query([0, 1] * 500),
            lambda: guard.save("never-written"),
        ]:
            try:
                ask()
            except HoldoutExhausted:
                pass
            except RuntimeError:
                refused += 1
        os._exit(0 if refused == 4 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert guard.query(losses).number == 1


def test_threads_share_one_count_and_one_halt():
    losses = coins(3, 4000)
    alone = guard_of().query_many(losses)
    assert alone.halted
    guard = guard_of()
    answered, refused = [], []

    def work(rows):
        for row in rows:
            try:
                answered.append(guard.query(row).number)
            except HoldoutExhausted:
                refused.append(1)

    workers = [threading.Thread(target=work, args=(losses[i::4],)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answered) + len(refused) == len(losses)
    assert sorted(answered) == list(range(1, len(answered) + 1))
    assert guard.halted and guard.n_answered == len(answered)


def test_a_saved_guard_goes_on_where_it_stopped(tmp_path):
    losses = coins(5, 400)
    whole = guard_of()
    expected = whole.query_many(losses, trace=True)
    guard, path = guard_of(), tmp_path / "guard"
    parts = []
    for rows in np.array_split(losses, 5):
        if guard.halted:
            break
        parts.append(guard.query_many(rows, trace=True))
        guard.save(path)
        with pytest.raises(RuntimeError, match="retired"):
            guard.query(losses[0])
        guard = RadaBound.load(path)
    assert_array_equal(np.concatenate([part.values for part in parts]), expected.values)
    assert_array_equal(np.concatenate([part.complexities for part in parts]), expected.complexities)
    assert guard.halted and guard.complexity == whole.complexity
    assert guard.n_answered == whole.n_answered
    with pytest.raises(HoldoutExhausted):
        guard.query(losses[0])


def test_a_guard_saved_before_its_first_query_has_no_extremes(tmp_path):
    guard = guard_of(signs="generated", bound="fixed-sequence", max_queries=50)
    guard.save(tmp_path / "guard")
    loaded = RadaBound.load(tmp_path / "guard")
    assert loaded.complexity == 0.0 and loaded.n_answered == 0
    rows = coins(2, 20)
    fresh = guard_of(signs="generated", bound="fixed-sequence", max_queries=50)
    assert_array_equal(loaded.query_many(rows).values, fresh.query_many(rows).values)


def test_real_valued_state_is_kept(tmp_path):
    losses = np.random.default_rng(1).random((10, 1000))
    guard, whole = guard_of(), guard_of()
    guard.query_many(losses[:5])
    guard.save(tmp_path / "guard")
    loaded = RadaBound.load(tmp_path / "guard")
    loaded.query_many(losses[5:])
    whole.query_many(losses)
    assert loaded.complexity == whole.complexity and loaded.budget == whole.budget


def test_a_live_guard_keeps_others_off_its_file(tmp_path):
    guard_of().save(tmp_path / "guard")
    first = RadaBound.load(tmp_path / "guard")
    with pytest.raises(OSError, match="live guard"):
        RadaBound.load(tmp_path / "guard")
    del first
    RadaBound.load(tmp_path / "guard")


def test_a_failed_save_leaves_the_guard_alive(tmp_path):
    guard = guard_of()
    with pytest.raises(OSError):
        guard.save(tmp_path / "no such folder" / "guard")
    assert guard.query(coins(0, 1)[0]).number == 1


def test_an_altered_file_is_refused(tmp_path):
    path = tmp_path / "guard"
    guard_of().save(path)
    blob = bytearray(path.read_bytes())
    blob[-40] ^= 1
    path.write_bytes(blob)
    with pytest.raises(ValueError, match="altered"):
        RadaBound.load(path)


MADE = {
    "RadaBound": lambda: guard_of(),
    "GuessAndCheck": lambda: GuessAndCheck(1000, epsilon=0.2, delta=0.1),
    "Ladder": lambda: Ladder(1000, delta=0.1),
    "Thresholdout": lambda: Thresholdout(1000, threshold=0.1, noise=0.02, budget=5),
    "Holdout": lambda: Holdout([0, 1] * 500, guard_of()),
    "RademacherAverage": lambda: RademacherAverage(SignMatrix(1000, 8, seed=1)),
}
AGAIN = {
    "RadaBound": lambda guard: guard.__init__(1000, epsilon=0.5, delta=0.1),
    "GuessAndCheck": lambda guard: guard.__init__(1000, epsilon=0.5, delta=0.1),
    "Ladder": lambda guard: guard.__init__(1000, delta=0.1),
    "Thresholdout": lambda guard: guard.__init__(1000, threshold=0.1, noise=0.02, budget=50),
    "Holdout": lambda guard: guard.__init__([0, 1] * 500, guard_of()),
    "RademacherAverage": lambda guard: guard.__init__(SignMatrix(1000, 8, seed=1)),
}


@pytest.mark.parametrize("name", MADE)
def test_nothing_is_made_twice(name):
    made, losses = MADE[name](), coins(3, 1)[0]

    def ask():
        return made.update(losses) if name == "RademacherAverage" else made.query(losses, guess=0.3)

    for n_queries in (1, 2):
        ask()
        with pytest.raises(RuntimeError, match=f"this {name} has been made: __init__ once more"):
            AGAIN[name](made)
        assert made.n_answered == n_queries


@pytest.mark.parametrize("kind", [RadaBound, GuessAndCheck])
@pytest.mark.parametrize("way", ["opened", "loaded", "saved"])
def test_a_guard_on_disk_is_not_made_anew(tmp_path, kind, way):
    given = {"epsilon": 0.2, "delta": 0.1}
    if way == "opened":
        guard = kind.open(tmp_path / "guard", 1000, **given)
    else:
        guard = kind(1000, **given)
        guard.save(tmp_path / "guard")
        if way == "loaded":
            guard = kind.load(tmp_path / "guard")
    with pytest.raises(RuntimeError, match="has been made"):
        guard.__init__(1000, **given)
    if way == "saved":
        with pytest.raises(RuntimeError, match="retired"):
            guard.query(coins(3, 1)[0], guess=0.3)
        guard = kind.load(tmp_path / "guard")
    assert guard.query(coins(3, 1)[0], guess=0.3).number == 1
    if way == "opened":
        assert kind.open(tmp_path / "guard").n_answered == 1
