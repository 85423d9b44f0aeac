"""uvicorn, with one thing more: whoever is slow to send or to read is cut off."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

from radabound_fast import Holdout
from radabound_fast._extras import needs
from radabound_fast.service.app import BODY_SECONDS, MAX_BODY, Service
from radabound_fast.service.tokens import Tokens

with needs("serve"):
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
IDLE_SECONDS = 60.0
MOST_CONNECTIONS = 1000
# how long two threads that both have something to do take turns: a call passes from one to the
# other and back
_SWITCH_SECONDS = 0.0005


class Protocol(HttpToolsProtocol):
    """A connection that ends if a head, or from then on a whole call, takes too long.

    `HEAD_SECONDS` for the head; then the app has its time for the body, the guard what it
    needs, and the client `HEAD_SECONDS` more to read the reply.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None

    def _within(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._cut)

    def _cut(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._within(HEAD_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self.cycle is None or self.cycle.response_complete:  # else one is at work before it
            self._within(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._within(None)
        super().on_headers_complete()

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
    """What serves a holdout from when it is run until it ends; what waits then is answered first.

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
    service = Service(holdout, tokens, max_body=max_body, body_seconds=body_seconds)
    config = uvicorn.Config(
        service.app,
        http=Protocol,
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


def serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Run it until SIGINT or SIGTERM, and then do what that does elsewhere."""
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(_SWITCH_SECONDS)
        server.run(sockets=[listener])
    finally:
        sys.setswitchinterval(before)
