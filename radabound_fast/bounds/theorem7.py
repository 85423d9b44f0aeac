"""The type of the paper's bounds: a tail, and the halting rule of Theorem 7."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from .._checks import check_probability, check_real
from . import guarantees
from .bound import Bound, Tail
from .free import Free

_LOG_2 = math.log(2.0)


@dataclass(frozen=True)
class PaperBound(Bound):
    """A tail bound of the paper under Theorem 7: answer while delta' <= delta (1 - delta).

    Attributes
    ----------
    proved_up_to : dict of str to int
        Per estimator, the most sign vectors at which the theorem follows from
        `symmetrised_log_tail`, one-sided and for a class fixed in advance.
    asymptotic : bool
        Whether it speaks of the limit of many samples only.
    """

    log_tail: Tail
    excess: Tail
    proved_up_to: Mapping[str, int]
    asymptotic: bool = False

    def threshold(self, delta: float) -> float:
        """delta (1 - delta): Theorem 7; delta / (1 + delta) would do."""
        delta = check_probability(delta=delta)
        return delta * (1.0 - delta)

    def admits(
        self,
        complexity: float,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        two_sided: bool | None = None,
        largest_mean: float = 1.0,
    ) -> bool:
        """Whether delta' at the excess ``epsilon - 2 complexity`` is within the threshold."""
        complexity = check_real(complexity=complexity)
        excess = check_probability(epsilon=epsilon) - 2.0 * complexity
        log_tail = self.log_tail(excess, n_samples, n_vectors)
        if self._sides(two_sided):
            log_tail += _LOG_2
        return log_tail <= math.log(self.threshold(delta))

    def _estimate(
        self,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        two_sided: bool,
        largest_mean: float,
    ) -> float:
        log_delta = math.log(self.threshold(delta)) - (_LOG_2 if two_sided else 0.0)
        epsilon = check_probability(epsilon=epsilon)
        return 0.5 * (epsilon - self.excess(log_delta, n_samples, n_vectors))

    def _words(
        self,
        n_vectors: int,
        epsilon: float,
        delta: float,
        estimator: str,
        two_sided: bool,
        free: Free | None,
    ) -> str:
        if self.asymptotic:
            standing = guarantees.heuristic(self.source)
        elif n_vectors <= self.proved_up_to[estimator]:
            standing = guarantees.implied(self.source, n_vectors)
        else:
            standing = guarantees.unproved(self.source)
        return guarantees.paper(self.source, standing, epsilon, delta, estimator, two_sided)
