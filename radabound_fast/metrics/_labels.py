"""The labels of a holdout as a metric wants them, and the options that depend on them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds
from radabound_fast._checks import check_real, counted, shown
from radabound_fast._kernels.rows import pack_rows
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.named import by_class, class_order, row_names
from radabound_fast.rows.packing import as_array, as_numbers

from ._choices import AbsoluteError, BrierScore, Cost, LogLoss, MetricChoice, SquaredError

Array = NDArray[Any]

# probabilities of a row may add up to 1 within this: they are often float32
SUM_TOLERANCE = 1e-4
NO_DEFAULT = "the classes are not 0 and 1, nor -1 and 1"
_SEED = 5904711382201936  # which nobody has drawn labels or scores with
_PAIRS_AT_ONCE = 2**18  # compared, which stay in the cache


class MetricLabels:
    """The labels of a holdout as its metric wants them.

    `takes` and `needs` are those of the metric's row; `is_mean`: it is a mean over all rows.
    TypeError, ValueError: labels that the metric cannot judge by, or options that do not fit them.
    """

    def __init__(
        self, labels: Labels, metric: MetricChoice, takes: str, needs: str, is_mean: bool
    ) -> None:
        self.labels, self.n_samples = labels, labels.n_samples
        self.n_classes, self._codes = len(labels.classes), labels.codes
        # where the positive class is, the second unless the metric has another
        self.positive, self.has_positive = self._codes == 1, False
        self.sizes: tuple[int, ...] = (self.n_samples,)  # of the classes told apart
        self.masks: list[Array] = []  # of all of them but the last, whose errors are the rest
        self.options: dict[str, Any] = {}  # JSON values, and pos_label as a place
        self.least, self.most = 0.0, 1.0  # of a loss of one row, or of the metric
        if needs == "numbers":
            if not labels.are_numbers:
                raise TypeError(f"y_true must be numbers with metric={metric.name!r}")
        else:
            if needs in ("two classes", "both classes") and self.n_classes != 2:
                raise ValueError(
                    f"metric={metric.name!r} needs two classes, got "
                    f"{counted(self.n_classes, 'class', 'classes')}"
                )
            order = self._set_positive(metric, takes)
            self._set_sizes(metric, order, needs, is_mean)
        if isinstance(metric, LogLoss):
            self._set_clip(metric.clip)
        elif isinstance(metric, Cost):
            self._set_costs(metric.costs)
        elif isinstance(metric, (AbsoluteError, SquaredError)):
            self._set_range(metric.y_range, squared=isinstance(metric, SquaredError))
        elif isinstance(metric, BrierScore) and self.n_classes > 2:
            self.most = 1.0 + (1.0 + SUM_TOLERANCE) ** 2

    @cached_property
    def blocks(self) -> Blocks | None:
        """Blocks of rows of both classes, on which AUC bets; None where its pairs are narrower."""
        return Blocks.of(self.positive)

    def true_probabilities(self, rows: Array) -> Array:
        """What each row of predictions gives the label of each sample."""
        if rows.ndim == 2:
            return np.where(self.positive, rows, 1.0 - rows)
        return np.take_along_axis(rows, self._codes[None, :, None].astype(np.intp), axis=2)[..., 0]

    def _set_positive(self, metric: MetricChoice, takes: str) -> list[int]:
        """The classes in order, the positive one last if there is one."""
        classes, pos_label = self.labels.classes, metric.options.get("pos_label")
        if self.n_classes != 2 or not hasattr(metric, "pos_label"):
            if pos_label is not None:
                raise ValueError(f"pos_label must be left out with {self.n_classes} classes")
            return list(range(self.n_classes))
        if pos_label is not None:
            if not isinstance(pos_label, Hashable) or pos_label not in classes:
                raise ValueError(
                    f"pos_label must be one of the classes {classes!r:.200}, got {shown(pos_label)}"
                )
            place = classes.index(pos_label)
        elif classes in ([0, 1], [-1, 1]):  # where scikit-learn's functions agree what it is
            place = 1
        elif takes == "probabilities":  # which may be of both classes
            return [0, 1]
        else:
            raise ValueError(f"pos_label must be given with metric={metric.name!r}: {NO_DEFAULT}")
        self.options["pos_label"] = place
        self.positive, self.has_positive = self._codes == place, True
        return [1 - place, place]

    def _set_sizes(self, metric: MetricChoice, order: list[int], needs: str, is_mean: bool) -> None:
        counts = np.bincount(self._codes, minlength=self.n_classes)
        if needs in ("both classes", "every class") and not counts.all():
            raise ValueError(
                f"y_true must hold {needs} with metric={metric.name!r}, got no row of "
                f"{counted(int((counts == 0).sum()), 'class', 'classes')}"
            )
        if not is_mean:
            self.sizes = tuple(counts[order].tolist())
            self.masks = [pack_rows(self._codes == code) for code in order[:-1]]

    def _set_clip(self, clip: Any) -> None:
        self.clip = check_real(clip=clip)
        if not 0.0 < self.clip < 0.5:
            raise ValueError(f"clip must be in (0, 0.5), got {shown(clip)}")
        self.options["clip"], self.most = self.clip, -math.log(self.clip)

    def _set_range(self, y_range: Any, *, squared: bool) -> None:
        try:
            low, high = y_range
        except (TypeError, ValueError):
            raise TypeError(f"y_range must be (low, high), got {shown(y_range)}") from None
        low, high = check_real(y_range=low), check_real(y_range=high)
        if not low < high:
            raise ValueError(f"y_range must be (low, high) with low < high, got {y_range!r}")
        self.most = (high - low) * (high - low) if squared else high - low
        if not 0.0 < self.most < math.inf:
            raise ValueError(
                f"y_range must make the largest error a positive finite float, got {y_range!r}"
            )
        classes = self.labels.classes
        if not low <= classes[0] <= classes[-1] <= high:
            raise ValueError(f"y_true must lie in y_range = [{low!r}, {high!r}], one does not")
        self.low, self.high = low, high
        self.numbers = np.array(classes, np.float64)[self._codes]
        self.options["y_range"] = [low, high]

    def _set_costs(self, costs: Any) -> None:
        classes, names = self.labels.classes, row_names(costs)
        table = as_numbers(as_array(by_class(costs, classes, "costs"), "costs"), "costs")
        shape = (self.n_classes, self.n_classes)
        if table.shape != shape:
            raise ValueError(f"costs must have shape {shape}, by classes, got {table.shape}")
        order = None if names is None else class_order(list(names), classes, "costs")
        self.costs = (table if order is None else table[order]).astype(np.float64)
        if not np.isfinite(self.costs).all():
            raise ValueError("costs must be finite, got one that is not")
        self.least, self.most = float(self.costs.min()), float(self.costs.max())
        if self.least == self.most:
            raise ValueError(f"costs must differ, got {self.least!r} everywhere")
        if not math.isfinite(self.most - self.least):
            raise ValueError(
                f"costs must have differences that are finite, got {self.least!r} and {self.most!r}"
            )
        self.options["costs"] = self.costs.tolist()


class Blocks(NamedTuple):
    """Rows of both classes, a line each block."""

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]

    @classmethod
    def of(cls, is_positive: NDArray[np.bool_]) -> Blocks | None:
        """The blocks that `bounds.auc_blocks` asks for, by a permutation of the rows.

        Files are often sorted, and so each class is taken in the order of the 64-bit numbers of
        PCG64 with a fixed seed, of which NumPy guarantees that they stay the same.
        """
        n_positive = int(is_positive.sum())
        n_negative = len(is_positive) - n_positive
        size = bounds.auc_blocks(n_negative, n_positive)
        if not size:
            return None
        order = np.argsort(np.random.PCG64(_SEED).random_raw(len(is_positive)), kind="stable")
        rarer, other = order[is_positive[order]], order[~is_positive[order]]
        if n_negative < n_positive:
            rarer, other = other, rarer
        n_blocks, wide = len(rarer) // size, size * (len(other) // len(rarer))
        rare = rarer[: n_blocks * size].reshape(n_blocks, size)
        common = other[: n_blocks * wide].reshape(n_blocks, wide)
        return cls(common, rare) if n_negative < n_positive else cls(rare, common)

    def areas(self, scores: Array) -> NDArray[np.float64]:
        """The area under the curve in each block."""
        n_pairs = self.positive.shape[1] * self.negative.shape[1]
        twice = np.empty(len(self.positive))
        step = max(1, _PAIRS_AT_ONCE // n_pairs)
        for start in range(0, len(twice), step):
            some = slice(start, start + step)
            high, low = scores[self.positive[some], None], scores[self.negative[some]][:, None, :]
            wins = np.count_nonzero(high > low, axis=(1, 2))
            twice[some] = wins + np.count_nonzero(high >= low, axis=(1, 2))
        return np.asarray(twice / (2 * n_pairs))
