"""Reads .csv files: numbers or text, row block by row block.

The csv module reads them, and not pyarrow: a row is a query, with a column for each sample, and
pyarrow takes 10 s for a file of 10 rows and 400,000 columns that the csv module reads in 0.3 s.

A file of predictions or labels holds numbers if every cell, but for spaces around it, prints back
as it stands, all of them in one way: the shortest (``1``, ``-3``, ``1.0``, ``0.25``, ``1e-05``), or
with so many decimals (``1.00``), or so many and an exponent, as ``numpy.savetxt`` writes.  Every
other file is text: ``01``, ``1_1``, ``1.1`` beside ``1.10``.  So no two texts of a file become one
number, but for ``1`` and ``1.0``, which are one, and for the two zeros.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.files.formats import Source
from radabound_fast.files.place import opened

_PLAIN = re.compile(r"-?\d{1,30}(?:\.(\d{1,30}))?(?:e[+-]\d{1,3})?", re.ASCII)
_INTEGER = "integer"  # the way of integers that int64 holds and float64 perhaps not
_EVERY_WAY = frozenset(["", _INTEGER, *(f".{n}{form}" for n in range(31) for form in ("f", "e"))])
_MISSING = frozenset(
    ["", "nan", "NaN", "NA", "N/A", "n/a", "NULL", "null", "None", "none", "<NA>", "#N/A", "."]
)
HEADER_HINT = "; if a first line is a header, say so (--header)"
INDEX_HINT = "; an index column? pandas leaves it out with index=False"


class Place(NamedTuple):
    """A cell, and where it stands, counted from 1."""

    line: int
    column: int
    cell: str

    def __str__(self) -> str:
        return f"{self.cell[:40]!r} in {self.where}"

    @property
    def where(self) -> str:
        """The place without the cell, which may be a label."""
        return f"line {self.line}, cell {self.column}"


class Line(NamedTuple):
    number: int  # of the file's lines, from 1 on
    cells: list[str]
    first: int = 1  # the column of the first of these cells

    def place(self, cell: str) -> Place:
        """Where a cell stands first."""
        return Place(self.number, self.cells.index(cell) + self.first, cell)


def lines_of(name: str) -> Iterator[Line]:
    """Yield the lines, all as long as the first of the file.

    Blank lines may stand at the end alone: elsewhere a row may be missing.
    """
    with opened(name) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(_without_nul(name, file), strict=True)
        blank = width = 0
        try:
            for cells in reader:
                if not cells:
                    blank = blank or reader.line_num
                    continue
                if blank:
                    raise ValueError(f"{name}, line {blank}: must not be blank, as others follow")
                width = width or len(cells)
                if len(cells) != width:
                    raise ValueError(
                        f"{name}, line {reader.line_num}: must have {counted(width, 'cell')}, as "
                        f"the first line, got {len(cells)}"
                    )
                yield Line(reader.line_num, cells)
        except (csv.Error, UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name} is not a readable .csv file: {error}") from error


def _without_nul(name: str, file: IO[str]) -> Iterator[str]:
    # NumPy drops them at the end of strings, so that two classes would become one
    for line in file:
        if "\0" in line:
            raise ValueError(f"{name} is not a readable .csv file: it has a NUL character")
        yield line


class CsvFile:
    """A .csv file, after one pass over it.

    `header` says whether its first line is a header, and no row.  A header whose first cell is
    empty, above a column that counts the rows, is one unless it is False: so pandas and R write an
    index, which is left out.  `classes`: cells are classes or labels, which are looked at; all
    others are numbers.
    """

    def __init__(self, name: str, *, header: bool | None, classes: bool) -> None:
        self.name = name
        self.is_indexed = header is not False and self._has_index()
        self.has_header = self.is_indexed or bool(header)
        self.names: list[str] | None = None  # the header: names of the cells of a row
        self.first: list[str] = []  # the first row
        # a cell that is no number, or not one in the way of those before it, in the first such line
        self.text: Place | None = None
        self._ways = _EVERY_WAY if classes else frozenset()
        self._missing: Place | None = None
        self._has_words = self._has_numbers = False
        n_rows = 0
        for line in self._lines():
            n_rows += 1
            self.first = self.first or line.cells
            if classes:
                self._look_at(line)
        # a value that is missing among numbers, and no word for a class
        if self._missing is not None and self._has_numbers and not self._has_words:
            hint = INDEX_HINT if self._missing == (1, 1, "") else ""
            raise ValueError(f"{name} must have no missing values, got {self._missing}{hint}")
        self.may_have_header = header is None and n_rows > 1 and not self.has_header
        self.shape = n_rows, len(self.first)  # rows, and cells in each
        kind = np.str_ if self.text else np.int64 if _INTEGER in self._ways else np.float64
        self.dtype: np.dtype[Any] = np.dtype(kind)

    def _has_index(self) -> bool:
        """Whether the first column has no name, and counts the rows from 0 or 1."""
        lines = lines_of(self.name)
        header = next(lines, None)
        if header is None or len(header.cells) < 2 or header.cells[0] or not all(header.cells[1:]):
            return False
        start = None
        for row, line in enumerate(lines):
            start = line.cells[0] if row == 0 else start
            if start not in ("0", "1") or line.cells[0] != str(row + int(start)):
                return False
        return start is not None

    def _lines(self) -> Iterator[Line]:
        """The rows, without header and index."""
        lines = lines_of(self.name)
        if self.has_header:
            header = next(lines, None)
            self.names = header and header.cells[self.is_indexed :]
            if header and header.cells[0] == "" and len(header.cells) > 1 and not self.is_indexed:
                raise ValueError(f"{self.name}: its first column has no name{INDEX_HINT}")
        for number, cells, _ in lines:
            yield Line(number, cells[1:], 2) if self.is_indexed else Line(number, cells)

    def _look_at(self, line: Line) -> None:
        for cell in sorted(set(line.cells)):  # in an order that is the same each time
            ways = _ways_of(cell)
            if ways:
                self._has_numbers = True
            elif cell.strip() in _MISSING:
                self._missing = self._missing or line.place(cell)
            else:
                self._has_words = True
            self._ways &= ways
            if not self._ways:
                self.text = self.text or line.place(cell)

    def source(self, dtype: np.dtype[Any]) -> Source:
        """What reads its rows as text or as numbers."""
        text = dtype.kind == "U"

        def blocks(n_rows: int) -> Iterator[np.ndarray]:
            lines = self._lines()
            if not text:  # a cell is a string, eight times as large, before it is a number
                n_rows = max(1, n_rows // 8)
            while block := list(itertools.islice(lines, n_rows)):
                cells = [line.cells for line in block]
                yield np.array(cells) if text else _numbers(self.name, block, dtype)

        return Source(self.shape, dtype, blocks, columns=self.names)


def ways_of(cell: str) -> frozenset[str]:
    """Ways in which a cell prints back as it stands; none if it is text."""
    text = cell.strip(" \t")
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return frozenset()
    number, decimals = float(text), len(plain[1] or "")
    ways = [way for way in (f".{decimals}f", f".{decimals}e") if format(number, way) == text]
    if text in (repr(number), repr(number).removesuffix(".0")):
        ways.append("")
    if plain[0].removeprefix("-").isdigit():
        whole = int(text)
        if str(whole) == text and -(2**63) <= whole < 2**63:
            ways.append(_INTEGER)
    return frozenset(ways)


_ways_of = functools.lru_cache(maxsize=1 << 16)(ways_of)  # there are few different classes


def _numbers(name: str, lines: list[Line], dtype: np.dtype[Any]) -> np.ndarray:
    cells = itertools.chain.from_iterable(line.cells for line in lines)
    read = int if dtype.kind == "i" else float
    with contextlib.suppress(ValueError):
        numbers = np.fromiter(map(read, cells), dtype).reshape(len(lines), -1)
        if not any("_" in "".join(line.cells) for line in lines):  # 1_1 is 11 to Python
            return numbers
    place = next(line.place(cell) for line in lines for cell in line.cells if not _is_number(cell))
    hint = HEADER_HINT if place.line == 1 else ""
    raise ValueError(f"{name} must hold numbers, got {place}{hint}")


def _is_number(cell: str) -> bool:
    with contextlib.suppress(ValueError):
        float(cell)
        return "_" not in cell
    return False
