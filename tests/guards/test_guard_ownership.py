"""A guard has one owner: threads share it; copies, pickles and forks are refused."""

import os

import numpy as np
import pytest
from support import coins, guard_of, query

from radabound_fast import (
    FixedSequence,
    GuessAndCheck,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    RademacherAverage,
    SignMatrix,
    pack_losses,
)
from radabound_fast.experiments.thresholdout import Thresholdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_is_not():
    guard, labelled = guard_of(), guard_of([0, 1] * 500)
    losses = coins(0, 1, 1000)[0]
    labelled.query([0, 1] * 500)  # from now on its dtype is known
    child = os.fork()
    if child == 0:
        refused = 0
        for ask in [
            lambda: guard.query(losses),
            lambda: guard.query(pack_losses(losses)),
            lambda: guard.query_many(losses[np.newaxis]),
            lambda: guard.query_many(pack_losses(losses[np.newaxis])),
            lambda: guard.take([guard.task().reduce(losses[np.newaxis])]),
            lambda: labelled.query([0, 1] * 500),
            lambda: labelled.query_many([[0, 1] * 500]),
            lambda: labelled.query(pack_losses(losses)),
        ]:
            try:
                ask()
            except HoldoutExhausted:
                pass
            except RuntimeError as error:
                refused += "os.fork" in str(error)
        os._exit(0 if refused == 8 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert guard.query(losses).number == 1 and labelled.n_answered == 1


MADE = {
    "RadaBound": lambda m=1000: RadaBound(m, epsilon=0.5, delta=0.1, bound="mclt"),
    "FixedSequence": lambda m=1000: FixedSequence(m, epsilon=0.2, delta=0.1),
    "union": lambda m=1000: FixedSequence(m, epsilon=0.2, delta=0.1, n_vectors=0),
    "GuessAndCheck": lambda m=1000: GuessAndCheck(m, epsilon=0.2, delta=0.1),
    "Ladder": lambda m=1000: Ladder(m, 0.01, delta=0.1),
    "Thresholdout": lambda m=1000: Thresholdout(m, threshold=0.1, noise=0.02, budget=5),
}
AGAIN = {
    "RadaBound": {"epsilon": 0.5, "delta": 0.1},
    "FixedSequence": {"epsilon": 0.5, "delta": 0.1},
    "union": {"epsilon": 0.5, "delta": 0.1},
    "GuessAndCheck": {"epsilon": 0.5, "delta": 0.1},
    "Ladder": {"step": 0.01, "delta": 0.1},
    "Thresholdout": {"threshold": 0.1, "noise": 0.02, "budget": 50},
}


@pytest.mark.parametrize("judged", [1000, [0, 1] * 500])
@pytest.mark.parametrize("name", MADE)
def test_nothing_is_made_twice(name, judged):
    guard = MADE[name](judged)
    for n_answered in (1, 2):
        query(guard, np.arange(1000) % 2 if judged == 1000 else judged)
        with pytest.raises(RuntimeError, match="has been made: __init__ once more would forget"):
            guard.__init__(judged, **AGAIN[name])
        assert guard.n_answered == n_answered


def test_an_average_is_not_made_twice():
    average = RademacherAverage(SignMatrix(1000, 8, seed=1))
    average.update(coins(3, 1, 1000))
    with pytest.raises(RuntimeError, match="this RademacherAverage has been made: __init__ once"):
        average.__init__(SignMatrix(1000, 8, seed=1))
    assert average.n_queries == 1


@pytest.mark.parametrize("name", MADE)
def test_a_guard_in_a_database_is_not_made_anew(tmp_path, name):
    kind, given = type(MADE[name]()), AGAIN[name]
    kind = FixedSequence if name in ("FixedSequence", "union") else kind
    given = given | ({"n_vectors": 0} if name == "union" else {})
    guard = kind.open(tmp_path / "guard", 1000, **given)
    with pytest.raises(RuntimeError, match="has been made"):
        guard.__init__(1000, **given)
    assert query(guard, np.zeros(1000)).number == 1
    assert kind.open(tmp_path / "guard").n_answered == 1
