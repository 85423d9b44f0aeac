"""The greedy linear classifier of Section V: what it asks, and what is true of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.rows.packing import pack_losses

N_SAMPLES = 4000  # each of training set, holdout and fresh set
N_FEATURES = 500
N_SIGNAL = 50
N_QUERIES = 1 + 2 * N_FEATURES


class Model(NamedTuple):
    """The law of the data: N(0, variance) features, the first 50 shifted by bias times label."""

    variance: float
    bias: float


class Sample(NamedTuple):
    """Features first, for the search goes through them one by one."""

    features: NDArray[np.float32]  # (N_FEATURES, N_SAMPLES)
    positive: NDArray[np.bool_]  # (N_SAMPLES,), whether the label is 1 and not -1


class Search(NamedTuple):
    """The queries of one search, in order."""

    losses: PackedLosses  # N_QUERIES of N_SAMPLES
    errors: NDArray[np.float64]  # (N_QUERIES,), on the holdout
    truths: NDArray[np.float64]  # (N_QUERIES,), exact
    fresh: NDArray[np.float64]  # (N_QUERIES,), on the fresh set

    def best_accuracies(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Accuracies of the best classifier so far on the holdout and on fresh data, by query."""
        lowest = np.minimum.accumulate(self.errors)
        improved = self.errors < np.concatenate([[np.inf], lowest[:-1]])
        best = np.maximum.accumulate(np.where(improved, np.arange(N_QUERIES), 0))
        return 1 - lowest, 1 - self.fresh[best]


def draw(model: Model, rng: np.random.Generator) -> Sample:
    """A sample whose labels are fair coins."""
    positive = rng.random(N_SAMPLES) < 0.5
    features = rng.standard_normal((N_FEATURES, N_SAMPLES), dtype=np.float32)
    features *= np.float32(np.sqrt(model.variance))
    features[:N_SIGNAL] += np.where(positive, model.bias, -model.bias).astype(np.float32)
    return Sample(features, positive)


def search(model: Model, rng: np.random.Generator) -> Search:
    """The greedy search, with exact holdout errors.

    Features come in the order of their correlation with the label on the training set, the
    strongest first.  Of the weights -1, 0 and 1 each keeps the one with the lowest holdout
    error, which takes two queries.  Before them the search asks about w = 0, where it starts
    from: that says +1 to all, for sign(0) is +1.
    """
    training, holdout, fresh = (draw(model, rng) for _ in range(3))
    labels = np.where(training.positive, 1, -1).astype(np.float32)
    order = np.argsort(-np.abs(training.features @ labels), kind="stable")

    losses = np.empty((N_QUERIES, N_SAMPLES), dtype=bool)
    n_wrong, n_wrong_fresh, lean, size = np.empty((4, N_QUERIES), dtype=np.int64)
    score, fresh_score = np.zeros((2, N_SAMPLES), dtype=np.float32)
    losses[0] = ~holdout.positive
    n_wrong[0], n_wrong_fresh[0] = losses[0].sum(), np.count_nonzero(~fresh.positive)
    lean[0] = size[0] = best_lean = best_size = 0
    lowest = n_wrong[0]
    for query, feature in zip(range(1, N_QUERIES, 2), order, strict=True):
        column, fresh_column = holdout.features[feature], fresh.features[feature]
        signal = int(feature < N_SIGNAL)
        step = 0
        for number, weight in ((query, -1), (query + 1, 1)):
            np.not_equal(score + weight * column >= 0, holdout.positive, out=losses[number])
            wrong = (fresh_score + weight * fresh_column >= 0) != fresh.positive
            n_wrong[number], n_wrong_fresh[number] = losses[number].sum(), wrong.sum()
            lean[number], size[number] = best_lean + weight * signal, best_size + 1
            if n_wrong[number] < lowest:
                lowest, step = n_wrong[number], weight
        if step:
            score, fresh_score = score + step * column, fresh_score + step * fresh_column
            best_lean, best_size = best_lean + step * signal, best_size + 1
    return Search(
        pack_losses(losses),
        n_wrong / N_SAMPLES,
        true_errors(model, lean, size),
        n_wrong_fresh / N_SAMPLES,
    )


def true_errors(
    model: Model, lean: NDArray[np.int64], size: NDArray[np.int64]
) -> NDArray[np.float64]:
    """``P(sign(w.x) is not the label)``, from the normal law of w.x times the label.

    Its mean is the bias times `lean`, the sum of the weights on features with signal, and its
    variance that of a feature times `size`, the squared norm of w.  At w = 0 it is 1/2, too.
    """
    from scipy.special import ndtr

    deviation = np.sqrt(model.variance * np.maximum(size, 1))
    errors: NDArray[np.float64] = ndtr(-model.bias * lean / deviation)
    return errors
