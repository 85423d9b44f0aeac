"""Guess and check against a plain reading of its definition, and what its ledger shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import losses_with_mean

from radabound_fast import GuessAndCheck, HoldoutExhausted
from radabound_fast.bounds import guess_and_check_code, kl_interval


def shown(check):
    """All that an analyst could read off the object."""
    state = (check.spent, check.tolerance, check.failures, check.n_answered, check.halted)
    return *state, check.affordable(), repr(check), check.guarantee


def code_length(steps):
    """ln(1/q_t) after answers with these steps, straight from its definition."""
    t, failures = len(steps) + 1, [abs(step) for step in steps if step]
    b = len(failures)
    weights = math.prod(2 * j * (j + 1) for j in failures)
    return math.log(t * (t + 1) * (b + 1) * (b + 2) * math.comb(t - 1, b) * weights)


def within(value, tau, nats_per_sample, epsilon):
    """Whether every mean within tau of the value has its interval within epsilon of it."""
    lowest, highest = np.clip([value - tau, value + tau], 0.0, 1.0)
    return (
        kl_interval(highest, 1, nats_per_sample)[1] <= value + epsilon
        and kl_interval(lowest, 1, nats_per_sample)[0] >= value - epsilon
    )


def largest_tolerance(value, nats_per_sample, epsilon):
    """By bisection on `within`, to 1e-12."""
    if not within(value, epsilon / 10, nats_per_sample, epsilon):
        return 0.0
    low, high = epsilon / 10, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        if within(value, middle, nats_per_sample, epsilon):
            low = middle
        else:
            high = middle
    return low


def bin_of(mean, guess, tau, flat, nats_per_sample, epsilon):
    """Centre, number and kind of the bin that holds a mean, found by going through them."""
    side = 1 if mean > guess else -1
    if abs(mean - guess) <= tau:
        return guess, 0, "passed"
    eta, edge, step = max(flat, epsilon / 10), tau, 1
    while abs(mean - guess) > edge + 2 * eta:
        edge += 2 * eta
        step += 1
    centre = guess + side * (edge + eta)
    if flat >= epsilon / 10:
        kind = "flat"
    else:
        kind = "entropy" if within(centre, eta, nats_per_sample, epsilon) else "withheld"
    return centre, side * step, kind


def plain_guess_and_check(means, guesses, m, epsilon, delta, low_error):
    """The steps, values and kinds of bins until the halt, as the definition has them."""
    steps, values, kinds = [], [], []
    for mean, guess in zip(means, guesses, strict=True):
        nats = math.log(2 / delta) + code_length(steps)
        flat = epsilon - math.sqrt(nats / (2 * m))
        tau = largest_tolerance(guess, nats / m, epsilon) if low_error else flat
        if tau < epsilon / 10:
            kinds.append("no room")
            break
        value, step, kind = bin_of(mean, guess, tau, flat, nats / m, epsilon)
        kinds.append(kind)
        if kind == "withheld":
            break
        if low_error:  # what the bins are for, whatever their shape
            assert kl_interval(mean, 1, nats / m)[1] <= value + epsilon + 1e-9
            assert kl_interval(mean, 1, nats / m)[0] >= value - epsilon - 1e-9
        steps.append(step)
        values.append(value)
    return steps, values, kinds


# where low_error, a guess in twenty may be an accuracy instead of an error: the last column
SIZES = [(300, 0.4), (40, 0.3), (1000, 0.04), (4000, 0.05), (4000, 0.1), (40_000, 0.03)]
RUNS = [
    (low_error, rate, m, epsilon, mirrored)
    for low_error in (False, True)
    for m, epsilon in SIZES
    for rate in (0.0, 0.02, 0.3, 0.97)
    for mirrored in {False, low_error}
]


def run_of(rate, m, epsilon, mirrored):
    rng = np.random.default_rng([m, round(100 * rate)])
    counts = rng.binomial(m, np.clip(rate + rng.normal(0, epsilon, 40), 0, 1))
    guesses = np.clip(rate + rng.normal(0, epsilon / 2, 40), 0, 1)
    if mirrored:
        guesses[::20] = 1 - guesses[::20]
    return counts, guesses


@pytest.mark.parametrize(("low_error", "rate", "m", "epsilon", "mirrored"), RUNS)
def test_guess_and_check_follows_its_definition_to_the_halt(low_error, rate, m, epsilon, mirrored):
    counts, guesses = run_of(rate, m, epsilon, mirrored)
    check = GuessAndCheck(m, epsilon=epsilon, delta=0.1, low_error=low_error)
    steps, values, _ = plain_guess_and_check(counts / m, guesses, m, epsilon, 0.1, low_error)
    losses = np.arange(m) < counts[:, np.newaxis]
    if not steps and check.affordable(0.0):
        with pytest.raises((ValueError, HoldoutExhausted)):
            check.query(losses[0], guess=guesses[0])
        return
    answers = check.query_many(losses, guesses=guesses)
    assert answers.steps.tolist() == steps
    assert answers.passed.tolist() == [step == 0 for step in steps]
    assert answers.halted == (len(steps) < 40)
    np.testing.assert_allclose(answers.values, values, rtol=0, atol=1e-9)
    assert check.failures == np.count_nonzero(steps)
    assert check.spent == pytest.approx(code_length(steps), rel=1e-12)
    assert set(answers.half_widths) <= {epsilon}


def test_the_runs_hold_every_kind_of_answer_and_end():
    seen = set()
    for low_error, *rest in RUNS:
        counts, guesses = run_of(*rest)
        _, m, epsilon, _ = rest
        kinds = plain_guess_and_check(counts / m, guesses, m, epsilon, 0.1, low_error)[2]
        seen |= {(low_error, kind) for kind in kinds}
    flat = {"passed", "flat", "no room"}
    assert {kind for low_error, kind in seen if not low_error} == flat
    assert {kind for low_error, kind in seen if low_error} == flat | {"entropy", "withheld"}


@pytest.mark.parametrize(("guess", "step"), [(0.2, 1), (0.3, -1), (0.75, -9)])
def test_a_first_guess_on_the_wrong_side_is_answered(guess, step):
    answer = GuessAndCheck(4000, epsilon=0.05, delta=0.1).query(losses_with_mean(0.25), guess=guess)
    tau, flat = largest_tolerance(guess, math.log(80) / 4000, 0.05), 0.05 - 0.0234041306
    assert answer.step == step
    assert abs(answer.value - guess) == pytest.approx(tau + (2 * abs(step) - 1) * flat, abs=1e-9)
    assert abs(answer.value - 0.25) <= flat


def test_an_accuracy_for_an_error_is_answered_on_small_samples():
    check = GuessAndCheck(1000, epsilon=0.04, delta=0.1)
    answer = check.query(losses_with_mean(0.02, 1000), guess=0.98)
    assert not answer.passed and abs(answer.value - 0.02) <= 0.004


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        (0.25, r"guess must be at most 0\.1528 or at least 0\.8472 for a first answer with "
               r"n_samples=1000, epsilon=0\.04 and delta=0\.1, got 0\.25$"),
        (0.8, r"got 0\.8; pass the error rate, not the accuracy$"),
    ],
)  # fmt: skip
def test_a_first_guess_that_would_end_it_spends_nothing(guess, message):
    check = GuessAndCheck(1000, epsilon=0.04, delta=0.1)
    before = shown(check)
    losses = losses_with_mean(0.02, 1000)
    with pytest.raises(ValueError, match=message):
        check.query(losses, guess=guess)
    with pytest.raises(ValueError, match=message):
        check.query_many(losses[np.newaxis], guesses=[guess])
    assert shown(check) == before
    # what it names will do, and one ten-thousandth more will not
    for nearest, beyond in ((0.1528, 0.1529), (0.8472, 0.8471)):
        with pytest.raises(ValueError, match="guess must be"):
            check.query(losses, guess=beyond)
        assert GuessAndCheck(1000, epsilon=0.04, delta=0.1).affordable(nearest) > 0


def test_a_first_guess_is_sent_to_where_there_is_room():
    check = GuessAndCheck(4, epsilon=0.55, delta=0.5)
    with pytest.raises(ValueError, match=r"guess must be from 0\.3329 to 0\.6671 for a first"):
        check.query([0, 0, 0, 0], guess=0.0)
    assert check.affordable(0.3328) == 0 < check.affordable(0.3329)
    assert check.query([0, 1, 0, 1], guess=0.3329).number == 1


def test_after_an_answer_a_guess_without_room_ends_it():
    check = GuessAndCheck(1000, epsilon=0.04, delta=0.1)
    check.query(losses_with_mean(0.02, 1000), guess=0.02)
    with pytest.raises(HoldoutExhausted, match="left around a guess of 0.25"):
        check.query(losses_with_mean(0.02, 1000), guess=0.25)
    with pytest.raises(HoldoutExhausted, match="has halted"):
        check.query(losses_with_mean(0.02, 1000), guess=0.02)


def test_the_code_before_the_first_query_is_of_nothing():
    assert GuessAndCheck(100, epsilon=0.1, delta=0.1).spent == guess_and_check_code(1, 0, 0.0)


def test_a_pass_is_the_guess_and_a_failure_is_not_clipped():
    check = GuessAndCheck(4000, epsilon=0.1, delta=0.1, low_error=False)
    tau = check.tolerance
    assert check.query(losses_with_mean(0.1), guess=0.123456789).value == 0.123456789
    answer = GuessAndCheck(4000, epsilon=0.1, delta=0.1, low_error=False).query(
        np.zeros(4000), guess=1.3 * tau
    )
    assert (answer.passed, answer.step) == (False, -1)
    assert answer.value == 1.3 * tau - 2 * tau < 0


@pytest.mark.parametrize(
    ("n_passes", "width"), [(0, 0.0234041306), (99, 0.0401702162), (999, 0.0467779188)]
)
def test_the_tolerance_after_passes_has_its_known_values(n_passes, width):
    check = GuessAndCheck(4000, epsilon=0.1, delta=0.1, low_error=False)
    check.query_many(np.zeros((n_passes, 4000), bool), guesses=np.zeros(n_passes))
    assert check.tolerance == pytest.approx(0.1 - width, abs=1e-10)
    assert check.failures == 0


def test_the_tolerance_after_five_failures_has_its_known_value():
    check = GuessAndCheck(4000, epsilon=0.1, delta=0.1, low_error=False)
    for number in range(999):
        mean = 0.5 + 2 * check.tolerance if number % 200 == 100 else 0.5
        answer = check.query(losses_with_mean(mean), guess=0.5)
        assert answer.step == (number % 200 == 100)
    assert check.failures == 5
    assert check.tolerance == pytest.approx(0.1 - 0.0845707107, abs=1e-10)


@pytest.mark.parametrize("low_error", [False, True])
@pytest.mark.parametrize(("m", "epsilon"), [(4000, 0.035), (1000, 0.08), (20, 0.1)])
def test_as_many_passes_are_affordable_as_are_then_answered(low_error, m, epsilon):
    check = GuessAndCheck(m, epsilon=epsilon, delta=0.1, low_error=low_error)
    assert check.affordable() == check.affordable(0.5)  # the first guess is taken to be 1/2
    affordable = check.affordable(0.4)
    assert affordable < 5000
    losses = np.broadcast_to(losses_with_mean(0.4, m), (affordable + 2, m))
    mean = losses[0].mean()
    answers = check.query_many(losses[:1], guesses=[mean])
    if affordable:
        assert check.affordable() == check.affordable(mean)
        left = check.affordable()
        answers = check.query_many(losses[: left + 1], guesses=[mean] * (left + 1))
        assert len(answers) == left
    assert answers.halted and answers.passed.all()
    assert check.affordable() == 0


def test_a_holdout_too_small_for_one_answer_says_so_and_halts():
    small = GuessAndCheck(20, epsilon=0.1, delta=0.1)
    assert "too small" in small.guarantee
    assert small.affordable(0.0) == 0
    with pytest.raises(HoldoutExhausted) as caught:
        small.query(np.zeros(20), guess=0.0)
    assert caught.value.n_answered == 0
    assert "too small" not in GuessAndCheck(4000, epsilon=0.1, delta=0.1).guarantee
    # any mean is within .55 of 1/2: no sample is too small for that
    trivial = GuessAndCheck(1, epsilon=0.55, delta=0.1)
    assert "too small" not in trivial.guarantee
    assert trivial.query([1], guess=0.5).value == 0.5


def test_what_is_shown_depends_on_the_answers_alone():
    rng = np.random.default_rng(13)
    one, other = (GuessAndCheck(4000, epsilon=0.1, delta=0.1) for _ in range(2))
    for _ in range(30):
        guess = float(rng.uniform(0.2, 0.4))
        room = 0.9 * one._tolerance(guess, one.spent)
        means = guess + room * rng.uniform(-1, 1, 2)
        assert one.query(losses_with_mean(means[0]), guess=guess) == other.query(
            losses_with_mean(means[1]), guess=guess
        )
    assert shown(one) == shown(other)


def test_a_withheld_failure_leaves_no_trace_of_its_mean():
    seen = []
    for mean in (0.499, 0.501):
        check = GuessAndCheck(1000, epsilon=0.04, delta=0.1)
        with pytest.raises(HoldoutExhausted) as caught:
            check.query(losses_with_mean(mean, 1000), guess=0.02)
        seen.append((shown(check), str(caught.value), caught.value.__dict__))
        assert check.halted and check.n_answered == check.failures == 0
    assert seen[0] == seen[1]
