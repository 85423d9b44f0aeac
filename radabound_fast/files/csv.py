""".csv files: numbers or text, and whether the first line is a header.

A file of predictions or labels holds numbers if every cell prints back as it stands, all of them
in one way:

* the shortest, as Python and pandas write numbers: ``1``, ``-3``, ``1.0``, ``0.25``, ``1e-05``;
* with so many decimals, as ``"%.2f"`` writes them: ``1.00``, ``0.30``;
* with so many decimals and an exponent, as ``numpy.savetxt`` does: ``1.000000000000000000e+00``.

Spaces around a number are no part of it.  Every other file is text: ``01``, ``1_1``, ``+1``,
``007.1``, ``1.1`` beside ``1.10``.  So no two texts of a file become one number, but for ``1`` and
``1.0``, which are one, and for the two zeros.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import re
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.files.formats import Source

_PLAIN = re.compile(r"-?\d{1,30}(?:\.(\d{1,30}))?(?:e[+-]\d{1,3})?", re.ASCII)
_INTEGER = "integer"  # the way of integers that int64 holds and float64 perhaps not
_MISSING = frozenset(
    ["", "nan", "NaN", "NA", "N/A", "n/a", "NULL", "null", "None", "none", "<NA>", "#N/A", "."]
)
_MANY = 1 << 16  # distinct cells that are remembered while a file is looked at


class Line(NamedTuple):
    number: int  # of the file's lines, from 1 on
    cells: list[str]


class Place(NamedTuple):
    """A cell, where it stands counted from 1."""

    line: int
    column: int
    cell: str

    def __str__(self) -> str:
        return f"{self.cell[:40]!r} in {self.where}"

    @property
    def where(self) -> str:
        """Without the cell, which may be a label."""
        return f"line {self.line}, cell {self.column}"


def lines_of(name: str) -> Iterator[Line]:
    """The lines, but for blank ones at the end; one before others may be a missing row."""
    with open(name, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(_without_nul(name, file), strict=True)
        blank = 0
        try:
            for cells in reader:
                if not cells:
                    blank = blank or reader.line_num
                elif blank:
                    raise ValueError(f"{name}, line {blank}: must not be blank, as others follow")
                else:
                    yield Line(reader.line_num, cells)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{name} is not a readable .csv file: {error}") from error


def _without_nul(name: str, file: IO[str]) -> Iterator[str]:
    # NumPy drops them at the end of strings, so that two classes would become one
    for line in file:
        if "\0" in line:
            raise ValueError(f"{name} is not a readable .csv file: it has a NUL character")
        yield line


class Look:
    """What one pass over a .csv file finds.

    Parameters
    ----------
    name : str
        The file.
    ways : bool
        Whether to look at every cell, and not at their number alone.

    Attributes
    ----------
    n_lines, width : int
        Lines without the blank ones at the end, and cells in each.
    first : list of str
        The cells of the first line.
    """

    def __init__(self, name: str, *, ways: bool = True) -> None:
        self.name = name
        self.n_lines = self.width = 0
        self.first: list[str] = []
        self._unseen: set[str] = set()  # cells of the first line that stand nowhere below
        self._head, self._body = _Ways(), _Ways()
        for line in lines_of(name):
            self.n_lines += 1
            if self.n_lines == 1:
                self.width, self.first = len(line.cells), line.cells
                self._unseen = set(line.cells)
                self._head.take(line)
                continue
            if len(line.cells) != self.width:
                raise ValueError(
                    f"{name}, line {line.number}: must have {counted(self.width, 'cell')}, as the "
                    f"first line, got {len(line.cells)}"
                )
            if ways:
                self._unseen.difference_update(line.cells)
                self._body.take(line)

    def shape(self, header: bool) -> tuple[int, int]:
        """Lines and cells, without the header."""
        return max(0, self.n_lines - header), self.width

    def ways(self, header: bool) -> frozenset[str]:
        """In which ways all cells print back; empty: they are text."""
        return self._body.ways if header else self._head.ways & self._body.ways

    def dtype(self, header: bool) -> np.dtype[Any]:
        """What an array of the numbers is made of."""
        return np.dtype(np.int64 if _INTEGER in self.ways(header) else np.float64)

    def first_text(self, header: bool) -> Place:
        """Of text, the first cell that is no number, or not one in the way of those before it."""
        head = None if header else self._head.text
        # if neither: the first line holds numbers, but not in the way of those below
        return head or self._body.text or Place(1, 1, self.first[0])

    def check_none_missing(self, header: bool) -> None:
        """ValueError if every cell is a number or says that one is missing."""
        parts = [self._body] if header else [self._head, self._body]
        missing = [part.missing for part in parts if part.missing is not None]
        words = any(part.has_words for part in parts)
        if missing and not words and any(part.has_numbers for part in parts):
            first = missing[0]
            index = first == Place(1, 1, "") and self.width > 1  # as pandas writes its own
            hint = "; an index column? pandas leaves it out with index=False" if index else ""
            raise ValueError(f"{self.name} must have no missing values, got {first}{hint}")

    @property
    def names_columns(self) -> bool:
        """Whether the first line has a word, and all below are numbers."""
        return self.n_lines > 1 and self._head.has_words and bool(self._body.ways)

    @property
    def counts_columns(self) -> bool:
        """Whether the first line is 0, 1, 2, ..., as pandas names columns without a name."""
        return self.n_lines > 1 and self.first == [str(i) for i in range(self.width)]

    @property
    def first_stands_alone(self) -> bool:
        """Whether the cells of the first line are all one, which stands nowhere below."""
        return self.n_lines > 1 and len(set(self.first)) == 1 and bool(self._unseen)


class _Ways:
    """In which ways all cells of some lines print back, and the first that leaves none."""

    def __init__(self) -> None:
        self.ways = _EVERY_WAY
        self.text: Place | None = None
        self.missing: Place | None = None
        self.has_words = self.has_numbers = False
        self._seen: set[str] = set()

    def take(self, line: Line) -> None:
        new = set(line.cells) - self._seen
        if not new:
            return
        if len(self._seen) > _MANY:
            self._seen.clear()
        self._seen |= new
        for column, cell in enumerate(line.cells, start=1):
            if cell not in new:
                continue
            new.remove(cell)
            place, found = Place(line.number, column, cell), ways_of(cell)
            if found:
                self.has_numbers = True
            elif cell.strip() in _MISSING:
                self.missing = self.missing or place
            else:
                self.has_words = True
            self.ways &= found
            if not self.ways:
                self.text = self.text or place


def ways_of(cell: str) -> frozenset[str]:
    """In which ways a cell prints back as it stands; empty: it is text."""
    text = cell.strip(" \t")
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return frozenset()
    number, decimals = float(text), len(plain[1] or "")
    ways = [way for way in (f".{decimals}f", f".{decimals}e") if format(number, way) == text]
    if text in (repr(number), repr(number).removesuffix(".0")):
        ways.append("")
    if (
        text.removeprefix("-").isdigit()
        and str(int(text)) == text
        and -(2**63) <= int(text) < 2**63
    ):
        ways.append(_INTEGER)
    return frozenset(ways)


_EVERY_WAY = frozenset(["", _INTEGER, *(f".{n}{form}" for n in range(31) for form in ("f", "e"))])


def source(look: Look, header: bool, dtype: np.dtype[Any]) -> Source:
    """The file that was looked at, below its header; `dtype` is str, or of numbers."""
    text = dtype.kind == "U"

    def blocks(n_rows: int) -> Iterator[np.ndarray]:
        lines = lines_of(look.name)
        if header:
            next(lines, None)
        if not text:  # a cell is a string, eight times as large, before it is a number
            n_rows = max(1, n_rows // 8)
        while block := list(itertools.islice(lines, n_rows)):
            if any(len(line.cells) != look.width for line in block):
                raise ValueError(f"{look.name} changed while it was read")
            yield np.array([line.cells for line in block]) if text else _numbers(look, block, dtype)

    return Source(look.shape(header), dtype, blocks)


def _numbers(look: Look, lines: list[Line], dtype: np.dtype[Any]) -> np.ndarray:
    cells = itertools.chain.from_iterable(line.cells for line in lines)
    shape = len(lines), look.width
    read = int if dtype.kind == "i" else float
    with contextlib.suppress(ValueError):
        numbers = np.fromiter(map(read, cells), dtype, math.prod(shape)).reshape(shape)
        if "_" not in "".join("".join(line.cells) for line in lines):  # 1_1 is 11 to Python
            return numbers
    place = next(
        Place(line.number, column, cell)
        for line in lines
        for column, cell in enumerate(line.cells, start=1)
        if not _is_number(cell)
    )
    hint = "; if it is a header, say so (--header yes)" if place.line == 1 else ""
    raise ValueError(f"{look.name} must hold numbers, got {place}{hint}")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
