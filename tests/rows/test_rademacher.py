"""RademacherAverage: estimates from exact extremes, and merging."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support import coins

from radabound_fast import PackedLosses, RademacherAverage, SignMatrix, pack_losses
from radabound_fast.rows import reference


def test_estimates_are_the_definitions():
    losses = coins(0, 50, 300)
    average = RademacherAverage(SignMatrix(300, 20, seed=1))
    average.update(losses)
    sums = reference.signed_sums(reference.signs(1, 20, 300), losses)
    assert_array_equal(average.maxima, sums.max(axis=0))
    assert_array_equal(average.minima, sums.min(axis=0))
    assert average.plain == np.maximum(sums.max(axis=0), 0).sum() / (20 * 300)
    assert average.half_range == (sums.max(axis=0) - sums.min(axis=0)).sum() / (2 * 20 * 300)
    assert average.n_queries == 50


def test_before_the_first_update_there_are_no_extremes():
    average = RademacherAverage(SignMatrix(100, 4, seed=0))
    assert average.plain == average.half_range == 0.0 and average.n_queries == 0
    for name in ["maxima", "minima"]:
        with pytest.raises(ValueError, match="before the first update"):
            getattr(average, name)


def test_one_query_has_no_range():
    average = RademacherAverage(SignMatrix(100, 4, seed=0))
    average.update(coins(1, 1, 100)[0])
    assert average.half_range == 0.0
    assert_array_equal(average.maxima, average.minima)


def test_a_constant_in_every_loss_moves_the_plain_estimate_alone():
    losses = np.random.default_rng(2).integers(0, 2**23, (30, 200)) / 2**24
    low, high = (RademacherAverage(SignMatrix(200, 8, seed=3)) for _ in range(2))
    low.update(losses)
    high.update(losses + 0.5)
    assert high.half_range == low.half_range
    assert high.plain != low.plain


@settings(max_examples=40, deadline=None)
@given(cuts=st.lists(st.integers(0, 40), max_size=5), real=st.booleans(), packed=st.booleans())
def test_the_order_and_the_batches_do_not_matter(cuts, real, packed):
    losses = coins(4, 40, 130).astype(float)
    if real:
        losses[20:] *= 0.5
    whole, parts = (RademacherAverage(SignMatrix(130, 9, seed=5)) for _ in range(2))
    whole.update(losses)
    edges = sorted({0, 40, *cuts})
    batches = [losses[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    for batch in reversed(batches):
        if packed and not real:
            parts.update(pack_losses(batch))
        else:
            parts.update(batch)
    if real and not (losses[20:] == 0).all():
        assert whole._core.unit_shift == 24
    assert parts.plain == whole.plain and parts.half_range == whole.half_range
    assert parts.n_queries == 40


def test_merging_is_what_one_would_have_seen():
    losses = coins(6, 40, 130).astype(float)
    losses[30:] *= 0.75  # units differ between the two
    signs = SignMatrix(130, 9, seed=5)
    whole, first, second = (RademacherAverage(signs) for _ in range(3))
    whole.update(losses)
    first.update(losses[:30])
    second.update(losses[30:])
    for one, other in [(first, second), (second, first)]:
        merged = RademacherAverage(signs)
        merged.merge(RademacherAverage(signs))  # an empty one is the identity
        assert merged.n_queries == 0
        merged.merge(one)
        merged.merge(other)
        assert merged.plain == whole.plain and merged.half_range == whole.half_range
        assert merged.n_queries == 40
    assert first.n_queries == 30 and second.n_queries == 10


def test_merging_needs_the_same_signs():
    average = RademacherAverage(SignMatrix(100, 4, seed=0))
    for other in [
        SignMatrix(100, 4, seed=1),
        SignMatrix(100, 5, seed=0),
        SignMatrix(101, 4, seed=0),
    ]:
        with pytest.raises(ValueError, match="same signs"):
            average.merge(RademacherAverage(other))
    with pytest.raises(TypeError, match="other must be a RademacherAverage, got SignMatrix"):
        average.merge(SignMatrix(100, 4, seed=0))


def test_bad_losses_change_nothing():
    average = RademacherAverage(SignMatrix(100, 4, seed=0))
    average.update(coins(1, 3, 100))
    before = average.plain, average.n_queries
    with pytest.raises(ValueError, match="nan"):
        average.update(np.r_[np.zeros(99), np.nan])
    with pytest.raises(ValueError, match="99"):
        average.update(np.zeros((2, 99)))
    with pytest.raises(ValueError, match="losses must have length 100, got PackedLosses"):
        average.update(pack_losses(np.zeros((2, 99))))
    with pytest.raises(ValueError, match="no bit set past n_samples = 100"):
        average.update(PackedLosses(np.full((3, 2), 2**64 - 1, np.uint64), 100))
    with pytest.raises(TypeError, match="signs must be a SignMatrix, got int"):
        RademacherAverage(3)
    assert (average.plain, average.n_queries) == before


def test_extremes_are_copies():
    average = RademacherAverage(SignMatrix(100, 4, seed=0))
    average.update(coins(1, 3, 100))
    average.maxima[:] = 10**6
    assert average.plain < 1


def test_sums_that_might_overflow_change_nothing():
    signs = SignMatrix(2**21, 2**17, seed=0, signs="generated")
    average = RademacherAverage(signs)
    with pytest.raises(ValueError, match=r"n_vectors \* n_samples < 2\*\*38"):
        average.update(np.full((1, 2**21), 0.5, np.float16))
    assert average.n_queries == 0 and average.plain == 0.0
