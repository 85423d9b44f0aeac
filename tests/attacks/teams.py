"""Attacks by a team: what its token opens, as often and as large as it likes."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
from attacks.clients import Attacker
from attacks.strangers import send_ahead

from radabound_fast.service.wire import pack_body

MOST_BODY = 2**24
SMALL = 80  # rows of the holdout where the work is in many rows of predictions


def repeated(attacker: Attacker, n_threads: int, method: str, path: str, body: bytes = b"") -> None:
    """The same request on so many connections, again and again."""

    def work() -> None:
        ask = attacker.request(method, path, body)
        while True:
            ask()

    attacker.in_threads(n_threads, work)


def pipelines(attacker: Attacker) -> None:
    """Queries without end, of which no reply is read."""
    body = pack_body({"form": "bits", "key": 1}, bytes(SMALL // 8))
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacker.token}\r\n"
    send_ahead(attacker, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def reports(attacker: Attacker) -> None:
    """Twenty reports at once."""
    repeated(attacker, 20, "GET", "/report")


def reports_of_many(attacker: Attacker) -> None:
    """Twenty reports at once, on a million answers."""
    repeated(attacker, 20, "GET", "/report")


def pages(attacker: Attacker) -> None:
    """Twenty pages at once."""
    repeated(attacker, 20, "GET", "/")


def long_blocks(attacker: Attacker) -> None:
    """Blocks of 20,000 rows in 0.2 MB."""
    rows = np.random.default_rng(1).integers(0, 256, (20_000, SMALL // 8), np.uint8)
    repeated(attacker, 4, "POST", "/query_many", pack_body({"form": "bits"}, rows.tobytes()))


def large_blocks(attacker: Attacker) -> None:
    """Blocks of as many octets as a body may have."""
    body = pack_body({"form": "bits"}, bytes(MOST_BODY - 100))
    repeated(attacker, 9, "POST", "/query_many", body)


def held_bodies(attacker: Attacker) -> None:
    """Nine bodies of 16 MB whose last octet never comes."""
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacker.token}\r\n"
    opening = f"{head}Content-Length: {MOST_BODY}\r\n\r\n".encode() + bytes(MOST_BODY - 1)

    def work() -> None:
        with contextlib.closing(attacker.connect()) as connection:
            left = memoryview(opening)
            while left:
                left = left[attacker.send(connection, left) :]
            connection.settimeout(1)
            while True:
                attacker.count("waits")
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(4096):
                        return

    attacker.in_threads(9, work)


def empty_blocks(attacker: Attacker) -> None:
    """Blocks without a row under long keys, by a team that has no answers left."""
    body, numbers = pack_body({"form": "bits"}, b""), itertools.count()

    def work() -> None:
        ask = attacker.request("POST", "/query_many", body)
        while True:
            ask(Idempotency_Key=f"{next(numbers):0200d}")

    attacker.in_threads(16, work)
