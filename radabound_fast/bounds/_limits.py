"""Limits of many means at once, rounded outwards: what relative entropy and binomials share.

A lower limit is ``mean exp(-y)``, and the upper limit of a mean is the lower one of 1 - mean in
mirror image.  y is the root of a convex function, for which a step of Newton's method never
falls short; it may be tiny or huge, and the limit keeps its digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-280
_LEAST, _MOST = 1e-20, 1e5  # exp(-y) is 1 and 0 beyond
OUT = 2.0**-47  # more than rounding moves a root or a limit
_SMALLEST = 2.3e-308  # below, floats lose digits
_BLOCK = 8192  # values at a time: what is computed for them stays in the cache


def limits(
    drops: Callable[[Floats, Floats], tuple[Floats, Floats]],
    values: Floats,
    nats: Floats,
    scale: int = 1,
) -> tuple[Any, Any]:
    """Both limits of the means ``values / scale``; floats if nothing given was an array.

    ``drops(values, nats)`` has the y of the lower limit and that of the upper one.
    """
    values, nats = np.broadcast_arrays(values, nats)
    if not values.shape:
        below, above = drops(values[()], nats[()])
        return float(low(values / scale, below)), float(high(values / scale, above))
    lows, highs = np.empty(values.shape), np.empty(values.shape)
    flat_values, flat_nats = values.ravel(), nats.ravel()
    flat_lows, flat_highs = lows.reshape(-1), highs.reshape(-1)
    for start in range(0, flat_values.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        below, above = drops(flat_values[part], flat_nats[part])
        flat_lows[part] = low(flat_values[part] / scale, below)
        flat_highs[part] = high(flat_values[part] / scale, above)
    return lows, highs


def low(p: Any, y: Any) -> Any:
    """``p exp(-y)``, rounded down."""
    limit = p * np.exp(-y) * (1.0 - OUT)
    return np.where((p < TINY) | (limit < _SMALLEST), 0.0, limit)


def high(p: Any, y: Any) -> Any:
    """``1 - (1 - p) exp(-y)``, rounded up."""
    return np.minimum((p + (1.0 - p) * -np.expm1(-y)) * (1.0 + OUT), 1.0)


def between(y: Any) -> Any:
    """Where y makes a difference.  (`numpy.clip` takes ten times as long on a scalar.)"""
    return np.minimum(np.maximum(y, _LEAST), _MOST)
