"""Where the scores of the page are drawn: a scatter plot of answers, with their intervals."""

from __future__ import annotations

import math
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


class Picture:
    """A plot of values against the numbers of the answers, at least one, in pixels.

    `kind` is that of a screen, "wide" or "narrow"; `text` is for those who do not see the plot.
    """

    def __init__(self, kind: str, points: list[Point], width: int, height: int) -> None:
        self.kind, self.points, self.width, self.height = kind, points, width, height
        self.left, self.right = _LEFT, width - _RIGHT
        self.radius = 3 if len(points) < _MANY else 2
        ends = [end for point in points for end in (point.value, point.low, point.high)]
        ends = [end for end in ends if math.isfinite(end)]
        room = 0.06 * (max(ends) - min(ends)) or 0.01
        self._least, self._largest = min(ends) - room, max(ends) + room
        self._first, self._last = points[0].number, points[-1].number
        self.text = (
            f"{counted(len(points), 'score')} with intervals, from {self._least:.3f} to "
            f"{self._largest:.3f}"
        )

    def x(self, number: float) -> float:
        """Where an answer is, by its number."""
        first, last = self._first, self._last
        share = 0.5 if last == first else (number - first) / (last - first)
        return _LEFT + 8 + share * (self.width - _LEFT - _RIGHT - 16)

    def y(self, value: float) -> float:
        """Where a value is."""
        share = (self._largest - value) / (self._largest - self._least)
        return _TOP + share * (self.height - _TOP - _BOTTOM)

    @property
    def rows(self) -> list[tuple[float, str]]:
        """The lines of the grid, at three to seven round values: y and text."""
        rough = (self._largest - self._least) / 6
        power = math.floor(math.log10(rough))
        step = next(one for one in (1, 2, 5, 10) if one * 10.0**power >= rough) * 10.0**power
        values = (n * step for n in count(math.ceil(self._least / step)))
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        inside = takewhile(lambda value: value <= self._largest, values)
        return [(self.y(value), f"{value:.{digits}f}") for value in inside]

    @property
    def columns(self) -> list[tuple[float, str]]:
        """The numbers below the plot: x and text."""
        numbers = sorted({self._first, (self._first + self._last) // 2, self._last})
        return [(self.x(number), f"{number:,}") for number in numbers]
