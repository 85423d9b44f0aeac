"""The bounds that are proved at the halting time, for a sequence of queries fixed in advance."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from .._checks import check_count, check_probability
from .bound import ASSUMED, NEVER_ADAPTIVE, Bound, Case
from .free import Free, WeightedFree, union_free
from .selfbounding import (
    low_error_budget,
    low_error_half_width,
    weighted_budget,
    weighted_half_width,
)
from .union import MOST_QUERIES

# shares of delta for the self-bounding (low-error) bound and for the union bound
BY_SIGNS, BY_UNION = 0.6, 0.4


class FixedSequence(Bound):
    """The self-bounding (low-error) bound at 3/5 of delta, or the union bound at 2/5 of it.

    An answer admitted by either is covered by that one, so either may go on after the other
    has stopped.  `budget` and `admits` are the first, `free` is the second.
    """

    name, source = "fixed-sequence", "self-bounding and union bounds, docs/explanation/theory.md"
    proved, estimators, sides = True, ("half-range",), (True,)

    def threshold(self, delta: float) -> float:
        """delta itself: the proof covers the halting time."""
        return check_probability(delta=delta)

    def _admits(self, complexity: float, case: Case) -> bool:
        """Whether `_half_width` at 3/5 of delta is at most epsilon."""
        case = case._replace(delta=BY_SIGNS * check_probability(delta=case.delta))
        return self._half_width(complexity, case) <= check_probability(epsilon=case.epsilon)

    def _half_width(self, complexity: float, case: Case) -> float:
        """The half-width by the signs: the low-error bound."""
        m, n, _, delta, _, largest_mean = case
        return low_error_half_width(complexity, largest_mean, m, n, delta)

    def free(
        self, n_samples: int, epsilon: float, delta: float, max_queries: int | None = None
    ) -> Free:
        """The union part, `union_free` at 2/5 of delta."""
        delta = BY_UNION * check_probability(delta=delta)
        return union_free(n_samples, epsilon, delta, max_queries)

    def _estimate(self, case: Case) -> float:
        m, n, epsilon, delta, _, largest_mean = case
        share = BY_SIGNS * check_probability(delta=delta)
        return low_error_budget(epsilon, largest_mean, m, n, share)

    def _words(self, case: Case, estimator: str, free: Free | None) -> str:
        assert free is not None
        pool, never = "", NEVER_ADAPTIVE
        if free.n_queries > 1:
            pool = (
                f", or in any order from a pool, fixed in advance, of at most {free.n_queries:,} "
                f"whose losses are declared 0 or 1"
            )
            never = NEVER_ADAPTIVE.replace("analyst:", "analyst beyond such a pool:")
        if free.n_queries:
            union = f"answers the first {free.n_queries:,} queries, whatever their means"
        elif not free.answers_any:
            union = "answers none here"
        else:
            low = free.stage(0).low_count / free.n_samples
            union = f"answers means up to {low:.4g} or from {1.0 - low:.4g} at first"
        return (
            f"It is proved that, for queries in an order fixed in advance (before any score on "
            f"this holdout was seen){pool}, except with probability {case.delta}, every returned "
            f"mean is within {case.epsilon} of its expectation: two-sided, finite-sample, and up "
            f"to a halting time that depends on the data. Each answer is covered by the "
            f"self-bounding bound at 3/5 of delta or by the union bound at 2/5 of it "
            f"(docs/explanation/theory.md). Of losses declared 0 or 1 (labels, bits, booleans, "
            f"integers) the union bound {union}. {ASSUMED} {never}"
        )


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
        share = BY_SIGNS * check_probability(delta=case.delta)
        return weighted_budget(case.epsilon, self.largest, self.squares, case.n_vectors, share)

    def _words(self, case: Case, estimator: str, free: Free | None) -> str:
        assert free is not None
        return (
            f"It is proved that, for queries in an order fixed in advance (before any score on "
            f"this holdout was seen), except with probability {case.delta}, every returned "
            f"weighted mean is within {case.epsilon} of its expectation given the weights and the "
            f"groups' sizes: two-sided, finite-sample, and up to a halting time that depends on "
            f"the data. Weights (rounded to about 2**-24 of the heaviest group's) must have been "
            f"fixed in advance, and rows of different groups be independent. Each answer is "
            f"covered by the self-bounding bound for weighted losses at 3/5 of delta or by the "
            f"union bound at 2/5 of it (docs/explanation/theory.md), which answers the first "
            f"{free.n_queries:,} queries, whatever their means. {NEVER_ADAPTIVE}"
        )
