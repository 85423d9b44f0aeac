"""uvicorn as it is; what keeps slow and hostile clients off is a reverse proxy in front of it."""

from __future__ import annotations

import gc
import socket

from radabound_fast._extras import needs
from radabound_fast.holdout import Holdout
from radabound_fast.service.app import MAX_BODY, Service
from radabound_fast.service.tokens import Tokens

with needs("serve"):
    import prometheus_client
    import uvicorn

IDLE_SECONDS = 60
MOST_CONNECTIONS = 1000
MOST_HEAD = 2**16  # octets
# a call leaves none, and one look at all that it makes is enough for many
_GARBAGE = 20_000, 10, 10


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
    max_body : int
        Octets of a body.
    tls_cert, tls_key : path, optional
        Files in PEM.
    """
    service = Service(holdout, tokens, max_body=max_body)
    config = uvicorn.Config(
        service.app,
        # one request of a connection at a time: those that it sends ahead stay unread
        http="h11",
        h11_max_incomplete_event_size=MOST_HEAD,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
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
