"""Theorems 2, 3, 4 and 6: shape, inverses, and the minimum over the split."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS

LOG_TAILS = {
    "Theorem 2": bounds.rademacher_log_tail,
    "Theorem 3": BOUNDS["bernstein-split"].log_tail,
    "Theorem 4": BOUNDS["bernstein"].log_tail,
    "Theorem 6": BOUNDS["mclt"].log_tail,
    "symmetrised": bounds.symmetrised_log_tail,
}
EXCESSES = {
    "Theorem 3": BOUNDS["bernstein-split"].excess,
    "Theorem 4": BOUNDS["bernstein"].excess,
    "Theorem 6": BOUNDS["mclt"].excess,
    "symmetrised": bounds.symmetrised_excess,
}
# the smallest holdout, one too small, the paper's, and the largest allowed, at both extremes of l
SIZES = [(1, 1), (10, 4), (4000, 32), (2**40, 1), (2**40, 2**23)]

each_theorem = pytest.mark.parametrize("theorem", LOG_TAILS)
each_size = pytest.mark.parametrize(("m", "n_vectors"), SIZES)


@each_theorem
@each_size
def test_nothing_is_claimed_at_an_excess_of_zero_or_below(theorem, m, n_vectors):
    log_tail = LOG_TAILS[theorem]
    nothing = math.log(0.5) if theorem == "Theorem 6" else 0.0
    for excess in (0.0, -0.0, -1e-300, -0.1, -1.0):
        assert log_tail(excess, m, n_vectors) == pytest.approx(nothing, rel=1e-15, abs=0.0)


@each_theorem
@each_size
def test_log_tails_fall_with_a_positive_excess(theorem, m, n_vectors):
    log_tail = LOG_TAILS[theorem]
    values = [log_tail(e, m, n_vectors) for e in np.geomspace(1e-300, 1.0, 2000).tolist()]
    slack = [4e-15 * abs(value) + 1e-318 for value in values]  # rounding, and subnormals
    assert all(b <= a + s for a, b, s in zip(values, values[1:], slack, strict=False))
    assert values[-1] < values[0]


@each_theorem
def test_log_tails_fall_with_samples_and_vectors(theorem):
    log_tail = LOG_TAILS[theorem]
    assert log_tail(0.05, 8000, 32) < log_tail(0.05, 4000, 32) < log_tail(0.05, 4000, 16)


@each_theorem
def test_the_logarithm_does_not_underflow_where_the_tail_would(theorem):
    assert -math.inf < LOG_TAILS[theorem](0.9, 10**9, 1) < -1e7


# a normal tail is never above 1/2, so that Theorem 6 has no excess for the last
@pytest.mark.parametrize(
    ("theorem", "log_delta"),
    [
        (theorem, log_delta)
        for theorem in EXCESSES
        for log_delta in (-1e7, -1e4, -30.0, -2.4, -0.7, -1e-3)
        if theorem != "Theorem 6" or log_delta < math.log(0.5)
    ],
)
@each_size
def test_the_excess_gives_back_the_log_delta_it_was_asked_for(theorem, m, n_vectors, log_delta):
    excess = EXCESSES[theorem](log_delta, m, n_vectors)
    assert LOG_TAILS[theorem](excess, m, n_vectors) == pytest.approx(log_delta, rel=1e-11)


def test_the_mclt_needs_no_excess_for_a_probability_of_a_half_or_more():
    assert BOUNDS["mclt"].excess(math.log(0.5), 4000, 32) == pytest.approx(0.0, abs=1e-18)
    assert BOUNDS["mclt"].excess(math.log(0.9), 4000, 32) == 0.0


def split_on_a_grid(e, m, n_vectors):
    """The least logarithm of the sum over 60,001 shares, crowded towards both ends."""
    half = np.geomspace(1e-9, 0.5, 20_000)
    share = np.unique(np.concatenate([half, 1.0 - half, np.linspace(0.0, 1.0, 20_001)]))
    a = share * e
    return np.logaddexp(
        -2.0 * m * (e - a) ** 2,
        -3.0 * m * n_vectors * a * a / (30.0 + 8.0 * n_vectors * a),
    ).min()


# excesses at which the minimum moves from an end of the interval to its inside, and beyond
@pytest.mark.parametrize("m", [1, 10, 4000, 10**9])
@pytest.mark.parametrize("n_vectors", [1, 32, 4096, 2**23])
def test_the_split_is_the_least_value_on_a_fine_grid(m, n_vectors):
    scale = 1.0 / math.sqrt(m) + math.sqrt(10.0 / (m * n_vectors)) + 8.0 / (3.0 * m)
    for e in scale * np.geomspace(1e-3, 30.0, 20):
        e = min(float(e), 1.0)
        found, on_grid = (
            BOUNDS["bernstein-split"].log_tail(e, m, n_vectors),
            split_on_a_grid(e, m, n_vectors),
        )
        assert found <= on_grid + 1e-12 * abs(on_grid)
        assert found == pytest.approx(on_grid, rel=1e-5)


def test_the_split_may_lie_at_an_end_of_the_interval():
    m, n_vectors, e = 4000, 1, 0.01  # one vector: better to spend nothing on the estimate
    at_zero = math.log1p(math.exp(-2.0 * m * e * e))
    assert BOUNDS["bernstein-split"].log_tail(e, m, n_vectors) == at_zero
    m, n_vectors, e = 10, 2**23, 0.05  # many vectors: better to spend everything on it
    at_e = math.log1p(math.exp(-3.0 * m * n_vectors * e * e / (30.0 + 8.0 * n_vectors * e)))
    assert BOUNDS["bernstein-split"].log_tail(e, m, n_vectors) == at_e


def test_the_split_is_not_clipped_at_one():
    assert BOUNDS["bernstein-split"].log_tail(1e-300, 4000, 32) == math.log(2.0)
    assert BOUNDS["bernstein-split"].log_tail(0.016, 4000, 32) > 0.0


@settings(deadline=None, max_examples=100)
@given(
    log_excess=st.floats(-700.0, 5.0),
    log_samples=st.floats(0.0, 40.0),
    log_vectors=st.floats(0.0, 23.0),
)
def test_the_split_is_found_for_every_size_and_excess(log_excess, log_samples, log_vectors):
    e, m, n_vectors = math.exp(log_excess), int(2**log_samples), int(2**log_vectors)
    alone = (2.0 * m * e * e, 3.0 * m * n_vectors * e * e / (30.0 + 8.0 * n_vectors * e))
    found = BOUNDS["bernstein-split"].log_tail(e, m, n_vectors)
    # no term falls below its value with all the excess; and the ends are among the candidates
    assert -min(alone) * (1.0 + 1e-12) <= found <= math.log1p(math.exp(-max(alone)))
