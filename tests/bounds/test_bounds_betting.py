"""`betting_interval` against unbinned capitals, its symmetry, and simulated coverage."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from support import most_failures

from radabound_fast.bounds import betting_interval, betting_p_value

# standard deviations, one bet each, and the largest share that is staked
SPREADS, LARGEST_STAKE = 2.0 ** np.arange(-1.0, -9.0, -0.5), 1.0 - 2.0**-10

RNG = np.random.default_rng(7)
SCORES = RNG.beta(2, 2, 4000)
LOSSES = {
    "Brier": (SCORES - (RNG.random(4000) < SCORES)) ** 2,
    "absolute error": np.clip(RNG.normal(0.15, 0.1, 4000), 0, 1),
    "0-1": (RNG.random(300) < 0.2).astype(float),
    "uniform": RNG.random(30),
    "one sample": np.array([0.3]),
    "none": np.zeros(100),
    "all": np.ones(100),
    "equal": np.full(100, 1 / 3),
}


def in_order(losses):
    """In steps of about .618 m, which with m have no common factor."""
    m = len(losses)
    step = max(1, int(0.6180339887498949 * m))
    while math.gcd(step, m) != 1:
        step += 1
    return np.asarray(losses, float)[np.arange(m) * step % m]


def capital_of(losses, nats, binned=False):
    """The logarithm of the capital against "the expectation is at most mu", as a function of mu."""
    x, m = in_order(losses), len(losses)
    squares, mean, stakes = 0.25, 0.5, []
    for i, value in enumerate(x):
        stakes.append(math.sqrt(2 * nats / m) / math.sqrt(squares / (i + 1)))
        mean += (value - mean) / (i + 2)
        squares += (value - mean) ** 2
    values, counts = x, np.ones(m)
    if binned:
        values = np.linspace(0, 1, 257)
        counts = np.maximum(0, 1 - np.abs(x[:, None] - values) * 256).sum(axis=0)

    def capital(mu):
        adaptive = np.log1p(np.minimum(stakes, LARGEST_STAKE / mu) * (x - mu)).sum()
        bets = np.minimum(math.sqrt(2 * nats / m) / SPREADS, LARGEST_STAKE / mu)
        grown = np.log1p(bets[:, None] * (values - mu)) @ counts
        return float(logsumexp([adaptive, *grown], b=[0.9, *[0.1 / 16] * 16]))

    return capital


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("nats", [1.0, math.log(20), math.log(2e4)])
def test_no_mean_outside_is_left_in_by_the_exact_capital_less_than_the_bins_cost(name, nats):
    losses = LOSSES[name]
    low, high = betting_interval(losses, nats)
    for limit, values in ((low, losses), (1 - high, 1 - losses)):
        capital = capital_of(values, nats)
        # sound: where the bins rule a mean out the exact capital does
        if limit > 0:
            assert capital(limit * (1 - 1e-9)) >= nats
        # sharp: a bin of 1/256 adds a variance of at most 4e-6
        cost = 2e-3 * max(1.0, nats) / math.sqrt(len(losses)) + 1e-6
        if values.mean() > limit + cost:
            assert capital(limit + cost) < nats


@pytest.mark.parametrize("name", LOSSES)
def test_the_upper_limit_is_the_lower_one_of_1_minus_the_losses(name):
    low, high = betting_interval(LOSSES[name], 4.0)
    below, above = betting_interval(1 - LOSSES[name], 4.0)
    assert (below, above) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_is_inside_and_the_limits_in_0_to_1(name):
    low, high = betting_interval(LOSSES[name], 4.0)
    assert 0 <= low <= LOSSES[name].mean() + 1e-12 and LOSSES[name].mean() - 1e-12 <= high <= 1


def binned_limit(losses, nats):
    """The lower limit by halves."""
    low, high, capital = 0.0, float(np.mean(losses)), capital_of(losses, nats, binned=True)
    for _ in range(40 if high else 0):
        mu = (low + high) / 2
        low, high = (mu, high) if capital(mu) >= nats else (low, mu)
    return low


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("nats", [0.3, 3.0, 17.0])
def test_the_compiled_limits_are_those_of_the_binned_capital(name, nats):
    losses = LOSSES[name]
    low, high = betting_interval(losses, nats)
    for limit, values in ((low, losses), (1 - high, 1 - losses)):
        reference, mean = binned_limit(values, nats), float(np.mean(values))
        assert limit <= reference + 1e-11
        assert limit >= reference - 1e-5 * (mean - reference) - 1e-11


# one under, at and over the 64 values of a step and its 8 lanes, a prime, and orders of every step
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 129, 191, 1000])
def test_the_compiled_capital_is_the_reference_at_awkward_sizes(n):
    losses = np.random.default_rng(n).beta(1, 3, n)
    for nats in (0.1, 3.0, 40.0):
        capital = capital_of(losses, nats, binned=True)
        for mu in (1e-6, 0.01, 0.2, 0.5, 0.999):
            expected = min(1.0, math.exp(-capital(mu)))
            assert betting_p_value(losses, mu, nats) == pytest.approx(expected, rel=1e-9)


def test_no_nats_leave_the_mean_and_a_view_is_read_as_it_is():
    losses = LOSSES["Brier"]
    assert betting_interval(losses, 0.0) == pytest.approx((losses.mean(), losses.mean()))
    assert betting_interval(losses[::-1], 3.0) == betting_interval(losses[::-1].copy(), 3.0)
    assert betting_interval(losses[::3], 3.0) == betting_interval(losses[::3].copy(), 3.0)
    assert betting_interval([0, 1, 1], 1.0) == betting_interval([0.0, 1.0, 1.0], 1.0)


def test_a_sorted_file_has_the_limits_of_a_shuffled_one_or_nearly():
    for losses in (LOSSES["Brier"], LOSSES["absolute error"]):
        for nats in (3.0, 17.0):
            widths = [np.ptp(betting_interval(each, nats)) for each in (losses, np.sort(losses))]
            assert widths[1] == pytest.approx(widths[0], rel=0.03)


def test_little_variance_makes_it_narrower_than_the_relative_entropy():
    # upper sides at 1,000 keys; relative entropy gives .0288 and .0265
    nats = math.log(2 / 0.1 * 1000)
    for name, most in (("Brier", 0.0150), ("absolute error", 0.0076)):
        assert betting_interval(LOSSES[name], nats)[1] - LOSSES[name].mean() < most


# 400 runs a case; a run is outside with probability at most .1, so that a correct program has
# more than the quantile below with probability at most 1e-6 a case
@pytest.mark.thorough
@pytest.mark.parametrize("n_samples", [30, 200, 1000])
@pytest.mark.parametrize("law", ["beta", "rare", "skewed"])
def test_the_interval_holds_the_truth(n_samples, law):
    rng = np.random.default_rng(2026)
    outside = 0
    for _ in range(400):
        if law == "beta":
            losses, truth = rng.beta(2, 8, n_samples), 0.2
        elif law == "rare":
            losses, truth = (rng.random(n_samples) < 0.01).astype(float), 0.01
        else:
            losses, truth = rng.random(n_samples) ** 4, 0.2
        low, high = betting_interval(losses, math.log(2 / 0.1))
        outside += not low <= truth <= high
    assert outside <= most_failures(400, 0.1)


def test_a_p_value_says_what_the_interval_of_its_bets_says():
    """At error exp(-nats) the lower limit is where the p-value of the same bets is exp(-nats)."""
    losses = np.random.default_rng(2).beta(2, 9, 500)
    for nats in (1.0, 3.0, 9.0):
        low, _ = betting_interval(losses, nats)
        assert betting_p_value(losses, low - 1e-9, nats) <= math.exp(-nats)
        assert betting_p_value(losses, low + 1e-6, nats) >= math.exp(-nats)
    assert betting_p_value(losses, 0.9, 3.0) == 1.0
    assert betting_p_value(np.ones(4000), 0.01, 3.0) == 0.0  # below the smallest float


def test_p_values_are_rarely_small():
    """2,000 runs, seed 4: more than 130 at .05 or less have probability 1 e-3 if they hold it."""
    rng = np.random.default_rng(4)
    found = [betting_p_value(rng.beta(2, 6, 100), 0.25, 3.0) for _ in range(2000)]
    assert sum(p <= 0.05 for p in found) <= 130
    assert sum(p <= 0.05 for p in found) > 0
