"""The level at which exact limits of many models hold at once, by a multiplier bootstrap.

The 1 - delta quantile c of ``max_f |T_j(f)|`` over the sign vectors j is the bootstrap's critical
value, T_j(f) the studentised signed sum of model f.  It is never compared with an estimate over its
standard deviation: where losses are rare that fails.  It becomes a level, ``2 (1 - Phi(c))`` for
two sides, at which exact limits and exact tests are taken.  **Asymptotic**: Chernozhukov,
Chetverikov and Kato (2013).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_VECTORS = 1000
LEAST_BEYOND = 10  # sign vectors that are expected beyond the critical value


def vectors_needed(delta: float) -> int:
    """How many sign vectors a critical value takes at least: 1,000, and ``10 / delta``."""
    return max(LEAST_VECTORS, math.ceil(LEAST_BEYOND / delta * (1.0 - 1e-12)))


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

    `maxima`, shape (n_vectors,), has for each sign vector the largest studentised sum among the
    models; delta is the error of all statements together.
    """
    from scipy.special import ndtr

    return max(float(ndtr(-critical_value(maxima, delta))), delta / n_models)


def two_sided_level(extremes: Any, delta: float, n_models: int) -> float:
    """The error that each of n models may have, both sides together; at least Bonferroni's.

    `extremes` is a `StudentisedExtremes`, the largest and smallest studentised sums.
    """
    maxima = np.maximum(extremes.highest, -extremes.lowest)
    return 2.0 * one_sided_level(maxima, delta, 2 * n_models)
