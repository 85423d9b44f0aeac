"""A service under attack, with or without a proxy in front, and a team that asks meanwhile."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from proxies import in_front
from serving import TOKENS, Running, octets_of, tokens_file

from radabound_fast.service.wire import pack_body

OTHER_ADDRESS = "127.0.0.2"  # the others': a proxy limits each address
PAUSE = 0.05  # seconds between two calls of the others
BLOCK = 20_000  # answers of a call that fills the record


@contextlib.contextmanager
def service(folder: Path, labels: Any, options: tuple[str, ...]) -> Iterator[Running]:
    """`radabound serve` in a process of its own."""
    np.save(folder / "y.npy", labels)
    command = [sys.executable, "-m", "radabound_fast", "serve", folder / "guard.db", "--port", "0",
               "--labels", folder / "y.npy", "--tokens", tokens_file(folder), *options]  # fmt: skip
    with (
        open(folder / "service.log", "wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            found = re.match(r"http://127\.0\.0\.1:(\d+) ", process.stdout.readline())
            if found is None:
                raise OSError((folder / "service.log").read_text()[-2000:])
            running = Running(int(found[1]))
            running.pid = process.pid
            yield running
        finally:
            process.kill()


class Others(threading.Thread):
    """A team that sends one request after another, each on a new connection from another address.

    Attributes
    ----------
    waits : list of float
        Seconds that each call took that was answered.
    failures : list of str
        What the others got.
    """

    def __init__(self, front: Running, method: str, path: str, body: bytes = b"") -> None:
        super().__init__(daemon=True)
        self.waits: list[float] = []
        self.failures: list[str] = []
        self._front, self._ended = front, threading.Event()
        self._request = method, path, body or None

    def run(self) -> None:
        while not self._ended.wait(PAUSE):
            began = time.monotonic()
            outcome = self._ask()
            if outcome == "200":
                self.waits.append(time.monotonic() - began)
            else:
                self.failures.append(outcome)

    def _ask(self) -> str:
        connection = self._front.connection()
        connection.source_address = (OTHER_ADDRESS, 0)
        token = {"Authorization": f"Bearer {TOKENS['blue']}"}
        with contextlib.closing(connection):
            try:
                connection.request(*self._request, token)
                return str(connection.getresponse().status)
            except (OSError, http.client.HTTPException) as error:
                return type(error).__name__

    def end(self) -> None:
        self._ended.set()
        self.join()


def memory(pid: int, which: str) -> int:
    """Octets of a process and its children: "VmRSS" now, "VmHWM" at the highest."""
    tasks = Path(f"/proc/{pid}/task")
    children = [
        int(one) for task in tasks.iterdir() for one in (task / "children").read_text().split()
    ]
    (kilobytes,) = re.findall(rf"{which}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) * 1024 + sum(memory(child, which) for child in children)


def on_disk(folder: Path, names: str) -> int:
    """Octets of the files below a folder whose names match."""
    return sum(path.stat().st_size for path in folder.rglob(names))


@dataclass(frozen=True)
class Attack:
    """A row of the table.

    Parameters
    ----------
    run : callable
        Gets an `Attacker`; its docstring names it in the table.
    team : str, optional
        Whose token it has.
    serve : tuple of str
        Options of `radabound serve`.
    n_samples : int
    key : int, optional
        What the others ask about, if the guard needs a key.
    n_answers, whose : int, str
        Before the attack: answers, a key each, and the team that has them.
    """

    run: Callable[[Any], None]
    team: str | None = None
    serve: tuple[str, ...] = ("--guard", "fixed-sequence", "--epsilon", "0.1", "--delta", "0.1")
    n_samples: int = 4000
    key: int | None = None
    n_answers: int = 0
    whose: str = "owner"


class Outcome(NamedTuple):
    """What an attack cost the others, and the machine: octets are those beyond the ones before."""

    counts: dict[str, int]
    seconds: float
    waits: list[float]
    health: list[float]
    failures: list[str]
    memory: int
    logs: int
    database: int


def attacked(attack: Attack, proxy: str | None, seconds: float, folder: Path) -> Outcome:
    """Run an attack of so many seconds against a service of its own."""
    labels = np.random.default_rng(1).integers(0, 2, attack.n_samples)
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(service(folder, labels, attack.serve))
        front = served
        if proxy is not None:
            front = stack.enter_context(in_front(proxy, folder, served.port))
        fill(served, attack, labels)
        head = {"form": "bits"} | ({} if attack.key is None else {"key": attack.key})
        others = Others(front, "POST", "/query", pack_body(head, octets_of(labels)))
        health = Others(front, "GET", "/health")
        others.start()
        health.start()
        time.sleep(0.3)

        def costs(which: str) -> list[int]:
            pids = {served.pid, front.pid}
            return [sum(memory(pid, which) for pid in pids), on_disk(folder, "*.log"),
                    on_disk(folder, "guard.db*")]  # fmt: skip

        before, began = costs("VmRSS"), time.monotonic()
        name = f"{attack.run.__module__}.{attack.run.__name__}"
        token = "" if attack.team is None else TOKENS[attack.team]
        done = subprocess.run(
            [sys.executable, "-m", "attacks.attack", name, str(front.port), front.cafile or "",
             str(seconds), token],
            stdout=subprocess.PIPE, text=True, check=True, timeout=seconds + 60,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        lasted = time.monotonic() - began
        others.end()
        health.end()
        failures = others.failures + [f"/health: {failure}" for failure in health.failures]
        grown = [now - then for now, then in zip(costs("VmHWM"), before, strict=True)]
        counts = json.loads(done.stdout)
        return Outcome(counts, lasted, others.waits, health.waits, failures, *grown)


def fill(served: Running, attack: Attack, labels: Any) -> None:
    """Answers of a team, a key each, so that the record is long."""
    rng = np.random.default_rng(2)
    for first in range(0, attack.n_answers, BLOCK):
        rows = rng.random((BLOCK, attack.n_samples)) < 0.3
        head = {"form": "bits", "keys": list(range(first, first + BLOCK))}
        status, _ = served.post("/query_many", head, octets_of(rows ^ (labels == 1)), attack.whose)
        if status != 200:
            raise OSError(f"the record was not filled: {status}")
