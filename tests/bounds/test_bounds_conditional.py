"""Limits of rates given an event, F1, balanced accuracy and AUC: definitions, symmetry, errors."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import beta, binom
from support import most_failures

from radabound_fast.bounds import (
    auc_interval,
    balanced_interval,
    f1_interval,
    kl_interval,
    rate_interval,
    roc_band,
    weighted_interval,
)

NATS = math.log(20)


def of_classes(mean, sizes, nats):
    return weighted_interval(mean, 1 / np.array(sizes), sizes, nats)


@pytest.mark.parametrize(("count", "size"), [(0, 7), (7, 7), (3, 7), (320, 400)])
def test_a_rate_has_the_limits_of_clopper_and_pearson(count, size):
    low, high = rate_interval(count, size, 5.0)
    a = math.exp(-5.0)
    below = beta.ppf(a, count, size - count + 1) if count else 0.0
    above = beta.isf(a, count + 1, size - count) if count < size else 1.0
    assert (low, high) == pytest.approx((below, above), abs=1e-9)


def test_rates_of_many_events_are_those_of_each():
    counts, sizes = np.array([0, 3, 0, 5, 7]), np.array([0, 7, 7, 9, 7])
    lows, highs = rate_interval(counts, sizes, NATS)
    each = [rate_interval(*pair, NATS) for pair in zip(counts, sizes, strict=True)]
    assert list(zip(lows, highs, strict=True)) == each
    assert each[0] == (0.0, 1.0)


def test_f1_is_the_rate_of_hits_among_hits_and_errors():
    low, high = f1_interval(260, 280, NATS)
    rates = rate_interval(260, 540, NATS)
    assert (low, high) == pytest.approx([2 * j / (1 + j) for j in rates])
    assert low < 2 * 260 / (2 * 260 + 280) < high
    assert f1_interval(0, 0, NATS) == (0.0, 1.0)


def test_the_area_has_the_limits_of_as_many_pairs_as_the_rarer_class_has_rows():
    assert auc_interval(0.9, 3600, 400, NATS) == kl_interval(0.9, 400, NATS)
    assert auc_interval(0.9, 400, 3600, NATS) == kl_interval(0.9, 400, NATS)
    with pytest.raises(ValueError, match="n_positive must be at least 1, got 0"):
        auc_interval(0.9, 10, 0, NATS)


STRATA = [
    (0.9, [3600, 400], NATS),
    (0.5, [3600, 400], NATS),
    (1.0, [3600, 400], NATS),
    (0.97, [20, 7], NATS + 7),
    (0.3, [10] * 20, NATS),
    (0.7, [36_000, 4], NATS),
    (0.1, [1000], NATS),
    (0.02, [5, 50, 500], 0.3),
]


def best_lower_limit(mean, shares, counts, nats):
    """The largest lower limit that any two multipliers give, of weights of sum 1, by SciPy."""
    shares, counts = shares[shares > 1e-15], counts[shares > 1e-15]  # others are worth nothing

    def lacking(logs):
        rate, multiplier = np.exp(np.clip(logs, -300.0, 300.0))
        grown = np.expm1(np.minimum(rate * shares, 700.0))
        with np.errstate(divide="ignore"):
            p = np.clip(1.0 / (multiplier * shares) - 1.0 / grown, 0.0, 1.0)
        most = (np.log1p(p * grown) - multiplier * shares * p) @ counts
        return -(rate * mean - nats - most) / multiplier

    scale = math.log(8.0 * nats / float(counts @ shares**2)) / 2
    starts = [(scale + size, scale + size) for size in (-1.2, 0.0, 1.1)]
    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 400}
    found = (minimize(lacking, start, method="Nelder-Mead", options=options) for start in starts)
    least = min(one.fun for one in found)
    return min(mean, max(0.0, -least))


@pytest.mark.parametrize("case", STRATA)
def test_the_limits_of_a_mean_of_rates_are_the_best_that_many_starts_find(case):
    mean, sizes, nats = case
    low, high = of_classes(mean, sizes, nats)
    n = np.array(sizes, float)
    best = best_lower_limit(mean, 1 / (len(n) * n), n, nats)
    assert low <= best + 1e-9
    assert mean - low <= 1.00001 * (mean - best)
    back = of_classes(1 - mean, sizes, nats)
    assert (1 - high, 1 - low) == pytest.approx(back, abs=1e-9)


@pytest.mark.parametrize("case", STRATA)
def test_no_limit_of_a_mean_of_rates_is_wider_than_hoeffding_s(case):
    mean, sizes, nats = case
    width = math.sqrt(nats * sum(1 / size for size in sizes) / 2) / len(sizes)
    low, high = of_classes(mean, sizes, nats)
    assert max(0, mean - width) - 1e-9 <= low <= mean <= high <= min(1, mean + width) + 1e-9


def test_a_mean_of_one_rate_has_the_limits_by_relative_entropy():
    for mean in (0.1, 0.5, 0.98):
        assert of_classes(mean, [1000], NATS) == pytest.approx(
            kl_interval(mean, 1000, NATS), abs=1e-9
        )


def chances_of(rates, sizes):
    """The probability of each pair of counts in two classes."""
    laws = [binom.pmf(np.arange(n + 1), n, p) for n, p in zip(sizes, rates, strict=True)]
    return np.outer(*laws)


each_rates = pytest.mark.parametrize("rates", [(0.5, 0.5), (0.9, 0.2), (0.99, 0.9), (0.05, 0.4)])


@each_rates
@pytest.mark.parametrize("sizes", [(12, 5), (40, 3)])
def test_the_limit_of_a_mean_of_two_rates_fails_as_rarely_as_it_says(rates, sizes):
    """Exact: how often the lower limit is above the mean is a sum over all counts."""
    one, two = (np.arange(size + 1) / size for size in sizes)
    means = ((one[:, None] + two) / 2).round(12)
    different = np.unique(means)
    lows = [of_classes(float(mean), sizes, math.log(10))[0] for mean in different]
    missed = different[np.array(lows) > sum(rates) / 2]
    assert chances_of(rates, sizes)[np.isin(means, missed)].sum() <= 0.1


def test_weights_have_no_unit_and_equal_ones_are_rows():
    weights = np.array([1.0, 2.0, 7.0])
    one = weighted_interval(0.3, weights, [50, 20, 3], NATS)
    assert one == pytest.approx(weighted_interval(0.3, 9 * weights, [50, 20, 3], NATS))
    rows = np.repeat(weights, [50, 20, 3])
    assert one == pytest.approx(weighted_interval(0.3, rows, 1, NATS), abs=1e-6)


def test_a_weighted_mean_of_real_values_is_inside():
    """1,000 runs, seed 41: weights from 1 to 30, values 0, 1/2 or 1, delta .2."""
    rng = np.random.default_rng(41)
    weights = rng.integers(1, 31, 60) ** 1.0
    law = rng.dirichlet([1, 1, 1], 60)
    truth = weights @ (law @ [0, 0.5, 1]) / weights.sum()
    missed = 0
    for _ in range(1000):
        values = (rng.random((60, 1)) > law.cumsum(1)[:, :2]).sum(1) / 2
        mean = float(weights @ values / weights.sum())
        low, high = weighted_interval(mean, weights, 1, math.log(2 / 0.2))
        missed += not low <= truth <= high
    assert missed <= most_failures(1000, 0.2)


def spread_weights():
    rng = np.random.default_rng(0)
    return {
        "one outlier": np.append(rng.uniform(1, 1.5, 20_000), 300.0),
        "log-normal": rng.lognormal(0, 2, 5000),
        "heavy tail": rng.pareto(1.2, 5000) + 1,
        "uniform": rng.random(5000),
        "all sizes of float": np.logspace(-300, 300, 1000),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("kind", spread_weights())
def test_many_weights_are_no_wider_than_by_hoeffding_nor_narrower_than_by_scipy(kind):
    weights = spread_weights()[kind]
    shares = weights / weights.max()
    squares = float((shares**2).sum() / shares.sum() ** 2)
    for mean, nats in itertools.product((0.0, 0.02, 0.5, 1.0), (1e-9, NATS, 40.0)):
        low, high = weighted_interval(mean, weights, 1, nats)
        furthest = math.sqrt(0.5 * nats * squares) * (1 + 1e-9)
        assert max(0.0, mean - furthest) <= low <= mean <= high <= min(1.0, mean + furthest)
        of_rows = shares / shares.sum(), np.ones(len(shares)), nats
        least, most = best_lower_limit(mean, *of_rows), 1 - best_lower_limit(1 - mean, *of_rows)
        assert low <= least + 1e-5 and most - 1e-5 <= high  # of weights that are shared too


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", [[1.0, 5e-324], [1e308, 1e308], [1e308, 5e-324], [5e-324], [3]])
def test_weights_of_any_size_have_limits_around_the_mean(weights):
    for mean, nats in itertools.product(
        (0.0, 1e-300, 1e-9, 0.3, 1 - 1e-16, 1.0), (0.0, 1e-9, NATS, 1e5)
    ):
        low, high = weighted_interval(mean, weights, 1, nats)
        assert 0.0 <= low <= mean <= high <= 1.0


def test_the_band_holds_at_every_threshold():
    """1,000 runs, seed 42: scores are normal, delta .2; the largest distance is at a score."""
    rng = np.random.default_rng(42)
    false, true = roc_band(90, 12, math.log(2 / 0.2))
    missed = 0
    for _ in range(1000):
        off = []
        for n in (90, 12):
            below = ndtr(np.sort(rng.normal(size=n)))  # of the law of each class
            places = np.arange(n)
            off.append(
                max(np.abs(below - places / n).max(), np.abs(below - (places + 1) / n).max())
            )
        missed += off[0] > false or off[1] > true
    assert 20 <= missed <= most_failures(1000, 0.2)


# ---- balanced accuracy: by class, or together ---------------------------------------------------


def by_class(hits, sizes, nats):
    shares = np.array(sizes) ** -0.5 / np.sum(np.array(sizes) ** -0.5)
    limits = [
        rate_interval(count, size, nats - math.log(share))
        for count, size, share in zip(hits, sizes, shares, strict=True)
    ]
    return np.mean(limits, axis=0)


@pytest.mark.parametrize("nats", [0.3, 3.0, 17.0])
@pytest.mark.parametrize("sizes", [(3600, 400), (3960, 40), (2000, 2000), (9, 9, 9), (1,), (5, 1)])
def test_sizes_and_nats_alone_say_which_limits_a_balanced_accuracy_has(sizes, nats):
    usual = [round(0.8 * size) for size in sizes]
    together = of_classes(float(np.mean(np.divide(usual, sizes))), list(sizes), nats)
    is_by_class = np.ptp(by_class(usual, sizes, nats)) < np.ptp(together)
    for rate in (0.0, 0.4, 0.97, 1.0):
        hits = [round(rate * size) for size in sizes]
        expected = by_class(hits, sizes, nats)
        if not is_by_class:
            expected = of_classes(float(np.mean(np.divide(hits, sizes))), list(sizes), nats)
        assert balanced_interval(hits, list(sizes), nats) == pytest.approx(expected, abs=1e-12)
    assert is_by_class or sizes not in ((3960, 40), (3600, 400)) or nats > 3


@each_rates
@pytest.mark.parametrize("sizes", [(60, 5), (40, 3)])
def test_limits_by_class_fail_as_rarely_as_they_say(rates, sizes):
    """Exact: a sum over all counts."""
    chances = chances_of(rates, sizes)
    for nats in (1.0, 3.0):
        limits = [balanced_interval(hits, list(sizes), nats) for hits in np.ndindex(chances.shape)]
        lows, highs = np.reshape(limits, (*chances.shape, 2)).transpose(2, 0, 1)
        assert chances[lows > np.mean(rates)].sum() <= math.exp(-nats)
        assert chances[highs < np.mean(rates)].sum() <= math.exp(-nats)
