"""Confidence intervals under cross-validation, for the mean of the k fold models."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import check_n_folds, check_n_samples, check_positive
from .._kernels.limits import fold_limits
from ._arguments import check_fractions, check_nats
from ._limits import OUT, at_least, at_most, functions_for

_MANY = 64  # means, of which several may be the same


def cross_validation_interval(
    means: Any, n_samples: int, n_folds: int, nats: Any
) -> tuple[Any, Any]:
    """Confidence interval for the mean expected loss of the models of a cross-validation.

    It is for the mean over the rows of the expected loss of each row's model, and says nothing
    about a model that is trained again on all rows.  By betting on several lambda, of which the
    first, with a third of the weight, is that of Hoeffding's bound for one fold of m / k rows
    (Blum, Kalai, Langford 1999): Result 27.

    >>> from math import log
    >>> low, high = cross_validation_interval(0.02, 100_000, 5, nats=log(20) + log(10**6))
    >>> round(low, 4), round(high, 4)
    (0.0144, 0.0268)

    Parameters
    ----------
    means : float or array_like of float
        The mean out-of-fold loss over all rows, in [0, 1]: the loss at a row is that of the model
        that was trained without the row's fold.
    n_samples, n_folds : int
        m rows, which all count alike (1 to 2^40), and k folds of any sizes, at least 2.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `means`.

    Returns
    -------
    lows, highs : float or ndarray of float64, in [0, 1], around the means
    """
    m = check_n_samples(n_samples)
    means, nats = check_fractions(means=means), check_nats(nats)
    n_rows = m / min(check_n_folds(n_folds), m)
    if isinstance(means, float) and isinstance(nats, float):
        return fold_limits(means, n_rows, nats)
    means, nats = np.broadcast_arrays(means, nats)
    shape, pairs = means.shape, means.ravel() + 1j * nats.ravel()
    places: Any = slice(None)
    if pairs.size >= _MANY:
        pairs, places = np.unique(pairs, return_inverse=True)
    lows, highs = fold_limits(pairs.real, n_rows, pairs.imag)
    return lows[places].reshape(shape), highs[places].reshape(shape)


def weighted_cross_validation_interval(
    means: Any, n_effective: float, n_folds: int, nats: Any
) -> tuple[Any, Any]:
    """`cross_validation_interval` where rows, or groups of rows, count with different weights.

    Hoeffding's bound for one fold: Result 27 (a).

    >>> from math import log
    >>> low, high = weighted_cross_validation_interval(0.2, 1e5, 5, nats=log(20) + log(10**6))
    >>> round(low, 4), round(high, 4)
    (0.1795, 0.2205)

    Parameters
    ----------
    means : float or array_like of float
        The weighted mean out-of-fold loss, in [0, 1].
    n_effective : float
        ``1 / sum(a**2)`` for weights a of sum 1.
    n_folds, nats
        Those of `cross_validation_interval`.

    Returns
    -------
    lows, highs : float or ndarray of float64, ``mean -+ sqrt(k nats / (2 n_effective))``, in [0, 1]
    """
    means, nats = check_fractions(means=means), check_nats(nats)
    per_nat = 0.5 * check_n_folds(n_folds) / check_positive(n_effective=n_effective)
    half_width = functions_for(nats).sqrt(per_nat * nats) * (1.0 + OUT)
    return at_least(means - half_width, 0.0), at_most(means + half_width, 1.0)
