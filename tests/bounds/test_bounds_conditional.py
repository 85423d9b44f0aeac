"""Limits of rates given an event, F1, balanced accuracy and AUC: definitions, symmetry, errors."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import beta, binom

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


def by_search(mean, sizes, nats):
    """The lower limit, its multipliers looked for from many starts."""
    steps = 1 / (len(sizes) * np.array(sizes))

    def worse(point):  # logarithms of lambda, and of mu over lambda
        with np.errstate(all="ignore"):
            factor = min(np.exp(point[0]), 600 / steps.max())
            price = factor * np.exp(point[1])
            grown, cost = np.expm1(factor * steps), price * steps
            p = np.clip(1 / cost - 1 / grown, 0, 1)
            most = (np.log1p(p * grown) - cost * p) @ np.array(sizes)
            found = (factor * mean - nats - most) / price
        return -found if math.isfinite(found) else 1.0

    starts = [(a, b) for a in np.linspace(0, 14, 8) for b in np.linspace(-4, 4, 5)]
    found = (minimize(worse, start, method="Nelder-Mead").fun for start in starts)
    return max(0.0, -min(found))


@pytest.mark.parametrize("case", STRATA)
def test_the_limits_of_a_mean_of_rates_are_the_best_that_many_starts_find(case):
    mean, sizes, nats = case
    low, high = of_classes(mean, sizes, nats)
    best = by_search(mean, sizes, nats)
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


def exact_failure(rates, sizes, nats):
    """How often the lower limit is above the mean of two rates: a sum over all counts."""
    one, two = (np.arange(size + 1) for size in sizes)
    chances = np.outer(
        *(binom.pmf(k, len(k) - 1, p) for k, p in zip((one, two), rates, strict=True))
    )
    means = ((one[:, None] / sizes[0] + two / sizes[1]) / 2).round(12)
    different = np.unique(means)
    lows = np.array([of_classes(float(mean), sizes, nats)[0] for mean in different])
    missed = different[lows > sum(rates) / 2]
    return chances[np.isin(means, missed)].sum()


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.9, 0.2), (0.99, 0.9), (0.05, 0.4)])
@pytest.mark.parametrize("sizes", [(12, 5), (40, 3)])
def test_the_limit_of_a_mean_of_two_rates_fails_as_rarely_as_it_says(rates, sizes):
    assert exact_failure(rates, sizes, nats=math.log(10)) <= 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: of_classes(1.2, [3], 1.0), r"mean must be in \[0, 1\], got 1.2"),
        (lambda: weighted_interval(0.2, [1], [0], 1.0), "counts must be integers of at least 1"),
        (lambda: weighted_interval(0.2, [1, 0], 3, 1.0), "weights must be positive and finite"),
        (lambda: weighted_interval(0.2, 1, 3, 1.0), r"a stratum, got shape \(\)"),
        (lambda: roc_band(0, 3, 1.0), "n_negative must be at least 1, got 0"),
        (lambda: of_classes(0.2, [3], -1.0), "nats must not be negative, got -1.0"),
        (lambda: rate_interval(5, 3, 1.0), r"counts must be in \[0, 3\], got 5"),
        (lambda: rate_interval(1, 3, -1.0), "nats must be finite and at least 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_weights_have_no_unit_and_equal_ones_are_rows():
    weights = np.array([1.0, 2.0, 7.0])
    one = weighted_interval(0.3, weights, [50, 20, 3], NATS)
    assert one == pytest.approx(weighted_interval(0.3, 9 * weights, [50, 20, 3], NATS))
    rows = np.repeat(weights, [50, 20, 3])
    assert one == pytest.approx(weighted_interval(0.3, rows, 1, NATS), abs=1e-6)


def test_a_weighted_mean_of_real_values_is_inside():
    """1,000 runs, seed 41: weights from 1 to 30, values 0, 1/2 or 1, delta .2."""
    from scipy.stats import binom

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
    assert missed <= binom.ppf(1 - 1e-6, 1000, 0.2)


def spread_weights():
    rng = np.random.default_rng(0)
    return {
        "one outlier": np.append(rng.uniform(1, 1.5, 20_000), 300.0),
        "log-normal": rng.lognormal(0, 2, 5000),
        "heavy tail": rng.pareto(1.2, 5000) + 1,
        "uniform": rng.random(5000),
        "all sizes of float": np.logspace(-300, 300, 1000),
    }


def best_lower_limit(mean, shares, nats):
    """The largest lower limit that any two multipliers give, of all weights, by SciPy."""

    shares = shares[shares > 1e-15]  # the others are worth nothing

    def limit(logs):
        rate, multiplier = np.exp(np.clip(logs, -300.0, 300.0))
        grown = np.expm1(np.minimum(rate * shares, 700.0))
        p = np.clip(1.0 / (multiplier * shares) - 1.0 / grown, 0.0, 1.0)
        most = np.log1p(p * grown) - multiplier * shares * p
        return (rate * mean - nats - most.sum()) / multiplier

    scale = math.sqrt(8.0 * nats / float(shares @ shares))
    starts = [np.log([size * scale, size * scale]) for size in (0.3, 1.0, 3.0)]
    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 400}
    found = [
        minimize(lambda logs: -limit(logs), start, method="Nelder-Mead", options=options)
        for start in starts
    ]
    return min(mean, max(0.0, *(-one.fun for one in found)))


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
        least = best_lower_limit(mean, shares / shares.sum(), nats)
        most = 1.0 - best_lower_limit(1.0 - mean, shares / shares.sum(), nats)
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
    from scipy.special import ndtr
    from scipy.stats import binom

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
    assert 20 <= missed <= binom.ppf(1 - 1e-6, 1000, 0.2)


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


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.9, 0.2), (0.99, 0.9), (0.05, 0.4)])
@pytest.mark.parametrize("sizes", [(60, 5), (40, 3)])
def test_limits_by_class_fail_as_rarely_as_they_say(rates, sizes):
    """Exact: a sum over all counts."""
    one, two = (np.arange(size + 1) for size in sizes)
    chances = np.outer(
        *(binom.pmf(k, len(k) - 1, p) for k, p in zip((one, two), rates, strict=True))
    )
    for nats in (1.0, 3.0):
        limits = np.array(
            [[balanced_interval([a, b], list(sizes), nats) for b in two] for a in one]
        )
        assert chances[limits[:, :, 0] > np.mean(rates)].sum() <= math.exp(-nats)
        assert chances[limits[:, :, 1] < np.mean(rates)].sum() <= math.exp(-nats)


@pytest.mark.parametrize(
    ("hits", "sizes", "message"),
    [
        ([1], [2, 3], "hits and sizes must be one number a class"),
        ([], [], "hits and sizes must be"),
        ([0], [0], "sizes must be at least 1, got 0"),
        ([3], [2], "hits must be at most their sizes, got 3"),
        ([-1], [2], "hits must be at least 0, got -1"),
    ],
)
def test_hits_of_classes_are_checked(hits, sizes, message):
    with pytest.raises(ValueError, match=message):
        balanced_interval(np.array(hits, int), np.array(sizes, int), 1.0)
