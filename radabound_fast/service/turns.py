"""Whose work is next: one step at a time is done for many teams, and each gets its turns.

A guard has one state, and all of a call is done under its lock but the reading of its rows, which
takes a fifth of the time at most.  So there is one lane for the guard and one for reports: more
would hardly answer more, and fairness is the order of the work.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

SERVICE = ""
# work that is expected to be shorter is done by the thread of the event loop: to pass it, and
# Python's lock, to another thread takes as long as a call
SHORT_SECONDS = 0.002
# at most in one step: jobs, and seconds of work; and how long jobs are gathered for it
TOGETHER = 64
_STEP_SECONDS = 0.05
_GATHER_SECONDS = 0.001


class Job(NamedTuple):
    """Work that waits for its turn."""

    team: str
    work: Any
    size: float  # compared with other work of the same step; 0: it is done alone
    done: asyncio.Future[Any]


class Turns:
    """Jobs that wait; next is the first of the team whose jobs took least time so far.

    A team that did not wait begins where the others are.  Jobs of the team `SERVICE` come first.
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[Job]] = {}  # of teams that wait
        self._seconds: dict[str, float] = {}
        self._reached = 0.0  # seconds of the team that was next last

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def add(self, job: Job) -> None:
        if job.team not in self._queues:
            self._queues[job.team] = deque()
            self._seconds[job.team] = max(self._seconds.get(job.team, 0.0), self._reached)
        self._queues[job.team].append(job)

    def next(self) -> Job | None:
        """Return the next job, which stays where it is; None: nobody waits."""
        if not self._queues:
            return None
        least = min(self._queues, key=self._seconds.__getitem__)
        return self._queues[SERVICE if SERVICE in self._queues else least][0]

    def take(self, job: Job) -> None:
        """Take the next job out of its queue."""
        self._reached = self._seconds[job.team]
        self._queues[job.team].popleft()
        if not self._queues[job.team]:
            del self._queues[job.team]

    def charge(self, team: str, seconds: float) -> None:
        """Add to the time that the jobs of a team took."""
        self._seconds[team] += seconds


class Lane:
    """Does the jobs of all teams in fair turns, one step at a time, in a thread.

    `together` does a list of works that have a size, in one step.
    """

    def __init__(self, together: Callable[[list[Any]], None] | None = None) -> None:
        self._together = together
        self._turns = Turns()
        self._running: asyncio.Task[None] | None = None
        self._rate = math.inf  # seconds that work of size 1 took of late
        self._began: float | None = None  # the present step

    @property
    def busy_seconds(self) -> float:
        """How long the present step has taken so far; 0 between two."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    async def do(self, team: str, work: Any, size: float = 0.0) -> Any:
        """Have work done when it is the team's turn: together with others if it has a size.

        Without one it is a function, and what that returns or raises is returned or raised.
        """
        loop = asyncio.get_running_loop()
        job = Job(team, work, size, loop.create_future())
        self._turns.add(job)
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        return await job.done

    async def end(self) -> None:
        """Wait for the present step, and for what waits, unless nobody waits for that any more."""
        if self._running is not None:
            await self._running

    async def _run(self) -> None:
        while self._turns:
            await self._gather()
            jobs, expected = self._take()
            if not jobs:
                continue
            self._began = time.monotonic()
            if expected < SHORT_SECONDS:
                result, error = self._step(jobs)
            else:
                result, error = await asyncio.to_thread(self._step, jobs)
            self._account(jobs, self.busy_seconds)
            self._began = None
            for job in jobs:
                if job.done.done():  # its client went away
                    continue
                if error is None:
                    job.done.set_result(result)
                else:
                    job.done.set_exception(error)
            await asyncio.sleep(0)

    async def _gather(self) -> None:
        """Let the loop read all sockets, until no more work arrives, for a moment."""
        n_before, loop = 0, asyncio.get_running_loop()
        until = loop.time() + _GATHER_SECONDS
        while n_before < (n := len(self._turns)) < TOGETHER and loop.time() < until:
            n_before = n
            await asyncio.sleep(0)

    def _take(self) -> tuple[list[Job], float]:
        """The jobs of the next step, and how long it is expected to take; inf: nobody knows."""
        jobs: list[Job] = []
        expected = 0.0
        while len(jobs) < TOGETHER and (job := self._turns.next()) is not None:
            seconds = self._rate * job.size if job.size else math.inf
            if jobs and expected + seconds > _STEP_SECONDS:
                break
            self._turns.take(job)
            if job.done.done():  # its client went away
                continue
            # so that the next one is another team's, until it is known how long it took
            self._turns.charge(job.team, self._provisional(job))
            jobs.append(job)
            expected += seconds
        return jobs, expected

    def _provisional(self, job: Job) -> float:
        return self._rate * job.size if job.size and self._rate < math.inf else 0.0

    def _account(self, jobs: list[Job], seconds: float) -> None:
        """Charge each job's team its part of what the step took."""
        size = sum(job.size for job in jobs)
        for job in jobs:
            part = job.size / size if size else 1.0
            self._turns.charge(job.team, seconds * part - self._provisional(job))
        if size:
            # what took long is expected to take long at once, and what takes less after a while
            rate = seconds / size
            before = rate if self._rate == math.inf else self._rate
            self._rate = max(rate, 0.8 * before + 0.2 * rate)

    def _step(self, jobs: list[Job]) -> tuple[Any, Exception | None]:
        try:
            if not jobs[0].size:
                return jobs[0].work(), None
            assert self._together is not None
            return self._together([job.work for job in jobs]), None
        except Exception as error:
            return None, error
