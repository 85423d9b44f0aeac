"""What it costs to have every answer on disk, in the same minutes on the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from radabound_fast import RadaBound

N_SAMPLES, N_VECTORS, BLOCK_ROWS = 4000, 32, 4096
PARAMETERS = {"epsilon": 0.9, "delta": 0.1, "n_vectors": N_VECTORS, "seed": 13}
PLACES = ("in memory", "process", "power")


def seconds_of(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def costs(folder: Path, rounds: int = 25) -> dict[str, tuple[float, float]]:
    """For each place: microseconds of a single query, and of a row in a block; medians.

    The places take turns, so that what else the machine does hits them alike.
    """
    losses = np.random.default_rng(14).random((BLOCK_ROWS, N_SAMPLES)) < 0.3
    guards = {
        place: RadaBound(N_SAMPLES, **PARAMETERS)
        if place == "in memory"
        else RadaBound.open(folder / f"{place}.db", N_SAMPLES, durability=place, **PARAMETERS)
        for place in PLACES
    }
    single: dict[str, list[float]] = {place: [] for place in PLACES}
    block: dict[str, list[float]] = {place: [] for place in PLACES}
    for _ in range(rounds):
        for place, guard in guards.items():
            block[place].append(seconds_of(lambda g=guard: g.query_many(losses)))
            single[place] += [seconds_of(lambda g=guard, r=row: g.query(r)) for row in losses[:50]]
    for guard in (guards["process"], guards["power"]):
        guard.close()
    return {
        place: (1e6 * median(single[place]), 1e6 * median(block[place]) / BLOCK_ROWS)
        for place in PLACES
    }
