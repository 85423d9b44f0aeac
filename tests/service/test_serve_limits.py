"""What the service takes is taken exactly up to its limits, and what it holds is let go of."""

import http.client
import itertools
import json
import os
import socket
import threading
import time

import numpy as np
import pytest
from serving import A_DAY, TOKENS, in_thread, octets_of, serve

from radabound_fast import DeclaredSearch, FixedSequence, Holdout, RadaBound
from radabound_fast.service import limits
from radabound_fast.service.wire import code_dtype, pack_body

M = 600
Y = np.arange(M) % 2
FIXED = {"epsilon": 0.2, "delta": 0.1, "seed": 1}
BODY = pack_body({"form": "bits"}, octets_of(Y))
MOST = 1000  # octets of a body


# ---- a counter that must come back to 0 ----------------------------------------------------------


def goes_away(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as client:
        head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['red']}\r\n"
        client.sendall(f"{head}Content-Length: {MOST}\r\n\r\n".encode() + bytes(MOST - 1))


def goes_away_after_it_asked(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as client:
        head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['red']}\r\n"
        client.sendall(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)


# how a call ends: what is done, and the status, if there is a reply
ENDS = {
    "answered": (lambda service, n: service.send("POST", "/query", BODY)[0], 200),
    "refused": (lambda service, n: service.send("POST", "/query", bytes(MOST))[0], 400),
    "too large, as it says": (
        lambda service, n: service.send("POST", "/query", bytes(MOST + 1))[0], 413),
    "too large, as it comes": (
        lambda service, n: service.send("POST", "/query", iter([bytes(MOST), b"1"]))[0], 413),
    "asked again": (
        lambda service, n: service.send("POST", "/query", BODY, Idempotency_Key="a")[0], 200),
    "under a key of another": (
        lambda service, n: service.send(
            "POST", "/query", BODY if n else BODY[:-1] + b"\0", Idempotency_Key="b")[0], 422),
    "by a team that has none left": (
        lambda service, n: service.send("POST", "/query", BODY, "small")[0], 429),
    "the client goes away": (lambda service, n: goes_away(service), None),
    "the client goes away after it asked": (
        lambda service, n: goes_away_after_it_asked(service), None),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("end", ENDS)
def test_octets_of_a_call_are_let_go_of_however_it_ends(tmp_path, monkeypatch, end):
    """A call that kept a tenth of a body would shut the service by the end."""
    monkeypatch.setattr(limits, "BODIES", 4)
    ask, expected = ENDS[end]
    with serve(tmp_path, FixedSequence, Y, durability="process", max_body=MOST, **FIXED) as service:
        statuses = [ask(service, n) for n in range(20)]
        assert expected in (None, 429) or 429 not in statuses
        assert expected is None or statuses[-1] == expected
        # two bodies of a team may be held: one waits, half sent, while another is answered
        with socket.create_connection(("127.0.0.1", service.port), timeout=10) as client:
            head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['red']}\r\n"
            client.sendall(f"{head}Content-Length: {MOST}\r\n\r\n".encode() + bytes(MOST - 1))
            for _ in range(100):  # calls of clients that went away are still being answered
                if (status := service.send("POST", "/query", bytes(MOST))[0]) != 429:
                    break
                time.sleep(0.02)
            assert status == 400


def sends_most_of_a_body(service, team):
    """A connection on which all but the last octet of a body was sent."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.putrequest("POST", "/query")
    connection.putheader("Authorization", f"Bearer {TOKENS[team]}")
    connection.putheader("Content-Length", str(MOST))
    connection.endheaders(bytes(MOST - 1))
    return connection


def test_bodies_of_a_team_leave_room_for_those_of_others(tmp_path, monkeypatch):
    """Who holds half of all octets gets no more; others are answered, and nothing is counted."""
    monkeypatch.setattr(limits, "BODIES", 3)
    with serve(tmp_path, FixedSequence, Y, durability="process", max_body=MOST, **FIXED) as service:
        connection = sends_most_of_a_body(service, "red")
        for _ in range(200):  # until its octets have arrived
            status, headers, told = service.send("POST", "/query", bytes(MOST))
            if status == 429:
                break
        error = json.loads(told)["error"]
        assert (status, error["limit"], error["left"]) == (429, "octets_at_once", 501)
        assert headers["retry-after"] == "1" and "nothing was counted" in error["message"]
        assert service.send("POST", "/query", bytes(MOST), "blue")[0] == 400
        assert service.send("POST", "/query", BODY)[0] == 200
        connection.send(b"0")
        assert connection.getresponse().status == 400
        connection.close()
        assert service.get("/state")[1]["n_answered"] == 1


def test_calls_of_a_team_that_wait_are_so_many_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "CALLS_AT_ONCE", 2)
    with serve(tmp_path, FixedSequence, Y, durability="process", max_body=MOST, **FIXED) as service:
        connections = [sends_most_of_a_body(service, "red") for _ in range(2)]
        for _ in range(200):
            status, headers, told = service.send("GET", "/state")
            if status == 429:
                break
        error = json.loads(told)["error"]
        assert (status, error["limit"], error["left"]) == (429, "calls_at_once", 0)
        assert headers["retry-after"] == "1"
        assert service.send("GET", "/state", team="blue")[0] == 200
        for connection in connections:
            connection.send(b"0")
            assert connection.getresponse().status == 400
            connection.close()
        assert service.send("GET", "/state")[0] == 200


@pytest.mark.thorough
@pytest.mark.parametrize("length", [100, 20_000])
def test_a_team_is_answered_while_another_asks_without_a_pause(tmp_path, length):
    """Blocks of rows take turns with single calls of others, which wait for one of them at most."""
    block = pack_body({"form": "bits"}, octets_of(np.tile(Y, (length, 1))))
    with serve(tmp_path, FixedSequence, Y, durability="process", **FIXED) as service:
        ends = threading.Event()

        def ask():
            while not ends.is_set():
                statuses.append(service.send("POST", "/query_many", block)[0])

        statuses = []
        asking = [threading.Thread(target=ask) for _ in range(8)]
        for thread in asking:
            thread.start()
        try:
            alone = time.monotonic()
            while len(statuses) < 8 and time.monotonic() < alone + 60:
                time.sleep(0.01)
            one = (time.monotonic() - alone) / len(statuses)  # how long a block takes
            began = time.monotonic()
            for _ in range(5):
                assert service.send("POST", "/query", BODY, "blue")[0] == 200
                assert service.send("GET", "/health", team=None)[0] == 200
            seconds = time.monotonic() - began
        finally:
            ends.set()
            for thread in asking:
                thread.join()
        # eight blocks wait before each of the five calls where there are no turns: forty blocks
        assert seconds < 20 * one + 2
        assert set(statuses) == {200}


# ---- the last that is one, and the first that is none --------------------------------------------


METRICS = ["error", "accuracy", "balanced_accuracy"]


@pytest.mark.thorough
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_classes", [2, 3, 255, 257])
def test_the_first_code_that_is_none_is_refused_like_every_other(tmp_path, n_classes, metric):
    y = np.arange(M) % n_classes
    dtype = np.dtype(code_dtype(n_classes))
    with serve(tmp_path, DeclaredSearch, Holdout(y, metric=metric), 99, delta=0.1) as service:
        for key, code in enumerate((0, n_classes - 1, n_classes, np.iinfo(dtype).max)):
            codes = y.astype(dtype)
            codes[M - 1] = code
            head = {"form": "codes", "key": key}
            status, told = service.post("/query", head, codes.tobytes())
            if code < n_classes:
                predicted = np.where(np.arange(M) < M - 1, y, code)
                here = DeclaredSearch(Holdout(y, metric=metric), 99, delta=0.1)
                assert status == 200
                assert told["value"] == here.query(predicted, key=key).value
            else:
                assert status == 400 and f"got {code}" in told["error"]["message"]
        assert service.get("/state")[1]["n_answered"] == 2


LIMITS = {
    "an Idempotency-Key of 200 characters": (
        lambda service, over: service.send(
            "POST", "/query", BODY, Idempotency_Key="x" * (200 + over)), 400),
    "a body of so many octets": (
        lambda service, over: service.send("POST", "/query", BODY + bytes(over)), 413),
    "so many rows": (
        lambda service, over: service.send(
            "POST", "/query_many", pack_body({"form": "bits"}, octets_of([Y] * (3 + over)))), 413),
    "so many octets of the line": (
        lambda service, over: service.send(
            "POST", "/query", pack_body({"form": "bits", "guess": None}, b"").replace(
                b"null", b" " * (20_000 - 32 + over) + b"null") + octets_of(Y)), 413),
    "so many answers a day": (
        lambda service, over: service.send(
            "POST", "/query_many",
            pack_body({"form": "bits"}, octets_of([Y] * (A_DAY + over))), "small"), 429),
}  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_is_the_last_that_is_taken(tmp_path, monkeypatch, limit):
    ask, refused = LIMITS[limit]
    options = {}
    if limit == "so many rows":
        monkeypatch.setattr(limits, "MOST_ROWS", 3)
    if limit == "a body of so many octets":
        options["max_body"] = len(BODY)
    guard = FixedSequence.open(tmp_path / "g.db", Y, durability="process", **FIXED)
    with in_thread(guard, tmp_path, **options) as service:
        status, _, told = ask(service, 1)
        assert status == refused, told
        assert service.get("/state")[1]["n_answered"] == 0
        assert ask(service, 0)[0] == 200


# ---- the same in another order -------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("n_classes", [2, 3])
def test_refusals_that_tell_labels_are_answers_of_the_day(tmp_path, n_classes):
    y = np.arange(M) % n_classes
    with serve(tmp_path, DeclaredSearch, y, 9, delta=0.1, durability="process") as service:

        def status(row, key=0):
            codes = row.astype(code_dtype(n_classes)).tobytes()
            return service.post("/query", {"form": "codes", "key": key}, codes, "small")[0]

        other = np.where(np.arange(M) == 0, 1, y)  # which errs where y does not
        assert status(y) == 200
        refused = [status(other) for _ in range(A_DAY)]
        left = A_DAY - 1
        assert refused == ([400] * left + [429] if n_classes > 2 else [400] * A_DAY)
        assert status(y, key=1) == (429 if n_classes > 2 else 200)
        assert service.get("/state", "small")[1]["n_answered"] == 1 + (n_classes == 2)


@pytest.mark.thorough
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("classes", list(itertools.permutations(["a", "b", "c"])), ids="".join)
def test_classes_have_the_order_of_the_service_on_both_sides(tmp_path, classes, metric):
    rng = np.random.default_rng(0)
    names = np.array(classes[:2] if metric == "error" else classes)
    y, predicted = names[rng.integers(0, len(names), (2, M))]
    holdout = Holdout(y, metric=metric, classes=list(names))
    here = DeclaredSearch(holdout, 9, delta=0.1).query(predicted, key=1)
    there = Holdout(y, metric=metric, classes=list(names))
    with serve(tmp_path, DeclaredSearch, there, 9, delta=0.1) as service:
        remote = service.remote()
        assert remote.query(predicted, key=1).value == here.value
        assert remote.query(predicted.tolist(), key=1).high == here.high


def test_rows_of_a_block_in_another_order_have_the_same_answers(tmp_path):
    rng = np.random.default_rng(1)
    rows = Y ^ (rng.random((6, M)) < 0.3)
    keys = [{"a": a, "b": b} for a in (1, 2) for b in (1, 2, 3)]
    space = {"a": [1, 2], "b": [1, 2, 3]}
    with serve(tmp_path, DeclaredSearch, Y, space, delta=0.1) as service:
        remote = service.remote()
        first = remote.query_many(rows, keys=keys)
        order = rng.permutation(6)
        # and the names of a key too
        turned = [dict(reversed(keys[row].items())) for row in order]
        again = remote.query_many(rows[order], keys=turned)
        assert again.values.tolist() == first.values[order].tolist()
        assert again.highs.tolist() == first.highs[order].tolist()
        assert again.n_answered == first.n_answered == 6


# ---- after a fork --------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_closes_nothing_speaks_on_a_connection_of_its_own(tmp_path):
    """On its parent's socket each might read the other's reply."""
    with serve(tmp_path, RadaBound, Y, epsilon=0.3, delta=0.1, bound="mclt") as service:
        remote = service.remote()
        remote.query(Y)
        listening, speaking = socket.socketpair()
        ports = [connection.sock.getsockname()[1] for connection in remote._idle]
        child = os.fork()
        if child == 0:
            status = 1
            try:
                told = [remote.query(Y).number for _ in range(3)]
                mine = [connection.sock.getsockname()[1] for connection in remote._idle]
                speaking.sendall(json.dumps([told, mine]).encode())
                status = 0
            finally:
                os._exit(status)
        numbers = [remote.query(Y).number for _ in range(3)]
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        told, theirs = json.loads(listening.recv(1000))
        listening.close(), speaking.close()
        assert sorted(numbers + told) == [2, 3, 4, 5, 6, 7]
        assert len(ports) == 1 and set(ports).isdisjoint(theirs)
        assert [connection.sock.getsockname()[1] for connection in remote._idle] == ports
        remote.close()
