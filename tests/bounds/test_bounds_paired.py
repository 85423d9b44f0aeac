"""`paired_interval` against its definition, by enumeration, and in 40 digits."""

import math
from functools import lru_cache

import numpy as np
import pytest
from mpmath import log1p, mp, mpf
from numpy.testing import assert_array_equal
from scipy.special import gammaln, ndtri_exp, xlogy
from scipy.stats import beta

from radabound_fast.bounds import binomial_interval, paired_interval

OUTSIDE = 1 / 128  # the part of the error that the limits of p and of q have
SLACK = 0.008  # the part of the nats that the cells between computed laws may take


def won(plus, minus, m, gain):
    """What the best bet against a gain has won, over a fine grid of bets; K_D of Result 25."""
    bets = np.concatenate([np.linspace(0, 1, 6001), [1 - 1e-9]]) / (1 + gain)
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [
            xlogy(n, 1 + bets * (x - gain))
            for n, x in ((plus, 1), (minus, -1), (m - plus - minus, 0))
        ]
    return np.nanmax(sum(sides))


def points(m):
    """All n+, all n-, and the logarithms of their multinomial coefficients."""
    plus, minus = np.array([(i, j) for i in range(m + 1) for j in range(m + 1 - i)]).T
    rest = m - plus - minus
    return plus, minus, gammaln(m + 1) - sum(gammaln(n + 1) for n in (plus, minus, rest))


def probabilities(m, p, q):
    """The probability of each of the points."""
    plus, minus, ways = points(m)
    rest = max(0.0, 1 - p - q)
    return np.exp(ways + xlogy(plus, p) + xlogy(minus, q) + xlogy(m - plus - minus, rest))


def lower_limit_by_definition(n_plus, n_minus, m, nats, slack):
    """D^- of Result 25 by bisection, at `slack` of the nats more, over a grid of q."""
    rate = 0.5 * ndtri_exp(-nats) ** 2
    low, high = -1.0, (n_plus - n_minus) / m
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if won(n_plus, n_minus, m, middle) >= rate else (low, middle)
    order = low
    plus, minus, _ = points(m)
    inside = np.array(
        [
            i - j > m * order and won(i, j, m, order) >= rate - 1e-6
            for i, j in zip(plus, minus, strict=True)
        ]
    )
    error = OUTSIDE / 2 * math.exp(-nats)
    p_low = beta.ppf(error, n_plus, m - n_plus + 1) if n_plus else 0.0
    q_high = beta.isf(error, n_minus + 1, m - n_minus) if n_minus < m else 1.0
    low, high = p_low - q_high, (n_plus - n_minus) / m
    for _ in range(25):
        gain = (low + high) / 2
        shares = np.linspace(max(p_low - gain, -gain, 0.0), min(q_high, (1 - gain) / 2), 60)
        most = max(probabilities(m, q + gain, q)[inside].sum() for q in shares)
        is_out = most <= (1 - OUTSIDE) * math.exp(-nats * (1 + slack))
        low, high = (gain, high) if is_out else (low, gain)
    return low


@pytest.mark.parametrize("nats", [math.log(4), 3.0, 9.0])
@pytest.mark.parametrize(
    "case", [(0, 0, 1), (1, 0, 5), (2, 1, 12), (0, 4, 12), (9, 3, 12), (12, 0, 12)]
)
def test_the_lower_limit_is_that_of_its_definition(case, nats):
    low = paired_interval(*case, nats)[0]
    assert low <= lower_limit_by_definition(*case, nats, 0.0) + 1e-6
    assert low >= lower_limit_by_definition(*case, nats, 2 * SLACK) - 2 * SLACK * nats / case[2]


def test_the_limits_of_60_against_40_rows_of_2000():
    """An order by studentised gains has .0017 too; Chernoff's limit is -.0047."""
    assert paired_interval(60, 40, 2000, 3.0)[0] == pytest.approx(0.0017, abs=5e-5)


# Exact: what a law misses is a sum over all points.  Each limit of D is tried from its wrong side.
@pytest.mark.parametrize("nats", [0.5, math.log(4), 3.0, 8.0, 20.0])
@pytest.mark.parametrize(
    "m", [1, 2, 12, *(pytest.param(m, marks=pytest.mark.thorough) for m in (30, 60))]
)
def test_both_sides_hold_for_every_law(m, nats):
    plus, minus, _ = points(m)
    lows, highs = paired_interval(plus, minus, m, nats)
    ends = np.unique(lows)[:: 1 + len(np.unique(lows)) // 60]
    for share in [1e-4, 0.01, *np.linspace(0.05, 1.0, 12)]:
        for gain in [*(ends - 1e-9), *np.linspace(-share, share, 9)]:
            if abs(gain) <= share:
                chances = probabilities(m, (share + gain) / 2, (share - gain) / 2)
                assert chances[lows > gain].sum() <= math.exp(-nats) * (1 + 1e-9)
                assert chances[highs < gain].sum() <= math.exp(-nats) * (1 + 1e-9)


@lru_cache
def region(n_plus, n_minus, m, nats):
    """For each N near the observed one the least n+ as large as what was observed, in 30 digits."""
    rate = mpf(0.5 * float(ndtri_exp(-nats)) ** 2)

    def best(plus, minus, gain):
        """`won`, where the derivative of a concave function is 0, by bisection."""
        low, high = mpf(0), 1 / (1 + gain)
        parts = [(plus, 1 - gain), (minus, -1 - gain), (m - plus - minus, -gain)]
        for _ in range(70):
            bet = (low + high) / 2
            rises = sum(n * x / (1 + bet * x) for n, x in parts) > 0
            low, high = (bet, high) if rises else (low, bet)
        return sum(n * log1p(low * x) for n, x in parts)

    low, high = mpf(-1), mpf(n_plus - n_minus) / m
    for _ in range(70):
        gain = (low + high) / 2
        low, high = (gain, high) if best(n_plus, n_minus, gain) >= rate else (low, gain)
    observed, reach = n_plus + n_minus, 12 * math.isqrt(n_plus + n_minus)
    least, k = {}, 0
    for n in range(max(0, observed - reach), min(m, observed + reach) + 1):
        k = max(k, math.floor(n / 2 + m * low / 2))
        while k <= n and (2 * k - n <= m * low or best(k, n - k, low) < rate - mpf(10) ** -12):
            k += 1
        least[n] = k
    return least


def probability(least, m, p, q):
    """That of `region`, of one law."""
    s, rho = p + q, p / (p + q)
    first = min(least)
    mass = mp.binomial(m, first) * s**first * (1 - s) ** (m - first)
    total = mpf(0)
    for n, k in least.items():
        term = mp.binomial(n, k) * rho**k * (1 - rho) ** (n - k) if k <= n else mpf(0)
        tail = mpf(0)
        for j in range(k, n + 1):
            tail += term
            term *= mpf(n - j) / (j + 1) * rho / (1 - rho)
            if term < tail * mpf(10) ** -15:
                break
        total += mass * tail
        mass *= mpf(m - n) / (n + 1) * s / (1 - s)
    return total


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("case", "nats"),
    [
        ((60, 40, 2000), 3.0),
        ((24, 16, 2000), 17.0),
        ((40, 60, 10**6), 40.0),
        ((20, 10, 500), 30.0),
        ((120, 80, 4000), 10.0),
    ],
)
def test_limits_of_many_rows_in_30_digits(case, nats):
    with mp.workdps(30):
        n_plus, n_minus, m = case
        least, allowed = region(*case, nats), (1 - OUTSIDE) * mp.exp(-nats)
        low = paired_interval(*case, nats)[0]
        paid = nats + math.log(2 / OUTSIDE)
        p_low = binomial_interval(n_plus, m, paid)[0]
        q_high = binomial_interval(n_minus, m, paid)[1]
        nearer = low + 0.01 * ((n_plus - n_minus) / m - low)
        most = {}
        for gain in (low, nearer):
            shares = np.linspace(max(p_low - gain, -gain, 1e-9), q_high, 15)
            most[gain] = max(probability(least, m, mpf(q + gain), mpf(q)) for q in shares)
        assert most[low] <= allowed < most[nearer]


CASES = [(30, 50, 4000), (5, 5, 10), (0, 3, 10), (0, 0, 10), (300, 10, 1000), (1, 0, 50)]


@pytest.mark.parametrize("case", CASES)
def test_the_upper_limit_is_the_lower_one_in_mirror_image(case):
    n_plus, n_minus, n_samples = case
    low, high = paired_interval(*case, 3.0)
    assert paired_interval(n_minus, n_plus, n_samples, 3.0) == (-high, -low)
    assert low <= (n_plus - n_minus) / n_samples <= high


@pytest.mark.parametrize("m", [3, 25, pytest.param(60, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("nats", [1.5, 3.0, 8.0])
def test_limits_grow_with_the_counts(m, nats):
    plus, minus, _ = points(m)
    lows = np.full((m + 2, m + 2), np.nan)
    lows[plus, minus] = paired_interval(plus, minus, m, nats)[0]
    assert np.nanmin(lows[1:] - lows[:-1]) >= -2e-3
    assert np.nanmin(lows[:, :-1] - lows[:, 1:]) >= -2e-3


def test_more_nats_widen():
    nats = [0.0, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 40.0, 100.0, 299.0, 301.0, 1e4]
    for case in CASES:
        lows, highs = paired_interval(*case, nats)
        jump = 0.03 * (highs - lows)[1:]  # another order may put a point before another
        assert (np.diff(lows) <= jump).all() and (np.diff(highs) >= -jump).all()


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        ((10, 0, 10, 1e4), (-1.0, 1.0)),
        ((0, 0, 1000, 5.0), (-0.005, 0.005)),  # about nats / m, as no row differs
        ((0, 10, 10, 3.0), (-1.0, None)),
    ],
)
def test_few_rows_that_differ(arguments, limits):
    for limit, expected in zip(paired_interval(*arguments), limits, strict=True):
        assert expected is None or limit == pytest.approx(expected, rel=0.02)


def test_arrays_are_the_limits_one_by_one():
    plus, minus = np.array([[3, 0, 7], [3, 12, 3]]), np.array([1, 0, 9])
    nats = np.array([[2.0], [600.0]])
    lows, highs = paired_interval(plus, minus, 40, nats)
    assert lows.shape == highs.shape == (2, 3)
    for place in np.ndindex(2, 3):
        one = paired_interval(int(plus[place]), int(minus[place[1]]), 40, float(nats[place[0], 0]))
        assert one == (lows[place], highs[place])
    assert_array_equal(paired_interval(plus[:0], minus, 40, 3.0), np.empty((2, 0, 3)))
    # more different cases than an integer can number
    m, many = 2**40, np.array([2**38, 2**38, 5])
    lows, _ = paired_interval(many, many[::-1], m, np.array([500.1, 501.0, 600.0]))
    assert lows[2] == paired_interval(5, 2**38, m, 600.0)[0]


def test_a_holdout_of_2_to_the_40_has_limits_too():
    low, high = paired_interval(2**20, 2**19, 2**40, math.log(20))
    mean = 2.0**-21
    assert mean - 3e-9 < low < mean < high < mean + 3e-9


@pytest.mark.parametrize("case", [(700, 300, 4000), (0, 900, 1000), (3, 0, 10**6)])
def test_above_300_nats_each_count_has_half_of_the_error(case):
    plus, minus, m = case
    nats = np.array([300.5, 400.0, 650.0])
    low, _ = binomial_interval(np.full(3, plus), m, nats + math.log(2))
    _, high = binomial_interval(np.full(3, minus), m, nats + math.log(2))
    assert_array_equal(paired_interval(plus, minus, m, nats)[0], low - high)
    assert_array_equal(paired_interval(minus, plus, m, nats)[1], high - low)


# where no row speaks for the model, the law with p = 0 makes it a limit of one share
@pytest.mark.parametrize(
    "case", [(0, 30, 4000), (0, 10**5, 10**6), (0, 7, 8), (0, 1, 1), (0, 0, 500), (0, 399, 400)]
)
@pytest.mark.parametrize("nats", [3.0, 17.0, 250.0])
def test_where_nothing_speaks_for_a_model_its_limit_is_that_of_one_share(case, nats):
    low = paired_interval(*case, nats)[0]
    _, exact = binomial_interval(case[1], case[2], nats - math.log1p(-OUTSIDE))
    assert -1 <= low <= -exact * (1 - 1e-9)
    distance = exact - case[1] / case[2]
    assert -low - case[1] / case[2] <= distance * (1.06 + 2 * SLACK)


# all rows differ: the number of rows that do says nothing, and the sign test says all
@pytest.mark.parametrize("counts", [(60, 60), (9, 1), (1, 0), (150, 150)])
def test_where_all_rows_differ_the_limits_are_those_of_a_coin(counts):
    low = paired_interval(*counts, sum(counts), 5.0)[0]
    share, _ = binomial_interval(counts[0], sum(counts), 5.0 - math.log1p(-OUTSIDE))
    assert low <= 2 * share - 1 + 1e-9
