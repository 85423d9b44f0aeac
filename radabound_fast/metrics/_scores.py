"""The area under the ROC curve, of scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast import bounds

from ._classes import around, each

if TYPE_CHECKING:
    from ._measure import Measure
    from ._truth import Truth

Array = NDArray[Any]

_SEED = 5904711382201936  # which nobody has drawn labels or scores with
_PAIRS_AT_ONCE = 2**18  # compared, which stay in the cache


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


def areas(truth: Truth, rows: Array) -> Array:
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


class Blocks(NamedTuple):
    """Rows of both classes, a line each block."""

    positive: NDArray[np.intp]
    negative: NDArray[np.intp]

    @classmethod
    def of(cls, is_positive: NDArray[np.bool_]) -> Blocks | None:
        """The blocks that `bounds.auc_blocks` asks for, by a permutation of the rows.

        Files are often sorted, and so each class is taken in the order of the 64-bit numbers of
        PCG64 with a fixed seed, of which NumPy guarantees that they stay the same.
        """
        n_positive = int(is_positive.sum())
        n_negative = len(is_positive) - n_positive
        size = bounds.auc_blocks(n_negative, n_positive)
        if not size:
            return None
        order = np.argsort(np.random.PCG64(_SEED).random_raw(len(is_positive)), kind="stable")
        rarer, other = order[is_positive[order]], order[~is_positive[order]]
        if n_negative < n_positive:
            rarer, other = other, rarer
        n_blocks, wide = len(rarer) // size, size * (len(other) // len(rarer))
        rare = rarer[: n_blocks * size].reshape(n_blocks, size)
        common = other[: n_blocks * wide].reshape(n_blocks, wide)
        return cls(common, rare) if n_negative < n_positive else cls(rare, common)

    def areas(self, scores: Array) -> NDArray[np.float64]:
        """The area under the curve in each block."""
        n_pairs = self.positive.shape[1] * self.negative.shape[1]
        twice = np.empty(len(self.positive))
        step = max(1, _PAIRS_AT_ONCE // n_pairs)
        for start in range(0, len(twice), step):
            some = slice(start, start + step)
            high, low = scores[self.positive[some], None], scores[self.negative[some]][:, None, :]
            wins = np.count_nonzero(high > low, axis=(1, 2))
            twice[some] = wins + np.count_nonzero(high >= low, axis=(1, 2))
        return np.asarray(twice / (2 * n_pairs))


def auc(measure: Measure, areas: Array) -> Array:
    return areas[:, 0]


def auc_interval(measure: Measure, areas: Array, nats: Any) -> tuple[Any, Any]:
    values = auc(measure, areas)
    if areas.shape[1] == 1:
        n_negative, n_positive = measure.sizes
        return bounds.auc_interval(values, n_negative, n_positive, nats)
    return around(values, *each(bounds.betting_interval, [(one,) for one in areas[:, 1:]], nats))


def auc_asymptotic(truth: Truth, rows: Array, nats: float) -> tuple[float, float]:
    scores, is_positive = rows[0], truth.positive
    return bounds.asymptotic_auc_interval(scores[is_positive], scores[~is_positive], nats)
