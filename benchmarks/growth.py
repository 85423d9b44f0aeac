"""Time against n_samples, n_vectors and n_rows: is it linear, and where are the edges?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.peers import Case
from benchmarks.race import Contestant, Outcome
from radabound_fast import PackedLosses

# at a tenth of the time, call overhead is what a decade of growth mostly pays for
OVERHEADS = 10


@dataclass(frozen=True)
class Point:
    """One call of query_many on rows of packed losses."""

    n_samples: int
    n_vectors: int
    n_rows: int

    def contestant(self) -> Contestant:
        rng = np.random.default_rng(5)
        n_words = -(-self.n_samples // 64)
        words = rng.integers(0, 2**64, (self.n_rows, n_words), np.uint64)
        if self.n_samples % 64:
            words[:, -1] &= np.uint64(2 ** (self.n_samples % 64) - 1)
        guard = Case(self.n_samples, self.n_vectors, 1).guard()
        names = {"ask": guard.query_many, "rows": PackedLosses(words, self.n_samples)}
        return Contestant(repr(self), "ask(rows)", names, self.n_rows)


# first and last value, and a point of the line at a value; signs come in strips of eight vectors
LINES: dict[str, tuple[int, int, Callable[[int], Point]]] = {
    "n_samples": (100, 10**7, lambda at: Point(at, 32, 64)),
    "n_vectors": (8, 800, lambda at: Point(4000, at, 1000)),
    "n_rows": (1, 10**7, lambda at: Point(100, 32, at)),
}


def line(axis: str, per_decade: int = 1) -> list[Point]:
    """Points at equal steps of the logarithm."""
    first, last, point = LINES[axis]
    n_steps = round(np.log10(last / first) * per_decade)
    return [point(round(first * 10 ** (step / per_decade))) for step in range(n_steps + 1)]


def decade_factors(race: Callable[[list[Contestant]], Outcome], axis: str) -> tuple[float, float]:
    """Largest and smallest time(10 x) / (10 time(x)), once past call overhead."""
    points = [Point(100, 1, 1), *line(axis)]
    per_query = np.median(race([point.contestant() for point in points]).times, axis=0)
    overhead, *times = per_query * [point.n_rows for point in points]
    factors = [
        after / (10 * before) for before, after in pairwise(times) if before >= OVERHEADS * overhead
    ]
    return max(factors), min(factors)
