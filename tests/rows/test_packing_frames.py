"""Losses from pandas, polars and Arrow: by position, without nulls, and without needless copies."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import PackedLosses, RadaBound, pack_losses
from radabound_fast._kernels.rows import pack_rows
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import as_values, as_words

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

BITS = np.random.default_rng(0).integers(0, 2, 1100).astype(bool)

# Arrow gives bits from any position of a byte on; 1, 8, 63 to 65 end in, at and past a word
OFFSETS = [0, 1, 7, 8, 13, 16, 64]
SIZES = [1, 7, 8, 63, 64, 65, 1000]


def columns(bits, start, stop):
    """The same bools, as slices of whatever people keep them in."""
    arrow = pa.array(bits).slice(start, stop - start)
    middle = len(arrow) // 2
    yield "pyarrow array", arrow
    yield "pyarrow chunks", pa.chunked_array([arrow.slice(0, middle), arrow.slice(middle)])
    yield "polars", pl.Series(bits)[start:stop]
    for dtype in ("bool", "boolean", "bool[pyarrow]", "Int8", "Float64", "double[pyarrow]"):
        yield f"pandas {dtype}", pd.Series(bits).astype(dtype).iloc[start:stop]


@pytest.mark.parametrize("start", OFFSETS)
@pytest.mark.parametrize("n_samples", SIZES)
def test_columns_of_bools_are_packed_from_any_offset(start, n_samples):
    expected = pack_losses(BITS[start : start + n_samples]).words
    for name, column in columns(BITS, start, start + n_samples):
        assert_array_equal(pack_losses(column).words, expected, err_msg=name)
        assert_array_equal(as_values(column), BITS[start : start + n_samples], err_msg=name)
        if not name.startswith("pandas"):
            assert_array_equal(as_words(column, n_samples), expected, err_msg=name)


def test_bits_that_start_at_a_byte_are_arrows_own_memory():
    column = pa.array(BITS[:1024])
    where = column.buffers()[1].address
    assert as_words(column, 1024).ctypes.data == where
    assert as_words(column.slice(8, 128), 128).ctypes.data == where + 1


def test_bits_past_the_last_are_arrows_to_leave_undefined():
    column = pa.array([True] * 16).slice(0, 5)
    assert as_words(column, 5).tolist() == [0b11111]
    assert pack_losses(column).words.tolist() == [0b11111]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_columns_of_numbers_are_taken_without_a_copy_and_outlive_their_owner(dtype):
    for column in (pa.array(BITS.astype(dtype)), pl.Series(BITS.astype(dtype))):
        column = column[3:1000]
        values = as_values(column)
        assert values.dtype == dtype
        assert not values.flags.owndata
        assert not values.flags.writeable
        del column
        assert_array_equal(values, BITS[3:1000])


def test_an_empty_chunk_changes_nothing():
    column = pa.chunked_array([[], [True, False], [], [True]], type=pa.bool_())
    assert pack_losses(column).words.tolist() == [0b101]
    assert as_values(column).tolist() == [True, False, True]


def test_rows_of_a_frame_are_queries():
    rows = BITS[:12].reshape(3, 4)
    frame = pd.DataFrame(rows, columns=list("abcd"), index=[9, 7, 5])
    assert_array_equal(pack_losses(frame).words, pack_losses(rows).words)
    mixed = frame.astype({"a": "Int64", "b": "boolean", "c": "float32"})
    assert_array_equal(pack_losses(mixed).words, pack_losses(rows).words)
    assert_array_equal(pack_losses(pl.DataFrame(rows)).words, pack_losses(rows).words)


def test_a_series_goes_by_position_whatever_its_index():
    assert pack_losses(pd.Series([1, 0, 0], index=[2, 1, 0])).words.tolist() == [0b001]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([True, None]),
        pa.array([0.5, None]),
        pa.array([False, True, None]).slice(1),
        pa.chunked_array([[1], [None]]),
        pa.chunked_array([[True], [None]]),
        pl.Series([True, None]),
        pl.Series([0.5, None]),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([True, None], dtype="bool[pyarrow]"),
        pd.Series([0.5, None]),
        pd.Series([True, None], dtype=object),
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', '')}",
)
def test_a_missing_value_is_refused_where_it_stands(column):
    guard = RadaBound(2, epsilon=0.9, delta=0.1)
    ways = [pack_losses, as_values, guard.query]
    if type(column) in (pa.BooleanArray, pl.Series) and column[0] in (True, pa.scalar(True)):
        ways.append(lambda words: PackedLosses(words, 2))  # a column of bits
    for take in ways:
        with pytest.raises(ValueError, match="must have no missing values, got one at sample 1"):
            take(column)
    assert guard.n_answered == 0


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (pa.array([], pa.bool_()), ValueError, "losses must not be empty, got shape (0,)"),
        (pl.Series([], dtype=pl.Float64), ValueError, "losses must not be empty, got shape (0,)"),
        (pa.array(["a"]), TypeError, "losses must be real numbers"),
        (pl.Series(["a"]), TypeError, "losses must be real numbers"),
        (pd.Series(["a"]), TypeError, "losses must be real numbers"),
        (pd.Series(pd.to_datetime(["2020-01-01"])), TypeError, "got dtype datetime64"),
        (pa.array([2]), ValueError, "losses must be in [0, 1], got 2 at sample 0"),
        (pl.Series([0.0, -0.5]), ValueError, "losses must be in [0, 1], got -0.5 at sample 1"),
    ],
)
def test_columns_of_something_else_are_refused(column, error, message):
    with pytest.raises(error, match=re.escape(message)):
        pack_losses(column)


def test_a_bool_column_of_another_length_is_no_packed_row():
    with pytest.raises(ValueError, match="words must hold 5 bits, got a column of 4"):
        as_words(pa.array([True] * 4), 5)


BIG = 2**53
MIXED = {
    "int64": np.array([BIG + 1, BIG, -BIG - 1]),
    "float64": np.array([BIG, 0.5, 1]),
    "uint64": np.array([BIG + 1, BIG, 2**64 - 1], np.uint64),
    "bool": np.array([True, False, True]),
}


@pytest.mark.parametrize("names", [["int64", "float64"], ["uint64", "int64"], list(MIXED)])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, "batch", "nullable", list])
def test_a_column_of_a_frame_does_not_depend_on_its_neighbours(names, make):
    columns = {name: MIXED[name] for name in names}
    rows = [list(row) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    if make == "batch":
        frame = pa.table(columns).to_batches()[0]
    elif make == "nullable":
        frame = pd.DataFrame(columns).convert_dtypes()
    else:
        frame = rows if make is list else make(columns)
    labels = Labels(rows[0], classes=np.array([value for row in rows for value in row], object))
    values, beside = labels.match(frame, ndim=2)
    losses = pack_rows(values, beside)
    wrong = [[value != truth for value, truth in zip(row, rows[0], strict=True)] for row in rows]
    assert_array_equal(losses, pack_losses(wrong).words)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_small_numbers_stay_arrays_of_numbers(make):
    frame = make({"a": np.array([1, 0]), "b": np.array([0.5, 1.0])})
    assert as_values(frame, ndim=2).dtype == np.float64
