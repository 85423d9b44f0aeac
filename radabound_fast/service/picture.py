"""Where the scores of the page are drawn: a scatter plot of answers, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count, takewhile
from typing import Any, NamedTuple

from radabound_fast._checks import counted

_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 10, 28, 44
_MANY = 100  # points, from which on they are small


class Point(NamedTuple):
    """An answer on the page; a limit is nan where the guard has none."""

    number: int
    value: float
    low: float
    high: float
    team: str
    second: int
    key: Any

    @property
    def has_limits(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


class Mark(NamedTuple):
    """A point in a picture; `top` and `bottom` are None where it has no interval."""

    point: Point
    x: float
    y: float
    top: float | None
    bottom: float | None


class Picture(NamedTuple):
    """A scatter plot of values against the numbers of the answers, in pixels."""

    kind: str  # of a screen: "wide" or "narrow"
    width: int
    height: int
    left: int
    right: int
    rows: list[tuple[float, str]]  # y and text of each line of the grid
    columns: list[tuple[float, str]]  # x and text of each number
    marks: list[Mark]
    radius: int
    text: str  # for those who do not see it

    @classmethod
    def of(cls, kind: str, points: list[Point], width: int, height: int) -> Picture:
        """Draw points, of which there is at least one."""
        ends = [end for point in points for end in (point.value, point.low, point.high)]
        ends = [end for end in ends if math.isfinite(end)]
        least, largest = min(ends), max(ends)
        room = 0.06 * (largest - least) or 0.01
        least, largest = least - room, largest + room
        first, last = points[0].number, points[-1].number

        def x(number: float) -> float:
            share = 0.5 if last == first else (number - first) / (last - first)
            return _LEFT + 8 + share * (width - _LEFT - _RIGHT - 16)

        def y(value: float) -> float:
            return _TOP + (largest - value) / (largest - least) * (height - _TOP - _BOTTOM)

        values, digits = _ticks(least, largest)
        return cls(
            kind,
            width,
            height,
            _LEFT,
            width - _RIGHT,
            [(y(value), f"{value:.{digits}f}") for value in values],
            [(x(number), f"{number:,}") for number in sorted({first, (first + last) // 2, last})],
            [_mark(point, x, y) for point in points],
            3 if len(points) < _MANY else 2,
            f"{counted(len(points), 'score')} with intervals, from {least:.3f} to {largest:.3f}",
        )


def _mark(point: Point, x: Callable[[float], float], y: Callable[[float], float]) -> Mark:
    top, bottom = (y(point.high), y(point.low)) if point.has_limits else (None, None)
    return Mark(point, x(point.number), y(point.value), top, bottom)


def _ticks(least: float, largest: float) -> tuple[list[float], int]:
    """Three to seven round values in a range, and their digits."""
    rough = (largest - least) / 6
    power = math.floor(math.log10(rough))
    step = next(one for one in (1, 2, 5, 10) if one * 10.0**power >= rough) * 10.0**power
    first = math.ceil(least / step)
    values = takewhile(lambda value: value <= largest, (n * step for n in count(first)))
    return list(values), max(0, -math.floor(math.log10(step) + 1e-9))
