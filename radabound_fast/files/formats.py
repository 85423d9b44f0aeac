"""The formats of arrays behind `files`, .csv apart: each function opens one and tells its shape.

A format is a row of `FORMATS`: suffix, function ``(name, transpose) -> Source``.  What a function
checks before it returns is what can be known without reading the whole.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import math
import mmap
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Literal, NamedTuple

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
def _reading(name: str, kind: str) -> Iterator[None]:
    """Whatever a damaged file makes the libraries raise becomes one ValueError of one line."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        struct.error,
        UnicodeDecodeError,
        EOFError,
        OverflowError,
        RuntimeError,  # zipfile: encrypted, or a compression it does not know
    ) as error:
        raise ValueError(f"{name} is not a readable {kind} file: {_one_line(error)}") from error
    except OSError as error:
        if error.filename is not None:
            raise
        # not of opening it: the file says that something lies where it cannot
        raise ValueError(f"{name} is not a readable {kind} file: {_one_line(error)}") from error


def _one_line(told: object, most: int = 150) -> str:
    """What a file or a library says, for a message: cut, and nothing that moves the cursor."""
    line = " ".join(str(told).split()) or type(told).__name__
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= most else f"{line[:most]}..."


def of_array(
    array: np.ndarray, before: Callable[[int, int], None] = lambda first, last: None
) -> Source:
    """Rows of an array; `before` is told of each block: rows first..last."""

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


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    n_bytes: int  # of itself

    @property
    def n_data_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


_MAX_HEADER = 10_000  # bytes, as in NumPy
# what every writer of the format makes; not evaluated, for it comes from anywhere
_ITEM = re.compile(
    r"""\s*(['"])(?P<key>descr|fortran_order|shape)\1\s*:\s*"""
    r"""(?:(['"])(?P<descr>[^'"]*)\3|(?P<order>True|False)|\((?P<shape>[\d\s,L]*)\)"""
    r"""|(?P<fields>\[.*\]))\s*(?:,|(?=\}))""",
    re.ASCII | re.DOTALL,
)
_DTYPE = re.compile(r"[<>|=]?[?a-zA-Z]\d{0,9}", re.ASCII)


def array_header(name: str, file: IO[bytes]) -> _Header:
    """The head of an array in NumPy's format; `file` is left at the first element."""

    def unreadable(reason: str) -> ValueError:
        return ValueError(f"{name} is not a readable .npy array: {reason}")

    magic = file.read(8)
    if magic[:6] != b"\x93NUMPY" or len(magic) < 8:
        raise unreadable("it does not begin with NumPy's magic string")
    version = magic[6], magic[7]
    if version not in ((1, 0), (2, 0)):  # 3.0 is for names of fields, and fields are refused
        raise unreadable(f"format version {version}, must be (1, 0) or (2, 0)")
    size = file.read(2 * version[0])
    n_bytes = int.from_bytes(size, "little")
    if n_bytes > _MAX_HEADER:
        raise unreadable(f"its header has {n_bytes:,} bytes, must have at most {_MAX_HEADER:,}")
    text = file.read(n_bytes).decode("latin-1")
    if len(size) < 2 * version[0] or len(text) < n_bytes:
        raise unreadable("it ends within its header")
    found = _items(text)
    if found is None:
        raise unreadable(f"its header is {text[:60].strip()!r}")
    descr, order, sides = found
    try:
        shape = tuple(int(side.rstrip("L")) for side in map(str.strip, sides) if side)
    except ValueError:  # more digits than Python reads, or L alone
        raise unreadable(f"its shape is ({_one_line(','.join(sides), 60)})") from None
    if len(shape) > 32 or max(shape, default=0) >= 2**63:  # NumPy's limits, or near them
        raise unreadable(f"its shape is {str(shape)[:60]}")
    if re.fullmatch(r"[|<>=]?O\d*", descr):
        raise ValueError(f"{name} holds pickled Python objects, which are never loaded")
    dtype = _dtype_of(descr)
    if dtype is None:
        raise ValueError(
            f"{name} must hold real numbers, bools or strings, got {_one_line(descr, 60)}"
        )
    return _Header(shape, order == "True", dtype, 8 + len(size) + n_bytes)


def _items(text: str) -> tuple[str, str, list[str]] | None:
    """``descr``, ``fortran_order`` and the parts of ``shape`` in a header; None: it is none."""
    text = text.strip(" \t\n")
    found: dict[str, str] = {}
    at = 1
    while text[:1] == "{" and (item := _ITEM.match(text, at)):
        key, at = item["key"], item.end()
        value = {
            "descr": item["fields"] or item["descr"],
            "fortran_order": item["order"],
            "shape": item["shape"],
        }[key]
        if key in found or value is None:
            return None
        found[key] = value
    if len(found) < 3 or text[at:].strip(" \t\n") != "}":
        return None
    return found["descr"], found["fortran_order"], found["shape"].split(",")


def _dtype_of(descr: str) -> np.dtype[Any] | None:
    """Of real numbers, bools or strings; None: of anything else."""
    if not _DTYPE.fullmatch(descr):
        return None
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError):
        return None
    return dtype if dtype.kind in "biufSU" and dtype.itemsize else None


def _npy(name: str, transpose: bool) -> Source:
    with open(name, "rb") as file:
        header = array_header(name, file)
        found = os.fstat(file.fileno()).st_size - header.n_bytes
    _check_data_bytes(name, header, found)
    if not found:  # an empty array cannot be mapped
        shape = header.shape[::-1] if transpose else header.shape
        return Source(shape, header.dtype, lambda n_rows: iter(()))
    with open(name, "rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    order: Literal["F", "C"] = "F" if header.fortran_order else "C"
    values = np.frombuffer(pages, header.dtype, math.prod(header.shape), header.n_bytes)
    array = values.reshape(header.shape, order=order)
    if transpose or header.fortran_order or sys.platform != "linux":
        return of_array(array.T if transpose else array)

    def map_rows(first: int, last: int) -> None:
        """Has all their pages mapped at once: page by page takes as long as a third of an audit."""
        row_bytes = header.n_data_bytes // len(array)
        start = (header.n_bytes + first * row_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        with contextlib.suppress(OSError):  # Linux before 5.14
            pages.madvise(_POPULATE_READ, start, header.n_bytes + last * row_bytes - start)

    return of_array(array, map_rows)


_POPULATE_READ = 22  # of madvise(2); Python has no name for it


def _check_data_bytes(name: str, header: _Header, found: int) -> None:
    expected = header.n_data_bytes
    if found < expected:
        raise ValueError(f"{name} is truncated: {found} of {expected} bytes of data")
    if found > expected:
        raise ValueError(f"{name} has {counted(found - expected, 'byte')} after its array")


def _npz(name: str, transpose: bool) -> Source:
    path, key = split_key(name)
    with _reading(name, ".npz"), zipfile.ZipFile(path) as archive:
        member = _member(name, key, archive.infolist())
        with archive.open(member) as file:
            header = array_header(name, file)
        # before anything is unpacked: zipfile gives no more than the directory says
        _check_data_bytes(name, header, member.file_size - header.n_bytes)
    shape, fortran_order, dtype, _ = header
    # bytes come in C order: that of the array, or of its transpose
    stored = shape[::-1] if fortran_order else shape
    row_bytes = math.prod(stored[1:]) * dtype.itemsize

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        with (
            _reading(name, ".npz"),
            zipfile.ZipFile(path) as archive,
            archive.open(member) as file,
        ):
            file.read(header.n_bytes)
            for start in range(0, stored[0], n_rows):
                n = min(n_rows, stored[0] - start)
                data = file.read(n * row_bytes)
                if len(data) < n * row_bytes:
                    raise ValueError(f"{name} is truncated in row {start + len(data) // row_bytes}")
                yield np.frombuffer(data, dtype).reshape(n, *stored[1:])
            file.read(1)  # nothing; and, at the end, zipfile compares the checksum

    source = Source(stored, dtype, blocks)
    turn = len(shape) > 1 and transpose != fortran_order
    return transposed(source) if turn else source


def _member(name: str, key: str | None, members: list[zipfile.ZipInfo]) -> zipfile.ZipInfo:
    """The member of an archive that has this key, or the only one."""
    keys = [member.filename.removesuffix(".npy") for member in members]
    shown = (key[:30] if key.isprintable() else repr(key[:30]) for key in keys[:8])
    listed = ", ".join(shown) or "none"
    if len(keys) > 8:
        listed += f", and {len(keys) - 8} more"
    if key is None and len(keys) != 1:
        raise ValueError(f"{name} must hold one array, or say {name}:key; its keys: {listed}")
    chosen = [member for k, member in zip(keys, members, strict=True) if key in (None, k)]
    if not chosen:
        raise ValueError(f"{name}: no array is called {key!r}; its keys: {listed}")
    if len(chosen) > 1:
        raise ValueError(f"{name}: {len(chosen)} arrays are called {key!r}")
    return chosen[0]


# .parquet


def _parquet(name: str, transpose: bool) -> Source:
    with needs("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    @contextlib.contextmanager
    def opened() -> Iterator[Any]:
        os.stat(name)  # what is missing is the system's to report, what is damaged ours
        try:
            with pq.ParquetFile(name) as file:
                yield file
        except (
            pa.ArrowException,
            OSError,
            UnicodeDecodeError,
            json.JSONDecodeError,
            RecursionError,
        ) as error:
            reason = _one_line(error)
            raise ValueError(f"{name} is not a readable .parquet file: {reason}") from error

    with opened() as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        written = schema.pandas_metadata
    # pandas stores an index that is not 0, 1, 2, ... as one more column
    index = written.get("index_columns") if isinstance(written, dict) else None
    if not isinstance(index, list):
        index = []
    columns = [field.name for field in schema if field.name not in index]
    if len(set(columns)) < len(columns):
        raise ValueError(f"{name} must have columns of different names")
    dtypes = [_column_dtype(name, schema.field(column)) for column in columns]
    if len({dtype.kind == "U" for dtype in dtypes}) > 1:
        raise ValueError(f"{name} must hold strings in all columns or in none")

    def values(column: str, array: Any) -> np.ndarray:
        if array.null_count:
            missing = counted(array.null_count, "missing value")
            raise ValueError(f"{name}, column {column[:60]!r}: it has {missing}")
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
                yield side_by_side([values(c, batch.column(c)) for c in columns])
        check_length(found)

    def transposed_rows(n: int) -> Iterator[np.ndarray]:
        with opened() as file:
            for start in range(0, len(columns), n):
                some = columns[start : start + n]
                table = file.read(columns=some)
                check_length(len(table))
                yield side_by_side([values(c, table.column(c)) for c in some]).T

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
        f"{name}, column {field.name[:60]!r}: must hold real numbers, bools or strings, "
        f"got {_one_line(field.type, 60)}"
    )


FORMATS: dict[str, Callable[[str, bool], Source]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".parquet": _parquet,
}
