"""Attacks by clients without a token: time, connections, memory and logs."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from attacks.clients import Attacker

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
# the first octets of a ClientHello of 512: the rest never comes
HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(32)


def send_ahead(attacker: Attacker, request: bytes) -> None:
    """The same request without end on four connections, of which no reply is read."""

    def work() -> None:
        with contextlib.closing(attacker.connect()) as connection:
            ahead = b""
            while True:
                ahead = ahead or request * 1000
                ahead = ahead[attacker.send(connection, ahead) :]  # TLS repeats what it could not

    attacker.in_threads(4, work)


def pipelines(attacker: Attacker) -> None:
    """Requests without end, of which no reply is read."""
    send_ahead(attacker, GET)


def hold(attacker: Attacker, n: int, opening: bytes, each_second: bytes, tls: bool = True) -> None:
    """Keep so many connections open; one that is closed is opened again."""

    def work() -> None:
        held = []
        try:
            while True:
                while len(held) < n // 10:
                    connection = attacker.connect(tls)
                    held.append(connection)
                    if opening:
                        attacker.send(connection, opening)
                time.sleep(1)
                held = [one for one in held if _is_open(attacker, one, each_second)]
                attacker.count("rounds")
        finally:
            for connection in held:
                connection.close()

    attacker.in_threads(10, work)


def _is_open(attacker: Attacker, connection: socket.socket, octets: bytes) -> bool:
    """Whether the other end still has it open, once it got these octets too."""
    try:
        if octets:
            attacker.send(connection, octets)
        connection.settimeout(0.0)
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            if not connection.recv(4096):
                raise ConnectionResetError
    except OSError:
        connection.close()
        return False
    return True


def idle(attacker: Attacker) -> None:
    """A thousand connections that ask nothing."""
    hold(attacker, 1000, b"", b"")


def handshakes(attacker: Attacker) -> None:
    """TLS handshakes that never come to their end."""
    hold(attacker, 1100, HELLO, b"", tls=False)


def slow_heads(attacker: Attacker) -> None:
    """A thousand heads, of which an octet comes a second."""
    hold(attacker, 1000, b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"a")


def slow_bodies(attacker: Attacker) -> None:
    """A thousand bodies, of which an octet comes a second."""
    head = b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Length: 16777216\r\n\r\n"
    hold(attacker, 1000, head, b"a")


def long_heads(attacker: Attacker) -> None:
    """Heads of 130 kB."""
    head = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 130_000

    def work() -> None:
        with contextlib.closing(attacker.connect()) as connection:
            attacker.count("requests")
            left = head
            while left:
                left = left[attacker.send(connection, left) :]
            while connection.recv(4096):
                attacker.count("reads")

    attacker.in_threads(16, work)


def refused(attacker: Attacker) -> None:
    """Requests with a token that no team has, as fast as they are refused."""
    attacker.token = "nobody-has-this-token"

    def work() -> None:
        ask = attacker.request("GET", "/state")
        while True:
            ask()

    attacker.in_threads(16, work)


def malformed(attacker: Attacker) -> None:
    """What is no HTTP, and bodies that are too large, for a line in the log each."""
    head = b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"

    def work() -> None:
        for octets in (b"\0\1\2\r\n\r\n", head):
            with contextlib.closing(attacker.connect()) as connection:
                attacker.count("requests")
                attacker.send(connection, octets)
                connection.recv(4096)

    attacker.in_threads(16, work)
