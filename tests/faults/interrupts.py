"""Ctrl-C at random instants, once or twice in a row."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trial import Count, Fault, fork, in_child, wait_until

from radabound_fast import RadaBound, cli
from radabound_fast.experiments.thresholdout import Thresholdout


class Shooter:
    """Another process that sends SIGINT: a thread would wait for the GIL before the second."""

    def __init__(self) -> None:
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        target = os.getpid()
        self._process = fork(lambda: self._shoot(target, orders, reports))
        os.close(orders)
        os.close(reports)

    def _shoot(self, target: int, orders: int, reports: int) -> None:
        os.close(self._orders)
        while text := os.read(orders, 1 << 12):
            for seconds in json.loads(text):
                time.sleep(seconds)
                os.kill(target, signal.SIGINT)
            os.write(reports, b"x")

    def interrupts(self, call: Callable[[], Any], *after: float) -> bool:
        """Whether SIGINT broke into the call, so long after it began; else it was done before.

        There are one or two, the second so long after the first.  One that comes too late to
        interrupt anything is swallowed.
        """
        armed, broken = [True], True

        def interrupt(*_: object) -> None:
            if armed:
                raise KeyboardInterrupt

        handler = signal.signal(signal.SIGINT, interrupt)
        with contextlib.suppress(KeyboardInterrupt):  # the second, which may hit `finally`
            try:
                os.write(self._orders, json.dumps(after).encode())
                call()
                broken = False
            finally:
                armed.clear()
        armed.clear()
        os.read(self._reports, 1)
        signal.signal(signal.SIGINT, handler)
        return broken

    def end(self) -> None:
        os.close(self._orders)
        os.waitpid(self._process, 0)


# ---- query_many ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A guard with a call that takes some time."""

    name: str
    guard: type
    n_samples: int
    n_rows: int
    parameters: dict[str, Any]
    options: dict[str, Any]


RADABOUND = {"epsilon": 0.9, "delta": 0.1, "seed": 9}
NOISY = {"threshold": 0.5, "noise": 0.001, "budget": 10**6, "seed": 9}
CALLS = [
    Call("RadaBound", RadaBound, 1000, 20000, RADABOUND, {}),
    Call("RadaBound, two threads", RadaBound, 1000, 40000, RADABOUND, {"n_threads": 2}),
    Call("Thresholdout", Thresholdout, 64, 3000, NOISY, {}),
]


def drop_silently() -> None:
    """An interrupt that hits a destructor is dropped by Python, which says so on stderr."""
    sys.unraisablehook = lambda _: None


def interrupt_queries(count: Count, folder: Path, times: int) -> None:
    found = in_child(lambda: interrupt_all(folder, -(-times // (2 * len(CALLS)))))
    count.times, count.lost, count.note = found.times, found.lost, found.note


def interrupt_all(folder: Path, times: int) -> Count:
    drop_silently()
    count, shooter, n_broken = Count(), Shooter(), 0
    for call in CALLS:
        rows = np.random.default_rng(10).random((call.n_rows, call.n_samples)) < 0.3
        for opened in (False, True):
            n_broken += interrupt(count, shooter, call, rows, folder if opened else None, times)
    shooter.end()
    count.note = f"{n_broken} broke into the call, half of them twice"
    return count


def interrupt(
    count: Count, shooter: Shooter, call: Call, rows: np.ndarray, folder: Path | None, times: int
) -> int:
    """How many interrupts broke into the call, which the guard saw whole or not at all."""
    what = f"{call.name}, {'opened' if folder else 'in memory'}"

    def make(name: str) -> Any:
        if folder is None:
            return call.guard(call.n_samples, **call.parameters)
        path = folder / f"{name}-{call.name}-{times}.db"
        return call.guard.open(path, call.n_samples, durability="process", **call.parameters)

    def ask(guard: Any, rows: np.ndarray) -> Any:
        return guard.query_many(rows, guesses=np.full(len(rows), 0.3), **call.options)

    # states and next answers, with and without the call
    whole, expected = call.guard(call.n_samples, **call.parameters), {}
    for n_asked in (0, call.n_rows):
        before = whole._shared.progress()
        expected[tuple(before.tolist())] = repr(one(whole, rows[0]))
        whole._shared.resume(before)
        if n_asked == 0:
            start = time.perf_counter()
            ask(whole, rows)
            seconds = time.perf_counter() - start

    n_broken = 0
    for trial in range(times):
        guard = make(str(trial))
        after = [random.uniform(0, 1.2 * seconds)]
        if trial % 2:
            after.append(random.uniform(0, 0.0003))
        broken = shooter.interrupts(lambda g=guard: ask(g, rows), *after)
        guard.n_answered  # noqa: B018 (reads the database)
        state = tuple(guard._shared.progress().tolist())
        count.check(state in expected, f"{what}: half counted, {state[0]} of {call.n_rows}")
        count.check(broken or state[0] == call.n_rows, f"{what}: a call that returned is lost")
        answer = repr(one(guard, rows[0]))
        count.check(answer == expected.get(state), f"{what}: the next answer is {answer}")
        count.times += 1
        n_broken += broken
    return n_broken


def one(guard: Any, losses: np.ndarray) -> Any:
    return guard.query(losses, guess=0.3)


# ---- the command line ------------------------------------------------------------------------


def audit_arguments(folder: Path, output: Path) -> list[str]:
    return [
        "audit", "--losses", str(folder / "losses.npy"), "--output", str(output),
        "--epsilon", "0.9", "--delta", "0.1", "--seed", "1", "--bound", "mclt",
        "--bound", "fixed-sequence",
    ]  # fmt: skip


def run_cli(arguments: list[str], begun: Path, errors: Path) -> None:
    """What `radabound` does from its first line on, with a file that shows when that was."""

    def interrupt(_: int, frame: Any) -> None:
        """Not outside of `main`, where this process has work of its own."""
        while frame is not None:
            frame = frame.f_back
            if frame is not None and frame.f_code is cli.main.__code__:
                raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    with open(os.devnull, "wb") as nowhere, open(errors, "wb") as said:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(said.fileno(), 2)
    drop_silently()
    begun.touch()
    os._exit(cli.main(arguments))


def interrupt_cli(count: Count, folder: Path, times: int) -> None:
    np.save(folder / "losses.npy", np.random.default_rng(11).random((15000, 500)) < 0.3)
    begun, errors, whole = folder / "begun", folder / "errors", folder / "whole.csv"
    start = time.perf_counter()
    in_child(lambda: cli.main([*audit_arguments(folder, whole), "--quiet"]))
    seconds, n_broken = time.perf_counter() - start, 0
    before = sorted([*os.listdir(folder), "begun", "errors"])
    while count.times < times:
        begun.unlink(missing_ok=True)
        output = folder / "output.csv"
        process = fork(lambda o=output: run_cli(audit_arguments(folder, o), begun, errors))
        wait_until(begun.exists)
        time.sleep(random.uniform(0, seconds))
        os.kill(process, signal.SIGINT)
        status = os.waitpid(process, 0)[1]
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            n_broken += 1
            count.check(code == cli.INTERRUPTED, f"exit code {code}")
        count.check(errors.read_bytes() == b"", f"said {errors.read_text()[-300:]!r}")
        if output.exists():
            count.check(output.read_bytes() == whole.read_bytes(), "an output that is not whole")
            output.unlink()
        elif code == 0:
            count.lost.append("done, and no output")
        left = sorted(os.listdir(folder))
        count.check(left == before, f"left behind {sorted(set(left) - set(before))}")
        count.times += 1
    count.note = f"{n_broken} broke in before it was done"


FAULTS = [
    Fault(
        "SIGINT in query_many, once or twice in a row: RadaBound on one thread and two, "
        "Thresholdout, in memory and opened",
        "KeyboardInterrupt or a whole call; nothing is half counted, and the next answer is right",
        interrupt_queries,
        1200,
        48,
    ),
    Fault(
        "SIGINT in `radabound audit`",
        "exit code 130 and not a word, or done; an output file is whole or not there",
        interrupt_cli,
        150,
        5,
    ),
]
