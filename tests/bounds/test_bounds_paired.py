"""`paired_interval` against its definition, its symmetries, and simulated coverage."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from radabound_fast.bounds import kl_plus, paired_interval

CASES = [(30, 50, 4000), (5, 5, 10), (0, 3, 10), (3, 0, 10), (300, 10, 1000), (1, 0, 50)]


def by_definition(n_plus, n_minus, n_samples, nats):
    """The lower limit, its supremum over a fine grid of lambda and its D by bisection."""
    budget = (nats + math.log(1.5)) / n_samples
    spread = kl_plus((n_plus + n_minus) / n_samples, budget)
    mean = (n_plus - n_minus) / n_samples
    factor = np.linspace(0.0, 12.0, 400_001)
    low, high = -spread, mean
    for _ in range(50):
        middle = (low + high) / 2
        moment = 1 - spread + spread * np.cosh(factor) + middle * np.sinh(factor)
        rate = np.max(factor * mean - np.log(moment))
        low, high = (low, middle) if rate <= budget else (middle, high)
    return low


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("nats", [0.5, math.log(20), 20.0])
def test_the_lower_limit_is_that_of_its_definition(case, nats):
    assert paired_interval(*case, nats)[0] == pytest.approx(by_definition(*case, nats), abs=2e-9)


@pytest.mark.parametrize("case", CASES)
def test_the_upper_limit_is_the_lower_one_in_mirror_image(case):
    n_plus, n_minus, n_samples = case
    low, high = paired_interval(*case, 3.0)
    assert paired_interval(n_minus, n_plus, n_samples, 3.0) == (-high, -low)


# the first row of docs/explanation/theory.md's table: half-widths at disagreements of 2 %, 5 %
# and 20 %
@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.02, (0.0066, 0.0125, 0.0170)),
        (0.05, (0.0100, 0.0184, 0.0246)),
        (0.20, (0.0192, 0.0343, 0.0451)),
    ],
)
def test_the_half_widths_of_1_1000_and_a_million_keys(share, expected):
    half = round(share * 4000 / 2)
    widths = [
        paired_interval(half, half, 4000, math.log(20 * n_keys))[1] for n_keys in (1, 10**3, 10**6)
    ]
    assert [round(width, 4) for width in widths] == list(expected)


def test_more_nats_widen_and_the_mean_stays_inside():
    intervals = [paired_interval(40, 10, 500, nats) for nats in (0.0, 0.1, 1.0, 10.0, 100.0)]
    lows, highs = zip(*intervals, strict=True)
    assert list(lows) == sorted(lows, reverse=True) and list(highs) == sorted(highs)
    assert all(low <= 30 / 500 <= high for low, high in intervals)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((10, 0, 10, 1e4), 1.0), ((0, 10, 10, 1e4), -1.0), ((1, 0, 1, 0.0), 1.0)],
)
def test_what_differs_everywhere_may_do_so_in_truth(arguments, expected):
    assert expected in paired_interval(*arguments)


def test_a_holdout_of_2_to_the_40_has_limits_too():
    low, high = paired_interval(2**39, 1, 2**40, math.log(20))
    assert 0.49999 < low < 0.5 - 2**-40 < high < 0.50001


# 4,000 runs a case: by the theorem a run is outside with probability at most .1; a correct program
# has more than the quantile below with probability at most 1e-6 a case
@pytest.mark.parametrize(
    ("n_samples", "plus", "minus"),
    [(30, 0.5, 0.3), (100, 0.02, 0.01), (1000, 0.1, 0.1), (4000, 0.001, 0.0), (4000, 0.01, 0.03)],
)
def test_the_interval_holds_the_truth(n_samples, plus, minus):
    rng = np.random.default_rng(2026)
    counts = rng.multinomial(n_samples, [plus, minus, 1 - plus - minus], size=4000)[:, :2]
    outside = 0
    for (n_plus, n_minus), runs in zip(*np.unique(counts, axis=0, return_counts=True), strict=True):
        low, high = paired_interval(int(n_plus), int(n_minus), n_samples, math.log(2 / 0.1))
        outside += runs * (not low <= plus - minus <= high)
    assert outside <= binom.ppf(1 - 1e-6, 4000, 0.1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, 0, 10, 1.0), "n_plus must not be negative, got -1"),
        ((0, -2, 10, 1.0), "n_minus must not be negative, got -2"),
        ((6, 5, 10, 1.0), r"n_plus \+ n_minus must be at most n_samples = 10, got 11"),
        ((1, 1, 10, -1.0), "nats must not be negative, got -1.0"),
    ],
)
def test_bad_counts_are_refused_by_name(arguments, error):
    with pytest.raises(ValueError, match=error):
        paired_interval(*arguments)
