"""The labels of a holdout as judges: predictions in, what is stored of them out."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import read_as
from radabound_fast._kernels.rows import (
    PackedLosses,
    fingerprints,
    fingerprints_and_sums,
    sums_of_rows,
)
from radabound_fast.bounds import asymptotic_mean_interval, weighted_interval
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import bits_of
from radabound_fast.rows.signs import WORD_BITS
from radabound_fast.rows.weighting import Weighting

from ._choices import MetricChoice
from ._classes import errors
from ._labels import Array, MetricLabels
from ._losses import mean_gain
from ._measure import Measure, in_range
from ._table import COUNTED, FOLDED, MEANS, METRICS


class Truth(MetricLabels):
    """The labels of a holdout as its metric wants them, and how its rows count."""

    _baseline_losses: Array

    def __init__(
        self, labels: Labels, metric: MetricChoice, weighting: Weighting | None = None
    ) -> None:
        row = self.row = METRICS[metric.name]
        super().__init__(labels, metric, row.takes, row.needs, row.is_mean)
        self.baseline: Array | None = None
        self.n_folds: int | None = None
        self.weighting = weighting
        if weighting is not None and not row.is_mean:
            raise ValueError(
                f"sample_weight and groups must be left out with metric={row.name!r}: they "
                f"are for means, {', '.join(MEANS)}"
            )

    def beside(self, baseline: Any, n_folds: int | None) -> Truth:
        """Return these labels for a search with a baseline, or with cross-validated predictions.

        `baseline` are predictions, shape (n_samples,), of a model that was fixed before any score
        was seen.  TypeError, ValueError: the metric has no such gains or no such intervals, or they
        are not predictions.
        """
        if baseline is None and n_folds is None:
            return self
        other, name = copy(self), self.row.name
        other.n_folds = n_folds
        if n_folds is not None and name not in FOLDED:
            raise ValueError(
                f"metric must be a mean over rows in a search with n_folds, {', '.join(FOLDED)}: "
                f"no interval of a cross-validated {name!r} is proved"
            )
        if baseline is None:
            return other
        if n_folds is not None:
            raise ValueError("baseline must be left out in a search with n_folds")
        if self.weighting is not None:
            raise ValueError("baseline must be left out beside sample_weight or groups")
        if not self.row.is_mean:
            raise ValueError(
                f"baseline must be left out with metric={name!r}: gains are of means, "
                f"{', '.join(MEANS)}; give the baseline a key of its own, and compare two "
                "intervals, or confirm both (ConfirmedSearch)"
            )
        with read_as(y_pred="baseline"):
            rows = other.baseline = self.read(baseline, 1)
        if self.row.stores == "limits":
            other._baseline_losses = self.row.summary(self, rows)[0]
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
        if isinstance(y_pred, PackedLosses) and self.row.stores != "errors":
            raise TypeError(
                f"y_pred must be {self.row.takes} for the metric {self.row.name!r}, got "
                f"{y_pred!r}: packed losses say which predictions are wrong, and this metric needs "
                "more"
            )
        return self.row.read(self, y_pred, ndim)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value of the metric."""
        return self.row.signed(self.least, self.most)

    def measure(self, secret: bytes) -> Measure:
        """What of this may leave it."""
        baseline = None
        if self.baseline is not None:
            counted = self.row.name in COUNTED
            total = int(errors(self, self.baseline)[0, 0]) if counted else 0
            baseline = total, int(fingerprints_of(self.baseline, secret)[0])
        return Measure(
            self.row.name,
            self.sizes,
            self.least,
            self.most,
            tuple(sorted(self.options.items())),
            baseline,
            None if self.weighting is None else self.weighting.fingerprint(secret),
            self.n_folds,
        )

    def stored(self, measure: Measure, rows: Array, nats: Array) -> Array:
        """What is stored of each row, for which so many nats are paid in all."""
        return measure.released(self._count(measure, rows, nats), nats)

    def _count(self, measure: Measure, rows: Array, nats: Array) -> Array:
        if self.weighting is not None:
            return self._count_weighted(measure, self.weighting, rows, nats)
        summary = self.row.summary(self, rows)
        if self.row.stores == "errors":
            return summary
        stored = np.stack([measure.value(summary), *measure.limits(summary, nats)], axis=1)
        if self.baseline is None:
            return stored
        pairs = zip(summary, nats.tolist(), strict=True)
        gains = [self.gain(self._baseline_losses, *one) for one in pairs]
        return np.hstack([stored, np.array(gains).reshape(-1, 3)])

    def _count_weighted(
        self, measure: Measure, weighting: Weighting, rows: Array, nats: Array
    ) -> Array:
        values = self.values(measure, rows)
        if self.n_folds is not None:
            lows, highs = measure.fold_limits(values, nats, weighting.n_effective)
            return np.stack([values, lows, highs], axis=1)
        stored = np.empty((len(values), 3))
        for place, (value, paid) in enumerate(zip(values.tolist(), nats.tolist(), strict=True)):
            mean = -value if self.row.is_negative else value
            share = min(max((mean - self.least) / (self.most - self.least), 0.0), 1.0)
            limits = weighted_interval(share, weighting.of_groups, weighting.counts, paid)
            stored[place] = value, *self.row.signed(*in_range(mean, self.least, self.most, *limits))
        return stored

    def values(self, measure: Measure, rows: Array) -> Array:
        """The metric of each row of predictions, without limits."""
        if self.weighting is None:
            return measure.value(self.row.summary(self, rows))
        weights = self.weighting.weights
        means = np.array([np.average(one, weights=weights) for one in self._losses_of(rows)])
        return -means if self.row.is_negative else means

    def asymptotic(self, rows: Array, nats: float) -> tuple[float, float] | None:
        """Limits of the first row by the normal approximation.

        None where the proved ones are about as narrow, or the row does not vary.
        """
        if self.row.asymptotic is not None:
            low, high = self.row.asymptotic(self, rows, nats)
        elif self.counts_errors or not self.row.is_mean:
            return None
        else:
            weighting, how = self.weighting, {}
            if weighting is not None:
                how = {"weights": weighting.weights, "groups": weighting.codes}
            losses = self._losses_of(rows)[0]
            low, high = self.row.signed(*asymptotic_mean_interval(losses, nats, **how))
        return None if math.isnan(low) else (low, high)

    @property
    def counts_errors(self) -> bool:
        """Whether errors are all that is stored: `stored_errors` counts and hashes in one go."""
        return self.row.name in COUNTED and self.weighting is None

    def stored_errors(
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

    def _losses_of(self, rows: Array) -> Array:
        """What is averaged, sample by sample."""
        if self.row.stores == "limits":
            return self.row.summary(self, rows)
        wrong = bits_of(rows, self.n_samples)
        return wrong if self.row.name == "error" else 1 - wrong


def fingerprints_of(rows: Array, secret: bytes) -> NDArray[np.uint64]:
    """Keyed hashes of rows of predictions."""
    flat = rows if rows.ndim == 2 else rows.reshape(len(rows), math.prod(rows.shape[1:]))
    little = np.ascontiguousarray(flat, flat.dtype.newbyteorder("<"))
    return fingerprints(little, little.shape[1] * little.itemsize, secret)
