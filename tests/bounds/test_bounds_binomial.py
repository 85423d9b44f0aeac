"""Exact binomials: the failure at worst, the queries it affords, and the counts that are free."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.special import log_ndtr
from scipy.stats import binom
from support import log_lower_tail

from radabound_fast import bounds
from radabound_fast.bounds import binomial
from radabound_fast.bounds._roots import bisect, peak


def failures(m, epsilon):
    """``P(Bin(m, c/m + epsilon) <= c)`` for every count c; 0 where no truth is so large."""
    truths = np.arange(m + 1) / m + epsilon
    return np.where(truths < 1.0, binom.cdf(np.arange(m + 1), m, np.minimum(truths, 1.0)), 0.0)


SIZES = [1, 2, 3, 10, 30, 1000, 4000, 5000]
EPSILONS = [0.001, 0.01, 0.03, 0.06, 0.2, 0.5, 0.9]


means = st.one_of(
    st.floats(0.0, 1.0), st.floats(0.0, 1e-3), st.floats(0.0, 1e-3).map(lambda rest: 1.0 - rest)
)


@pytest.mark.thorough
@settings(deadline=None, max_examples=300)
@given(data=st.data(), m=st.integers(1, 5000), mean=means)
@example(data=None, m=2, mean=1.0 - 2.0**-53)
@example(data=None, m=2, mean=1e-300)
@example(data=None, m=5000, mean=1.0 - 2.0**-53)
@example(data=None, m=2, mean=math.nextafter(0.5, 1.0))
def test_the_log_tail_is_never_below_the_sum_of_its_terms(data, m, mean):
    count = m // 2 if data is None else data.draw(st.integers(0, m))
    above = m * Fraction(mean) - count
    assume(above > 0 and count < m)
    nearest = float(above)
    found = binomial._log_tail(count, m, nearest, float(above - Fraction(nearest)))
    if mean == 1.0:
        assert found == -math.inf
    else:
        with mp.workdps(400):  # 1 - 5e-324 is not 1
            exact = log_lower_tail(count, m, mean)
        assert exact <= found <= 0.0
        if exact < -5.0:
            assert found <= exact + 4e-15 * (1.0 + float(above) - exact) + 3e-11


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_failure_at_worst_is_that_of_the_worst_count(m, epsilon):
    worst = failures(m, epsilon).max()
    found = math.exp(binomial._worst(m, epsilon)[1])
    assert found >= worst * (1.0 - 1e-12)
    if m <= 4096 or binomial._is_log_concave(m, epsilon):
        assert found == pytest.approx(worst, rel=1e-6)
    else:
        assert found == pytest.approx(math.exp(-2.0 * m * epsilon**2), rel=1e-14)


@pytest.mark.parametrize("m", [129, 500, 4000, 10**5])
def test_the_failure_is_log_concave_in_the_count_where_that_is_said(m):
    """From the least epsilon for which it is proved (Result 16) up to 1/2."""
    least = 1.0 / m + math.sqrt(2.0 / (3.0 * (m - 1.0)))
    for epsilon in [least * (1.0 + 1e-12), 1.5 * least, 3.0 * least, 0.5]:
        assert binomial._is_log_concave(m, epsilon)
        some = np.unique(np.linspace(1, m * (1.0 - epsilon) - 2.0, 300).astype(int))
        for count in some.tolist():
            before, here, after = (
                binomial._log_tail(c, m, m * epsilon, 0.0) for c in (count - 1, count, count + 1)
            )
            assert before + after <= 2.0 * here + 1e-9 * abs(here)
    assert not binomial._is_log_concave(m, least * (1.0 - 1e-12))


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_as_many_queries_as_are_afforded_share_delta_and_not_one_more(m, epsilon):
    for delta in (1e-6, 0.04, 0.9):
        afforded = bounds.binomial_queries(m, epsilon, delta)
        # the fraction of delta that so many pairs of failures take
        spent = 2.0 * math.exp(binomial._worst(m, epsilon)[1]) / delta
        assert afforded * spent <= 1.0
        assert afforded == 2**62 or (afforded + 1) * spent > 1.0 - 1e-9
        assert afforded >= bounds.union_queries(m, epsilon, delta)


def test_a_holdout_of_2_to_the_40_takes_no_loop_over_its_samples():
    # neighbouring counts differ by less than rounding, which must not mislead the search
    epsilons = np.linspace(1e-6, 4e-6, 40)
    found = [binomial._worst(2**40, epsilon)[1] for epsilon in epsilons.tolist()]
    assert (np.diff(found) < 0.0).all()
    # a normal tail, but for a correction of order 1/sqrt(m)
    assert found == pytest.approx(log_ndtr(-2.0 * epsilons * 2.0**20), rel=1e-5)


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_free_counts_are_those_whose_interval_is_within_epsilon(m, epsilon):
    upper = failures(m, epsilon)
    exact = m <= 4096 or binomial._is_log_concave(m, epsilon)
    for nats in (0.7, 2.0, 5.0, 12.0, 40.0, 300.0):
        low = binomial.binomial_free(m, epsilon, nats)
        # the lower limits are the upper ones in mirror image
        fits = (upper <= math.exp(-nats)) & (upper[::-1] <= math.exp(-nats))
        expected = m if fits.all() else int(np.argmin(fits)) - 1
        if exact:
            assert low == expected
        else:
            assert low <= expected
        if low >= 0:
            lows, highs = bounds.binomial_interval(np.arange(m + 1), m, nats)
            counts = np.arange(m + 1)
            free = (counts <= low) | (counts >= m - low)
            means = counts / m
            assert (highs[free] <= np.minimum(means[free] + epsilon, 1.0) + 1e-9).all()
            assert (lows[free] >= np.maximum(means[free] - epsilon, 0.0) - 1e-9).all()


def test_the_peak_of_a_function_is_found_wherever_it_is():
    for size in range(1, 40):
        for place in range(size):
            asked = []

            def rises_and_falls(x, place=place, asked=asked):
                asked.append(x)
                return -abs(x - place) - (0.5 if x > place else 0.0)

            assert peak(rises_and_falls, size) == (place, 0.0)
            assert set(asked) <= set(range(size)) and len(asked) <= 10


def test_bisection_ends_at_the_last_float_that_is_false():
    for edge in (0.3, 1e-300, 1.0 - 2.0**-53):
        assert bisect(lambda x, edge=edge: x > edge, 0.0, 1.0) == edge
