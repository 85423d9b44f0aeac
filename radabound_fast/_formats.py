"""The file formats behind `files`: each function opens one and tells its shape.

A format is a row of `FORMATS`: suffix, function ``(name, transpose, text) -> Source``.  What
a function checks before it returns is what can be known without reading the whole; a .csv
file is read once to count its lines and cells.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import math
import os
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from radabound_fast._extras import needs


class Source(NamedTuple):
    """An array that is read along its first axis, so many entries at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[np.ndarray]]


def split_key(name: str) -> tuple[str, str | None]:
    """``FILE.npz:key`` in its two parts; the key is None where there is none."""
    at = name.lower().rfind(".npz:")
    return (name, None) if at < 0 else (name[: at + 4], name[at + 5 :])


def suffix_of(name: str) -> str:
    """The suffix of a known format, or a ValueError that lists them."""
    suffix = os.path.splitext(split_key(name)[0])[1].lower()
    if suffix not in FORMATS:
        raise ValueError(f"{name} must end in {', '.join(FORMATS)} or .npz:key")
    return suffix


def legible(name: str, block: np.ndarray) -> np.ndarray:
    """The block, unless a string in it has a character that Python's cannot."""
    if block.dtype.kind == "U" and block.size:
        code_points = np.dtype(np.uint32).newbyteorder(block.dtype.byteorder)
        if np.ascontiguousarray(block).view(code_points).max() > sys.maxunicode:
            raise ValueError(f"{name} holds a character that is not in Unicode")
    return block


@contextlib.contextmanager
def _reading(name: str, kind: str) -> Iterator[None]:
    """Whatever a damaged file makes the libraries raise becomes one ValueError of one line."""
    try:
        yield
    except (
        csv.Error,
        UnicodeDecodeError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,  # zipfile: encrypted, or a compression it does not know
    ) as error:
        raise ValueError(f"{name} is not a readable {kind} file: {_one_line(error)}") from error
    except OSError as error:
        if error.filename is not None:
            raise
        # not of opening it: the file says that something lies where it cannot
        raise ValueError(f"{name} is not a readable {kind} file: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _of_array(array: np.ndarray) -> Source:
    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        for start in range(0, len(array), n_rows):
            yield array[start : start + n_rows]

    return Source(array.shape, array.dtype, blocks)


def _transposed(source: Source) -> Source:
    """The transpose, which needs the whole array in memory."""
    if 0 in source.shape:
        return Source(source.shape[::-1], source.dtype, source.blocks)
    return _of_array(np.concatenate(list(source.blocks(source.shape[0]))).T)


# .npy and .npz


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]


def _array_header(name: str, file: IO[bytes]) -> _Header:
    """The head of an array in NumPy's format; `file` is left at the first element."""
    readers: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)
        if version not in readers:  # 3.0 is for names of fields, and fields are refused below
            raise ValueError(f"format version {version}, must be (1, 0) or (2, 0)")
        header = _Header(*readers[version](file))
    except (ValueError, tokenize.TokenError) as error:
        raise ValueError(f"{name} is not a readable .npy array: {_one_line(error)}") from error
    if header.dtype.hasobject:
        raise ValueError(f"{name} holds pickled Python objects, which are never loaded")
    if header.dtype.kind not in "biufSU" or header.dtype.itemsize == 0:
        raise ValueError(f"{name} must hold real numbers, bools or strings, got {header.dtype}")
    if any(n < 0 for n in header.shape):
        raise ValueError(f"{name} is not a readable .npy array: its shape is {header.shape}")
    return header


def _npy(name: str, transpose: bool, text: bool) -> Source:
    with open(name, "rb") as file:
        shape, fortran_order, dtype = _array_header(name, file)
        offset = file.tell()
        found = os.fstat(file.fileno()).st_size - offset
    expected = math.prod(shape) * dtype.itemsize
    if found < expected:
        raise ValueError(f"{name} is truncated: {found} of {expected} bytes of data")
    if found > expected:
        raise ValueError(f"{name} has {found - expected} bytes after its array")
    if not expected:  # an empty array cannot be mapped
        array = np.empty(shape, dtype)
    else:
        order: Literal["F", "C"] = "F" if fortran_order else "C"
        array = np.asarray(np.memmap(name, dtype, "r", offset, shape, order))
    return _of_array(array.T if transpose else array)


def _npz(name: str, transpose: bool, text: bool) -> Source:
    path, key = split_key(name)
    with _reading(name, ".npz"), zipfile.ZipFile(path) as archive:
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        listed = ", ".join(members) or "none"
        if key is None and len(members) != 1:
            raise ValueError(f"{name} must hold one array, or say {name}:key; its keys: {listed}")
        member = next(iter(members.values())) if key is None else members.get(key)
        if member is None:
            raise ValueError(f"{name}: no array is called {key!r}; its keys: {listed}")
        with archive.open(member) as file:
            shape, fortran_order, dtype = _array_header(name, file)
    # bytes come in C order: that of the array, or of its transpose
    stored = shape[::-1] if fortran_order else shape
    row_bytes = math.prod(stored[1:]) * dtype.itemsize

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        with (
            _reading(name, ".npz"),
            zipfile.ZipFile(path) as archive,
            archive.open(member) as file,
        ):
            _array_header(name, file)
            for start in range(0, stored[0], n_rows):
                n = min(n_rows, stored[0] - start)
                data = file.read(n * row_bytes)
                if len(data) < n * row_bytes:
                    raise ValueError(f"{name} is truncated in row {start + len(data) // row_bytes}")
                yield np.frombuffer(data, dtype).reshape(n, *stored[1:])
            if file.read(1):  # and, at the end, zipfile compares the checksum
                raise ValueError(f"{name} has bytes after its array")

    source = Source(stored, dtype, blocks)
    turn = len(shape) > 1 and transpose != fortran_order
    return _transposed(source) if turn else source


# .csv

_Line = tuple[int, list[str]]  # line number, cells


def _csv_lines(name: str) -> Iterator[_Line]:
    """The lines that are not blank."""
    with _reading(name, ".csv"), open(name, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        for cells in reader:
            if cells:
                yield reader.line_num, cells


def _csv_shape(name: str) -> tuple[int, int]:
    n_lines = width = 0
    for line, cells in _csv_lines(name):
        n_lines += 1
        if n_lines == 1:
            width = len(cells)
        elif len(cells) != width:
            raise ValueError(
                f"{name}, line {line}: must have {width} cells, as the first line, got {len(cells)}"
            )
    return n_lines, width


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _csv_numbers(name: str, lines: list[_Line]) -> np.ndarray:
    cells = itertools.chain.from_iterable(cells for _, cells in lines)
    shape = len(lines), len(lines[0][1])
    try:
        numbers = np.fromiter(map(float, cells), np.float64, math.prod(shape)).reshape(shape)
    except ValueError:
        raise ValueError(f"{name}, {_first_text(lines)}") from None
    inexact = np.isfinite(numbers) & (np.abs(numbers) >= 2**53)
    if inexact.any():
        raise ValueError(
            f"{name}: numbers must be below 2**53, where text is exact, "
            f"got {numbers[inexact][0]:.0f}"
        )
    return numbers


def _first_text(lines: list[_Line]) -> str:
    """Where the first cell stands that is not a number, and what it says."""
    line, column, cell = next(
        (line, column, cell)
        for line, cells in lines
        for column, cell in enumerate(cells, start=1)
        if not _is_number(cell)
    )
    hint = " (a header line? there must be none)" if line == 1 else ""
    return f"line {line}, cell {column}: must be a number, got {cell[:40]!r}{hint}"


def _csv(name: str, transpose: bool, text: bool) -> Source:
    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        lines = _csv_lines(name)
        if not text:  # a cell is a string, eight times as large, before it is a number
            n_rows = max(1, n_rows // 8)
        while block := list(itertools.islice(lines, n_rows)):
            if text:
                yield np.array([cells for _, cells in block])
            else:
                yield _csv_numbers(name, block)

    dtype = np.dtype(np.str_) if text else np.dtype(np.float64)
    source = Source(_csv_shape(name), dtype, blocks)
    return _transposed(source) if transpose else source


def csv_labels(name: str) -> np.ndarray:
    """One column or one line of a .csv file: numbers if all cells are, else strings."""
    shape = _csv_shape(name)
    if 1 not in shape:
        raise ValueError(f"{name} must hold labels in one column or one line, got shape {shape}")
    lines = list(_csv_lines(name))
    cells = [cell for _, cells in lines for cell in cells]
    if "" in cells:
        raise ValueError(f"{name}: label {cells.index('') + 1} must not be empty")
    numeric = [_is_number(cell) for cell in cells]
    # numbers under one word: that word is a header, not a class
    if all(numeric) or (len(cells) > 1 and all(numeric[1:])):
        return _csv_numbers(name, lines).reshape(-1)
    return np.array(cells)


# .parquet


def _parquet(name: str, transpose: bool, text: bool) -> Source:
    with needs("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    @contextlib.contextmanager
    def opened() -> Iterator[Any]:
        os.stat(name)  # what is missing is the system's to report, what is damaged ours
        try:
            with pq.ParquetFile(name) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            reason = _one_line(error)
            raise ValueError(f"{name} is not a readable .parquet file: {reason}") from error

    with opened() as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        # pandas stores an index that is not 0, 1, 2, ... as one more column
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    columns = [field.name for field in schema if field.name not in index]
    if len(set(columns)) < len(columns):
        raise ValueError(f"{name} must have columns of different names")
    dtypes = [_column_dtype(name, schema.field(column)) for column in columns]
    if len({dtype.kind == "U" for dtype in dtypes}) > 1:
        raise ValueError(f"{name} must hold strings in all columns or in none")

    def values(column: str, array: Any) -> np.ndarray:
        if array.null_count:
            raise ValueError(f"{name}, column {column!r}: {array.null_count} values are missing")
        if dtypes[0].kind == "U":
            return np.array(array.to_pylist(), dtype=np.str_)
        return np.asarray(array.to_numpy(zero_copy_only=False))

    def check_length(found: int) -> None:
        if found != n_rows:
            raise ValueError(f"{name} is not a readable .parquet file: {found} of {n_rows} rows")

    def rows(n: int) -> Iterator[np.ndarray]:
        found = 0
        with opened() as file:
            for batch in file.iter_batches(batch_size=n, columns=columns):
                found += len(batch)
                yield np.stack([values(c, batch.column(c)) for c in columns], axis=1)
        check_length(found)

    def transposed_rows(n: int) -> Iterator[np.ndarray]:
        with opened() as file:
            for start in range(0, len(columns), n):
                some = columns[start : start + n]
                table = file.read(columns=some)
                check_length(len(table))
                yield np.stack([values(c, table.column(c)) for c in some])

    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    if transpose:
        return Source((len(columns), n_rows), dtype, transposed_rows)
    return Source((n_rows, len(columns)), dtype, rows)


def _column_dtype(name: str, field: Any) -> np.dtype[Any]:
    """What NumPy makes of an Arrow column, or a ValueError if it is not for us."""
    import pyarrow.types as kinds

    kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return np.dtype(np.str_)
    if kinds.is_boolean(kind) or kinds.is_integer(kind) or kinds.is_floating(kind):
        dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return dtype
    raise ValueError(
        f"{name}, column {field.name!r}: must hold real numbers, bools or strings, got {field.type}"
    )


FORMATS: dict[str, Callable[[str, bool, bool], Source]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}
