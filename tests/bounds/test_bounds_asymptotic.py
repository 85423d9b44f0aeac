"""Intervals by the normal approximation: known answers, and how often they miss with many rows."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest, norm

from radabound_fast import bounds

RNG = np.random.default_rng(41)
NATS = (0.5, 3.0, 5.3, 17.0)


@pytest.mark.parametrize("nats", NATS)
def test_a_mean_has_so_many_standard_errors_on_either_side(nats):
    values = RNG.gamma(2.0, 3.0, 500)
    low, high = bounds.asymptotic_mean_interval(values, nats)
    error = values.std(ddof=1) / math.sqrt(500)
    z = max(0.0, norm.isf(math.exp(-nats)))
    assert (low, high) == pytest.approx((values.mean() - z * error, values.mean() + z * error))
    weighted = bounds.asymptotic_mean_interval(values, nats, weights=np.full(500, 7.0))
    alone = bounds.asymptotic_mean_interval(values, nats, groups=np.arange(500))
    assert weighted == pytest.approx((low, high)) and alone == pytest.approx((low, high))


def test_groups_of_rows_that_are_the_same_count_once():
    values, weights = RNG.random(60), RNG.random(60) + 0.1
    groups = np.arange(180) % 60
    once = bounds.asymptotic_mean_interval(values, 3.0, weights=weights)
    three = bounds.asymptotic_mean_interval(
        np.tile(values, 3), 3.0, weights=np.tile(weights, 3), groups=groups
    )
    assert three == pytest.approx(once)


@pytest.mark.parametrize("nats", NATS[1:])
@pytest.mark.parametrize(("hits", "n"), [(0, 20), (19, 20), (333, 1000), (1000, 1000)])
def test_one_rate_has_wilson_s_limits(hits, n, nats):
    expected = binomtest(hits, n).proportion_ci(1 - 2 * math.exp(-nats), "wilson")
    low, high = bounds.asymptotic_balanced_interval([hits], [n], nats)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    twice = bounds.asymptotic_balanced_interval([hits, hits], [n, n], nats)
    assert twice[1] - hits / n == pytest.approx((high - hits / n) / math.sqrt(2))


@pytest.mark.parametrize("ties", [False, True])
def test_an_area_has_the_variance_of_its_placements(ties):
    positive, negative = RNG.normal(1.0, 1.0, 70), RNG.normal(size=90)
    if ties:
        positive, negative = np.rint(positive), np.rint(negative)
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    error = math.sqrt(wins.mean(1).var(ddof=1) / 70 + wins.mean(0).var(ddof=1) / 90)
    reach = norm.isf(math.exp(-3.0)) * error
    found = bounds.asymptotic_auc_interval(positive, negative, 3.0)
    assert found == pytest.approx((wins.mean() - reach, min(1.0, wins.mean() + reach)))
    other_way = bounds.asymptotic_auc_interval(negative, positive, 3.0)
    assert other_way == pytest.approx((max(0.0, 1 - found[1]), 1 - found[0]))


def test_what_does_not_vary_has_no_limits():
    for found in (
        bounds.asymptotic_mean_interval([0.3] * 8, 3.0),
        bounds.asymptotic_mean_interval([0.3], 3.0),
        bounds.asymptotic_mean_interval([0.3, 0.4], 3.0, groups=[0, 0]),
        bounds.asymptotic_auc_interval([2.0, 3.0], [0.0, 1.0], 3.0),
        bounds.asymptotic_auc_interval([1.0], [0.0], 3.0),
    ):
        assert np.isnan(found).all()
    assert np.isfinite(bounds.asymptotic_mean_interval([0.0, 1.0], 1e6)).all()


# 4,000 runs a case, seed 43: with many rows shares of misses are near what they are called, and
# within .02 of it a share varies by four standard deviations (.0045) at most
@pytest.mark.thorough
@pytest.mark.parametrize("case", ["mean", "balanced", "area"])
def test_with_many_rows_they_miss_about_as_often_as_they_say(case):
    rng, nats, missed = np.random.default_rng(43), math.log(2 / 0.1), 0
    for _ in range(4000):
        if case == "mean":
            truth, found = 1.0, bounds.asymptotic_mean_interval(rng.exponential(size=400), nats)
        elif case == "balanced":
            hits, truth = [rng.binomial(600, 0.9), rng.binomial(100, 0.6)], 0.75
            found = bounds.asymptotic_balanced_interval(hits, [600, 100], nats)
        else:
            truth = float(ndtr(1 / math.sqrt(2)))
            found = bounds.asymptotic_auc_interval(
                rng.normal(1.0, 1.0, 100), rng.normal(size=300), nats
            )
        missed += not found[0] <= truth <= found[1]
    assert missed / 4000 == pytest.approx(0.1, abs=0.02)
    assert missed > 0
