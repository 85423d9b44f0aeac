"""The area under the ROC curve, of scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds

from ._classes import Array, Limits, Sizes, around, each
from ._labels import MetricLabels


class RocBand(NamedTuple):
    """A ROC curve, and how far the population's may be from it at every threshold at once.

    A row is predicted positive if its score is at least the threshold.  `thresholds`, `fpr` and
    `tpr`, float64 of shape (n_thresholds,), are as `sklearn.metrics.roc_curve` has them with
    ``drop_intermediate=False``; the rates have the half-widths `fpr_half_width` and
    `tpr_half_width`, and `nats` are what was paid in all, for delta and the key.
    """

    thresholds: NDArray[np.float64]
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    fpr_half_width: float
    tpr_half_width: float
    nats: float


def roc_band(truth: MetricLabels, scores: NDArray[np.float64], nats: float) -> RocBand:
    """The curve of one row of scores, and its band for so many nats."""
    order = np.argsort(-scores, kind="stable")
    descending, positive = scores[order], truth.positive[order]
    last = np.append(np.flatnonzero(np.diff(descending)), len(scores) - 1)  # of equal scores
    hits = positive.cumsum()[last]
    n_negative, n_positive = truth.sizes
    widths = bounds.roc_band(n_negative, n_positive, nats)
    return RocBand(
        np.append(np.inf, descending[last]),
        np.append(0.0, (last + 1 - hits) / n_negative),
        np.append(0.0, hits / n_positive),
        *widths,
        nats,
    )


def areas(truth: MetricLabels, rows: Array) -> Array:
    """The area under the curve of each row of scores, and in each block of rows."""
    blocks, is_positive = truth.blocks, truth.positive
    n_negative, n_positive = truth.sizes
    result = np.empty((len(rows), 1 + (0 if blocks is None else len(blocks.positive))))
    for place, scores in enumerate(rows):
        negative, positive = np.sort(scores[~is_positive]), np.sort(scores[is_positive])
        below = np.searchsorted(negative, positive, "left").sum(dtype=np.int64)
        wins = below + np.searchsorted(negative, positive, "right").sum(dtype=np.int64)
        result[place, 0] = wins / (2 * n_negative * n_positive)
        if blocks is not None:
            result[place, 1:] = blocks.areas(scores)
    return result


def auc(sizes: Sizes, areas: Array) -> Array:
    return areas[:, 0]


def auc_interval(sizes: Sizes, areas: Array, nats: Any) -> Limits:
    values = auc(sizes, areas)
    if areas.shape[1] == 1:
        return bounds.auc_interval(values, sizes[0], sizes[1], nats)
    return around(values, *each(bounds.betting_interval, [(one,) for one in areas[:, 1:]], nats))


def auc_asymptotic(truth: MetricLabels, rows: Array, nats: float) -> tuple[float, float]:
    scores, is_positive = rows[0], truth.positive
    return bounds.asymptotic_auc_interval(scores[is_positive], scores[~is_positive], nats)
