"""The sign stream: known answers, and that the signs are fair and independent."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from radabound_fast import SignMatrix
from radabound_fast._kernels.rows import SignStore

# (seed, vector, word): the word.  Computed from the definition in SignMatrix's docstring with
from radabound_fast.rows import reference

# Python integers; mix64(G) = e220a8397b1dcdaf is SplitMix64's published first output.
KNOWN = {
    (0, 0, 0): 0xA706DD2F4D197E6F,
    (0, 0, 1): 0xB382A305F4414F5E,
    (0, 1, 0): 0x249A9FA92118613F,
    (1, 0, 0): 0x5E41AB087439611E,
    (42, 31, 62): 0x5BC92F8A45B36776,
    (2**64 - 1, 1023, 2**20): 0xA88F8C94E93394E2,
}


@pytest.mark.parametrize(("where", "word"), KNOWN.items())
def test_known_words_of_the_stream(kernel, where, word):
    seed, vector, index = where
    for signs in ["stored", "generated"]:
        whole = SignMatrix(64 * 63, 32, seed=seed, signs=signs)
        place = {"first_vector": vector, "first_word": index}
        assert SignStore(seed, 64, 1, stored=signs == "stored", **place).words(0)[0] == word
        if vector < 32 and index < 63:
            assert whole.words(vector)[index] == word


def test_the_published_first_output_of_splitmix64():
    assert reference.mix64(np.atleast_1d(reference.GOLDEN))[0] == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("n_samples", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("n_vectors", [1, 7, 8, 9, 33])
def test_stored_generated_and_reference_signs_are_equal(kernel, n_samples, n_vectors):
    expected = reference.signs(9, n_vectors, n_samples)
    for signs in ["stored", "generated"]:
        matrix = np.asarray(SignMatrix(n_samples, n_vectors, seed=9, signs=signs))
        assert matrix.dtype == np.int8
        assert_array_equal(matrix, expected)


def test_a_longer_or_wider_matrix_has_the_same_beginning():
    small, large = SignMatrix(70, 3, seed=5), SignMatrix(700, 30, seed=5)
    assert_array_equal(np.asarray(small), np.asarray(large)[:3, :70])


@pytest.mark.thorough
def test_signs_are_balanced_and_pairwise_independent():
    """One million signs a vector, 64 vectors, seed 2024.

    Sums over a vector and over the product of two vectors are normal with variance m.  All
    64 + 2016 of them stay within the two-sided normal quantile at 1e-6 / 2080, so that a correct
    program fails with probability 1e-6.
    """
    n_samples, n_vectors = 1_000_000, 64
    signs = np.asarray(SignMatrix(n_samples, n_vectors, seed=2024)).astype(np.float32)
    products = signs @ signs.T  # exact: integers below 2^24
    sums = np.concatenate([signs.sum(axis=1), products[np.triu_indices(n_vectors, 1)]])
    limit = stats.norm.isf(1e-6 / 2 / len(sums)) * np.sqrt(n_samples)
    assert np.abs(sums).max() <= limit


def test_neighbouring_samples_are_independent():
    """Sums of sigma_i sigma_{i+lag}, as above: 64 lags, failing with probability 1e-6."""
    signs = np.asarray(SignMatrix(1_000_000, 1, seed=7))[0].astype(np.int64)
    limit = stats.norm.isf(1e-6 / 2 / 64) * np.sqrt(len(signs))
    for lag in range(1, 65):
        assert abs(np.dot(signs[:-lag], signs[lag:])) <= limit


def test_a_seed_drawn_by_the_system_is_reported_and_differs():
    first, second = SignMatrix(10), SignMatrix(10)  # equal with probability 2^-64
    assert first.seed != second.seed
    assert_array_equal(np.asarray(SignMatrix(10, seed=first.seed)), np.asarray(first))


def test_the_seed_is_not_in_the_repr():
    assert "123456789" not in repr(SignMatrix(10, seed=123456789))


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be at least 1, got 0"),
        ({"n_samples": 2**40 + 1}, ValueError, "n_samples must be at most"),
        ({"n_samples": 10.0}, TypeError, "n_samples must be an integer, got 10.0"),
        ({"n_samples": True}, TypeError, "n_samples must be an integer, got True"),
        ({"n_samples": 10, "n_vectors": 0}, ValueError, "n_vectors must be at least 1, got 0"),
        ({"n_samples": 10, "n_vectors": -3}, ValueError, "n_vectors must be at least 1, got -3"),
        ({"n_samples": 10, "n_vectors": 2**31}, ValueError, "n_vectors must be at most"),
        ({"n_samples": 2**40, "n_vectors": 2**23}, ValueError, "less than 2..62"),
        ({"n_samples": 10, "seed": -1}, ValueError, r"seed must be in \[0, 2\*\*64\), got -1"),
        ({"n_samples": 10, "seed": 2**64}, ValueError, "seed must be in"),
        ({"n_samples": 10, "seed": 1.0}, TypeError, "seed must be an integer, got 1.0"),
        ({"n_samples": 10, "signs": "lazy"}, ValueError, "signs must be one of.*got 'lazy'"),
    ],
)
def test_bad_arguments_are_named(kwargs, error, message):
    with pytest.raises(error, match=message):
        SignMatrix(**kwargs)


def test_numpy_integers_are_fine():
    signs = SignMatrix(np.int32(10), np.uint8(3), seed=np.uint64(2**64 - 1))
    assert signs.shape == (3, 10)


def test_generated_signs_take_no_memory():
    assert SignMatrix(4000, 32, signs="generated").nbytes == 0
    assert SignMatrix(4000, 32).nbytes == 32 * 63 * 8


@pytest.mark.parametrize("name", ["n_samples", "n_vectors", "seed", "shape", "nbytes", "store"])
def test_what_the_signs_follow_from_cannot_be_changed(name):
    matrix = SignMatrix(64, 2, seed=1)
    with pytest.raises(AttributeError, match=f"{name} of a SignMatrix cannot be changed"):
        setattr(matrix, name, getattr(matrix, name))


def test_signs_are_kept_in_whole_strips():
    store = SignStore(0, 100, 3)
    assert store.nbytes == 2 * 8 * 8  # two words, one strip of eight lanes
