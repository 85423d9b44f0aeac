"""Labels, predictions and losses from files, row block by row block (docs/reference/files.md).

A file of predictions or losses holds a matrix with a row per query and a column per sample, k x m
(or, transposed, m x k); one of labels holds one column.

Pickled objects are refused, never loaded.  Every other fault of a file is a ValueError of one line
that begins with the file's name; what the operating system refuses is its OSError.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from radabound_fast._checks import check_n_samples, counted
from radabound_fast.files.csv import HEADER_HINT, INDEX_HINT, CsvFile, Place, lines_of
from radabound_fast.files.formats import FORMATS, Source, legible, side_by_side, transposed
from radabound_fast.files.long import is_long, long_source
from radabound_fast.files.place import CSV, TABLES, expanded, is_url, split_key, stem_of, suffix_of
from radabound_fast.rows.packing import words_of

if TYPE_CHECKING:
    from radabound_fast.files.tables import Table

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Paths = Path | Sequence[Path]
# what rows of bits are: words of `pack_losses`, or bytes of ``numpy.packbits`` in this bit order
Packed = Literal[True, "little", "big"]

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
    bitorder: str | None = None  # that of packed rows of bytes, which become words here
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
    packed: Packed | None = None,
    header: bool | None = None,
) -> FileRows:
    """Open a file of losses, or several files, folders, patterns or URLs.

    `n_samples` is what m must be, and needed for packed rows.  With `transpose` the file is m x k,
    a query is a column; a square file needs True or False.  `header` says whether the first line of
    a .csv file is one.  None: it is none, and an error if it reads 0, 1, 2, ....

    ValueError: the file is not what its name says, cut short, not a matrix, empty, square without a
    choice, of unknown bit order, or has the wrong m.  OSError, ImportError: it is missing or
    unreadable; what reads it is not installed.
    """
    files = _Files(path, header, transpose, classes=False)
    files.check_not_counted()
    return _rows(files, files.parts(False, n_samples), n_samples, packed)


def open_predictions(
    labels: Paths,
    path: Paths,
    *,
    transpose: bool | None = None,
    packed: Packed | None = None,
    labels_header: bool | None = None,
    header: bool | None = None,
    classes: bool = True,
    probabilities: bool = False,
) -> tuple[np.ndarray, FileRows]:
    """Open files of labels, shape (n_samples,), and of predictions, both as numbers or as text.

    Cells of .csv files are numbers if those of both files are, as `files.csv` distinguishes them;
    otherwise they are text, and compared as they stand.  Without `classes` predictions are scores,
    probabilities or numbers, which no label is compared with, and always numbers.  With
    `probabilities` arrays may be k x m x classes, and a file may have one model's, m x classes, its
    columns named as the classes or in their order.  All else, and the errors, are as in
    `open_losses`.
    """
    truth = _Files(labels, labels_header)
    files = _Files(path, header, transpose, classes=classes)
    if packed and not classes:
        raise ValueError(f"{files.name}: packed rows are of classes, and not of scores")
    text, note = _as_text(truth, files) if classes else (truth.is_text, None)
    values = _labels(truth, text)
    files.check_not_counted()
    parts = files.parts(text and classes, len(values))
    if probabilities:
        parts = [(name, _one_model(name, source, values)) for name, source in parts]
    hint = HEADER_HINT if truth.may_have_header else ""
    rows = _rows(files, parts, len(values), packed, hint, note, probabilities)
    if classes:
        _check_first_row(files, values)
    return values, rows


def _one_model(name: str, source: Source, labels: np.ndarray) -> Source:
    """A table of one model's probabilities, m x classes, as a query; any other source as it is."""
    wanted = [str(each) for each in sorted(set(labels.tolist()))]
    columns = source.columns
    named = columns is not None and sorted(columns) == sorted(wanted)
    by_place = columns is None and len(wanted) > 2
    if source.shape != (len(labels), len(wanted)) or not (named or by_place):
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
    files = _Files(path, False)
    text = like is not None and like.dtype.kind in "US"
    if files.text is not None and files.text.line == 1:
        below = _Files(path, True)
        if below.is_text == text:
            values = _labels(below, text)
            if not text or like is not None and files.text.cell not in set(like.tolist()):
                return values
    if files.is_text and not text:
        raise ValueError(f"{files.name} must hold numbers, got something else{files.where_text}")
    return _labels(files, text)


def open_labels(path: Paths, *, header: bool | None = None) -> np.ndarray:
    """Read the labels in a file, or in several: numbers, or strings.

    `header` says whether the first line of a .csv file is a header; None: it is none, and an error
    if its text occurs nowhere below.  OSError: the file cannot be read.  ValueError: it holds
    something else; the message has no label.
    """
    files = _Files(path, header)
    return _labels(files, files.is_text)


class _File(NamedTuple):
    """A file that is about to be read: a .csv file, a table or an array."""

    name: str
    content: CsvFile | Source
    is_table: bool

    @property
    def csv(self) -> CsvFile | None:
        return self.content if isinstance(self.content, CsvFile) else None

    def source(self, text: bool, transpose: bool | None) -> Source:
        """What reads it; cells of a .csv file as text or as numbers."""
        if not isinstance(self.content, CsvFile):
            return self.content
        source = self.content.source(np.dtype(np.str_) if text else self.content.dtype)
        return transposed(source) if transpose else source


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
        files = expanded(names)
        for file in files:
            _check_regular(file)
        self.name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        self.transpose = transpose
        # opened once: the footer of a wide table takes long to read
        tables = list(map(_table_in, files))
        self._long = files if all(map(_is_long, files, tables)) else []
        self._source: Source | None = None  # of the long form
        self.files: list[_File] = []
        for file, table in zip(files, tables, strict=True) if not self._long else ():
            if table is not None:
                from radabound_fast.files.tables import table_source

                content: CsvFile | Source = table_source(table, bool(transpose))
            elif suffix_of(file) in CSV:
                content = CsvFile(file, header=header, classes=classes)
            else:
                content = FORMATS[suffix_of(file)](file, bool(transpose))
            self.files.append(_File(file, content, table is not None))
        csv_files = [file.csv for file in self.files if file.csv is not None]
        # cells are text or numbers as is wanted
        self.is_csv = bool(self.files) and len(csv_files) == len(self.files)
        # a cell that is no number
        self.text: Place | None = next((each.text for each in csv_files if each.text), None)
        self.where_text = f" in {self.text.where}" if self.text else ""
        # whose first line may be a header, since nobody said
        self.headless = [each for each in csv_files if each.may_have_header]
        self.may_have_header = bool(self.headless)

    @property
    def is_text(self) -> bool:
        """Whether a file holds strings, or cells that are no numbers."""
        if self._long:
            return self._long_source(None).dtype.kind == "U"
        return any(file.content.dtype.kind in "US" for file in self.files)

    def _long_source(self, n_samples: int | None) -> Source:
        if self._source is None or n_samples not in (None, self._source.shape[1]):
            self._source = long_source(self._long, n_samples)
        return self._source

    def parts(self, text: bool, n_samples: int | None = None) -> list[tuple[str, Source]]:
        """Files one after another, each with some of the queries, and what reads them."""
        if self._long:
            return [(self.name, self._long_source(n_samples))]
        parts = [(file.name, file.source(text, self.transpose)) for file in self.files]
        if self.transpose and len(parts) > 1:
            joined = side_by_side(self.name, [source for _, source in parts], n_samples)
            return [(self.name, joined[0])] if len(joined) == 1 else parts
        return parts

    def check_not_counted(self) -> None:
        """Raise a ValueError if a first row is 0, 1, 2, ..., and nobody said that it is data."""
        for file in self.headless:
            if file.first == [str(i) for i in range(len(file.first))]:
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


def _table_in(name: str) -> Table | None:
    if suffix_of(name) not in TABLES:
        return None
    from radabound_fast.files.tables import table_in  # which needs pyarrow

    return table_in(name)


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
    for file in files.headless:
        read = str if text else int if file.dtype.kind == "i" else float
        for cell in file.first:
            if read(cell) not in classes:
                raise ValueError(
                    f"{file.name}: its first line has {cell[:40]!r}, which is no label{HEADER_HINT}"
                )


def _as_text(truth: _Files, files: _Files) -> tuple[bool, str | None]:
    """Whether cells of .csv files are compared as text, and why although those of one are numbers.

    They are numbers only if no two texts of either become one.
    """
    text = files.is_text if truth.is_csv and not files.is_csv else truth.is_text
    if not text and truth.is_text:
        raise ValueError(
            f"{truth.name} must hold numbers, as {files.name} does, got something else"
            f"{truth.where_text}"
        )
    if not text and files.text is not None:
        hint = HEADER_HINT if files.may_have_header and files.text.line == 1 else ""
        raise ValueError(
            f"{files.name} must hold numbers, as {truth.name} does, got {files.text}{hint}"
        )
    if text and truth.is_csv and files.is_csv and not files.is_text:
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
    shape, _, blocks, *_ = file.source(text, None)
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
    files: _Files,
    parts: list[tuple[str, Source]],
    n_samples: int | None,
    packed: Packed | None,
    hint: str = "",
    note: str | None = None,
    probabilities: bool = False,
) -> FileRows:
    """What is read of files; `hint` says why a row may have one label too few or too many."""
    if files.transpose and files.may_have_header:
        hint = HEADER_HINT
    for name, source in parts:
        if packed:
            _check_packed(name, source, files.transpose, n_samples, packed)
        else:
            _check_unpacked(name, source, files.transpose, n_samples, hint, probabilities)
        if source.shape[1] != parts[0][1].shape[1]:
            raise ValueError(
                f"{name} must have queries as long as those of {parts[0][0]}, "
                f"{parts[0][1].shape[1]:,}, got {source.shape[1]:,}"
            )
    return FileRows(files.name, parts, packed if isinstance(packed, str) else None, note)


def _check_packed(
    name: str, source: Source, transpose: bool | None, n_samples: int | None, packed: Packed
) -> None:
    if transpose:
        raise ValueError(f"{name}: packed rows cannot be transposed: bits lie along the samples")
    if n_samples is None:
        raise ValueError(f"{name}: packed rows need n_samples, since bits do not tell it")
    n_samples = check_n_samples(n_samples)
    _check_shape(name, source)
    if source.dtype.newbyteorder("=") == np.uint64:
        if packed is not True:
            raise ValueError(f"{name} holds words, whose bits have one order: leave bitorder out")
        width, unit = -(-n_samples // 64), "word"
    elif source.dtype == np.uint8:
        if packed is True:
            raise ValueError(
                f"{name} holds bytes, which do not tell which bit is first: say how numpy.packbits "
                "made them (bitorder='big', its default, --packed big; or 'little', --packed "
                "little)"
            )
        width, unit = -(-n_samples // 8), "byte"
    else:
        raise ValueError(f"{name} must hold packed rows, uint64 or uint8, got {source.dtype}")
    if source.shape[1] != width:
        raise ValueError(
            f"{name} must have packed rows of {counted(width, unit)} for "
            f"{counted(n_samples, 'sample')}, got {source.shape[1]}"
        )


def _check_unpacked(
    name: str,
    source: Source,
    transpose: bool | None,
    n_samples: int | None,
    hint: str,
    probabilities: bool,
) -> None:
    is_cube = probabilities and len(source.shape) == 3
    if is_cube and transpose:
        raise ValueError(f"{name} must be models x samples x classes, and not transposed")
    _check_shape(name, source, 3 if is_cube else 2)
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
    if n_queries == length and transpose is None and not is_cube:
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


def _check_shape(name: str, source: Source, ndim: int = 2) -> None:
    if len(source.shape) != ndim:
        raise ValueError(f"{name} must be a matrix, queries x samples, got shape {source.shape}")
    if 0 in source.shape:
        raise ValueError(f"{name} must not be empty, got shape {source.shape}")
