"""What many queries at once come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)  # arrays have no one truth value
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
        The guard's after the call, a withheld query included; delta_prime is computed when asked
        for.
    complexities, delta_primes : ndarray of float64, shape (n_answered,), or None
        The same after each answer; only with ``trace=True``.
    """

    values: NDArray[np.float64]
    n_answered: int
    halted: bool
    half_width: float
    n_queries: int
    complexity: float
    _tail: Callable[[float], float] = field(repr=False)  # complexity -> delta_prime
    complexities: NDArray[np.float64] | None = None

    @cached_property
    def delta_prime(self) -> float:
        return self._tail(self.complexity)

    @cached_property
    def delta_primes(self) -> NDArray[np.float64] | None:
        if self.complexities is None:
            return None
        # complexities never fall, and rarely rise: each run of equal ones is looked up once
        starts = np.flatnonzero(np.diff(self.complexities, prepend=np.nan) != 0)
        found = [self._tail(complexity) for complexity in self.complexities[starts].tolist()]
        return np.repeat(found, np.diff(starts, append=self.n_answered))

    def __getstate__(self) -> dict[str, Any]:
        known = {"delta_prime": self.delta_prime, "delta_primes": self.delta_primes}
        return self.__dict__ | known | {"_tail": None}  # what is stored needs no bound
