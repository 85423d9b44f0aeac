"""The bounds a guard may halt by: one row each, and nothing else knows them by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .._checks import check_probability, check_real
from . import guarantees
from .bound import Bound, Tail
from .paper import bernstein_excess, bernstein_log_tail, mclt_excess, mclt_log_tail
from .selfbounding import low_error_budget, low_error_half_width
from .split import bernstein_split_excess, bernstein_split_log_tail
from .union import Free, union_free

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
        free: Free,
    ) -> str:
        if self.asymptotic:
            standing = guarantees.heuristic(self.source)
        elif n_vectors <= self.proved_up_to[estimator]:
            standing = guarantees.implied(self.source, n_vectors)
        else:
            standing = guarantees.unproved(self.source)
        return guarantees.paper(self.source, standing, epsilon, delta, estimator, two_sided)


@dataclass(frozen=True)
class FixedSequence(Bound):
    """The self-bounding (low-error) bound at 3/5 of delta, or the union bound at 2/5 of it.

    An answer given by either is covered by that one, so either may go on after the other
    has stopped.  `budget` and `admits` are the first, `free` is the second.
    """

    log_tail: None = None
    excess: None = None

    def threshold(self, delta: float) -> float:
        """delta itself: the proof covers the halting time."""
        return check_probability(delta=delta)

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
        """Whether the low-error half-width at 3/5 of delta is at most epsilon."""
        self._sides(two_sided)
        share = 0.6 * check_probability(delta=delta)
        width = low_error_half_width(complexity, largest_mean, n_samples, n_vectors, share)
        return width <= check_probability(epsilon=epsilon)

    def free(
        self, n_samples: int, epsilon: float, delta: float, max_queries: int | None = None
    ) -> Free:
        """What `union_free` answers at 2/5 of delta."""
        return union_free(n_samples, epsilon, 0.4 * check_probability(delta=delta), max_queries)

    def _estimate(
        self,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        two_sided: bool,
        largest_mean: float,
    ) -> float:
        share = 0.6 * check_probability(delta=delta)
        return low_error_budget(epsilon, largest_mean, n_samples, n_vectors, share)

    def _words(
        self,
        n_vectors: int,
        epsilon: float,
        delta: float,
        estimator: str,
        two_sided: bool,
        free: Free,
    ) -> str:
        return guarantees.fixed_sequence(epsilon, delta, free)


BOUNDS: Mapping[str, Bound] = MappingProxyType(
    {
        row.name: row
        for row in (
            PaperBound(
                name="bernstein",
                source="Theorem 4",
                proved=False,
                estimators=("plain", "half-range"),
                sides=(False, True),
                log_tail=bernstein_log_tail,
                excess=bernstein_excess,
                proved_up_to={"plain": 23, "half-range": 41},
            ),
            PaperBound(
                name="bernstein-split",
                source="Theorem 3",
                proved=False,
                estimators=("plain", "half-range"),
                sides=(False, True),
                log_tail=bernstein_split_log_tail,
                excess=bernstein_split_excess,
                proved_up_to={"plain": 87, "half-range": 109},
            ),
            PaperBound(
                name="mclt",
                source="Theorem 6",
                proved=False,
                estimators=("plain", "half-range"),
                sides=(False, True),
                log_tail=mclt_log_tail,
                excess=mclt_excess,
                proved_up_to={},
                asymptotic=True,
            ),
            FixedSequence(
                name="fixed-sequence",
                source="self-bounding and union bounds, docs/theory.md",
                proved=True,
                estimators=("half-range",),
                sides=(True,),
            ),
        )
    }
)
