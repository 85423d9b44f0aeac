"""The protocol that guards which halt share; what each of them answers has tests of its own."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from support import at_once, falling_losses, losses_with_mean, query, query_many, state_of

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    Losses,
    PackedLosses,
    RadaBound,
    pack_losses,
)
from radabound_fast._kernels.rows import sums_of_rows
from radabound_fast.experiments.thresholdout import Thresholdout


def weighted(judged):
    own = {"sample_weight": 1 + np.arange(200) % 3}
    return Losses(judged, **own) if judged == 200 else Holdout(judged, **own)


GUARDS = {
    "weights": lambda m: FixedSequence(weighted(m), epsilon=0.18, delta=0.1, seed=1),
    "RadaBound": lambda m: RadaBound(m, epsilon=0.2, delta=0.1, bound="mclt", seed=1),
    "signs": lambda m: FixedSequence(m, epsilon=0.14, delta=0.1, seed=1),
    "fixed sequence": lambda m: FixedSequence(m, epsilon=0.17, delta=0.1, n_vectors=0),
    "guess and check": lambda m: GuessAndCheck(m, epsilon=0.2, delta=0.1),
    "guess and check, Hoeffding": lambda m: GuessAndCheck(
        m, epsilon=0.2, delta=0.1, low_error=False
    ),
    "ladder": lambda m: Ladder(m, 0.01, delta=0.1),
    "ladder of 15": lambda m: Ladder(m, 0.01, delta=0.1, max_queries=15),
    "thresholdout": lambda m: Thresholdout(m, threshold=0.1, noise=0.02, budget=5, seed=3),
}


@pytest.fixture(params=GUARDS)
def build(request):
    return GUARDS[request.param]


def visible(guard):
    """Everything a guard holds, noise included, but for its lock."""
    fixed = {key: value for key, value in vars(guard).items() if key != "_progress"}
    return repr((fixed, state_of(guard)))


@pytest.mark.parametrize("n_samples", [1, 64, 200])
@pytest.mark.parametrize("n_rows", [1, 2, 40, 700])
def test_sums_of_a_block_are_in_one_unit(kernel, n_rows, n_samples):
    bits = np.random.default_rng(n_rows).integers(0, 2, (n_rows, n_samples)).astype(float)
    for places in ([], [0], [-1], [n_rows // 2], [0, -1], slice(0, None, 150), slice(None)):
        losses = bits.copy()
        losses[places, 0] = 0.25
        sums, shift = sums_of_rows(losses, n_samples, packed=False)
        assert shift == (0 if places == [] else 24)
        assert_array_equal(sums, losses.sum(axis=1) * 2**shift)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float32, ">f8", object])
def test_zeros_and_ones_mean_the_same_in_every_dtype(build, dtype):
    losses, guesses = falling_losses(5, 200)
    expected = query_many(build(200), losses, guesses)
    answers = query_many(build(200), losses.astype(dtype), guesses)
    assert 0 < len(answers) <= len(expected)  # floats of 0 and 1 may halt a guard sooner
    assert answers.values.tolist() == expected.values[: len(answers)].tolist()


def test_an_empty_block_answers_nothing_and_changes_nothing(build):
    guard = build(200)
    before = visible(guard)
    for rows in (np.zeros((0, 200)), pack_losses(np.zeros((0, 200)))):
        answers = query_many(guard, rows, [])
        assert (answers.n_answered, answers.halted, answers.values.shape) == (0, False, (0,))
    assert visible(guard) == before


def test_a_block_is_read_where_it_lies():
    tracemalloc = pytest.importorskip("tracemalloc")
    losses = np.zeros((500, 40_000), dtype=bool)
    losses[::2, ::3] = True
    ladder = Ladder(40_000, 0.01, delta=0.1)
    ladder.query(losses[0])
    tracemalloc.start()
    try:
        ladder.query_many(losses)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < losses.nbytes / 10


BAD_LOSSES = [
    (np.full(200, 2), ValueError, "2"),
    (np.full(200, -0.5), ValueError, "-0.5"),
    (np.full(200, 1.5), ValueError, "1.5"),
    (np.full(200, math.nan), ValueError, "nan"),
    (np.full(200, math.inf), ValueError, "inf"),
    (np.zeros(199), ValueError, "199"),
    (np.zeros((200, 1)), ValueError, "200, 1"),
    (np.zeros((0, 199)), ValueError, "0, 199"),
    ([], ValueError, ""),
    (np.ma.masked_equal(np.arange(200) % 2, 1), ValueError, "mask"),
    (np.zeros(200, complex), TypeError, "complex"),
    (np.zeros(200, "M8[s]"), TypeError, "datetime"),
    (["a"] * 200, TypeError, ""),
    (None, ValueError, ""),
]


@pytest.mark.parametrize(("losses", "error", "message"), BAD_LOSSES)
def test_bad_losses_are_an_error_and_change_nothing(build, losses, error, message):
    guard = build(200)
    query(guard, losses_with_mean(0.5, 200), 0.5)
    before = visible(guard)
    with pytest.raises(error, match="losses") as caught:
        query(guard, losses, 0.5)
    assert message in str(caught.value)
    if np.ndim(losses) == 1:
        good = np.zeros(np.shape(losses), dtype=np.asarray(losses).dtype)
        with pytest.raises(error, match="losses"):
            query_many(guard, [good, losses], [0.5, 0.5])
    assert visible(guard) == before


def test_packed_rows_of_other_samples_are_an_error(build):
    guard = build(200)
    before = visible(guard)
    words = np.zeros(4, dtype=np.uint64)
    words[3] = 1 << 8
    both = np.stack([np.zeros_like(words), words])
    for ask, packed, guess in ((query, words, 0.5), (query_many, both, [0.5, 0.5])):
        with pytest.raises(ValueError, match="words must have no bit set past n_samples = 200"):
            ask(guard, PackedLosses(packed, 200), guess)
        for other in (199, 201):
            with pytest.raises(ValueError, match="losses must have length 200, got PackedLosses"):
                ask(guard, PackedLosses(np.zeros_like(packed), other), guess)
    assert visible(guard) == before


@pytest.mark.parametrize("guess", [None, math.nan, math.inf, -0.01, 1.01])
@pytest.mark.parametrize("name", ["guess and check", "thresholdout"])
def test_a_missing_or_impossible_guess_is_a_value_error(name, guess):
    guard = GUARDS[name](200)
    before = visible(guard)
    losses = losses_with_mean(0.5, 200)
    with pytest.raises(ValueError, match="guess must be"):
        query(guard, losses, guess)
    with pytest.raises(ValueError, match="guesses must be"):
        guesses = None if guess is None else [0.5, guess]
        query_many(guard, [losses, losses], guesses)
    assert visible(guard) == before


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
    assert check.n_answered == 0


def exhausted(build, n_samples=200):
    """A guard that has halted, and the exception that said so; None if this one never does."""
    guard = build(n_samples)
    losses, _ = falling_losses(0, n_samples)
    for _ in range(20):
        for row in losses:
            try:
                query(guard, row, 0.99)
            except HoldoutExhausted as error:
                return guard, error
    return None


def test_a_halted_guard_refuses_everything_and_forgets_nothing(build):
    outcome = exhausted(build)
    if outcome is None:
        assert isinstance(build(200), Ladder) and build(200).max_queries is None
        return
    guard, error = outcome
    assert guard.halted
    assert error.n_answered == guard.n_answered
    if not hasattr(guard, "complexity"):
        assert (error.complexity, error.delta_prime, error.threshold) == (None, None, None)
    before = visible(guard)
    losses = losses_with_mean(0.5, 200)
    for ask in (
        lambda: query(guard, losses, 0.5),
        lambda: query_many(guard, [losses], [0.5]),
        lambda: query(guard, pack_losses(losses), 0.5),
        lambda: query_many(guard, pack_losses(losses[np.newaxis]), [0.5]),
    ):
        with pytest.raises(HoldoutExhausted, match="halted|the holdout is spent") as caught:
            ask()
        assert caught.value.n_answered == guard.n_answered
    with pytest.raises(ValueError, match="losses"):
        query(guard, losses + 1, 0.5)
    assert visible(guard) == before


@pytest.mark.parametrize("judged", [200, [0, 1] * 100])
def test_no_guard_can_be_copied_or_pickled(build, judged):
    guard = build(judged)
    duplicate = [copy.copy, copy.deepcopy]
    duplicate += [lambda it, p=p: pickle.dumps(it, p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    for attempt in duplicate:
        with pytest.raises(TypeError, match="cannot be copied or pickled.*pack_losses.*share it"):
            attempt(guard)
    assert guard.__sklearn_clone__() is guard


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_refused_and_the_parent_goes_on(build):
    guard = build(200)
    losses = losses_with_mean(0.5, 200)
    query(guard, losses, 0.5)
    outcomes = multiprocessing.get_context("fork").SimpleQueue()

    def child():
        try:
            query(guard, losses, 0.5)
        except RuntimeError as error:
            outcomes.put((type(error).__name__, str(error)))

    process = multiprocessing.get_context("fork").Process(target=child)
    # a fork may catch the lock held: the child must refuse before it waits for it
    with guard._shared.lock:
        process.start()
        name, message = outcomes.get()
        process.join()
    assert name == "RuntimeError"
    assert "fork" in message
    assert query(guard, losses, 0.5).number == 2


def test_threads_share_one_count_and_one_halt(build):
    guard = build(200)
    losses, guesses = falling_losses(8, 200)
    numbers, refused = [], []

    def work(_):
        for row, guess in zip(losses, guesses, strict=True):
            try:
                numbers.append(query(guard, row, guess).number)
            except HoldoutExhausted as error:
                refused.append(error.n_answered)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns within a decision
    try:
        at_once(work, range(8))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(numbers) == list(range(1, guard.n_answered + 1))
    assert len(numbers) + len(refused) == 8 * len(losses)
    assert set(refused) <= {guard.n_answered}
    assert bool(refused) == guard.halted


@pytest.mark.parametrize(
    ("delta", "told"),
    [
        (0.1, "0.9"),
        (0.7, "0.3"),
        (0.05, "0.95"),
        (1e-5, "0.99999"),
        (1e-12, "1 - 1e-12"),
        (1.4e-6, "1 - 1.4e-06"),
        (0.00123456, "1 - 0.00123456"),
        (1 - 2**-53, "1.11022e-16"),
        (1e-300, "1 - 1e-300"),
    ],
)
def test_no_guarantee_is_rounded_to_more_than_is_proved(delta, told):
    epsilon = 0.30000049
    search = DeclaredSearch(4000, 10, delta=delta)
    search.query(np.zeros(4000, bool), key=0)
    for said in (
        GuessAndCheck(4000, epsilon=epsilon, delta=delta).guarantee,
        FixedSequence(4000, epsilon=epsilon, delta=delta, n_vectors=0).guarantee,
        Ladder(4000, step=0.05, delta=delta).guarantee,
        search.guarantee,
        str(search.report()),
    ):
        assert re.search(rf"probability (at least )?{re.escape(told)}[ ,]", said)
        assert "within" not in said or str(epsilon) in said or "half_width" in said


def test_each_guarantee_says_what_is_proved_and_for_whom():
    proved = ["proved", "adaptive", "two-sided", "finite-sample"]
    for guard in (
        GuessAndCheck(4000, epsilon=0.05, delta=0.1),
        GuessAndCheck(4000, epsilon=0.05, delta=0.1, low_error=False),
        Ladder(4000, 0.01, delta=0.1),
        Ladder(4000, 0.01, delta=0.1, max_queries=100),
        FixedSequence(4000, epsilon=0.05, delta=0.1, n_vectors=0),
    ):
        said = guard.guarantee.lower()
        assert all(word in said for word in proved)
        assert "heuristic" not in said and "0.9" in said
    weak = Thresholdout(4000, threshold=0.04, noise=0.01, budget=100).guarantee
    assert "heuristic" in weak.lower() and "no valid half-width" in weak
    large = Thresholdout(10**12, threshold=0.04, noise=1e-5, budget=100).guarantee
    assert "no valid half-width" not in large


def test_a_repr_shows_parameters_and_counts_but_no_losses():
    check = GuessAndCheck(200, epsilon=0.2, delta=0.1)
    check.query(losses_with_mean(0.5, 200), guess=0.5)
    assert repr(check) == (
        "GuessAndCheck(Losses(200), epsilon=0.2, delta=0.1, low_error=True, n_answered=1, "
        "halted=False)"
    )
    hidden = Thresholdout(200, threshold=0.1, noise=0.01, budget=5, seed=1)
    assert str(hidden._shared.noisy_threshold) not in repr(hidden)
