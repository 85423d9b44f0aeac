"""The area under the ROC curve, of scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds

if TYPE_CHECKING:
    from ._measure import Measure
    from ._truth import Truth

Array = NDArray[Any]


def pairs(truth: Truth, rows: Array) -> Array:
    """Pairs of a positive and a negative row that scores order rightly, twice, and ties."""
    kept, is_positive = np.empty((len(rows), 1), np.int64), truth.positive
    for place, scores in enumerate(rows):
        negative, positive = np.sort(scores[~is_positive]), np.sort(scores[is_positive])
        below = np.searchsorted(negative, positive, "left").sum(dtype=np.int64)
        kept[place] = below + np.searchsorted(negative, positive, "right").sum(dtype=np.int64)
    return kept


def auc(measure: Measure, pairs: Array) -> Array:
    return pairs[:, 0] / (2 * math.prod(measure.sizes))


def auc_interval(measure: Measure, pairs: Array, nats: Any) -> tuple[Any, Any]:
    n_negative, n_positive = measure.sizes
    return bounds.auc_interval(auc(measure, pairs), n_negative, n_positive, nats)
