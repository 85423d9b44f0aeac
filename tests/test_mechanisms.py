"""Mechanisms: the protocol they share, and each against a plain reading of its definition."""

from __future__ import annotations

import copy
import doctest
import importlib
import math
import multiprocessing
import os
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from radabound_fast import Holdout, HoldoutExhausted, pack_losses
from radabound_fast.bounds.kl import kl_minus, kl_plus
from radabound_fast.mechanisms import GuessAndCheck, Ladder, Thresholdout

# 63 samples fill no whole byte of the last word's half, 64 a word exactly, 200 and 4000 neither
SIZES = [1, 63, 64, 200, 4000]

MECHANISMS = {
    "guess and check": lambda m: GuessAndCheck(m, epsilon=0.2, delta=0.1),
    "guess and check, Hoeffding": lambda m: GuessAndCheck(
        m, epsilon=0.2, delta=0.1, low_error=False
    ),
    "ladder": lambda m: Ladder(m, 0.01, delta=0.1),
    "ladder of 15": lambda m: Ladder(m, 0.01, delta=0.1, max_queries=15),
    "parameter-free ladder": lambda m: Ladder(m, delta=0.1),
    "thresholdout": lambda m: Thresholdout(m, threshold=0.1, noise=0.02, budget=5, seed=3),
}


@pytest.fixture(params=MECHANISMS)
def build(request):
    return MECHANISMS[request.param]


def losses_with_mean(mean, n_samples=4000):
    return np.arange(n_samples) < round(mean * n_samples)


def falling_losses(seed, n_samples, n_rows=40):
    """Random 0-1 rows whose means fall from about .9 to .1, and a guess for each."""
    rng = np.random.default_rng(seed)
    rates = np.linspace(0.9, 0.1, n_rows)
    losses = rng.random((n_rows, n_samples)) < rates[:, np.newaxis]
    return losses, np.clip(rates + rng.normal(0, 0.05, n_rows), 0, 1)


def ask_one_by_one(mechanism, losses, guesses):
    answers = []
    for row, guess in zip(losses, guesses, strict=True):
        try:
            answers.append(mechanism.query(row, guess=guess))
        except HoldoutExhausted:
            break
    return answers


def visible(mechanism):
    """Everything a mechanism holds, noise included, but for its lock and its sign store."""
    state = {key: value for key, value in vars(mechanism).items() if key not in UNCOMPARED}
    if isinstance(mechanism, Thresholdout):
        state["_random"] = mechanism._random.bit_generator.state
    return repr(state)


UNCOMPARED = {"_lock", "_signs"}


# ---- the protocol ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", SIZES)
def test_a_block_is_answered_bit_for_bit_as_its_rows_one_by_one(build, n_samples):
    losses, guesses = falling_losses(n_samples, n_samples)
    single, block = build(n_samples), build(n_samples)
    one_by_one = ask_one_by_one(single, losses, guesses)
    answers = block.query_many(losses, guesses=guesses)
    assert answers.values.tolist() == [a.value for a in one_by_one]
    assert_array_equal(answers.half_widths, [a.half_width for a in one_by_one])
    assert answers.n_answered == len(one_by_one) == answers.n_queries
    assert answers.halted == single.halted == block.halted
    assert visible(single) == visible(block)
    if isinstance(single, GuessAndCheck):
        assert answers.steps.tolist() == [a.step for a in one_by_one]
    if isinstance(single, Ladder):
        assert answers.updated.tolist() == [a.updated for a in one_by_one]
    else:
        assert answers.passed.tolist() == [a.passed for a in one_by_one]


def test_splitting_a_block_changes_nothing(build):
    losses, guesses = falling_losses(1, 200)
    whole = build(200).query_many(losses, guesses=guesses)
    mechanism, values = build(200), []
    for part in (slice(0, 1), slice(1, 1), slice(1, 17), slice(17, 40)):
        if not mechanism.halted:
            values += mechanism.query_many(losses[part], guesses=guesses[part]).values.tolist()
    assert values == whole.values.tolist()


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("unit", [np.uint64, np.uint8])
def test_packed_losses_are_answered_as_the_losses_themselves(build, n_samples, unit):
    losses, guesses = falling_losses(n_samples, n_samples)
    words = pack_losses(losses)
    if unit is np.uint8:
        words = words.view(np.uint8)[:, : -(-n_samples // 8)]
    plain, packed, packed_block = build(n_samples), build(n_samples), build(n_samples)
    expected = ask_one_by_one(plain, losses, guesses)
    answers = []
    for row, guess in zip(words, guesses, strict=True):
        try:
            answers.append(packed.query_packed(row, guess=guess))
        except HoldoutExhausted:
            break
    assert repr(answers) == repr(expected)
    block = packed_block.query_many_packed(words, guesses=guesses)
    assert block.values.tolist() == [a.value for a in expected]
    assert visible(plain) == visible(packed) == visible(packed_block)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, ">f8", object])
def test_zeros_and_ones_mean_the_same_in_every_dtype(build, dtype):
    losses, guesses = falling_losses(5, 200)
    expected = build(200).query_many(losses, guesses=guesses)
    answers = build(200).query_many(losses.astype(dtype), guesses=guesses)
    assert answers.values.tolist() == expected.values.tolist()


def test_strides_do_not_matter(build):
    losses, guesses = falling_losses(6, 200)
    expected = build(200).query_many(losses, guesses=guesses)
    for same in (np.asfortranarray(losses), losses[:, ::-1].copy()[:, ::-1]):
        assert build(200).query_many(same, guesses=guesses).values.tolist() == (
            expected.values.tolist()
        )


def test_an_empty_block_answers_nothing_and_changes_nothing(build):
    mechanism = build(200)
    before = visible(mechanism)
    answers = mechanism.query_many(np.zeros((0, 200)), guesses=[])
    assert (answers.n_answered, answers.halted, answers.values.shape) == (0, False, (0,))
    assert visible(mechanism) == before


def test_a_block_is_read_where_it_lies():
    tracemalloc = pytest.importorskip("tracemalloc")
    losses = np.zeros((500, 40_000), dtype=bool)
    losses[::2, ::3] = True
    ladder = Ladder(40_000, delta=0.1)
    ladder.query(losses[0])
    tracemalloc.start()
    try:
        ladder.query_many(losses)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < losses.nbytes / 10


BAD_LOSSES = [
    (np.full(200, 2), ValueError),
    (np.full(200, -0.5), ValueError),
    (np.full(200, math.nan), ValueError),
    (np.zeros(199), ValueError),
    (np.zeros((200, 1)), ValueError),
    (np.zeros((0, 199)), ValueError),
    (np.zeros(200, dtype=complex), TypeError),
    (["a"] * 200, TypeError),
]


@pytest.mark.parametrize(("losses", "error"), BAD_LOSSES)
def test_bad_losses_are_an_error_and_change_nothing(build, losses, error):
    mechanism = build(200)
    mechanism.query(losses_with_mean(0.5, 200), guess=0.5)
    before = visible(mechanism)
    with pytest.raises(error, match="losses"):
        mechanism.query(losses, guess=0.5)
    if np.ndim(losses) == 1:
        good = np.zeros(np.shape(losses), dtype=np.asarray(losses).dtype)
        with pytest.raises(error, match="losses"):
            mechanism.query_many([good, losses], guesses=[0.5, 0.5])
    assert visible(mechanism) == before


def test_packed_rows_with_bits_past_the_last_sample_are_an_error(build):
    mechanism = build(200)
    before = visible(mechanism)
    words = np.zeros(4, dtype=np.uint64)
    words[3] = 1 << 8
    with pytest.raises(ValueError, match="words|losses|bits"):
        mechanism.query_packed(words, guess=0.5)
    with pytest.raises(ValueError, match="words|losses|bits"):
        mechanism.query_many_packed(np.stack([np.zeros_like(words), words]), guesses=[0.5, 0.5])
    assert visible(mechanism) == before


@pytest.mark.parametrize("guess", [None, math.nan, math.inf, -0.01, 1.01])
@pytest.mark.parametrize("name", ["guess and check", "thresholdout"])
def test_a_missing_or_impossible_guess_is_a_value_error(name, guess):
    mechanism = MECHANISMS[name](200)
    before = visible(mechanism)
    losses = losses_with_mean(0.5, 200)
    with pytest.raises(ValueError, match="guess must be"):
        mechanism.query(losses, guess=guess)
    with pytest.raises(ValueError, match="guesses must be"):
        guesses = None if guess is None else [0.5, guess]
        mechanism.query_many([losses, losses], guesses=guesses)
    assert visible(mechanism) == before


@pytest.mark.parametrize("guess", ["0.5", True, 0.5j, [0.5]])
def test_a_guess_that_is_no_number_is_a_type_error(guess):
    with pytest.raises(TypeError, match="guess must be"):
        GuessAndCheck(200, epsilon=0.2, delta=0.1).query(np.zeros(200), guess=guess)


@pytest.mark.parametrize(
    ("guesses", "error"),
    [
        ([0.5], ValueError),
        ([0.5, 0.5, 0.5], ValueError),
        (0.5, ValueError),
        ([[0.5, 0.5]], ValueError),
        ([0.5, [0.5]], ValueError),
        (np.ma.masked_greater([0.5, 0.9], 0.8), ValueError),
        (["0.5", "0.5"], TypeError),
        ([True, True], TypeError),
    ],
)
def test_guesses_are_numbers_one_per_row(guesses, error):
    check = GuessAndCheck(200, epsilon=0.2, delta=0.1)
    with pytest.raises(error, match="guesses must"):
        check.query_many(np.zeros((2, 200)), guesses=guesses)
    assert check.n_queries == 0


def test_a_holdout_answers_predictions_through_any_mechanism(build):
    rng = np.random.default_rng(2)
    losses, guesses = falling_losses(2, 200)
    labels = rng.integers(0, 2, 200)
    expected = build(200).query_many(losses, guesses=guesses)
    holdout = Holdout(labels, build(200))
    answers = holdout.query_many(labels ^ losses, guesses=guesses)
    assert answers.values.tolist() == expected.values.tolist()
    assert (holdout.n_queries, holdout.halted) == (expected.n_queries, expected.halted)
    first = Holdout(labels, build(200)).query(labels ^ losses[0], guess=guesses[0])
    assert first.value == expected.values[0]


@pytest.mark.parametrize("module", ["guess_and_check", "ladder", "thresholdout"])
def test_the_examples_in_the_docstrings_are_true(module):
    found = importlib.import_module(f"radabound_fast.mechanisms.{module}")
    failed, tried = doctest.testmod(found)
    assert failed == 0 < tried


def test_a_ladder_ignores_guesses():
    ladder = Ladder(200, 0.01, delta=0.1)
    losses = losses_with_mean(0.5, 200)
    assert ladder.query(losses, guess="anything").value == 0.5
    assert ladder.query_many([losses], guesses=object()).values.tolist() == [0.5]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: GuessAndCheck(0, epsilon=0.1, delta=0.1), ValueError, "n_samples"),
        (lambda: GuessAndCheck(1.5, epsilon=0.1, delta=0.1), TypeError, "n_samples"),
        (lambda: GuessAndCheck(100, epsilon=0, delta=0.1), ValueError, "epsilon"),
        (lambda: GuessAndCheck(100, epsilon=1, delta=0.1), ValueError, "epsilon"),
        (lambda: GuessAndCheck(100, epsilon=0.1, delta=math.nan), ValueError, "delta"),
        (lambda: GuessAndCheck(100, epsilon=0.1, delta="0.1"), TypeError, "delta"),
        (lambda: GuessAndCheck(100, epsilon=0.1, delta=0.1, low_error=1), TypeError, "low_error"),
        (lambda: Ladder(100, 0.0, delta=0.1), ValueError, "step"),
        (lambda: Ladder(100, 1.0, delta=0.1), ValueError, "step"),
        (lambda: Ladder(100, delta=1.5), ValueError, "delta must be in"),
        (lambda: Ladder(100, 0.1, delta=0.1, max_queries=0), ValueError, "max_queries"),
        (lambda: Ladder(100, 0.1, delta=0.1, max_queries=2.0), TypeError, "max_queries"),
        (lambda: thresholdout(threshold=0.0), ValueError, "threshold"),
        (lambda: thresholdout(noise=-0.1), ValueError, "noise"),
        (lambda: thresholdout(noise=math.inf), ValueError, "noise"),
        (lambda: thresholdout(budget=0), ValueError, "budget"),
        (lambda: thresholdout(seed=-1), ValueError, "seed"),
        (lambda: thresholdout(seed=1.0), TypeError, "seed"),
    ],
)
def test_a_bad_parameter_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def thresholdout(**changes):
    return Thresholdout(100, **{"threshold": 0.1, "noise": 0.01, "budget": 5} | changes)


def exhausted(build, n_samples=200):
    """A mechanism that has halted, and the exception that said so; None if this one never does."""
    mechanism = build(n_samples)
    losses, _ = falling_losses(0, n_samples)
    for _ in range(20):
        for row in losses:
            try:
                mechanism.query(row, guess=0.99)
            except HoldoutExhausted as error:
                return mechanism, error
    return None


def test_a_halted_mechanism_refuses_everything_and_forgets_nothing(build):
    outcome = exhausted(build)
    if outcome is None:
        assert isinstance(build(200), Ladder) and build(200).max_queries is None
        return
    mechanism, error = outcome
    assert mechanism.halted
    assert error.n_queries == mechanism.n_queries
    assert (error.complexity, error.delta_prime, error.threshold) == (None, None, None)
    before = visible(mechanism)
    losses = losses_with_mean(0.5, 200)
    for ask in (
        lambda: mechanism.query(losses, guess=0.5),
        lambda: mechanism.query_many([losses], guesses=[0.5]),
        lambda: mechanism.query_packed(pack_losses(losses), guess=0.5),
        lambda: mechanism.query_many_packed(pack_losses(losses[np.newaxis]), guesses=[0.5]),
    ):
        with pytest.raises(HoldoutExhausted, match="halted") as caught:
            ask()
        assert caught.value.n_queries == mechanism.n_queries
    with pytest.raises(ValueError, match="losses"):
        mechanism.query(losses + 1, guess=0.5)
    assert visible(mechanism) == before


def test_no_mechanism_can_be_copied_or_pickled(build):
    mechanism = build(200)
    duplicate = [copy.copy, copy.deepcopy]
    duplicate += [lambda it, p=p: pickle.dumps(it, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    for attempt in duplicate:
        with pytest.raises(TypeError, match="cannot be copied or pickled.*pack_losses"):
            attempt(mechanism)
    assert mechanism.__sklearn_clone__() is mechanism


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_goes_on(build):
    mechanism = build(200)
    losses = losses_with_mean(0.5, 200)
    mechanism.query(losses, guess=0.5)
    outcomes = multiprocessing.get_context("fork").SimpleQueue()

    def child():
        try:
            mechanism.query(losses, guess=0.5)
        except RuntimeError as error:
            outcomes.put((type(error).__name__, str(error)))

    process = multiprocessing.get_context("fork").Process(target=child)
    # a fork may catch the lock held: the child must refuse before it waits for it
    with mechanism._lock:
        process.start()
        name, message = outcomes.get()
        process.join()
    assert name == "RuntimeError"
    assert "fork" in message
    assert mechanism.query(losses, guess=0.5).n_queries == 2


def test_threads_share_one_count_and_one_halt(build):
    mechanism = build(200)
    losses, guesses = falling_losses(8, 200)
    numbers, refused = [], []

    def work():
        for row, guess in zip(losses, guesses, strict=True):
            try:
                numbers.append(mechanism.query(row, guess=guess).n_queries)
            except HoldoutExhausted as error:
                refused.append(error.n_queries)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, mechanism.n_queries + 1))
    assert len(numbers) + len(refused) == 8 * len(losses)
    assert set(refused) <= {mechanism.n_queries}
    assert bool(refused) == mechanism.halted


def test_each_guarantee_says_what_is_proved_and_for_whom():
    proved = ["proved", "adaptive", "two-sided", "finite-sample"]
    for mechanism in (
        GuessAndCheck(4000, epsilon=0.05, delta=0.1),
        GuessAndCheck(4000, epsilon=0.05, delta=0.1, low_error=False),
        Ladder(4000, 0.01, delta=0.1),
        Ladder(4000, 0.01, delta=0.1, max_queries=100),
    ):
        said = mechanism.guarantee.lower()
        assert all(word in said for word in proved)
        assert "heuristic" not in said and "0.9" in said
    assert "heuristic" in Ladder(4000, delta=0.1).guarantee.lower()
    weak = Thresholdout(4000, threshold=0.04, noise=0.01, budget=100).guarantee
    assert "heuristic" in weak.lower() and "no valid half-width" in weak
    large = Thresholdout(10**12, threshold=0.04, noise=1e-5, budget=100).guarantee
    assert "no valid half-width" not in large


def test_a_repr_shows_parameters_and_counts_but_no_losses():
    check = GuessAndCheck(200, epsilon=0.2, delta=0.1)
    check.query(losses_with_mean(0.5, 200), guess=0.5)
    assert repr(check) == (
        "GuessAndCheck(n_samples=200, epsilon=0.2, delta=0.1, low_error=True, n_queries=1, "
        "halted=False)"
    )
    hidden = thresholdout(seed=1)
    assert str(hidden._noisy_threshold) not in repr(hidden)


# ---- real-valued losses ----------------------------------------------------------------------


def test_real_valued_losses_are_rounded_to_2_to_the_minus_24_and_averaged_exactly():
    rng = np.random.default_rng(11)
    losses = rng.random(200)
    losses[:4] = [0.0, 1.0, 1.5 * 2**-24, 2.5 * 2**-24]
    units = sum(round(Fraction(float(loss)) * 2**24) for loss in losses)  # halves go to even
    ladder = Ladder(200, delta=0.1)
    assert ladder.query(losses).value == round(units / 2**24) / 200
    # of one loss, a mean says all
    one = Thresholdout(1, threshold=0.5, noise=1e-300, budget=1, seed=0)
    loss = 1 - 3 * 2**-25
    assert one.query([loss], guess=0.0).value == round(Fraction(loss) * 2**24) / 2**24


def test_a_parameter_free_ladder_compares_real_valued_losses_with_bits():
    rng = np.random.default_rng(12)
    bits = rng.random(40_000) < 0.5
    real = np.clip(bits - rng.random(40_000) / 4, 0, 1)
    for first, second in ((bits, real), (real + 0.0, real / 2), (np.ones(40_000), bits)):
        ladder = Ladder(40_000, delta=0.1)
        best = ladder.query(first).value
        difference = np.rint(second * 2.0**24) / 2**24 - np.rint(first * 2.0**24) / 2**24
        margin = math.sqrt(np.mean((difference - difference.mean()) ** 2) / 40_000)
        mean = np.mean(np.rint(second * 2.0**24)) / 2**24
        assert abs(best - mean - margin) > 1e-9  # else rounding decides
        assert ladder.query(second).updated == (mean < best - margin)


# ---- guess and check -------------------------------------------------------------------------


def code_length(steps):
    """ln(1/q_t) after answers with these steps, straight from its definition."""
    t, failures = len(steps) + 1, [abs(step) for step in steps if step]
    b = len(failures)
    weights = math.prod(2 * j * (j + 1) for j in failures)
    return math.log(t * (t + 1) * (b + 1) * (b + 2) * math.comb(t - 1, b) * weights)


def within(value, tau, nats_per_sample, epsilon):
    """Whether every mean within tau of the value has its interval within epsilon of it."""
    highest, lowest = min(value + tau, 1.0), max(value - tau, 0.0)
    return (
        kl_plus(highest, nats_per_sample) <= value + epsilon
        and kl_minus(lowest, nats_per_sample) >= value - epsilon
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


def plain_guess_and_check(means, guesses, m, epsilon, delta, low_error):
    """The steps and values until the halt, as the definition has them."""
    steps, values = [], []
    for mean, guess in zip(means, guesses, strict=True):
        nats = math.log(2 / delta) + code_length(steps)
        if low_error:
            tau = largest_tolerance(guess, nats / m, epsilon)
        else:
            tau = epsilon - math.sqrt(nats / (2 * m))
        if tau < epsilon / 10:
            break
        step = round((mean - guess) / (2 * tau))
        value = guess + 2 * tau * step
        if low_error and step and not within(value, tau - 1e-11, nats / m, epsilon):
            break
        steps.append(step)
        values.append(value)
    return steps, values


@pytest.mark.parametrize("low_error", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 0.97])
@pytest.mark.parametrize(("m", "epsilon"), [(300, 0.4), (4000, 0.05), (4000, 0.1), (40_000, 0.03)])
def test_guess_and_check_follows_its_definition_to_the_halt(low_error, rate, m, epsilon):
    rng = np.random.default_rng([m, round(100 * rate)])
    counts = rng.binomial(m, np.clip(rate + rng.normal(0, epsilon, 60), 0, 1))
    guesses = np.clip(rate + rng.normal(0, epsilon / 2, 60), 0, 1)
    check = GuessAndCheck(m, epsilon=epsilon, delta=0.1, low_error=low_error)
    steps, values = plain_guess_and_check(counts / m, guesses, m, epsilon, 0.1, low_error)
    answers = check.query_many(np.arange(m) < counts[:, np.newaxis], guesses=guesses)
    assert answers.steps.tolist() == steps
    assert answers.passed.tolist() == [step == 0 for step in steps]
    assert answers.halted == (len(steps) < 60)
    np.testing.assert_allclose(answers.values, values, rtol=0, atol=1e-9)
    assert check.failures == np.count_nonzero(steps)
    assert check.spent == pytest.approx(code_length(steps), rel=1e-12)
    assert set(answers.half_widths) <= {epsilon}


def test_the_value_of_a_pass_is_the_guess_itself_and_of_a_failure_is_not_clipped():
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


def test_the_tolerance_after_five_failures_of_one_step_has_its_known_value():
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
        assert answers.n_answered == left
    assert answers.halted and answers.passed.all()
    assert check.affordable() == 0


def test_a_holdout_too_small_for_one_answer_says_so_and_halts_at_the_first():
    small = GuessAndCheck(20, epsilon=0.1, delta=0.1)
    assert "too small" in small.guarantee
    assert small.affordable(0.0) == 0
    with pytest.raises(HoldoutExhausted) as caught:
        small.query(np.zeros(20), guess=0.0)
    assert caught.value.n_queries == 0
    assert "too small" not in GuessAndCheck(4000, epsilon=0.1, delta=0.1).guarantee
    # any mean is within .55 of 1/2: no sample is too small for that
    trivial = GuessAndCheck(1, epsilon=0.55, delta=0.1)
    assert "too small" not in trivial.guarantee
    assert trivial.query([1], guess=0.5).value == 0.5


def test_what_is_shown_depends_on_the_answers_and_not_on_the_losses():
    rng = np.random.default_rng(13)
    one, other = (GuessAndCheck(4000, epsilon=0.1, delta=0.1) for _ in range(2))
    for _ in range(30):
        guess = float(rng.uniform(0.2, 0.4))
        room = 0.9 * one._tolerance(guess, one._spent)
        means = guess + room * rng.uniform(-1, 1, 2)
        assert one.query(losses_with_mean(means[0]), guess=guess) == other.query(
            losses_with_mean(means[1]), guess=guess
        )
    assert visible(one) == visible(other)


def test_a_withheld_failure_leaves_no_trace_of_its_mean():
    seen = []
    for mean in (0.4991, 0.5009):
        check = GuessAndCheck(4000, epsilon=0.05, delta=0.1)
        with pytest.raises(HoldoutExhausted) as caught:
            check.query(losses_with_mean(mean), guess=0.05)
        seen.append((visible(check), str(caught.value), caught.value.__dict__))
        assert check.halted and check.n_queries == check.failures == 0
    assert seen[0] == seen[1]


# ---- the Ladder ------------------------------------------------------------------------------


def test_a_ladder_repeats_the_best_until_a_step_is_gained():
    ladder = Ladder(4000, 0.05, delta=0.1)
    means = [0.5, 0.46, 0.451, 0.449, 0.3975, 0.3725, 0.9, 0.33]
    answers = ladder.query_many([losses_with_mean(mean) for mean in means])
    grid = [10, 10, 10, 9, 8, 8, 8, 7]  # .449 -> .45, .3975 -> .40, .33 -> .35
    assert answers.values.tolist() == [0.05 * multiple for multiple in grid]
    assert answers.updated.tolist() == [True, False, False, True, True, False, False, True]
    assert ladder.n_updates == 4
    assert not ladder.halted


@pytest.mark.parametrize("step", [0.3, 0.05, 0.003])
def test_the_ledger_of_a_ladder_is_its_code_and_never_shrinks(step):
    levels = math.floor(1 / step + 0.5) + 1
    rng = np.random.default_rng(14)
    # a long fall, which uses up nearly all levels, then chance
    means = [max(0.0, 1 - 1.01 * step * i) for i in range(levels)] + rng.random(50).tolist()
    ladder = Ladder(4000, step, delta=0.1)
    answers = ladder.query_many([losses_with_mean(mean) for mean in means])
    widths, updates = [], 0
    for t, updated in enumerate(answers.updated.tolist(), start=1):
        count = (
            2
            if t == 1
            else (
                t
                * (t + 1)
                * updates
                * (updates + 1)
                * math.comb(t - 2, updates - 1)
                * math.comb(levels, updates)
            )
        )
        widths.append(step + math.sqrt((math.log(2 / 0.1) + math.log(count)) / 8000))
        updates += updated
    np.testing.assert_allclose(answers.half_widths, np.maximum.accumulate(widths), rtol=1e-12)
    if step == 0.05:
        assert np.any(np.diff(widths) < 0)  # else the maximum would be put to no test


@pytest.mark.parametrize(("step", "k"), [(0.3, 1), (0.05, 10), (0.003, 1000)])
def test_a_ladder_of_k_queries_counts_its_transcripts_and_refuses_the_next(step, k):
    levels = math.floor(1 / step + 0.5) + 1
    transcripts = math.comb(k + levels - 1, levels)
    half_width = step + math.sqrt((math.log(2 / 0.1) + math.log(transcripts)) / 8000)
    ladder = Ladder(4000, step, delta=0.1, max_queries=k)
    answers = ladder.query_many(np.ones((k, 4000), dtype=bool))
    np.testing.assert_allclose(answers.half_widths, half_width, rtol=1e-12)
    assert (answers.n_answered, answers.halted) == (k, False)
    with pytest.raises(HoldoutExhausted, match="max_queries"):
        ladder.query(np.ones(4000))
    assert ladder.halted


@pytest.mark.parametrize("n_samples", SIZES)
def test_the_parameter_free_ladder_follows_its_definition(n_samples):
    losses, _ = falling_losses(15, n_samples, n_rows=60)
    answers = Ladder(n_samples, delta=0.1).query_many(losses)
    best, best_losses, expected = math.inf, None, []
    for row in losses:
        mean = Fraction(int(row.sum()), n_samples)
        if best_losses is None:
            improves = True
        else:
            # mean < best - sd / sqrt(m), squared, in integers
            difference = [int(x) - int(y) for x, y in zip(row, best_losses, strict=True)]
            squares = Fraction(sum(d * d for d in difference), n_samples)
            variance = squares - Fraction(sum(difference), n_samples) ** 2
            improves = best > mean and (best - mean) ** 2 > variance / n_samples
        if improves:
            best, best_losses = mean, row
        expected.append(float(best))
    assert answers.values.tolist() == expected
    assert np.isnan(answers.half_widths).all()


# ---- Thresholdout ----------------------------------------------------------------------------


def test_thresholdout_answers_the_guess_until_the_holdout_disagrees_and_then_spends():
    holdout = Thresholdout(4000, threshold=0.1, noise=1e-6, budget=2, seed=0)
    losses = losses_with_mean(0.5)
    for guess, passed in ((0.45, True), (0.55, True), (0.3, False), (0.41, True), (0.7, False)):
        answer = holdout.query(losses, guess=guess)
        assert answer.passed == passed
        assert answer.value == guess if passed else abs(answer.value - 0.5) < 1e-4
        assert math.isnan(answer.half_width)
    assert holdout.spent == 2
    assert not holdout.halted
    with pytest.raises(HoldoutExhausted, match="budget of 2"):
        holdout.query(losses, guess=0.5)
    assert holdout.halted and holdout.spent == 2 and holdout.n_queries == 5


def test_thresholdout_repeats_itself_for_a_seed_and_not_without():
    losses, guesses = falling_losses(16, 200)

    def values(seed):
        holdout = Thresholdout(200, threshold=0.05, noise=0.02, budget=40, seed=seed)
        return holdout.query_many(losses, guesses=guesses).values.tolist()

    assert values(7) == values(7)
    assert values(7) != values(8)
    assert values(None) != values(None)


def test_the_noise_of_thresholdout_has_its_three_scales():
    """4000 fresh objects, one query each; a correct program fails with chance below 3e-6."""
    n, sigma, mean, guess, threshold = 4000, 0.05, 0.5, 0.3, 0.2
    losses = losses_with_mean(mean, 100)
    answers = [
        Thresholdout(100, threshold=threshold, noise=sigma, budget=1, seed=seed).query(
            losses, guess=guess
        )
        for seed in range(n)
    ]
    noise = np.array([a.value for a in answers if not a.passed]) - mean
    assert stats.kstest(noise, stats.laplace(scale=sigma).cdf).pvalue > 1e-6
    # |h - a| = T, so half of the queries pass; what distinguishes scales is a gap of 2 sigma
    assert abs(len(noise) - n / 2) < stats.norm.isf(5e-7) * math.sqrt(n / 4)
    spent = sum(
        not Thresholdout(100, threshold=threshold + 4 * sigma, noise=sigma, budget=1, seed=seed)
        .query(losses, guess=guess)
        .passed
        for seed in range(n, 2 * n)
    )
    # P(Lap(a) + Lap(b) < -x) = (a^2 exp(-x/a) - b^2 exp(-x/b)) / (2 (a^2 - b^2)), a = 4, b = 2
    chance = (16 * math.exp(-1) - 4 * math.exp(-2)) / 24
    assert abs(spent - n * chance) < stats.norm.isf(5e-7) * math.sqrt(n * chance * (1 - chance))
