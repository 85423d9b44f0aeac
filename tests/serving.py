"""A service for the tests: in a thread of this process, or as `radabound serve` itself."""

import atexit
import contextlib
import functools
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

for package in ("uvicorn", "starlette", "prometheus_client", "jinja2"):
    pytest.importorskip(package, reason="the extra serve is not installed")

from radabound_fast.service.app import MAX_BODY  # noqa: E402
from radabound_fast.service.client import RemoteGuard  # noqa: E402
from radabound_fast.service.server import listen, make_server  # noqa: E402
from radabound_fast.service.tokens import Tokens  # noqa: E402
from radabound_fast.service.wire import pack_body  # noqa: E402

TOKENS = {name: f"{name}-token-0123456789" for name in ("owner", "red", "blue", "small")}
A_DAY = 5  # answers for "small"


def tokens_file(folder, lines=None):
    path = Path(folder) / "tokens.txt"
    if lines is None:
        lines = [f"{name} {token}" for name, token in TOKENS.items()]
        lines[-1] += f" {A_DAY}"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


class Running:
    """Where a service listens, and how to ask it."""

    def __init__(self, port, cafile=None):
        self.port, self.cafile = port, cafile
        self.url = f"{'https' if cafile else 'http'}://127.0.0.1:{port}"

    def remote(self, team="red", **more):
        return RemoteGuard(self.url, token=TOKENS[team], cafile=self.cafile, **more)

    def connection(self):
        """A connection of HTTP, with TLS where there is a certificate to trust."""
        if self.cafile is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        trusted = ssl.create_default_context(cafile=self.cafile)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=trusted)

    def send(self, method, path, body=None, team="red", **headers):
        """The status, the headers and the body of a reply."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if team is not None:
            named["Authorization"] = f"Bearer {TOKENS[team]}"
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read()

    def get(self, path, team="red"):
        status, _, body = self.send("GET", path, team=team)
        return status, json.loads(body)

    def post(self, path, head, octets, team="red", **headers):
        status, _, body = self.send("POST", path, pack_body(head, octets), team, **headers)
        return status, json.loads(body)


@contextlib.contextmanager
def in_thread(guard, folder, tls=(None, None), lines=None, **options):
    """A service of an opened guard, which it closes; it may speak TLS, as a proxy would."""
    listener = listen("127.0.0.1", 0)
    server = make_server(guard, Tokens(tokens_file(folder, lines)), **options)
    server.config.ssl_certfile, server.config.ssl_keyfile = tls
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Running(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextlib.contextmanager
def serve(folder, kind, *judged, lines=None, max_body=MAX_BODY, **parameters):
    """A service in a thread of a guard of this kind, in the database ``g.db``."""
    guard = kind.open(folder / "g.db", *judged, **parameters)
    with in_thread(guard, folder, lines=lines, max_body=max_body) as running:
        yield running


def arguments(folder, labels=None, *options):
    """Arguments of ``radabound serve`` on ``g.db``, for these labels or those saved before."""
    if labels is not None:
        np.save(folder / "y.npy", labels)
    tokens = folder / "tokens.txt" if (folder / "tokens.txt").exists() else tokens_file(folder)
    return ["serve", str(folder / "g.db"), "--labels", str(folder / "y.npy"), "--tokens",
            str(tokens), "--port", "0", *map(str, options)]  # fmt: skip


# starts services, each in a child of its own: what takes a second is imported once
NURSERY = """
import json, os, signal, sys, threading
import radabound_fast.service.server
from radabound_fast import cli
from radabound_fast.service import answering
from radabound_fast.store import ledger

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def dying(where):
    commit, answer = ledger.Ledger._commit, answering.Answering.answer

    def committing(ledger, progress):
        if progress is not None and where == "before the commit":
            ledger._rows("UPDATE guard SET state = state")
            die()
        commit(ledger, progress)
        if progress is not None and where == "after the commit":
            die()

    def answers(service, calls):
        answer(service, calls)
        if where == "after the reply":
            threading.Timer(0.2, die).start()

    ledger.Ledger._commit, answering.Answering.answer = committing, answers

for line in sys.stdin:
    if not os.fork():
        print(os.getpid(), flush=True)
        arguments, where = json.loads(line)
        if where is not None:
            dying(where)
        os._exit(cli.main(arguments))
    _, status = os.wait()
    print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""


@functools.cache
def nursery():
    """What starts services; it ends with the tests."""
    process = subprocess.Popen(
        [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)
    return process


class Command:
    """`radabound serve` in processes of its own, one after the other, which may be killed."""

    def __init__(self, folder, labels, *options):
        self.folder, self.options = Path(folder), options
        np.save(self.folder / "y.npy", labels)
        self.tokens, self.port, self.pid = tokens_file(folder), 0, None
        self.nursery = nursery()

    def start(self, dies=None):
        """Where it listens, which stays the same; it dies there, if that is said."""
        arguments = [
            "serve", self.folder / "guard.db", "--labels", self.folder / "y.npy",
            "--tokens", self.tokens, "--port", self.port, *self.options,
        ]  # fmt: skip
        print(json.dumps([list(map(str, arguments)), dies]), file=self.nursery.stdin, flush=True)
        pid, line = int(self.nursery.stdout.readline()), self.nursery.stdout.readline()
        self.port = int(line.split()[0].rpartition(":")[2])
        self.pid = pid
        return Running(self.port)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        assert self.ended() == -signal.SIGKILL

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        return self.ended()

    def ended(self):
        """Its exit code, once it has one."""
        word, code = self.nursery.stdout.readline().split()
        assert word == "ended"
        self.pid = None
        return int(code)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid is not None:
            self.kill()


def octets_of(predictions):
    """Rows of 0 and 1 as the form "bits" has them."""
    return np.packbits(np.asarray(predictions, bool), axis=-1, bitorder="little").tobytes()
