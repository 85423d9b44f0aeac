"""Reports of a million answers: ``python -m benchmarks.serve_reports`` prints the table.

Twenty teams have 50,000 answers each, in one database.  While all ask for their reports at once,
and the owner for that of all answers, another client asks for /health every few milliseconds, each
time on a new connection.  With a number, so many answers in all.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from radabound_fast import DeclaredSearch
from radabound_fast.service.answering import Answering, Call
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import pack_body

M, N_TEAMS, N_BLOCK = 400, 20, 10_000
N_ANSWERS = 1_000_000
PAUSE = 0.005  # seconds between two looks at /health
NAMES = ["owner", *(f"team{n}" for n in range(N_TEAMS))]


def fill(path: Path, n_answers: int) -> None:
    """The database of a service that gave so many answers, to the teams in turn."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, M)
    search = DeclaredSearch.open(path, labels, 10**9, delta=0.1, durability="process")
    answering = Answering(search)
    names = [name for _ in range(0, n_answers, N_TEAMS * N_BLOCK) for name in NAMES[1:]]
    for block, name in enumerate(names):
        rows = labels ^ (rng.random((N_BLOCK, M)) < rng.uniform(0.1, 0.3, (N_BLOCK, 1)))
        octets = np.packbits(rows.astype(bool), axis=1, bitorder="little").tobytes()
        keys = list(range(block * N_BLOCK, (block + 1) * N_BLOCK))
        call = Call(Team(name), pack_body({"form": "bits", "keys": keys}, octets), True, None)
        answering.answer([call])
        assert call.reply is not None and call.reply.status == 200, call.reply
    answering.close()
    np.save(path.with_name("y.npy"), labels)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """Port and process of `radabound serve`."""
    tokens = folder / "tokens.txt"
    tokens.write_text("".join(f"{name} {name}-token-0123456789\n" for name in NAMES))
    command = [sys.executable, "-m", "radabound_fast", "serve", str(folder / "guard.db"), "--port",
               "0", "--labels", str(folder / "y.npy"), "--tokens", str(tokens)]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        found = re.match(r"http://127\.0\.0\.1:(\d+) ", process.stdout.readline())
        assert found is not None
        try:
            yield int(found[1]), process.pid
        finally:
            process.terminate()


def get(port: int, path: str, name: str | None = None) -> float:
    """Seconds that a request took."""
    headers = {} if name is None else {"Authorization": f"Bearer {name}-token-0123456789"}
    began = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=600)) as connection:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
    assert response.status == 200, body
    return time.perf_counter() - began


class Seen(NamedTuple):
    """Seconds of the requests, seconds of /health meanwhile, and octets of memory at the end."""

    requests: list[float]
    health: list[float]
    memory: int


def watched(port: int, pid: int, path: str, names: list[str]) -> Seen:
    """All names ask for a path at once."""
    requests: list[float] = []
    health: list[float] = []
    asking = [
        threading.Thread(target=lambda name=name: requests.append(get(port, path, name)))
        for name in names
    ]
    for thread in asking:
        thread.start()
    while any(thread.is_alive() for thread in asking) or len(health) < 100:
        health.append(get(port, "/health"))
        time.sleep(PAUSE)
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return Seen(requests, health, 1024 * int(kilobytes))


STEPS = [
    ("nothing", "/health", []),
    ("20 teams: their first reports", "/report", NAMES[1:]),
    ("20 teams: their reports again", "/report", NAMES[1:]),
    ("20 teams: their pages", "/", NAMES[1:]),
    ("the owner: the first report", "/report", NAMES[:1]),
    ("20 clients of the owner: the report again", "/report", 20 * NAMES[:1]),
    ("20 clients of the owner: the page", "/", 20 * NAMES[:1]),
]


def main(n_answers: int = N_ANSWERS) -> None:
    print(f"{n_answers:,} answers of {N_TEAMS} teams; load {os.getloadavg()[0]:.1f}\n")
    print("| what is asked for at once | the last has it after, s | /health: median, ms | p99, ms "
          "| longest, ms | memory at most, MB |\n|---|---|---|---|---|---|")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "guard.db", n_answers)
        with serving(folder) as (port, pid):
            for what, path, names in STEPS:
                seen = watched(port, pid, path, names)
                last = f"{max(seen.requests):.2f}" if names else ""
                median, p99, longest = 1e3 * np.quantile(seen.health, [0.5, 0.99, 1.0])
                print(
                    f"| {what} | {last} | {median:.1f} | {p99:.0f} | {longest:.0f} "
                    f"| {seen.memory / 1e6:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
