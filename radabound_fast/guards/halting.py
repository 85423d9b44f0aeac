"""The halting rule of one configuration: a bound, priced as integers for the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from radabound_fast._checks import check_choice, check_count, check_delta, check_probability
from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import UNIT_SHIFT
from radabound_fast.bounds import BOUNDS, Bound, Stage
from radabound_fast.bounds._limits import at_least, at_most
from radabound_fast.bounds.fixed_sequence import WeightedSequence
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.guards.release import tolerance_before

if TYPE_CHECKING:
    from radabound_fast.rows.rounded import Rounded
    from radabound_fast.rows.weighting import Units

NO_LIMIT = 2**63 - 1
NOTHING = -1, NO_LIMIT
_MOST_LISTED = 2**18  # counts whose limits are kept, in 16 bytes each

# budget; the largest total and the number of rows that the gate holds for; totals up to and from
# which a row needs no signs, of declared 0-1 losses and of real ones
Gate = tuple[int, int, int, int, int, int, int]


class HaltingRule:
    """When a query is answered, given the sum of the extremes; parameters as of `RadaBound`."""

    def __init__(
        self,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        bound: str,
        estimator: str | None = None,
        two_sided: bool | None = None,
        max_queries: int | None = None,
        units: Units | None = None,
        rounded: Rounded | None = None,
    ) -> None:
        self.epsilon = check_probability(epsilon=epsilon)
        self.rounded = rounded
        self.tolerance = tolerance_before(rounded, self.epsilon)
        self.delta = check_delta(delta)
        self.bound: Bound = BOUNDS[check_choice(BOUNDS, bound=bound)]
        self._total = n_samples << UNIT_SHIFT  # in units, of a row that errs everywhere
        if units is not None:
            if not self.bound.proved:
                raise ValueError(
                    "bound must be 'fixed-sequence' with sample_weight or groups, for which no "
                    f"other is proved, got {bound!r}"
                )
            self.bound = WeightedSequence(
                units.of_groups, units.counts, units.largest, units.squares
            )
            self._total = units.total
        self.estimator = self.bound.estimators[0] if estimator is None else estimator
        check_choice(self.bound.estimators, estimator=self.estimator)
        self.two_sided = self.bound.sides[0] if two_sided is None else two_sided
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        self.n_samples, self.n_vectors = n_samples, n_vectors
        self.has_weights = units is not None
        self.threshold = self.bound.threshold(self.delta)
        self.free = self.bound.free(n_samples, self.tolerance, self.delta, self.max_queries)

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in words."""
        text = self.bound.guarantee(
            self.n_samples,
            self.n_vectors,
            self.tolerance,
            self.delta,
            estimator=self.estimator,
            two_sided=self.two_sided,
            max_queries=self.max_queries,
        )
        if self.rounded is None:
            return text
        return (
            f"{text} All this is of scores before they are rounded to multiples of "
            f"{self.rounded.step:g}: every answer is within {self.epsilon:g} of the same truth, "
            "and its interval is widened by what the rounding hides (Result 35)."
        )

    def delta_prime(self, complexity: float) -> float:
        """delta' at a complexity, clipped at 1; nan where either is not known."""
        if self.bound.log_tail is None or math.isnan(complexity):
            return math.nan
        excess = self.tolerance - 2.0 * complexity
        log_tail = self.bound.log_tail(excess, self.n_samples, self.n_vectors)
        return min(1.0, math.exp(log_tail + math.log(2.0) if self.two_sided else log_tail))

    def free_left(self, n_queries: int, mean: float | None, declared: bool) -> int:
        """How many queries more need no signs after so many answers, at most 2**62.

        Those whose mean is this one, to the nearest that there is; None: whatever their means.
        `declared`: of losses declared 0 or 1.
        """
        if self.free is None:
            return 0
        from fractions import Fraction  # which is slow to import

        declared = declared and not self.has_weights
        unit_shift = 0 if declared else UNIT_SHIFT
        everything = self._everything(unit_shift)
        total = None if mean is None else round(Fraction(mean) * everything)

        def passes(stage: Stage) -> bool:
            low, high = self._ranges(stage, unit_shift)[0 if declared else 1]
            return high - low <= 1 if total is None else total <= low or total >= high

        return self.free.end_of(passes, n_queries) - n_queries

    def released(self, values: Any) -> Any:
        """What is released of means, where answers are rounded."""
        assert self.rounded is not None
        return at_most(self.rounded.of(values), 1.0)  # a step need not divide 1

    def interval(self, values: Any, n_queries: Any, declared: Any) -> tuple[Any, Any]:
        """Where the truths of answers lie; as `Bound.interval`, of this configuration.

        `declared` may be an array, of answers to losses of both kinds.
        """
        if isinstance(declared, np.ndarray):
            lows, highs = np.empty(len(values)), np.empty(len(values))
            for flag in (True, False):
                some = declared == flag
                lows[some], highs[some] = self.interval(values[some], n_queries[some], flag)
            return lows, highs
        if self.rounded is None:
            return self.bound.interval(self.free, values, n_queries, self.epsilon, declared)
        # of the least and the largest mean that is rounded alike, cut to epsilon
        least, most = self.rounded.cell(values)
        if not self.has_weights:  # of counts
            m, slack = self.n_samples, self.n_samples * 2.0**-50
            least, most = np.ceil(least * m - slack) / m, np.floor(most * m + slack) / m
        ends = at_least(least, 0.0), at_most(most, 1.0)
        (lows, _), (_, highs) = (
            self.bound.interval(self.free, end, n_queries, 1.0, declared) for end in ends
        )
        return at_least(lows, values - self.epsilon), at_most(highs, values + self.epsilon)

    def half_width(self, values: Any, lows: Any, highs: Any) -> Any:
        """How far the truth may be from an answer: epsilon, unless its interval says more."""
        wide_below = lows <= at_least(values - self.epsilon, 0.0)
        wide_above = highs >= at_most(values + self.epsilon, 1.0)
        nearer = at_least(values - lows, highs - values)
        if isinstance(nearer, float):
            return self.epsilon if wide_below and wide_above else nearer
        return np.where(wide_below & wide_above, self.epsilon, nearer)

    def n_left(self, core: GuardCore, mean: float | None, declared: bool) -> int:
        """How many queries more are answered whatever they are, at most 2**62.

        `mean` and `declared` are those of `free_left`, which counts what needs no signs.  If the
        budget covers rows that agree with every vector at once, there is no limit.
        """
        from fractions import Fraction

        if core.halted:
            return 0
        everything = self._everything(core.unit_shift)
        total = math.ceil(Fraction(1.0 if mean is None else mean) * everything)
        budget = self.price(max(core.largest, total), core.unit_shift, core.n_rows)[0]
        if self._worst(core, total) <= budget:
            return MOST_QUERIES
        # the half-range of one row is 0
        first = self.estimator == "half-range" and not core.started and budget >= 0
        return max(int(first), self.free_left(core.n_rows, mean, declared))

    def _worst(self, core: GuardCore, total: int) -> int:
        """The most that the extremes can sum up to with more rows, each of this total at most."""
        both = self.estimator == "half-range"
        if not core.started:
            return total * self.n_vectors * (2 if both else 1)
        maxima, minima = core.extremes()
        worst = int(np.maximum(maxima, total).sum())
        return worst - int(np.minimum(minima, -total).sum()) if both else worst

    def price(self, largest_total: int, unit_shift: int, n_rows: int) -> Gate:
        """The gate of ``struct guard_state`` in src/scan/scan.h, in units of 2**-unit_shift.

        That of the next query after `n_rows` answers, whose sums were at most `largest_total`.
        The budget is stepped to the edge of the bound's own predicate at the complexities that
        integers stand for, so that the integer test and the bound never disagree.
        """
        everything = self._everything(unit_shift)
        ranges = 2 if self.estimator == "half-range" else 1
        cells = float(ranges) * float(self.n_vectors) * float(everything)
        parameters: dict[str, Any] = {
            "n_samples": self.n_samples,
            "n_vectors": self.n_vectors,
            "epsilon": self.tolerance,
            "delta": self.delta,
            "two_sided": self.two_sided,
            "largest_mean": largest_total / everything,
        }

        def passes(total: int) -> bool:
            complexity = total / cells
            admitted = self.bound.admits(complexity, **parameters)
            return admitted and not self.delta_prime(complexity) > self.threshold

        budget = last_that_passes(passes, math.floor(self.bound.budget(**parameters) * cells))
        priced = largest_total if self.bound.log_tail is None else NO_LIMIT
        if self.free is None:
            return budget, priced, NO_LIMIT, *NOTHING, *NOTHING
        stage = self.free.stage(n_rows)
        declared, real = self._ranges(stage, unit_shift)
        return budget, priced, stage.n_queries, *declared, *real

    def _everything(self, unit_shift: int) -> int:
        """The sum of a row that errs everywhere."""
        return max(1, self._total >> UNIT_SHIFT - unit_shift)

    def _ranges(self, stage: Stage, unit_shift: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Up to and from which totals a row needs no signs: of declared losses, of real ones."""
        everything = self._everything(unit_shift)
        top, bottom = stage.low_mean.as_integer_ratio()
        lows = stage.low_count << unit_shift, top * everything // bottom
        declared, real = ((low, everything - low) if low >= 0 else NOTHING for low in lows)
        return declared, real


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


class Limits:
    """Lows and highs of the answers of one guard, in order; looked up where a count comes again."""

    def __init__(self, rule: HaltingRule) -> None:
        self._rule = rule
        self._has_counts = (
            rule.free is not None
            and rule.rounded is None
            and not rule.has_weights
            and rule.n_samples <= _MOST_LISTED
        )
        self._price = math.nan  # in nats, of a query: it only rises
        self._known = np.empty((2, 0))  # at this price, by the count

    def of(self, values: Any, numbers: Any, declared: Any) -> tuple[Any, Any]:
        """Return the limits that `HaltingRule.interval` gives."""
        rule, m = self._rule, self._rule.n_samples
        are_counts = self._has_counts and not isinstance(declared, np.ndarray) and declared
        if rule.free is None or not are_counts or not len(values):
            return rule.interval(values, numbers, declared)
        price, last = rule.free.nats(numbers[[0, -1]]).tolist()
        if price != last:
            return rule.interval(values, numbers, declared)
        if price != self._price:
            self._price, self._known = price, np.full((2, m + 1), np.nan)
        counts = np.rint(values * m).astype(np.intp)
        fresh = np.unique(counts[np.isnan(self._known[0, counts])])
        if len(fresh):
            same_price = np.full(len(fresh), numbers[0])
            self._known[:, fresh] = rule.interval(fresh / m, same_price, True)
        return self._known[0, counts], self._known[1, counts]
