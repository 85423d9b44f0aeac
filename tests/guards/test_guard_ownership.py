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
        ]:
            try:
                ask()
            except HoldoutExhausted:
                pass
            except RuntimeError:
                refused += 1
        os._exit(0 if refused == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert guard.query(losses).n_queries == 1


def test_threads_share_one_count_and_one_halt():
    losses = coins(3, 4000)
    alone = guard_of().query_many(losses)
    assert alone.halted
    guard = guard_of()
    answered, refused = [], []

    def work(rows):
        for row in rows:
            try:
                answered.append(guard.query(row).n_queries)
            except HoldoutExhausted:
                refused.append(1)

    workers = [threading.Thread(target=work, args=(losses[i::4],)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answered) + len(refused) == len(losses)
    assert sorted(answered) == list(range(1, len(answered) + 1))
    assert guard.halted and guard.n_queries == len(answered)


def test_a_guard_reopened_before_its_first_query_has_no_extremes(tmp_path):
    made = {"signs": "generated", "bound": "fixed-sequence", "max_queries": 50}
    RadaBound.open(tmp_path / "guard", 1000, epsilon=0.09, delta=0.1, seed=1, **made).close()
    fresh = guard_of(**made)
    reopened = RadaBound.open(tmp_path / "guard")
    assert reopened.complexity == 0.0 and reopened.n_queries == 0
    rows = coins(2, 20)
    assert_array_equal(reopened.query_many(rows).values, fresh.query_many(rows).values)


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
        assert made.n_queries == n_queries


@pytest.mark.parametrize("kind", [RadaBound, GuessAndCheck])
def test_a_guard_in_a_database_is_not_made_anew(tmp_path, kind):
    given = {"epsilon": 0.2, "delta": 0.1}
    with kind.open(tmp_path / "guard", 1000, **given) as guard:
        with pytest.raises(RuntimeError, match="has been made"):
            guard.__init__(1000, **given)
        assert guard.query(coins(3, 1)[0], guess=0.3).n_queries == 1
    with pytest.raises(RuntimeError, match="is closed: open its database again"):
        guard.query(coins(3, 1)[0], guess=0.3)
    assert kind.open(tmp_path / "guard").n_queries == 1
