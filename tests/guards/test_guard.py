"""RadaBound: Algorithm 1 by hand, the halting edge of every bound, and the protocol."""

import math

import numpy as np
import pytest
from support import coins, guard_of, state_of

from radabound_fast import HoldoutExhausted, RadaBound, bounds, plan

PAPER = bounds.PAPER_BOUNDS
ESTIMATORS = ["plain", "half-range"]


def test_algorithm_1_traced_by_hand():
    """m = 8, l = 2, seed 0: the known words end in 6f and 3f, so that the signs are

        sigma_1 = + + + + - + + -        sigma_2 = + + + + + + - -

    f1 errs at samples 0, 4:      S = 0, 2     maxima 0, 2    R = 2/16
    f2 errs at samples 4, 7:      S = -2, 0    maxima 0, 2    R = 2/16
    f3 errs at samples 0 to 3:    S = 4, 4     maxima 4, 4    R = 8/16

    mclt at epsilon .9: .65 sqrt(4 * 2 * 8 / (2 + 4 sqrt(2) + 20)) = .98879 and 1 - Phi of it is
    .1614, under .3 (1 - .3) = .21; at R = 1/2 the excess is negative, delta' is 1/2, over it.
    """
    guard = RadaBound(8, epsilon=0.9, delta=0.3, n_vectors=2, bound="mclt", seed=0)
    assert guard.threshold == pytest.approx(0.21)
    first = guard.query([1, 0, 0, 0, 1, 0, 0, 0])
    assert (first.value, first.complexity, first.number) == (0.25, 0.125, 1)
    assert first.delta_prime == pytest.approx(0.1614, abs=1e-4)
    second = guard.query([0, 0, 0, 0, 1, 0, 0, 1])
    assert (second.value, second.complexity, second.number) == (0.25, 0.125, 2)
    with pytest.raises(HoldoutExhausted) as caught:
        guard.query([1, 1, 1, 1, 0, 0, 0, 0])
    assert (caught.value.n_answered, caught.value.complexity) == (2, 0.5)
    assert (caught.value.delta_prime, caught.value.threshold) == (0.5, guard.threshold)
    assert guard.halted and guard.complexity == 0.5 and guard.n_left() == 0


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("bound", PAPER)
def test_the_integer_edge_agrees_with_the_bound(bound, estimator, two_sided):
    """One below, at and one above the integer budget, asked of the bound's own tail."""
    for n_samples, epsilon in [(4000, 0.05), (1000, 0.3), (200, 0.9)]:
        guard = guard_of(
            n_samples, epsilon=epsilon, bound=bound, estimator=estimator, two_sided=two_sided
        )
        budget, cells = guard._core.budget, guard._core.cells
        assert budget > 0
        assert guard.budget == budget / cells
        for total, allowed in [(budget - 1, True), (budget, True), (budget + 1, False)]:
            assert (guard.rule.delta_prime(total / cells) <= guard.threshold) == allowed
            log_tail = guard.rule.bound.log_tail(epsilon - 2 * (total / cells), n_samples, 32)
            sides = math.log(2) if two_sided else 0.0
            assert (log_tail + sides <= math.log(guard.threshold)) == allowed


def test_a_guard_whose_m_is_too_small_for_epsilon_answers_nothing():
    guard = guard_of(100, epsilon=0.05)
    assert guard.budget < 0 and guard.n_left() == 0
    assert "no query" in guard.guarantee.lower()
    with pytest.raises(HoldoutExhausted) as caught:
        guard.query(np.zeros(100, bool))
    assert caught.value.n_answered == 0 and guard.halted


def test_query_many_returns_the_prefix_and_withholds_the_rest():
    losses = coins(5, 400, 1000)
    guard = guard_of(1000, epsilon=0.09)
    answers = guard.query_many(losses, trace=True)
    assert answers.halted and 0 < len(answers) < 400
    assert len(answers.values) == len(answers.complexities) == len(answers.delta_primes)
    assert answers.n_answered == guard.n_answered == len(answers)
    assert answers.complexity == guard.complexity > answers.complexities[-1]
    assert answers.delta_prime > guard.threshold >= answers.delta_primes.max()
    assert (np.diff(answers.complexities) >= 0).all()


def test_the_budget_survives_the_change_of_units():
    guard = guard_of(1000, epsilon=0.2)
    before = guard.budget
    guard.query(np.full(1000, 0.25))
    assert guard.budget == pytest.approx(before, abs=1e-4)
    assert guard.budget >= before  # finer units come closer to the edge, from below


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("bad_row", [0, 1, 127, 128, 2047, 2048, 4999])
def test_a_bad_row_takes_the_whole_call_back(bad_row, n_threads):
    losses = coins(2, 5000, 100).astype(np.float64)
    losses[bad_row, 7] = np.nan
    guard = guard_of(100, epsilon=0.9)
    guard.query(losses[-1] if bad_row != 4999 else losses[0])
    before = state_of(guard)
    with pytest.raises(ValueError, match=f"nan.*{bad_row}|{bad_row}.*nan"):
        guard.query_many(losses, n_threads=n_threads)
    assert state_of(guard) == before


def test_an_answer_says_what_it_is():
    answer = guard_of(1000, epsilon=0.2).query(coins(1, 1, 1000)[0])
    assert answer.half_width == 0.2
    assert 0 < answer.delta_prime <= 0.09
    assert repr(answer.value) in repr(answer)


def test_two_sided_doubles_delta_prime():
    losses = coins(1, 1, 4000)[0]
    one, two = (guard_of(4000, two_sided=sides).query(losses) for sides in [False, True])
    assert two.delta_prime == pytest.approx(2 * one.delta_prime)


def refusal_of(guard, losses):
    with pytest.raises(HoldoutExhausted) as caught:
        while True:
            guard.query(losses)
    return caught.value.n_answered, str(caught.value)


@pytest.mark.parametrize("bound", bounds.BOUNDS)
def test_a_withheld_first_query_says_what_would_work_alone(bound):
    messages = set()
    for rate in (0.2, 0.4):
        guard = guard_of(100, epsilon=0.05, bound=bound)
        n_queries, message = refusal_of(guard, np.arange(100) < 100 * rate)
        assert n_queries == 0
        assert message.startswith("the holdout cannot answer a first query: at complexity ")
        messages.add(message.partition("withheld")[2])
    assert messages == {f"; {plan(100, 0.05, 0.1).shortfall(bound)}"}


def test_one_answer_is_no_plural():
    rows = np.random.default_rng(0).random((2, 400)) < 0.5
    guard = RadaBound(400, epsilon=0.084, delta=0.1, bound="mclt", seed=1)
    guard.query(rows[0])
    n_queries, message = refusal_of(guard, rows[1])
    assert n_queries == 1 and message.startswith("the holdout is spent after 1 answer: ")
