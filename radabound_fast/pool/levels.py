"""From extremes of studentised sums to levels for exact limits and tests.

The 1 - delta quantile c of ``max_f |T_j(f)|`` over the sign vectors is the multiplier bootstrap's
critical value.  It is never compared with an estimate over its standard deviation: where losses are
rare that fails.  It becomes a level, ``2 (1 - Phi(c))`` for two sides, and exact limits and exact
tests at that level are what a pool states.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LEAST_ROWS = 40  # errors, and right rows, below which a model is judged at Bonferroni's level
LEAST_VECTORS = 1000
LEAST_BEYOND = 10  # sign vectors that are expected beyond the critical value
SELECTION = 0.01  # share of delta that leaving out comparators takes, twice


def critical_value(maxima: Floats, delta: float) -> float:
    """The quantile of as many maxima as there are sign vectors; infinite where they are too few.

    The ``ceil((1 - delta) (l + 1))``-th of l in order: a further maximum under new signs is no
    larger with probability 1 - delta, whatever the losses are.
    """
    rank = math.ceil((1.0 - delta) * (len(maxima) + 1) * (1.0 - 2.0**-40))
    if rank > len(maxima):
        return math.inf
    return float(np.partition(maxima, rank - 1)[rank - 1])


def one_sided_level(maxima: Floats, delta: float, n_models: int) -> float:
    """The error that each of n models may have on one side; at least Bonferroni's.

    Parameters
    ----------
    maxima : ndarray of float64, shape (n_vectors,)
        For each sign vector the largest studentised sum among the models.
    delta : float
        The error of all statements together.
    n_models : int
        How many models they are about.
    """
    from scipy.special import ndtr

    return max(float(ndtr(-critical_value(maxima, delta))), delta / n_models)


def has_enough(squares: Any, largest: Any, n_samples: int) -> Any:
    """Whether the bootstrap may speak for a model.

    Of losses that are 0 or 1 it is: at least 40 errors and at least 40 right rows.

    Parameters
    ----------
    squares : float or ndarray of float64
        The sum of squared deviations from the mean.
    largest : float or ndarray of float64
        The largest of these deviations.
    n_samples : int
    """
    needed = LEAST_ROWS * n_samples * largest * largest
    return (squares > 0.0) & (squares * (n_samples - LEAST_ROWS) >= needed * (1.0 - 1e-9))


def sign_test(n_plus: Any, n_minus: Any) -> Any:
    """McNemar's exact test: how likely n_plus or more of the discordant rows are, if half are.

    Given the number N of rows on which two models disagree, the rows on which only the second is
    right are binomial; the probability is ``P(Bin(N, 1/2) >= n_plus)``, exact at every m for the
    claim that the second model errs no less often than the first.

    Parameters
    ----------
    n_plus, n_minus : int or ndarray of int64
        Rows where only the first errs, and where only the second does.

    Returns
    -------
    float or ndarray of float64
        1 where n_plus is 0.

    References
    ----------
    McNemar (1947). Note on the sampling error of the difference between correlated proportions or
    percentages. Psychometrika 12.
    """
    from scipy.special import betainc

    plus, minus = np.asarray(n_plus, np.float64), np.asarray(n_minus, np.float64)
    tail = betainc(np.maximum(plus, 1.0), minus + 1.0, 0.5)
    return np.where(plus > 0.0, np.minimum(tail * (1.0 + 1e-9), 1.0), 1.0)


def holm(p_values: Floats, delta: float) -> Mask:
    """Holm's step-down: which claims are rejected, with a familywise error of delta, proved.

    References
    ----------
    Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6.
    """
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    passes = p_values[order] <= delta / np.arange(n, 0, -1)
    rejected = np.zeros(n, np.bool_)
    rejected[order[np.logical_and.accumulate(passes)]] = True
    return rejected
