"""Metrics that are means of losses, of which each has a range: probabilities, numbers, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds import asymptotic_mean_interval, betting_interval

from ._classes import around, each

if TYPE_CHECKING:
    from ._measure import Measure
    from ._truth import Truth

Array = NDArray[Any]
Limits = tuple[Any, Any]


def log_losses(truth: Truth, rows: Array) -> Array:
    return np.asarray(-np.log(np.maximum(truth.true_probabilities(rows), truth.clip)))


def brier_losses(truth: Truth, rows: Array) -> Array:
    if rows.ndim == 2:
        return np.asarray((truth.positive - rows) ** 2)
    right = np.eye(truth.n_classes)[truth.labels.codes]
    squares = ((right - rows) ** 2).sum(axis=2)
    return np.asarray(squares * 0.5 if truth.n_classes == 2 else squares)


def absolute_errors(truth: Truth, rows: Array) -> Array:
    return np.asarray(np.abs(truth.numbers - rows))


def squared_errors(truth: Truth, rows: Array) -> Array:
    return np.asarray((truth.numbers - rows) ** 2)


def costs(truth: Truth, rows: Array) -> Array:
    return np.asarray(truth.costs[truth.labels.codes, rows])


def mean(measure: Measure, losses: Array) -> Array:
    return np.array([np.average(row) for row in losses])


def mean_interval(measure: Measure, losses: Array, nats: Any) -> Limits:
    span = measure.most - measure.least
    scaled = np.clip((losses - measure.least) / span, 0.0, 1.0)
    lows, highs = each(betting_interval, [(row,) for row in scaled], nats)
    return around(mean(measure, losses), measure.least + span * lows, measure.least + span * highs)


def negative_mean(measure: Measure, losses: Array) -> Array:
    return -mean(measure, losses)


def negative_interval(measure: Measure, losses: Array, nats: Any) -> Limits:
    lows, highs = mean_interval(measure, losses, nats)
    return -highs, -lows


def asymptotic(truth: Truth, rows: Array, nats: float) -> tuple[float, float]:
    return asymptotic_mean_interval(truth.row.summary(truth, rows)[0], nats)


def negative_asymptotic(truth: Truth, rows: Array, nats: float) -> tuple[float, float]:
    low, high = asymptotic(truth, rows, nats)
    return -high, -low


def mean_gain(before: Array, losses: Array, span: float, nats: float) -> tuple[float, float, float]:
    """How much lower the mean of the second losses is, and the limits of that.

    `span` is the largest loss less the smallest; each limit is wrong with probability at most
    exp(-nats).
    """
    less = before - losses
    low, high = betting_interval(np.clip(0.5 + less / (2.0 * span), 0.0, 1.0), nats)
    gain = float(np.average(less))
    low, high = around(gain, (2.0 * low - 1.0) * span, (2.0 * high - 1.0) * span)
    return gain, float(low), float(high)
