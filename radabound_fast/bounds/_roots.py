"""Zeros and maxima of a function of one variable, to the last bits of a float."""

from __future__ import annotations

import math
from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a continuous function between ``0 <= low <= high``, 0 < high."""
    # a user who never asks for a root never loads scipy.optimize
    from scipy.optimize import brentq

    # In units of `high` and to relative precision: roots range from 1e-300 to 1, and the
    # products that brentq forms would underflow.
    start = low / high

    def scaled(share: float) -> float:
        return function(high * share if share > start else low)

    return max(low, high * float(brentq(scaled, start, 1.0, xtol=1e-300, rtol=1e-15)))


def root_near(function: Callable[[float], float], low: float, high: float) -> float:
    """`root` where a limit may be the zero itself, so that rounding may spoil its sign."""
    return root(function, low * (1.0 - 1e-6), high * (1.0 + 1e-6))


def bisect(test: Callable[[float], bool], low: float, high: float) -> float:
    """The last float from `low` on at which a test that turns true, and stays so, is false."""
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if test(middle) else (middle, high)
    return low


def peak(function: Callable[[int], float], size: int) -> tuple[int, float]:
    """The place and value of the maximum of a function on ``0 .. size - 1`` that rises, then falls.

    Fibonacci search: what it compares is far apart while that is possible, so that rounding
    misleads it only where the values are the same but for rounding.
    """
    before, width = 1, 2
    while width <= size:
        before, width = width, before + width

    def value(place: int) -> float:
        return function(place) if place < size else -math.inf

    # the peak is in (low, low + width)
    low = -1
    left, right = low + width - before, low + before
    at_left, at_right = value(left), value(right)
    while left < right:
        before, width = width - before, before
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + before
            at_right = value(right)
        else:
            right, at_right = left, at_left
            left = low + width - before
            at_left = value(left)
    return left, at_left
