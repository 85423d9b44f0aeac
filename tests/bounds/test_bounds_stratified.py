"""Rows that do not have one law, as those of a holdout that was stratified by its labels.

Known answers by enumeration: the number of errors is the sum of two binomials, one a class, whose
law is computed exactly, so that nothing here fails by chance.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom
from support import most_failures

from radabound_fast import DeclaredSearch, bounds

# rows of the first class and of the second, and what is expected of a row of each
SIZES = [(1, 1), (1, 7), (3, 5), (6, 6), (2, 28), (1, 59)]
RATES = [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.8, 0.97, 1.0]
ALPHAS = [1e-6, 0.001, 0.01, 0.05, 0.1, 0.25]


def law_of_errors(sizes, rates):
    """Probabilities of 0 to m errors."""
    laws = [binom.pmf(np.arange(n + 1), n, rate) for n, rate in zip(sizes, rates, strict=True)]
    return np.convolve(*laws)


@pytest.mark.parametrize(
    "alpha", [pytest.param(a, marks=[] if a > 0.04 else pytest.mark.thorough) for a in ALPHAS]
)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_exact_limits_miss_an_average_of_classes_as_result_39_says(sizes, alpha):
    m, nats, most = sum(sizes), -math.log(alpha), -math.log1p(-alpha)
    counts = np.arange(m + 1)
    lows, highs = bounds.rate_interval(counts, m, np.full(m + 1, nats))
    worst = 0.0
    for rates in itertools.product(RATES, repeat=2):
        mean = np.dot(sizes, rates) / m
        law = law_of_errors(sizes, rates)
        above, below = law[lows > mean].sum(), law[highs < mean].sum()
        assert above <= (alpha if m * mean >= 1 else most) * (1 + 1e-9), rates
        assert below <= (alpha if m * (1 - mean) >= 1 else most) * (1 + 1e-9), rates
        worst = max(worst, above, below)
    assert worst <= most


def test_less_than_one_expected_error_is_where_the_exact_limits_miss_more_than_alpha():
    """One row errs with probability mu and all others never: the worst case of Result 33."""
    m, alpha = 60, 0.25
    low, _ = bounds.rate_interval(1, m, -math.log(alpha))
    mu = m * float(low) * (1 - 1e-9)  # just below the limit that one error has
    assert alpha < law_of_errors((1, m - 1), (mu, 0.0))[1] < -math.log1p(-alpha)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.25])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_chernoff_s_limits_miss_an_average_of_classes_at_most_as_often(sizes, alpha):
    m, nats = sum(sizes), -math.log(alpha)
    lows, highs = bounds.kl_interval(np.arange(m + 1) / m, m, np.full(m + 1, nats))
    for rates in itertools.product(RATES, repeat=2):
        mean, law = np.dot(sizes, rates) / m, law_of_errors(sizes, rates)
        assert max(law[lows > mean].sum(), law[highs < mean].sum()) <= alpha, rates


# 200 holdouts of 300 rows, 60 of them positive; seed 0; a correct program fails with probability
# below 1e-6 by `most_failures`
def test_a_search_over_a_stratified_holdout_misses_as_rarely_as_over_any():
    rng, delta, n_keys, runs = np.random.default_rng(0), 0.2, 20, 200
    y_true = np.repeat([0, 1], [240, 60])
    rates = rng.random((n_keys, 2)) * [0.1, 0.9]  # errors of each model in each class
    truths = rates @ [0.8, 0.2]
    missed = 0
    for _ in range(runs):
        wrong = rng.random((n_keys, 300)) < rates[:, y_true]
        answers = DeclaredSearch(y_true, n_keys, delta=delta).query_many(
            y_true ^ wrong, keys=range(n_keys)
        )
        missed += bool(((answers.lows > truths) | (answers.highs < truths)).any())
    assert missed <= most_failures(runs, delta)


def search_of_coins(rng, toss, y_true, delta):
    """Trainings of 8 keys by a learner that tosses coins; the next key is chosen by the scores."""
    search, left, missed = DeclaredSearch(y_true, 8, delta=delta), list(range(8)), False
    best = 0.0
    while left:
        key = left.pop(-1 if best > 0.5 else 0)
        answer = search.query(toss(rng, len(y_true)), key=key)
        best = max(best, answer.value)
        missed |= not answer.low <= 0.5 <= answer.high
    return missed


# Models that are coins, whose truth is 1/2, over 100 holdouts of 100 rows; seed 1; as above.
@pytest.mark.parametrize("kept", [False, True])
def test_fresh_coins_are_covered_and_coins_kept_for_their_scores_are_not(kept):
    rng, delta, runs, missed = np.random.default_rng(1), 0.2, 100, 0
    for _ in range(runs):
        y_true = rng.integers(0, 2, 100)

        def toss(rng, m, y_true=y_true):
            trainings = rng.integers(0, 2, (200 if kept else 1, m), dtype=np.uint8)
            return trainings[(trainings != y_true).mean(axis=1).argmin()]

        missed += search_of_coins(rng, toss, y_true, delta)
    assert (missed > most_failures(runs, delta)) == kept
