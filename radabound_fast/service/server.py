"""uvicorn; what keeps slow and hostile clients off is a reverse proxy in front of it."""

from __future__ import annotations

import gc
import socket

from radabound_fast._extras import needs
from radabound_fast.guards.base import Guard
from radabound_fast.service.app import MAX_BODY, Service
from radabound_fast.service.tokens import Tokens

with needs("serve"):
    import prometheus_client
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS = 60
MOST_CONNECTIONS = 1000
# after a signal to end: requests that have not arrived by then get a 503
END_SECONDS = 3
MOST_HEAD = 2**16  # octets
# requests make no reference cycles, so collect rarely
_GC_THRESHOLDS = 20_000, 10, 10


class Protocol(H11Protocol):
    """uvicorn's, which ends a connection that sends more ahead of its replies than a head may have.

    uvicorn answers one request of a connection at a time, and would read more with every body.
    """

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if len(self.conn.trailing_data[0]) > MOST_HEAD:
            self.transport.abort()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; OSError names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None


def make_server(guard: Guard, tokens: Tokens, *, max_body: int = MAX_BODY) -> uvicorn.Server:
    """A server of an opened guard, which answers from `run` until SIGINT or SIGTERM.

    Calls that wait are answered first, and the guard is closed; then the signal takes its usual
    effect.  A body has at most `max_body` octets.
    """
    service = Service(guard, tokens, max_body=max_body)
    config = uvicorn.Config(
        service.app,
        http=Protocol,
        h11_max_incomplete_event_size=MOST_HEAD,
        ws="none",
        lifespan="on",
        log_level="error",  # below it strangers write lines at will
        access_log=False,
        server_header=False,
        date_header=False,
        # from loopback alone: the address of a refused client behind a proxy, for the log
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1,::1",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=END_SECONDS,
    )
    return uvicorn.Server(config)


def run(server: uvicorn.Server, listener: socket.socket) -> None:
    """Run a server in a process that does nothing else."""
    # what exists now stays: to search it for garbage takes 10 ms, in which nobody is answered
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    # else each count comes with the time of its creation
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    server.run(sockets=[listener])
