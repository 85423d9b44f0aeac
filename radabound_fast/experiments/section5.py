"""Figures 1 to 6: where the greedy search of Section V is halted, and the answers until then.

The search asks for exact errors, so until the first refusal it asks the same whoever answers: it is
run once, and its losses are replayed.  Without signal the variance changes no prediction, so that
Figures 1 to 3 share their searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.experiments.runner import Row, Task, any_off, column, share, summarised
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.rows.packing import pack_losses

N_SAMPLES = 4000  # each of training set, holdout and fresh set
N_FEATURES = 500
N_SIGNAL = 50
N_QUERIES = 1 + 2 * N_FEATURES
N_VECTORS = 32


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


class Figure(NamedTuple):
    """One of the paper's: data, probability of failure, and epsilons for each panel's bound.

    The epsilons are chosen so that the halts spread over the run.
    """

    model: Model
    delta: float
    epsilons: Mapping[str, Sequence[float]]


# variance and bias of the data, delta, and the epsilons of "bernstein" and of "mclt"
FIGURES = {
    number: Figure(Model(variance, bias), delta, {"bernstein": bernstein, "mclt": mclt})
    for number, variance, bias, delta, bernstein, mclt in (
        (1, 1, 0.0, 0.10,
         (0.05, 0.055, 0.0575, 0.06, 0.0625), (0.04, 0.045, 0.0475, 0.05, 0.0525)),
        (2, 2, 0.0, 0.15,
         (0.0475, 0.0525, 0.055, 0.0575, 0.06), (0.0375, 0.0425, 0.045, 0.0475, 0.05)),
        (3, 8, 0.0, 0.20,
         (0.0475, 0.0525, 0.055, 0.0575, 0.06), (0.035, 0.04, 0.0425, 0.045, 0.0475)),
        (4, 4, 0.5, 0.10,
         (0.0425, 0.0475, 0.05, 0.0525, 0.055), (0.0325, 0.0375, 0.04, 0.0425, 0.045)),
        (5, 2, 0.5, 0.15,
         (0.0425, 0.0475, 0.049, 0.05, 0.0525), (0.03, 0.035, 0.0375, 0.0385, 0.041)),
        (6, 2, 0.25, 0.20,
         (0.0425, 0.0475, 0.05, 0.0525, 0.054), (0.03, 0.035, 0.0375, 0.04, 0.0415)),
    )
}  # fmt: skip


# the figures that each search is replayed for
_SEARCHES = {"figures-1-3": (1, 2, 3), "figure-4": (4,), "figure-5": (5,), "figure-6": (6,)}


def experiment(number: int) -> str:
    """The experiment whose searches a figure shows."""
    return next(name for name, figures in _SEARCHES.items() if number in figures)


def tasks(numbers: Sequence[int], repeats: int) -> list[Task]:
    """One cell per search that these figures need."""
    return [
        Task(name, f"{repeat:04}", partial(replay, name, repeat))
        for name in dict.fromkeys(map(experiment, numbers))
        for repeat in range(repeats)
    ]


def one_search(number: int, repeat: int) -> tuple[Search, int]:
    """A search of this figure, and the seed of the signs under which it is replayed."""
    first = _SEARCHES[experiment(number)][0]
    rng = np.random.default_rng([repeat, first])
    return greedy_search(FIGURES[first].model, rng), int(rng.integers(2**63))


def replay(name: str, repeat: int) -> list[Row]:
    """One search through the guards of its figures: a row for each, for each bound and epsilon."""
    search, seed = one_search(_SEARCHES[name][0], repeat)

    def row(number: int, bound: str, epsilon: float) -> Row:
        n = answered(search, number, bound, epsilon, seed)
        return {
            "figure": number,
            "bound": bound,
            "epsilon": epsilon,
            "repeat": repeat,
            "answered": n,
            "off": int(any_off(search.errors[:n], search.truths[:n], epsilon)),
        }

    return [
        row(number, bound, epsilon)
        for number in _SEARCHES[name]
        for bound, epsilons in FIGURES[number].epsilons.items()
        for epsilon in epsilons
    ]


def answered(search: Search, number: int, bound: str, epsilon: float, seed: int) -> int:
    """How many of the search's queries the guard answers."""
    delta = FIGURES[number].delta
    guard = RadaBound(
        N_SAMPLES, epsilon=epsilon, delta=delta, n_vectors=N_VECTORS, bound=bound, seed=seed
    )
    return len(guard.query_many(search.losses))


def summary(number: int, rows: Sequence[Row]) -> list[Row]:
    """A row for each bound and epsilon, over the repeats of a figure."""
    delta = FIGURES[number].delta

    def line(runs: Sequence[Row]) -> Row:
        n_answered, shares = column(runs, "answered"), share(column(runs, "off"))
        # the query that was withheld; a run that never halts counts as 1,000
        halts = [min(int(n) + 1, 2 * N_FEATURES) for n in n_answered]
        low, median, high = np.percentile(halts, [25, 50, 75], method="inverted_cdf")
        return {
            "delta": delta,
            "repeats": len(runs),
            "halt_mean": round(float(np.mean(halts)), 1),
            "halt_lower_quartile": int(low),
            "halt_median": int(median),
            "halt_upper_quartile": int(high),
            "never_halted": sum(n == N_QUERIES for n in n_answered),
            **shares,
            "passes_delta": "yes" if float(shares["off"]) > delta else "no",
        }

    own = [row for row in rows if row["figure"] == number]
    return summarised(own, ("figure", "bound", "epsilon"), line)


def draw(model: Model, rng: np.random.Generator) -> Sample:
    """A sample whose labels are fair coins."""
    positive = rng.random(N_SAMPLES) < 0.5
    features = rng.standard_normal((N_FEATURES, N_SAMPLES), dtype=np.float32)
    features *= np.float32(np.sqrt(model.variance))
    features[:N_SIGNAL] += np.where(positive, model.bias, -model.bias).astype(np.float32)
    return Sample(features, positive)


def greedy_search(model: Model, rng: np.random.Generator) -> Search:
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
