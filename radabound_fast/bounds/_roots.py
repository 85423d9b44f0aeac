"""Where a function of one variable crosses zero, to the last bits of a float."""

from __future__ import annotations

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a continuous function changes sign between ``0 <= low <= high``, 0 < high."""
    # a user who never asks for a root never loads scipy.optimize
    from scipy.optimize import brentq

    # In units of `high` and to relative precision: roots range from 1e-300 to 1, and the
    # products that brentq forms would underflow.
    start = low / high

    def scaled(share: float) -> float:
        return function(high * share if share > start else low)

    return max(low, high * float(brentq(scaled, start, 1.0, xtol=1e-300, rtol=1e-15)))


def root_near(function: Callable[[float], float], low: float, high: float) -> float:
    """As `root`, where a limit may be the zero itself, so that rounding may spoil its sign."""
    return root(function, low * (1.0 - 1e-6), high * (1.0 + 1e-6))


def bisect(test: Callable[[float], bool], low: float, high: float) -> float:
    """The last float from `low` on at which a test that turns true, and stays so, is false."""
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (low, middle) if test(middle) else (middle, high)
    return low
