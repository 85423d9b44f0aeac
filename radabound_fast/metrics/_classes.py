"""Metrics of predicted classes: counts of errors in each class, their ratios, exact limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds
from radabound_fast._kernels.rows import sums_of_rows

from ._labels import MetricLabels

Array = NDArray[Any]
Limits = tuple[Any, Any]
Sizes = tuple[int, ...]  # labels of each class that the metric tells apart


def errors(truth: MetricLabels, words: Array) -> Array:
    return sums_of_rows(words, truth.n_samples, packed=True)[0][:, np.newaxis]


def errors_by_class(truth: MetricLabels, words: Array) -> Array:
    of_class = [errors(truth, words & mask) for mask in truth.masks]
    return np.hstack([*of_class, errors(truth, words) - sum(of_class)])


def n_balanced(sizes: Sizes) -> float:
    """How many rows a mean over classes is worth."""
    return len(sizes) ** 2 / sum(1.0 / size for size in sizes)


def n_ratios(sizes: Sizes) -> int:
    """How many pairs of hits and misses there are, together at most all rows."""
    return math.comb(sum(sizes) + 2, 2)


def n_tables(sizes: Sizes) -> int:
    """How many tables of errors of each class there are."""
    return math.prod(size + 1 for size in sizes)


def _counted(column: int, is_right: bool, sizes: Sizes, errors: Array) -> Array:
    return sizes[column] - errors[:, column] if is_right else errors[:, column]


def share(column: int, is_right: bool, sizes: Sizes, errors: Array) -> Array:
    return _counted(column, is_right, sizes, errors) / sizes[column]


def share_interval(column: int, is_right: bool, sizes: Sizes, errors: Array, nats: Any) -> Limits:
    return bounds.rate_interval(_counted(column, is_right, sizes, errors), sizes[column], nats)


def _hits(sizes: Sizes, errors: Array) -> tuple[Array, Array, Array]:
    """True positives, false positives, false negatives."""
    return sizes[1] - errors[:, 1], errors[:, 0], errors[:, 1]


def _ratio(part: Array, whole: Array) -> Array:
    """0 where the whole is 0, as scikit-learn has it by default."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def precision(sizes: Sizes, errors: Array) -> Array:
    hits, false, _ = _hits(sizes, errors)
    return _ratio(hits, hits + false)


def precision_interval(sizes: Sizes, errors: Array, nats: Any) -> Limits:
    hits, false, _ = _hits(sizes, errors)
    return bounds.rate_interval(hits, hits + false, nats)


def f1(sizes: Sizes, errors: Array) -> Array:
    hits, false, missed = _hits(sizes, errors)
    return _ratio(2 * hits, 2 * hits + false + missed)


def f1_interval(sizes: Sizes, errors: Array, nats: Any) -> Limits:
    hits, false, missed = _hits(sizes, errors)
    return bounds.f1_interval(hits, false + missed, nats)


def balanced_accuracy(sizes: Sizes, errors: Array) -> Array:
    n = np.array(sizes)
    return np.asarray(((n - errors) / n).mean(axis=1))


def balanced_interval(sizes: Sizes, errors: Array, nats: Any) -> Limits:
    n = np.array(sizes)
    limits = each(bounds.balanced_interval, [(n - row, n) for row in errors], nats)
    return around(balanced_accuracy(sizes, errors), *limits)


def balanced_asymptotic(truth: MetricLabels, rows: Array, nats: float) -> tuple[float, float]:
    n = np.array(truth.sizes)
    return bounds.asymptotic_balanced_interval(n - errors_by_class(truth, rows)[0], n, nats)


def each(interval: Any, arguments: list[tuple[Any, ...]], nats: Any) -> Limits:
    """Limits one by one, of functions that are no ufuncs."""
    paid = np.broadcast_to(nats, len(arguments)).tolist()
    limits = [interval(*case, one) for case, one in zip(arguments, paid, strict=True)]
    lows, highs = np.array(limits, np.float64).reshape(-1, 2).T
    return lows, highs


def around(values: Any, lows: Any, highs: Any) -> Limits:
    """Limits that rounding has not put on the wrong side of what they are limits of."""
    return np.minimum(lows, values), np.maximum(highs, values)
