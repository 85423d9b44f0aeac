"""Intervals by the normal approximation: narrower than proved ones at few nats, and not proved.

Each has the stated error in the limit of many rows, for one model fixed in advance.  At any number
of rows it may miss more often: with few rows of a class, errors near 0, or losses that are rarely
large it does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._arguments import check_not_negative, check_sizes

_MOST_NATS = 700.0  # exp(-nats) is no float beyond


def asymptotic_mean_interval(
    values: Any, nats: float, *, weights: Any = None, groups: Any = None
) -> tuple[float, float]:
    """Asymptotic confidence interval for an expectation, of real-valued or weighted losses.

    **Asymptotic**: the mean and so many standard errors on either side, by the central limit
    theorem, with the variance of the sample (of the groups' parts of the weighted mean: Taylor's
    linearisation).

    >>> low, high = asymptotic_mean_interval(np.arange(4000) % 5 / 40, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.0491, 0.0509)

    Parameters
    ----------
    values : array_like, shape (n_samples,)
        Losses, in any unit.
    nats : float
        ``ln(1/a)`` for an error of about a on each side, at least 0.
    weights : array_like, shape (n_samples,), optional
        How much each counts; all alike by default.
    groups : array_like of int, shape (n_samples,), optional
        Which samples belong together, from 0 on; each alone by default.

    Returns
    -------
    low, high : float
        In the unit of the losses; nan where values do not vary, or there is one group.
    """
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or x.size == 0:
        raise ValueError(f"values must be one number per sample, got shape {x.shape}")
    mean = float(np.average(x, weights=weights))
    shares = np.full(x.size, 1.0 / x.size) if weights is None else weights / np.sum(weights)
    parts = shares * (x - mean)
    if groups is not None:
        parts = np.bincount(groups, parts)
    n = parts.size
    error = math.sqrt(float(parts @ parts) * n / (n - 1)) if n > 1 else 0.0
    return _around(mean, error, nats)


def asymptotic_balanced_interval(hits: Any, sizes: Any, nats: float) -> tuple[float, float]:
    """Asymptotic confidence interval for a mean of rates, as the balanced accuracy is one.

    **Asymptotic**: Wilson's score limits of each rate (1927, JASA 22), whose distances from the
    rates are added as squares (Zou, Donner 2008, Statistics in Medicine 27).

    >>> low, high = asymptotic_balanced_interval([3240, 360], [3600, 400], nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8856, 0.9117)

    Parameters
    ----------
    hits, sizes : array_like of int, shape (n_classes,)
        Rows of each class that are right, and all rows of it, at least 1.
    nats : float
        ``ln(1/a)`` for an error of about a on each side, at least 0.

    Returns
    -------
    low, high : float, in [0, 1]
    """
    n, z = check_sizes(sizes=sizes).astype(np.float64), _quantile(nats)
    rates = check_sizes(hits=hits) / n
    middle = (rates + z * z / (2.0 * n)) / (1.0 + z * z / n)
    spread = z * np.sqrt(rates * (1.0 - rates) / n + z * z / (4.0 * n * n)) / (1.0 + z * z / n)
    below = math.sqrt(float(np.square(rates - (middle - spread)).sum())) / n.size
    above = math.sqrt(float(np.square(middle + spread - rates).sum())) / n.size
    mean = float(rates.mean())
    return max(0.0, mean - below), min(1.0, mean + above)


def asymptotic_auc_interval(positive: Any, negative: Any, nats: float) -> tuple[float, float]:
    """Asymptotic confidence interval for the area under the ROC curve, given the labels.

    **Asymptotic**: the normal approximation with the variance of DeLong, DeLong and Clarke-Pearson
    (1988, Biometrics 44).

    >>> positive, negative = np.arange(400) + 3000.0, np.arange(3600) * 1.0
    >>> low, high = asymptotic_auc_interval(positive, negative, nats=math.log(20))
    >>> round(low, 4), round(high, 4)
    (0.8807, 0.8971)

    Parameters
    ----------
    positive, negative : array_like, shapes (n_positive,) and (n_negative,)
        Scores of the rows of each class.
    nats : float
        ``ln(1/a)`` for an error of about a on each side, at least 0.

    Returns
    -------
    low, high : float
        In [0, 1]; nan where a class has one row, or all scores of one are above those of the other.
    """
    high, low = np.sort(np.asarray(positive, np.float64)), np.sort(np.asarray(negative, np.float64))
    if high.ndim != 1 or low.ndim != 1 or not high.size or not low.size:
        raise ValueError("positive and negative must be scores of at least one row each")

    def wins(scores: Any, others: Any) -> Any:
        """Share of the others below each score, ties one half."""
        at_most = np.searchsorted(others, scores, "left") + np.searchsorted(others, scores, "right")
        return at_most / (2.0 * others.size)

    of_positive, of_negative = wins(high, low), 1.0 - wins(low, high)
    variance = 0.0
    for shares in (of_positive, of_negative):
        variance += float(shares.var(ddof=1)) / shares.size if shares.size > 1 else 0.0
    below, above = _around(float(of_positive.mean()), math.sqrt(variance), nats)
    return (max(0.0, below), min(1.0, above)) if variance > 0.0 else (below, above)


def _around(mean: float, error: float, nats: float) -> tuple[float, float]:
    reach = _quantile(nats) * error
    return (mean - reach, mean + reach) if error > 0.0 else (math.nan, math.nan)


def _quantile(nats: float) -> float:
    """Standard errors beyond which a normal variable is with probability exp(-nats); at least 0."""
    from statistics import NormalDist  # which a guard that never asks does not load

    nats = min(check_not_negative(nats=nats), _MOST_NATS)
    return max(0.0, -NormalDist().inv_cdf(math.exp(-nats))) if nats > 0.0 else 0.0
