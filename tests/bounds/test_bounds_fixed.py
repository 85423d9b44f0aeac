"""Bounds for a class fixed in advance: symmetrised, self-bounding, union, relative entropy."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS


def exponents_of(lam, e, c, n_vectors):
    """The symmetrised bound's exponent per sample at a lambda, as in its docstring."""
    y = lam**2 / 2.0
    return np.log1p(np.expm1(y) / 2.0) - lam * e + y * c / n_vectors


# one sample, and the most that are allowed
@pytest.mark.parametrize("m", [1, 2**40])
@pytest.mark.parametrize("n_vectors", [1, 2, 32, 2**23])
@pytest.mark.parametrize(("estimator", "c"), [("half-range", 1.0), ("plain", 4.0)])
def test_the_symmetrised_tail_is_the_infimum_over_lambda(m, n_vectors, estimator, c):
    for e in (1e-6, 0.01, 0.3, 0.7, 1.0):
        found = bounds.symmetrised_log_tail(e, m, n_vectors, estimator=estimator) / m
        on_grid = exponents_of(e * np.geomspace(0.1, 4.0, 100_001), e, c, n_vectors).min()
        assert found <= on_grid * (1.0 - 1e-14)
        assert found == pytest.approx(on_grid, rel=1e-8, abs=0.0)


@pytest.mark.parametrize("estimator", ["half-range", "plain"])
def test_the_symmetrised_bound_is_never_above_mcdiarmid_for_losses_in_range(estimator):
    for n_vectors, e in product((1, 2, 32, 256, 4096), np.linspace(1e-3, 1.0, 100).tolist()):
        symmetrised = bounds.symmetrised_log_tail(e, 4000, n_vectors, estimator=estimator)
        # McDiarmid's excess at the symmetrised bound's own probability
        mcdiarmid = bounds.mcdiarmid_excess(symmetrised, 4000, n_vectors, estimator=estimator)
        assert mcdiarmid >= e


@pytest.mark.parametrize(
    ("theorem", "estimator", "most"),
    [
        (BOUNDS["bernstein"].log_tail, "plain", 23),
        (BOUNDS["bernstein"].log_tail, "half-range", 41),
        (BOUNDS["bernstein-split"].log_tail, "plain", 87),
        (BOUNDS["bernstein-split"].log_tail, "half-range", 109),
    ],
)
def test_the_symmetrised_bound_implies_theorems_3_and_4_up_to_a_number_of_vectors(
    theorem, estimator, most
):
    (row,) = (row for row in bounds.BOUNDS.values() if row.log_tail is theorem)
    assert row.proved_up_to[estimator] == most

    def implied(e, m, n_vectors):
        proved = bounds.symmetrised_log_tail(e, m, n_vectors, estimator=estimator)
        return proved <= theorem(e, m, n_vectors) * (1.0 - 1e-13)

    excesses = [*np.geomspace(1e-6, 0.01, 30).tolist(), *np.linspace(0.02, 1.0, 50).tolist()]
    for m, n_vectors in product((1, 4000, 10**12), {1, 2, 9, most // 2, most}):
        assert all(implied(e, m, n_vectors) for e in excesses)
    assert not all(implied(e, 10**12, most + 1) for e in excesses)


sizes = {
    "m": st.integers(1, 2**40),
    "n_vectors": st.integers(1, 2**23),
    "delta": st.floats(1e-300, 0.999),
}


@settings(deadline=None, max_examples=200)
@given(complexity=st.floats(0.0, 0.5), largest_mean=st.floats(0.0, 1.0), **sizes)
def test_the_budget_is_the_inverse_of_the_half_width(complexity, largest_mean, m, n_vectors, delta):
    width = bounds.low_error_half_width(complexity, largest_mean, m, n_vectors, delta)
    if width < 1.0:
        back = bounds.low_error_budget(width, largest_mean, m, n_vectors, delta)
        assert back == pytest.approx(complexity, rel=1e-9, abs=1e-14)


def test_the_budget_is_negative_where_complexity_0_is_too_wide():
    assert bounds.low_error_budget(0.01, 0.02, 4000, 256, 0.1) < 0.0
    width = bounds.low_error_half_width(0.0, 0.5, 4000, 256, 0.1)
    lacking = bounds.low_error_budget(width - 0.004, 0.5, 4000, 256, 0.1)
    assert lacking == pytest.approx(-0.002)


def test_the_low_error_half_width_grows_with_complexity_and_largest_mean():
    grid = np.linspace(0.0, 1.0, 201).tolist()
    for m, n_vectors in ((4000, 256), (4000, 32), (10, 1)):
        for fixed in (0.0, 0.01, 0.3):
            by_mean = [bounds.low_error_half_width(fixed, w, m, n_vectors, 0.1) for w in grid]
            by_complexity = [bounds.low_error_half_width(c, fixed, m, n_vectors, 0.1) for c in grid]
            assert all(a <= b + 1e-15 for a, b in pairwise(by_mean))
            assert all(a < b for a, b in pairwise(by_complexity))


def divergence(p, q):
    """kl(p, q) as its definition has it."""
    terms = ((p, q), (1.0 - p, 1.0 - q))
    return sum(a * math.log(a / b) if b > 0.0 else math.inf for a, b in terms if a > 0.0)


@settings(deadline=None, max_examples=300)
@given(mean=st.floats(0.0, 1.0), budget=st.floats(0.0, 10.0, allow_subnormal=False))
def test_kl_limits_enclose_the_mean_within_hoeffdings(mean, budget):
    low, high = bounds.kl_interval(mean, 1, budget)
    hoeffding = math.sqrt(budget / 2.0) + 1e-14  # limits are rounded outwards
    assert max(0.0, mean - hoeffding) <= low <= mean <= high <= min(1.0, mean + hoeffding)


@settings(deadline=None, max_examples=300)
@given(mean=st.floats(0.1, 0.9), budget=st.floats(1e-4, 0.5))
def test_the_divergence_at_a_kl_limit_is_the_budget(mean, budget):
    low, high = bounds.kl_interval(mean, 1, budget)
    assert divergence(mean, high) == pytest.approx(budget, rel=1e-9)
    assert divergence(mean, low) == pytest.approx(budget, rel=1e-9)
    mirrored = 1.0 - bounds.kl_interval(1.0 - mean, 1, budget)[0]
    assert high == pytest.approx(mirrored, rel=1e-12)


@settings(deadline=None, max_examples=200)
@given(
    answer=st.floats(-0.1, 1.1),
    budget=st.floats(1e-8, 0.01),
    epsilon=st.floats(0.001, 0.3),
    share=st.floats(-1.0, 1.0),
)
def test_every_mean_within_the_kl_tolerance_has_its_limits_within_epsilon(
    answer, budget, epsilon, share
):
    tau = bounds.kl_tolerance(answer, budget, epsilon)

    def fits(mean, slack):
        low, high = bounds.kl_interval(min(max(mean, 0.0), 1.0), 1, budget)
        return answer - epsilon - slack <= low and high <= answer + epsilon + slack

    if tau < 0.0:
        assert tau == -1.0 and not fits(answer, -1e-12)
        return
    assert fits(answer + share * tau, 1e-12)
    wider = tau + 1e-6
    assert tau == 1.0 or not (fits(answer - wider, -1e-9) and fits(answer + wider, -1e-9))


def test_union_weights_sum_to_at_most_1():
    # each k fails with probability w_k delta = 2 exp(-2 m width^2)
    def weight(k, max_queries=None):
        width = bounds.union_half_width(k, 4000, 0.1, max_queries=max_queries)
        return 2.0 * math.exp(-2.0 * 4000 * width * width) / 0.1

    assert 0.999 < sum(weight(k) for k in range(1, 2000)) < 1.0
    assert sum(weight(k, 50) for k in range(1, 51)) == pytest.approx(1.0, rel=1e-12)
    # the dyadic ones: all queries before 2^j leave 1/(j+1)
    dyadic = np.exp(-bounds.dyadic_code(np.arange(1, 2**12)))
    assert dyadic.sum() == pytest.approx(1.0 - 1.0 / 13.0, rel=1e-12)
    assert (np.diff(dyadic) <= 0.0).all() and len(set(dyadic)) == 12


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("m", [1, 100, 4000])
@pytest.mark.parametrize("epsilon", [0.02, 0.04, 0.3, 0.9])
def test_the_union_affords_no_query_more_than_its_half_width_allows(flat, m, epsilon):
    afforded = bounds.union_queries(m, epsilon, 0.1, flat=flat)
    if afforded > 2**50:
        assert afforded == 2**62 or m * epsilon**2 < 25.0
        return

    def width(k):
        return bounds.union_half_width(k, m, 0.1, max_queries=k if flat else None)

    assert width(afforded + 1) > epsilon
    assert afforded == 0 or width(afforded) <= epsilon
