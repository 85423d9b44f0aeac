"""Exact binomials: what the union bound and confidence limits gain where losses are 0 or 1.

All of it needs losses that are *declared* 0 or 1 (labels, bits, booleans, integers): a real-valued
loss may happen to be 0 and 1 on all samples, and be neither elsewhere.  Probabilities are rounded
up and limits outwards, so that what is claimed holds in floating point too.

With T the ratio of a tail to its first term, ``P(Bin(m, p) <= c)`` is ``exp(-m kl(c/m, p))``
times what Stirling's formula says of that term (Loader 2000) times T.  T is a continued fraction
that converges fast beyond the mean, at any m; `scipy.special.betaincinv` is off or nan at errors
of 1e-300 and slow at many samples.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_n_samples, check_probability
from .._kernels.search import tail_over_first
from ._arguments import check_counts, check_nats
from ._limits import OUT, at_most, between, functions_for, limits
from ._roots import peak
from .kl import kl_drop, kl_drop_nearly, kl_free
from .union import MOST_QUERIES

_ULPS = 2.0**-49  # more than rounding moves a logarithm, relative to its parts
_MANY = 64  # of which several may be the same
_TRIED = 4096  # counts, where the shape of the failures is not proved
# terms of the continued fraction, 2 (mod 4): few while a limit is not near, and so many for errors
# of e^-8 and less, or for larger ones
_NATS_FOR_FEW = 8.0
_FEW_STEPS = 2, 14, 34
_MANY_STEPS = *_FEW_STEPS, 130, 130


def binomial_queries(n_samples: int, epsilon: float, delta: float) -> int:
    """Number of queries with losses 0 or 1 that are within epsilon, by exact binomials.

    ``floor(delta / (2 alpha*))``: flat weights, whatever the means.  Ten times `union_queries`, and
    more, at the same delta.  alpha* is the largest probability that a mean of 0s and 1s is too low
    by epsilon, ``max over c <= m (1 - epsilon) of P(Bin(m, c/m + epsilon) <= c)``: at an error of
    alpha* or more on each side every `binomial_interval` lies within epsilon of its mean.

    ``P(Bin(m, c/m + epsilon) <= c)`` is log-concave in c (Result 16), so that few counts have to be
    tried, if ``(m - 1) (epsilon - 1/m)^2 >= 2/3``.  Else, at more than 4096 samples, alpha* is
    Hoeffding's ``exp(-2 m epsilon^2)``, which is larger; hardly a query is affordable there.

    >>> binomial_queries(4000, 0.04, 0.04)
    88086

    Parameters
    ----------
    n_samples : int
        m held-out samples, 1 to 2^40.
    epsilon, delta : float
        The error tolerated and the probability of failure, in (0, 1).

    Returns
    -------
    int, from 0 to 2^62; rounded down
    """
    _, log_failure = _worst(check_n_samples(n_samples), check_probability(epsilon=epsilon))
    log_queries = math.log(0.5 * check_probability(delta=delta)) - log_failure
    if log_queries >= math.log(MOST_QUERIES):
        return MOST_QUERIES
    return math.floor(math.exp(log_queries) * (1.0 - 1e-12))


def binomial_free(n_samples: int, epsilon: float, nats: float) -> int:
    """The counts whose whole interval is within epsilon: to ``low``, and from ``m - low``.

    Returns low: below m/2, or m where every count will do, or -1 where none will.  `nats` are those
    that `binomial_interval` is called with.

    It rests on the shape that `binomial_queries` finds its maximum by.  Where that is not proved,
    the first 4096 counts are tried one by one, and beyond these `kl_free` decides.

    >>> binomial_free(4000, 0.02, 16.0), binomial_free(4000, 0.02, 17.0)
    (198, 180)
    """
    m, epsilon = check_n_samples(n_samples), check_probability(epsilon=epsilon)
    nats = float(check_nats(nats))
    worst, log_failure = _worst(m, epsilon)
    if log_failure <= -nats:
        return m
    if not _is_log_concave(m, epsilon):
        # every mean up to low needs its upper limit within epsilon, and its lower limit too
        tried = np.arange(min(m + 1, _TRIED))
        step = _in_two(m, epsilon)
        fails = _log_tails(tried, m, *step) > -nats
        fails |= _log_tails(m - tried, m, *step) > -nats
        low = int(np.argmax(fails)) - 1 if fails.any() else tried.size - 1
        return max(low, math.floor(kl_free(epsilon, nats / m) * m))
    # the counts whose upper limit is too far are an interval; below, in mirror image
    step = _in_two(m, epsilon)
    first = bisect_left(range(worst), True, key=lambda c: _log_tail(c, m, *step) > -nats)
    above = range(worst, m + 1)
    last = above[bisect_left(above, True, key=lambda c: _log_tail(c, m, *step) <= -nats) - 1]
    return min(first, m - last) - 1


def binomial_interval(counts: Any, n_samples: int, nats: Any) -> tuple[Any, Any]:
    """Clopper-Pearson confidence intervals for means of losses that are 0 or 1.

    The lower limit is the p at which m coins of probability p show the count or more with
    probability ``exp(-nats)``; the upper limit is its mirror image.  Never wider than
    `kl_interval`, and further from the mean than the exact limits by less than 1e-9 of the distance
    where nats >= 3.  The limits of Clopper and Pearson (1934); computed by a continued fraction and
    the series of Loader (2000).

    >>> low, high = binomial_interval(80, n_samples=4000, nats=16.0)
    >>> round(low, 10), round(high, 10)
    (0.010533319, 0.0338793053)

    Parameters
    ----------
    counts : int or array_like of int
        How many of the losses are 1, from 0 to m.
    n_samples : int
        m held-out samples, 1 to 2^40.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `counts`.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In [0, 1], around the means.  Without errors the lower limit is 0 and the upper
        ``1 - exp(-nats / m)``; with nothing else, in mirror image.
    """
    m = check_n_samples(n_samples)
    counts, nats = check_counts(m, counts=counts), check_nats(nats)
    if isinstance(counts, float) and isinstance(nats, float):
        return _each(counts, nats, m)
    counts, nats = np.broadcast_arrays(counts, nats)
    pairs = _pairs(counts.ravel(), nats.ravel(), m)
    if pairs is None:
        return _each(counts, nats, m)
    places, levels = pairs
    tables = np.empty((2, levels.size * (m + 1)))
    present = np.flatnonzero(np.bincount(places, minlength=tables.shape[1]))
    of_level, counts_of = np.divmod(present, m + 1)
    tables[:, present] = _each(counts_of.astype(np.float64), levels[of_level], m)
    lows, highs = tables[:, places]
    return lows.reshape(counts.shape), highs.reshape(counts.shape)


def binomial_intervals(counts: Any, sizes: Any, nats: Any) -> tuple[Any, Any]:
    """`binomial_interval` of each of several sizes: arrays of float64, shape (n,), not checked."""
    if counts.size < _MANY or np.ptp(nats) > 0.0:
        return _each(counts, nats, sizes)
    pairs, places = np.unique(counts + 1j * sizes, return_inverse=True)
    lows, highs = _each(pairs.real.copy(), nats[: pairs.size], pairs.imag.copy())
    return lows[places], highs[places]


def _each(counts: Any, nats: Any, m: Any) -> tuple[Any, Any]:
    return limits(lambda c, nats, m: (_drop(c, m, nats), _drop(m - c, m, nats)), counts, nats, m)


def _pairs(
    counts: NDArray[Any], nats: NDArray[Any], m: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]] | None:
    """Places in a table of levels of nats by counts, and the levels; None where it would not pay.

    Many answers have few different counts and nats, and each pair needs its limits once.
    """
    most = 2 * nats.size // (m + 1)
    if np.unique(nats[:: nats.size // 1000 + 1]).size > most:  # a glance, as sorting takes longer
        return None
    starts = np.flatnonzero(np.diff(nats, prepend=np.nan))  # of runs: nats often change rarely
    levels, ranks = np.unique(nats[starts], return_inverse=True)
    if levels.size > most:
        return None
    places = np.repeat(ranks * (m + 1), np.diff(starts, append=nats.size))
    places += counts.astype(np.intp)
    return places, levels


@lru_cache(maxsize=64)
def _worst(m: int, epsilon: float) -> tuple[int, float]:
    """The count at which the failure is most likely, and ``ln alpha*``, rounded up."""
    step = _in_two(m, epsilon)
    if _is_log_concave(m, epsilon):
        return peak(lambda c: _log_tail(c, m, *step), m)
    if m <= _TRIED:
        log_tails = _log_tails(np.arange(m + 1), m, *step)
        return int(np.argmax(log_tails)), float(log_tails.max())
    return 0, -2.0 * m * epsilon * epsilon


def _is_log_concave(m: int, epsilon: float) -> bool:
    """Whether ``P(Bin(m, c/m + epsilon) <= c)`` is proved to be, as a function of c."""
    return m * epsilon > 1.0 and (m - 1) * (epsilon - 1.0 / m) ** 2 >= 2.0 / 3.0


def _in_two(m: int, p: float) -> tuple[float, float]:
    """The nearest float to ``m p``, and what it leaves: twice the digits."""
    top, bottom = p.as_integer_ratio()
    top *= m
    nearest = top / bottom  # of two integers the nearest float that there is
    above, below = nearest.as_integer_ratio()
    return nearest, (top * below - above * bottom) / (bottom * below)


def _log_tail(c: int, m: int, s: float, rest: float) -> float:
    """``ln P(Bin(m, (c + s)/m) <= c)`` for c < m and s > 0, rounded up.

    Minus infinity from (c + s)/m = 1 on.  s comes in two parts, as `_in_two` makes them: the
    digits of m - c - s would otherwise be lost.
    """
    if (m - c - s) - rest <= 0.0:
        return -math.inf
    if c == 0:
        return _log_none(m, s, rest)
    return min(float(_log_tail_inside(float(c), m, s, rest)), 0.0)


def _log_tails(c: NDArray[Any], m: int, s: float, rest: float) -> NDArray[np.float64]:
    """`_log_tail` for many counts."""
    inside = (c > 0) & ((m - c - s) - rest > 0.0)
    log_tails = np.where(c == 0, _log_none(m, s, rest), -math.inf)
    some = c[inside].astype(np.float64)
    if some.size:
        log_tails[inside] = np.minimum(_log_tail_inside(some, m, s, rest), 0.0)
    return log_tails


def _log_none(m: int, s: float, rest: float) -> float:
    """``ln P(Bin(m, s/m) = 0)``, rounded up."""
    drop = math.log1p(-s / m) if s < 0.5 * m else math.log(((m - s) - rest) / m)
    return m * drop * (1.0 - _ULPS)


def _log_tail_inside(c: Any, m: int, s: float, rest: float) -> Any:
    """``ln P(Bin(m, (c + s)/m) <= c)`` for 0 < c < c + s < m; rounded up."""
    f, d = functions_for(c), m - c
    left = (d - s) - rest  # m (1 - p)
    near = s < 0.5 * d
    if isinstance(c, float):
        drop = -f.log1p(-s / d) if near else f.log(d / left)
    else:
        drop = np.where(near, -f.log1p(-np.where(near, s / d, 0.0)), f.log(d / left))
    exponent = d * drop - c * f.log1p(s / c)
    terms = _steps(exponent if isinstance(c, float) else exponent.min())[-1]
    ratio = tail_over_first(d, m, left / (c + s), terms)
    margin = _ULPS * (1.0 + exponent + s)  # of either product
    return _log_first(c, m) - exponent + f.log(ratio) + margin


def _drop(c: Any, m: Any, nats: Any) -> Any:
    """``y = ln(c / (m q))`` for the q at which ``P(Bin(m, q) >= c) = exp(-nats)``; rounded up."""
    # no errors: any y will do, times 0; nothing else: the tail is q^m
    y = nats / m * (1.0 + OUT)
    if isinstance(c, float):
        return _drop_inside(c, m, nats, _steps(nats)) if 0.0 < c < m else y
    inside, few = (c > 0.0) & (c < m), nats >= _NATS_FOR_FEW
    for some, steps in ((inside & few, _FEW_STEPS), (inside & ~few, _MANY_STEPS)):
        if some.any():
            own = m if np.ndim(m) == 0 else m[some]
            y[some] = _drop_inside(c[some], own, nats[some], steps)
    return y


def _drop_inside(c: Any, m: Any, nats: Any, steps: tuple[int, ...]) -> Any:
    """`_drop` for 0 < c < m.

    The logarithm of the tail is concave in ln q with slope c / T, since T grows with q, so that a
    step of Newton's method never falls short, wherever it starts.
    """
    f, d = functions_for(c), m - c
    y = kl_drop_nearly(c / m, d / m, nats / m)
    first = _log_first(c, m)
    for terms in steps:
        e = -f.expm1(-y)
        t = tail_over_first(c, m, c * f.exp(-y) / (d + c * e), terms)
        log_tail = d * f.log1p(c * e / d) - c * y + first + f.log(t)
        y = between(y + (log_tail + nats) * t / c)
    y += OUT * (d / m + y)
    if steps is _FEW_STEPS:
        return y
    # near the median the fraction is stopped early, and the relative entropy may be nearer
    return at_most(y, kl_drop(c / m, d / m, nats / m))


def _steps(nats: float) -> tuple[int, ...]:
    return _FEW_STEPS if nats >= _NATS_FOR_FEW else _MANY_STEPS


def _log_first(c: Any, m: Any) -> Any:
    """``ln P(Bin(m, c/m) = c)``; at another p, less ``m kl(c/m, p)``."""
    d = m - c
    scale = 0.5 * functions_for(c).log(m / (2.0 * math.pi * c * d))
    of_m = _stirling(float(m) if np.ndim(m) == 0 else m)
    return scale + (of_m - _stirling(c) - _stirling(d))


# ln n! - (n + 1/2) ln n + n - ln(2 pi) / 2 for n = 1 to 15
_STIRLING = (
    0.081061466795327258, 0.041340695955409294, 0.027677925684998339, 0.020790672103765093,
    0.016644691189821192, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096,
    0.0092554621827127329, 0.0083305634333628713, 0.0075736754879518408, 0.0069428401072095299,
    0.0064089941880042071, 0.0059513701127588477, 0.0055547335519628014,
)  # fmt: skip


def _stirling(n: Any) -> Any:
    """What Stirling's formula lacks in ln n!: the table, or a series."""
    if isinstance(n, float):
        return _STIRLING[int(n) - 1] if n < 16.0 else _series(n)
    few = np.array(_STIRLING)[np.clip(n, 1.0, 15.0).astype(np.intp) - 1]
    return np.where(n < 16.0, few, _series(np.maximum(n, 16.0)))


def _series(n: Any) -> Any:
    i = 1.0 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - i / 1188) * i) * i) * i) / n
