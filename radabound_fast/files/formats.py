"""Sources of rows: arrays from .npy, .npz and .zarr, and what several become together."""

from __future__ import annotations

import contextlib
import lzma
import math
import mmap
import os
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast._extras import needs
from radabound_fast.files.place import ARRAYS, is_url, opened, split_key


class Source(NamedTuple):
    """An array that is read along its first axis, so many entries at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[np.ndarray]]
    names: list[str] | None = None  # of the entries along the first axis
    columns: list[str] | None = None  # of those along the second


def legible(name: str, block: np.ndarray) -> np.ndarray:
    """The block, unless a string in it has a character that Python's cannot."""
    if block.dtype.kind == "U" and block.size:
        code_points = np.dtype(np.uint32).newbyteorder(block.dtype.byteorder)
        if np.ascontiguousarray(block).view(code_points).max() > sys.maxunicode:
            raise ValueError(f"{name} holds a character that is not in Unicode")
    return block


@contextlib.contextmanager
def reading(name: str, kind: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn what a damaged file makes a library raise into one ValueError of one line."""
    try:
        yield
    except (OSError, UnicodeDecodeError, RecursionError, *errors) as error:  # type: ignore[misc]
        if isinstance(error, OSError) and error.filename is not None:
            raise  # of opening it; otherwise the file says that something lies where it cannot
        raise ValueError(f"{name} is not a readable {kind}: {one_line(error)}") from error


def one_line(message: object, most: int = 150) -> str:
    """What a file or a library says, for a message: cut, and nothing that moves the cursor."""
    line = " ".join(str(message).split()) or type(message).__name__
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= most else f"{line[:most]}..."


def of_array(
    array: np.ndarray,
    transpose: bool = False,
    before: Callable[[int, int], None] = lambda first, last: None,
) -> Source:
    """Rows, or columns, of an array; ``before(first, last)`` is called before each block."""
    array = array.T if transpose else array

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        for start in range(0, len(array), n_rows):
            before(start, min(len(array), start + n_rows))
            yield array[start : start + n_rows]

    return Source(array.shape, array.dtype, blocks)


def transposed(source: Source) -> Source:
    """The transpose, which needs the whole array in memory."""
    if 0 in source.shape:
        return Source(source.shape[::-1], source.dtype, source.blocks)
    whole = of_array(np.concatenate(list(source.blocks(source.shape[0]))), transpose=True)
    return whole._replace(names=source.columns)


def side_by_side(name: str, sources: Sequence[Source], n_samples: int | None) -> list[Source]:
    """Transposed files as what they are together: more models, or more samples of the same.

    One source, if each has some of the samples of the same models; the same sources, if each has
    all samples; else a ValueError.
    """
    lengths = [source.shape[1] for source in sources]
    same = all(source.shape[0] == sources[0].shape[0] for source in sources)
    same = same and all(source.names == sources[0].names for source in sources)
    if n_samples is None and not same or set(lengths) == {n_samples}:
        return list(sources)
    if same and (n_samples is None and sources[0].names or sum(lengths) == n_samples):
        return [_longer(sources)]
    if n_samples is None and len(set(lengths)) == 1:
        return list(sources)
    wanted = "samples" if n_samples is None else counted(n_samples, "sample")
    raise ValueError(
        f"{name} must each have all {wanted}, or the same models and together all {wanted}, got "
        f"{', '.join(f'{source.shape[0]:,} x {source.shape[1]:,}' for source in sources)[:100]}"
    )


def _longer(sources: Sequence[Source]) -> Source:
    """Join sources that have the same models, each with some of the samples, in order."""

    def blocks(n: int) -> Iterator[np.ndarray]:
        for parts in zip(*(_of_length(n, source.blocks(n)) for source in sources), strict=True):
            yield np.concatenate(parts, axis=1)

    n_samples = sum(source.shape[1] for source in sources)
    dtype = np.result_type(*(source.dtype for source in sources))
    return Source((sources[0].shape[0], n_samples), dtype, blocks, sources[0].names)


def _of_length(n: int, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Blocks anew, of exactly n rows, the last of fewer."""
    rest: np.ndarray | None = None
    for block in blocks:
        whole = block if rest is None or not len(rest) else np.concatenate([rest, block])
        end = len(whole) // n * n
        for start in range(0, end, n):
            yield whole[start : start + n]
        rest = whole[end:]
    if rest is not None and len(rest):
        yield rest


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

    ValueError: it is damaged, or no array of real numbers, bools or strings follows.
    """
    errors = ValueError, TypeError, SyntaxError, tokenize.TokenError, MemoryError, struct.error
    with reading(name, ".npy array", *errors, EOFError, OverflowError):
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
            f"{name} must hold real numbers, bools or strings, got {one_line(header.dtype, 60)}"
        )
    return header


def _check_n_bytes(name: str, header: ArrayHeader, n_bytes: int) -> None:
    expected = header.n_bytes
    if n_bytes < expected:
        raise ValueError(f"{name} is truncated: {n_bytes} of {expected} bytes of data")
    if n_bytes > expected:
        raise ValueError(f"{name} has {counted(n_bytes - expected, 'byte')} after its array")


def npy_source(name: str, transpose: bool) -> Source:
    """The array of a .npy file: mapped, or read block by block from a URL."""
    with opened(name) as file:
        header = array_header(name, file)
        start = file.tell()
        _check_n_bytes(name, header, file.seek(0, os.SEEK_END) - start)
        by_rows = bool(header.shape and header.n_bytes and not header.fortran_order)
        if is_url(name) and by_rows and not transpose:
            return _npy_of_url(name, header, start)
        if is_url(name):
            file.seek(start)
            return of_array(header.array(file.read()), transpose)
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    array = header.array(pages, start)
    if transpose or not by_rows or sys.platform != "linux":
        return of_array(array, transpose)

    def map_rows(first: int, last: int) -> None:
        """Map all their pages at once: one by one takes as long as a third of an audit."""
        row_bytes = header.n_bytes // len(array)
        page = (start + first * row_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
        with contextlib.suppress(OSError):  # Linux before 5.14
            pages.madvise(_POPULATE_READ, page, start + last * row_bytes - page)

    return of_array(array, before=map_rows)


def _npy_of_url(name: str, header: ArrayHeader, start: int) -> Source:
    row_bytes = header.n_bytes // header.shape[0]

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        with opened(name) as file:
            file.seek(start)
            for first in range(0, header.shape[0], n_rows):
                n = min(n_rows, header.shape[0] - first)
                part = header._replace(shape=(n, *header.shape[1:]))
                yield part.array(file.read(n * row_bytes))

    return Source(header.shape, header.dtype, blocks)


_POPULATE_READ = 22  # of madvise(2); Python has no name for it


def npz_source(name: str, transpose: bool) -> Source:
    """The array of a .npz file, or the one that a key after a colon names."""
    path, key = split_key(name)
    # zipfile raises RuntimeError where it is encrypted, or compressed in a way it does not know
    errors = zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError
    with (
        opened(path) as raw,
        reading(name, ".npz file", *errors, OverflowError),
        zipfile.ZipFile(raw) as archive,
    ):
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        if {"format", "shape", "data"} <= members.keys():
            raise ValueError(
                f"{name} holds a sparse matrix of SciPy: store it dense, as .npy of .toarray()"
            )
        keys = one_line(", ".join(members) or "none", 80)
        if key is None and len(members) != 1:
            raise ValueError(f"{name} must hold one array, or say {name}:key; its keys: {keys}")
        if key is not None and key not in members:
            raise ValueError(f"{name}: no array is called {key!r}; its keys: {keys}")
        with archive.open(members[next(iter(members)) if key is None else key]) as file:
            header = array_header(name, file)
            content = file.read()
    _check_n_bytes(name, header, len(content))
    return of_array(header.array(content), transpose)


# .zarr


def zarr_source(name: str, transpose: bool) -> Source:
    """An array of a folder, or URL, that ends in .zarr, or of a group: .zarr/key."""
    with needs("zarr"):
        import zarr

    try:
        array = zarr.open_array(name, mode="r")
    except Exception as error:  # of zarr's own, of numcodecs', of the store's
        raise ValueError(f"{name} is not a readable .zarr array: {one_line(error)}") from error
    if array.dtype.kind not in "biufSU":
        raise ValueError(f"{name} must hold real numbers, bools or strings, got {array.dtype}")

    def along(axis: int, n: int) -> Iterator[np.ndarray]:
        """Whole chunks, since a chunk is decoded as a whole."""
        step = max(1, n // array.chunks[axis]) * array.chunks[axis]
        for start in range(0, array.shape[axis], step):
            part = slice(start, start + step)
            block = np.asarray(array[:, part] if axis else array[part])
            yield from of_array(block, bool(axis)).blocks(n)

    if transpose:
        return Source(array.shape[::-1], array.dtype, lambda n: along(1, n))
    return Source(array.shape, array.dtype, lambda n: along(0, n))


# what opens a file of each suffix; tables are `files.tables`'s, .csv files `files.csv`'s
FORMATS = dict(zip(ARRAYS, (npy_source, npz_source, zarr_source), strict=True))
