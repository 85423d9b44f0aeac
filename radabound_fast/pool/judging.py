"""What a pool makes of predictions: rows of losses, their means, exact limits and tests."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import read_as
from radabound_fast._kernels.rows import (
    UNIT_SHIFT,
    PackedLosses,
    pack_rows,
    rows_in_units,
    sums_of_rows,
)
from radabound_fast.bounds import (
    betting_interval,
    betting_p_value,
    binomial_interval,
    paired_interval,
)
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.metrics import COUNTED, MEANS
from radabound_fast.pool.levels import sign_test
from radabound_fast.rows.packing import as_array, as_values, bits_of, checked_words

Array = NDArray[Any]
Floats = NDArray[np.float64]

_AT_ONCE = 512  # rows whose bits stay in the second cache


class Moments(NamedTuple):
    """What is kept of each row of losses, or of differences of losses.

    Attributes
    ----------
    means : ndarray of float64, shape (k,)
    squares : ndarray of float64, shape (k,)
        Sums of squared deviations from the mean.
    largest : ndarray of float64, shape (k,)
        Largest of these deviations.
    plus, minus : ndarray of int64, shape (k,)
        Rows with 1, and with -1; -1 in both where the values are real.
    """

    means: Floats
    squares: Floats
    largest: Floats
    plus: NDArray[np.int64]
    minus: NDArray[np.int64]

    @property
    def scales(self) -> Floats:
        """One over the root of the squares; 0 without spread."""
        spread = np.sqrt(self.squares)
        return np.divide(1.0, spread, out=np.zeros(len(spread)), where=spread > 0.0)

    def of(self, models: Any) -> Moments:
        """Return the moments of some of the models."""
        return Moments(*(column[models] for column in self))

    @classmethod
    def joined(cls, parts: list[Moments]) -> Moments:
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @classmethod
    def counted(cls, plus: Array, minus: Array, n_samples: int) -> Moments:
        """Make the moments of values that are 1, -1 or 0 so many times."""
        means = (plus - minus) / n_samples
        squares = plus + minus - means * (plus - minus)
        apart = [
            np.where(plus > 0, 1.0 - means, 0.0),
            np.where(plus + minus < n_samples, np.abs(means), 0.0),
            np.where(minus > 0, 1.0 + means, 0.0),
        ]
        return cls(means, squares, np.max(apart, axis=0), plus, minus)

    @classmethod
    def of_reals(cls, values: Array) -> Moments:
        """Make the moments of rows of multiples of 2**-24 in [-1, 1]."""
        exact = values.astype(np.float64)
        means = exact.sum(axis=1) / exact.shape[1]
        exact -= means[:, np.newaxis]
        squares, largest = np.einsum("ij,ij->i", exact, exact), np.abs(exact).max(axis=1)
        none = np.full(len(means), -1)
        return cls(means, np.where(largest > 2.0**-30, squares, 0.0), largest, none, none)


class Judge:
    """Losses of predictions, and the metric that they are losses of.

    Parameters
    ----------
    judged : Holdout or Losses
    baseline : array_like, optional
        Predictions, or losses, of a model that was fixed before any score was seen.

    Raises
    ------
    TypeError, ValueError
        The metric is no mean of losses, rows have weights or groups, or the baseline is no row.

    Attributes
    ----------
    intercept, slope : float
        The metric of a model is ``intercept + slope * mean``, its losses scaled to [0, 1].
    baseline : ndarray or None
        Its losses, packed or as float32.
    """

    def __init__(self, judged: Holdout | Losses, baseline: Any) -> None:
        self.judged, self.n_samples = judged, judged.n_samples
        if judged.weighting is not None:
            raise ValueError("sample_weight and groups must be left out of what a pool judges")
        self.metric, self.greater_is_better = judged.metric, judged.greater_is_better
        self.intercept, self.slope = 0.0, 1.0
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
        """Rows of losses: uint64 words where they are 0 or 1 by their type, else float32."""
        if self._truth is None:
            if isinstance(y_pred, PackedLosses):
                return np.atleast_2d(checked_words(y_pred, self.n_samples, ndim))
            array = as_array(y_pred, "losses")
            values = np.atleast_2d(as_values(array, self.n_samples, ndim))
            return pack_rows(values) if array.dtype.kind in "biu" else self._in_units(values)
        rows = self._truth.read(y_pred, ndim)
        if self.metric in COUNTED:
            return rows
        losses = self._truth.row.summary(self._truth, rows)
        span = self._truth.most - self._truth.least
        return self._in_units(np.clip((losses - self._truth.least) / span, 0.0, 1.0))

    def _in_units(self, values: Array) -> NDArray[np.float32]:
        units = rows_in_units(values)[:, : self.n_samples]
        return np.ldexp(units.astype(np.float32), -UNIT_SHIFT)

    # ---- what rows come to -----------------------------------------------------------------

    def moments(self, rows: Array) -> Moments:
        """Return the moments of rows of losses."""
        if rows.dtype == np.uint64:
            errors = sums_of_rows(rows, self.n_samples, packed=True)[0]
            return Moments.counted(errors, np.zeros_like(errors), self.n_samples)
        return Moments.of_reals(rows)

    def gains(self, rows: Array, base: Array) -> Moments:
        """Return the moments of how much less each row loses than a base row."""
        if rows.dtype == base.dtype == np.uint64:
            base_alone, alone = self._alone(rows, base)
            return Moments.counted(base_alone, alone, self.n_samples)
        return Moments.of_reals(self.reals(base[np.newaxis]) - self.reals(rows))

    def _alone(self, rows: Array, base: Array) -> tuple[Array, Array]:
        """How many errors the base row has alone beside each row, and each row beside it."""
        base_alone, alone = np.empty((2, len(rows)), np.int64)
        buffer = np.empty((min(_AT_ONCE, len(rows)), rows.shape[1]), np.uint64)
        of_base = int(sums_of_rows(base[np.newaxis], self.n_samples, packed=True)[0][0])
        for start in range(0, len(rows), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            both = np.bitwise_and(rows[part], base, out=buffer[: len(rows[part])])
            n_both = sums_of_rows(both, self.n_samples, packed=True)[0]
            base_alone[part] = of_base - n_both
            alone[part] = sums_of_rows(rows[part], self.n_samples, packed=True)[0] - n_both
        return base_alone, alone

    def reals(self, rows: Array) -> NDArray[np.float32]:
        """Rows of losses as float32, whatever they are."""
        if rows.dtype != np.uint64:
            return rows
        return bits_of(rows, self.n_samples).astype(np.float32)

    # ---- exact limits and tests -------------------------------------------------------------

    def limits(self, rows: Array, moments: Moments, nats: Floats) -> tuple[Floats, Floats]:
        """Limits of the expected loss of each row, at errors of exp(-nats) a side."""
        if rows.dtype == np.uint64:
            return self.limits_of_counts(moments.plus, nats)
        pairs = [betting_interval(row, one) for row, one in zip(rows, nats.tolist(), strict=True)]
        lows, highs = np.array(pairs, np.float64).reshape(-1, 2).T
        return np.minimum(lows, moments.means), np.maximum(highs, moments.means)

    def limits_of_counts(self, errors: NDArray[np.int64], nats: Floats) -> tuple[Floats, Floats]:
        """Limits of the expected loss, given so many errors each."""
        lows, highs = binomial_interval(errors, self.n_samples, nats)
        return np.asarray(lows), np.asarray(highs)

    def least_gains(self, rows: Array, gains: Moments, nats: Floats, base: Array) -> Floats:
        """Lower limits of the expected gain of each row over a base row."""
        if len(rows) == 0:
            return np.empty(0)
        if rows.dtype == base.dtype == np.uint64:
            lows, _ = paired_interval(gains.plus, gains.minus, self.n_samples, nats)
            return np.asarray(lows)
        pairs = zip(self._halves(rows, base), nats.tolist(), strict=True)
        lows = [betting_interval(row, one)[0] for row, one in pairs]
        return np.minimum(2.0 * np.array(lows) - 1.0, gains.means)

    def p_values(self, rows: Array, gains: Moments, base: Array, nats: float) -> Floats:
        """How surprising each row's gain over a base row is if it is none in the population.

        Of losses that are 0 or 1 by the exact sign test, of real-valued ones by betting, with bets
        that are best for exp(-nats).
        """
        if rows.dtype == base.dtype == np.uint64:
            return np.asarray(sign_test(gains.plus, gains.minus))
        return np.array([betting_p_value(row, 0.5, nats) for row in self._halves(rows, base)])

    def p_values_of_losses(self, rows: Array, gains: Moments, base: Array, nats: float) -> Floats:
        """How surprising the base row's gain over each row is, as `p_values`."""
        if rows.dtype == base.dtype == np.uint64:
            return np.asarray(sign_test(gains.minus, gains.plus))
        return np.array([betting_p_value(1 - row, 0.5, nats) for row in self._halves(rows, base)])

    def _halves(self, rows: Array, base: Array) -> Floats:
        """Gains of each sample as losses in [0, 1]: a half is none."""
        return np.asarray(0.5 + (self.reals(base[np.newaxis]) - self.reals(rows)) / 2.0, np.float64)

    def metric_of(self, means: Any) -> Any:
        """The metric of models with these mean losses."""
        return self.intercept + self.slope * means
