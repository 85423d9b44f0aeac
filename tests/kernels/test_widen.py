"""Streams of which few rows move an extreme any more: answered at once, as if row by row."""

import numpy as np
import pytest
import support
from numpy.testing import assert_array_equal
from support import one_by_one, state_of

from radabound_fast import PackedLosses, pack_losses


@pytest.fixture(autouse=True)
def each_kernel(kernel):
    """Each instruction set in turn."""


def losses_of(seed, n_rows, n_samples, movers=()):
    """Thirty rows over and over, so that nothing moves, but for a few rows of their own."""
    rng = np.random.default_rng(seed)
    losses = (rng.random((30, n_samples)) < 0.3)[np.arange(n_rows) % 30]
    for number, row in enumerate(movers):
        losses[row] = rng.random(n_samples) < 0.4 + 0.1 * number
    return losses


def guard_of(n_samples, n_vectors=33, **parameters):
    given = {"epsilon": 0.9, "seed": 5, "n_vectors": n_vectors} | parameters
    return support.guard_of(n_samples, **given)


def assert_same_in_blocks(make, losses, block):
    one, many, packed = make(), make(), pack_losses(losses)
    m = packed.n_samples
    expected = one_by_one(one, [PackedLosses(row, m) for row in packed.words])
    found = []
    for start in range(0, len(packed), block):
        if many.halted:
            break
        found += many.query_many(packed[start : start + block], trace=True)
    assert_array_equal([each.value for each in found], [each.value for each in expected])
    assert_array_equal([each.complexity for each in found], [each.complexity for each in expected])
    assert state_of(many) == state_of(one)


@pytest.mark.parametrize("n_vectors", [1, 8, 9, 17, 32, 40, 72, 100])
@pytest.mark.parametrize("n_samples", [40, 63, 64, 65, 1000, 4095, 4096, 4097, 9000])
def test_blocks_of_still_rows_are_rows_one_by_one(n_samples, n_vectors):
    losses = losses_of(1, 700, n_samples, movers=[400, 401, 533, 699])
    assert_same_in_blocks(lambda: guard_of(n_samples, n_vectors), losses, 256)


@pytest.mark.parametrize("signs", ["stored", "generated"])
@pytest.mark.parametrize("block", [1, 3, 4, 127, 128, 129, 511, 512, 513, 700])
def test_the_size_of_the_blocks_does_not_matter(block, signs):
    losses = losses_of(2, 700, 900, movers=[60, 300, 301, 302, 303, 304, 640])
    assert_same_in_blocks(lambda: guard_of(900, signs=signs), losses, block)


def test_rows_with_a_larger_mean_than_was_priced_are_judged():
    losses = losses_of(4, 600, 3000)
    losses[450] = losses[449] | (np.arange(3000) % 7 == 0)
    given = {"epsilon": 0.1, "bound": "fixed-sequence", "max_queries": 40}
    assert_same_in_blocks(lambda: guard_of(3000, **given), losses, 150)


@pytest.mark.parametrize("bad", [200, 300, 384, 599])
def test_a_row_that_cannot_be_read_changes_nothing(bad):
    packed = pack_losses(losses_of(5, 600, 1000, movers=[250]))
    packed.words[bad, -1] |= np.uint64(1) << np.uint64(63)
    guard = guard_of(1000)
    guard.query_many(packed[:150])
    before = state_of(guard)
    with pytest.raises(ValueError, match=f"in row {bad}"):
        guard.query_many(packed)
    assert state_of(guard) == before


def test_real_valued_rows_go_on_in_units_after_still_bits():
    losses = losses_of(6, 400, 700).astype(np.float64)
    one, many = guard_of(700), guard_of(700)
    many.query_many(losses)
    many.query_many(losses * 0.5)
    many.query_many(losses)
    for row in np.concatenate([losses, losses * 0.5, losses]):
        one.query(row)
    assert state_of(many) == state_of(one)
