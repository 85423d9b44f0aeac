"""What many queries at once come to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Answers:
    """What `query_many` answered: the queries before the first that was withheld.

    Attributes
    ----------
    values : ndarray of float64, shape (n_answered,)
        Mean losses.
    n_answered : int
        How many of the queries of this call were answered.
    halted : bool
        Whether the query after them was withheld.
    half_width : float
        How far each value may be from its true mean: the guard's epsilon.
    n_queries : int
        Answers that the guard has given in all.
    complexity, delta_prime : float
        The guard's after the call, a withheld query included.
    complexities, delta_primes : ndarray of float64, shape (n_answered,), or None
        The same after each answer; only with ``trace=True``.
    """

    values: NDArray[np.float64]
    n_answered: int
    halted: bool
    half_width: float
    n_queries: int
    complexity: float
    delta_prime: float
    complexities: NDArray[np.float64] | None = None
    delta_primes: NDArray[np.float64] | None = None
