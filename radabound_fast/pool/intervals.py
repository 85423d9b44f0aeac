"""Simultaneous intervals of a pool: exact limits at the bootstrap's level and at Bonferroni's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds.bootstrap import two_sided_level
from radabound_fast.pool.judging import Judge
from radabound_fast.rows.moments import Moments
from radabound_fast.rows.studentised import StudentisedExtremes

Array = NDArray[Any]
Floats = NDArray[np.float64]


class Intervals:
    """Limits of the expected loss of every model: from counts, or of real rows as they go by.

    Parameters
    ----------
    judge : Judge
    extremes : StudentisedExtremes
        Of all models that the bootstrap speaks for.
    moments : Moments
        Of the models' losses.
    delta : float
        The error of all intervals together.

    Attributes
    ----------
    enough : ndarray of bool, shape (k,)
        The models that the bootstrap speaks for.
    level : float
        The bootstrap's level: the error of one model's interval, both sides together.
    as_if : float
        As many independent models would have that level by Bonferroni.
    """

    def __init__(
        self, judge: Judge, extremes: StudentisedExtremes, moments: Moments, delta: float
    ) -> None:
        self._judge, self._moments = judge, moments
        k, self.enough = len(moments.means), moments.enough(judge.n_units)
        n, share = int(self.enough.sum()), delta * float(self.enough.mean())
        self.level, self.as_if = delta / k, float(k)
        if n:
            self.level = two_sided_level(extremes, share, n)
            self.as_if = share / self.level
        bonferroni = np.full(k, math.log(2.0 * k / delta))
        self._nats = np.where(self.enough, math.log(2.0 / self.level), bonferroni), bonferroni
        self._limits = np.empty((2, 2, k))

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

    def outcome(self) -> Floats:
        """Limits of the metric, shape (2, 2, k): the bootstrap's and Bonferroni's; call it last."""
        counted = self._moments.are_counts
        errors = self._moments.plus[counted]
        for nats, limits in zip(self._nats, self._limits, strict=True):
            limits[:, counted] = self._judge.limits_of_counts(errors, nats[counted])
        return np.sort(self._judge.metric_of(self._limits), axis=1)
