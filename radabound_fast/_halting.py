"""The halting rule of one configuration: a bound, priced as integers for the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice, check_count, check_probability
from radabound_fast._kernel import UNIT_SHIFT, GuardCore
from radabound_fast.bounds import BOUNDS
from radabound_fast.bounds.union import MOST_QUERIES

NO_LIMIT = 2**63 - 1

# budget; the largest total and the number of rows that the gate holds for; totals up to and from
# which a row needs no signs, of declared 0-1 losses and of real ones
Gate = tuple[int, int, int, int, int, int, int]

FloatOrArray = TypeVar("FloatOrArray", float, NDArray[np.float64])

# means in [0, low] or [high, 1]; None: there is nothing
Range = tuple[float, float]


class Stage(NamedTuple):
    """What needs no signs, for all queries before the one that `n_queries` were asked before."""

    n_queries: int
    declared: Range | None
    real: Range | None


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

    def interval(
        self, values: FloatOrArray, n_queries: Any, declared: Any
    ) -> tuple[FloatOrArray, FloatOrArray]:
        """Between which ends the truth of an answer lies: (lows, highs), in [0, 1].

        Parameters
        ----------
        values : float or ndarray of float64
            The answers.
        n_queries : int or ndarray of int64
            The number of each, from 1 on.
        declared : bool or ndarray of bool
            Whether the losses are 0 or 1 by their type: bits, bool, integers, predictions.
        """
        lows = np.maximum(values - self.epsilon, 0.0)
        highs = np.minimum(values + self.epsilon, 1.0)
        return lows, highs

    def half_width(self, values: FloatOrArray, lows: FloatOrArray, highs: FloatOrArray) -> Any:
        """How far the truth may be from an answer: epsilon, unless its interval says more."""
        wide_below = lows <= np.maximum(values - self.epsilon, 0.0)
        wide_above = highs >= np.minimum(values + self.epsilon, 1.0)
        nearer = np.maximum(values - lows, highs - values)
        return np.where(wide_below & wide_above, self.epsilon, nearer)

    def stage(self, n_queries: int) -> Stage:
        """What needs no signs after so many answers, and up to how many that holds."""
        free = self.free
        if free is None or n_queries >= free.n_queries:
            return Stage(NO_LIMIT, None, None)
        return Stage(free.n_queries, (free.low, free.high), (free.low, free.high))

    def free_left(self, n_queries: int, mean: float | None, declared: bool) -> int:
        """How many queries more need no signs after so many answers, at most 2**62.

        Those whose mean is this one, to the nearest that there is; None: whatever their means.
        `declared`: of losses declared 0 or 1.
        """
        everything = self.n_samples << (0 if declared else UNIT_SHIFT)
        total = None if mean is None else round(Fraction(mean) * everything)
        last = n_queries
        while last < NO_LIMIT:  # stage by stage
            end, *ranges = self.stage(last)
            low, high = free_totals(ranges[0 if declared else 1], everything)
            passes = high - low <= 1 if total is None else total <= low or total >= high
            if not passes:
                break
            last = end
        return min(last - n_queries, MOST_QUERIES)

    def n_left(self, found: GuardCore, mean: float | None, declared: bool) -> int:
        """How many queries more are answered whatever they are, at most 2**62.

        `mean` and `declared` are those of `free_left`, which counts what needs no signs.  If the
        budget covers rows that agree with every vector at once, there is no limit.
        """
        if found._halted:
            return 0
        total = math.ceil(
            Fraction(1.0 if mean is None else mean) * (self.n_samples << found.unit_shift)
        )
        budget = self.price(max(found.largest, total), found.unit_shift, found.n_rows)[0]
        if self._worst(found, total) <= budget:
            return MOST_QUERIES
        # the half-range of one row is 0
        first = self.estimator == "half-range" and not found.started and budget >= 0
        return max(int(first), self.free_left(found.n_rows, mean, declared))

    def _worst(self, found: GuardCore, total: int) -> int:
        """The most that the extremes can sum up to with more rows, each of this total at most."""
        both = self.estimator == "half-range"
        if not found.started:
            return total * self.n_vectors * (2 if both else 1)
        maxima, minima = found.extremes()
        worst = int(np.maximum(maxima, total).sum())
        return worst - int(np.minimum(minima, -total).sum()) if both else worst

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
        stage = self.stage(n_rows)
        declared, real = (free_totals(means, everything) for means in (stage.declared, stage.real))
        return budget, priced, stage.n_queries, *declared, *real


def free_totals(means: Range | None, everything: int) -> tuple[int, int]:
    """Up to and from which totals a row needs no signs; one that errs everywhere has everything."""
    if means is None:
        return -1, NO_LIMIT
    low, high = means
    return math.floor(Fraction(low) * everything), math.ceil(Fraction(high) * everything)


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
