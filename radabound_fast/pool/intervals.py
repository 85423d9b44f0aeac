"""Simultaneous intervals of a pool: exact limits at the bootstrap's level and at Bonferroni's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds.bootstrap import two_sided_level
from radabound_fast.pool.judging import Judge
from radabound_fast.pool.results import PoolIntervals
from radabound_fast.rows.moments import Moments
from radabound_fast.rows.studentised import StudentisedExtremes

Array = NDArray[Any]


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
            limits[:, counted] = judge.limits_of_counts(moments.plus[counted], nats[counted])

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
