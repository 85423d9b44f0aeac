"""The labels of a holdout as a metric wants them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_real, counted, read_as, shown
from radabound_fast._kernels.rows import (
    PackedLosses,
    fingerprints,
    fingerprints_and_sums,
    pack_rows,
    sums_of_rows,
)
from radabound_fast.bounds import asymptotic_mean_interval, weighted_interval
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.named import by_class, class_order, row_names
from radabound_fast.rows.packing import as_array, as_numbers, bits_of
from radabound_fast.rows.signs import WORD_BITS
from radabound_fast.rows.weighting import Weighting

from ._choices import AbsoluteError, Cost, LogLoss, MetricChoice, SquaredError
from ._classes import around, errors
from ._losses import mean_gain
from ._measure import Measure, ends_of
from ._predictions import NO_DEFAULT, SUM_TOLERANCE
from ._scores import Blocks
from ._table import COUNTED, FOLDED, MEANS, METRICS

Array = NDArray[Any]


class Truth:
    """The labels of a holdout as its metric wants them, and how its rows count.

    TypeError, ValueError: labels that the metric cannot judge by, or options that do not fit them.
    """

    def __init__(
        self, labels: Labels, metric: MetricChoice, weighting: Weighting | None = None
    ) -> None:
        self.labels, self.n_samples = labels, labels.n_samples
        self.masks: list[Array] = []
        row = self.row = METRICS[metric.name]
        self.n_classes = len(labels.classes)
        self.options: dict[str, Any] = {}
        self.least, self.most = 0.0, 1.0
        self._codes = labels.codes
        self.positive, self.has_positive = self._codes == 1, False
        self._check_labels(metric)
        if isinstance(metric, LogLoss):
            self._set_clip(metric.clip)
        elif isinstance(metric, Cost):
            self._set_costs(metric.costs)
        elif isinstance(metric, (AbsoluteError, SquaredError)):
            self._set_range(metric.y_range)
        if row.name == "neg_brier_score" and self.n_classes > 2:
            self.most = 1.0 + (1.0 + SUM_TOLERANCE) ** 2
        self.baseline: Array | None = None
        self.n_folds: int | None = None
        self.weighting = weighting
        if weighting is not None:
            self._check_weighting()

    def beside(self, baseline: Any, n_folds: int | None) -> Truth:
        """Return these labels for a search with a baseline, or with cross-validated predictions.

        `baseline` are predictions, shape (n_samples,), of a model that was fixed before any score
        was seen.  TypeError, ValueError: the metric has no such gains or no such intervals, or they
        are not predictions.
        """
        if baseline is None and n_folds is None:
            return self
        other = copy(self)
        other.n_folds = n_folds
        if n_folds is not None:
            other._check_folds()
        if baseline is not None:
            if n_folds is not None:
                raise ValueError("baseline must be left out in a search with n_folds")
            if self.weighting is not None:
                raise ValueError("baseline must be left out beside sample_weight or groups")
            other.baseline = other._baseline(baseline)
        return other

    def part(self, start: int, stop: int) -> Truth:
        """Return these labels at some samples, for counting errors there; start: whole words."""
        part, words = copy(self), slice(start // WORD_BITS, -(-stop // WORD_BITS))
        part.n_samples, part.labels = stop - start, self.labels[start:stop]
        part.masks = [mask[words] for mask in self.masks]
        if self.baseline is not None:
            part.baseline = self.baseline[:, words]
        return part

    def read(self, y_pred: Any, ndim: int) -> Array:
        """Rows of predictions, checked."""
        if isinstance(y_pred, PackedLosses) and self.row.keeps != "errors":
            raise TypeError(
                f"y_pred must be {self.row.takes} for the metric {self.row.name!r}, got "
                f"{y_pred!r}: packed losses say which predictions are wrong, and this metric needs "
                "more"
            )
        return self.row.read(self, y_pred, ndim)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value of the metric."""
        return ends_of(self.row.name, self.least, self.most)

    @cached_property
    def blocks(self) -> Blocks | None:
        """Blocks of rows of both classes, on which AUC bets; None where its pairs are narrower."""
        return Blocks.of(self.positive)

    def measure(self, secret: bytes) -> Measure:
        """What of this may leave it."""
        baseline = None
        if self.baseline is not None:
            counted = self.row.name in COUNTED
            total = int(errors(self, self.baseline)[0, 0]) if counted else 0
            baseline = total, int(fingerprints_of(self.baseline, secret)[0])
        options = tuple(sorted(self.options.items()))
        weighting = None if self.weighting is None else self.weighting.fingerprint(secret)
        return Measure(
            self.row.name,
            self.sizes,
            self.least,
            self.most,
            options,
            baseline,
            weighting,
            self.n_folds,
        )

    def keep(self, measure: Measure, rows: Array, nats: Array) -> Array:
        """What is kept of each row, for which so many nats are paid in all."""
        return measure.released(self._count(measure, rows, nats), nats)

    def _count(self, measure: Measure, rows: Array, nats: Array) -> Array:
        if self.weighting is not None:
            return self._keep_weighted(measure, self.weighting, rows, nats)
        summary = self.row.summary(self, rows)
        if self.row.keeps == "limits":
            lows, highs = measure.limits(summary, nats)
            stored = np.stack([self.row.value(measure, summary), lows, highs], axis=1)
            if self.baseline is None:
                return stored
            pairs = zip(summary, nats.tolist(), strict=True)
            gains = [self.gain(self.baseline_losses, *one) for one in pairs]
            return np.hstack([stored, np.array(gains).reshape(-1, 3)])
        return summary

    def values(self, measure: Measure, rows: Array) -> Array:
        """The metric of each row of predictions, without limits."""
        if self.weighting is None:
            return self.row.value(measure, self.row.summary(self, rows))
        weights = self.weighting.weights
        means = np.array([np.average(one, weights=weights) for one in self._losses_of(rows)])
        return -means if self.row.name.startswith("neg_") else means

    def asymptotic(self, rows: Array, nats: float) -> tuple[float, float] | None:
        """Limits of the first row by the normal approximation.

        None where the proved ones are about as narrow, or the row does not vary.
        """
        if self.weighting is not None:
            low, high = asymptotic_mean_interval(
                self._losses_of(rows)[0],
                nats,
                weights=self.weighting.weights,
                groups=self.weighting.codes,
            )
            if self.row.name.startswith("neg_"):
                low, high = -high, -low
        elif self.row.asymptotic is None:
            return None
        else:
            low, high = self.row.asymptotic(self, rows, nats)
        return None if math.isnan(low) else (low, high)

    @property
    def counts_errors(self) -> bool:
        """Whether errors are all that is kept: `keep_errors` counts and hashes in one go."""
        return self.row.name in COUNTED and self.weighting is None

    def keep_errors(
        self, rows: Array, secret: bytes | None
    ) -> tuple[Array, NDArray[np.uint64] | None]:
        """How often each row errs, and errs with the baseline; and with a secret its keyed hash."""
        hashes = None
        if secret is None:
            totals, _ = sums_of_rows(rows, self.n_samples, packed=True)
        else:
            words = rows.astype("<u8", copy=False)
            hashes, totals = fingerprints_and_sums(words, self.n_samples, secret)
        if self.baseline is None:
            return totals[:, np.newaxis], hashes
        both, _ = sums_of_rows(rows & self.baseline, self.n_samples, packed=True)
        return np.array((totals, both)).T, hashes

    def gain(self, before: Array, losses: Array, nats: float) -> tuple[float, float, float]:
        """How much lower the mean of the second losses is, and the limits of that."""
        return mean_gain(before, losses, self.most - self.least, nats)

    def _keep_weighted(
        self, measure: Measure, weighting: Weighting, rows: Array, nats: Array
    ) -> Array:
        if self.n_folds is not None:
            values = self.values(measure, rows)
            lows, highs = measure.fold_limits(values, weighting.n_effective, nats, equal=False)
            return np.stack([values, lows, highs], axis=1)
        losses, negative = self._losses_of(rows), self.row.name.startswith("neg_")
        stored = np.empty((len(losses), 3))
        span = self.most - self.least
        for place, (one, paid) in enumerate(zip(losses, nats.tolist(), strict=True)):
            mean = float(np.average(one, weights=weighting.weights))
            share = min(max((mean - self.least) / span, 0.0), 1.0)
            limits = weighted_interval(share, weighting.of_groups, weighting.counts, paid)
            low, high = around(mean, *(self.least + span * limit for limit in limits))
            stored[place] = (-mean, -high, -low) if negative else (mean, low, high)
        return stored

    def _losses_of(self, rows: Array) -> Array:
        """What is averaged, sample by sample."""
        if self.row.keeps == "limits":
            return self.row.summary(self, rows)
        wrong = bits_of(rows, self.n_samples)
        return wrong if self.row.name == "error" else 1 - wrong

    # ---- made once -------------------------------------------------------------------------

    def _check_weighting(self) -> None:
        if self.row.name not in MEANS:
            raise ValueError(
                f"sample_weight and groups must be left out with metric={self.row.name!r}: they "
                f"are for means, {', '.join(MEANS)}"
            )

    def _check_folds(self) -> None:
        if self.row.name not in FOLDED:
            raise ValueError(
                f"metric must be a mean over rows in a search with n_folds, {', '.join(FOLDED)}: "
                f"no interval of a cross-validated {self.row.name!r} is proved"
            )

    def _check_labels(self, metric: MetricChoice) -> None:
        row, labels = self.row, self.labels
        if row.needs == "numbers":
            if not labels.are_numbers:
                raise TypeError(f"y_true must be numbers with metric={row.name!r}")
            self.sizes: tuple[int, ...] = (self.n_samples,)
            return
        if row.needs in ("two classes", "both classes") and self.n_classes != 2:
            raise ValueError(
                f"metric={row.name!r} needs two classes, got "
                f"{counted(self.n_classes, 'class', 'classes')}"
            )
        self._set_sizes(self._set_positive(metric))

    def _set_positive(self, metric: MetricChoice) -> list[int]:
        """The classes in order, the positive one last if there is one."""
        row, n_classes = self.row, self.n_classes
        pos_label = metric.options.get("pos_label")
        if n_classes != 2 or not hasattr(metric, "pos_label"):
            if pos_label is not None:
                raise ValueError(f"pos_label must be left out with {n_classes} classes")
            return list(range(n_classes))
        place = self._place_of(pos_label)
        if place is None:
            if row.takes != "probabilities":
                raise ValueError(f"pos_label must be given with metric={row.name!r}: {NO_DEFAULT}")
            return [0, 1]
        self.options["pos_label"] = place
        self.positive, self.has_positive = self._codes == place, True
        return [1 - place, place]

    def _set_sizes(self, order: list[int]) -> None:
        row, counts = self.row, np.bincount(self._codes, minlength=self.n_classes)
        if row.needs in ("both classes", "every class") and not counts.all():
            raise ValueError(
                f"y_true must hold {row.needs} with metric={row.name!r}, got no row of "
                f"{counted(int((counts == 0).sum()), 'class', 'classes')}"
            )
        if row.name in MEANS:
            self.sizes = (self.n_samples,)
            return
        self.sizes = tuple(counts[order].tolist())
        # of all classes but the last, whose errors are the rest
        self.masks = [pack_rows(self._codes == code) for code in order[:-1]]

    def _place_of(self, pos_label: Any) -> int | None:
        classes = self.labels.classes
        if pos_label is None:  # where scikit-learn's functions agree what it is
            return 1 if classes in ([0, 1], [-1, 1]) else None
        if not isinstance(pos_label, Hashable) or pos_label not in classes:
            raise ValueError(
                f"pos_label must be one of the classes {classes!r:.200}, got {shown(pos_label)}"
            )
        return classes.index(pos_label)

    def _set_clip(self, clip: Any) -> None:
        self.clip = check_real(clip=clip)
        if not 0.0 < self.clip < 0.5:
            raise ValueError(f"clip must be in (0, 0.5), got {shown(clip)}")
        self.options["clip"], self.most = self.clip, -math.log(self.clip)

    def _set_range(self, y_range: Any) -> None:
        try:
            low, high = y_range
        except (TypeError, ValueError):
            raise TypeError(f"y_range must be (low, high), got {shown(y_range)}") from None
        low, high = check_real(y_range=low), check_real(y_range=high)
        if not low < high:
            raise ValueError(f"y_range must be (low, high) with low < high, got {y_range!r}")
        self.most = high - low
        if self.row.name == "neg_mean_squared_error":
            self.most *= self.most
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

    def _baseline(self, baseline: Any) -> Array:
        if self.row.name not in MEANS:
            raise ValueError(
                f"baseline must be left out with metric={self.row.name!r}: gains are of "
                f"means, {', '.join(MEANS)}; give the baseline a key of its own, and compare two "
                "intervals, or confirm both (ConfirmedSearch)"
            )
        with read_as(y_pred="baseline"):
            rows = self.read(baseline, 1)
        if self.row.name not in COUNTED:
            self.baseline_losses = self.row.summary(self, rows)[0]
        return rows

    def true_probabilities(self, rows: Array) -> Array:
        """What each row of predictions gives the label of each sample."""
        if rows.ndim == 2:
            return np.where(self.positive, rows, 1.0 - rows)
        return np.take_along_axis(rows, self._codes[None, :, None].astype(np.intp), axis=2)[..., 0]


def fingerprints_of(rows: Array, secret: bytes) -> NDArray[np.uint64]:
    """Keyed hashes of rows of predictions."""
    flat = rows if rows.ndim == 2 else rows.reshape(len(rows), math.prod(rows.shape[1:]))
    little = np.ascontiguousarray(flat, flat.dtype.newbyteorder("<"))
    return fingerprints(little, little.shape[1] * little.itemsize, secret)
