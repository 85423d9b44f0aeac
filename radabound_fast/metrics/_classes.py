"""Metrics of predicted classes: counts of errors in each class, their ratios, exact limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds
from radabound_fast._kernels.rows import sums_of_rows

if TYPE_CHECKING:
    from ._measure import Measure
    from ._truth import Truth

Array = NDArray[Any]
Limits = tuple[Any, Any]
Share = Callable[["Measure", Array], tuple[Array, Any]]


def errors(truth: Truth, words: Array) -> Array:
    return sums_of_rows(words, truth.n_samples, packed=True)[0][:, np.newaxis]


def errors_by_class(truth: Truth, words: Array) -> Array:
    of_class = [errors(truth, words & mask) for mask in truth.masks]
    return np.hstack([*of_class, errors(truth, words) - sum(of_class)])


def _hits(measure: Measure, errors: Array) -> tuple[Array, Array, Array]:
    """True positives, false positives, false negatives."""
    return measure.sizes[1] - errors[:, 1], errors[:, 0], errors[:, 1]


def _ratio(part: Array, whole: Array) -> Array:
    """0 where the whole is 0, as scikit-learn has it by default."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def n_rows(measure: Measure) -> float:
    """Rows of the first class that the metric tells apart, or all rows."""
    return measure.sizes[0]


def n_positive(measure: Measure) -> float:
    return measure.sizes[1]


def n_balanced(measure: Measure) -> float:
    return len(measure.sizes) ** 2 / sum(1.0 / size for size in measure.sizes)


def first_errors(measure: Measure) -> tuple[int, int]:
    return 0, measure.sizes[0]


def second_errors(measure: Measure) -> tuple[int, int]:
    return 1, measure.sizes[1]


def n_ratios(measure: Measure) -> int:
    """Hits and misses, together at most all rows."""
    return math.comb(sum(measure.sizes) + 2, 2)


def n_tables(measure: Measure) -> int:
    """Errors of each class."""
    return math.prod(size + 1 for size in measure.sizes)


# rows that count for a metric, and those among which they are counted


def wrong(measure: Measure, errors: Array) -> tuple[Array, Any]:
    return errors[:, 0], measure.sizes[0]


def right(measure: Measure, errors: Array) -> tuple[Array, Any]:
    return measure.sizes[0] - errors[:, 0], measure.sizes[0]


def right_positive(measure: Measure, errors: Array) -> tuple[Array, Any]:
    return measure.sizes[1] - errors[:, 1], measure.sizes[1]


def right_among_predicted(measure: Measure, errors: Array) -> tuple[Array, Any]:
    hits, false, _ = _hits(measure, errors)
    return hits, hits + false


def rate(share: Share) -> dict[str, Any]:
    """Value and interval of a metric that is such a share."""
    return {"value": partial(_rate, share), "interval": partial(_rate_interval, share)}


def _rate(share: Share, measure: Measure, errors: Array) -> Array:
    part, whole = share(measure, errors)
    return _ratio(part, whole) if isinstance(whole, np.ndarray) else part / whole


def _rate_interval(share: Share, measure: Measure, errors: Array, nats: Any) -> Limits:
    return bounds.rate_interval(*share(measure, errors), nats)


def balanced_accuracy(measure: Measure, errors: Array) -> Array:
    sizes = np.array(measure.sizes)
    return np.asarray(((sizes - errors) / sizes).mean(axis=1))


def balanced_interval(measure: Measure, errors: Array, nats: Any) -> Limits:
    sizes = np.array(measure.sizes)
    limits = each(bounds.balanced_interval, [(sizes - row, sizes) for row in errors], nats)
    return around(balanced_accuracy(measure, errors), *limits)


def balanced_asymptotic(truth: Truth, rows: Array, nats: float) -> tuple[float, float]:
    sizes = np.array(truth.sizes)
    wrong = errors_by_class(truth, rows)[0]
    return bounds.asymptotic_balanced_interval(sizes - wrong, sizes, nats)


def f1(measure: Measure, errors: Array) -> Array:
    hits, false, missed = _hits(measure, errors)
    return _ratio(2 * hits, 2 * hits + false + missed)


def f1_interval(measure: Measure, errors: Array, nats: Any) -> Limits:
    hits, false, missed = _hits(measure, errors)
    return bounds.f1_interval(hits, false + missed, nats)


def each(interval: Any, arguments: list[tuple[Any, ...]], nats: Any) -> Limits:
    """Limits one by one, of functions that are no ufuncs."""
    paid = np.broadcast_to(nats, len(arguments)).tolist()
    limits = [interval(*case, one) for case, one in zip(arguments, paid, strict=True)]
    lows, highs = np.array(limits, np.float64).reshape(-1, 2).T
    return lows, highs


def around(values: Any, lows: Any, highs: Any) -> Limits:
    """Limits that rounding has not put on the wrong side of what they are limits of."""
    return np.minimum(lows, values), np.maximum(highs, values)
