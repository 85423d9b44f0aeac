"""What a pool makes of predictions: rows of losses, read again if need be, limits and tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds
from radabound_fast._checks import read_as, shown
from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.metrics import COUNTED, MEANS
from radabound_fast.rows.moments import Moments, as_reals, in_units
from radabound_fast.rows.packing import as_array, as_values, checked_words

Array = NDArray[Any]
Floats = NDArray[np.float64]

Blocks = Callable[[], Iterable[Any]]  # array_likes or PackedLosses, the same ones each time

_GROUPED_AT_ONCE = 1 << 20  # losses
_BLOCK_BYTES = 32 << 20  # of predictions that become losses at a time


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

    def limits(self, rows: Array, moments: Moments, nats: Floats) -> tuple[Floats, Floats]:
        """Limits of the expected loss of real-valued rows, at errors of exp(-nats) a side."""
        pairs = [
            bounds.betting_interval(row, one) for row, one in zip(rows, nats.tolist(), strict=True)
        ]
        lows, highs = np.array(pairs, np.float64).reshape(-1, 2).T
        return np.minimum(lows, moments.means), np.maximum(highs, moments.means)

    def least_gains(self, rows: Array, gains: Moments, nats: Floats) -> Floats:
        """Lower limits of the gain over the baseline; of counted gains without their rows."""
        if gains.are_counts.all():
            return np.asarray(
                bounds.paired_interval(gains.plus, gains.minus, self.n_units, nats)[0]
            )
        assert self.baseline is not None
        pairs = zip(self._halves(rows, self.baseline), nats.tolist(), strict=True)
        lows = [bounds.betting_interval(row, one)[0] for row, one in pairs]
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
        return np.array([bounds.betting_p_value(row, 0.5, nats) for row in halves])

    def _halves(self, rows: Array, base: Array) -> Floats:
        """Gains of each sample as losses in [0, 1]: a half is none."""
        gains = as_reals(base[np.newaxis], self.n_units) - as_reals(rows, self.n_units)
        return np.asarray(0.5 + gains / 2.0, np.float64)

    def metric_of(self, means: Any) -> Any:
        """The metric of models with these mean losses."""
        return self.intercept + self.slope * means


def sign_test(n_plus: Any, n_minus: Any) -> Any:
    """McNemar's exact test: how likely n_plus or more of the discordant rows are, if half are.

    n_plus are rows where only the first of two models errs, n_minus those where only the second
    does; numbers or arrays.  Given their sum N it is ``P(Bin(N, 1/2) >= n_plus)``, exact at every
    m for the claim that the second model errs no less often than the first; 1 where n_plus is 0.

    McNemar (1947). Note on the sampling error of the difference between correlated proportions or
    percentages. Psychometrika 12.
    """
    from scipy.special import betainc

    plus, minus = np.asarray(n_plus, np.float64), np.asarray(n_minus, np.float64)
    tail = betainc(np.maximum(plus, 1.0), minus + 1.0, 0.5)
    return np.where(plus > 0.0, np.minimum(tail * (1.0 + 1e-9), 1.0), 1.0)


class Part:
    """The rows of losses of one call of `ModelPool.add`, made anew each time they are read."""

    def __init__(self, judge: Judge, blocks: Blocks) -> None:
        self._judge, self._blocks = judge, blocks

    def __iter__(self) -> Iterator[Array]:
        first, blocks = 0, self._blocks()
        if not np.iterable(blocks):
            raise TypeError(f"Y_pred must return blocks of rows, got {shown(blocks)}")
        for block in blocks:
            for piece in _pieces(block):
                try:
                    with read_as(y_pred="Y_pred"):
                        rows = self._judge.losses(piece)
                except (TypeError, ValueError) as error:
                    if first:
                        error.args = (f"{error} (counting rows from row {first:,} on)",)
                    raise
                yield rows
                first += len(rows)


def _pieces(block: Any) -> Iterator[Any]:
    """A block itself, or where it is an array, parts of it."""
    array = block.words if isinstance(block, PackedLosses) else block
    if not isinstance(array, np.ndarray) or array.ndim < 2 or len(array) == 0:
        yield block
        return
    step = max(1, _BLOCK_BYTES * len(array) // max(array.nbytes, 1))
    for start in range(0, len(array), step):
        yield block[start : start + step]


def is_mapped(array: Any) -> bool:
    """Whether an array lies in a memory map."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
