"""Contestants timed in turns: absolute times drift, ratios within a round do not."""

from __future__ import annotations

import gc
import os
import random
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Contestant:
    """A statement to time, and how many queries one execution of it handles."""

    name: str
    statement: str
    names: dict[str, Any] = field(repr=False)
    n_queries: float = 1


@dataclass(frozen=True)
class Outcome:
    """Nanoseconds per query, shape (n_rounds, n_contestants)."""

    names: list[str]
    times: NDArray[np.float64]

    def median(self, name: str) -> float:
        """Nanoseconds per query."""
        return float(np.median(self._of(name)))

    def ratios(self, name: str, over: str) -> NDArray[np.float64]:
        """Time of `name` over that of `over`, in each round."""
        return self._of(name) / self._of(over)

    def ratio(self, name: str, over: str) -> float:
        """Median over the rounds of the ratio of times."""
        return float(np.median(self.ratios(name, over)))

    def _of(self, name: str) -> NDArray[np.float64]:
        return self.times[:, self.names.index(name)]


class Race:
    """Runs every contestant once per round, in an order that is shuffled anew each time.

    The clock is that of the thread, which stands still while another process has the core;
    contestants that use threads need ``clock=time.perf_counter``.
    """

    def __init__(
        self,
        contestants: Sequence[Contestant],
        turn: float = 0.004,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.contestants = list(contestants)
        self._timers = [
            timeit.Timer(c.statement, timer=clock, globals=c.names) for c in self.contestants
        ]
        self._calls = [calls_for(timer, turn) for timer in self._timers]
        self._order = random.Random(0)
        self._rounds: list[list[float]] = []

    def round(self) -> None:
        """One turn each."""
        order = list(range(len(self.contestants)))
        self._order.shuffle(order)
        times = [0.0] * len(order)
        for i in order:
            n_queries = self._calls[i] * self.contestants[i].n_queries
            times[i] = self._timers[i].timeit(self._calls[i]) / n_queries * 1e9
        self._rounds.append(times)

    def run(self, n_rounds: int) -> Outcome:
        """So many rounds, and what came of all so far."""
        gc.collect()
        for _ in range(n_rounds):
            self.round()
        return self.outcome()

    def outcome(self) -> Outcome:
        return Outcome([c.name for c in self.contestants], np.array(self._rounds))


def calls_for(timer: timeit.Timer, turn: float) -> int:
    """How many executions fill a turn of so many seconds; at least one."""
    timer.timeit(1)  # lazy imports, page faults, a cold cache
    calls = 1
    while (seconds := timer.timeit(calls)) < turn / 4:
        calls *= 2
    return max(1, round(calls * turn / seconds))


CORES = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()


@contextmanager
def pinned(n_cores: int = 1) -> Iterator[None]:
    """This process on so many fixed cores, where the system can; and one thread in every BLAS."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        if not CORES:
            print("this system cannot pin a process: times may wander between cores")
            yield
            return
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(CORES)[-n_cores:])
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)
