"""Predictions of each kind: read, and checked before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast.rows.named import by_class, check_class
from radabound_fast.rows.packing import as_array, as_numbers, check_shape, checked_words, place_of

from ._labels import NO_DEFAULT, SUM_TOLERANCE, MetricLabels

Array = NDArray[Any]

MORE_CLASSES = ": if y_true lacks a class that models know, name all by Holdout(..., classes=)"


def losses(truth: MetricLabels, y_pred: Any, ndim: int) -> Array:
    """Where predicted classes differ from the labels, as bits."""
    if isinstance(y_pred, PackedLosses):
        words = checked_words(y_pred, truth.n_samples, ndim)
    else:
        words = pack_rows(*truth.labels.match(y_pred, ndim))
    return words if ndim == 2 else words[np.newaxis]  # atleast_2d takes as long as the packing


def codes(truth: MetricLabels, y_pred: Any, ndim: int) -> Array:
    return np.atleast_2d(truth.labels.codes_of(y_pred, ndim))


def scores(truth: MetricLabels, y_pred: Any, ndim: int) -> Array:
    array = as_array(y_pred, "y_pred")
    scores = as_numbers(array, "y_pred")
    check_shape(scores, truth.n_samples, ndim, "y_pred")
    _check_names(truth, y_pred, ndim)
    _check_all(np.isfinite(scores), scores, "be finite")
    rows = scores.astype(np.float64)
    # different ones must not become ties
    exact = rows == array  # of objects too
    if scores.dtype.kind in "iu":  # which would be compared as floats
        exact = (scores >= -(2**53)) & (scores <= 2**53)
    _check_all(exact, array, "be exact in float64")
    return _as_rows(rows)


def within_range(truth: MetricLabels, y_pred: Any, ndim: int) -> Array:
    values = as_numbers(as_array(y_pred, "y_pred"), "y_pred")
    check_shape(values, truth.n_samples, ndim, "y_pred")
    truth.labels.check_rows(y_pred, ndim)
    rows = values.astype(np.float64)
    limits = np.array([truth.low, truth.high])
    least, most = limits
    if values.dtype.kind == "f":  # clipped in float32, say, they are at its own 0.3
        with np.errstate(over="ignore"):
            own = limits.astype(values.dtype).astype(np.float64)
        least, most = min(least, own[0]), max(most, own[1])
    good = np.isfinite(rows) & (rows >= least) & (rows <= most)
    rule = f"lie in y_range = [{truth.low!r}, {truth.high!r}]"
    _check_all(good, rows, rule, hint=": clip it with numpy.clip")
    return _as_rows(rows.clip(*limits))


def probabilities(truth: MetricLabels, y_pred: Any, ndim: int) -> Array:
    """Probabilities of the positive class, or with one more axis of every class."""
    n_classes, named = truth.n_classes, by_class(y_pred, truth.labels.classes, "y_pred", ndim)
    values = as_numbers(as_array(named, "y_pred"), "y_pred")
    if values.ndim == ndim + 1:
        if values.shape[-2:] != (truth.n_samples, n_classes):
            lacks = MORE_CLASSES if values.shape[-1] > n_classes else ""
            raise ValueError(
                f"y_pred must have {truth.n_samples} rows of {n_classes} probabilities, got shape "
                f"{values.shape}{lacks}"
            )
        truth.labels.check_rows(y_pred, ndim)
        _check_all((values >= 0) & (values <= 1), values, "be in [0, 1]", per_sample=n_classes)
        rows = values.astype(np.float64).reshape(-1, truth.n_samples, n_classes)
        sums = rows.sum(axis=2).reshape(values.shape[:-1])
        good, rule = np.abs(sums - 1.0) <= SUM_TOLERANCE, "add up to 1 over classes"
        _check_all(good, sums, rule, hint=": divide them by their sum")
        return rows + 0.0
    if n_classes != 2:
        lacks = MORE_CLASSES if n_classes == 1 else ""
        raise ValueError(
            f"y_pred must have a probability for each of {counted(n_classes, 'class', 'classes')}, "
            f"got shape {values.shape}{lacks}"
        )
    if not truth.has_positive:
        raise ValueError(f"pos_label must be given for one probability a sample: {NO_DEFAULT}")
    check_shape(values, truth.n_samples, ndim, "y_pred")
    _check_names(truth, y_pred, ndim)
    _check_all((values >= 0) & (values <= 1), values, "be in [0, 1]")
    return _as_rows(values.astype(np.float64))


def _check_names(truth: MetricLabels, y_pred: Any, ndim: int) -> None:
    """One number a sample, of the positive class, in the order of the labels."""
    truth.labels.check_rows(y_pred, ndim)
    check_class(y_pred, truth.labels.classes, truth.options["pos_label"], "y_pred")


def _as_rows(values: Array) -> Array:
    return np.atleast_2d(values + 0.0)  # -0.0 is 0.0: equal ones have one fingerprint


def _check_all(
    good: Array, values: Array, rule: str, *, hint: str = "", per_sample: int = 1
) -> None:
    if not good.all():
        index = int(good.argmin())
        shape = values.shape if per_sample == 1 else values.shape[:-1]
        place = place_of(index // per_sample, shape)
        raise ValueError(f"y_pred must {rule}, got {values.flat[index]!s} {place}{hint}")
