"""Confidence limits of a difference of two error rates, from the samples on which they disagree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_n_samples
from .._kernels.limits import gain_limits
from ._arguments import check_counts, check_nats
from .binomial import binomial_interval

_LEAST_NATS, _MOST_NATS = math.log(4.0), 300.0


def paired_interval(n_plus: Any, n_minus: Any, n_samples: int, nats: Any) -> tuple[Any, Any]:
    """Exact confidence intervals for differences of two error rates, from paired comparisons.

    The difference d is 1 on `n_plus` samples, -1 on `n_minus` and 0 on the others: where only the
    first of two models errs, where only the second does, and where both or neither do.

    The order of Owen's (1988) empirical likelihood has its largest limits (Buehler 1957), whatever
    the unknown share of disagreement within limits that take 1/128 of the error (Berger, Boos
    1994): Result 25.  Above 300 nats the two counts have limits of their own, each at half the
    error.  More samples in favour of a model never lower its limits, as far as these are computed:
    to 1 % of the nats.  More nats may narrow an interval by some per cent where few samples differ,
    since the order depends on them.

    A limit takes time in proportion to the square root of the number of samples that differ, and
    more where nearly all do: 3 s at m = 10^9.  Arrays with few different counts and nats take that
    of the different ones.

    >>> low, high = paired_interval(n_plus=30, n_minus=50, n_samples=4000, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (-0.0088, -0.0013)

    Parameters
    ----------
    n_plus, n_minus : int or array_like of int
        Samples with d = 1 and d = -1; at least 0, together at most m.
    n_samples : int
        m independent samples, 1 to 2^40.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0; below ln 4 it counts as ln 4.  All
        three are broadcast.

    Returns
    -------
    lows, highs : float or ndarray of float64, in [-1, 1], around the means of d
    """
    m = check_n_samples(n_samples)
    counts = [check_counts(m, n_plus=n_plus), check_counts(m, n_minus=n_minus)]
    plus, minus, paid = np.broadcast_arrays(*counts, check_nats(nats))
    together = plus + minus
    if (together > m).any():
        raise ValueError(
            f"n_plus + n_minus must be at most n_samples = {m}, got {together.max():.0f}"
        )
    # both limits are lower ones, and of equal cases one is enough
    sides = np.empty((2, plus.size, 3))
    sides[:, :, 0] = plus.ravel(), minus.ravel()
    sides[:, :, 1] = sides[::-1, :, 0]
    sides[:, :, 2] = np.maximum(paid, _LEAST_NATS).ravel()
    lows, highs = _lower_limits(sides.reshape(-1, 3), m).reshape(2, *plus.shape)
    return (lows, -highs) if plus.shape else (float(lows), -float(highs))


def _lower_limits(cases: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    """Lower limits of rows of counts and nats."""
    if len(cases) <= 2:
        return _each(cases, m)
    levels, ranks = np.unique(cases[:, 2], return_inverse=True)
    plus, minus = cases[:, :2].T.astype(np.int64)
    sizes = len(levels), int(plus.max()) + 1, int(minus.max()) + 1
    if math.prod(sizes) < 2**62:
        keys = (ranks * sizes[1] + plus) * sizes[2] + minus
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        return _each(cases[first], m)[places]
    different, places = np.unique(cases, axis=0, return_inverse=True)
    return _each(different, m)[places]


def _each(cases: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    few = cases[:, 2] <= _MOST_NATS
    if few.all():
        return gain_limits(cases, float(m))
    lows = np.empty(len(cases))
    lows[few] = gain_limits(cases[few], float(m))
    plus, minus, halves = (cases[~few] + [0.0, 0.0, math.log(2.0)]).T
    p_lows, _ = binomial_interval(plus.astype(np.int64), m, halves)
    _, q_highs = binomial_interval(minus.astype(np.int64), m, halves)
    lows[~few] = p_lows - q_highs
    return lows
