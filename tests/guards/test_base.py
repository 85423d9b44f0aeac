"""What every guard has, so that whoever hosts one need not know which it is."""

import inspect
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support import GUARDS, coins, query, query_many

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    Gate,
    Holdout,
    HoldoutExhausted,
    Ladder,
    Losses,
    ModelPool,
    RadaBound,
)
from radabound_fast._kernels.support import SharedState
from radabound_fast.guards.base import Guard

M = 300
LABELS = np.random.default_rng(5).integers(0, 2, M)


@pytest.fixture(params=GUARDS)
def name(request):
    return request.param


@pytest.fixture
def guard(name):
    return GUARDS[name](M)


def test_it_is_a_guard_of_its_public_class(name, guard):
    public = "FixedSequence" if name == "union" else name
    assert isinstance(guard, Guard) and guard.kind == public
    assert repr(guard).startswith(f"{public}(Losses({M}), ")
    assert guard.needs in ("key", "guess", None) and guard.n_samples == M
    assert not guard.halted and guard.can_answer and guard.n_answered == 0
    assert guard.what_now() == ""


def attributes(one):
    """Public names of an object that are no methods, and what they stand for."""
    names = (name for name in dir(one) if name[0] != "_")
    every = {name: getattr(one, name) for name in names}
    return {name: value for name, value in every.items() if not callable(value)}


def test_nothing_that_its_guarantee_rests_on_can_be_set(guard):
    check_nothing_can_be_set(guard)


@pytest.mark.parametrize(
    "one",
    [
        ConfirmedSearch(LABELS, delta=0.1, seed=0, pairs=True),
        DeclaredSearch(LABELS, 9, delta=0.1, n_best=3, allow_reruns=True),
        Gate(LABELS, delta=0.1, at_least=0.5),
        RadaBound(LABELS, epsilon=0.3, delta=0.1, bound="mclt"),
        Holdout(LABELS, metric="f1"),
        Losses(M),
        ModelPool(LABELS, delta=0.1),
    ],
    ids=lambda one: type(one).__name__,
)
def test_nothing_that_any_guarantee_rests_on_can_be_set(one):
    check_nothing_can_be_set(one)


def check_nothing_can_be_set(one):
    before = attributes(one)
    for name in before.keys() - {"n_models"}:  # which a pool counts
        with pytest.raises(AttributeError):
            setattr(one, name, 0.5)
    after = attributes(one)
    assert list(after) == list(before) and len(after) > 5
    assert all(repr(after[name]) == repr(before[name]) for name in after)


def test_a_subclass_may_have_attributes_of_its_own():
    class Counting(Ladder):
        n_calls = 0

        def query(self, y_pred):
            self.n_calls += 1
            return super().query(y_pred)

    guard = Counting(M, step=0.1, delta=0.1)
    for row in coins(4, 2, M):
        guard.query(row)
    assert guard.n_calls == guard.n_answered == 2


def test_its_parameters_are_json_and_hold_no_seed(guard):
    shown = json.loads(json.dumps(guard.parameters))
    assert shown == guard.parameters and shown["n_samples"] == M
    assert not {"seed", "metric", "weighting"} & shown.keys()


def test_what_is_left_is_a_number_or_none_and_is_said_in_words(guard):
    before = guard.n_left()
    assert before is None or before >= 0
    assert guard.n_left_public() is None or guard.n_left_public() >= 0
    text, share = guard.outlook()
    assert text and (share is None or 0.0 <= share <= 1.0)
    query(guard, np.zeros(M), 0)
    assert guard.n_answered == 1
    after = guard.n_left()
    assert before is None and after is None or after >= before - 1


def test_many_intervals_are_those_of_each_answer(guard):
    rows = coins(1, 30, M, 0.02)
    answers = query_many(guard, rows, range(30) if guard.needs == "key" else np.zeros(30))
    for some in (list(answers)[:2], list(answers)):
        found = list(guard.intervals_of(some))
        expected = [(one.low, one.high, one.half_width) for one in some]
        assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 0.3])
def test_what_is_public_does_not_depend_on_the_complexity(epsilon):
    """Rows of the same means, some alike and some not: the same is left, by what anybody sees."""
    alike = np.tile(coins(2, 1, M, 0.1), (20, 1))
    unlike = np.random.default_rng(3).permuted(alike, axis=1)
    seen, complexities = [], set()
    for rows in (alike, unlike):
        guard = FixedSequence(M, epsilon=epsilon, delta=0.1, seed=1)
        answers = guard.query_many(rows)
        seen.append((len(answers), guard.n_left_public(), guard.outlook(), guard.parameters))
        complexities.add(guard.owner_facts()["complexity"])
    assert seen[0] == seen[1] and len(complexities) == 2


def test_only_guards_with_signs_know_more_than_their_answers(name, guard):
    signed = name in ("RadaBound", "FixedSequence")
    assert set(guard.owner_facts()) == ({"complexity", "budget"} if signed else set())


def test_a_halted_guard_has_nothing_left_and_says_so(halting):
    guard = halting.make()
    halting.query(guard, 0)
    with pytest.raises(HoldoutExhausted):
        halting.query(guard, 1)
    assert guard.halted and not guard.can_answer
    assert guard.n_left() == guard.n_left_public() == 0
    assert guard.outlook() == ("nothing: the next query is withheld, and so is every later one", 0)
    assert guard.what_now().startswith("Report the best answer with its interval")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RadaBound(20, epsilon=0.01, delta=0.1), "needs"),
        (lambda: FixedSequence(20, epsilon=0.01, delta=0.1), "needs"),
        (lambda: FixedSequence(20, epsilon=0.01, delta=0.1, n_vectors=0), "needs more samples"),
        (lambda: GUARDS["GuessAndCheck"](1), "needs"),
        (lambda: GUARDS["Ladder"](20), ""),
        (lambda: GUARDS["DeclaredSearch"](20), ""),
    ],
)
def test_what_would_be_answered_is_said_where_nothing_is(make, said):
    assert said in make().what_would_answer()


def test_a_guard_in_memory_has_no_database_to_close(name, guard):
    assert guard.database is None
    if name == "DeclaredSearch":
        with guard as same:
            assert same is guard
    else:
        with pytest.raises(RuntimeError, match="is in no database"), guard:
            pass
    with pytest.raises(RuntimeError, match="in no database"):
        guard.share_transactions()


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_shows_what_it_does_and_not_how_it_counts(guard):
    made = GUARDS[guard](100)
    machinery = {name for name in dir(SharedState) if not name.startswith("_")} - {"halted"}
    assert {"lock", "change", "refresh", "has_halted"} <= machinery
    assert not machinery & set(dir(made))
    assert inspect.signature(type(made)).parameters.keys() >= {"judged"}
