"""The type of the paper's bounds: a tail, and the halting rule of Theorem 7."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .._checks import check_probability, check_real
from . import guarantees
from .bound import Bound, Case, Tail
from .free import Free

_LOG_2 = math.log(2.0)


class PaperBound(Bound):
    """A tail bound of the paper under Theorem 7: answer while delta' <= delta (1 - delta)."""

    proved, estimators, sides = False, ("plain", "half-range"), (False, True)
    log_tail: Tail
    excess: Tail
    # per estimator, the most sign vectors at which the theorem follows from `symmetrised_log_tail`,
    # one-sided and for a class fixed in advance; empty if asymptotic
    proved_up_to: Mapping[str, int]

    def __init__(
        self, name: str, source: str, log_tail: Tail, excess: Tail, proved_up_to: Mapping[str, int]
    ) -> None:
        vars(self).update(name=name, source=source, log_tail=log_tail, excess=excess)
        vars(self)["proved_up_to"] = proved_up_to

    @property
    def asymptotic(self) -> bool:
        """Whether it speaks of the limit of many samples only."""
        return not self.proved_up_to

    def threshold(self, delta: float) -> float:
        """delta (1 - delta): Theorem 7; delta / (1 + delta) would do."""
        delta = check_probability(delta=delta)
        return delta * (1.0 - delta)

    def _admits(self, complexity: float, case: Case) -> bool:
        """Whether delta' at the excess ``epsilon - 2 complexity`` is within the threshold."""
        complexity = check_real(complexity=complexity)
        excess = check_probability(epsilon=case.epsilon) - 2.0 * complexity
        log_tail = self.log_tail(excess, case.n_samples, case.n_vectors)
        if case.two_sided:
            log_tail += _LOG_2
        return log_tail <= math.log(self.threshold(case.delta))

    def _estimate(self, case: Case) -> float:
        log_delta = math.log(self.threshold(case.delta)) - (_LOG_2 if case.two_sided else 0.0)
        epsilon = check_probability(epsilon=case.epsilon)
        return 0.5 * (epsilon - self.excess(log_delta, case.n_samples, case.n_vectors))

    def _words(self, case: Case, estimator: str, free: Free | None) -> str:
        if self.asymptotic:
            standing = guarantees.heuristic(self.source)
        elif case.n_vectors <= self.proved_up_to[estimator]:
            standing = guarantees.implied(self.source, case.n_vectors)
        else:
            standing = guarantees.unproved(self.source)
        return guarantees.paper(
            self.source, standing, case.epsilon, case.delta, estimator, case.two_sided
        )
