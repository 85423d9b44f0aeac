"""Reads arrays from .npy, .npz and .parquet files: each function opens one and returns its shape.

A format is a row of `FORMATS`: suffix, function ``(name, transpose) -> Source``.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import math
import mmap
import os
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast._extras import needs
from radabound_fast.rows.packing import side_by_side


class Source(NamedTuple):
    """An array that is read along its first axis, so many entries at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[np.ndarray]]


def split_key(name: str) -> tuple[str, str | None]:
    """``FILE.npz:key`` in its two parts; the key is None where there is none."""
    at = name.lower().rfind(".npz:")
    return (name, None) if at < 0 else (name[: at + 4], name[at + 5 :])


def legible(name: str, block: np.ndarray) -> np.ndarray:
    """The block, unless a string in it has a character that Python's cannot."""
    if block.dtype.kind == "U" and block.size:
        code_points = np.dtype(np.uint32).newbyteorder(block.dtype.byteorder)
        if np.ascontiguousarray(block).view(code_points).max() > sys.maxunicode:
            raise ValueError(f"{name} holds a character that is not in Unicode")
    return block


@contextlib.contextmanager
def _reading(name: str, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a damaged file makes a library raise into one ValueError of one line."""
    try:
        yield
    except (OSError, UnicodeDecodeError, RecursionError, *errors) as error:  # type: ignore[misc]
        if isinstance(error, OSError) and error.filename is not None:
            raise  # of opening it; otherwise the file says that something lies where it cannot
        raise ValueError(f"{name} is not a readable {kind}: {_one_line(error)}") from error


def _one_line(message: object, most: int = 150) -> str:
    """What a file or a library says, for a message: cut, and nothing that moves the cursor."""
    line = " ".join(str(message).split()) or type(message).__name__
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= most else f"{line[:most]}..."


def of_array(
    array: np.ndarray, before: Callable[[int, int], None] = lambda first, last: None
) -> Source:
    """Rows of an array; ``before(first, last)`` is called before each block of rows."""

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        for start in range(0, len(array), n_rows):
            before(start, min(len(array), start + n_rows))
            yield array[start : start + n_rows]

    return Source(array.shape, array.dtype, blocks)


def transposed(source: Source) -> Source:
    """The transpose, which needs the whole array in memory."""
    if 0 in source.shape:
        return Source(source.shape[::-1], source.dtype, source.blocks)
    return of_array(np.concatenate(list(source.blocks(source.shape[0]))).T)


# .npy and .npz


class ArrayHeader(NamedTuple):
    """What stands before the elements of an array in NumPy's format."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self, buffer: Any, offset: int = 0) -> np.ndarray:
        """The array whose elements are in `buffer` from `offset` on, without a copy."""
        values = np.frombuffer(buffer, self.dtype, math.prod(self.shape), offset)
        return values.reshape(self.shape, order="F" if self.fortran_order else "C")


_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,  # 3.0 is for names of fields, which no array has
}


def array_header(name: str, file: IO[bytes]) -> ArrayHeader:
    """Read the header of an array; `file` is left at the first element.

    Raises
    ------
    ValueError
        It is damaged, or no array of real numbers, bools or strings follows.
    """
    errors = ValueError, TypeError, SyntaxError, tokenize.TokenError, MemoryError, struct.error
    with _reading(name, ".npy array", *errors, EOFError, OverflowError):
        version = np.lib.format.read_magic(file)
        if version not in _READ_HEADER:
            raise ValueError(f"format version {version}, must be (1, 0) or (2, 0)")
        header = ArrayHeader(*_READ_HEADER[version](file))
        if len(header.shape) > 32 or not all(0 <= side < 2**63 for side in header.shape):
            raise ValueError(f"its shape is {header.shape}")
    if header.dtype.hasobject:
        raise ValueError(f"{name} holds pickled Python objects, which are never loaded")
    if header.dtype.kind not in "biufSU" or not header.dtype.itemsize:
        raise ValueError(
            f"{name} must hold real numbers, bools or strings, got {_one_line(header.dtype, 60)}"
        )
    return header


def _check_n_bytes(name: str, header: ArrayHeader, found: int) -> None:
    expected = header.n_bytes
    if found < expected:
        raise ValueError(f"{name} is truncated: {found} of {expected} bytes of data")
    if found > expected:
        raise ValueError(f"{name} has {counted(found - expected, 'byte')} after its array")


def _npy(name: str, transpose: bool) -> Source:
    with open(name, "rb") as file:
        header = array_header(name, file)
        start = file.tell()
        _check_n_bytes(name, header, os.fstat(file.fileno()).st_size - start)
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = header.array(pages, start)
    if transpose or header.fortran_order or not header.n_bytes or sys.platform != "linux":
        return of_array(array.T if transpose else array)

    def map_rows(first: int, last: int) -> None:
        """Map all their pages at once: one by one takes as long as a third of an audit."""
        row_bytes = header.n_bytes // len(array)
        page = (start + first * row_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        with contextlib.suppress(OSError):  # Linux before 5.14
            pages.madvise(_POPULATE_READ, page, start + last * row_bytes - page)

    return of_array(array, map_rows)


_POPULATE_READ = 22  # of madvise(2); Python has no name for it


def _npz(name: str, transpose: bool) -> Source:
    path, key = split_key(name)
    # zipfile raises RuntimeError where it is encrypted, or compressed in a way it does not know
    errors = zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError
    with _reading(name, ".npz file", *errors, OverflowError), zipfile.ZipFile(path) as archive:
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        keys = _one_line(", ".join(members) or "none", 80)
        if key is None and len(members) != 1:
            raise ValueError(f"{name} must hold one array, or say {name}:key; its keys: {keys}")
        if key is not None and key not in members:
            raise ValueError(f"{name}: no array is called {key!r}; its keys: {keys}")
        with archive.open(members[next(iter(members)) if key is None else key]) as file:
            header = array_header(name, file)
            content = file.read()
    _check_n_bytes(name, header, len(content))
    array = header.array(content)
    return of_array(array.T if transpose else array)


# .parquet

_BATCH_BLOCKS = 8  # blocks to decode at a time: of a wide table, each time takes long to begin


def _parquet(name: str, transpose: bool) -> Source:
    with needs("files"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    @contextlib.contextmanager
    def opened() -> Iterator[Any]:
        os.stat(name)  # what is missing is the system's to report, what is damaged ours
        errors = pa.ArrowException, json.JSONDecodeError
        with _reading(name, ".parquet file", *errors), pq.ParquetFile(name) as file:
            yield file

    with opened() as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        written = schema.pandas_metadata
    # pandas stores an index that is not 0, 1, 2, ... as one more column
    index = written.get("index_columns") if isinstance(written, dict) else None
    if not isinstance(index, list):
        index = []
    fields = [field for field in schema if field.name not in index]
    columns = [field.name for field in fields]
    if len(set(columns)) < len(columns):
        raise ValueError(f"{name} must have columns of different names")
    kinds = [_kind(name, field) for field in fields]
    is_text = [kind == pa.string() for kind in kinds]
    if any(is_text) and not all(is_text):
        raise ValueError(f"{name} must hold strings in all columns or in none")
    dtypes = {np.dtype(np.str_ if any(is_text) else kind.to_pandas_dtype()) for kind in set(kinds)}
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    cast_to = {f.name: kind for f, kind in zip(fields, kinds, strict=True) if f.type != kind}

    def matrix(names: list[str], arrays: list[Any]) -> np.ndarray:
        """Columns, each as a row."""
        for i, (column, array) in enumerate(zip(names, arrays, strict=True)):
            if array.null_count:
                missing = counted(array.null_count, "missing value")
                raise ValueError(f"{name}, column {column[:60]!r}: it has {missing}")
            if column in cast_to:
                arrays[i] = array.cast(cast_to[column])
        if len(dtypes) > 1:
            return side_by_side([array.to_numpy(zero_copy_only=False) for array in arrays]).T
        # in one piece: a conversion for each column takes as long as to decode it
        chunks = [chunk for array in arrays for chunk in getattr(array, "chunks", [array])]
        return _values(name, pa.concat_arrays(chunks)).reshape(len(arrays), -1)

    def check_length(found: int) -> None:
        if found != n_rows:
            raise ValueError(f"{name} is not a readable .parquet file: {found} of {n_rows} rows")

    def rows(n: int) -> Iterator[np.ndarray]:
        found = 0
        with opened() as file:
            for batch in file.iter_batches(_BATCH_BLOCKS * n, columns=columns, use_threads=False):
                found += len(batch)
                decoded = np.ascontiguousarray(matrix(columns, batch.columns).T)
                yield from of_array(decoded).blocks(n)
        check_length(found)

    def transposed_rows(n: int) -> Iterator[np.ndarray]:
        with opened() as file:
            for start in range(0, len(columns), n):
                some = columns[start : start + n]
                table = file.read(columns=some, use_threads=False)
                check_length(len(table))
                yield matrix(some, table.columns)

    if transpose:
        return Source((len(columns), n_rows), dtype, transposed_rows)
    return Source((n_rows, len(columns)), dtype, rows)


def _kind(name: str, field: Any) -> Any:
    """The type of a column's values: of numbers, bools, or strings of whatever width."""
    import pyarrow as pa

    types = pa.types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.string()
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return kind
    raise ValueError(
        f"{name}, column {field.name[:60]!r}: must hold real numbers, bools or strings, "
        f"got {_one_line(field.type, 60)}"
    )


def _values(name: str, array: Any) -> np.ndarray:
    """An Arrow array without missing values; each string that it has is made once."""
    import pyarrow as pa

    if array.type != pa.string():
        return np.asarray(array.to_numpy(zero_copy_only=False))
    encoded = array.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if any("\0" in text for text in texts):  # NumPy drops them at the end of strings
        raise ValueError(f"{name} must hold text, got a NUL character")
    values: np.ndarray = np.array(texts, np.str_)[encoded.indices.to_numpy()]
    return values


FORMATS: dict[str, Callable[[str, bool], Source]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".parquet": _parquet,
}
