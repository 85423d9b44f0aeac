"""The bound "fixed-sequence" where rows weigh differently, or belong together in groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import check_count, check_n_vectors, check_positive, check_probability
from . import guarantees
from ._arguments import check_fractions, check_not_negative
from .bound import Case
from .conditional import weighted_interval
from .fixed_sequence import BY_SIGNS, BY_UNION, FixedSequence
from .free import NO_END, Free, Stage
from .union import MOST_QUERIES


def weighted_half_width(
    complexity: float, largest_weight: float, squares: float, n_vectors: int, delta: float
) -> float:
    """Simultaneous half-width of weighted means, by the self-bounding split; for a fixed class.

    With ``b = A ln(1/d2)`` and ``r = 2 R~ + b + sqrt(b^2 + 2 (2 R~ b + ln(1/d2) S / l))``,
    ``Psi <= r + sqrt(S ln(1/d1) / 2)`` with probability ``1 - 2 d1 - d2``; the two terms share
    delta 3 : 1, within 1.3 % of the best split for m from 500 to 1e6.

    Parameters
    ----------
    complexity : float
        The half-range Monte-Carlo Rademacher average R~ of losses times their weights, at least
        0, in units of loss.
    largest_weight, squares : float
        A, the largest of the weights, and S, the sum of their squares: fixed weights, of sum 1, of
        independent rows or groups.
    n_vectors : int
        l sign vectors (1 to 2^23), with one sign a group.
    delta : float
        Probability of failure, in (0, 1).

    Returns
    -------
    float
        In units of loss; not clipped at 1.

    Notes
    -----
    Result 28 of docs/explanation/theory.md; at equal weights, A = S = 1/m, it is Result 7.

    Examples
    --------
    >>> round(weighted_half_width(0.005, 1 / 4000, 1 / 4000, n_vectors=256, delta=0.1), 10)
    0.0363290016
    """
    complexity, n = check_not_negative(complexity=complexity), check_n_vectors(n_vectors)
    largest = check_positive(largest_weight=largest_weight)
    squares = check_positive(squares=squares)
    log_d1, log_d2 = _logs(check_probability(delta=delta))
    doubled, b = 2.0 * complexity, largest * log_d2
    r = doubled + b + math.sqrt(b * b + 2.0 * (doubled * b + log_d2 * squares / n))
    return r + math.sqrt(0.5 * squares * log_d1)


def _logs(delta: float) -> tuple[float, float]:
    """ln(1/d1), of each side's deviation, and ln(1/d2), of the estimate's lower tail."""
    return -math.log(0.5 * 0.75 * delta), -math.log(0.25 * delta)


@dataclass(frozen=True, eq=False)
class WeightedFree(Free):
    """`Free` for weighted means: what passes is by Hoeffding, intervals are those of Result 23."""

    weights: NDArray[Any]  # of the groups, in any unit
    counts: NDArray[Any]  # how many groups have each
    squares: float  # S, the sum of the squares of the weights of sum 1

    @property
    def n_queries(self) -> int:
        """Number of queries answered whatever their means."""
        return self.end_of(lambda stage: stage.low_mean >= 0.0)

    def stage(self, n_queries: int) -> Stage:
        """The means that pass after so many answers: all of them, or none any more."""
        k = check_count(n_queries=n_queries + 1)
        if math.sqrt(0.5 * self.squares * self.nats(k)) > self.epsilon:
            return Stage(NO_END, -1, -1.0)
        return Stage(self.last_alike(k), -1, 0.5)

    def interval(self, means: Any, queries: Any, declared: bool) -> tuple[Any, Any]:
        """Simultaneous confidence intervals of weighted means; `declared` makes no difference."""
        means, nats = check_fractions(means=means), self.nats(queries)
        if isinstance(means, float) and isinstance(nats, float):
            return weighted_interval(means, self.weights, self.counts, nats)
        means, nats = np.broadcast_arrays(means, nats)
        pairs = zip(means.ravel().tolist(), nats.ravel().tolist(), strict=True)
        limits = [weighted_interval(mean, self.weights, self.counts, each) for mean, each in pairs]
        lows, highs = np.array(limits, np.float64).reshape(-1, 2).T
        return lows.reshape(means.shape), highs.reshape(means.shape)


class WeightedSequence(FixedSequence):
    """`FixedSequence` for weighted means: Result 28 at 3/5 of delta, or Result 23's at 2/5.

    ``n_samples`` of its methods is the number of groups; `weights` and `counts`, as in
    `WeightedFree`, say what they are worth.
    """

    weights: NDArray[Any]
    counts: NDArray[Any]
    largest: float  # A, of the weights of sum 1
    squares: float

    def __init__(
        self, weights: NDArray[Any], counts: NDArray[Any], largest: float, squares: float
    ) -> None:
        vars(self).update(weights=weights, counts=counts, largest=largest, squares=squares)

    def _half_width(self, complexity: float, case: Case) -> float:
        """The half-width by the signs: the weighted bound."""
        return weighted_half_width(
            complexity, self.largest, self.squares, case.n_vectors, case.delta
        )

    def free(
        self, n_samples: int, epsilon: float, delta: float, max_queries: int | None = None
    ) -> Free:
        """The union part, at 2/5 of delta."""
        epsilon = check_probability(epsilon=epsilon)
        delta = BY_UNION * check_probability(delta=delta)
        if max_queries is None:
            log_n = min(2.0 * epsilon * epsilon / self.squares, 1e3) + math.log(0.25 * delta)
            n_flat = math.floor(math.exp(log_n)) if log_n < math.log(MOST_QUERIES) else MOST_QUERIES
        else:
            n_flat = check_count(max_queries=max_queries)
        return WeightedFree(
            n_samples, epsilon, delta, n_flat, self.weights, self.counts, self.squares
        )

    def _estimate(self, case: Case) -> float:
        log_d1, log_d2 = _logs(BY_SIGNS * check_probability(delta=case.delta))
        r = check_probability(epsilon=case.epsilon) - math.sqrt(0.5 * self.squares * log_d1)
        if r < 0.0:
            return r
        noise = 2.0 * log_d2 * (self.largest * r + self.squares / case.n_vectors)
        return 0.5 * (r - math.sqrt(noise))

    def _words(self, case: Case, estimator: str, free: Free | None) -> str:
        assert free is not None
        return guarantees.weighted_sequence(case.epsilon, case.delta, free)
