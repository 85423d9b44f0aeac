"""Confidence interval under cross-validation, for the mean of the k fold models."""

from __future__ import annotations

from typing import Any

from .._checks import check_n_folds, check_positive
from ._arguments import check_fractions, check_nats
from ._limits import OUT, at_least, at_most, functions_for


def cross_validation_interval(
    means: Any, n_effective: float, n_folds: int, nats: Any
) -> tuple[Any, Any]:
    """Confidence interval for the mean expected loss of the models of a cross-validation.

    Parameters
    ----------
    means : float or array_like of float
        The mean out-of-fold loss over all rows, in [0, 1]: the loss at a row is that of the model
        that was trained without the row's fold.
    n_effective : float
        m, how many rows there are; ``1 / sum(a**2)`` of rows, or groups of rows, that count with
        weights a of sum 1.
    n_folds : int
        k, at least 2.  Folds may have any sizes.
    nats : float or array_like of float
        ``ln(1/a)`` for an error of a on each side, at least 0.  Broadcast with `means`.

    Returns
    -------
    lows, highs : float or ndarray of float64
        ``mean -+ sqrt(k nats / (2 n_effective))``, in [0, 1]: limits of the mean over the rows of
        the expected loss of each row's model.  They say nothing about a model that is trained
        again on all rows.

    Notes
    -----
    Hoeffding's bound for one fold of m / k rows: Result 27 of docs/explanation/theory.md, after
    [1]_.

    References
    ----------
    .. [1] Blum, Kalai, Langford (1999). Beating the hold-out: bounds for k-fold and progressive
       cross-validation. COLT.

    Examples
    --------
    >>> from math import log
    >>> low, high = cross_validation_interval(0.2, 100_000, 5, nats=log(20) + log(10**6))
    >>> round(low, 4), round(high, 4)
    (0.1795, 0.2205)
    """
    means, nats = check_fractions(means=means), check_nats(nats)
    per_nat = 0.5 * check_n_folds(n_folds) / check_positive(n_effective=n_effective)
    half_width = functions_for(nats).sqrt(per_nat * nats) * (1.0 + OUT)
    return at_least(means - half_width, 0.0), at_most(means + half_width, 1.0)
