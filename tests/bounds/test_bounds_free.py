"""What fixed-sequence answers without signs: stages, promises, intervals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import binom

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS, kl

DELTA = 0.04
# a flat half of no query, of a few, of many; one that is shared among more than it affords
CASES = [(100, 0.04, None), (500, 0.06, None), (4000, 0.04, None), (4000, 0.02, 300)]
each_case = pytest.mark.parametrize(("m", "epsilon", "max_queries"), CASES)


def error_of(free, k):
    """What either side of query k's interval may fail with: the larger share of delta / 2."""
    j = k.bit_length() - 1
    shares = [1.0 / (2**j * (j + 1) * (j + 2))]
    if k <= free.n_flat:
        shares.append(1.0 / free.n_flat)
    return max(shares) * free.delta / 2.0 / 2.0


def within_epsilon(m, epsilon, error):
    """Of every count, whether both its exact limits are within epsilon of the mean."""
    counts = np.arange(m + 1)
    means = counts / m
    truths = np.minimum(means + epsilon, 1.0)
    above = (truths == 1.0) | (binom.cdf(counts, m, truths) <= error)
    return above & above[::-1]  # below in mirror image


@pytest.mark.parametrize("epsilon", [1 - 2.0**-53, 1 - 2.0**-52, 1 - 2.0**-40, 5e-324, 1e-17])
def test_epsilons_next_to_0_and_1_have_their_means(epsilon):
    for budget in (0.0, 1e-9, 0.1, 30.0, 37.0):
        low = kl.kl_free(epsilon, budget)
        assert low == -1.0 or 0.0 <= low <= 0.5
    wide = epsilon > 0.5  # then no mean is withheld, or none answered
    assert kl.kl_free(epsilon, 0.1) == (0.5 if wide else -1.0)


@each_case
def test_a_stage_is_all_queries_of_one_weight_and_has_its_free_means(m, epsilon, max_queries):
    free = bounds.union_free(m, epsilon, DELTA, max_queries)
    assert free.n_flat == (max_queries or bounds.binomial_queries(m, epsilon, DELTA / 2.0))
    asked = 0
    while asked < 3000:
        stage = free.stage(asked)
        last = min(stage.n_queries, 3000)
        errors = {error_of(free, k) for k in range(asked + 1, last + 1)}
        fits = within_epsilon(m, epsilon, max(errors))
        expected = m if fits.all() else int(np.argmin(fits)) - 1
        assert stage.low_count == expected
        b = math.log(1.0 / max(errors)) / m
        assert stage.low_mean == kl.kl_free(epsilon, b) or stage.low_mean == pytest.approx(
            kl.kl_free(epsilon, b), rel=1e-9
        )
        assert len(errors) == 1 or (stage.low_count == -1 and stage.low_mean == -1.0)
        assert all(free.stage(n) == stage for n in (asked, (asked + last) // 2, last - 1))
        asked = stage.n_queries
    assert stage.n_queries == 2**63 - 1 or asked >= 3000


@each_case
def test_all_errors_together_are_at_most_delta(m, epsilon, max_queries):
    """Of two sides and 2^20 queries; the dyadic half leaves 1/21 of itself to those beyond."""
    free = bounds.union_free(m, epsilon, DELTA, max_queries)
    errors = np.exp(-free.nats(np.arange(1, 2**20)))
    some = [1, 2, 3, 100, 1001, 2**19]
    assert errors[np.array(some) - 1] == pytest.approx([error_of(free, k) for k in some], rel=1e-12)
    assert 2.0 * errors.sum() <= DELTA * (1.0 - 1.0 / 42.0)
    if not free.n_flat:
        assert 2.0 * errors.sum() == pytest.approx(DELTA / 2.0 * (1.0 - 1.0 / 21.0), rel=1e-12)


def test_declared_queries_are_answered_whatever_their_means_as_often_as_half_of_delta_affords():
    for epsilon, n_queries, n_real in (
        (0.03, 127, 3),
        (0.04, 44_043, 127),
        (0.05, 71_921_989, 32_767),
    ):
        free = bounds.union_free(4000, epsilon, DELTA)
        assert free.n_queries == free.n_flat == n_queries
        # real-valued losses by relative entropy, within the dyadic half alone
        assert free.end_of(lambda stage: stage.low_mean == 0.5) == n_real
        assert bounds.kl_interval(0.49, 1, free.nats(n_real) / 4000)[1] <= 0.49 + epsilon
    nothing = bounds.union_free(100, 0.04, DELTA)
    assert (nothing.n_queries, nothing.answers_any) == (0, False)
    assert nothing.stage(0) == (2**63 - 1, -1, -1.0)
    assert bounds.union_free(10**9, 0.9, DELTA).n_queries == 2**62


def test_max_queries_shares_the_flat_half_among_them_and_ends_nothing():
    few = bounds.union_free(4000, 0.04, DELTA, 10)
    assert few.n_queries == 2**9 - 1  # by the dyadic half
    assert few.nats(10) < bounds.union_free(4000, 0.04, DELTA).nats(10)
    # also where a float no longer tells the two places apart
    for many in (few, bounds.union_free(4000, 0.5, DELTA, 2**60)):
        at = many.n_flat
        assert many.nats(at) < many.nats(at + 1) == many.nats(np.array([at, at + 1]))[1]
    many = bounds.union_free(4000, 0.04, DELTA, 10**6)
    assert many.end_of(lambda stage: stage.low_count >= 400) >= 10**6 > many.n_queries
    # real-valued losses near 1/2 have need of it: as many as Hoeffding affords
    afforded = bounds.union_queries(4000, 0.04, DELTA / 2.0)
    real = bounds.union_free(4000, 0.04, DELTA, afforded)
    assert real.end_of(lambda stage: stage.low_mean == 0.5) == afforded == 3_622


# ---- intervals ---------------------------------------------------------------------------------


@each_case
@pytest.mark.parametrize("declared", [True, False])
def test_the_interval_of_an_answer_is_that_of_its_place(m, epsilon, max_queries, declared):
    rng = np.random.default_rng(1)
    queries = rng.permutation(np.arange(1, 5 * m))
    means = rng.integers(0, m + 1, queries.size) / m
    row = BOUNDS["fixed-sequence"]
    free = row.free(m, epsilon, 0.1, max_queries)
    lows, highs = row.interval(free, means, queries, epsilon, declared)
    nats = free.nats(queries)
    if declared:
        counts = np.rint(means * m).astype(int)
        expected = bounds.binomial_interval(counts, m, nats)
    else:
        expected = bounds.kl_interval(means, m, nats)
    assert_array_equal(lows, np.maximum(expected[0], np.maximum(means - epsilon, 0.0)))
    assert_array_equal(highs, np.minimum(expected[1], np.minimum(means + epsilon, 1.0)))
    for at in range(20):
        one = row.interval(free, means[at].item(), queries[at].item(), epsilon, declared)
        assert [type(limit) for limit in one] == [float, float]
        assert one == pytest.approx((lows[at], highs[at]), rel=1e-12)
    assert -np.log([error_of(free, int(k)) for k in queries[:50]]) == pytest.approx(nats[:50])


@pytest.mark.parametrize("name", bounds.PAPER_BOUNDS)
def test_the_papers_intervals_are_the_claimed_epsilon_cut_to_0_and_1(name):
    means, queries = np.array([0.02, 0.5, 0.97]), np.array([1, 2, 10**6])
    lows, highs = BOUNDS[name].interval(None, means, queries, 0.05, False)
    assert lows.tolist() == [0.0, 0.45, 0.97 - 0.05]
    assert highs.tolist() == [0.02 + 0.05, 0.55, 1.0]
    assert BOUNDS[name].interval(None, 0.5, 1, 0.05, True) == (0.45, 0.55)


@settings(deadline=None, max_examples=100)
@given(
    m=st.integers(1, 2**40),
    share=st.floats(0.0, 1.0),
    query=st.integers(1, 2**62),
    epsilon=st.floats(1e-6, 0.999),
    delta=st.floats(1e-12, 0.999),
    max_queries=st.one_of(st.none(), st.integers(1, 2**62)),
    declared=st.booleans(),
)
def test_an_interval_holds_its_mean_and_lies_within_epsilon(
    m, share, query, epsilon, delta, max_queries, declared
):
    mean = round(share * m) / m if declared else share
    row = BOUNDS["fixed-sequence"]
    free = row.free(m, epsilon, delta, max_queries)
    low, high = row.interval(free, mean, query, epsilon, declared)
    assert max(mean - epsilon, 0.0) <= low <= mean <= high <= min(mean + epsilon, 1.0)


@pytest.mark.parametrize(
    ("means", "queries", "error", "message"),
    [
        (1.5, 1, ValueError, r"means must be in \[0, 1\], got 1.5"),
        (0.5, [3, -2], ValueError, "queries must be at least 1, got -2"),
        (0.5, 2.0, TypeError, "queries must be integers, got 2.0"),
        (0.0001, 1, ValueError, "a mean of .* must be a multiple of 1/4000, got 0.0001"),
    ],
)
def test_bad_input_is_named(means, queries, error, message):
    free = bounds.union_free(4000, 0.05, 0.1)
    free.interval(0.5, 1, declared=True)
    with pytest.raises(error, match=f"^{message}"):
        free.interval(means, queries, declared=True)
