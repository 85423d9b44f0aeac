"""Limits of all models at the bootstrap's level, and which are better than the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds import binomial_interval
from radabound_fast.bounds.bootstrap import one_sided_level, two_sided_level
from radabound_fast.pool.judging import Judge
from radabound_fast.pool.results import BetterModels, PoolIntervals
from radabound_fast.rows.moments import Moments
from radabound_fast.rows.studentised import StudentisedExtremes, StudentisedSums

Array = NDArray[Any]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Intervals:
    """Limits of every model: from counts at once, of real-valued losses as their rows go by.

    `extremes` are those of the losses of all models that the bootstrap speaks for.
    """

    def __init__(
        self, judge: Judge, extremes: StudentisedExtremes, moments: Moments, delta: float
    ) -> None:
        self._judge, self._moments = judge, moments
        k, self._enough = len(moments.means), moments.enough(judge.n_units)
        n, share = int(self._enough.sum()), delta * float(self._enough.mean())
        self._level, self._as_if = delta / k, float(k)
        if n:
            self._level = two_sided_level(extremes, share, n)
            self._as_if = share / self._level
        bonferroni = np.full(k, math.log(2.0 * k / delta))
        self._nats = np.where(self._enough, math.log(2.0 / self._level), bonferroni), bonferroni
        self._limits = np.empty((2, 2, k))  # of expected losses: the bootstrap's and Bonferroni's
        counted = moments.are_counts
        for nats, limits in zip(self._nats, self._limits, strict=True):
            errors = moments.plus[counted]
            limits[:, counted] = binomial_interval(errors, judge.n_units, nats[counted])

    @property
    def is_open(self) -> bool:
        """Whether rows are needed: some losses are real."""
        return not self._moments.are_counts.all()

    def take(self, first: int, rows: Array) -> None:
        """Take in rows of the pool, numbered from `first` on."""
        if rows.dtype != np.uint64:
            part = slice(first, first + len(rows))
            for nats, limits in zip(self._nats, self._limits, strict=True):
                limits[:, part] = self._judge.limits(rows, self._moments.of(part), nats[part])

    def result(self, names: Sequence[Any]) -> PoolIntervals:
        """What holds of the models with these names, after all rows."""
        (lows, highs), proved = np.sort(self._judge.metric_of(self._limits), axis=1)
        return PoolIntervals(
            names=names,
            values=np.asarray(self._judge.metric_of(self._moments.means)),
            lows=lows,
            highs=highs,
            bonferroni_lows=proved[0],
            bonferroni_highs=proved[1],
            by_bootstrap=self._enough,
            level=self._level,
            as_if=self._as_if,
        )


class StepDown:
    """The step-down among the models that the bootstrap speaks for, and Holm's among the others.

    Models that no step can find go by once; of the others the rows stay at hand.  `extremes` and
    `none_yet` are beside the baseline: of all models that the bootstrap speaks for, and of no rows.
    """

    def __init__(
        self,
        judge: Judge,
        sums: StudentisedSums,
        extremes: StudentisedExtremes,
        none_yet: StudentisedExtremes,
        gains: Moments,
        p_values: Floats,
        delta: float,
    ) -> None:
        self._judge, self._sums, self._rest, self._delta = judge, sums, none_yet, delta
        self._gains, self._p_values = gains, p_values
        k, self._enough = len(p_values), gains.enough(judge.n_units)
        n, self._share = int(self._enough.sum()), delta * float(self._enough.mean())
        self._level, self._as_if = delta / k, float(k)
        if n:
            self._level = one_sided_level(-extremes.lowest, self._share, n)
            self._as_if = self._share / self._level
        self._first = self._enough & (p_values <= self._level)
        self._may_be = p_values <= delta  # nothing above is found by any step
        self._nats = np.where(self._enough, -math.log(self._level), math.log(k / delta))
        self._lows = np.full(k, np.nan)
        self._at_hand: list[tuple[NDArray[np.int64], Array]] = []

    @property
    def is_open(self) -> bool:
        """Whether rows are needed: for limits of real-valued losses, and for further steps."""
        return bool(self._first.any() or (self._may_be & ~self._gains.are_counts).any())

    def take(self, first: int, rows: Array) -> None:
        """Take in rows of the pool, numbered from `first` on."""
        numbers = np.arange(first, first + len(rows))
        may_be = self._may_be[numbers]
        is_real = may_be & ~self._gains.are_counts[numbers]
        if is_real.any():
            self._lows[numbers[is_real]] = self._least(rows[is_real], numbers[is_real])
        left = self._enough[numbers] & ~self._first[numbers]
        self._widen(self._rest, numbers[left & ~may_be], rows[left & ~may_be])
        if (left & may_be).any():
            self._at_hand.append((numbers[left & may_be], rows[left & may_be]))

    def result(self, names: Sequence[Any]) -> BetterModels:
        """What holds of the models with these names, after all rows."""
        is_better, span = self._all_steps(), abs(self._judge.slope)
        counted = np.flatnonzero(is_better & self._gains.are_counts)
        self._lows[counted] = self._least(np.empty((len(counted), 0), np.uint64), counted)
        return BetterModels(
            names=names,
            gains=span * self._gains.means,
            gain_lows=span * np.where(is_better, self._lows, np.nan),
            is_better=is_better,
            bonferroni_is_better=holm(self._p_values, self._delta),
            level=self._level,
            as_if=self._as_if,
        )

    def _all_steps(self) -> Mask:
        is_better = self._first.copy()
        while is_better.any() and (left := self._enough & ~is_better).any():
            extremes = self._rest.copy()
            for numbers, rows in self._at_hand:
                self._widen(extremes, numbers[left[numbers]], rows[left[numbers]])
            level = one_sided_level(-extremes.lowest, self._share, int(left.sum()))
            new = left & (self._p_values <= level)
            if not new.any():
                break
            is_better |= new
        few = ~self._enough
        is_better[few] = holm(self._p_values[few], self._delta * float(few.mean()))
        return is_better

    def _least(self, rows: Array, numbers: NDArray[np.int64]) -> Floats:
        return self._judge.least_gains(rows, self._gains.of(numbers), self._nats[numbers])

    def _widen(
        self, extremes: StudentisedExtremes, numbers: NDArray[np.int64], rows: Array
    ) -> None:
        # T is of the model's loss less the baseline's
        gains = self._gains.of(numbers)
        self._sums.update(rows, [(extremes, -gains.means, gains.scales)])


def holm(p_values: Floats, delta: float) -> Mask:
    """Holm's step-down: which claims are rejected, with a familywise error of delta, proved.

    Holm (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
    Statistics 6.
    """
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    passes = p_values[order] <= delta / np.arange(n, 0, -1)
    rejected = np.zeros(n, np.bool_)
    rejected[order[np.logical_and.accumulate(passes)]] = True
    return rejected
