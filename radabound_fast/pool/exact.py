"""Exact tests of many models: McNemar's, and Holm's step-down."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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


def holm(p_values: NDArray[np.float64], delta: float) -> NDArray[np.bool_]:
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
