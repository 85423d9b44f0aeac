"""A guard has one owner: threads share it; copies, pickles and forks are refused."""

import os
from functools import partial

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
    "RadaBound": (RadaBound, {"epsilon": 0.5, "delta": 0.1, "bound": "mclt"}),
    "FixedSequence": (FixedSequence, {"epsilon": 0.2, "delta": 0.1}),
    "union": (FixedSequence, {"epsilon": 0.2, "delta": 0.1, "n_vectors": 0}),
    "GuessAndCheck": (GuessAndCheck, {"epsilon": 0.2, "delta": 0.1}),
    "Ladder": (Ladder, {"step": 0.01, "delta": 0.1}),
    "Thresholdout": (Thresholdout, {"threshold": 0.1, "noise": 0.02, "budget": 5}),
}


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("judged", [1000, [0, 1] * 500])
@pytest.mark.parametrize(("kind", "parameters"), MADE.values(), ids=MADE)
def test_nothing_is_made_twice(tmp_path, kind, parameters, judged, opened):
    make = partial(kind.open, tmp_path / "guard") if opened else kind
    guard = make(judged, **parameters)
    for n_answered in (1, 2):
        query(guard, np.arange(1000) % 2 if judged == 1000 else judged)
        with pytest.raises(RuntimeError, match="has been made: __init__ once more would forget"):
            guard.__init__(judged, **parameters)
        assert guard.n_answered == n_answered
    assert not opened or make(judged).n_answered == 2


def test_an_average_is_not_made_twice():
    average = RademacherAverage(SignMatrix(1000, 8, seed=1))
    average.update(coins(3, 1, 1000))
    with pytest.raises(RuntimeError, match="this RademacherAverage has been made: __init__ once"):
        average.__init__(SignMatrix(1000, 8, seed=1))
    assert average.n_queries == 1
