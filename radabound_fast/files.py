"""Predictions and losses from files, row block by row block.

A file holds a matrix with a row per query and a column per sample, k x m (or, transposed,
m x k); the suffix says how:

=================  =================================================================
``.npy``           memory-mapped, so that the file may be larger than memory
``.npz``           one array, or one of several as ``FILE.npz:key``; decompressed as
                   it is read
``.csv``           comma-separated, UTF-8, no header line
``.parquet``       a table without missing values; needs the extra ``[parquet]``
=================  =================================================================

Transposed .npz and .csv files are read into memory whole; the others never are.  Pickled
objects are refused, never loaded.  Every other fault of a file is a ValueError of one line
that begins with the file's name; what the operating system refuses is its OSError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from radabound_fast._checks import check_n_samples
from radabound_fast._formats import FORMATS, Source, csv_labels, legible, suffix_of

BLOCK_BYTES = 8 << 20
_TEXT_CELL_BYTES = 64  # a Python string of a few letters


@dataclass(frozen=True)
class FileRows:
    """The queries of a file, to be read in order, as often as wanted.

    Iteration gives arrays of one or more whole rows, about 8 MB each; blocks of a
    memory-mapped file are views of it.

    Attributes
    ----------
    name : str
        The file, as it was asked for.
    source : Source
        What reads it.
    """

    name: str
    source: Source

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_queries, n_samples)``; packed: ``(n_queries, ceil(n_samples / 8))``."""
        n_rows, n_columns = self.source.shape
        return n_rows, n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the blocks; that of text has no length, since blocks differ in theirs."""
        return self.source.dtype

    def __iter__(self) -> Iterator[np.ndarray]:
        cell_bytes = self.dtype.itemsize or _TEXT_CELL_BYTES
        for block in self.source.blocks(max(1, BLOCK_BYTES // (cell_bytes * self.shape[1]))):
            yield legible(self.name, block)


def open_rows(
    path: str | os.PathLike[str],
    *,
    n_samples: int | None = None,
    transpose: bool | None = None,
    packed: bool = False,
    text: bool = False,
) -> FileRows:
    """Open a file of predictions or losses.

    Parameters
    ----------
    path : path
        Ends in .npy, .npz, .csv or .parquet, or in .npz:key.
    n_samples : int, optional
        What m must be; needed for packed rows.
    transpose : bool, optional
        True: the file is m x k, a query is a column.  A square file needs True or False.
    packed : bool
        Rows are uint8, ``ceil(n_samples / 8)`` of them, sample i in bit i % 8 of byte i // 8.
    text : bool
        Cells of a .csv file are strings, not numbers.

    Returns
    -------
    FileRows

    Raises
    ------
    ValueError
        If the file is not what its name says, cut short, not a matrix, empty, square without
        a choice, or has the wrong m.
    OSError
        If it is missing or unreadable.
    ImportError
        If it is a .parquet file and pyarrow is not installed.
    """
    if packed and transpose:
        raise ValueError("packed rows cannot be transposed: their bits lie along the samples")
    if n_samples is not None:
        n_samples = check_n_samples(n_samples)
    name = os.fspath(path)
    source = FORMATS[suffix_of(name)](name, bool(transpose), text)
    if len(source.shape) != 2:
        raise ValueError(f"{name} must be a matrix, queries x samples, got shape {source.shape}")
    if 0 in source.shape:
        raise ValueError(f"{name} must not be empty, got shape {source.shape}")
    if packed:
        _check_packed(name, source, n_samples)
    else:
        _check_unpacked(name, source, n_samples, transpose)
    return FileRows(name, source)


def load_labels(path: str | os.PathLike[str]) -> np.ndarray:
    """The labels in a file, a 1-D array of numbers, bools or strings.

    A .csv or .parquet file has one column (or, .csv, one line); cells of a .csv file are
    numbers if all of them are.

    Parameters
    ----------
    path : path
        Ends in .npy, .npz, .csv or .parquet, or in .npz:key.

    Returns
    -------
    ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        If the file is not what its name says, cut short, empty or not one-dimensional.
    OSError, ImportError
        As `open_rows`.
    """
    name = os.fspath(path)
    suffix = suffix_of(name)
    if suffix == ".csv":
        return csv_labels(name)
    shape, _, blocks = FORMATS[suffix](name, False, True)
    if suffix == ".parquet" and shape[1] == 1:
        shape = shape[:1]
    if len(shape) != 1:
        raise ValueError(f"{name} must hold labels in one dimension, got shape {shape}")
    if shape[0] == 0:
        raise ValueError(f"{name} must not be empty, got no labels")
    return legible(name, np.concatenate(list(blocks(shape[0]))).reshape(-1))


def _check_packed(name: str, source: Source, n_samples: int | None) -> None:
    if n_samples is None:
        raise ValueError(f"{name}: packed rows need n_samples, since bytes do not tell it")
    if source.dtype != np.uint8:
        raise ValueError(f"{name} must hold packed rows of uint8, got {source.dtype}")
    n_bytes = -(-n_samples // 8)
    if source.shape[1] != n_bytes:
        raise ValueError(
            f"{name} must have packed rows of {n_bytes} bytes for {n_samples} samples, "
            f"got {source.shape[1]}"
        )


def _check_unpacked(
    name: str, source: Source, n_samples: int | None, transpose: bool | None
) -> None:
    n_queries, found = source.shape
    if n_samples is not None and found != n_samples:
        hint = "; transposed it would fit" if n_queries == n_samples else ""
        raise ValueError(
            f"{name} must have {n_samples} samples to a query, "
            f"got {n_queries} queries of {found}{hint}"
        )
    if n_queries == found and transpose is None:
        raise ValueError(
            f"{name} is square, {found} x {found}: say whether queries are its columns "
            "(transpose=True, --transpose) or its rows (transpose=False, --no-transpose)"
        )
