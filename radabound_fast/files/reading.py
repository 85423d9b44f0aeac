"""Labels, predictions and losses from files, row block by row block.

A file of predictions or losses holds a matrix with a row per query and a column per sample, k x m
(or, transposed, m x k); one of labels holds one column.  The suffix says how:

=====================================  =========================================================

``.npy``                               memory-mapped, so that the file may be larger than memory
``.npz``                               one array, or one of several as ``FILE.npz:key``
``.zarr``                              an array; needs the extra ``[zarr]``
``.csv``, ``.csv.gz``                  UTF-8; numbers or text, as `files.csv` distinguishes them
``.parquet``, ``.arrow``, ``.feather`` tables without missing values; need the extra ``[files]``
=====================================  =========================================================

Several files, a folder or a pattern are one data set: `files.place` puts them in order, and
`files.sources` side by side.  A table of the columns model, row and prediction (or loss) is in the
long form (`files.long`).

A .csv file has no header unless its caller says so (``header=True``), but for an index that pandas
or R wrote, which has no name and counts the rows.  What pandas writes is not mistaken for data:
without ``header=`` a first row of predictions, scores or losses that reads 0, 1, 2, ... is an
error, and so is a first label in a column of text that occurs only there.

Files .npz, and .csv files that are transposed, are read into memory whole; the others never are.
Pickled objects are refused, never loaded.  Every other fault of a file is a ValueError of one line
that begins with the file's name; what the operating system refuses is its OSError.  A path is a
str, bytes or an os.PathLike.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from radabound_fast._checks import check_choice, check_n_samples, counted
from radabound_fast.files.csv import HEADER_HINT, INDEX_HINT, CsvFile, Place, lines_of
from radabound_fast.files.formats import Source, legible, split_key, transposed
from radabound_fast.files.long import is_long, long_source
from radabound_fast.files.place import expanded, is_url
from radabound_fast.files.sources import (
    CSV,
    FORMATS,
    SUFFIXES,
    TABLES,
    side_by_side,
    stem_of,
    suffix_of,
)
from radabound_fast.files.tables import Table, table_in, table_source
from radabound_fast.rows.packing import words_of

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Path | Sequence[Path]
BitOrder = Literal["little", "big"]

BLOCK_BYTES = 8 << 20
_TEXT_CELL_BYTES = 64  # a Python string of a few letters
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)[:, ::-1])


@dataclass(frozen=True)
class FileRows:
    """The queries of a data set, to be read in order, as often as wanted.

    Iteration gives arrays of one or more whole rows, about 8 MB each; blocks of a
    memory-mapped file are views of it.
    """

    name: str  # of the data set, as its caller has it
    parts: list[tuple[str, Source]]  # files one after another, each with some of the queries
    bitorder: BitOrder | None = None  # that of packed rows of bytes, which become words here
    note: str | None = None  # why cells that are numbers are compared as text

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_queries, n_samples)``; packed: n_queries, and bytes or words of a row."""
        return sum(source.shape[0] for _, source in self.parts), self.parts[0][1].shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in the first file; text has no length, since blocks differ in theirs."""
        return self.parts[0][1].dtype

    @property
    def names(self) -> list[str] | None:
        """What each query is called; None where nothing says."""
        names = [source.names for _, source in self.parts]
        if any(each is None for each in names):
            return None
        return [name for each in names for name in each or ()]

    def file_of(self, query: int) -> str:
        """The file that a query is in; 0 is the first."""
        for name, source in self.parts:
            query -= source.shape[0]
            if query < 0:
                return name
        return self.name

    def __iter__(self) -> Iterator[np.ndarray]:
        return self.blocks()

    def blocks(self, first: int = 0) -> Iterator[np.ndarray]:
        """Blocks of the queries from one on; files that end before it are not opened again."""
        for name, source in self.parts:
            n_rows, *row = source.shape
            skipped = min(first, n_rows)
            first -= skipped
            if skipped == n_rows:
                continue
            cell_bytes = source.dtype.itemsize or _TEXT_CELL_BYTES
            for block in source.blocks(max(1, BLOCK_BYTES // (cell_bytes * math.prod(row)))):
                rest, skipped = block[skipped:], max(0, skipped - len(block))
                if not len(rest):
                    continue
                if self.bitorder is None:
                    yield legible(name, rest)
                else:
                    yield words_of(_REVERSED[rest] if self.bitorder == "big" else rest)


def open_losses(
    path: Paths,
    *,
    n_samples: int | None = None,
    transpose: bool | None = None,
    packed: bool = False,
    bitorder: BitOrder | None = None,
    header: bool | None = None,
) -> FileRows:
    """Open a file of losses, or several files, folders, patterns or URLs.

    Parameters
    ----------
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

    Raises
    ------
    ValueError
        The file is not what its name says, cut short, not a matrix, empty, square without a choice,
        of unknown bit order, or has the wrong m.
    OSError, ImportError
        It is missing or unreadable; what reads it is not installed.
    """
    file = _Files(path, header, transpose, classes=False)
    file.check_not_counted()
    return _rows(file, file.parts(False, n_samples), n_samples, packed, bitorder)


def open_predictions(
    labels: Paths,
    path: Paths,
    *,
    transpose: bool | None = None,
    packed: bool = False,
    bitorder: BitOrder | None = None,
    labels_header: bool | None = None,
    header: bool | None = None,
    classes: bool = True,
    probabilities: bool = False,
) -> tuple[np.ndarray, FileRows]:
    """Open a file of labels and one of predictions, both as numbers or both as text.

    Cells of .csv files are numbers if those of both files are, as `files.csv` distinguishes them;
    otherwise they are text, and compared as they stand.  Predictions that are no classes are always
    numbers.

    Parameters
    ----------
    labels : path, or sequence of paths
        m labels: one dimension, or, in tables and .csv files, one column (or, .csv, one line).
    path : path, or sequence of paths
        Predictions.
    labels_header, header : bool, optional
        Whether the first line of a .csv file is a header.  None: it is none, and an error if it
        looks like one (see `radabound_fast.files.reading`).
    classes : bool
        False: predictions are scores, probabilities or numbers, which no label is compared with.
    probabilities : bool
        They are probabilities: arrays may be k x m x classes, and a file may have one model's, m x
        classes, its columns named as the classes or in their order.
    transpose, packed, bitorder
        See `open_losses`, whose errors these are too.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        Numbers, bools or strings; none may be missing.
    rows : FileRows
    """
    truth = _Files(labels, labels_header)
    file = _Files(path, header, transpose, classes=classes)
    if packed and not classes:
        raise ValueError(f"{file.name}: packed rows are of classes, and not of scores")
    text, note = _as_text(truth, file) if classes else (truth.is_text, None)
    values = _labels(truth, text)
    file.check_not_counted()
    parts = file.parts(text and classes, len(values))
    if probabilities:
        parts = [(name, _one_model(name, source, values)) for name, source in parts]
    hint = HEADER_HINT if truth.may_have_header else ""
    rows = _rows(file, parts, len(values), packed, bitorder, hint, note, probabilities)
    if classes:
        _check_first_row(file, values)
    return values, rows


def _one_model(name: str, source: Source, labels: np.ndarray) -> Source:
    """A table of one model's probabilities, m x classes, as a query; any other source as it is."""
    known = sorted(set(labels.tolist()))
    wanted = [str(each) for each in known]
    columns = source.columns
    named = columns is not None and sorted(columns) == sorted(wanted)
    by_place = columns is None and len(known) > 2
    if source.shape != (len(labels), len(known)) or not (named or by_place):
        return source
    order = [columns.index(each) for each in wanted] if named and columns else slice(None)

    def blocks(n: int) -> Iterator[np.ndarray]:
        yield np.concatenate(list(source.blocks(len(labels))))[np.newaxis, :, order]

    return Source((1, *source.shape), source.dtype, blocks, [stem_of(name)])


def read_values(path: Path, like: np.ndarray | None = None) -> np.ndarray:
    """Read a file of one value a sample, shape (n_samples,); such a file as one of labels.

    A first line of a .csv file that is no number, or none of the labels, above lines that all are,
    is a header.  With `like`, labels, the values are text if these are; else they are numbers.
    Errors are those of `open_predictions`.
    """
    file = _Files(path, False)
    text = like is not None and like.dtype.kind in "US"
    if file.text is not None and file.text.line == 1:
        below = _Files(path, True)
        if below.is_text == text:
            values = _labels(below, text)
            if not text or like is not None and file.text.cell not in set(like.tolist()):
                return values
    if file.is_text and not text:
        raise ValueError(f"{file.name} must hold numbers, got something else{file.where_text}")
    return _labels(file, text)


def open_labels(path: Paths, *, header: bool | None = None) -> np.ndarray:
    """Read the labels in a file, or in several: numbers, or strings.

    `header` says whether the first line of a .csv file is a header; None: it is none, and an error
    if its text occurs nowhere below.  OSError: the file cannot be read.  ValueError: it holds
    something else; the message has no label.
    """
    file = _Files(path, header)
    return _labels(file, file.is_text)


class _File:
    """A file that is about to be read, and what is known of it before."""

    def __init__(
        self,
        name: str,
        header: bool | None,
        transpose: bool | None,
        classes: bool,
        table: Table | None,
    ) -> None:
        self.name, self.transpose = name, transpose
        suffix = suffix_of(name)
        self.csv: CsvFile | None = None
        self._array: Source | None = None
        if suffix in CSV:
            self.csv = CsvFile(name, header=header, classes=classes)
            dtype, n_rows = self.csv.dtype, self.csv.shape[0]
        else:
            turned = bool(transpose)
            self._array = table_source(table, turned) if table else FORMATS[suffix](name, turned)
            dtype, n_rows = self._array.dtype, 0
        self.is_table = table is not None
        # strings, or, in a .csv file, cells that are no numbers
        self.is_text = dtype.kind in "US"
        is_one = self.csv is not None and self.csv.has_header
        self.may_have_header = header is None and n_rows > 1 and not is_one

    def source(self, text: bool) -> Source:
        """What reads it; cells of a .csv file as text or as numbers."""
        if self.csv is None:
            assert self._array is not None
            return self._array
        source = self.csv.source(np.dtype(np.str_) if text else self.csv.dtype)
        return transposed(source) if self.transpose else source


class _Files:
    """A data set that is about to be read, and what is known of it before.

    `header` and `transpose` are what its caller said; `classes`: its cells are classes or labels,
    and not scores or losses.
    """

    def __init__(
        self,
        paths: Paths,
        header: bool | None,
        transpose: bool | None = None,
        *,
        classes: bool = True,
    ) -> None:
        listed = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
        names = [os.fsdecode(path) for path in listed]
        files = expanded(names, SUFFIXES)
        for file in files:
            _check_regular(file)
        self.name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        self.transpose, self._classes = transpose, classes
        # opened once: the footer of a wide table takes long to read
        tables = [table_in(file) if suffix_of(file) in TABLES else None for file in files]
        self._long = files if all(map(_is_long, files, tables)) else []
        self.files = (
            []
            if self._long
            else [
                _File(file, header, transpose, classes, table)
                for file, table in zip(files, tables, strict=True)
            ]
        )
        self.may_have_header = any(file.may_have_header for file in self.files)
        self._source: Source | None = None

    @property
    def is_text(self) -> bool:
        """Whether a file holds strings, or cells that are no numbers."""
        return any(file.is_text for file in self.files) or (
            bool(self._long) and self._long_source(None).dtype.kind == "U"
        )

    @property
    def is_csv(self) -> bool:
        """Whether cells are text or numbers as is wanted."""
        return bool(self.files) and all(file.csv is not None for file in self.files)

    @property
    def text(self) -> Place | None:
        """A cell of a .csv file that is no number."""
        return next((f.csv.text for f in self.files if f.csv is not None and f.csv.text), None)

    @property
    def where_text(self) -> str:
        """Where the first cell of a .csv file is that is no number, without the cell."""
        return f" in {self.text.where}" if self.text else ""

    def _long_source(self, n_samples: int | None) -> Source:
        if self._source is None or n_samples not in (None, self._source.shape[1]):
            self._source = long_source(self._long, n_samples)
        return self._source

    def parts(self, text: bool, n_samples: int | None = None) -> list[tuple[str, Source]]:
        """Files one after another, each with some of the queries, and what reads them."""
        if self._long:
            return [(self.name, self._long_source(n_samples))]
        parts = [(file.name, file.source(text)) for file in self.files]
        if self.transpose and len(parts) > 1:
            joined = side_by_side(self.name, [source for _, source in parts], n_samples)
            return [(self.name, joined[0])] if len(joined) == 1 else parts
        return parts

    def check_not_counted(self) -> None:
        """Raise a ValueError if a first row is 0, 1, 2, ..., and nobody said that it is data."""
        for file in self.files:
            if file.csv is None or not file.may_have_header:
                continue
            if file.csv.first == [str(i) for i in range(len(file.csv.first))]:
                raise ValueError(
                    f"{file.name}: its first line reads 0, 1, 2, ..., as pandas names columns "
                    "without names: is it a header? Say so (--header yes), or not (--header no)"
                )


def _check_regular(name: str) -> None:
    if is_url(name):
        return
    suffix, path = suffix_of(name), split_key(name)[0]
    if suffix == ".zarr":
        path = path[: path.lower().index(suffix) + len(suffix)]
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ValueError(f"{name} must be a regular file, since it is read twice")


def _is_long(name: str, table: Table | None) -> bool:
    """Whether a file is a table in the long form."""
    if suffix_of(name) in CSV:
        header = next(lines_of(name), None)
        return header is not None and is_long(header.cells)
    return table is not None and is_long([field.name for field in table.fields])


def _check_first_row(files: _Files, labels: np.ndarray) -> None:
    """Raise a ValueError if the first row of a .csv file may be a header, and is none of labels."""
    text = labels.dtype.kind in "US"
    classes = set(labels.astype(np.str_).tolist() if text else labels.tolist())
    for file in files.files:
        if file.csv is None or not file.may_have_header:
            continue
        read = str if text else int if file.csv.dtype.kind == "i" else float
        for cell in file.csv.first:
            if read(cell) not in classes:
                raise ValueError(
                    f"{file.name}: its first line has {cell[:40]!r}, which is no label{HEADER_HINT}"
                )


def _as_text(truth: _Files, file: _Files) -> tuple[bool, str | None]:
    """Whether cells of .csv files are compared as text, and why although those of one are numbers.

    They are numbers only if no two texts of either become one.
    """
    text = file.is_text if truth.is_csv and not file.is_csv else truth.is_text
    if not text and truth.is_text:
        raise ValueError(
            f"{truth.name} must hold numbers, as {file.name} does, got something else"
            f"{truth.where_text}"
        )
    if not text and file.text is not None:
        hint = HEADER_HINT if file.may_have_header and file.text.line == 1 else ""
        raise ValueError(
            f"{file.name} must hold numbers, as {truth.name} does, got {file.text}{hint}"
        )
    if text and truth.is_csv and file.is_csv and not file.is_text:
        return text, f"{truth.name} has no plain number{truth.where_text}"
    return text, None


def _labels(truth: _Files, text: bool) -> np.ndarray:
    """The labels, one-dimensional and not empty."""
    values = np.concatenate([_labels_in(file, text) for file in truth.files])
    if text and truth.is_csv and "" in values:
        raise ValueError(f"{truth.name}: label {values.tolist().index('') + 1} must not be empty")
    if text and truth.may_have_header and values[0] not in values[1:]:
        raise ValueError(
            f"{truth.name}: is the first line, which is like no other, a header? Say so (--header "
            "yes, or labels if it alone has one), or not (--header no)"
        )
    return legible(truth.name, values)


def _labels_in(file: _File, text: bool) -> np.ndarray:
    name = file.name
    shape, _, blocks, *_ = file.source(text)
    if file.csv is not None and 1 not in shape:
        raise ValueError(
            f"{name} must hold labels in one column or one line, got shape {shape}"
            f"{INDEX_HINT if shape[1] == 2 else ''}"
        )
    if file.is_table and len(shape) == 2:
        shape = shape[:1] if shape[1] == 1 else shape
    if file.csv is None and len(shape) != 1:
        raise ValueError(f"{name} must hold labels in one dimension, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name} must not be empty, got no labels")
    return np.concatenate(list(blocks(shape[0]))).reshape(-1)


def _rows(
    file: _Files,
    parts: list[tuple[str, Source]],
    n_samples: int | None,
    packed: bool,
    bitorder: BitOrder | None,
    hint: str = "",
    note: str | None = None,
    probabilities: bool = False,
) -> FileRows:
    """What is read of files; `hint` says why a row may have one label too few or too many."""
    if file.transpose and file.may_have_header:
        hint = HEADER_HINT
    for name, source in parts:
        if packed or bitorder is not None:
            bitorder = _check_packed(name, source, file.transpose, n_samples, packed, bitorder)
        else:
            _check_unpacked(name, source, file.transpose, n_samples, hint, probabilities)
        if source.shape[1] != parts[0][1].shape[1]:
            raise ValueError(
                f"{name} must have queries as long as those of {parts[0][0]}, "
                f"{parts[0][1].shape[1]:,}, got {source.shape[1]:,}"
            )
    return FileRows(file.name, parts, bitorder, note)


def _check_packed(
    name: str,
    source: Source,
    transpose: bool | None,
    n_samples: int | None,
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
    transpose: bool | None,
    n_samples: int | None,
    hint: str,
    probabilities: bool,
) -> None:
    if probabilities and len(source.shape) == 3:
        if transpose:
            raise ValueError(f"{name} must be models x samples x classes, and not transposed")
        _check_not_empty(name, source)
    else:
        _check_matrix(name, source)
    n_queries, length = source.shape[:2]
    if n_samples is not None and length != check_n_samples(n_samples):
        if abs(n_samples - length) != 1:
            hint = ""
        if n_queries == n_samples:
            hint = "; transposed it would fit"
        raise ValueError(
            f"{name} must have {counted(n_samples, 'sample')} to a query, "
            f"got {counted(n_queries, 'query', 'queries')} of {length:,}{hint}"
        )
    if n_queries == length and transpose is None and len(source.shape) == 2:
        raise ValueError(
            f"{name} is square, {length} x {length}: say whether queries are its columns "
            "(transpose=True, --transpose) or its rows (transpose=False, --no-transpose)"
        )
    if transpose:
        _check_no_index(name, source)


def _check_no_index(name: str, source: Source) -> None:
    """Raise a ValueError if the first query counts the rows: a score would tell their order."""
    first = next(source.blocks(1))[0]
    if len(first) < 10 or first.dtype.kind not in "iuf" or first[0] not in (0, 1):
        return
    if np.array_equal(first, first[0] + np.arange(len(first))):
        called = "" if source.names is None else f", {source.names[0][:60]!r},"
        raise ValueError(
            f"{name}: its first column{called} counts the rows, as an index does: leave it out"
        )


def _check_matrix(name: str, source: Source) -> None:
    if len(source.shape) != 2:
        raise ValueError(f"{name} must be a matrix, queries x samples, got shape {source.shape}")
    _check_not_empty(name, source)


def _check_not_empty(name: str, source: Source) -> None:
    if 0 in source.shape:
        raise ValueError(f"{name} must not be empty, got shape {source.shape}")
