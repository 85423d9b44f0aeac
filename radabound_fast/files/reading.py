"""Labels, predictions and losses from files, row block by row block.

A file of predictions or losses holds a matrix with a row per query and a column per sample, k x m
(or, transposed, m x k); one of labels holds one column.  The suffix says how:

=================  ==========================================================

``.npy``           memory-mapped, so that the file may be larger than memory
``.npz``           one array, or one of several as ``FILE.npz:key``; decompressed as
                   it is read
``.csv``           comma-separated, UTF-8; numbers or text, as `_csv` tells them apart
``.parquet``       a table without missing values; needs the extra ``[parquet]``
=================  ==========================================================


Transposed .npz and .csv files are read into memory whole; the others never are.  Pickled
objects are refused, never loaded.  Every other fault of a file is a ValueError of one line
that begins with the file's name; what the operating system refuses is its OSError.  A path is a
str, bytes or an os.PathLike.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from radabound_fast._checks import check_choice, check_n_samples, counted
from radabound_fast.files import csv as _csv
from radabound_fast.files.formats import FORMATS, Source, legible, split_key, transposed
from radabound_fast.rows.packing import words_of

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
BitOrder = Literal["little", "big"]

SUFFIXES = (".npy", ".npz", ".csv", ".parquet")
BLOCK_BYTES = 8 << 20
_TEXT_CELL_BYTES = 64  # a Python string of a few letters
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1])


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
    bitorder : {"little", "big"}, optional
        Of packed rows of bytes, which become words here.
    note : str, optional
        Why cells that are numbers are compared as text.
    """

    name: str
    source: Source
    bitorder: BitOrder | None = None
    note: str | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_queries, n_samples)``; packed: n_queries, and bytes or words of a row."""
        n_rows, n_columns = self.source.shape
        return n_rows, n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what is stored; that of text has no length, since blocks differ in theirs."""
        return self.source.dtype

    def __iter__(self) -> Iterator[np.ndarray]:
        cell_bytes = self.dtype.itemsize or _TEXT_CELL_BYTES
        for block in self.source.blocks(max(1, BLOCK_BYTES // (cell_bytes * self.shape[1]))):
            if self.bitorder is None:
                yield legible(self.name, block)
            else:
                yield words_of(_REVERSED[block] if self.bitorder == "big" else block)


def open_losses(
    path: Path,
    *,
    n_samples: int | None = None,
    transpose: bool | None = None,
    packed: bool = False,
    bitorder: BitOrder | None = None,
    header: bool | None = None,
) -> FileRows:
    """Open a file of losses.

    Parameters
    ----------
    path : path
        Ends in .npy, .npz, .csv or .parquet, or in .npz:key.
    n_samples : int, optional
        What m must be; needed for packed rows.
    transpose : bool, optional
        True: the file is m x k, a query is a column.  A square file needs True or False.
    packed : bool
        Rows are bits: the words of `pack_losses`, uint64, or bytes, uint8.
    bitorder : {"little", "big"}, optional
        That of ``numpy.packbits``, for packed rows of bytes, which need it.
    header : bool, optional
        Whether the first line of a .csv file is a header.  None: it is none, and an error if it
        could be one.

    Returns
    -------
    FileRows

    Raises
    ------
    ValueError
        If the file is not what its name says, cut short, not a matrix, empty, square without
        a choice, of unknown bit order, or has the wrong m.
    OSError
        If it is missing or unreadable.
    ImportError
        If it is a .parquet file and pyarrow is not installed.
    """
    file = _File(path, header, transpose, compared=False)
    _ask_whether_counted(file, "losses", "yes")
    source = file.source(text=False)
    if packed or bitorder is not None:
        bitorder = _check_packed(file.name, source, n_samples, transpose, packed, bitorder)
    else:
        _check_unpacked(file.name, source, n_samples, transpose)
    return FileRows(file.name, source, bitorder)


def open_predictions(
    labels: Path,
    path: Path,
    *,
    transpose: bool | None = None,
    packed: bool = False,
    bitorder: BitOrder | None = None,
    labels_header: bool | None = None,
    header: bool | None = None,
    classes: bool = True,
) -> tuple[np.ndarray, FileRows]:
    """Open a file of labels and one of predictions, both as numbers or both as text.

    Cells of .csv files are numbers if those of both files are, as `_csv` tells; otherwise they are
    text, and compared as they stand.  Predictions that are no classes are always numbers.

    Parameters
    ----------
    labels : path
        A file of m labels: one dimension, or, .csv and .parquet, one column (or, .csv, one line).
    path : path
        A file of predictions.
    labels_header, header : bool, optional
        Whether the first line of a .csv file is a header.  None: it is none, and an error if both
        files or one without doubt have what could be one.
    transpose, packed, bitorder
        As `open_losses`.
    classes : bool
        False: predictions are scores, probabilities or numbers, which no label is compared with.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Numbers, bools or strings.
    rows : FileRows

    Raises
    ------
    ValueError
        As `open_losses`; a label that is missing; or numbers in one file and text in the other.
    OSError, ImportError
        As `open_losses`.
    """
    truth, file = _File(labels, labels_header), _File(path, header, transpose, compared=classes)
    if truth.may_have_header and truth.look.names_columns:
        raise ValueError(
            f"{truth.name}: its first line is no number as those below are: if it is a header, "
            "say so (--header labels, or yes if both have one)"
        )
    if not classes:
        return _with_scores(truth, file, transpose, packed)
    text, note = _as_text(truth, file)
    values = _labels(truth, text)
    source = file.source(text)
    if packed or bitorder is not None:
        bitorder = _check_packed(file.name, source, len(values), transpose, packed, bitorder)
    else:
        _check_unpacked(file.name, source, len(values), transpose, _header_hint(truth, file))
        _ask_for_header(truth, file, values)
    return values, FileRows(file.name, source, bitorder, note)


def read_values(path: Path, like: np.ndarray | None = None) -> np.ndarray:
    """A file of one value a sample, without a header.

    Parameters
    ----------
    path : path
        As a file of labels.
    like : ndarray, optional
        Labels: the values are text if these are.  None: they are numbers.

    Returns
    -------
    ndarray of shape (n_samples,)

    Raises
    ------
    ValueError, OSError, ImportError
        As `open_predictions`.
    """
    file = _File(path, header=False)
    text = like is not None and like.dtype.kind in "US"
    file.check_none_missing()
    if file.is_text and not text:
        where = f" in {file.look.first_text(False).where}" if file.is_csv else ""
        raise ValueError(f"{file.name} must hold numbers, got something else{where}")
    return _labels(file, text)


def _with_scores(
    truth: _File, file: _File, transpose: bool | None, packed: bool
) -> tuple[np.ndarray, FileRows]:
    """`open_predictions` for predictions that are no classes."""
    if packed:
        raise ValueError(f"{file.name}: packed rows are of classes, and not of scores")
    truth.check_none_missing()
    values = _labels(truth, truth.is_text)
    _ask_whether_counted(file, "scores", "predictions")
    source = file.source(text=False)
    _check_unpacked(file.name, source, len(values), transpose, _header_hint(truth, file))
    return values, FileRows(file.name, source)


def _ask_whether_counted(file: _File, what: str, says_so: str) -> None:
    """ValueError if the first line is 0, 1, 2, ..., which pandas writes as a header."""
    if file.may_have_header and file.look.counts_columns:
        raise ValueError(
            f"{file.name}: its first line may be a header, or {what}: say which "
            f"(header=True, --header {says_so}; header=False, --header no)"
        )


def open_labels(path: Path, *, header: bool | None = None) -> np.ndarray:
    """The labels in a file: numbers, or strings.

    Parameters
    ----------
    path : path
        .npy, .npz (or .npz:key), .csv or .parquet.
    header : bool, optional
        Whether the first line of a .csv file is a header; None: not, and an error if it seems so.

    Raises
    ------
    ValueError
        It holds something else; the message has no label.
    OSError
        It cannot be read.
    """
    file = _File(path, header)
    file.check_none_missing()
    labels = _labels(file, file.is_text)
    if file.may_have_header and file.is_text and labels[0] not in labels[1:]:
        raise ValueError(
            f"{file.name}: is the first line, which is like no other, a header? Say so "
            "(--header yes), or not (--header no)"
        )
    return labels


class _File:
    """A file that is about to be read, and what is known of it before.

    Parameters
    ----------
    path : path
        The file.
    header : bool or None
        As the caller said.
    transpose : bool or None
        As the caller said.
    compared : bool
        Whether its cells are classes, and not losses.
    """

    def __init__(
        self,
        path: Path,
        header: bool | None,
        transpose: bool | None = None,
        *,
        compared: bool = True,
    ) -> None:
        self.name = os.fsdecode(path)
        file, _ = split_key(self.name)
        suffix = os.path.splitext(file)[1].lower()
        if suffix not in SUFFIXES:
            raise ValueError(f"{self.name} must end in {', '.join(SUFFIXES)} or .npz:key")
        mode = os.stat(file).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise ValueError(f"{self.name} must be a regular file, since it is read twice")
        self.header = bool(header)
        self.transpose = bool(transpose)
        self._compared = compared
        self._array: Source | None = None
        self.is_csv = suffix == ".csv"
        if self.is_csv:
            self.look = _csv.Look(self.name, ways=compared)
            self.may_have_header = header is None and self.look.n_lines > 1
        else:
            self._array = FORMATS[suffix](self.name, self.transpose)
            self.may_have_header = False

    @property
    def is_text(self) -> bool:
        """Whether its cells are strings, or those of a .csv file no numbers."""
        if self._array is not None:
            return self._array.dtype.kind in "US"
        return not self.look.ways(self.header)

    def check_none_missing(self) -> None:
        """ValueError if a cell of a .csv file is empty."""
        if self.is_csv:
            self.look.check_none_missing(self.header)

    def source(self, text: bool) -> Source:
        """What reads it; cells of a .csv file as text or as numbers."""
        if self._array is not None:
            return self._array
        dtype: np.dtype[Any] = np.dtype(np.float64)
        if text:
            dtype = np.dtype(np.str_)
        elif self._compared:
            dtype = self.look.dtype(self.header)
        source = _csv.source(self.look, self.header, dtype)
        return transposed(source) if self.transpose else source


def _as_text(truth: _File, file: _File) -> tuple[bool, str | None]:
    """Whether cells of .csv files are compared as text, and why although those of one are numbers.

    As numbers only if no two texts of either become one.
    """
    for each in (truth, file):
        each.check_none_missing()
    text = truth.is_text if truth.is_csv == file.is_csv or not truth.is_csv else file.is_text
    if not text and truth.is_csv and truth.is_text:
        where = truth.look.first_text(truth.header).where
        raise ValueError(
            f"{truth.name} must hold numbers, as {file.name} does, got something else in {where}"
        )
    if not text and file.is_csv and file.is_text:
        place = file.look.first_text(file.header)
        first_line = file.may_have_header and file.look.names_columns
        hint = "; if it is a header, say so (--header yes)" if first_line else ""
        raise ValueError(f"{file.name} must hold numbers, as {truth.name} does, got {place}{hint}")
    if text and truth.is_csv and file.is_csv and not file.is_text:
        where = truth.look.first_text(truth.header).where
        return text, f"{truth.name} has no plain number in {where}"
    return text, None


def _labels(truth: _File, text: bool) -> np.ndarray:
    """The labels, one-dimensional and not empty."""
    name = truth.name
    shape, _, blocks = truth.source(text)
    if truth.is_csv and 1 not in shape:
        index = "; an index column? pandas leaves it out with index=False"
        raise ValueError(
            f"{name} must hold labels in one column or one line, got shape {shape}"
            f"{index if truth.look.first[:1] == [''] else ''}"
        )
    if not truth.is_csv and len(shape) == 2 and name.lower().endswith(".parquet"):
        shape = shape[:1] if shape[1] == 1 else shape
    if not truth.is_csv and len(shape) != 1:
        raise ValueError(f"{name} must hold labels in one dimension, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name} must not be empty, got no labels")
    values = np.concatenate(list(blocks(shape[0]))).reshape(-1)
    if text and truth.is_csv and "" in values:
        raise ValueError(f"{name}: label {values.tolist().index('') + 1} must not be empty")
    return legible(name, values)


def _header_hint(truth: _File, file: _File) -> dict[int, str]:
    """Which header may be why there are so many labels more than samples in a query."""
    hints = {}
    if truth.may_have_header:
        which = "yes" if file.may_have_header and file.look.counts_columns else "labels"
        hints[1] = f"; if the first line of {truth.name} is a header, say so (--header {which})"
    if file.may_have_header and file.transpose:
        hints[-1] = "; if its first line is a header, say so (--header predictions)"
    return hints


def _ask_for_header(truth: _File, file: _File, labels: np.ndarray) -> None:
    """ValueError if the first line of the predictions is no predictions, or may be none."""
    if not file.may_have_header:
        return
    first = file.look.first
    read = str if labels.dtype.kind in "US" else float
    classes = set(map(read, labels.tolist()))
    for cell in first:
        if read(cell) not in classes:
            raise ValueError(
                f"{file.name}: its first line has {cell[:40]!r}, which is no label: if it is a "
                "header, say so (--header yes, or predictions if the labels have none)"
            )
    labels_too = truth.may_have_header and (
        truth.look.counts_columns or truth.look.first_stands_alone
    )
    if not labels_too and file.transpose:
        return  # there are as many samples as labels, without one for a header
    alike = file.transpose and file.look.first_stands_alone and first[0] == truth.look.first[0]
    if file.look.counts_columns or alike:
        raise ValueError(
            f"the first lines of {truth.name} and {file.name} may be headers, or a sample: say "
            "which (--header yes, --header no)"
            if labels_too
            else f"{file.name}: its first line may be a header, or predictions: say which "
            "(--header predictions, --header no)"
        )


def _check_packed(
    name: str,
    source: Source,
    n_samples: int | None,
    transpose: bool | None,
    packed: bool,
    bitorder: BitOrder | None,
) -> BitOrder | None:
    """The bit order of packed rows, None for words."""
    if not packed:
        raise ValueError(f"{name}: bitorder is for packed rows, got {bitorder!r} without packed")
    if transpose:
        raise ValueError(f"{name}: packed rows cannot be transposed: bits lie along the samples")
    if n_samples is None:
        raise ValueError(f"{name}: packed rows need n_samples, since bits do not tell it")
    n_samples = check_n_samples(n_samples)
    _check_matrix(name, source)
    if source.dtype.newbyteorder("=") == np.uint64:
        if bitorder is not None:
            raise ValueError(f"{name} holds words, whose bits have one order: leave bitorder out")
        width, unit = -(-n_samples // 64), "word"
    elif source.dtype == np.uint8:
        if bitorder is None:
            raise ValueError(
                f"{name} holds bytes, which do not tell which bit is first: say how numpy.packbits "
                "made them (bitorder='big', its default, --packed big; or 'little', --packed "
                "little)"
            )
        check_choice(("little", "big"), bitorder=bitorder)
        width, unit = -(-n_samples // 8), "byte"
    else:
        raise ValueError(f"{name} must hold packed rows, uint64 or uint8, got {source.dtype}")
    if source.shape[1] != width:
        raise ValueError(
            f"{name} must have packed rows of {counted(width, unit)} for "
            f"{counted(n_samples, 'sample')}, got {source.shape[1]}"
        )
    return bitorder


def _check_unpacked(
    name: str,
    source: Source,
    n_samples: int | None,
    transpose: bool | None,
    header_hint: Mapping[int, str] = MappingProxyType({}),
) -> None:
    _check_matrix(name, source)
    n_queries, found = source.shape
    if n_samples is not None and found != check_n_samples(n_samples):
        hint = "; transposed it would fit" if n_queries == n_samples else ""
        hint = hint or header_hint.get(n_samples - found, "")
        raise ValueError(
            f"{name} must have {counted(n_samples, 'sample')} to a query, "
            f"got {counted(n_queries, 'query', 'queries')} of {found:,}{hint}"
        )
    if n_queries == found and transpose is None:
        raise ValueError(
            f"{name} is square, {found} x {found}: say whether queries are its columns "
            "(transpose=True, --transpose) or its rows (transpose=False, --no-transpose)"
        )


def _check_matrix(name: str, source: Source) -> None:
    if len(source.shape) != 2:
        raise ValueError(f"{name} must be a matrix, queries x samples, got shape {source.shape}")
    if 0 in source.shape:
        raise ValueError(f"{name} must not be empty, got shape {source.shape}")
