"""The bounds a guard may halt by: one row each, and nothing else knows them by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from .._checks import check_probability, check_real
from .bound import ASSUMED, NEVER_ADAPTIVE, Bound, Case, Tail
from .fixed_sequence import FixedSequence
from .free import Free
from .paper import bernstein_excess, bernstein_log_tail, mclt_excess, mclt_log_tail
from .split import bernstein_split_excess, bernstein_split_log_tail

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
        vars(self).update(proved_up_to=proved_up_to, asymptotic=not proved_up_to)

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
        """What is claimed, then what of it is proved."""
        source, n_vectors = self.source, case.n_vectors
        if self.asymptotic:
            standing = (
                f"It is a heuristic: {source} speaks of the limit of many samples, and simulated "
                f"failures on either side exceed it. It is asymptotic"
            )
        elif n_vectors <= self.proved_up_to[estimator]:
            standing = (
                f"The printed proof of {source} has a gap, but at n_vectors={n_vectors} the "
                f"theorem is proved by way of the symmetrised bound (docs/explanation/theory.md). "
                f"It is finite-sample"
            )
        else:
            standing = (
                f"The printed proof of {source} has a gap, so that it is not proved, though no "
                f"violation of it is known. It is finite-sample"
            )
        one, two = "one-sided (errors of one sign only)", "two-sided (delta' is doubled)"
        sentences = [
            f"The paper claims (Theorem 7 with {source}), for adaptive queries too: except with "
            f"probability {case.delta}, every returned mean is within {case.epsilon} of its "
            f"expectation.",
            f"{standing}, {two if case.two_sided else one}, for queries fixed in advance and at a "
            f"number of queries fixed in advance, not at the halting time.",
        ]
        if estimator == "half-range":
            sentences.append("The paper's proof is for the plain estimator, not for half-range.")
        return " ".join([*sentences, ASSUMED, NEVER_ADAPTIVE])


_ROWS = (
    PaperBound(
        "bernstein",
        "Theorem 4",
        bernstein_log_tail,
        bernstein_excess,
        {"plain": 23, "half-range": 41},
    ),
    PaperBound(
        "bernstein-split",
        "Theorem 3",
        bernstein_split_log_tail,
        bernstein_split_excess,
        {"plain": 87, "half-range": 109},
    ),
    PaperBound("mclt", "Theorem 6", mclt_log_tail, mclt_excess, {}),
    FixedSequence(),
)
BOUNDS: Mapping[str, Bound] = MappingProxyType({row.name: row for row in _ROWS})

# the paper's, from the one that halts first to the one that halts last
PAPER_BOUNDS = ("bernstein-split", "bernstein", "mclt")
