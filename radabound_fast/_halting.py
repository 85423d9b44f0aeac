"""The halting rule of one configuration: a bound, priced as integers for the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from radabound_fast._checks import check_choice, check_count, check_probability
from radabound_fast.bounds import BOUNDS

NO_LIMIT = 2**63 - 1

# budget; the largest total and the number of rows that the gate holds for; totals up to and from
# which a row needs no signs, of declared 0-1 losses and of real ones
Gate = tuple[int, int, int, int, int, int, int]


class HaltingRule:
    """When a query is answered, given the sum of the extremes: a function, no state.

    The parameters are those of `RadaBound`, which documents them.
    """

    def __init__(
        self,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        bound: str,
        estimator: str | None,
        two_sided: bool | None,
        max_queries: int | None,
    ) -> None:
        self.epsilon = check_probability(epsilon=epsilon)
        self.delta = check_probability(delta=delta)
        self.bound = BOUNDS[check_choice(BOUNDS, bound=bound)]
        self.estimator = self.bound.estimators[0] if estimator is None else estimator
        check_choice(self.bound.estimators, estimator=self.estimator)
        self.two_sided = self.bound.sides[0] if two_sided is None else two_sided
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        self.n_samples, self.n_vectors = n_samples, n_vectors
        self.threshold = self.bound.threshold(self.delta)
        self.free = self.bound.free(n_samples, self.epsilon, self.delta, self.max_queries)

    @property
    def guarantee(self) -> str:
        """In words."""
        return self.bound.guarantee(
            self.n_samples,
            self.n_vectors,
            self.epsilon,
            self.delta,
            estimator=self.estimator,
            two_sided=self.two_sided,
            max_queries=self.max_queries,
        )

    def delta_prime(self, complexity: float) -> float:
        """delta' at a complexity, clipped at 1; nan where the bound has no tail."""
        if self.bound.log_tail is None:
            return math.nan
        excess = self.epsilon - 2.0 * complexity
        log_tail = self.bound.log_tail(excess, self.n_samples, self.n_vectors)
        return min(1.0, math.exp(log_tail + math.log(2.0) if self.two_sided else log_tail))

    def needs_no_signs(self, n_queries: int) -> bool:
        """Whether after so many answers the next is given whatever its losses are."""
        if self.free is None:
            return False
        _, low_count, low_mean = self.free.stage(n_queries)
        return low_count == self.n_samples and low_mean >= 0.5

    def free_left(self, n_queries: int, mean: float, declared: bool) -> int:
        """How many more queries of this mean are answered, whatever their signs say.

        Parameters
        ----------
        n_queries : int
            The answers so far.
        mean : float
            The mean loss of every query to come, in [0, 1].
        declared : bool
            Whether their losses are declared 0 or 1: labels, bits, booleans, integers.

        Returns
        -------
        int
            0 if the next need not be; at most 2^62.  With every answer it falls by 1.
        """
        return 0 if self.free is None else self.free.left(n_queries, mean, declared)

    def interval(self, values: Any, n_queries: Any, declared: bool) -> tuple[Any, Any]:
        """Where the truths of answers lie; as `Bound.interval`, of this configuration."""
        return self.bound.interval(
            values,
            n_queries,
            n_samples=self.n_samples,
            epsilon=self.epsilon,
            delta=self.delta,
            max_queries=self.max_queries,
            declared=declared,
        )

    def price(self, largest_total: int, unit_shift: int, n_rows: int) -> Gate:
        """The gate of ``struct guard_state`` in src/scan/scan.h, in units of 2**-unit_shift.

        That of the next query after `n_rows` answers, whose sums were at most `largest_total`.
        The budget is stepped to the edge of the bound's own predicate at the complexities that
        integers stand for, so that the integer test and the bound never disagree.
        """
        everything = self.n_samples << unit_shift  # the sum of a vector that errs everywhere
        ranges = 2 if self.estimator == "half-range" else 1
        cells = float(ranges) * float(self.n_vectors) * float(everything)
        given: dict[str, Any] = {
            "n_samples": self.n_samples,
            "n_vectors": self.n_vectors,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "two_sided": self.two_sided,
            "largest_mean": largest_total / everything,
        }

        def passes(total: int) -> bool:
            complexity = total / cells
            admitted = self.bound.admits(complexity, **given)
            return admitted and not self.delta_prime(complexity) > self.threshold

        budget = last_that_passes(passes, math.floor(self.bound.budget(**given) * cells))
        priced = largest_total if self.bound.log_tail is None else NO_LIMIT
        if self.free is None:
            return budget, priced, NO_LIMIT, -1, NO_LIMIT, -1, NO_LIMIT
        n_queries, low_count, low_mean = self.free.stage(n_rows)
        declared = ends(low_count << unit_shift, everything)
        real = ends(math.floor(Fraction(low_mean) * everything), everything)
        return budget, priced, n_queries, *declared, *real


def ends(low: int, everything: int) -> tuple[int, int]:
    """Up to and from which totals a row passes, in mirror image; none if the first is negative."""
    return (low, everything - low) if low >= 0 else (-1, NO_LIMIT)


def last_that_passes(passes: Callable[[int], bool], start: int) -> int:
    """The largest integer that passes a test that is true up to some point; -1 if 0 does not.

    `start` is a guess: the search gallops from it.
    """
    if not passes(0):
        return -1
    low = high = max(0, start)
    step = 1
    while not passes(low):
        low, high, step = max(0, low - step), low, 2 * step
    while low == high or passes(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
