"""Evenly spaced floats, which forgive rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, overload

import numpy as np

from radabound_fast._checks import check_positive, check_real
from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import outside
from radabound_fast.spaces.numbers import as_float

# how far off its place a value of `Steps` may be, in steps: sums and products are rounded
STEP_TOLERANCE = 1e-6
# a step has at least so many units of the last digit of the largest value
_ULPS_IN_A_STEP = 16


class Steps(Sequence[float]):
    """The floats low, low + step, ... up to high: a finite stand-in for an interval.

    Parameters
    ----------
    low, high : float
        The first value, and the limit that the last one does not exceed.
    step : float
        The distance of two neighbours, above 0.

    Raises
    ------
    TypeError, ValueError
        An argument of the wrong type, not finite, or ``high < low``.

    Notes
    -----
    A value within a millionth of a step of a member counts as that member, since products and sums
    are rounded: ``3 * 0.1`` is the 0.3 of ``Steps(0, 1, 0.1)``.  Train with the member, which
    `Space.nearest` returns; members are decimals, as `low` and `step` are.

    Examples
    --------
    >>> steps = Steps(0.0, 1.0, 0.1)
    >>> len(steps), steps.index(3 * 0.1), steps[3]
    (11, 3, 0.3)
    """

    def __init__(self, low: float, high: float, step: float) -> None:
        self.low, self.step = check_real(low=low), check_positive(step=step)
        self.high = check_real(high=high)
        if self.high < self.low:
            raise ValueError(f"high must be at least low = {self.low!r}, got {self.high!r}")
        n_steps = (self.high - self.low) / self.step
        if not n_steps < 2**53:
            raise ValueError(f"step must leave fewer than 2**53 values, got {self.step!r}")
        rounding = math.ulp(max(abs(self.low), abs(self.high)))
        if self.step < _ULPS_IN_A_STEP * rounding:
            raise ValueError(
                f"step must be at least {_ULPS_IN_A_STEP * rounding!r}, so that values differ by "
                f"more than rounding, got {self.step!r}"
            )
        self._tolerance = max(STEP_TOLERANCE, 4 * rounding / self.step)
        self._length = math.floor(n_steps + self._tolerance) + 1
        self._n_decimals = max(map(_decimals_of, (self.low, self.step)))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...
    def __getitem__(self, index: int | slice) -> float | list[float]:
        places = range(self._length)[index]
        if isinstance(places, int):
            return min(round(self.low + places * self.step, self._n_decimals), self.high)
        return [self[place] for place in places]

    def place(self, value: Any) -> int | None:
        """The place of a value; None if it is no member."""
        if isinstance(value, (bool, np.bool_)) or not is_number(value):
            return None
        position = (as_float(value) - self.low) / self.step
        if not -1 < position < self._length:  # also for nan
            return None
        place = round(position)
        near = abs(position - place) <= self._tolerance and 0 <= place < self._length
        return place if near else None

    def index(self, value: Any, *_: Any) -> int:
        """The place of a value; ValueError if it is no member."""
        place = self.place(value)
        if place is None:
            raise outside("value", value, self)
        return place

    def __contains__(self, value: Any) -> bool:
        return self.place(value) is not None

    def __iter__(self) -> Iterator[float]:
        return map(self.__getitem__, range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steps) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Steps({self.low!r}, {self.high!r}, {self.step!r})"


def _decimals_of(number: float) -> int:
    """How many decimals the number has."""
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    return max(0, -int(exponent))
