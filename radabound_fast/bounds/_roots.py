"""Where a function of one variable crosses zero, to the last bits of a float."""

from __future__ import annotations

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero of a continuous function that changes sign from `low` to `high`."""
    # a user who never asks for a root never loads scipy.optimize
    from scipy.optimize import brentq

    # relative precision, since roots here range from 1e-12 to 1
    return float(brentq(function, low, high, xtol=1e-300, rtol=1e-15))


def root_near(function: Callable[[float], float], low: float, high: float) -> float:
    """As `root`, where a limit may be the zero itself, so that rounding may spoil its sign."""
    return root(function, low * (1.0 - 1e-6), high * (1.0 + 1e-6))
