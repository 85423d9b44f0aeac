"""Whole numbers and floats of any type, and a logarithm of binomial coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from radabound_fast.rows.packing import is_number

# subsets of so few members are counted exactly
_FEW_MEMBERS = 1000


def as_int(value: Any) -> int | None:
    """A whole number of any type as an int; None for anything else, booleans included."""
    if isinstance(value, (bool, np.bool_)) or not is_number(value):
        return None
    if isinstance(value, (float, np.floating)):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return int(value)


def as_float(value: Any) -> float:
    """A number as a float; infinity for an integer that is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def nearest_of(number: float, values: Any) -> Any:
    """The nearest number among a range, `Steps` or a list, the first of equals; None: no number."""
    if isinstance(values, list):
        numbers = [one for one in values if is_number(one) and not isinstance(one, bool)]
        numbers = [one for one in numbers if math.isfinite(as_float(one))]
        return min(numbers, key=lambda one: abs(one - number), default=None)
    try:
        place = math.ceil((number - values[0]) / values.step - 0.5)
    except OverflowError:  # integers that no float holds
        return None
    return values[min(max(place, 0), len_of(values) - 1)]


def len_of(values: Any) -> int:
    """The number of values; that of a range may be more than `len` can return."""
    if isinstance(values, range):
        return max(0, -((values.start - values.stop) // values.step))
    return len(values)


def log_comb(n: int, s: int) -> float:
    """The logarithm of C(n, s), rounded up a little."""
    if min(s, n - s) <= _FEW_MEMBERS:
        return math.log(math.comb(n, s))
    largest = math.lgamma(n + 1)  # whose last digits are lost in the difference
    return largest - math.lgamma(s + 1) - math.lgamma(n - s + 1) + 4 * math.ulp(largest)
