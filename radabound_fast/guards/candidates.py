"""Candidates of a `Gate` or a `ConfirmedSearch`: what is stored of them, values, and gains."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import PackedLosses, pack_rows, sums_of_rows
from radabound_fast.bounds import (
    asymptotic_mean_interval,
    betting_interval,
    binomial_interval,
    paired_interval,
)
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.metrics import MEANS, fingerprints_of
from radabound_fast.metrics._losses import mean_gain
from radabound_fast.rows.moments import in_units
from radabound_fast.rows.packing import as_array, as_values, bits_of, checked_words

Array = NDArray[Any]
Mask = NDArray[np.bool_]


class Estimate(NamedTuple):
    """A number of the test set, and its limits: each is wrong with probability exp(-nats)."""

    value: float
    low: float
    high: float


class Candidate(NamedTuple):
    """A model, compared with the labels."""

    rows: Array  # as the metric has them
    losses: Array  # uint64, shape (n_words,): bits of 0 and 1; or float64, shape (n_samples,)


class _Rows:
    """What is the same for candidates of every kind."""

    n_samples: int
    least: float  # the smallest loss
    span: float  # the largest loss less the smallest
    ends: tuple[float, float]  # the least and the largest value of the metric

    def gain(
        self, before: Candidate, after: Candidate, nats: float, where: Mask | None = None
    ) -> Estimate:
        """Return how much lower the mean loss of the second candidate is, and limits of the truth.

        `where` has the rows of a slice, at least one.
        """
        one, other = before.losses, after.losses
        if one.dtype == other.dtype == np.uint64:
            return gain_in_errors(one, other, self.n_samples, nats, where)
        rows = slice(None) if where is None else where
        pair = self._floats(one)[rows], self._floats(other)[rows]
        return Estimate(*mean_gain(*pair, self.span, nats))

    def in_units(self, candidates: Sequence[Candidate]) -> Array:
        """Return losses as `rows.moments` has them: bits where those of all candidates are."""
        losses = [candidate.losses for candidate in candidates]
        if all(one.dtype == np.uint64 for one in losses):
            return np.stack(losses)
        scaled = (np.stack([self._floats(one) for one in losses]) - self.least) / self.span
        return in_units(np.clip(scaled, 0.0, 1.0))

    def _floats(self, losses: Array) -> NDArray[np.float64]:
        """Return losses row by row, given those or their bits."""
        if losses.dtype != np.uint64:
            return losses
        return bits_of(losses, self.n_samples).astype(np.float64)


class PredictionRows(_Rows):
    """Candidates that are predictions: their classes, scores or probabilities are stored."""

    def __init__(self, holdout: Holdout) -> None:
        self._truth = holdout.truth
        self._measure = self._truth.measure(bytes(16))
        self._has_losses = holdout.metric in MEANS
        self._of_classes = holdout.takes == "classes"
        self.n_samples, self.ends = holdout.n_samples, holdout.limits_of_metric
        self.least = self._truth.least
        self.span = self._truth.most - self._truth.least

    def read(self, y_pred: Any, name: str) -> Array:
        """Return the array that is stored of predictions, checked."""
        if isinstance(y_pred, PackedLosses):
            raise TypeError(
                f"{name} must be predictions, got {y_pred!r}: packed losses beside the predictions "
                "would show the labels"
            )
        if self._of_classes:
            return self._truth.labels.codes_of(y_pred)
        return np.asarray(self._truth.read(y_pred, 1)[0])

    def candidate(self, stored: Array) -> Candidate:
        """Compare a stored array with the labels."""
        truth, rows = self._truth, stored[np.newaxis]
        if self._of_classes:
            if len(stored) != truth.n_samples or stored.max() >= truth.n_classes:
                raise ValueError("a stored candidate does not fit the labels: the file is damaged")
            if truth.row.stores == "errors":
                rows = pack_rows(stored, truth.labels.code_row)[np.newaxis]
        if truth.counts_errors:
            return Candidate(rows, rows[0])
        losses = truth.row.summary(truth, rows)[0] if self._has_losses else np.empty(0)
        return Candidate(rows, losses)

    def value(self, candidate: Candidate, nats: float) -> Estimate:
        """Return the metric, and limits of the population's."""
        paid = np.array([nats])
        stored = self._truth.stored(self._measure, candidate.rows, paid)
        (low,), (high,) = self._measure.intervals(stored, paid)
        return Estimate(float(self._measure.values(stored)[0]), float(low), float(high))

    def asymptotic(self, candidate: Candidate, nats: float) -> tuple[float, float] | None:
        """Return limits by the normal approximation; None where the proved are about as narrow."""
        return self._truth.asymptotic(candidate.rows, nats)

    def n_outcomes(self, candidate: Candidate) -> int | None:
        """Return how many values, with their limits, it may have; None: real numbers."""
        return self._measure.n_outcomes

    def hull(
        self, candidate: Candidate, least: float, most: float, nats: float
    ) -> tuple[float, float] | None:
        """Return limits that hold those of every value in [least, most], where there are such."""
        ends = self._measure.hull(np.array([least]), np.array([most]), np.array([nats]))
        return None if ends is None else (float(ends[0][0]), float(ends[1][0]))


class LossRows(_Rows):
    """Candidates that are losses in [0, 1], which are stored; without weights or groups."""

    least, span, ends = 0.0, 1.0, (0.0, 1.0)

    def __init__(self, holdout: Losses) -> None:
        if holdout.weighting is not None:
            raise ValueError(
                "sample_weight and groups must be left out where losses are judged: give labels"
            )
        self.n_samples = holdout.n_samples

    def read(self, losses: Any, name: str) -> Array:
        if isinstance(losses, PackedLosses):
            return bits_of(checked_words(losses, self.n_samples, 1), self.n_samples)
        array = as_array(losses, name)
        values = as_values(array, self.n_samples, 1, name)
        sums_of_rows(values[np.newaxis], self.n_samples, packed=False)  # they are in [0, 1]
        if array.dtype.kind in "biu":
            return values.astype(np.uint8)
        return values.astype(np.float64) + 0.0

    def candidate(self, stored: Array) -> Candidate:
        if len(stored) != self.n_samples:
            raise ValueError("a stored candidate has another number of rows: the file is damaged")
        losses = pack_rows(stored) if stored.dtype == np.uint8 else stored
        return Candidate(stored[np.newaxis], losses)

    def value(self, candidate: Candidate, nats: float) -> Estimate:
        losses, m = candidate.losses, self.n_samples
        if losses.dtype == np.uint64:
            total = int(sums_of_rows(losses[np.newaxis], m, packed=True)[0][0])
            return Estimate(total / m, *binomial_interval(total, m, nats))
        mean, (low, high) = float(np.average(losses)), betting_interval(losses, nats)
        return Estimate(mean, min(mean, low), max(mean, high))

    def asymptotic(self, candidate: Candidate, nats: float) -> tuple[float, float] | None:
        losses = candidate.losses
        if losses.dtype == np.uint64:
            return None
        low, high = asymptotic_mean_interval(losses, nats)
        return None if np.isnan(low) else (low, high)

    def n_outcomes(self, candidate: Candidate) -> int | None:
        return self.n_samples + 1 if candidate.losses.dtype == np.uint64 else None

    def hull(self, candidate: Candidate, least: float, most: float, nats: float) -> None:
        return None


CandidateRows = PredictionRows | LossRows  # how candidates of a test set are judged


def gain_in_errors(
    before: Array, after: Array, n_samples: int, nats: float, where: Mask | None = None
) -> Estimate:
    """Return how much less often the second model errs, by bits of both, on all rows or a slice."""
    n = n_samples if where is None else int(where.sum())
    mask = np.uint64(2**64 - 1) if where is None else pack_rows(where)
    both = np.stack([before & ~after & mask, after & ~before & mask])
    plus, minus = sums_of_rows(both, n_samples, packed=True)[0].tolist()
    return Estimate((plus - minus) / n, *paired_interval(plus, minus, n, nats))


def rows_of(holdout: Holdout | Losses) -> CandidateRows:
    """Return how candidates on this holdout are read, measured and compared."""
    return PredictionRows(holdout) if isinstance(holdout, Holdout) else LossRows(holdout)


def fingerprint_of(stored: Array, secret: bytes) -> int:
    """Return a keyed hash by which the same predictions are known again."""
    return int(fingerprints_of(stored[np.newaxis], secret)[0])


def to_bytes(stored: Array) -> bytes:
    """Return an array as compressed octets, which `from_bytes` reads."""
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(stored, stored.dtype.newbyteorder("<")), allow_pickle=False)
    return zlib.compress(file.getvalue(), 6)


def from_bytes(octets: bytes) -> Array:
    """Return the array that `to_bytes` wrote."""
    stored: Array = np.load(io.BytesIO(zlib.decompress(octets)), allow_pickle=False)
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)
