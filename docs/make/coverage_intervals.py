"""How often intervals of a fixed sequence miss, by simulation: they need counts alone, no signs.

A run is a sequence of queries that are independent of each other, where the union bound loses
least; it is a miss if the truth of any query is outside its interval (Result 18 without epsilon),
which has probability at most 2/5 of delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds import BOUNDS

SIZES = (30, 200, 1000, 4000)  # m
TRUTHS = (0.001, 0.02, 0.2, 0.5)
DELTAS = (0.1, 0.5)
KINDS = ("declared 0 or 1", "real-valued")
SHARE = 0.4  # of delta, for the union bound
N_QUERIES = 200


class Cell(NamedTuple):
    """Misses of all queries' intervals, of so many runs."""

    n_samples: int
    truth: float
    kind: str
    delta: float
    max_queries: int | None
    n_runs: int
    misses: int


def means_of(
    rng: np.random.Generator, m: int, truth: float, kind: str, *shape: int
) -> NDArray[np.float64]:
    """Means of m losses of this expectation: 0 or 1; or 0, 1/2 or 1."""
    if kind == KINDS[0]:
        return rng.binomial(m, truth, shape) / m
    ones = rng.binomial(m, truth / 2, shape)
    halves = rng.binomial(m - ones, truth / (1 - truth / 2))
    return (ones + 0.5 * halves) / m


def missed(
    means: NDArray[np.float64], m: int, truth: float, kind: str, delta: float, most: int | None
) -> NDArray[np.bool_]:
    """Of runs in rows of queries, in which some truth is outside its interval."""
    free = BOUNDS["fixed-sequence"].free(m, 0.5, delta, most)
    places = np.arange(1, means.shape[1] + 1)
    lows, highs = free.interval(means, places, kind == KINDS[0])
    outside: NDArray[np.bool_] = ((truth < lows) | (truth > highs)).any(1)
    return outside


def simulate(n_runs: int, stream: int = 0) -> Iterator[Cell]:
    """Every size, truth, kind and delta, with and without a number of queries."""
    cases = product(SIZES, TRUTHS, KINDS)
    for place, (m, truth, kind) in enumerate(cases):
        rng = np.random.default_rng([stream, place])
        means = means_of(rng, m, truth, kind, n_runs, N_QUERIES)
        for delta, most in product(DELTAS, (None, N_QUERIES)):
            misses = int(missed(means, m, truth, kind, delta, most).sum())
            yield Cell(m, truth, kind, delta, most, n_runs, misses)


def table(cells: list[Cell]) -> str:
    """Largest share of misses by size and kind, over truths and max_queries."""
    columns = [(kind, delta) for kind in KINDS for delta in DELTAS]
    lines = [
        "| m | " + " | ".join(f"{kind}, {delta:g}" for kind, delta in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for m in SIZES:
        shares = [
            max(
                cell.misses / cell.n_runs
                for cell in cells
                if (cell.n_samples, cell.kind, cell.delta) == (m, kind, delta)
            )
            for kind, delta in columns
        ]
        lines.append(f"| {m} | " + " | ".join(f"{share:.4f}" for share in shares) + " |")
    return "\n".join(lines)
