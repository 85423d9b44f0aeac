"""A process that is told to end: SIGTERM, SIGHUP and SIGINT while it makes and queries guards."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from trial import Count, Fault, fork, in_child, wait_until

from radabound_fast import Ladder, RadaBound

N_SAMPLES = 300
LOSSES = np.arange(N_SAMPLES) % 3 == 0
KINDS: list[tuple[type, dict[str, Any]]] = [
    (RadaBound, {"epsilon": 0.9, "delta": 0.1}),
    (Ladder, {"step": 0.01, "delta": 0.1}),
]
ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def work_for_ever(kind: type, parameters: dict[str, Any], folder: Path, log: int) -> None:
    """Ask an open guard and make others; every answer is in the log."""
    for number in ENDS:
        signal.signal(number, signal.SIG_DFL)
    opened: Any = kind.open(folder / "open.db", durability="process")
    while True:
        opened.query(LOSSES)
        os.write(log, b"x")
        kind.open(folder / "new.db", N_SAMPLES, **parameters).close()
        (folder / "new.db").unlink()


def told_to_end(count: Count, folder: Path, times: int) -> None:
    log = folder / "log"
    while count.times < times:
        kind, parameters = random.choice(KINDS)
        in_child(lambda k=kind, p=parameters: k.open(folder / "open.db", N_SAMPLES, **p).close())
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        child = fork(lambda k=kind, p=parameters, f=file: work_for_ever(k, p, folder, f))
        os.close(file)
        wait_until(lambda: log.stat().st_size >= 2)
        time.sleep(random.uniform(0, 0.03))
        number = random.choice(ENDS)
        os.kill(child, number)
        status = os.waitpid(child, 0)[1]
        count.check(
            os.WIFSIGNALED(status) and os.WTERMSIG(status) == number,
            f"{number.name}: ended as {os.waitstatus_to_exitcode(status)}",
        )
        n_logged = log.stat().st_size
        found = in_child(lambda k=kind: k.open(folder / "open.db").n_answered)
        count.check(n_logged <= found <= n_logged + 1, f"{n_logged} answers, {found} counted")
        left = set(os.listdir(folder)) - {"open.db", "log", "new.db"}
        left -= {"new.db-wal", "new.db-shm"}  # of a whole one, which was open
        count.check(not left, f"{number.name}: left behind {sorted(left)}")
        for each in folder.iterdir():
            each.unlink()
        count.times += 1


FAULTS = [
    Fault(
        "SIGTERM, SIGHUP or SIGINT, which nobody handles, in a process that makes and asks",
        "it ends by that signal; every answer of an open guard is counted, and no part of a "
        "file is left",
        told_to_end,
        300,
        12,
    ),
]
