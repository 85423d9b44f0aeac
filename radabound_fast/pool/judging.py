"""What a pool makes of predictions: rows of losses, their means, exact limits and tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import read_as
from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast.bounds import (
    betting_interval,
    betting_p_value,
    binomial_interval,
    paired_interval,
)
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.metrics import COUNTED, MEANS
from radabound_fast.pool.exact import sign_test
from radabound_fast.rows.moments import Moments, as_reals, in_units
from radabound_fast.rows.packing import as_array, as_values, checked_words

Array = NDArray[Any]
Floats = NDArray[np.float64]

_GROUPED_AT_ONCE = 1 << 20  # losses


class Judge:
    """Losses of predictions, and the metric that they are losses of.

    Of `n_rows` held-out rows, or groups of them, `n_units` are independent.  The metric of a model
    is ``intercept + slope * mean``, its losses scaled to [0, 1].  `baseline` has losses, packed or
    as float32, or is None.
    """

    def __init__(self, judged: Holdout | Losses, baseline: Any) -> None:
        self.n_rows = self.n_units = judged.n_samples
        self._weighting = judged.weighting
        if self._weighting is not None:
            self.n_units = self._weighting.n_groups
            least, most = self._weighting.of_groups[[0, -1]]
            if most - least > 1e-9 * most:
                raise ValueError(
                    "sample_weight and groups must give every group the same weight in a pool, "
                    f"whose exact limits and tests take equal ones, got {least:g} and {most:g}: "
                    "with sample_weight = 1 / (rows of the group) all count alike"
                )
        self.metric, self.intercept, self.slope = judged.metric, 0.0, 1.0
        self._truth = judged.truth if isinstance(judged, Holdout) else None
        if self._truth is not None:
            if self.metric not in MEANS:
                raise ValueError(
                    f"metric must be a mean of losses in a pool, {', '.join(MEANS)}, got "
                    f"{self.metric!r}"
                )
            least, span = self._truth.least, self._truth.most - self._truth.least
            self.intercept, self.slope = least, span
            if self.metric == "accuracy":
                self.intercept, self.slope = 1.0, -1.0
            elif self.metric.startswith("neg_"):
                self.intercept, self.slope = -least, -span
        self.baseline: Array | None = None
        if baseline is not None:
            with read_as(y_pred="baseline", losses="baseline"):
                (self.baseline,) = self.losses(baseline, 1)

    def losses(self, y_pred: Any, ndim: int = 2) -> Array:
        """Rows of losses: uint64 words where they are 0 or 1 by their type, else float32.

        Where rows belong to groups: their mean losses, as float32.
        """
        rows = self._losses_of_rows(y_pred, ndim)
        if self._weighting is None:
            return rows
        step = max(1, _GROUPED_AT_ONCE // self.n_rows)
        parts = [
            self._weighting.group_means(as_reals(rows[start : start + step], self.n_rows))
            for start in range(0, max(len(rows), 1), step)
        ]
        return in_units(np.concatenate(parts))

    def _losses_of_rows(self, y_pred: Any, ndim: int) -> Array:
        if self._truth is None:
            if isinstance(y_pred, PackedLosses):
                return np.atleast_2d(checked_words(y_pred, self.n_rows, ndim))
            array = as_array(y_pred, "losses")
            values = np.atleast_2d(as_values(array, self.n_rows, ndim))
            return pack_rows(values) if array.dtype.kind in "biu" else in_units(values)
        rows = self._truth.read(y_pred, ndim)
        if self.metric in COUNTED:
            return rows
        losses = self._truth.row.summary(self._truth, rows)
        span = self._truth.most - self._truth.least
        return in_units(np.clip((losses - self._truth.least) / span, 0.0, 1.0))

    # ---- exact limits and tests -------------------------------------------------------------

    def limits(self, rows: Array, moments: Moments, nats: Floats) -> tuple[Floats, Floats]:
        """Limits of the expected loss of real-valued rows, at errors of exp(-nats) a side."""
        pairs = [betting_interval(row, one) for row, one in zip(rows, nats.tolist(), strict=True)]
        lows, highs = np.array(pairs, np.float64).reshape(-1, 2).T
        return np.minimum(lows, moments.means), np.maximum(highs, moments.means)

    def limits_of_counts(self, errors: NDArray[np.int64], nats: Floats) -> tuple[Any, Any]:
        """Limits of the expected loss, given so many errors each."""
        return binomial_interval(errors, self.n_units, nats)

    def least_gains(self, rows: Array, gains: Moments, nats: Floats) -> Floats:
        """Lower limits of the gain over the baseline; of counted gains without their rows."""
        if gains.are_counts.all():
            return np.asarray(paired_interval(gains.plus, gains.minus, self.n_units, nats)[0])
        assert self.baseline is not None
        pairs = zip(self._halves(rows, self.baseline), nats.tolist(), strict=True)
        lows = [betting_interval(row, one)[0] for row, one in pairs]
        return np.minimum(2.0 * np.array(lows) - 1.0, gains.means)

    def p_values(
        self, rows: Array, gains: Moments, base: Array, nats: float, *, of_losses: bool = False
    ) -> Floats:
        """How surprising each row's gain over a base row is if it is none in the population.

        Of losses that are 0 or 1 by the exact sign test, of real-valued ones by betting, with bets
        that are best for exp(-nats).  With `of_losses` how surprising the base row's gain over each
        row is.
        """
        if gains.are_counts.all():
            counts = (gains.minus, gains.plus) if of_losses else (gains.plus, gains.minus)
            return np.asarray(sign_test(*counts))
        halves = self._halves(rows, base)
        halves = 1.0 - halves if of_losses else halves
        return np.array([betting_p_value(row, 0.5, nats) for row in halves])

    def _halves(self, rows: Array, base: Array) -> Floats:
        """Gains of each sample as losses in [0, 1]: a half is none."""
        gains = as_reals(base[np.newaxis], self.n_units) - as_reals(rows, self.n_units)
        return np.asarray(0.5 + gains / 2.0, np.float64)

    def metric_of(self, means: Any) -> Any:
        """The metric of models with these mean losses."""
        return self.intercept + self.slope * means
