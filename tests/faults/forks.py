"""What a forked child can do to its parent's guard: nothing."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from trial import HANGS_AFTER, Count, Fault

from radabound_fast import RadaBound

N_SAMPLES = 2000
PARAMETERS = {"judged": N_SAMPLES, "epsilon": 0.9, "delta": 0.1, "seed": 8}
LOSSES = np.arange(N_SAMPLES) % 3 == 0
REFUSED = 77  # the exit code of a child that was refused everything


class Helper:
    """Another process, older than every guard, that does one thing at a time when told to."""

    def __init__(self, path: Path) -> None:
        self._questions, questions = multiprocessing.Pipe()
        self._child = os.fork()
        if self._child == 0:
            self._questions.close()
            with contextlib.suppress(EOFError):
                while True:
                    questions.send(getattr(self, questions.recv())(path))
            os._exit(0)
        questions.close()

    def ask(self, what: str) -> Any:
        self._questions.send(what)
        return self._questions.recv() if self._questions.poll(HANGS_AFTER) else "hangs"

    def end(self) -> None:
        self._questions.close()
        os.waitpid(self._child, 0)

    @staticmethod
    def is_shut_out(path: Path) -> bool:
        with contextlib.closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                return error.sqlite_errorcode == sqlite3.SQLITE_BUSY
            database.execute("ROLLBACK")
            return False

    @staticmethod
    def answer_and_crash(path: Path) -> int:
        """How many answers another process got, which died before it closed the database."""
        child = os.fork()
        if child == 0:
            guard = RadaBound.open(path)
            for _ in range(5):
                guard.query(LOSSES)
            os._exit(5)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @staticmethod
    def n_answered(path: Path) -> int:
        with RadaBound.open(path) as guard:
            return guard.n_answered


# ---- children --------------------------------------------------------------------------------


def try_everything(guard: RadaBound, path: Path) -> int:
    calls: list[Callable[[], Any]] = [
        lambda: guard.query(LOSSES),
        lambda: guard.query_many(LOSSES[np.newaxis]),
        lambda: guard.close(),
        lambda: RadaBound.open(path),
    ]
    n_refused = 0
    for call in calls:
        with contextlib.suppress(RuntimeError):
            call()
            continue
        n_refused += 1
    return REFUSED if n_refused == len(calls) else 1


def ends_at_once(guard: RadaBound, path: Path) -> None:
    os._exit(try_everything(guard, path))


def exits(guard: RadaBound, path: Path) -> None:
    sys.exit(try_everything(guard, path))


def drops_it(guard: RadaBound, path: Path) -> None:
    code = try_everything(guard, path)
    everything.clear()
    del guard
    gc.collect()
    sys.exit(code)


ENDS = (ends_at_once, exits, drops_it)
everything: list[RadaBound] = []  # the one reference that keeps the guard alive


def forked(end: Callable[[RadaBound, Path], None], path: Path, before: Callable[[], Any]) -> int:
    """The exit code of a child of a process that has the guard open; None if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(HANGS_AFTER))
        before()
        end(everything[0], path)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def nothing() -> None:
    pass


# ---- trials, in a process of their own: children end as Python ends ---------------------------


def try_children(count: Count, path: Path, helper: Helper) -> None:
    """Forked while the parent is idle, in the middle of a transaction, or of another thread's."""
    everything[:] = [RadaBound.open(path, durability="process", **PARAMETERS)]
    guard, n_answers = everything[0], 0
    for end in ENDS:
        count.check(forked(end, path, nothing) == REFUSED, f"idle, {end.__name__}: not refused")
        n_answers += 1
        count.check(guard.query(LOSSES).number == n_answers, "the parent does not go on")

        guard._record.begin()
        code = forked(end, path, nothing)
        count.check(code == REFUSED, f"in a transaction, {end.__name__}: not refused")
        count.check(helper.ask("is_shut_out") is True, f"{end.__name__}: the lock is gone")
        guard._record.commit(guard._shared.progress())
        count.check(helper.ask("is_shut_out") is False, f"{end.__name__}: the lock stays")

        many = np.tile(LOSSES, (3000, 1))
        thread = threading.Thread(target=guard.query_many, args=(many,))
        thread.start()
        code = forked(end, path, nothing)
        count.check(code == REFUSED, f"in a thread's call, {end.__name__}: not refused")
        thread.join()
        n_answers += len(many)
        count.check(helper.ask("n_answered") == n_answers, f"{end.__name__}: count lost")
        count.times += 3
    count.check(guard.query(LOSSES).number == n_answers + 1, "the parent does not go on")
    guard.close()
    everything.clear()
    count.check(helper.ask("n_answered") == n_answers + 1, "count lost")


def try_survivors(count: Count, path: Path, helper: Helper) -> None:
    """A child outlives the guard of its parent, and another process that opened it since."""
    n_answers = helper.ask("n_answered")
    for end in ENDS:
        everything[:] = [RadaBound.open(path)]
        everything[0].query(LOSSES)
        wait, go = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(wait, 1)
            end(everything[0], path)
        os.close(wait)
        everything.pop().close()
        n_answers += 1 + helper.ask("answer_and_crash")
        os.close(go)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        count.check(code == REFUSED, f"a survivor, {end.__name__}: not refused")
        count.check(
            helper.ask("n_answered") == n_answers, f"a survivor, {end.__name__}: count lost"
        )
        count.times += 1


def ask_in_pool(_: int) -> str:
    try:
        everything[0].query(LOSSES)
    except RuntimeError as error:
        return str(error)
    return "answered"


def try_pool(count: Count, path: Path) -> None:
    everything[:] = [RadaBound.open(path)]
    before = everything[0].n_answered
    with multiprocessing.get_context("fork").Pool(2) as pool:
        answers = pool.map_async(ask_in_pool, range(10)).get(HANGS_AFTER)
        pool.close()
        pool.join()
    count.check(all("os.fork" in answer for answer in answers), f"a pool: {answers}")
    count.check(everything[0].query(LOSSES).number == before + 1, "a pool: count lost")
    everything.pop().close()
    count.times += len(answers)


def children(count: Count, folder: Path, times: int) -> None:
    done = subprocess.run(
        # a fork beside threads is the very fault
        [sys.executable, "-W", "ignore::DeprecationWarning", __file__, str(folder), str(times)],
        capture_output=True,
        text=True,
    )
    if done.returncode or done.stderr:
        count.lost.append(done.stderr)
        return
    found = json.loads(done.stdout)
    count.times, count.lost = found["times"], found["lost"]


FAULTS = [
    Fault(
        "os.fork while a guard is open: children by every way to end, and pools",
        "the child is refused, also the same file anew; no hang; the parent goes on, its locks "
        "hold, and what others answered since is counted",
        children,
        440,
        22,
    ),
]

if __name__ == "__main__":
    inner, database = Count(), Path(sys.argv[1]) / "guard.db"
    while inner.times < int(sys.argv[2]):
        stranger = Helper(database)
        try_children(inner, database, stranger)
        try_survivors(inner, database, stranger)
        try_pool(inner, database)
        stranger.end()
        database.unlink()
    print(json.dumps(asdict(inner)))
