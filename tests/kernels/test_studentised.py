"""Studentised extremes are NumPy's to the last bit: on every kernel, in blocks or row by row."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast._kernels.studentised import raise_maxima
from radabound_fast.rows import reference
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedSums

SEED = 3
BLOCK = 512  # rows to a block on the widest instruction set


def by_numpy(signs, losses, baseline, means, scales):
    """In the order of operations that is documented; exact sums are those of the reference."""
    sums = reference.signed_sums(signs, losses) if losses.dtype == bool else losses @ signs.T
    values = (sums - baseline - means[:, None] * signs.sum(axis=1)) * scales[:, None]
    return np.maximum(values.max(axis=0), 0), np.minimum(values.min(axis=0), 0)


def standards(rng, k):
    """Means and scales of rows, of which some are left out."""
    return rng.random(k), np.where(rng.random(k) < 0.2, 0.0, rng.random(k))


def padded(sums):
    """As `signed_sums` has them: whole strips."""
    return None if sums is None else np.pad(sums, (0, -len(sums) % 8))


def extremes_of(sums, rows, ways, n_threads=1):
    into = [(sums.extremes(padded(base)), means, scales) for base, means, scales in ways]
    sums.update(rows, into, n_threads)
    return [(extremes.highest, extremes.lowest) for extremes, _, _ in into]


# around words, and above a tile of the plan; vectors around strips, groups and digits of sums; rows
# of part of a block, of some blocks, and of a block and a few more
@pytest.mark.parametrize(
    ("n_samples", "n_vectors", "n_rows"),
    [
        (1, 8, 3),
        (63, 33, 700),
        (64, 40, 512),
        (127, 47, 1100),
        (128, 100, 1024),
        (300, 64, 130),
        (513, 100, 1541),
        pytest.param(4000, 129, 1100, marks=pytest.mark.thorough),
        pytest.param(6100, 33, 1030, marks=pytest.mark.thorough),
        pytest.param(70000, 16, 1030, marks=pytest.mark.thorough),
    ],
)
def test_every_kernel_has_the_extremes_of_numpy(kernel, n_samples, n_vectors, n_rows, pack):
    rng = np.random.default_rng(n_samples)
    losses = rng.random((n_rows, n_samples)) < rng.random((n_rows, 1))
    signs = reference.signs(SEED, n_vectors, n_samples)
    base = signs @ (rng.random(n_samples) < 0.3).astype(float)
    ways = [(None, *standards(rng, n_rows)), (base, *standards(rng, n_rows))]
    expected = [by_numpy(signs, losses, 0 if b is None else b, *rest) for b, *rest in ways]
    stored = StudentisedSums(SignMatrix(n_samples, n_vectors, seed=SEED))
    generated = StudentisedSums(SignMatrix(n_samples, n_vectors, seed=SEED, signs="generated"))
    for sums in (stored, generated):
        for n_threads in (1, 2, 3):
            assert_array_equal(extremes_of(sums, pack(losses), ways, n_threads), expected)
    assert_array_equal(extremes_of(stored, pack(losses), ways[1:]), expected[1:])


def test_a_part_that_is_no_copy_and_rows_backwards(kernel, pack):
    rng = np.random.default_rng(5)
    losses = rng.random((1400, 200)) < 0.4
    signs, words = reference.signs(SEED, 64, 200), pack(losses)
    sums = StudentisedSums(SignMatrix(200, 64, seed=SEED))
    for part in (slice(None, None, 2), slice(None, None, -1), slice(3, 900)):
        way = (None, *standards(rng, len(losses[part])))
        expected = by_numpy(signs, losses[part], 0, *way[1:])
        assert_array_equal(extremes_of(sums, words[part], [way])[0], expected)


@pytest.mark.parametrize(("n_samples", "n_rows"), [(65, 30), (500, 40)])
def test_real_valued_losses(kernel, n_samples, n_rows):
    rng = np.random.default_rng(n_rows)
    losses = np.round(rng.random((n_rows, n_samples)) * 2**24) / 2**24
    losses[3], losses[7] = losses[3] < 0.5, 0  # between those that are binary by chance
    signs = reference.signs(SEED, 100, n_samples)
    base = signs @ losses[5]
    ways = [(None, *standards(rng, n_rows)), (base, *standards(rng, n_rows))]
    expected = [by_numpy(signs, losses, 0 if b is None else b, *rest) for b, *rest in ways]
    sums = StudentisedSums(SignMatrix(n_samples, 100, seed=SEED))
    for n_threads in (1, 3):
        found = extremes_of(sums, losses.astype(np.float32), ways, n_threads)
        assert_array_equal(found, expected)


@pytest.mark.parametrize("row", [0, 511, 600, 1300])
def test_a_row_that_cannot_be_read_changes_nothing(kernel, row, pack):
    rng = np.random.default_rng(5)
    words = pack(rng.random((1301, 100)) < 0.4)
    sums = StudentisedSums(SignMatrix(100, 64, seed=SEED))
    extremes = sums.extremes()
    way = (extremes, *standards(rng, 1301))
    sums.update(words, [way])
    before = extremes.highest.copy(), extremes.lowest.copy()
    words[row, -1] |= np.uint64(1) << np.uint64(40)
    for n_threads in (1, 2):
        with pytest.raises(ValueError, match=f"past n_samples = 100, got one in row {row}"):
            sums.update(words, [(extremes, way[1] + 9, way[2] + 9)], n_threads)
    assert_array_equal((extremes.highest, extremes.lowest), before)


def test_extremes_are_widened_and_copies_are_apart(pack):
    rng = np.random.default_rng(5)
    losses = rng.random((900, 100)) < 0.4
    signs, words = reference.signs(SEED, 64, 100), pack(losses)
    means, scales = standards(rng, 900)
    sums = StudentisedSums(SignMatrix(100, 64, seed=SEED))
    extremes = sums.extremes()
    sums.update(words[:0], [(extremes, means[:0], scales[:0])])
    assert not extremes.highest.any() and not extremes.lowest.any()
    for part in (slice(0, 1), slice(1, 600), slice(600, 900)):
        before = extremes.copy()
        sums.update(words[part], [(extremes, means[part], scales[part])])
        assert (before.highest <= extremes.highest).all() and before.highest is not extremes.highest
    expected = by_numpy(signs, losses, 0, means, scales)
    assert_array_equal((extremes.highest, extremes.lowest), expected)


def test_arrays_of_another_shape_are_refused(pack):
    words = pack(np.zeros((3, 100), bool))
    sums = StudentisedSums(SignMatrix(100, 64, seed=SEED))
    for means, scales in [(np.zeros(2), np.zeros(3)), (np.zeros(3), np.zeros(3, np.float32))]:
        with pytest.raises(ValueError, match="arrays must be contiguous float64 of length 3"):
            sums.update(words, [(sums.extremes(), means, scales)])


@pytest.mark.parametrize(("n", "k"), [(8, 1), (1000, 37), (136, 0)])
def test_maxima_of_differences(kernel, n, k):
    rng = np.random.default_rng(n)
    ours, signs = rng.normal(size=(2, n))
    others, (means, scales) = rng.normal(size=(2 * k, n))[::2], standards(rng, k)
    maxima = rng.normal(size=n)
    values = ((ours - others) - means[:, None] * signs) * scales[:, None]
    expected = np.maximum(maxima, values.max(axis=0, initial=-np.inf))
    raise_maxima(maxima, ours, others, means, scales, signs)
    assert_array_equal(maxima, expected)
    with pytest.raises(ValueError, match="others must be"):
        raise_maxima(maxima, ours, others[:, 1:], means, scales, signs)
