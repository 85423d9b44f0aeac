"""Confidence limits of many means at once: relative entropy, and exact binomials.

``nats = ln(1/a)``: each side of an interval fails with probability at most a, so that
``nats = ln(2 / (w delta))`` gives a share w of delta to both.  Limits are rounded outwards: a
limit may lie further from the mean than the exact one, never nearer.

Both lower limits are ``mean exp(-y)`` with y the root of a convex function, for which a step of
Newton's method never falls short; y may be tiny or huge, and the limit keeps its digits.  The
upper limit of a mean is the lower one of 1 - mean, in mirror image.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_n_samples
from ._arguments import check_counts, check_fractions, check_nats

Floats = NDArray[np.float64]

_BLOCK = 8192  # values at a time: what is computed for them stays in the cache
_TINY, _SMALLEST = 1e-280, 2.3e-308  # below the second, floats lose digits
_LEAST, _MOST = 1e-20, 1e5  # exp(-y) is 1 and 0 beyond
_OUT = 2.0**-47  # more than rounding moves a root


def kl_interval(means: Any, n_samples: int, nats: Any) -> tuple[Any, Any]:
    """Where truths lie, given means of losses in [0, 1]: ``kl(mean, truth) <= nats / m``.

    With ``nats = ln(2/delta)`` the truth of one function fixed in advance is outside with
    probability at most delta, at any m (Chernoff; Fact D of docs/theory.md).  The limits are
    those of `kl_minus` and `kl_plus`, rounded outwards.

    Parameters
    ----------
    means : float or array_like of float
        Mean losses, in [0, 1].
    n_samples : int
        m held-out samples (1 to 2^40).
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `means`.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In units of loss, in [0, 1], around the means.

    >>> low, high = kl_interval(0.02, n_samples=4000, nats=16.0)
    >>> round(low, 10), round(high, 10)
    (0.0099152029, 0.0351713082)
    """
    m = check_n_samples(n_samples)
    return _both(
        lambda p, nats: (_kl_drop(p, 1.0 - p, nats / m), _kl_drop(1.0 - p, p, nats / m)),
        check_fractions(means=means),
        check_nats(nats),
    )


def binomial_interval(counts: Any, n_samples: int, nats: Any) -> tuple[Any, Any]:
    """Where truths lie, given counts of losses that are 0 or 1: Clopper and Pearson (1934).

    The lower limit is the p at which m coins of probability p show the count or more with
    probability ``exp(-nats)``; the upper limit is its mirror image.  With ``nats = ln(2/delta)``
    the truth of one function fixed in advance, whose values are 0 and 1, is outside with
    probability at most delta.  Never wider than `kl_interval`.

    Parameters
    ----------
    counts : int or array_like of int
        How many of the losses are 1, from 0 to m.
    n_samples : int
        m held-out samples (1 to 2^40).
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `counts`.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In units of loss, in [0, 1], around the means.  Without errors the lower limit is 0 and
        the upper ``1 - exp(-nats / m)``; with nothing else, in mirror image.

    Notes
    -----
    It needs the losses *declared* 0 or 1: a real-valued loss may happen to be 0 and 1 on all
    samples, and its truth elsewhere.

    `scipy.special.betaincinv` gives the same limits at moderate sizes; at tiny errors or many
    samples it is off, or nan.

    >>> low, high = binomial_interval(80, n_samples=4000, nats=16.0)
    >>> round(low, 10), round(high, 10)
    (0.010533319, 0.0338793053)
    """
    m = check_n_samples(n_samples)
    return _both(
        lambda c, nats: (_binomial_drop(c, m, nats), _binomial_drop(m - c, m, nats)),
        check_counts(m, counts=counts),
        check_nats(nats),
        m,
    )


def _both(
    drops: Callable[[Floats, Floats], tuple[Floats, Floats]],
    means: Floats,
    nats: Floats,
    scale: int = 1,
) -> tuple[Any, Any]:
    """Limits from the y of either side, blockwise; floats if nothing given was an array."""
    means, nats = np.broadcast_arrays(means, nats)
    if not means.shape:
        p, below, above = means[()] / scale, *drops(means[()], nats[()])
        return float(_low(p, below)), float(_high(p, above))
    lows, highs = np.empty(means.shape), np.empty(means.shape)
    flat, level = means.ravel(), nats.ravel()
    low_part, high_part = lows.reshape(-1), highs.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        p, below, above = flat[part] / scale, *drops(flat[part], level[part])
        low_part[part], high_part[part] = _low(p, below), _high(p, above)
    return lows, highs


def _low(p: Floats, y: Floats) -> Floats:
    low = p * np.exp(-y) * (1.0 - _OUT)
    return np.where((p < _TINY) | (low < _SMALLEST), 0.0, low)


def _high(p: Floats, y: Floats) -> Floats:
    return np.minimum((p + (1.0 - p) * -np.expm1(-y)) * (1.0 + _OUT), 1.0)


def _kl_drop(p: Floats, r: Floats, b: Floats, steps: int = 4) -> Floats:
    """``y = ln(p / q)`` for the least q with ``kl(p, q) <= b``, where r = 1 - p; rounded up.

    ``kl(p, q) = p y - r ln(1 + (p/r)(1 - e^-y))`` is convex in y >= 0, so that a step from
    anywhere lands at the root or beyond.  The start is a root of the first three terms of its
    series.
    """
    p, r = np.maximum(p, _TINY), np.maximum(r, _TINY)
    y = np.clip(np.sqrt(2.0 * b * r / p) + b * (1.0 + p) / (3.0 * p), _LEAST, _MOST)
    for _ in range(steps):
        e = p * -np.expm1(-y)
        y = y - (p * y - r * np.log1p(e / r) - b) * (r + e) / e
        y = np.clip(y, _LEAST, _MOST)
    return y + _OUT * (r + y)


def _binomial_drop(c: Floats, m: int, nats: Floats) -> Floats:
    """``y = ln(c / (m q))`` for the q at which ``P(Bin(m, q) >= c) = exp(-nats)``; rounded up.

    The tail is its first term times T, the sum of the ratios of the others to it.  Its logarithm
    is concave in ln q with slope c / T, since T grows with q: a step of Newton's method from
    anywhere lands at the root or beyond.  The start is the limit by relative entropy.
    """
    inside = (c > 0.0) & (c < m)
    k = np.where(inside, c, 0.5)
    d = m - k
    y = _kl_drop(k / m, d / m, nats / m, steps=2)
    first = 0.5 * np.log(m / (2.0 * math.pi * k * d))
    first += _stirling(np.float64(m)) - _stirling(k) - _stirling(d)
    loose = bool(nats.min() < 8.0)
    for _ in range(6 if loose else 4):
        e = -np.expm1(-y)
        t = _tail_over_first(k, m, k * np.exp(-y) / (d + k * e), 130 if loose else 34)
        log_tail = d * np.log1p(k * e / d) - k * y + first + np.log(t)
        y = np.clip(y + (log_tail + nats) * t / k, 0.0, _MOST)
    # no errors: any y will do, times 0; nothing else: the tail is q^m
    return np.where(inside, y + _OUT * (d / m + y), nats / m)


def _tail_over_first(c: Floats, m: int, odds: Floats, terms: int) -> Floats:
    """``P(Bin(m, q) >= c) / P(Bin(m, q) = c)`` at odds q/(1-q) of at most c/(m-c); rounded up.

    The continued fraction of Abramowitz and Stegun (1964), 26.5.9, from its end.  All its
    denominators are positive here, and each even term lowers and each odd one raises the one
    before, so that to stop after ``terms`` = 2 (mod 4) gives too much: at worst, near the
    mean and at large m, twice as much.
    """
    t: Floats = c + (terms - 1.0)
    for n in range(terms, 1, -1):
        j = n // 2
        factor = j * (m + float(j)) if n % 2 else (c + (j - 1.0)) * (c + (j - 1.0 - m))
        t = factor * odds / t
        t += c + (n - 2.0)
    return np.divide(c, t)


# ln n! - (n + 1/2) ln n + n - ln(2 pi) / 2 for n = 1 to 15
_STIRLING = np.array([
    0.081061466795327258, 0.041340695955409294, 0.027677925684998339, 0.020790672103765093,
    0.016644691189821192, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096,
    0.0092554621827127329, 0.0083305634333628713, 0.0075736754879518408, 0.0069428401072095299,
    0.0064089941880042071, 0.0059513701127588477, 0.0055547335519628014,
])  # fmt: skip


def _stirling(n: Any) -> Any:
    """What Stirling's formula lacks in ln n!."""
    big = np.maximum(n, 16.0)
    i = 1.0 / (big * big)
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - i / 1188) * i) * i) * i) / big
    return np.where(n < 16.0, _STIRLING[np.minimum(n, 15.0).astype(np.intp) - 1], series)
