"""The models of a pool that may be its best: kept with their rows while the others go by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.pool.judging import Judge
from radabound_fast.rows.moments import Moments, moments_of, moments_of_gains

Array = NDArray[Any]

NO_POOL_HAS = 1e12  # so many models: what is left out here is out by Bonferroni's level in any pool
FRONT_BYTES = 1 << 28  # of rows that are kept at most


class Front:
    """Models that are not proved worse than the best one so far, whatever else is in the pool."""

    def __init__(self, judge: Judge, delta: float) -> None:
        self._judge, self._nats = judge, math.log(NO_POOL_HAS / delta)
        # the first model with the lowest mean loss, and its losses
        self.best, self.mean = -1, math.inf
        self.row: Array = np.empty(0)
        # numbers and rows of the models, the best among them
        self.parts: list[tuple[NDArray[np.int64], Array]] = []
        # for want of room models with this mean loss, or more, are not among them
        self.capped = math.inf
        self._bytes_when_pruned = 0

    def copy(self) -> Front:
        other = Front.__new__(Front)
        vars(other).update(vars(self), parts=list(self.parts))
        return other

    def add(self, rows: Array, moments: Moments, first: int) -> None:
        """Take in rows, numbered from `first` on."""
        best = int(moments.means.argmin())
        if moments.means[best] < self.mean:
            self.best, self.mean = first + best, float(moments.means[best])
            self.row = rows[best].copy()
        may_be = self._may_be_best(rows) & (moments.means < self.capped)
        if may_be.any():
            self.parts.append((first + np.flatnonzero(may_be), rows[may_be].copy()))
        if self._n_bytes > 2 * self._bytes_when_pruned + (1 << 20):
            self.prune()

    def prune(self) -> None:
        """Leave out what is worse than the best one by now, and the worst of what is too much."""
        parts = []
        for numbers, rows in self.parts:
            may_be = self._may_be_best(rows)
            if may_be.any():
                parts.append((numbers[may_be], rows[may_be]))
        self.parts = parts
        if self._n_bytes > FRONT_BYTES:
            means = [moments_of(rows, self._judge.n_units).means for _, rows in parts]
            room = int(np.concatenate(means).size * FRONT_BYTES / self._n_bytes)
            self.capped = float(np.partition(np.concatenate(means), room)[room])
            self.parts = [
                (numbers[mean < self.capped], rows[mean < self.capped])
                for (numbers, rows), mean in zip(parts, means, strict=True)
            ]
        self._bytes_when_pruned = self._n_bytes

    def best_rows(self, n: int) -> list[Array]:
        """Rows of about n models with the lowest mean losses, by kinds of rows."""
        means = [moments_of(rows, self._judge.n_units).means for _, rows in self.parts]
        if not means:
            return []
        lowest = np.sort(np.concatenate(means))[:n]
        return [
            rows[mean <= lowest[-1]][:n] for (_, rows), mean in zip(self.parts, means, strict=True)
        ]

    @property
    def _n_bytes(self) -> int:
        return sum(rows.nbytes for _, rows in self.parts)

    def _may_be_best(self, rows: Array) -> NDArray[np.bool_]:
        """Whether Hoeffding's bound leaves it open that a row is the best model's.

        Of N rows on which two models disagree one is right on n and the other on N - n; the sign
        test's p-value is at most ``exp(-(2 n - N)^2 / (2 N))``.
        """
        m = self._judge.n_units
        gains = moments_of_gains(rows, self.row, m)
        spread = gains.plus + gains.minus if rows.dtype == self.row.dtype == np.uint64 else m
        return np.asarray((m * gains.means) ** 2 <= 2.0 * spread * self._nats)
