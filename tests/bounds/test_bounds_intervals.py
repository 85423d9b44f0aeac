"""Confidence limits of many means at once: on the valid side, and no further than they must."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.testing import assert_array_equal
from support import log_lower_tail

from radabound_fast._kernels.search import tail_over_first
from radabound_fast.bounds import binomial_interval, kl_interval

DIGITS = 50


def kl(p, q):
    terms = ((p, q), (1 - p, 1 - q))
    return sum(a * mp.log(a / b) if b > 0 else mp.inf for a, b in terms if a > 0)


levels = st.one_of(st.floats(math.log(2.0), 60.0), st.floats(60.0, 2000.0))


@settings(deadline=None, max_examples=300)
@given(data=st.data(), m=st.integers(1, 3000), nats=levels)
def test_a_binomial_limit_is_the_first_float_or_so_whose_tail_is_small_enough(data, m, nats):
    edge = data.draw(st.booleans())
    count = data.draw(st.sampled_from([0, 1, m - 1, m]) if edge else st.integers(0, m))
    low, high = binomial_interval(count, m, nats)
    assert 0.0 <= low <= count / m <= high <= 1.0
    assert (low == 0.0) == (count == 0) or nats > 600.0
    # of the distance to the mean; near the median the continued fraction has not yet converged
    share = 1e-9 if nats >= 3.0 else 1e-4
    with mp.workdps(DIGITS):
        mean = mpf(count) / m
        if low > 0.0:
            assert -log_lower_tail(m - count, m, 1 - mpf(low), low) >= nats
            nearer = mpf(low) + share * (mean - low) + mpf(low) * (1 + nats) * mpf(2) ** -44
            assert nearer >= mean or -log_lower_tail(m - count, m, 1 - nearer, nearer) < nats
        if high < 1.0:
            assert -log_lower_tail(count, m, high) >= nats
            nearer = mpf(high) - share * (high - mean) - mpf(2) ** -44
            assert nearer <= mean or -log_lower_tail(count, m, nearer) < nats


@settings(deadline=None, max_examples=300)
@given(
    mean=st.one_of(st.floats(0.0, 1.0), st.floats(1e-300, 1e-3), st.just(1.0)),
    log_m=st.floats(0.0, 40.0),
    nats=st.one_of(levels, st.floats(0.0, 1e9)),
)
def test_a_kl_limit_is_the_first_float_or_so_that_spends_its_nats(mean, log_m, nats):
    m = int(2**log_m)
    low, high = kl_interval(mean, m, nats)
    assert 0.0 <= low <= mean <= high <= 1.0
    with mp.workdps(DIGITS + 300):
        p = mpf(mean)
        if low > 0.0:
            assert m * kl(p, mpf(low)) >= nats
        if high < 1.0:
            assert m * kl(p, mpf(high)) >= nats
    assert low == pytest.approx(kl_interval(mean, 1, nats / m)[0], rel=1e-12, abs=1e-16)
    assert high == pytest.approx(kl_interval(mean, 1, nats / m)[1], rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("m", [1, 2, 30, 4000])
@pytest.mark.parametrize("nats", [0.7, 3.0, 20.0, 690.0])
def test_an_exact_interval_lies_within_the_kl_interval(m, nats):
    counts = np.arange(m + 1)
    lows, highs = binomial_interval(counts, m, nats)
    kl_lows, kl_highs = kl_interval(counts / m, m, nats)
    assert (lows >= kl_lows * (1 - 1e-14)).all() and (highs <= kl_highs * (1 + 1e-14)).all()
    assert (np.diff(lows) > 0).all() and (np.diff(highs)[highs[:-1] < 1] > 0).all()
    assert lows == pytest.approx(1.0 - highs[::-1], abs=1e-14)


@pytest.mark.parametrize("interval", [kl_interval, binomial_interval])
def test_arrays_are_taken_element_by_element_and_broadcast(interval):
    given = np.array([[0, 3, 700], [1000, 1, 999]])
    given = given / 1000 if interval is kl_interval else given
    nats = np.array([3.0, 9.0, 500.0])
    lows, highs = interval(given, 1000, nats)
    assert lows.shape == highs.shape == (2, 3)
    assert lows.dtype == highs.dtype == np.float64
    for at in np.ndindex(2, 3):
        low, high = interval(given[at].item(), 1000, nats[at[1]])
        assert type(low) is type(high) is float
        assert (low, high) == (lows[at], highs[at])
    assert interval(given[:0], 1000, 3.0)[0].shape == (0, 3)
    repeated = interval(np.broadcast_to(given[0, 0], 20_000), 1000, 3.0)
    assert_array_equal(repeated[0], np.full(20_000, lows[0, 0]))


@pytest.mark.parametrize("m", [3, 4000, 2**40])
@pytest.mark.parametrize("nats", [(0.1, 9.0), (8.0, 600.0)])
def test_one_limit_is_that_of_many_to_the_last_bit(m, nats):
    rng = np.random.default_rng(m)
    counts, nats = rng.integers(0, m, 500, endpoint=True), rng.uniform(*nats, 500)
    for interval, values in ((binomial_interval, counts), (kl_interval, counts / m)):
        pairs = zip(values.tolist(), nats.tolist(), strict=True)
        one_by_one = [interval(value, m, each) for value, each in pairs]
        assert_array_equal(np.transpose(one_by_one), interval(values, m, nats))


def test_the_ratio_of_a_tail_takes_counts_and_odds_of_one_length():
    for c, odds in ((np.ones(3), np.ones(2)), (np.ones((1, 2)), np.ones((1, 2)))):
        with pytest.raises(ValueError, match="c and odds must be of one dimension"):
            tail_over_first(c, 10.0, odds, 2)


@pytest.mark.parametrize("levels", [1, 3, 400])
@pytest.mark.parametrize("shuffled", [False, True])
def test_counts_and_nats_that_repeat_have_the_limits_of_each(levels, shuffled):
    """More answers than samples: each pair's limits are computed once, if there are few."""
    rng = np.random.default_rng(levels)
    nats = np.repeat(rng.uniform(3.0, 20.0, levels), 4800 // levels)
    counts = rng.integers(0, 300, nats.size, endpoint=True)
    if shuffled:
        rng.shuffle(nats)
    found = binomial_interval(counts.reshape(2, -1), 300, nats.reshape(2, -1))
    assert found[0].shape == found[1].shape == (2, nats.size // 2)
    parts = [
        binomial_interval(counts[i : i + 100], 300, nats[i : i + 100])
        for i in range(0, nats.size, 100)
    ]
    assert_array_equal(np.ravel(found), np.concatenate(parts, axis=1).ravel())
    if levels == 1:  # nats of no dimension
        assert_array_equal(
            binomial_interval(counts, 300, nats[0].item()), np.reshape(found, (2, -1))
        )
