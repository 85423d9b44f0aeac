"""The service under load: ``python -m benchmarks.serve`` prints the table.

Clients that ask without a pause, each on its connection, against the service in a process of
its own: an echo of the same server, which reads a body and replies as long, and queries.  With
``--cores`` client and server have a core each, before all others (Linux, root).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from radabound_fast import DeclaredSearch, FixedSequence, GuessAndCheck, pack_losses
from radabound_fast.service.client import _new_key
from radabound_fast.service.wire import pack_body

CLIENTS, TURNS, SECONDS = 16, 5, 0.7
SIZES = (4000, 100_000)
TOKEN = "red-token-0123456789"
GUARDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "FixedSequence": (FixedSequence, {"epsilon": 0.08, "delta": 0.1}),
    "GuessAndCheck": (GuessAndCheck, {"epsilon": 0.1, "delta": 0.1}),
    "DeclaredSearch": (DeclaredSearch, {"space": 10**9, "delta": 0.1}),
}


# ---- the service, in a process of its own ------------------------------------------------------


def serve(folder: str, m: int, name: str, durability: str) -> None:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from radabound_fast.service import server
    from radabound_fast.service.tokens import Tokens

    kind, parameters = GUARDS[name]
    labels = np.arange(m) % 2
    path = Path(folder)
    (path / "tokens.txt").write_text(f"red {TOKEN}\n")
    guard = kind.open(path / "guard.db", labels, durability=durability, **parameters)
    made = server.make_server(guard, Tokens(path / "tokens.txt"))
    reply = b'{"value": 0.25, "low": 0.23, "high": 0.27, "half_width": 0.02, "number": 123456}'

    async def echo(request: Request) -> Response:
        await request.body()
        return Response(reply, media_type="application/json")

    made.config.app.router.routes.append(Route("/echo", echo, methods=["POST"]))
    listener = server.listen("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    server.run(made, listener)


@contextlib.contextmanager
def serving(m: int, guard: str, durability: str, cores: bool) -> Iterator[int]:
    before = ["chrt", "-f", "5", "taskset", "-c", "1"] if cores else []
    # a disk that is one: in /tmp there may be none
    with tempfile.TemporaryDirectory(dir=Path(__file__).parents[1] / "build") as folder:
        command = [sys.executable, "-m", "benchmarks.serve", "--serve", folder]
        process = subprocess.Popen(
            [*before, *command, str(m), guard, durability], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()
            process.communicate()


# ---- the clients -------------------------------------------------------------------------------


class Client(asyncio.Protocol):
    """Sends the next request as soon as the last one has its reply."""

    def __init__(self, requests: Iterator[bytes], seconds: list[float], until: float) -> None:
        self._requests, self._seconds, self._until = requests, seconds, until
        self._reply = b""
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._reply += data
        head, blank, body = self._reply.partition(b"\r\n\r\n")
        if not blank or len(body) < int(re.search(rb"content-length: (\d+)", head)[1]):  # type: ignore[index]
            return
        now = time.perf_counter()
        assert head.startswith(b"HTTP/1.1 200"), self._reply
        self._seconds.append(now - self._began)
        self._reply = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()
            self.ended.set_result(None)


def requests_to(path: str, bodies: list[bytes], client: int) -> Iterator[bytes]:
    number = 0
    while True:
        body = bodies[number % len(bodies)]
        if b"KEY" in body[:80]:
            line, _, octets = body.partition(b"\n")
            key = str(client * 10_000_000 + number).encode()
            body = line.replace(b'"KEY"', key) + b"\n" + octets
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Idempotency-Key: {_new_key()}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        yield head.encode() + body
        number += 1


async def load(port: int, path: str, bodies: list[bytes]) -> list[float]:
    """How long each call took."""
    loop, seconds = asyncio.get_running_loop(), []  # type: ignore[var-annotated]
    until = time.perf_counter() + SECONDS
    clients = []
    for number in range(CLIENTS):
        asking = requests_to(path, bodies, number)
        _, client = await loop.create_connection(
            lambda asking=asking: Client(asking, seconds, until), "127.0.0.1", port
        )
        clients.append(client)
    await asyncio.gather(*(client.ended for client in clients))
    return seconds


def measured(port: int, path: str, bodies: list[bytes]) -> list[float]:
    """Calls a second, and the median and the 99th percentile of what one took, in ms.

    Of the best of some turns, since others use the disk too.
    """
    import uvloop

    turns = []
    for _ in range(TURNS):
        took = 1e3 * np.array(uvloop.run(load(port, path, bodies)))
        turns.append([len(took) / SECONDS, *np.quantile(took, [0.5, 0.99]).tolist()])
    return max(turns)


def bodies_of(m: int, guard: str) -> list[bytes]:
    rng = np.random.default_rng(0)
    rows = [(np.arange(m) % 2) ^ (rng.random(m) < 0.2) for _ in range(16)]
    head: dict[str, Any] = {"form": "bits"}
    head |= {"GuessAndCheck": {"guess": 0.2}, "DeclaredSearch": {"key": "KEY"}}.get(guard, {})
    octets = [pack_losses(row).words.view(np.uint8)[: -(-m // 8)].tobytes() for row in rows]
    return [pack_body(head, row) for row in octets]


def main(guards: list[str], cores: bool) -> None:
    if cores:
        os.sched_setaffinity(0, {0})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| m | what | durability | calls a second | of the echo | median, ms | p99, ms |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for m in SIZES:
        for guard in guards:
            for durability in ("power", "process"):
                with serving(m, guard, durability, cores) as port:
                    bodies = bodies_of(m, guard)
                    found = {path: measured(port, path, bodies) for path in ("/echo", "/query")}
                base = found["/echo"][0]
                for path, (rate, median, p99) in found.items():
                    if path == "/echo" and (guard, durability) != (guards[0], "power"):
                        continue
                    what, how = ("echo", "") if path == "/echo" else (guard, durability)
                    print(
                        f"| {m:,} | {what} | {how} | {rate:,.0f} | {rate / base:.2f} "
                        f"| {median:.1f} | {p99:.1f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", nargs=4, metavar=("DIR", "M", "GUARD", "DURABILITY"))
    parser.add_argument("--guard", choices=GUARDS, action="append")
    parser.add_argument("--cores", action="store_true")
    args = parser.parse_args()
    if args.serve:
        serve(args.serve[0], int(args.serve[1]), *args.serve[2:])
    else:
        main(args.guard or list(GUARDS), args.cores)
