"""Limits of many means at once, rounded outwards: what relative entropy and binomials share.

A lower limit is ``mean exp(-y)``, and the upper limit of a mean is the lower one of 1 - mean in
mirror image.  y is the root of a convex function, for which a step of Newton's method never
falls short; it may be tiny or huge, and the limit keeps its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

TINY = 1e-280
_LEAST, _MOST = 1e-20, 1e5  # exp(-y) is 1 and 0 beyond
OUT = 2.0**-47  # more than rounding moves a root or a limit
_SMALLEST = 2.3e-308  # below, floats lose digits
_BLOCK = 8192  # values at a time: what is computed for them stays in the cache


def limits(
    drops: Callable[[Any, Any, Any], tuple[Any, Any]], values: Any, nats: Any, scale: Any = 1.0
) -> tuple[Any, Any]:
    """Both limits of the means ``values / scale``: floats for floats, arrays for arrays.

    ``drops(values, nats, scale)`` returns the y of the lower limit and that of the upper one.
    """
    if isinstance(values, float) and isinstance(nats, float):
        below, above = drops(values, nats, scale)
        return low(values / scale, below), high(values / scale, above)
    values, nats = np.broadcast_arrays(values, nats)
    one_scale = np.ndim(scale) == 0
    lows, highs = np.empty(values.shape), np.empty(values.shape)
    flat_values, flat_nats, flat_scale = values.ravel(), nats.ravel(), np.ravel(scale)
    flat_lows, flat_highs = lows.reshape(-1), highs.reshape(-1)
    for start in range(0, flat_values.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        own = scale if one_scale else flat_scale[part]
        below, above = drops(flat_values[part], flat_nats[part], own)
        flat_lows[part] = low(flat_values[part] / own, below)
        flat_highs[part] = high(flat_values[part] / own, above)
    return lows, highs


# The same formulas for one mean and for many, equal to the last bit: the C library's functions,
# which `math` has, differ from NumPy's there.


def _of_one(function: np.ufunc) -> Callable[[float], float]:
    return lambda x: float(function(x))


class _Floats:
    """exp, expm1, log, log1p, sqrt and frexp for a float."""

    exp, expm1, log, log1p = (
        staticmethod(_of_one(each)) for each in (np.exp, np.expm1, np.log, np.log1p)
    )
    sqrt, frexp = math.sqrt, math.frexp


def functions_for(x: Any) -> Any:
    """The namespace with exp, expm1, log, log1p, sqrt and frexp for floats, or for arrays."""
    return _Floats if isinstance(x, float) else np


def low(p: Any, y: Any) -> Any:
    """``p exp(-y)``, rounded down."""
    limit = p * functions_for(y).exp(-y) * (1.0 - OUT)
    if isinstance(limit, float):
        return 0.0 if p < TINY or limit < _SMALLEST else limit
    return np.where((p < TINY) | (limit < _SMALLEST), 0.0, limit)


def high(p: Any, y: Any) -> Any:
    """``1 - (1 - p) exp(-y)``, rounded up."""
    return at_most((p + (1.0 - p) * -functions_for(y).expm1(-y)) * (1.0 + OUT), 1.0)


def between(y: Any) -> Any:
    """y clipped to the range in which exp(-y) is neither 0 nor 1."""
    if isinstance(y, float):
        return _LEAST if y < _LEAST else _MOST if y > _MOST else y
    return at_most(at_least(y, _LEAST), _MOST)


def at_least(x: Any, least: Any) -> Any:
    return max(x, least) if isinstance(x, float) else np.maximum(x, least)


def at_most(x: Any, most: Any) -> Any:
    return min(x, most) if isinstance(x, float) else np.minimum(x, most)
