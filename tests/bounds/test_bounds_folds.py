"""Limits under cross-validation: the capital solved anew, the two other limits, and enumeration."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp, rel_entr
from scipy.stats import binom

from radabound_fast import bounds

MEANS = (0.0, 1e-6, 0.003, 0.02, 0.1, 0.2, 0.37, 0.5, 0.81, 0.98, 1.0)
NATS = (0.0, 0.5, 3.0, 5.3, 10.0, 17.0, 60.0)
# one row a fold; fewer rows than nats; a fold of no whole number of rows; many
SIZES = ((2, 2), (7, 7), (30, 5), (203, 10), (4000, 5), (10**5, 3), (2**40, 4))


def fixed_bets(m, k, nats):
    """The lambdas of Result 27 (b) and their weights, as the theory page says."""
    first = math.sqrt(8 * max(nats, 0.01) / (m / k))
    n = 1 + max(0, math.ceil(math.log(3 / first) / math.log(1.5)))
    if n == 1:
        return np.array([first]), np.array([1.0])
    return np.geomspace(first, 3, n), np.array([1 / 3] + (n - 1) * [2 / 3 / (n - 1)])


def lower_limit(mean, m, k, nats):
    lambdas, weights = fixed_bets(m, k, nats)

    def beyond(truth):
        logs = lambdas * mean - np.log1p(truth * np.expm1(lambdas))
        return float(logsumexp(m / k * logs, b=weights)) - nats

    if beyond(0.0) <= 0.0 or beyond(mean) >= 0.0:
        return 0.0 if mean == 0.0 or beyond(0.0) <= 0.0 else mean
    return brentq(beyond, 0.0, mean, xtol=1e-15, rtol=1e-14)


@pytest.mark.parametrize(("m", "k"), SIZES)
@pytest.mark.parametrize("nats", NATS)
def test_limits_are_where_the_capital_is_exp_nats(m, k, nats):
    for mean in MEANS:
        low, high = bounds.cross_validation_interval(mean, m, k, nats)
        near = 1e-9 if m < 2**40 else 1e-6  # digits that logarithms of 2**40 rows leave
        assert low == pytest.approx(lower_limit(mean, m, k, nats), rel=near, abs=1e-12)
        assert 1 - high == pytest.approx(lower_limit(1 - mean, m, k, nats), rel=near, abs=1e-12)
        assert low <= mean <= high


def by_all_at_once(mean, m, k, nats):
    """The upper limit of Result 27 (c) for equal folds."""
    n = m // k
    c = np.arange(n + 1)
    xi = float(binom.pmf(c, n, c / n).sum())
    budget = (nats - math.log(2) + math.log(xi)) / n

    def beyond(truth):
        return float(rel_entr(mean, truth) + rel_entr(1 - mean, 1 - truth)) - budget

    return brentq(beyond, mean, 1 - 1e-13) if beyond(1 - 1e-13) > 0 else 1.0


@pytest.mark.parametrize(("m", "k"), [(500, 5), (4000, 5), (4000, 10), (100_000, 5)])
@pytest.mark.parametrize("nats", [3.0, 5.3, 10.0, 17.0])
def test_no_limit_is_wider_than_by_all_lambdas_at_once(m, k, nats):
    for mean in MEANS[2:-2]:
        assert bounds.cross_validation_interval(mean, m, k, nats)[1] <= by_all_at_once(
            mean, m, k, nats
        )


def test_hoeffding_s_limit_is_never_nearer_than_its_third_of_the_capital_makes_it():
    for mean in MEANS:
        low, high = bounds.cross_validation_interval(mean, 4000, 5, 10.0)
        _, furthest = bounds.weighted_cross_validation_interval(0.0, 4000, 5, 10.0)
        # (lambda^2 / 8 + nats + ln 3) / lambda at its lambda
        reach = furthest * (1 + math.log(3) / 20)
        assert max(mean - low, high - mean) <= reach * (1 + 1e-9)


def test_weighted_rows_have_hoeffding_s_limits_for_one_fold():
    low, high = bounds.weighted_cross_validation_interval(0.3, 1000.0, 5, 2.5)
    assert high - 0.3 == pytest.approx(math.sqrt(2.5 / (2 * 200)), rel=1e-12)
    assert 0.3 - low == pytest.approx(high - 0.3, rel=1e-12)
    lows, highs = bounds.weighted_cross_validation_interval([0.01, 0.3, 0.99], 1e3, 5, 2.5)
    assert lows[0] == 0.0 and highs[2] == 1.0 and (lows[1], highs[1]) == (low, high)
    several = bounds.weighted_cross_validation_interval(0.5, 10, 10, np.array([0.0, 0.125]))
    assert several[1] == pytest.approx([0.5, 0.75])


def test_many_limits_are_those_of_one_at_a_time():
    rng = np.random.default_rng(8)
    for shape in ((3,), (5, 40)):  # few are computed each, of many the different ones
        means, nats = rng.integers(0, 30, shape) / 30, rng.choice([3.0, 5.3], shape)
        lows, highs = bounds.cross_validation_interval(means, 300, 5, nats)
        for at in np.ndindex(shape):
            one = bounds.cross_validation_interval(float(means[at]), 300, 5, float(nats[at]))
            assert (lows[at], highs[at]) == one
        assert np.shape(lows) == np.shape(highs) == shape


@pytest.mark.parametrize("m", [2, 7, 30])
def test_there_are_no_more_folds_than_rows(m):
    for mean in MEANS:
        most = bounds.cross_validation_interval(mean, m, m, 3.0)
        for k in (m + 1, 10 * m):
            assert bounds.cross_validation_interval(mean, m, k, 3.0) == most


def test_two_folds_that_know_each_other_miss_no_more_than_allowed():
    """Exact: two folds of n coins; each fold's model is one of two, chosen by the other fold.

    A row is an error of the first model with probability p, of the second with p, of both never.
    """
    n, p = 12, 0.3
    a, b = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    in_order = a + b <= n
    a, b = a[in_order], b[in_order]
    chance = binom.pmf(a, n, p) * binom.pmf(b, n - a, p / (1 - p))
    first, second = np.meshgrid(np.arange(a.size), np.arange(a.size), indexing="ij")
    more = np.sign(a - b)
    errors = np.where(more[second] >= 0, a[first], b[first]) + np.where(
        more[first] >= 0, a[second], b[second]
    )
    weights = chance[first] * chance[second]
    for nats in (1.0, 2.0, 3.0):
        lows, highs = bounds.cross_validation_interval(errors / (2 * n), 2 * n, 2, nats)
        assert weights[lows > p].sum() <= math.exp(-nats)
        assert weights[highs < p].sum() <= math.exp(-nats)
        assert weights[(lows <= p) & (highs >= p)].sum() < 1  # it does miss at times
