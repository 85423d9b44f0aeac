"""What a service says when its database or its process fails: one table of all endpoints."""

import json
import os
import shutil
import socket
import time

import numpy as np
import pytest
from serving import TOKENS, Command, in_thread, octets_of

from radabound_fast import ConfirmedSearch, DeclaredSearch, FixedSequence, Gate
from radabound_fast.service.competition import Competition
from radabound_fast.service.wire import pack_body

M = 400
Y = np.arange(M) % 2


def competition(path):
    return Competition(ConfirmedSearch.open(path, Y, delta=0.1, confirm_share=0.5, seed=1), 1)


# a guard of each kind of database
GUARDS = {
    "ledger": lambda path: FixedSequence.open(path, Y, epsilon=0.3, delta=0.1),
    "search": lambda path: DeclaredSearch.open(path, Y, 10, delta=0.1),
    "events": competition,
    "gate": lambda path: Gate.open(path, Y, baseline=Y, margin=0.2, delta=0.1, n_candidates=9),
}
OTHER = {
    "ledger": lambda path: FixedSequence.open(path, Y, epsilon=0.3, delta=0.1, seed=2).close(),
    "search": lambda path: DeclaredSearch.open(path, Y, 11, delta=0.1),
    "events": lambda path: competition(path),
    "gate": lambda path: Gate.open(path, Y, baseline=Y, margin=0.1, delta=0.1, n_candidates=9),
}


def replace(path, kind):
    """Another database of the same kind, by a rename."""
    OTHER[kind](path.with_name("other.db"))
    os.replace(path.with_name("other.db"), path)


def put_in_place(path, content):
    path.with_name("foreign").write_bytes(content)
    os.replace(path.with_name("foreign"), path)


def become_folder(path, kind):
    path.unlink()
    path.mkdir()


# what happens to the file under a running service
FAULTS = {
    "is gone": lambda path, kind: path.unlink(),
    "is a foreign file": lambda path, kind: put_in_place(path, b"something else" * 1000),
    "is empty": lambda path, kind: put_in_place(path, b""),
    "is another database": replace,
    "is cut short": lambda path, kind: put_in_place(path, path.read_bytes()[:5000]),
    "is a folder": become_folder,
    "has a second name": lambda path, kind: os.link(path, path.with_name("second.db")),
    "is in a folder that is gone": lambda path, kind: shutil.move(path.parent, "gone"),
}
HEAD = {"form": "bits"}
KEYED = {"search": {"key": 3}}
ENDPOINTS = ["/state", "/report", "/", "/metrics", "/health", "/ready", "/query", "/query_many",
             "/end"]  # fmt: skip


def ask(service, path, kind):
    if path not in ("/query", "/query_many", "/end"):
        return service.send("GET", path, team="owner")
    if path == "/query_many":
        head = HEAD | ({"keys": [3]} if kind == "search" else {})
    else:
        head = HEAD | KEYED.get(kind, {})
    body = b"" if path == "/end" else pack_body(head, octets_of(Y))
    return service.send("POST", path, body, team="owner")


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        pytest.param(kind, fault, marks=[pytest.mark.thorough] if kind != "search" or n else [])
        for kind in GUARDS
        for n, fault in enumerate(
            ["is a foreign file", *sorted(FAULTS.keys() - {"is a foreign file"})]
        )
    ],
)
def test_no_endpoint_tells_where_a_database_was_that_fails(tmp_path, monkeypatch, kind, fault):
    """It is a 503, unless the endpoint is none of this guard's; no reply has a path in it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "served"
    folder.mkdir()
    with in_thread(GUARDS[kind](folder / "g.db"), tmp_path) as service:
        assert ask(service, "/query", kind)[0] == 200
        before = {path: ask(service, path, kind)[0] for path in ENDPOINTS[:-1]}
        FAULTS[fault](folder / "g.db", kind)
        for path in ENDPOINTS:
            status, headers, body = ask(service, path, kind)
            refused = before.get(path, 403)
            assert status == 503 or status == refused != 200, (path, body)
            if status == 503:
                assert headers["retry-after"] == "1"
                assert json.loads(body)["error"]["message"]
            for secret in (str(tmp_path), "g.db", "served"):
                assert secret not in f"{headers} {body}", path


@pytest.mark.thorough
def test_a_signal_ends_the_service_though_half_a_request_has_arrived(tmp_path):
    options = ["--guard", "fixed-sequence", "--epsilon", "0.3", "--delta", "0.1"]
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['red']}\r\n"
    with Command(tmp_path, Y, *options) as command:
        service = command.start()
        sent = [f"{head}Content-Length: 500\r\n\r\n".encode() + b"x" * 100, head.encode(), b""]
        clients = [socket.create_connection(("127.0.0.1", service.port), 10) for _ in sent]
        for client, octets in zip(clients, sent, strict=True):
            client.sendall(octets)
        service.get("/state")
        began = time.monotonic()
        command.stop()
        assert time.monotonic() - began < 8
        reply = clients[0].recv(1000)
        assert reply.startswith(b"HTTP/1.1 503") and b"nothing was counted" in reply
        for client in clients:
            client.close()
        assert command.start().get("/state")[1]["n_answered"] == 0
