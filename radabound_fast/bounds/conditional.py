"""Limits of what depends on a class: rates given an event, F1, balanced accuracy, AUC, ROC curves.

A fixed model on independent rows.  Given which rows lie in an event (their label is positive,
their prediction is), each of them is in a part of it with one probability, independently; so the
limits hold given that, and hence without.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count
from ._arguments import check_fractions, check_nats, check_not_negative
from .binomial import binomial_interval
from .kl import kl_interval

Floats = NDArray[np.float64]

# points laid around the best so far, so often, each time half as far apart
_GRID = np.stack(np.meshgrid(*2 * [np.linspace(-1.0, 1.0, 9)]), axis=-1).reshape(-1, 2)
_ZOOMS = 14


def rate_interval(counts: Any, sizes: Any, nats: Any) -> tuple[Any, Any]:
    """Where the probability of a part of an event lies, given how many rows are in both.

    Parameters
    ----------
    counts, sizes : int or array_like of int
        Rows in the part, and rows in the event: recall has the positive rows that are predicted
        positive, and the positive rows.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  All three are broadcast.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In [0, 1]; 0 and 1 for an event without rows, of which nothing is known.

    Notes
    -----
    `binomial_interval` with the rows of the event for m: Result 21 (a) of docs/theory.md.

    >>> low, high = rate_interval(320, 400, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.7642, 0.8324)
    """
    counts, sizes, nats = np.broadcast_arrays(counts, sizes, check_nats(nats))
    lows, highs = np.zeros(counts.shape), np.ones(counts.shape)
    for size in np.unique(sizes[sizes > 0]):
        there = sizes == size
        lows[there], highs[there] = binomial_interval(counts[there], int(size), nats[there])
    return (lows, highs) if counts.shape else (float(lows), float(highs))


def f1_interval(true_positives: Any, errors: Any, nats: Any) -> tuple[Any, Any]:
    """Where the F1 score of the population lies.

    Parameters
    ----------
    true_positives, errors : int or array_like of int
        Rows that are positive and predicted so, and rows that are one of the two alone.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In [0, 1].

    Notes
    -----
    ``F1 = 2 J / (1 + J)`` grows with J, the probability that a row which is positive or predicted
    so is both: a rate (Result 21 (b)).

    >>> low, high = f1_interval(260, 280, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.6162, 0.6823)
    """
    hits = np.asarray(true_positives)
    lows, highs = rate_interval(hits, hits + errors, nats)
    return 2.0 * lows / (1.0 + lows), 2.0 * highs / (1.0 + highs)


def auc_interval(auc: Any, n_negative: int, n_positive: int, nats: Any) -> tuple[Any, Any]:
    """Where the area under the ROC curve of the population lies, given the labels.

    The probability that a positive row scores higher than a negative one, and half that of a tie.

    Parameters
    ----------
    auc : float or array_like of float
        Areas under the curve of the sample, in [0, 1].
    n_negative, n_positive : int
        Rows of each class; at least 1.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.

    Returns
    -------
    lows, highs : float or ndarray of float64
        In [0, 1], around the areas.

    Notes
    -----
    `kl_interval` with ``min(n_negative, n_positive)`` for m: the area is an average, over ways to
    pair rows, of means of so many independent pairs (Hoeffding 1963; Result 22).

    >>> low, high = auc_interval(0.9, 3600, 400, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8593, 0.9327)
    """
    pairs = min(check_count(n_negative=n_negative), check_count(n_positive=n_positive))
    return kl_interval(auc, pairs, nats)


def stratified_interval(mean: float, sizes: Any, nats: float) -> tuple[float, float]:
    """Where the mean of several classes' rates lies, given how many rows each class has.

    Parameters
    ----------
    mean : float
        Of the rates in the sample, each class weighing the same: the balanced accuracy.
    sizes : array_like of int, shape (n_classes,)
        Rows of each class; at least 1.
    nats : float
        ``ln(1/a)`` for an error of a on each side, at least 0.

    Returns
    -------
    tuple of float
        In [0, 1], around the mean; neither is further from it than Hoeffding's
        ``sqrt(nats sum(1 / sizes) / 2) / n_classes``, but for rounding.

    Notes
    -----
    With g_c = exp(lambda / (C m_c)) - 1 the logarithm of E exp(lambda mean) is
    ``sum_c m_c ln(1 + p_c g_c)``, which is at most
    ``mu sum_c p_c + sum_c max_p [m_c ln(1 + p g_c) - mu p]`` for every mu.  So every lambda and
    every mu above 0 give a lower limit of the mean of the p_c; the largest is taken.  The upper
    limit is its mirror image.  (Result 23.)

    >>> low, high = stratified_interval(0.9, [3600, 400], nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8741, 0.9229)
    """
    value = float(check_fractions(mean=mean))
    sizes = np.array([check_count(sizes=int(size)) for size in sizes], np.float64)
    budget = check_not_negative(nats=nats)
    return _stratified_lower(value, sizes, budget), 1.0 - _stratified_lower(
        1.0 - value, sizes, budget
    )


def _stratified_lower(mean: float, sizes: Floats, nats: float) -> float:
    """The largest of the lower limits that pairs of multipliers give."""
    if nats == 0.0 or mean == 0.0:
        return mean
    steps = 1.0 / (len(sizes) * sizes)
    # the lambda of Hoeffding's limit; it is larger where rates are near 0 or 1
    usual = math.sqrt(8.0 * nats / float(steps @ (sizes * steps)))
    best = max(0.0, mean - 2.0 * nats / usual)
    # logarithms of lambda, and of mu over lambda / C
    centre, reach = np.array([math.log(usual) + 1.0, 0.0]), 4.0
    for _ in range(_ZOOMS):
        points = centre + reach * _GRID
        limits = _limits_of(points, mean, sizes, steps, nats)
        place = int(limits.argmax())
        best, centre, reach = max(best, float(limits[place])), points[place], reach / 2.0
    return min(best * (1.0 - 2.0**-40), mean)


def _limits_of(points: Floats, mean: float, sizes: Floats, steps: Floats, nats: float) -> Floats:
    factor = np.minimum(np.exp(points[:, :1]), 600.0 / steps.max())
    grown = np.expm1(factor * steps)
    price = factor / len(sizes) * np.exp(points[:, 1:])
    rates = np.clip(sizes / price - 1.0 / grown, 0.0, 1.0)
    most = (sizes * np.log1p(rates * grown) - price * rates).sum(axis=1, keepdims=True)
    limits: Floats = ((factor * mean - nats - most) / (price * len(sizes)))[:, 0]
    return limits
