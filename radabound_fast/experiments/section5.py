"""Figures 1 to 6: where the greedy search is halted, and the answers until then.

The search asks for exact errors, so until the first refusal it asks the same whoever answers:
each search is run once, and its losses are replayed through a guard per bound and epsilon.
Without signal the variance only scales every score and changes no prediction: Figures 1 to 3
differ in delta alone and share their searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from radabound_fast.experiments import greedy
from radabound_fast.experiments.runner import Row, Task, any_off, column, share, summarised
from radabound_fast.guards.radabound import RadaBound

N_VECTORS = 32


class Figure(NamedTuple):
    """One of the paper's: data, probability of failure, and epsilons for each panel's bound.

    The epsilons are chosen so that the halts spread over the run.
    """

    model: greedy.Model
    delta: float
    epsilons: Mapping[str, Sequence[float]]


# variance and bias of the data, delta, and the epsilons of "bernstein" and of "mclt"
FIGURES = {
    number: Figure(greedy.Model(variance, bias), delta, {"bernstein": bernstein, "mclt": mclt})
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


def one_search(number: int, repeat: int) -> tuple[greedy.Search, int]:
    """A search of this figure, and the seed of the signs under which it is replayed."""
    first = _SEARCHES[experiment(number)][0]
    rng = np.random.default_rng([repeat, first])
    return greedy.search(FIGURES[first].model, rng), int(rng.integers(2**63))


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


def answered(search: greedy.Search, number: int, bound: str, epsilon: float, seed: int) -> int:
    """How many of the search's queries the guard answers."""
    delta = FIGURES[number].delta
    guard = RadaBound(
        greedy.N_SAMPLES, epsilon=epsilon, delta=delta, n_vectors=N_VECTORS, bound=bound, seed=seed
    )
    return len(guard.query_many(search.losses))


def summary(number: int, rows: Sequence[Row]) -> list[Row]:
    """A row for each bound and epsilon, over the repeats of a figure."""
    delta = FIGURES[number].delta

    def line(runs: Sequence[Row]) -> Row:
        n_answered, shares = column(runs, "answered"), share(column(runs, "off"))
        # the query that was withheld; a run that never halts counts as 1,000
        halts = [min(int(n) + 1, 2 * greedy.N_FEATURES) for n in n_answered]
        low, median, high = np.percentile(halts, [25, 50, 75], method="inverted_cdf")
        return {
            "delta": delta,
            "repeats": len(runs),
            "halt_mean": round(float(np.mean(halts)), 1),
            "halt_lower_quartile": int(low),
            "halt_median": int(median),
            "halt_upper_quartile": int(high),
            "never_halted": sum(n == greedy.N_QUERIES for n in n_answered),
            **shares,
            "passes_delta": "yes" if float(shares["off"]) > delta else "no",
        }

    own = [row for row in rows if row["figure"] == number]
    return summarised(own, ("figure", "bound", "epsilon"), line)
