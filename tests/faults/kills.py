"""`kill -9` at random instants, and what is found afterwards."""

from __future__ import annotations

import os
import random
import signal
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from trial import Count, Fault, fork, in_child, wait_until

from radabound_fast import RadaBound, SignMatrix
from radabound_fast.experiments.thresholdout import Thresholdout

N_SAMPLES, N_VECTORS, N_WRITERS = 32768, 32, 4
PER_WRITER = N_VECTORS // N_WRITERS
SEED = 1939
# a query is told from noise of 8 standard deviations by what it does to its vector's maximum
FIRST_HEIGHT, LAST_HEIGHT = 700, 8192
LONGEST_BLOCK = 16

BEGUN, RELEASED = 0, 1
LINE = struct.Struct("<qqqqdd")


class Line(NamedTuple):
    """What a writer writes before a call, and after it has returned."""

    kind: int
    first: int  # of the writer's own numbers
    n_rows: int
    n_answered: int  # of the guard, after the call
    value: float  # of the last row
    complexity: float


class Queries:
    """Query i of a writer raises the maximum of one vector: none is lost unnoticed.

    It errs on the first c samples where the vector is +1, so the vector's sum is c, and the
    next query for that vector has c + 1.
    """

    def __init__(self) -> None:
        signs = np.asarray(SignMatrix(N_SAMPLES, N_VECTORS, seed=SEED))
        self._plus = [np.flatnonzero(row > 0) for row in signs]

    def rows(self, writer: int, first: int, n_rows: int) -> np.ndarray:
        losses = np.zeros((n_rows, N_SAMPLES), np.uint8)
        for row, number in zip(losses, range(first, first + n_rows), strict=True):
            vector = PER_WRITER * writer + number % PER_WRITER
            row[self._plus[vector][: self.height(number)]] = 1
        return losses

    def height(self, number: int) -> int:
        return FIRST_HEIGHT + number // PER_WRITER


@dataclass(frozen=True)
class Kind:
    """A guard to be killed; `ask` returns (n_answered, last value, complexity) of a call."""

    guard: type
    parameters: dict[str, Any]
    ask: Callable[[Any, np.ndarray, int], tuple[int, float, float]]


def ask_radabound(guard: RadaBound, losses: np.ndarray, first: int) -> tuple[int, float, float]:
    if len(losses) == 1:
        answer = guard.query(losses[0])
        return answer.number, answer.value, answer.complexity
    answers = guard.query_many(losses, trace=first % 2 == 0)
    assert len(answers) == len(losses)
    return answers.n_answered, answers.values[-1], answers.complexity


def ask_thresholdout(
    guard: Thresholdout, losses: np.ndarray, first: int
) -> tuple[int, float, float]:
    # every fifth guess is wrong, and is answered with noise that depends on all calls before
    guesses = losses.mean(1) + 0.5 * (first % 5 == 0)
    if len(losses) == 1:
        answer = guard.query(losses[0], guess=guesses[0])
        return answer.number, answer.value, 0.0
    answers = guard.query_many(losses, guesses=guesses)
    assert len(answers) == len(losses)
    return answers.n_answered, answers.values[-1], 0.0


BOUND = {"epsilon": 0.95, "delta": 0.1, "n_vectors": N_VECTORS, "seed": SEED}
RADABOUND = Kind(RadaBound, {"judged": N_SAMPLES, **BOUND}, ask_radabound)
NOISY = {"threshold": 0.1, "noise": 0.001, "budget": 10**6, "seed": SEED}
THRESHOLDOUT = Kind(Thresholdout, {"judged": N_SAMPLES, **NOISY}, ask_thresholdout)


# ---- the writers -----------------------------------------------------------------------------


def write(target: Target, writer: int, log: Path, first: int) -> None:
    """Ask for ever; every answer is in the log before the next question."""
    chance = random.Random()
    guard = target.kind.guard.open(target.path, durability=chance.choice(["power", "process"]))
    if chance.random() < 0.3:  # so that some are killed while the log is written back
        guard._record._database.execute("PRAGMA wal_autocheckpoint = 10")
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        n_rows = chance.randint(2, LONGEST_BLOCK) if chance.random() < 0.1 else 1
        losses = target.queries.rows(writer, first, n_rows)
        os.write(file, LINE.pack(BEGUN, first, n_rows, 0, 0, 0))
        outcome = target.kind.ask(guard, losses, first)
        os.write(file, LINE.pack(RELEASED, first, n_rows, *outcome))
        first += n_rows


def read_log(log: Path) -> tuple[list[Line], Line | None]:
    """The calls that returned, and the one that was under way."""
    written = log.read_bytes() if log.exists() else b""
    # a kill may tear the last line: what it told is not known, so the call was under way
    whole = written[: len(written) // LINE.size * LINE.size]
    lines = [Line(*fields) for fields in LINE.iter_unpack(whole)]
    released = [line for line in lines if line.kind == RELEASED]
    return released, lines[-1] if lines and lines[-1].kind == BEGUN else None


def kill(process: int) -> bool:
    """Whether it was alive until now."""
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def kill_all(count: Count, writers: list[int], logs: list[Path]) -> None:
    if random.random() < 0.7:  # else while they open the database, or mend it
        wait_until(lambda: all(log.exists() for log in logs))
    time.sleep(random.uniform(0, 0.03))
    for process in writers:
        os.kill(process, signal.SIGKILL)
    count.times += 1
    for process in writers:
        count.check(os.WIFSIGNALED(os.waitpid(process, 0)[1]), "a writer failed before its kill")


def kill_one_by_one(count: Count, writers: list[int], logs: list[Path]) -> None:
    wait_until(lambda: all(log.exists() for log in logs))
    alive = list(zip(writers, logs, strict=True))
    random.shuffle(alive)
    while alive:
        time.sleep(random.uniform(0, 0.01))
        count.check(kill(alive.pop()[0]), "a writer failed before its kill")
        count.times += 1
        before = [log.stat().st_size for _, log in alive]
        went_on = not alive or wait_until(
            lambda sizes=before: any(
                log.stat().st_size > size + LINE.size
                for (_, log), size in zip(alive, sizes, strict=True)
            )
        )
        count.check(went_on, "the others hang after the death of one")


# ---- what is found ---------------------------------------------------------------------------


class Call(NamedTuple):
    writer: int
    line: Line


def orders(
    released: list[Call], under_way: list[Call], first: int, last: int
) -> Iterator[list[Call]]:
    """Every order in which the guard may have counted numbers `first` + 1 to `last`.

    All that was released stands at its number; the rest are calls under way, any of them.
    """
    placed = sorted(released, key=lambda call: call.line.n_answered)
    for n_counted in range(len(under_way) + 1):
        for chosen in permutations(under_way, n_counted):
            order, at, waiting = [], first, list(chosen)
            for call in [*placed, None]:
                start = last if call is None else call.line.n_answered - call.line.n_rows
                while waiting and at < start:
                    order.append(waiting[0])
                    at += waiting.pop(0).line.n_rows
                if at != start:
                    break
                if call is not None:
                    order.append(call)
                    at = call.line.n_answered
            else:
                if not waiting:
                    yield order


def replays(
    kind: Kind, replay: Any, queries: Queries, order: list[Call], found: np.ndarray
) -> bool:
    """Whether calls in this order give all released answers, and the state that was found."""
    for writer, line in order:
        outcome = kind.ask(replay, queries.rows(writer, line.first, line.n_rows), line.first)
        if line.kind == RELEASED and outcome != line[3:]:
            return False
    return replay._shared.progress().tolist() == found.tolist()


class Target:
    """A database to be attacked, and a replay in memory of all that was asked of it."""

    def __init__(self, kind: Kind, path: Path, queries: Queries) -> None:
        self.kind, self.path, self.queries = kind, path, queries
        self.replay = kind.guard(**kind.parameters)
        self.first_numbers = [0] * N_WRITERS
        self._kept: list[Any] = []
        in_child(lambda: kind.guard.open(path, **kind.parameters).close())

    def writers(self, logs: list[Path]) -> list[int]:
        return [
            fork(lambda w=writer: write(self, w, logs[w], self.first_numbers[w]))
            for writer in range(N_WRITERS)
        ]

    def state(self) -> np.ndarray:
        """As a fresh process finds it, which does not always live to close it."""
        return in_child(self._open_and_read, crash=True)

    def _open_and_read(self) -> np.ndarray:
        guard = self.kind.guard.open(self.path)
        if random.random() < 0.5:
            self._kept.append(guard)  # so that the database's log stays, and grows
        return guard._shared.progress()

    def check(self, count: Count, logs: list[Path], found: np.ndarray) -> int:
        """Check what was found against the logs; returns how many answers were released."""
        released, under_way = [], []
        for writer, log in enumerate(logs):
            returned, begun = read_log(log)
            released += [Call(writer, line) for line in returned]
            under_way += [Call(writer, begun)] if begun else []
        before = self.replay._shared.progress()
        for order in orders(released, under_way, int(before[0]), int(found[0])):
            if replays(self.kind, self.replay, self.queries, order, found):
                for writer, line in order:
                    self.first_numbers[writer] = line.first + line.n_rows
                break
            self.replay._shared.resume(before)
        else:
            count.lost.append(
                f"{len(released)} released calls and {len(under_way)} under way do not explain "
                f"{found[0] - before[0]} counted queries"
            )
        return sum(call.line.n_rows for call in released)


def kill_writers(kind: Kind, count: Count, folder: Path, times: int) -> None:
    queries, n_databases, n_released = Queries(), 0, 0
    target = Target(kind, folder / "0.db", queries)
    logs = [folder / f"{writer}.log" for writer in range(N_WRITERS)]
    while count.times < times and not count.lost:
        for log in logs:
            log.unlink(missing_ok=True)
        random.choice([kill_all, kill_one_by_one])(count, target.writers(logs), logs)
        n_released += target.check(count, logs, target.state())
        if queries.height(max(target.first_numbers)) > LAST_HEIGHT - 1000:
            n_databases += 1  # the old one's queries could not be told apart any more
            target = Target(kind, folder / f"{n_databases}.db", queries)
    count.note = f"{n_released:,} answers released"


def kill_radabound(count: Count, folder: Path, times: int) -> None:
    kill_writers(RADABOUND, count, folder, times)


def kill_thresholdout(count: Count, folder: Path, times: int) -> None:
    kill_writers(THRESHOLDOUT, count, folder, times)


FAULTS = [
    Fault(
        "kill -9 of four writers on one RadaBound, all at once or one after the other",
        "every released answer is counted, no number is given twice, and the state is that of a "
        "serial replay of what was released and of calls under way",
        kill_radabound,
        1000,
        12,
    ),
    Fault(
        "the same with Thresholdout",
        "the same, with the state of its random numbers",
        kill_thresholdout,
        400,
        8,
    ),
]
