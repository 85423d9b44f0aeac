"""Packing against plain NumPy: every kernel of this CPU, dtype, byte order, stride and size."""

import fractions
import pickle
import re
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from support import Tensor

from radabound_fast import PackedLosses, pack_losses
from radabound_fast._kernels.rows import kernels, pack_rows, rows_in_units
from radabound_fast.rows.packing import as_values, as_words

# A word is 64 samples, and a row shorter than one is packed value by value: around 64 and its
# multiples the last word is full, empty or has one bit.  512 fills one AVX-512 register with bytes,
# 4096 one tile of the scanner; 1000 and 4000 end in the middle of a word; 65537 goes past 16 bits.
SIZES = [1, 7, 8, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1000, 4000, 4096, 65537]

FLOATS = ["e", "f", "d"]
DTYPES = [order + char for char in ["?", *"bBhHiIlLqQ", *FLOATS] for order in "<>"]


def words_of(bits):
    """What the layout promises, by numpy.packbits."""
    packed = np.packbits(bits, axis=-1, bitorder="little")
    n_words = -(-bits.shape[-1] // 64)
    words = np.zeros((*bits.shape[:-1], 8 * n_words), np.uint8)
    words[..., : packed.shape[-1]] = packed
    return words.view("<u8").astype(np.uint64)


def random_bits(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def layouts(values):
    """The same rows, in every way in which they can lie in memory."""
    n_rows, n_samples = values.shape
    yield values
    yield np.asfortranarray(values)
    yield np.repeat(values, 3, axis=1)[:, ::3]
    yield values[:, ::-1].copy()[:, ::-1]
    yield values[::-1].copy()[::-1]
    raw = np.zeros(values.nbytes + 1, np.uint8)  # starts at an odd address
    raw[1:] = np.frombuffer(values.tobytes(), np.uint8)
    yield raw[1:].view(values.dtype).reshape(values.shape)
    frozen = values.copy()
    frozen.flags.writeable = False
    yield frozen


# ---- losses of 0 and 1 -------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", SIZES)
def test_every_kernel_packs_losses_of_every_dtype_as_packbits_does(kernel, n_samples):
    bits = random_bits(2, n_samples)
    for dtype in DTYPES:
        assert_array_equal(pack_rows(bits.astype(dtype), kernel=kernel), words_of(bits))


@pytest.mark.parametrize("n_samples", [1, 63, 64, 65, 200])
def test_every_kernel_packs_rows_wherever_they_lie(kernel, n_samples):
    bits = random_bits(3, n_samples)
    for dtype in DTYPES:
        for values in layouts(bits.astype(dtype)):
            assert_array_equal(pack_rows(values, kernel=kernel), words_of(bits))


def test_a_broadcast_row_has_stride_zero_and_is_packed_all_the_same(kernel):
    for value in (0, 1):
        row = np.broadcast_to(np.float32(value), (2, 130))
        assert_array_equal(pack_rows(row, kernel=kernel), words_of(row == 1))


@settings(max_examples=200, deadline=None)
@given(
    dtype=st.sampled_from(DTYPES),
    n_samples=st.integers(1, 300),
    n_rows=st.integers(0, 4),
    step=st.integers(-3, 3).filter(bool),
    by_columns=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_packing_does_not_depend_on_how_the_values_are_stored(
    dtype, n_samples, n_rows, step, by_columns, seed
):
    bits = random_bits(n_rows, n_samples, seed=seed)
    spread = np.ones((n_rows, n_samples * abs(step)), dtype, order="F" if by_columns else "C")
    values = spread[:, ::step]
    values[...] = bits
    for name, usable in kernels():
        if usable:
            assert_array_equal(pack_rows(values, kernel=name), words_of(bits))


def test_nothing_around_a_row_is_looked_at(kernel):
    for dtype in DTYPES[2:]:
        for n_samples in (1, 63, 64, 65, 129):
            around = np.full((3, n_samples + 256), 2, dtype)
            around[:, 128:-128] = 1
            words = pack_rows(around[:, 128:-128], kernel=kernel)
            assert_array_equal(words, words_of(np.ones((3, n_samples), bool)))


def test_minus_zero_is_zero(kernel):
    for dtype in FLOATS:
        assert_array_equal(pack_rows(np.full(70, -0.0, dtype), kernel=kernel), [0, 0])


@pytest.mark.parametrize("n_samples", [1, 64, 65, 200])
def test_the_first_value_that_is_no_loss_is_named_wherever_it_stands(kernel, n_samples):
    for dtype in DTYPES[2:]:
        wrong = [2, 100, -1 if np.dtype(dtype).kind != "u" else 3]
        if dtype[1] in FLOATS:
            wrong += [np.nan, np.inf, -np.inf, 1.5]
        for index in {0, n_samples // 2, n_samples - 1}:
            for value in wrong:
                losses = np.zeros((2, n_samples), dtype)
                losses[1, index:] = value
                message = re.escape(
                    f"losses must be in [0, 1], got {losses[1, index].item()!r} "
                    f"at row 1, sample {index}"
                )
                with pytest.raises(ValueError, match=message):
                    pack_rows(losses, kernel=kernel)
                with pytest.raises(ValueError, match=f"at sample {index}$"):
                    pack_rows(losses[1], kernel=kernel)


# ---- losses between 0 and 1 --------------------------------------------------------------


def awkward_losses(n_samples, dtype):
    """Random ones, and the middles between two multiples of 2^-24, which go to the even one."""
    rng = np.random.default_rng(n_samples)
    losses = rng.random((2, n_samples)).astype(dtype)
    middles = (rng.integers(0, 2**9, n_samples) + 0.5) / 2**24
    losses[1] = middles.astype(dtype)
    losses[:, 0], losses[:, -1] = -0.0, 1.0
    return losses


@pytest.mark.parametrize("n_samples", SIZES)
def test_every_kernel_rounds_losses_to_the_nearest_multiple_ties_to_even(kernel, n_samples):
    for dtype in FLOATS:
        losses = awkward_losses(n_samples, dtype)
        expected = np.zeros((2, -(-n_samples // 64) * 64), np.int32)
        expected[:, :n_samples] = np.rint(losses.astype(np.float64) * 2**24)
        assert_array_equal(rows_in_units(losses, kernel=kernel), expected)
        swapped = losses.astype(losses.dtype.newbyteorder())
        for values in layouts(swapped):
            assert_array_equal(rows_in_units(values, kernel=kernel), expected)
            if n_samples > 200:
                break


@pytest.mark.parametrize("n_samples", [1, 64, 65, 200])
def test_the_first_value_outside_0_and_1_is_named(kernel, n_samples):
    for dtype in FLOATS:
        above, below = np.nextafter(np.array([1, 0], dtype), np.array([2, -1], dtype)).tolist()
        for value in (above, below, np.nan, np.inf, -np.inf, 2.0, -1.0):
            for index in {0, n_samples // 2, n_samples - 1}:
                losses = np.full(n_samples, 0.5, dtype)
                losses[index:] = value
                with pytest.raises(ValueError, match=rf"in \[0, 1\], got .* at sample {index}$"):
                    rows_in_units(losses, kernel=kernel)


def test_longdouble_is_rounded_once():
    just_above_a_middle = np.longdouble(0.5) / 2**24 + np.longdouble(2) ** -80
    if float(just_above_a_middle) == 0.5 / 2**24 and just_above_a_middle > 0.5 / 2**24:
        # by way of float64 this would become the middle, and then the even neighbour: 0
        assert as_values(np.array([just_above_a_middle])).tolist() == [2**-24]
    assert as_values(np.array([0, 1, 0.25], np.longdouble)).tolist() == [0.0, 1.0, 0.25]
    just_above_1 = np.nextafter(np.longdouble(1), np.longdouble(2))
    with pytest.raises(ValueError, match=r"in \[0, 1\], got .* at sample 1$"):
        as_values(np.array([0, just_above_1]))


# ---- what users have ---------------------------------------------------------------------


class OnAnotherDevice:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("this tensor is not in main memory")


BITS = [True, False, True, True, False]


@pytest.mark.parametrize(
    "losses",
    [
        BITS,
        tuple(BITS),
        [1, 0, 1.0, True, np.float32(0)],
        np.array(BITS),
        np.array(BITS, object),
        np.array(BITS, np.longdouble),
        np.array(BITS, ">i8"),
        np.ma.masked_array(BITS, mask=False),
        Tensor(np.array(BITS, np.float32)),
        memoryview(bytes(BITS)),
    ],
    ids=lambda losses: type(losses).__name__,
)
def test_losses_may_come_as(losses):
    assert_array_equal(pack_losses(losses).words, [0b01101])


def test_a_plain_array_is_taken_without_a_copy():
    for dtype in DTYPES:
        values = np.zeros((2, 5), dtype)
        assert as_values(values, n_samples=5, ndim=2) is values
        assert np.shares_memory(as_values(values[:, ::-2], ndim=2), values)


def test_a_memory_mapped_file_is_taken_without_a_copy(tmp_path):
    bits = random_bits(20, 100)
    for dtype in (np.uint8, ">f8"):
        np.save(tmp_path / "losses.npy", bits.astype(dtype))
        mapped = np.load(tmp_path / "losses.npy", mmap_mode="r")
        assert np.shares_memory(as_values(mapped, ndim=2), mapped)
        assert_array_equal(pack_losses(mapped).words, words_of(bits))


@pytest.mark.parametrize(
    "losses",
    [
        [0.0, 0.5, 1.0],
        np.array([0, 0.5, 1], object),
        np.array([0, 0.5, 1], np.longdouble),
        Tensor(np.array([0, 0.5, 1])),
    ],
    ids=lambda losses: type(losses).__name__,
)
def test_real_valued_losses_are_values_but_cannot_be_packed(losses):
    assert as_values(losses, n_samples=3).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="losses must be 0 or 1 to be packed, got 0.5 at sample 1"):
        pack_losses(losses)


RAGGED = [[0, 1], [0]]

BAD = [
    ([0, np.nan], ValueError, "losses must be in [0, 1], got nan at sample 1"),
    ([0, np.inf], ValueError, "losses must be in [0, 1], got inf at sample 1"),
    ([0, -1], ValueError, "losses must be in [0, 1], got -1 at sample 1"),
    ([0, 2], ValueError, "losses must be in [0, 1], got 2 at sample 1"),
    ([[0, 1], [0, 2]], ValueError, "losses must be in [0, 1], got 2 at row 1, sample 1"),
    (np.array([0, 1.5], object), ValueError, "losses must be in [0, 1], got 1.5 at sample 1"),
    (np.array([0, 1.5], "g"), ValueError, "losses must be in [0, 1], got 1.5 at sample 1"),
    (np.array([[0, 1], [0, np.nan]], "g"), ValueError, "got nan at row 1, sample 1"),
    ([0, 2**70], ValueError, f"losses must be in [0, 1], got {2**70} at sample 1"),
    ([], ValueError, "losses must not be empty, got shape (0,)"),
    (np.zeros((3, 0)), ValueError, "losses must not be empty, got shape (3, 0)"),
    (1, ValueError, "losses must have one or two dimensions, got shape ()"),
    (None, ValueError, "losses must have one or two dimensions, got shape ()"),
    (np.zeros((2, 2, 2)), ValueError, "must have one or two dimensions, got shape (2, 2, 2)"),
    (RAGGED, ValueError, "losses must have rows of one length, got a ragged sequence"),
    (
        np.ma.masked_array([0, 1], [False, True]),
        ValueError,
        "no masked entries, got one at sample 1",
    ),
    (
        [[0, 1], np.ma.masked_array([0, 1], [False, True])],
        ValueError,
        "no masked entries, got one at row 1, sample 1",
    ),
    ([0, None], ValueError, "losses must have no missing values, got one at sample 1"),
    ([[0, 1], [None, 1]], ValueError, "must have no missing values, got one at row 1, sample 0"),
    ([0, 1j], TypeError, "losses must be real numbers, got dtype complex128"),
    (np.zeros(2, "M8[s]"), TypeError, "losses must be real numbers, got dtype datetime64[s]"),
    (np.zeros(2, "m8[s]"), TypeError, "losses must be real numbers, got dtype timedelta64[s]"),
    (["0", "1"], TypeError, "losses must be real numbers, got dtype <U1"),
    ([b"0"], TypeError, "losses must be real numbers, got dtype |S1"),
    (np.zeros(2, "i4,i4"), TypeError, "losses must be real numbers, got dtype [('f0'"),
    ([0, datetime(2020, 1, 1)], TypeError, "losses must be real numbers, got datetime.datetime"),
    (
        [0, fractions.Fraction(1, 2)],
        TypeError,
        "must be real numbers, got Fraction(1, 2) at sample 1",
    ),
    ([{}, {}], TypeError, "losses must be real numbers, got {} at sample 0"),
    (OnAnotherDevice(), TypeError, "losses must be readable by NumPy: this tensor is not in main"),
]


@pytest.mark.parametrize(("losses", "error", "message"), BAD, ids=[case[2] for case in BAD])
def test_bad_losses_are_refused_in_one_clear_sentence(losses, error, message):
    with pytest.raises(error, match=re.escape(message)):
        pack_losses(losses)


@pytest.mark.parametrize(
    ("shape", "ndim", "message"),
    [
        ((4,), 1, "losses must have length 5, got shape (4,)"),
        ((5, 1), 1, "losses must have one dimension, got shape (5, 1)"),
        ((1, 5), 1, "losses must have one dimension, got shape (1, 5)"),
        ((5,), 2, "losses must have two dimensions, got shape (5,)"),
        ((5, 4), 2, "losses must have length 5, got shape (5, 4)"),
    ],
)
def test_losses_of_another_shape_are_refused(shape, ndim, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        as_values(np.zeros(shape), n_samples=5, ndim=ndim)


# ---- packed words ------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", SIZES)
def test_packed_words_are_taken_without_a_copy(n_samples):
    words = pack_losses(random_bits(3, n_samples)).words
    assert as_words(words, n_samples) is words
    assert as_words(words[1], n_samples, ndim=1).base is words
    assert PackedLosses(words, n_samples).words is words


def test_packed_losses_are_rows_that_are_cut_without_a_copy():
    bits = random_bits(9, 100)
    packed = pack_losses(bits)
    assert (len(packed), packed.ndim, packed.n_samples) == (9, 2, 100)
    for part in (slice(2, 7), slice(None, None, 3), slice(0, 0), np.array([8, 0, 3])):
        some = packed[part]
        assert_array_equal(some.words, pack_losses(bits[part]).words)
        assert some.n_samples == 100 and len(some) == len(bits[part])
    assert np.shares_memory(packed[2:7].words, packed.words)
    one = packed[3]
    assert one.ndim == 1 and repr(one) == "PackedLosses(n_samples=100)"
    assert repr(packed) == "PackedLosses(9, n_samples=100)"
    with pytest.raises(TypeError, match="one row of packed losses has no len"):
        len(one)
    with pytest.raises(TypeError, match="one row of packed losses has no rows to choose from"):
        one[0]
    again = pickle.loads(pickle.dumps(packed))
    assert_array_equal(again.words, packed.words)
    assert again.n_samples == 100


@pytest.mark.parametrize(
    ("words", "n_samples", "error", "message"),
    [
        (np.zeros(2, np.uint64), 129, ValueError, "words must have length 3, got shape (2,)"),
        (np.zeros(2, np.uint64), 0, ValueError, "n_samples must be at least 1, got 0"),
        (np.zeros(2, np.uint64), 1.5, TypeError, "n_samples must be an integer, got 1.5"),
    ],
)
def test_words_that_hold_no_such_losses_are_refused_at_once(words, n_samples, error, message):
    with pytest.raises(error, match=re.escape(message)):
        PackedLosses(words, n_samples)


# one byte, one under, at and over a word, and whole words
@pytest.mark.parametrize("n_samples", [1, 63, 64, 65, 4000, 4096])
@pytest.mark.parametrize("many", [False, True])
def test_bytes_are_refused_with_the_line_that_makes_words(n_samples, many):
    bits = random_bits(3, n_samples) if many else random_bits(1, n_samples)[0]
    made = np.packbits(bits, axis=-1)  # the first sample highest: wrong, and m may be whole bytes
    with pytest.raises(TypeError, match="be uint64, as pack_losses.*bytes do not tell") as caught:
        PackedLosses(made, n_samples)
    line = str(caught.value).partition(", pass ")[2]
    right = np.packbits(bits, axis=-1, bitorder="little")
    assert_array_equal(eval(line, {"np": np, "words": right}), pack_losses(bits).words)


def test_words_in_odd_strides_or_byte_order_become_plain_ones():
    words = pack_losses(random_bits(3, 200)).words
    for odd in (words.astype(">u8"), np.asfortranarray(words), np.repeat(words, 2, axis=1)[:, ::2]):
        taken = as_words(odd, 200)
        assert_array_equal(taken, words)
        assert taken.dtype.isnative
        assert taken.strides[-1] == 8


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (np.zeros(2, np.uint64), ValueError, "words must have length 1, got shape (2,)"),
        (np.array([32], np.uint64), ValueError, "no bit set past n_samples = 5, got one in row 0"),
        (np.array([[31], [64]], np.uint64), ValueError, "n_samples = 5, got one in row 1"),
        (np.zeros(1, np.int64), TypeError, "words must be uint64, got dtype int64"),
        (np.zeros(1, bool), TypeError, "words must be uint64, got dtype bool"),
        ([[0.0]], TypeError, "words must be uint64, got dtype float64"),
        (np.zeros((1, 1, 1), np.uint64), ValueError, "words must have one or two dimensions"),
        (np.zeros((1, 1, 1), np.uint8), TypeError, "words must be uint64, as pack_losses(losses)"),
        (np.uint8(3), TypeError, "words must be uint64, as pack_losses(losses) makes them"),
    ],
)
def test_bad_words_are_refused(words, error, message):
    with pytest.raises(error, match=re.escape(message)):
        as_words(words, 5)
