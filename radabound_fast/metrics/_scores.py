"""The area under the ROC curve, of scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds

if TYPE_CHECKING:
    from ._measure import Measure
    from ._truth import Truth

Array = NDArray[Any]


class RocBand(NamedTuple):
    """A ROC curve, and how far the population's may be from it at every threshold at once.

    Attributes
    ----------
    thresholds, fpr, tpr : ndarray of float64, shape (n_thresholds,)
        A row is predicted positive if its score is at least the threshold; all three as
        `sklearn.metrics.roc_curve` has them with ``drop_intermediate=False``.
    fpr_half_width, tpr_half_width : float
        Of the false positive rate and the true positive rate.
    nats : float
        What was paid in all, for delta and the key.
    """

    thresholds: NDArray[np.float64]
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    fpr_half_width: float
    tpr_half_width: float
    nats: float


def roc_band(truth: Truth, scores: NDArray[np.float64], nats: float) -> RocBand:
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


def pairs(truth: Truth, rows: Array) -> Array:
    """Pairs of a positive and a negative row that scores order rightly, twice, and ties."""
    kept, is_positive = np.empty((len(rows), 1), np.int64), truth.positive
    for place, scores in enumerate(rows):
        negative, positive = np.sort(scores[~is_positive]), np.sort(scores[is_positive])
        below = np.searchsorted(negative, positive, "left").sum(dtype=np.int64)
        kept[place] = below + np.searchsorted(negative, positive, "right").sum(dtype=np.int64)
    return kept


def all_pairs(measure: Measure) -> tuple[int, int]:
    return 0, 2 * math.prod(measure.sizes)


def auc(measure: Measure, pairs: Array) -> Array:
    return pairs[:, 0] / (2 * math.prod(measure.sizes))


def auc_interval(measure: Measure, pairs: Array, nats: Any) -> tuple[Any, Any]:
    n_negative, n_positive = measure.sizes
    areas = auc(measure, pairs)
    if len(areas) != 1:
        return bounds.auc_interval(areas, n_negative, n_positive, nats)
    # a single limit costs less as a float
    low, high = bounds.auc_interval(areas.item(), n_negative, n_positive, float(nats[0]))
    return np.array([low]), np.array([high])
