"""From what users have to what the packers read: arrays of numbers, and bits.

The packers take any ndarray of bool, integers or float16 to float64 where it lies, and find losses
outside [0, 1]; this module looks at types and shapes, and at everything else.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.rows import (
    PackedLosses,
    arrow_chunks,
    bad_bit,
    pack_rows,
    reads_dtype,
)

LARGEST = sys.float_info.max


def pack_losses(losses: Any) -> PackedLosses:
    """Pack losses that are 0 or 1 into bits, which every guard takes in place of losses.

    Parameters
    ----------
    losses : array_like, shape (n_samples,) or (k, n_samples)
        0 or 1 in any bool, integer or float dtype.

    Returns
    -------
    PackedLosses
        Its ``words`` are uint64, shape (n_words,) or (k, n_words), n_words = ceil(n_samples / 64).
        Sample i is bit i % 64 of word i // 64, the lowest bit first; bits past n_samples are
        zero.  In memory of little endian that is ``numpy.packbits(losses, bitorder="little")``
        filled up to 8 bytes.

    Raises
    ------
    ValueError, TypeError
        A value is not 0 or 1 (real-valued losses cannot be packed), is masked or missing, or
        `losses` is empty, ragged, or not one or two-dimensional.

    Examples
    --------
    >>> pack_losses([True, False, True, True]).words
    array([13], dtype=uint64)
    """
    bits = _arrow_bits(losses, "losses")
    if bits is not None:
        return PackedLosses(words_of(bits[0].copy()), bits[1])
    array = as_array(losses, "losses")
    if array.dtype.kind == "f" and not reads_dtype(array.dtype):
        array = _exact_bits(array)
    values = as_values(array, ndim=None)
    return PackedLosses(pack_rows(values), values.shape[-1])


def as_values(
    losses: Any, n_samples: int | None = None, ndim: int | None = 1, name: str = "losses"
) -> NDArray[Any]:
    """Losses as the kernels read them, shape (n_samples,) or (k, n_samples), of any real dtype.

    `n_samples` and `ndim` are what the last axis and the dimensions must be; None: any but 0, and
    one or two.  Values are not yet looked at; longdouble is rounded to multiples of 2**-24.

    TypeError: no real numbers.  ValueError: wrong length or dimensions, empty, ragged, masked or
    missing values.
    """
    values = as_array(losses, name)
    check_shape(values, n_samples, ndim, name)
    if reads_dtype(values.dtype):
        return values
    if values.dtype.kind == "f":
        return _rounded(values, name)
    if values.dtype.kind == "O":
        return _from_objects(values, name)
    raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")


def as_words(words: Any, n_samples: int, ndim: int | None = None) -> NDArray[Any]:
    """Packed losses as the kernels read them: words side by side in each row.

    `words` are uint64, shape (..., ceil(n_samples / 64)), lowest bit first, or an Arrow column of
    bools; without a copy where they lie so.  Bytes are refused: by default ``numpy.packbits`` puts
    the first sample into the highest bit, and nothing would show it.

    TypeError: not uint64.  ValueError: wrong length or dimensions (`ndim`; None: one or two), or a
    bit past n_samples is set.
    """
    array = unchecked_words(words, n_samples, ndim)
    used = n_samples % 64
    if used and (past := array[..., -1] >> np.uint64(used)).any():
        raise bad_bit(n_samples, int(np.flatnonzero(past)[0]))
    return array


def checked_words(packed: PackedLosses, n_samples: int, ndim: int | None = None) -> NDArray[Any]:
    """The words of packed losses of so many samples and dimensions, no bit past them set."""
    return as_words(words_for(packed, n_samples), n_samples, ndim)


def words_for(packed: PackedLosses, n_samples: int) -> NDArray[np.uint64]:
    """`checked_words` for callers that count the words, and so find a bit past n_samples."""
    if packed.n_samples != n_samples:
        raise ValueError(f"losses must have length {n_samples}, got {packed!r}")
    return packed.words


def unchecked_words(words: Any, n_samples: int, ndim: int | None = None) -> NDArray[Any]:
    """`as_words` for whoever looks himself whether a bit past n_samples is set."""
    bits, n_values = _arrow_bits(words, "words") or (None, n_samples)
    if n_values != n_samples:
        raise ValueError(f"words must hold {counted(n_samples, 'bit')}, got a column of {n_values}")
    array = as_array(words, "words") if bits is None else words_of(bits)
    if array.dtype == np.uint8:
        raise TypeError(_bytes_refused(array))
    if array.dtype.newbyteorder("=") != np.uint64:
        raise TypeError(f"words must be uint64, got dtype {array.dtype}")
    check_shape(array, -(-n_samples // 64), ndim, "words")
    if not array.dtype.isnative or array.strides[-1] != 8:
        array = np.ascontiguousarray(array, np.uint64)
    return array


def words_of(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of bytes, lowest bit first, as words; without a copy where they are whole words."""
    fill = -packed.shape[-1] % 8
    if fill:
        packed = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, fill)])
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64, copy=False)


def bits_of(words: NDArray[Any], n_samples: int) -> NDArray[np.uint8]:
    """Rows of words, lowest bit first, as their first bits, one a byte: shape (..., n_samples)."""
    octets = np.ascontiguousarray(words, "<u8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=n_samples, bitorder="little")


def _bytes_refused(packed: NDArray[Any]) -> str:
    fill = -packed.shape[-1] % 8 if packed.ndim else 0
    widths = f"(0, {fill})" if packed.ndim == 1 else f"((0, 0), (0, {fill}))"
    whole = f"np.pad(words, {widths})" if fill else "words"
    return (
        "words must be uint64, as pack_losses(losses) makes them, got uint8: bytes do not tell "
        'which bit is first; if numpy.packbits made them with bitorder="little", pass '
        f'{whole}.view("<u8")'
    )


def as_array(values: Any, name: str) -> NDArray[Any]:
    """An ndarray of any dtype, without masked entries."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray):
        _check_unmasked(values, name)
        return np.asarray(values.data)
    if is_pandas(values):
        missing = np.asarray(values.isna())
        if missing.any():
            _raise_missing(name, int(missing.argmax()), missing.shape)
    elif _speaks_arrow(values):
        chunks = _arrow_chunks(values, name)
        if chunks is not None:
            return _arrow_values(chunks)
    try:
        if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
            return np.from_dlpack(values)
        array = np.asarray(values)
        if array.ndim == 0 and hasattr(values, "toarray"):  # SciPy's, of which NumPy sees an object
            raise TypeError(
                f"{name} must be dense, got a sparse {type(values).__name__}: pass its toarray()"
            )
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(f"{name} must have rows of one length, got a ragged sequence") from None
    except (RuntimeError, BufferError) as error:  # a tensor on another device, or with a gradient
        raise TypeError(f"{name} must be readable by NumPy: {error}") from error
    if array.ndim > 1 and isinstance(values, (list, tuple)):  # NumPy drops the masks of rows
        for row, one in enumerate(values):
            if isinstance(one, np.ma.MaskedArray):
                _check_unmasked(one, name, row)
    if array.dtype.kind == "f" and array.size:  # which may have been integers beside floats
        columns = _columns_of(values) if array.ndim == 2 else None
        listed = isinstance(values, (list, tuple))
        if (listed or columns is not None) and float(np.abs(array).max()) >= 2**53:
            if columns is not None:
                return side_by_side([as_array(column, name) for column in columns])
            exact = np.array(values, object)
            if any(isinstance(one, (int, np.integer)) for one in exact.flat):
                return exact
    return array


def _check_unmasked(values: np.ma.MaskedArray[Any, Any], name: str, row: int | None = None) -> None:
    mask = np.ma.getmaskarray(values)
    if mask.any():
        place = place_of(int(mask.argmax()), values.shape)
        place = place if row is None else f"at row {row}, {place.removeprefix('at ')}"
        raise ValueError(f"{name} must have no masked entries, got one {place}")


def _columns_of(frame: Any) -> list[Any] | None:
    """The columns of a frame of pandas, polars or pyarrow; None for anything else."""
    if is_pandas(frame):
        return [column for _, column in frame.items()]
    for method in ("iter_columns", "itercolumns"):  # polars; pyarrow
        if hasattr(frame, method):
            return list(getattr(frame, method)())
    return None


def side_by_side(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Columns as a matrix, of objects where one dtype for all would round some of their numbers."""
    common = np.result_type(*{column.dtype for column in columns})
    if common.kind == "f":
        limit = 2 ** (np.finfo(common).nmant + 1)
        whole = [column for column in columns if column.dtype.kind in "iu" and column.size]
        if any(max(int(column.max()), -int(column.min())) > limit for column in whole):
            return np.stack([column.astype(object) for column in columns], axis=1)
    return np.stack(columns, axis=1)


def as_numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """An array of real numbers: itself, or objects as float64."""
    if values.dtype.kind == "O":
        for index, value in enumerate(values.ravel().tolist()):
            if is_missing(value):
                _raise_missing(name, index, values.shape)
            if not is_number(value):
                raise TypeError(f"{name} must be real numbers, got {value!r:.100}")
            if abs(value) > LARGEST and value not in (math.inf, -math.inf):
                place = place_of(index, values.shape)
                raise ValueError(f"{name} must be finite in float64, got {value!s:.50} {place}")
        return values.astype(np.float64)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")
    return values


def check_shape(values: NDArray[Any], n_samples: int | None, ndim: int | None, name: str) -> None:
    """Dimensions and length as asked for, and not empty."""
    if values.ndim != ndim if ndim else values.ndim not in (1, 2):
        wanted = {1: "one dimension", 2: "two dimensions", None: "one or two dimensions"}[ndim]
        raise ValueError(f"{name} must have {wanted}, got shape {values.shape}")
    if values.shape[-1] == 0:
        raise ValueError(f"{name} must not be empty, got shape {values.shape}")
    if n_samples is not None and values.shape[-1] != n_samples:
        raise ValueError(f"{name} must have length {n_samples}, got shape {values.shape}")


def place_of(index: int, shape: tuple[int, ...]) -> str:
    """Where the value of that flat index stands, in the words of the messages."""
    if len(shape) < 2:
        return f"at sample {index}"
    return f"at row {index // shape[-1]}, sample {index % shape[-1]}"


def is_missing(value: object) -> bool:
    """None, or pandas' NA or NaT, without importing pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_number(value: object) -> bool:
    """A bool, integer or float of Python's or NumPy's; a duration is none, though NumPy says so."""
    number = isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating))
    return number and not isinstance(value, np.timedelta64)


def is_pandas(values: object) -> bool:
    """Whether it is an array of pandas, without importing pandas."""
    return type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "isna")


def _speaks_arrow(values: object) -> bool:
    # pandas does, but only where pyarrow is installed: its arrays are NumPy's to convert
    return not is_pandas(values) and (
        hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")
    )


def _rounded(values: NDArray[np.longdouble], name: str) -> NDArray[np.float64]:
    """Multiples of 2^-24, row by row: there may be more of them than memory for temporaries."""
    rounded = np.empty(values.shape, np.float64)
    for row, (losses, out) in enumerate(
        zip(np.atleast_2d(values), np.atleast_2d(rounded), strict=True)
    ):
        # by way of float64 a value would be rounded twice, and 1 + 1e-19 would pass for 1
        allowed = (losses >= 0) & (losses <= 1)
        if not allowed.all():
            sample = int(allowed.argmin())
            place = place_of(row * len(losses) + sample, values.shape)
            raise ValueError(f"{name} must be in [0, 1], got {losses[sample]} {place}")
        out[:] = np.rint(losses * 2**24) / 2**24
    return rounded


def _exact_bits(values: NDArray[np.longdouble]) -> NDArray[np.bool_]:
    """Values that are 0 or 1 before they are rounded to anything."""
    ones = np.equal(values, 1)
    allowed = ones | (values == 0)
    if not allowed.all():
        index = int(allowed.argmin())
        value, place = values.flat[index], place_of(index, values.shape)
        rule = "be 0 or 1 to be packed" if 0 <= value <= 1 else "be in [0, 1]"
        raise ValueError(f"losses must {rule}, got {value} {place}")
    return ones


def _from_objects(values: NDArray[np.object_], name: str) -> NDArray[np.float64]:
    for index, value in enumerate(values.ravel().tolist()):
        if is_missing(value):
            _raise_missing(name, index, values.shape)
        if not is_number(value):
            place = place_of(index, values.shape)
            raise TypeError(f"{name} must be real numbers, got {value!r:.100} {place}")
        if not 0 <= value <= 1:
            place = place_of(index, values.shape)
            raise ValueError(f"{name} must be in [0, 1], got {value!r:.100} {place}")
    return values.astype(np.float64)


# values, of bools the place of the first in its byte, how many, the place of a missing one
ArrowChunks = list[tuple[NDArray[Any], int | None, int, int]]


def _arrow_chunks(values: Any, name: str) -> ArrowChunks | None:
    """The chunks of a column of bools or numbers, without nulls; None for any other."""
    chunks, done = arrow_chunks(values), 0
    for _, _, n_values, null in chunks or ():
        if null >= 0:
            _raise_missing(name, done + null, (1,))
        done += n_values
    return chunks


def _arrow_values(chunks: ArrowChunks) -> NDArray[Any]:
    """A column's numbers, without a copy if they lie in one piece; its bits as bools."""
    pieces: list[NDArray[Any]] = []
    for piece, first_bit, n_values, _ in chunks:
        if first_bit is not None:
            bits = np.unpackbits(piece, bitorder="little").view(np.bool_)
            piece = bits[first_bit : first_bit + n_values]
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [np.empty(0)])


def _arrow_bits(column: Any, name: str) -> tuple[NDArray[np.uint8], int] | None:
    """A bool column's bits, from the first of a byte on, and how many; None for any other.

    Without a copy if they lie so in one piece, with nothing but zeros past the last.
    """
    chunks = _arrow_chunks(column, name) if _speaks_arrow(column) else None
    n_values = sum(n for _, _, n, _ in chunks or ())
    if not chunks or n_values == 0:
        return None
    bits, first_bit, *_ = chunks[0]
    if first_bit is None:
        return None
    if len(chunks) > 1 or first_bit:
        bits = np.packbits(_arrow_values(chunks), bitorder="little")
    elif n_values % 8 and bits[-1] >> n_values % 8:
        bits = bits.copy()  # Arrow leaves the bits past the last undefined
        bits[-1] &= 2 ** (n_values % 8) - 1
    return bits, n_values


def _raise_missing(name: str, index: int, shape: tuple[int, ...]) -> NoReturn:
    raise ValueError(f"{name} must have no missing values, got one {place_of(index, shape)}")
