"""uvicorn, with one thing more: whoever is slow, or has no end of a head, is cut off."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.holdout import Holdout
from radabound_fast.service.answering import fault
from radabound_fast.service.app import MAX_BODY, Service
from radabound_fast.service.tokens import Tokens

with needs("serve"):
    import prometheus_client
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

BODY_SECONDS, HEAD_SECONDS = 20.0, 10.0
IDLE_SECONDS = 60.0
MOST_CONNECTIONS = 1000
MOST_HEAD = 2**16  # octets
# a call leaves none, and one look at all that it makes is enough for many
_GARBAGE = 20_000, 10, 10


class Protocol(HttpToolsProtocol):
    """A connection that ends if a head, a body, or the reading of a reply takes too long.

    Or if a head, or what is in a body that is none (chunks' sizes, trailers), is too long: all of
    a head is kept before anybody sees whose it is.
    """

    body_seconds = BODY_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._awaited: str | None = "head"  # what is to come next
        self._deadline: asyncio.TimerHandle | None = None
        self._n_kept = self._n_body = 0  # octets, of this message and of this piece

    def _within(self, seconds: float | None, then: Callable[[], None] | None = None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        if seconds is not None:
            self._deadline = self.loop.call_later(seconds, then or self._cut)

    def _cut(self) -> None:
        self.transport.abort()

    def _too_slow(self) -> None:
        """The body is not there yet."""
        if self.cycle.response_started:
            return self._cut()
        reason = f"the body took more than {self.body_seconds:g} seconds"
        body = fault(408, "TimeoutError", reason, "refused").body
        head = (
            "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return self._within(HEAD_SECONDS)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._within(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        before, self._is_new, self._n_body = self._awaited, False, 0
        super().data_received(data)
        if self._awaited is None or self._is_new:
            self._n_kept = 0
        else:  # as much beside a body as there is of it, for chunks
            self._n_kept += len(data) - 2 * self._n_body
            if self._n_kept > MOST_HEAD:
                return self._cut()
        if self._awaited is None:
            if self._deadline is not None:
                self._within(None)
        elif self._is_new or self._awaited != before:
            if self._awaited == "head":
                self._within(HEAD_SECONDS)
            else:
                self._within(self.body_seconds, self._too_slow)
        return None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._awaited, self._is_new = "head", True

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._awaited = "body"

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._n_body += len(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._awaited = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # a reply that nobody reads stays in memory
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            self._within(HEAD_SECONDS)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._within(HEAD_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._within(None)

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        super().connection_lost(exc)


def listening(host: str, port: int) -> socket.socket:
    """A socket of its own that listens; OSError names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None


def server_of(
    holdout: Holdout,
    tokens: Tokens,
    *,
    max_body: int = MAX_BODY,
    body_seconds: float = BODY_SECONDS,
    tls_cert: str | None = None,
    tls_key: str | None = None,
) -> uvicorn.Server:
    """What serves a holdout from when it is `run`, until SIGINT or SIGTERM.

    What waits is answered first; then the signal does what it does elsewhere.

    Parameters
    ----------
    holdout : Holdout
        Opened from a database; it is closed at the end.
    tokens : Tokens
    max_body, body_seconds
        Octets of a body, and how long it may take to come.
    tls_cert, tls_key : path, optional
        Files in PEM.
    """
    service = Service(holdout, tokens, max_body=max_body)
    connection = type("Connection", (Protocol,), {"body_seconds": body_seconds})
    config = uvicorn.Config(
        service.app,
        http=connection,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=int(IDLE_SECONDS),
        timeout_graceful_shutdown=10,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Run it, in a process that is there for nothing else."""
    # what is there now stays: to look through it for garbage takes 10 ms, in which all wait
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    # else a time of creation beside each count
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    server.run(sockets=[listener])
