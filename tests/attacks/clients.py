"""What attacks are made of: connections to a port of this machine, counted, until an instant."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable

ADDRESS = "127.0.0.1"  # nothing here connects anywhere else
MOST_CONNECTIONS, MOST_OCTETS = 200_000, 2**36  # of one attack


class Over(Exception):
    """The attack has lasted as long, or sent as much, as it may."""


class Attacker:
    """Somebody who attacks a port of this machine.

    Parameters
    ----------
    port : int
    cafile : path, optional
        The certificate to trust; None where nothing speaks TLS.
    seconds : float
        The attack ends by itself after so long.
    token : str, optional
        The token of a team.
    """

    def __init__(
        self, port: int, cafile: str | None, seconds: float, token: str | None = None
    ) -> None:
        self.port, self.token = port, token
        self.counts: Counter[str] = Counter()
        self._trusted = cafile and ssl.create_default_context(cafile=cafile)
        self.until = time.monotonic() + seconds

    def count(self, what: str, n: int = 1) -> None:
        """Count something; Over at the end."""
        self.counts[what] += n  # a race of two threads loses a count now and then
        if (
            time.monotonic() > self.until
            or self.counts["connections"] > MOST_CONNECTIONS
            or self.counts["octets"] > MOST_OCTETS
        ):
            raise Over

    def connect(self, tls: bool = True) -> socket.socket:
        """A new connection."""
        self.count("connections")
        connection = socket.create_connection((ADDRESS, self.port), timeout=5)
        if not tls or not self._trusted:
            return connection
        try:
            return self._trusted.wrap_socket(connection, server_hostname=ADDRESS)
        except OSError:
            connection.close()
            raise

    def send(self, connection: socket.socket, octets: bytes) -> int:
        """How many octets of the first 64 KiB were taken within a second."""
        connection.settimeout(1)
        try:
            n_sent = connection.send(octets[: 2**16])
        except TimeoutError:
            n_sent = 0
        self.count("octets", n_sent)
        return n_sent

    def request(self, method: str, path: str, body: bytes = b"") -> Callable[..., None]:
        """A request that can be made again and again on a connection, with more headers."""
        token = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=30)
        if self._trusted:
            connection = http.client.HTTPSConnection(
                ADDRESS, self.port, timeout=30, context=self._trusted
            )

        def ask(**headers: str) -> None:
            if connection.sock is None:
                self.count("connections")
            self.count("requests")
            self.count("octets", len(body))
            try:
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                connection.request(method, path, body or None, token | named)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                raise
            self.count(f"status {response.status}")

        return ask

    def in_threads(self, n_threads: int, work: Callable[[], None]) -> None:
        """Do `work` in threads until the end, again and again, whatever fails."""

        def run() -> None:
            try:
                while True:
                    try:
                        work()
                    except (OSError, http.client.HTTPException):
                        self.count("failures")
                        time.sleep(0.01)
            except Over:
                pass

        threads = [threading.Thread(target=run, daemon=True) for _ in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, self.until + 1 - time.monotonic()))
