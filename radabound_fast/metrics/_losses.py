"""Metrics that are means of losses, of which each has a range: probabilities, numbers, costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from radabound_fast.bounds import betting_interval

from ._classes import Array, Sizes, around, each
from ._labels import MetricLabels


def log_losses(truth: MetricLabels, rows: Array) -> Array:
    return np.asarray(-np.log(np.maximum(truth.true_probabilities(rows), truth.clip)))


def brier_losses(truth: MetricLabels, rows: Array) -> Array:
    if rows.ndim == 2:
        return np.asarray((truth.positive - rows) ** 2)
    right = np.eye(truth.n_classes)[truth.labels.codes]
    squares = ((right - rows) ** 2).sum(axis=2)
    return np.asarray(squares * 0.5 if truth.n_classes == 2 else squares)


def absolute_errors(truth: MetricLabels, rows: Array) -> Array:
    return np.asarray(np.abs(truth.numbers - rows))


def squared_errors(truth: MetricLabels, rows: Array) -> Array:
    return np.asarray((truth.numbers - rows) ** 2)


def costs(truth: MetricLabels, rows: Array) -> Array:
    return np.asarray(truth.costs[truth.labels.codes, rows])


def mean(sizes: Sizes, losses: Array) -> Array:
    return np.array([np.average(row) for row in losses])


def mean_interval(sizes: Sizes, losses: Array, nats: Any) -> tuple[Any, Any]:
    """Limits for losses in [0, 1]."""
    return each(betting_interval, [(row,) for row in losses], nats)


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
