"""Confidence limits of metrics that depend on the class: rates, F1, balanced accuracy, AUC, ROC.

A fixed model on independent rows.  Given which rows lie in an event (their label is positive,
their prediction is), each of them is in a part of it with one probability, independently; so the
limits hold given that, and hence without.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count
from .._kernels.limits import weighted_limits
from ._arguments import check_fractions, check_nats, check_not_negative, check_sizes
from ._limits import OUT
from .binomial import binomial_interval, binomial_intervals
from .kl import kl_interval

Floats = NDArray[np.float64]

_USUAL_RATE = 0.8
_MOST_WEIGHTS = 128
_LEAST_WEIGHT = 2.0**-900  # of the largest: reciprocals of less overflow
_SMALL = 2.0**-24  # of the largest: weights below need not be distinguished


def rate_interval(counts: Any, sizes: Any, nats: Any) -> tuple[Any, Any]:
    """Confidence intervals for conditional probabilities, from the numbers of rows.

    `binomial_interval` with the rows of the event for m: Result 21 (a).

    >>> low, high = rate_interval(320, 400, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.7642, 0.8324)

    Parameters
    ----------
    counts, sizes : int or array_like of int
        Rows in a part of the event, and rows in the event.  For recall: the positive rows that
        are predicted positive, and the positive rows.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  All three are broadcast.

    Returns
    -------
    lows, highs : float or ndarray of float64
        Limits of P(part | event), in [0, 1]; 0 and 1 for an event without rows.
    """
    if type(counts) is type(sizes) is int and type(nats) is float and sizes > 0:
        return binomial_interval(counts, sizes, nats)
    counts, sizes, nats = np.broadcast_arrays(counts, check_sizes(sizes=sizes), check_nats(nats))
    if not counts.shape:
        size = sizes.item()
        return binomial_interval(counts.item(), size, nats.item()) if size else (0.0, 1.0)
    if counts.dtype.kind not in "iu":
        raise TypeError(f"counts must be integers, got {counts.flat[0]!s}")
    outside = (counts < 0) | (counts > sizes)
    if outside.any():
        count, size = (int(each[outside][0]) for each in (counts, sizes))
        raise ValueError(f"counts must be in [0, {size}], got {count}")
    lows, highs = np.zeros(counts.shape), np.ones(counts.shape)
    held = sizes > 0
    lows[held], highs[held] = binomial_intervals(
        counts[held].astype(np.float64), sizes[held].astype(np.float64), nats[held]
    )
    return lows, highs


def f1_interval(true_positives: Any, errors: Any, nats: Any) -> tuple[Any, Any]:
    """Confidence intervals for the F1 score of the population.

    ``F1 = 2 J / (1 + J)`` grows with J, the probability that a row which is positive or predicted
    so is both: a rate (Result 21 (b)).

    >>> low, high = f1_interval(260, 280, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.6162, 0.6823)

    Parameters
    ----------
    true_positives, errors : int or array_like of int
        Rows that are positive and predicted positive, and rows that are only one of the two.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  All three are broadcast.

    Returns
    -------
    lows, highs : float or ndarray of float64, in [0, 1]
    """
    hits = true_positives if type(true_positives) is int else np.asarray(true_positives)
    lows, highs = rate_interval(hits, hits + errors, nats)
    return 2.0 * lows / (1.0 + lows), 2.0 * highs / (1.0 + highs)


def auc_interval(auc: Any, n_negative: int, n_positive: int, nats: Any) -> tuple[Any, Any]:
    """Confidence intervals for the population's area under the ROC curve, given the labels.

    The area is the probability that a positive row scores higher than a negative one, and half
    that of a tie.  `kl_interval` with ``min(n_negative, n_positive)`` for m: the area is an
    average, over ways to pair rows, of means of so many independent pairs (Hoeffding 1963;
    Result 22).

    >>> low, high = auc_interval(0.9, 3600, 400, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8593, 0.9327)

    Parameters
    ----------
    auc : float or array_like of float
        Areas of the sample, in [0, 1].
    n_negative, n_positive : int
        Rows of each class, at least 1.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `auc`.

    Returns
    -------
    lows, highs : float or ndarray of float64, in [0, 1], around the areas
    """
    pairs = min(check_count(n_negative=n_negative), check_count(n_positive=n_positive))
    return kl_interval(check_fractions(auc=auc), pairs, nats)


def auc_blocks(n_negative: int, n_positive: int) -> int:
    """How many rows of the rarer class make a block, where blocks are narrower than `auc_interval`.

    A block has so many rows of the rarer class and, for each of them, ``floor(n_0 / n_1)`` rows of
    the other of its own, n_1 being the size of the rarer class and n_0 that of the other.  Areas
    under the curve within blocks are independent given the labels, with the population's area for
    their expectation: `betting_interval` of them has limits of that area (Result 22 (b)).

    >>> auc_blocks(3600, 400), auc_blocks(2000, 2000), auc_blocks(200, 200)
    (2, 4, 0)

    Parameters
    ----------
    n_negative, n_positive : int
        Rows of each class, at least 1.

    Returns
    -------
    int
        About ``sqrt(n_1) / 11``.  0 where classes of less than about 750 rows are nearly as large
        as each other: there `auc_interval` is narrower.
    """
    sizes = check_count(n_negative=n_negative), check_count(n_positive=n_positive)
    rarer = min(sizes)
    size = max(1, round(math.sqrt(rarer) / 11.0))
    return size if max(sizes) // rarer >= 2 or size >= 3 else 0


def weighted_interval(mean: float, weights: Any, counts: Any, nats: float) -> tuple[float, float]:
    """Confidence interval for the expectation of a weighted mean of independent values in [0, 1].

    The best of Chernoff bounds with two multipliers that a search finds (Result 23); neither limit
    is further from the mean than Hoeffding's ``sqrt(nats sum(a^2) / 2)`` for weights a of sum 1,
    but for rounding.

    >>> low, high = weighted_interval(0.9, [1 / 3600, 1 / 400], [3600, 400], nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8741, 0.9229)

    Parameters
    ----------
    mean : float
        The weighted mean of the values, in [0, 1].
    weights : array_like of float, shape (n,)
        Above 0, fixed before the values were seen; their unit does not matter.
    counts : int or array_like of int, shape (n,)
        How many values have each of these weights.  The balanced accuracy has the weights
        ``1 / counts`` for the classes' counts.
    nats : float
        ``ln(1/a)`` for an error of a on each side, at least 0.

    Returns
    -------
    low, high : float, in [0, 1], around the mean
    """
    value, budget = float(check_fractions(mean=mean)), check_not_negative(nats=nats)
    each, many = np.broadcast_arrays(np.asarray(weights, np.float64), np.asarray(counts))
    if each.ndim != 1 or each.size == 0:
        raise ValueError(f"weights must be one number a stratum, got shape {each.shape}")
    if many.dtype.kind not in "iu" or (many < 1).any():
        raise ValueError(f"counts must be integers of at least 1, got {counts!r:.100}")
    if not ((each > 0.0) & (each < math.inf)).all():
        raise ValueError("weights must be positive and finite, got one that is not")
    # the sum grows with a, so that one which is almost nothing may be a little more
    each, many = np.maximum(each / each.max(), _LEAST_WEIGHT), many.astype(np.float64)
    each = each / float(many @ each)
    # by the weights as they are: those that are shared may be worth less
    furthest = math.sqrt(0.5 * budget * float(many @ (each * each))) * (1.0 + OUT)
    low, high = weighted_limits(value, *_few(each, many), budget)
    return max(low, value - furthest), min(high, value + furthest)


def balanced_interval(hits: Any, sizes: Any, nats: float) -> tuple[float, float]:
    """Confidence interval for the mean of the classes' rates, as the balanced accuracy is one.

    Given the sizes, the limits are those of `weighted_interval`, or the mean of the classes' own
    (`rate_interval`), among which the error is shared in proportion to ``1 / sqrt(size)``:
    whichever is narrower at rates of .8 in every class, which the sizes and nats decide.  Where one
    class is rare that is the latter (Result 23).

    >>> low, high = balanced_interval([3240, 360], [3600, 400], nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8789, 0.9181)

    Parameters
    ----------
    hits, sizes : array_like of int, shape (n_classes,)
        Rows of each class that are right, and all rows of it, at least 1.
    nats : float
        ``ln(1/a)`` for an error of a on each side, at least 0.

    Returns
    -------
    low, high : float, in [0, 1], around the mean of the rates
    """
    n, right = check_sizes(sizes=sizes), check_sizes(hits=hits)
    if n.ndim != 1 or n.size == 0 or n.shape != right.shape:
        raise ValueError(f"hits and sizes must be one number a class, got {hits!r} and {sizes!r}")
    if (n < 1).any():
        raise ValueError(f"sizes must be at least 1, got {n.min()}")
    if (right > n).any():
        raise ValueError(f"hits must be at most their sizes, got {right[right > n][0]}")
    of_classes, budget = tuple(n.tolist()), check_not_negative(nats=nats)
    limits = _by_class if _class_by_class(of_classes, budget) else _of_their_mean
    return limits(right.tolist(), of_classes, budget)


@lru_cache(maxsize=256)
def _class_by_class(sizes: tuple[int, ...], nats: float) -> bool:
    usual = [round(_USUAL_RATE * size) for size in sizes]
    own, shared = _by_class(usual, sizes, nats), _of_their_mean(usual, sizes, nats)
    return own[1] - own[0] < shared[1] - shared[0]


def _by_class(hits: list[int], sizes: tuple[int, ...], nats: float) -> tuple[float, float]:
    parts = [1.0 / math.sqrt(size) for size in sizes]
    low = high = 0.0
    for count, size, part in zip(hits, sizes, parts, strict=True):
        below, above = binomial_interval(count, size, nats + math.log(sum(parts) / part))
        low, high = low + below, high + above
    return low / len(sizes) * (1.0 - OUT), min(1.0, high / len(sizes) * (1.0 + OUT))


def _of_their_mean(hits: list[int], sizes: tuple[int, ...], nats: float) -> tuple[float, float]:
    rates = [count / size for count, size in zip(hits, sizes, strict=True)]
    counts = np.array(sizes)
    return weighted_interval(min(1.0, sum(rates) / len(rates)), 1.0 / counts, counts, nats)


def _few(weights: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """At most `_MOST_WEIGHTS` weights: each old one is shared by the two nearest, keeping its mean.

    The maximum in `weighted_interval` is convex in a, so that its sum can only grow.  Half of the
    new weights are evenly spaced and half geometrically, since weights may span many magnitudes.
    """
    if weights.size <= _MOST_WEIGHTS:
        return weights, counts
    different, many = weights, counts
    if not (np.diff(weights) > 0.0).all():
        different, place_of = np.unique(weights, return_inverse=True)
        many = np.bincount(place_of, counts).astype(np.float64)
        if different.size <= _MOST_WEIGHTS:
            return different, many
    least, most = float(different[0]), float(different[-1])
    evenly = np.linspace(least, most, _MOST_WEIGHTS // 2)
    by_ratios = np.geomspace(max(least, most * _SMALL), most, _MOST_WEIGHTS // 2)
    edges = np.unique(np.concatenate([evenly, np.clip(by_ratios, least, most)]))
    above = np.clip(np.searchsorted(edges, different), 1, edges.size - 1)
    share = np.clip((different - edges[above - 1]) / np.diff(edges)[above - 1], 0.0, 1.0)
    shared = np.bincount(above, many * share, edges.size)
    shared = shared + np.bincount(above - 1, many * (1.0 - share), edges.size)
    held = shared > 0.0
    return edges[held], shared[held].astype(np.float64)


def roc_band(n_negative: int, n_positive: int, nats: float) -> tuple[float, float]:
    """Simultaneous confidence band for the ROC curve of one scorer: half-widths of its rates.

    With probability at least ``1 - 2 exp(-nats)`` given the labels, both hold at every threshold,
    also at one that was chosen by these rows.  By the inequality of Dvoretzky, Kiefer and Wolfowitz
    with the constant of Massart (1990), for each class: Result 26.

    >>> false, true = roc_band(3600, 400, nats=math.log(20))
    >>> round(false, 4), round(true, 4)
    (0.0226, 0.0679)

    Parameters
    ----------
    n_negative, n_positive : int
        Rows of each class, at least 1.
    nats : float
        ``ln(2 / (w delta))``, at least 0, where w is the weight of this scorer in a union bound.

    Returns
    -------
    fpr_half_width, tpr_half_width : float
        For the false positive and the true positive rate; not clipped at 1.
    """
    twice = 2.0 * (check_not_negative(nats=nats) + math.log(2.0))
    counts = check_count(n_negative=n_negative), check_count(n_positive=n_positive)
    return math.sqrt(twice / counts[0]) / 2.0, math.sqrt(twice / counts[1]) / 2.0
