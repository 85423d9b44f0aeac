"""One Answer and one Answers for every guard: a mean, an interval for the truth, and a record."""

import math
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support import one_by_one, query_many

from radabound_fast import (
    Answer,
    Answers,
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Ladder,
    RadaBound,
    pack_losses,
)
from radabound_fast._kernels.guard import GuardCore, RadaBoundAnswer
from radabound_fast._kernels.rows import SignStore
from radabound_fast.bounds import adaptive
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.guards.answers import SHARED, RadaBoundAnswers
from radabound_fast.guards.signed import SignedGuard
from radabound_fast.rows.labels import Labels

M = 1000
LOSSES = np.random.default_rng(0).random((30, M)) < np.linspace(0.6, 0.0, 30)[:, np.newaxis]
GUESSES = np.clip(LOSSES.mean(axis=1) + 0.01, 0, 1)
GUARDS = {
    "mclt": lambda: RadaBound(M, epsilon=0.2, delta=0.1, bound="mclt", seed=1),
    "fixed sequence": lambda: FixedSequence(M, epsilon=0.1, delta=0.1, seed=1, max_queries=40),
    "union bound alone": lambda: FixedSequence(M, epsilon=0.2, delta=0.1, n_vectors=0),
    "guess and check": lambda: GuessAndCheck(M, epsilon=0.2, delta=0.1),
    "ladder": lambda: Ladder(M, 0.01, delta=0.1),
    "ladder of 40": lambda: Ladder(M, 0.01, delta=0.1, max_queries=40),
    "thresholdout": lambda: Thresholdout(M, threshold=0.1, noise=0.02, budget=40, seed=3),
    "search": lambda: DeclaredSearch(M, 99, delta=0.1),
}
OWN = {
    "mclt": ["complexity", "delta_prime"],
    "fixed sequence": ["complexity", "delta_prime"],
    "union bound alone": [],
    "search": ["key", "rerun", "nats"],
    "guess and check": ["passed", "step"],
    "thresholdout": ["passed"],
}


@pytest.fixture(params=GUARDS)
def name(request):
    return request.param


@pytest.fixture
def build(name):
    return GUARDS[name]


def brought_to(guard):
    return range(30) if guard.needs == "key" else GUESSES


def asked(guard):
    return one_by_one(guard, LOSSES, brought_to(guard))


def block(guard, n=30):
    traced = {"trace": True} if isinstance(guard, SignedGuard) else {}
    return query_many(guard, LOSSES[:n], brought_to(guard)[:n], **traced)


def test_a_tracker_gets_floats_and_nothing_that_says_more_than_the_answer(build):
    guard = build()
    for answer in asked(guard):
        told = answer.as_metrics()
        assert {type(one) for one in told.values()} == {float}
        assert list(told) == ["holdout_value", "holdout_low", "holdout_high", "holdout_half_width"]
        assert same(list(told.values()), [getattr(answer, name) for name in SHARED[:-1]])
        assert same(list(answer.as_metrics(prefix="x/")), [f"x/{name}" for name in SHARED[:-1]])


def same(told, expected):
    """Equal by every digit, where nan is nan."""
    return repr(told) == repr(expected)


def test_what_any_guard_answers_is_one_kind_of_answer(build):
    guard = build()
    answer = asked(guard)[0]
    answers = block(guard, 2)
    assert isinstance(answer, Answer) and isinstance(answers, Answers)
    assert isinstance(answers, Sequence) and all(isinstance(each, Answer) for each in answers)
    assert isinstance(answer, RadaBoundAnswer) == isinstance(guard, SignedGuard)
    assert isinstance(answers, RadaBoundAnswers) == isinstance(guard, SignedGuard)


def test_an_answer_is_a_number_and_a_record(name, build):
    answer = asked(build())[3]
    told = answer.to_dict()
    shared = ["value", "low", "high", "half_width", "number"]
    assert list(told) == shared + OWN.get(name, ["updated"])
    assert all(same(getattr(answer, key), value) for key, value in told.items())
    assert float(answer) == answer.value and np.asarray(answer, float) == answer.value
    assert answer.number == 4
    kinds = {type(told[key]) for key in ("value", "low", "high", "half_width")}
    assert kinds == {float} and type(told["number"]) is int
    told["value"] = None  # a dict of one's own
    assert answer.to_dict()["value"] == answer.value
    shown = repr(answer)
    assert shown.startswith(f"{type(answer).__name__}(value={answer.value:.6g}, low=")
    assert "\n" not in shown and len(shown) < 160
    with pytest.raises(AttributeError):
        answer.value = 0.0


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_answers_are_pickled_with_all_they_tell(build, protocol):
    answers = block(build())
    for answer in (asked(build())[3], answers[3]):
        again = pickle.loads(pickle.dumps(answer, protocol))
        assert type(again) is type(answer) and same(again.to_dict(), answer.to_dict())
    again = pickle.loads(pickle.dumps(block(build()), protocol))  # none of it computed before
    assert type(again) is type(answers)
    assert (len(again), again.halted, again.n_answered) == (30, False, 30)
    assert same([each.to_dict() for each in again], [each.to_dict() for each in answers])
    for key, column in answers.to_dict().items():
        assert_array_equal(again.to_dict()[key], column)
    twice = pickle.loads(pickle.dumps(again, protocol))
    assert same(twice[3].to_dict(), answers[3].to_dict())


def test_many_answers_are_a_sequence_of_answers_and_their_columns(build):
    one_by_one, answers = asked(build()), block(build())
    assert len(answers) == answers.n_answered == 30 and not answers.halted
    assert same([each.to_dict() for each in answers], [each.to_dict() for each in one_by_one])
    assert same([answers[-1].to_dict()], [one_by_one[-1].to_dict()])
    assert same([each.to_dict() for each in answers[2:4]], [a.to_dict() for a in one_by_one[2:4]])
    with pytest.raises(IndexError):
        answers[30]
    for column, key in [("values", "value"), ("lows", "low"), ("highs", "high")]:
        found = getattr(answers, column)
        assert found.dtype == np.float64 and getattr(answers, column) is found  # kept
        assert_array_equal(found, [getattr(each, key) for each in one_by_one])
    assert_array_equal(answers.half_widths, [each.half_width for each in one_by_one])
    assert answers.numbers.tolist() == list(range(1, 31))
    for key, column in answers.to_dict().items():
        assert_array_equal(column, [getattr(each, key) for each in one_by_one])


def test_no_answers_are_an_empty_sequence_with_empty_columns(build):
    answers = block(build(), 0)
    assert len(answers) == 0 and list(answers) == [] and not answers
    for column in ("values", "lows", "highs", "half_widths"):
        assert getattr(answers, column).shape == (0,)
        assert getattr(answers, column).dtype == np.float64


def test_a_data_frame_has_a_row_per_answer(build):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    answers = block(build())
    fast = pandas.DataFrame(answers.to_dict())
    assert list(fast.columns) == list(answers[0].to_dict()) and len(fast) == 30
    for many in (answers, asked(build())):
        frame = pandas.DataFrame([answer.to_dict() for answer in many])
        pandas.testing.assert_frame_equal(frame, fast)


# ---- where the truth lies ------------------------------------------------------------------------


def test_an_interval_lies_in_0_to_1_and_within_the_half_width(name, build):
    for answer in asked(build()):
        if name == "thresholdout":
            assert all(math.isnan(end) for end in (answer.low, answer.high, answer.half_width))
            continue
        assert 0 <= answer.low <= answer.high <= 1
        assert answer.value - answer.half_width <= answer.low + 1e-15
        assert answer.value + answer.half_width >= answer.high - 1e-15


@pytest.mark.parametrize("losses_of", [bool, float])
@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_the_half_width_is_the_longer_side_of_its_interval(epsilon, losses_of):
    """At the ends too, where the shorter side is as long as epsilon would make it: 0."""
    guard = FixedSequence(M, epsilon=epsilon, delta=0.1, max_queries=12, seed=1)
    losses = (np.arange(M) < np.array([[0], [1], [20], [980], [999], [M]])).astype(losses_of)
    answers = guard.query_many(losses)
    longer = np.maximum(answers.values - answers.lows, answers.highs - answers.values)
    assert_allclose(answers.half_widths, longer, rtol=1e-12)
    for row in losses:
        answer = guard.query(row)
        longer = max(answer.value - answer.low, answer.high - answer.value)
        assert answer.half_width == pytest.approx(longer, rel=1e-12)


@pytest.mark.parametrize("bound", ["mclt", "bernstein"])
def test_the_papers_bounds_vouch_for_epsilon_on_either_side(bound):
    guard = RadaBound(M, epsilon=0.2, delta=0.1, bound=bound, seed=1)
    for n_wrong, low, high in [(0, 0.0, 0.2), (500, 0.3, 0.7), (900, 0.9 - 0.2, 1.0)]:
        answer = guard.query(np.arange(M) < n_wrong)
        assert (answer.low, answer.high, answer.half_width) == (low, high, 0.2)


def test_guess_and_check_vouches_for_epsilon_on_either_side():
    guard = GuessAndCheck(M, epsilon=0.2, delta=0.1, low_error=False)
    passed, moved = guard.query(LOSSES[20], guess=0.1), guard.query(LOSSES[10], guess=0.95)
    assert passed.passed and (passed.low, passed.high) == (0.0, 0.1 + 0.2)
    assert not moved.passed and moved.half_width == 0.2
    assert (moved.low, moved.high) == (moved.value - 0.2, moved.value + 0.2)


@pytest.mark.parametrize("max_queries", [None, 40])
def test_a_ladder_is_further_above_the_least_truth_than_below_it(max_queries):
    step = 0.01
    answers = block(Ladder(M, step, delta=0.1, max_queries=max_queries))
    for number, answer in enumerate(answers, start=1):
        if max_queries is None:
            told = (number - 1, len({each.value for each in answers[: number - 1]}))
            width = adaptive.ladder_transcript_half_width(number, told[1], M, step, 0.1)
        else:
            width = adaptive.ladder_half_width(max_queries, M, step, 0.1)
        e = width - step  # Result 14: at most e + eta above the least truth, e + eta/2 below it
        assert answer.low == pytest.approx(max(0.0, answer.value - e - step), abs=1e-12)
        assert answer.high == pytest.approx(min(1.0, answer.value + e + step / 2), abs=1e-12)


# ---- what a bound is asked -----------------------------------------------------------------------


class Rule:
    """Writes into the interval what it was asked."""

    def interval(self, values, n_queries, declared):
        return values + 10 * n_queries, values + 1000 * declared

    def half_width(self, values, lows, highs):
        return highs - lows

    def delta_prime(self, complexity):
        return complexity


def core():
    return GuardCore(SignStore(3, M, 32), rule=Rule())


LABELS = np.random.default_rng(1).integers(0, 2, M)


@pytest.mark.parametrize(
    ("losses", "declared"),
    [
        (LOSSES[0], True),
        (LOSSES[0].astype(np.int16), True),
        (LOSSES[0].astype(np.float32), False),
        (LOSSES[0] * 0.5, False),
    ],
    ids=["bool", "int16", "float32 of 0 and 1", "real"],
)
def test_a_rule_gets_the_number_and_whether_losses_are_binary(losses, declared):
    guard = core()
    for number in (1, 2, 3):
        answer = guard.query(losses)
        assert answer.value == pytest.approx(losses.mean(dtype=np.float64))
        assert answer.low == answer.value + 10 * number
        assert answer.high == answer.value + 1000 * declared
        assert answer.half_width == answer.high - answer.low
    *_, told = guard.query_many(losses[np.newaxis])
    assert told is declared


def test_packed_losses_and_predictions_are_declared():
    guard = core()
    assert guard.query(pack_losses(LOSSES[0]).words, packed=True).high == LOSSES[0].mean() + 1000
    assert guard.query_many(pack_losses(LOSSES).words, packed=True)[-1] is True
    values, labels = Labels(LABELS).match(LABELS.astype(float))
    assert guard.query(values, labels).high == 1000
    assert guard.query_many(values[np.newaxis], labels)[-1] is True


def test_the_answers_of_a_block_are_numbered_after_those_before():
    guard = GUARDS["mclt"]()
    guard.query_many(LOSSES[:7])
    guard.rule.interval = Rule().interval
    answers = guard.query_many(LOSSES[:5])
    assert answers.numbers.tolist() == [8, 9, 10, 11, 12]
    assert_array_equal(answers.lows, answers.values + 10 * answers.numbers)
    assert [each.number for each in answers] == [8, 9, 10, 11, 12]


def test_joined_blocks_keep_their_numbers_and_their_kind():
    guard = GUARDS["mclt"]()
    first, _, last = (guard.query_many(LOSSES[:n] * kind) for n, kind in [(3, 1), (4, 1), (2, 1.0)])
    joined = RadaBoundAnswers.joined([first, last])
    assert joined.numbers.tolist() == [1, 2, 3, 8, 9] and joined.n_answered == 9
    assert joined.binary.tolist() == [True] * 3 + [False] * 2


@pytest.mark.parametrize("name", GUARDS)
def test_an_answer_equals_its_copy_and_no_other(name):
    brought = [0, 1] if name == "search" else GUESSES[:2]
    block = query_many(GUARDS[name](), LOSSES[:2], brought)
    first, second = one_by_one(GUARDS[name](), LOSSES[:2], brought)
    assert first != second and first != first.to_dict()
    for one in (first, second, *block):
        again = pickle.loads(pickle.dumps(one))
        assert one == again and hash(one) == hash(again)
