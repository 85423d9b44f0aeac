"""The logger "radabound_fast": a line a halt, at DEBUG a line a call, and nothing by itself."""

import logging
import pickle
import subprocess
import sys

import numpy as np
import pytest
from support import query, query_many

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    pack_losses,
)
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.spaces import Improvements, epoch_of

M = 1000
HALTED = "%s of 1000 samples halted after %d answers: the next is withheld, and all after it"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def lines(caplog, level):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "radabound_fast" and record.levelno == level
    ]


GUARDS = {
    "RadaBound": lambda: RadaBound(M, epsilon=0.1, delta=0.1, bound="mclt", seed=0),
    "GuessAndCheck": lambda: GuessAndCheck(M, epsilon=0.1, delta=0.1),
    "Thresholdout": lambda: Thresholdout(M, threshold=0.05, noise=0.001, budget=3, seed=0),
}


def spend(guard, rng, *, many, calls=5000):
    """Queries of coins until it halts, and twice more."""
    refused = 0
    for _ in range(calls):
        losses = rng.random((20 if many else 1, M)) < 0.5
        try:
            if many:
                query_many(guard, losses, np.full(20, 0.5))
            else:
                query(guard, losses[0])
        except HoldoutExhausted:
            refused += 1
        if refused > 2:
            return
    raise AssertionError("it never halted")


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", GUARDS)
@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_a_halt_is_one_line_however_often_it_is_asked_again(caplog, rng, kind, many, level):
    with caplog.at_level(level, "radabound_fast"):
        guard = GUARDS[kind]()
        spend(guard, rng, many=many)
    assert lines(caplog, logging.INFO) == [HALTED % (kind, guard.n_answered)]
    asked = lines(caplog, logging.DEBUG)
    if level == logging.INFO:
        assert asked == []
    elif not many:
        assert len(asked) == guard.n_answered > 0
        assert asked[0].startswith(f"{kind} answered query 1: ")


def test_a_guard_that_was_found_halted_says_nothing(caplog, rng, tmp_path):
    path = tmp_path / "guard.db"
    with RadaBound.open(path, M, epsilon=0.1, delta=0.1, bound="mclt", seed=0) as guard:
        spend(guard, rng, many=False)
    with (
        caplog.at_level(logging.INFO, "radabound_fast"),
        RadaBound.open(path) as found,
        pytest.raises(HoldoutExhausted),
    ):
        found.query(np.zeros(M))
    assert lines(caplog, logging.INFO) == []


def test_another_process_s_halt_is_a_line_where_it_is_met(caplog, rng, tmp_path):
    path = tmp_path / "guard.db"
    with (
        RadaBound.open(path, M, epsilon=0.1, delta=0.1, bound="mclt", seed=0) as one,
        RadaBound.open(path) as two,
        caplog.at_level(logging.INFO, "radabound_fast"),
    ):
        spend(one, rng, many=False)
        with pytest.raises(HoldoutExhausted):
            two.query(np.zeros(M))
    assert lines(caplog, logging.INFO) == 2 * [HALTED % ("RadaBound", one.n_answered)]


@pytest.mark.parametrize("way", ["query", "packed", "predictions", "again", "strings"])
def test_every_way_to_one_answer_is_a_debug_line(caplog, rng, way):
    losses = rng.random(M) < 0.25
    given = {"epsilon": 0.3, "delta": 0.1, "seed": 0}
    with caplog.at_level(logging.DEBUG, "radabound_fast"):
        if way in ("query", "packed"):
            guard = RadaBound(M, **given)
            answer = guard.query(pack_losses(losses) if way == "packed" else losses)
        elif way == "strings":
            holdout = Holdout(np.array(["a"] * M), classes=["a", "b"])
            answer = RadaBound(holdout, **given).query(np.where(losses, "b", "a"))
        else:
            guard = RadaBound(Holdout(np.zeros(M, int), classes=[0, 1]), **given)
            answer = guard.query(losses.astype(int))
            if way == "again":  # a dtype that is known is compared without Python
                guard.query(losses.astype(int))
    numbers = (1, 2) if way == "again" else (1,)
    expected = [f"RadaBound answered query {number}: {answer.value:.6g}" for number in numbers]
    assert lines(caplog, logging.DEBUG) == expected


def test_a_block_is_one_debug_line(caplog, rng):
    losses = rng.random((30, M)) < 0.2
    with caplog.at_level(logging.DEBUG, "radabound_fast"):
        for guard in (
            FixedSequence(M, epsilon=0.3, delta=0.1, seed=0),
            Ladder(M, step=0.05, delta=0.1),
        ):
            guard.query_many(losses)
        DeclaredSearch(M, 100, delta=0.1).query_many(losses, keys=range(30))
    kinds = ("FixedSequence", "Ladder", "DeclaredSearch")
    assert lines(caplog, logging.DEBUG) == [
        f"{kind} answered 30 queries in one call, 30 in all" for kind in kinds
    ]


def test_a_search_names_the_key(caplog, rng):
    with caplog.at_level(logging.DEBUG, "radabound_fast"):
        search = DeclaredSearch(M, {"depth": range(5)}, delta=0.1)
        search.query(np.arange(M) < 200, key={"depth": 3})
    assert lines(caplog, logging.DEBUG) == ["DeclaredSearch answered query 1, key depth=3: 0.2"]


def test_no_line_has_a_value_that_the_search_is_not_shown(caplog, rng):
    y = rng.integers(0, 2, M)
    with caplog.at_level(logging.DEBUG, "radabound_fast"):
        search = DeclaredSearch(Holdout(y, metric="accuracy"), Improvements(11), delta=0.1)
        for share, key in ((0.23, (0, ())), (0.31, (1, ((1, 2),)))):
            search.query(y ^ (np.arange(M) < share * M), key=key)
        both = DeclaredSearch(M, Improvements(11) * epoch_of(5), delta=0.1)
        both.query(np.arange(M) < 0.27 * M, key=((0, ()), 3))
    assert lines(caplog, logging.DEBUG) == [
        "DeclaredSearch answered query 1, key (0, ())",
        "DeclaredSearch answered query 2, key (1, ((1, 2),))",
        "DeclaredSearch answered query 1, key ((0, ()), 3)",
    ]


def test_a_level_that_is_set_later_is_for_later_guards(caplog, rng):
    before = RadaBound(M, epsilon=0.3, delta=0.1)
    with caplog.at_level(logging.DEBUG, "radabound_fast"):
        before.query(np.zeros(M))
        assert lines(caplog, logging.DEBUG) == []
        after = pickle.loads(pickle.dumps(DeclaredSearch(M, 3, delta=0.1)))
        after.query(np.zeros(M, bool), key=0)
    assert len(lines(caplog, logging.DEBUG)) == 1
    after.query(np.zeros(M, bool), key=1)  # the level is back
    assert len(lines(caplog, logging.DEBUG)) == 1


QUIET = """
import sys
import radabound_fast, numpy
guard = radabound_fast.RadaBound(100, epsilon=0.3, delta=0.1)
for _ in range(2):
    try:
        for _ in range(100000):
            guard.query(numpy.random.random(100) < 0.5)
    except radabound_fast.HoldoutExhausted:
        print("halted")
import logging
print([type(handler).__name__ for handler in logging.getLogger("radabound_fast").handlers])
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
radabound_fast.RadaBound(100, epsilon=0.01, delta=0.1)._note_halt(0)
"""


def test_nobody_hears_what_nobody_asked_for():
    done = subprocess.run(
        [sys.executable, "-c", QUIET], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[:2] == ["halted", "halted"]
    assert done.stdout.splitlines()[2] in ("['NullHandler']", "[]")
    (line,) = done.stderr.splitlines()
    assert line.startswith("radabound_fast INFO RadaBound of 100 samples halted after 0 answers")
