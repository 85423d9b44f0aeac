"""Labels, predictions and losses from files, row block by row block.

A file of predictions or losses holds a matrix with a row per query and a column per sample, k x m
(or, transposed, m x k); one of labels holds one column.  The suffix says how:

=================  ==========================================================

``.npy``           memory-mapped, so that the file may be larger than memory
``.npz``           one array, or one of several as ``FILE.npz:key``
``.csv``           comma-separated, UTF-8; numbers or text, as `files.csv` distinguishes them
``.parquet``       a table without missing values; needs the extra ``[files]``
=================  ==========================================================

A .csv file has no header unless its caller says so (``header=True``).  What pandas writes is not
mistaken for data: without ``header=`` a first row of predictions, scores or losses that reads 0, 1,
2, ... is an error, and so is a first label in a column of text that occurs only there.

Files .npz, and .csv files that are transposed, are read into memory whole; the others never are.
Pickled objects are refused, never loaded.  Every other fault of a file is a ValueError of one line
that begins with the file's name; what the operating system refuses is its OSError.  A path is a
str, bytes or an os.PathLike.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from radabound_fast._checks import check_choice, check_n_samples, counted
from radabound_fast.files.csv import HEADER_HINT, INDEX_HINT, CsvFile
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
        The file, as its caller named it.
    source : Source
        What reads it.
    bitorder : {"little", "big"}, optional
        The bit order of packed rows of bytes, which become words here.
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
        """The dtype in the file; that of text has no length, since blocks differ in theirs."""
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
        reads 0, 1, 2, ....

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
    file = _File(path, header, transpose, classes=False)
    file.check_not_counted()
    return _rows(file, file.source(text=False), n_samples, packed, bitorder)


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

    Cells of .csv files are numbers if those of both files are, as `files.csv` distinguishes them;
    otherwise they are text, and compared as they stand.  Predictions that are no classes are always
    numbers.

    Parameters
    ----------
    labels : path
        A file of m labels: one dimension, or, .csv and .parquet, one column (or, .csv, one line).
    path : path
        A file of predictions.
    labels_header, header : bool, optional
        Whether the first line of a .csv file is a header.  None: it is none, and an error if it
        looks like one (see `radabound_fast.files.reading`).
    transpose, packed, bitorder
        See `open_losses`.
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
        See `open_losses`; also for a label that is missing, or numbers in one file and text in the
        other.
    OSError, ImportError
        See `open_losses`.
    """
    truth = _File(labels, labels_header)
    file = _File(path, header, transpose, classes=classes)
    if packed and not classes:
        raise ValueError(f"{file.name}: packed rows are of classes, and not of scores")
    text, note = _as_text(truth, file) if classes else (truth.is_text, None)
    values = _labels(truth, text)
    file.check_not_counted()
    source = file.source(text and classes)
    hint = HEADER_HINT if truth.may_have_header else ""
    rows = _rows(file, source, len(values), packed, bitorder, hint, note)
    if classes:
        _check_first_row(file, values)
    return values, rows


def read_values(path: Path, like: np.ndarray | None = None) -> np.ndarray:
    """Read a file of one value a sample, without a header.

    Parameters
    ----------
    path : path
        Such a file as one of labels.
    like : ndarray, optional
        Labels: the values are text if these are.  None: they are numbers.

    Returns
    -------
    ndarray of shape (n_samples,)

    Raises
    ------
    ValueError, OSError, ImportError
        See `open_predictions`.
    """
    file = _File(path, header=False)
    text = like is not None and like.dtype.kind in "US"
    if file.is_text and not text:
        raise ValueError(f"{file.name} must hold numbers, got something else{file.where_text}")
    return _labels(file, text)


def open_labels(path: Path, *, header: bool | None = None) -> np.ndarray:
    """Read the labels in a file: numbers, or strings.

    Parameters
    ----------
    path : path
        .npy, .npz (or .npz:key), .csv or .parquet.
    header : bool, optional
        Whether the first line of a .csv file is a header; None: it is none, and an error if its
        text occurs nowhere below.

    Raises
    ------
    ValueError
        It holds something else; the message has no label.
    OSError
        It cannot be read.
    """
    file = _File(path, header)
    return _labels(file, file.is_text)


class _File:
    """A file that is about to be read, and what is known of it before.

    Parameters
    ----------
    path : path
        The file.
    header, transpose : bool or None
        What its caller said.
    classes : bool
        Whether its cells are classes or labels, and not scores or losses.
    """

    def __init__(
        self,
        path: Path,
        header: bool | None,
        transpose: bool | None = None,
        *,
        classes: bool = True,
    ) -> None:
        self.name = os.fsdecode(path)
        file, _ = split_key(self.name)
        suffix = os.path.splitext(file)[1].lower()
        if suffix not in SUFFIXES:
            raise ValueError(f"{self.name} must end in {', '.join(SUFFIXES)} or .npz:key")
        mode = os.stat(file).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise ValueError(f"{self.name} must be a regular file, since it is read twice")
        self.transpose = transpose
        self.csv: CsvFile | None = None
        self._array: Source | None = None
        if suffix == ".csv":
            self.csv = CsvFile(self.name, header=bool(header), classes=classes)
            dtype, n_rows = self.csv.dtype, self.csv.shape[0]
        else:
            self._array = FORMATS[suffix](self.name, bool(transpose))
            dtype, n_rows = self._array.dtype, 0
        # strings, or, in a .csv file, cells that are no numbers
        self.is_text = dtype.kind in "US"
        self.may_have_header = header is None and n_rows > 1

    def source(self, text: bool) -> Source:
        """What reads it; cells of a .csv file as text or as numbers."""
        if self.csv is None:
            assert self._array is not None
            return self._array
        source = self.csv.source(np.dtype(np.str_) if text else self.csv.dtype)
        return transposed(source) if self.transpose else source

    @property
    def where_text(self) -> str:
        """Where the first cell of a .csv file is that is no number, without the cell."""
        return f" in {self.csv.text.where}" if self.csv is not None and self.csv.text else ""

    def check_not_counted(self) -> None:
        """Raise a ValueError if the first row is 0, 1, 2, ..., and nobody said that it is data."""
        if self.csv is None or not self.may_have_header:
            return
        if self.csv.first == [str(i) for i in range(len(self.csv.first))]:
            raise ValueError(
                f"{self.name}: its first line reads 0, 1, 2, ..., as pandas names columns without "
                "names: is it a header? Say so (--header yes), or not (--header no)"
            )


def _check_first_row(file: _File, labels: np.ndarray) -> None:
    """Raise a ValueError if the first row of a .csv file may be a header, and is none of labels."""
    if file.csv is None or not file.may_have_header:
        return
    text = labels.dtype.kind in "US"
    classes = set(labels.astype(np.str_).tolist() if text else labels.tolist())
    read = str if text else int if file.csv.dtype.kind == "i" else float
    for cell in file.csv.first:
        if read(cell) not in classes:
            raise ValueError(
                f"{file.name}: its first line has {cell[:40]!r}, which is no label{HEADER_HINT}"
            )


def _as_text(truth: _File, file: _File) -> tuple[bool, str | None]:
    """Whether cells of .csv files are compared as text, and why although those of one are numbers.

    They are numbers only if no two texts of either become one.
    """
    text = file.is_text if truth.csv is not None and file.csv is None else truth.is_text
    if not text and truth.is_text:
        raise ValueError(
            f"{truth.name} must hold numbers, as {file.name} does, got something else"
            f"{truth.where_text}"
        )
    if not text and file.csv is not None and file.csv.text is not None:
        hint = HEADER_HINT if file.may_have_header and file.csv.text.line == 1 else ""
        raise ValueError(
            f"{file.name} must hold numbers, as {truth.name} does, got {file.csv.text}{hint}"
        )
    if text and truth.csv is not None and file.csv is not None and not file.is_text:
        return text, f"{truth.name} has no plain number{truth.where_text}"
    return text, None


def _labels(truth: _File, text: bool) -> np.ndarray:
    """The labels, one-dimensional and not empty."""
    name = truth.name
    shape, _, blocks = truth.source(text)
    if truth.csv is not None and 1 not in shape:
        raise ValueError(
            f"{name} must hold labels in one column or one line, got shape {shape}"
            f"{INDEX_HINT if shape[1] == 2 else ''}"
        )
    if truth.csv is None and len(shape) == 2 and name.lower().endswith(".parquet"):
        shape = shape[:1] if shape[1] == 1 else shape
    if truth.csv is None and len(shape) != 1:
        raise ValueError(f"{name} must hold labels in one dimension, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name} must not be empty, got no labels")
    values = np.concatenate(list(blocks(shape[0]))).reshape(-1)
    if text and truth.csv is not None and "" in values:
        raise ValueError(f"{name}: label {values.tolist().index('') + 1} must not be empty")
    if text and truth.may_have_header and values[0] not in values[1:]:
        raise ValueError(
            f"{name}: is the first line, which is like no other, a header? Say so (--header yes, "
            "or labels if it alone has one), or not (--header no)"
        )
    return legible(name, values)


def _rows(
    file: _File,
    source: Source,
    n_samples: int | None,
    packed: bool,
    bitorder: BitOrder | None,
    hint: str = "",
    note: str | None = None,
) -> FileRows:
    """What is read of a file; `hint` says why a row may have one label too few or too many."""
    if packed or bitorder is not None:
        bitorder = _check_packed(file, source, n_samples, packed, bitorder)
    else:
        if file.transpose and file.may_have_header:
            hint = HEADER_HINT
        _check_unpacked(file, source, n_samples, hint)
    return FileRows(file.name, source, bitorder, note)


def _check_packed(
    file: _File, source: Source, n_samples: int | None, packed: bool, bitorder: BitOrder | None
) -> BitOrder | None:
    """The bit order of packed rows, None for words."""
    name = file.name
    if not packed:
        raise ValueError(f"{name}: bitorder is for packed rows, got {bitorder!r} without packed")
    if file.transpose:
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


def _check_unpacked(file: _File, source: Source, n_samples: int | None, hint: str) -> None:
    name = file.name
    _check_matrix(name, source)
    n_queries, found = source.shape
    if n_samples is not None and found != check_n_samples(n_samples):
        if abs(n_samples - found) != 1:
            hint = ""
        if n_queries == n_samples:
            hint = "; transposed it would fit"
        raise ValueError(
            f"{name} must have {counted(n_samples, 'sample')} to a query, "
            f"got {counted(n_queries, 'query', 'queries')} of {found:,}{hint}"
        )
    if n_queries == found and file.transpose is None:
        raise ValueError(
            f"{name} is square, {found} x {found}: say whether queries are its columns "
            "(transpose=True, --transpose) or its rows (transpose=False, --no-transpose)"
        )


def _check_matrix(name: str, source: Source) -> None:
    if len(source.shape) != 2:
        raise ValueError(f"{name} must be a matrix, queries x samples, got shape {source.shape}")
    if 0 in source.shape:
        raise ValueError(f"{name} must not be empty, got shape {source.shape}")
