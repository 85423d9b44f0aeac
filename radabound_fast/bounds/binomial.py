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

from .._checks import check_fraction, check_integer, check_n_samples, check_probability
from ._arguments import check_counts, check_nats
from ._limits import OUT, between, limits
from ._roots import peak
from .kl import kl_drop, kl_free
from .union import MOST_QUERIES

_TRIED = 4096  # counts, where the shape of the failures is not proved
# terms of the continued fraction, for errors of e^-8 and less, and for larger ones; 2 (mod 4)
_NATS_FOR_FEW, _SMALL, _LARGE = 8.0, 34, 130


def binomial_log_tail(count: int, n_samples: int, mean: float) -> float:
    """``ln P(Bin(m, p) <= c)``: so few ones from coins of probability p, at most the mean.

    Parameters
    ----------
    count : int
        The c of the formula, from 0 to m.
    n_samples : int
        The m of the formula (1 to 2^40).
    mean : float
        The p of the formula, in [0, 1].

    Returns
    -------
    float
        Rounded up, by about ``2e-15 (m p - c) / (1-p)`` beyond 4 standard deviations; 0 for
        ``c >= m p``, where nothing is claimed.

    >>> round(binomial_log_tail(1800, n_samples=4000, mean=0.5), 3)
    -22.718
    """
    m, p = check_n_samples(n_samples), check_fraction(mean=mean)
    c = check_integer(count=count)
    if not 0 <= c <= m:
        raise ValueError(f"count must be in [0, {m}], got {c}")
    return 0.0 if c == m else _log_tail(c, m, p - c / m)


def binomial_log_failure(n_samples: int, epsilon: float) -> float:
    """``ln alpha*``: at worst so rarely is a mean of 0s and 1s below its truth by epsilon.

    ``alpha* = max over c <= m (1 - epsilon) of P(Bin(m, c/m + epsilon) <= c)``.  At an error of
    alpha* or more on each side every `binomial_interval` lies within epsilon of its mean.

    Parameters
    ----------
    n_samples : int
        The m of the formula (1 to 2^40).
    epsilon : float
        In (0, 1).

    Returns
    -------
    float
        Rounded up.  Where ``(m - 1) (epsilon - 1/m)^2 < 2/3`` at more than 4096 samples it is
        Hoeffding's ``-2 m epsilon^2``, which is larger; hardly a query is affordable there.

    Notes
    -----
    Where that number is at least 2/3, ``P(Bin(m, c/m + epsilon) <= c)`` is log-concave in c
    (Result 16 of ``docs/theory.md``), so that few counts have to be tried.

    >>> round(math.exp(binomial_log_failure(4000, 0.04)) * 1e7, 3)
    2.27
    """
    return _worst(check_n_samples(n_samples), check_probability(epsilon=epsilon))[1]


def binomial_queries(n_samples: int, epsilon: float, delta: float) -> int:
    """How many queries whose losses are 0 or 1 are within epsilon, by exact binomials.

    ``floor(delta / (2 alpha*))``: flat weights, whatever the means.  Ten times `union_queries`,
    and more, at the same delta.

    Parameters
    ----------
    n_samples : int
        m held-out samples (1 to 2^40).
    epsilon, delta : float
        The error tolerated and the probability of failure, both in (0, 1).

    Returns
    -------
    int
        At least 0, at most 2^62.

    >>> binomial_queries(4000, 0.04, 0.04)
    88086
    """
    log_queries = math.log(0.5 * check_probability(delta=delta))
    log_queries -= binomial_log_failure(n_samples, epsilon)
    if log_queries >= math.log(MOST_QUERIES):
        return MOST_QUERIES
    return math.floor(math.exp(log_queries) * (1.0 - 1e-12))


def binomial_free(n_samples: int, epsilon: float, nats: float) -> int:
    """Which counts have their whole interval within epsilon: to ``low``, and from ``m - low``.

    Parameters
    ----------
    n_samples : int
        m held-out samples (1 to 2^40).
    epsilon : float
        The error tolerated, in (0, 1).
    nats : float
        Of the `binomial_interval`, at least 0.

    Returns
    -------
    int
        The low of the formula: below m/2, or m where every count will do, or -1 where none will.

    Notes
    -----
    It rests on the shape that `binomial_log_failure` finds its maximum by.  Where that is not
    proved, the first 4096 counts are tried one by one, and beyond these `kl_free` decides.

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
        fails = (_log_tails(tried, m, epsilon) > -nats) | (
            _log_tails(m - tried, m, epsilon) > -nats
        )
        low = int(np.argmax(fails)) - 1 if fails.any() else tried.size - 1
        return max(low, math.floor(kl_free(epsilon, nats / m) * m))
    # the counts whose upper limit is too far are an interval; below, in mirror image
    first = bisect_left(range(worst), True, key=lambda c: _log_tail(c, m, epsilon) > -nats)
    rest = range(worst, m + 1)
    last = rest[bisect_left(rest, True, key=lambda c: _log_tail(c, m, epsilon) <= -nats) - 1]
    return min(first, m - last) - 1


def binomial_interval(counts: Any, n_samples: int, nats: Any) -> tuple[Any, Any]:
    """Where truths lie, given counts of losses that are 0 or 1: Clopper and Pearson (1934).

    The lower limit is the p at which m coins of probability p show the count or more with
    probability ``exp(-nats)``; the upper limit is its mirror image.  With
    ``nats = ln(2 / (w delta))`` the truth of one function fixed in advance, whose values are 0
    and 1, is outside with probability at most ``w delta``.  Never wider than `kl_interval`.

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
        the upper ``1 - exp(-nats / m)``; with nothing else, in mirror image.  Further from the
        mean than the exact limits by less than 1e-9 of the distance where nats >= 3.

    >>> low, high = binomial_interval(80, n_samples=4000, nats=16.0)
    >>> round(low, 10), round(high, 10)
    (0.010533319, 0.0338793053)
    """
    m = check_n_samples(n_samples)
    counts, nats = check_counts(m, counts=counts), check_nats(nats)
    return limits(lambda c, nats: (_drop(c, m, nats), _drop(m - c, m, nats)), counts, nats, m)


@lru_cache(maxsize=64)
def _worst(m: int, epsilon: float) -> tuple[int, float]:
    """The count at which the failure is most likely, and the logarithm of its probability."""
    if _is_log_concave(m, epsilon):
        return peak(lambda c: _log_tail(c, m, epsilon), m)
    if m <= _TRIED:
        log_tails = _log_tails(np.arange(m + 1), m, epsilon)
        return int(np.argmax(log_tails)), float(log_tails.max())
    return 0, -2.0 * m * epsilon * epsilon


def _is_log_concave(m: int, epsilon: float) -> bool:
    """Whether ``P(Bin(m, c/m + epsilon) <= c)`` is proved to be, as a function of c."""
    return m * epsilon > 1.0 and (m - 1) * (epsilon - 1.0 / m) ** 2 >= 2.0 / 3.0


def _log_tail(c: int, m: int, step: float) -> float:
    """``ln P(Bin(m, c/m + step) <= c)`` for c < m, rounded up; minus infinity for p >= 1."""
    d, s = m - c, m * step
    if s <= 0.0:
        return 0.0
    if s >= d:
        return -math.inf
    if c == 0:
        return m * math.log1p(-step) * (1.0 - OUT)
    return min(float(_log_tail_inside(c, d, s)), 0.0)


def _log_tails(c: NDArray[Any], m: int, step: float) -> NDArray[np.float64]:
    """The same for many counts and a step above 0."""
    s = m * step
    log_tails = np.where(c == 0, m * math.log1p(-step) * (1.0 - OUT), -math.inf)
    inside = (c > 0) & (s < m - c)
    some = c[inside].astype(np.float64)
    if some.size:
        log_tails[inside] = np.minimum(_log_tail_inside(some, m - some, s), 0.0)
    return log_tails


def _log_tail_inside(c: Any, d: Any, s: float) -> Any:
    """``ln P(Bin(m, (c + s)/m) <= c)`` for m = c + d and 0 < s < d, c > 0; rounded up."""
    many = isinstance(c, np.ndarray)
    log, log1p = (np.log, np.log1p) if many else (math.log, math.log1p)
    m = c + d
    exponent = -c * log1p(s / c) - d * log1p(-s / d)
    terms = _terms(exponent.min() if many else exponent)
    ratio = _tail_over_first(d, m, (d - s) / (c + s), terms)
    # some ulps of p move the exponent by s / (1 - p) times as much
    margin = 2.0**-49 * (1.0 + exponent + s * (m / (d - s)))
    return _log_first(c, d) - exponent + log(ratio) + margin


def _drop(c: Any, m: int, nats: Any) -> Any:
    """``y = ln(c / (m q))`` for the q at which ``P(Bin(m, q) >= c) = exp(-nats)``; rounded up.

    The logarithm of that tail is concave in ln q with slope c / T, since T grows with q.  The
    start is the limit by relative entropy, made nearer by the bound of T by a geometric series.
    """
    loose = nats < _NATS_FOR_FEW
    if loose.ndim and loose.any() and not loose.all():  # a limit does not depend on its neighbours
        y = np.empty(c.shape)
        for some in (loose, ~loose):
            y[some] = _drop(c[some], m, nats[some])
        return y
    inside = (c > 0.0) & (c < m)
    k = np.where(inside, c, 0.5)
    d = m - k
    y = kl_drop(k / m, d / m, nats / m)
    first = _log_first(k, d)
    terms = _terms(nats.min())
    for n in (2, 2, terms, terms) if terms == _SMALL else (2, _SMALL, terms, terms, terms):
        e = -np.expm1(-y)
        t = _tail_over_first(k, m, k * np.exp(-y) / (d + k * e), n)
        log_tail = d * np.log1p(k * e / d) - k * y + first + np.log(t)
        y = between(y + (log_tail + nats) * t / k)
    # no errors: any y will do, times 0; nothing else: the tail is q^m
    return np.where(inside, y + OUT * (d / m + y), nats / m * (1.0 + OUT))


def _terms(nats: float) -> int:
    return _SMALL if nats >= _NATS_FOR_FEW else _LARGE


def _tail_over_first(c: Any, m: Any, odds: Any, terms: int) -> Any:
    """``P(Bin(m, q) >= c) / P(Bin(m, q) = c)`` at odds q/(1-q) of at most c/(m-c); rounded up.

    The continued fraction of Abramowitz and Stegun (1964), 26.5.9, from its end.  Here all its
    denominators are positive, and so ``terms`` = 2 (mod 4) give too much (Result 16); 2 give the
    bound by a geometric series.
    """
    t = c + (terms - 1.0)
    for n in range(terms, 1, -1):
        j = n // 2
        factor = (m + j) * float(j) if n % 2 else (c + (j - 1.0)) * (c + (j - 1.0 - m))
        t = factor * odds / t
        t += c + (n - 2.0)
    return c / t


def _log_first(c: Any, d: Any) -> Any:
    """``ln P(Bin(m, c/m) = c)`` for m = c + d; at another p, less ``m kl(c/m, p)``."""
    m = c + d
    log = np.log if isinstance(c, np.ndarray) else math.log
    return 0.5 * log(m / (2.0 * math.pi * c * d)) + (_stirling(m) - _stirling(c) - _stirling(d))


# ln n! - (n + 1/2) ln n + n - ln(2 pi) / 2 for n = 1 to 15
_STIRLING = (
    0.081061466795327258, 0.041340695955409294, 0.027677925684998339, 0.020790672103765093,
    0.016644691189821192, 0.013876128823070748, 0.01189670994589177, 0.010411265261972096,
    0.0092554621827127329, 0.0083305634333628713, 0.0075736754879518408, 0.0069428401072095299,
    0.0064089941880042071, 0.0059513701127588477, 0.0055547335519628014,
)  # fmt: skip


def _stirling(n: Any) -> Any:
    """What Stirling's formula lacks in ln n!: the table, or a series."""
    if not isinstance(n, np.ndarray):
        return _STIRLING[int(n) - 1] if n < 16.0 else _series(n)
    few = np.array(_STIRLING)[np.clip(n, 1.0, 15.0).astype(np.intp) - 1]
    return np.where(n < 16.0, few, _series(np.maximum(n, 16.0)))


def _series(n: Any) -> Any:
    i = 1.0 / (n * n)
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - i / 1188) * i) * i) * i) / n
