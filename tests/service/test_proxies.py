"""The proxies of examples/service: what they pass on, and what they stop."""

import base64
import contextlib
import json
import re
import shutil
import threading

import numpy as np
import pytest
from proxies import EXAMPLES, PROXIES, in_front
from serving import TOKENS, in_thread, octets_of

from radabound_fast import FixedSequence
from radabound_fast.service import app, server
from radabound_fast.service.wire import pack_body

M = 600
Y = np.arange(M) % 2


def number(pattern, text):
    """What a configuration says, in octets or seconds."""
    (found,) = re.findall(pattern, text)
    return int(found)


@pytest.mark.source
def test_the_configurations_agree_with_the_service():
    nginx, caddy = ((EXAMPLES / name).read_text() for name in ("nginx.conf", "Caddyfile"))
    assert number(r"client_max_body_size (\d+)m;", nginx) << 20 == app.MAX_BODY
    assert number(r"max_size (\d+)MiB", caddy) << 20 == app.MAX_BODY
    # the service would close a connection just when the proxy sends on it
    assert number(r"64;\n +keepalive_timeout (\d+)s;", nginx) < server.IDLE_SECONDS
    assert number(r"\tkeepalive (\d+)s", caddy) < server.IDLE_SECONDS
    assert number(r"max_conns=(\d+);", nginx) < server.MOST_CONNECTIONS
    assert number(r"max_conns_per_host (\d+)", caddy) < server.MOST_CONNECTIONS
    assert number(r"client_header_buffers 4 (\d+)k;", nginx) * 4 << 10 <= server.MOST_HEAD
    assert number(r"max_header_size (\d+)KiB", caddy) << 10 <= server.MOST_HEAD


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.thorough) for name in PROXIES], scope="module"
)
def front(request, tmp_path_factory):
    """A proxy in front of a service that speaks with nobody else."""
    for program in (request.param, "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("front")
    guard = FixedSequence.open(
        folder / "guard.db", Y, epsilon=0.2, delta=0.1, seed=1, durability="process"
    )
    with (
        in_thread(guard, folder) as service,
        in_front(request.param, folder, service.port) as front,
    ):
        front.name = request.param
        yield front


def test_a_guard_behind_it_answers_as_one_without_it(front):
    here = FixedSequence(Y, epsilon=0.2, delta=0.1, seed=1)
    rows = np.random.default_rng(1).random((50, M)) < 0.3
    with contextlib.closing(front.remote()) as remote:
        answers = remote.query_many(rows)
        assert remote.query(Y).value == 0.0
    assert answers.values.tolist() == here.query_many(rows).values.tolist()
    body = pack_body({"form": "bits"}, octets_of(Y))
    once = front.send("POST", "/query", body, Idempotency_Key="1")
    assert front.send("POST", "/query", body, Idempotency_Key="1")[2] == once[2]
    basic = base64.b64encode(f"red:{TOKENS['red']}".encode()).decode()
    _, headers, _ = front.send("GET", "/", team=None)
    assert {name.lower(): headers[name] for name in headers}["www-authenticate"][:5] == "Basic"
    assert front.send("GET", "/", team=None, Authorization=f"Basic {basic}")[0] == 200
    assert json.loads(front.send("GET", "/health", team=None)[2]) == {"status": "ok"}


def test_the_service_logs_the_address_of_the_client_whatever_it_claims(front, caplog):
    connection = front.connection()
    connection.source_address = ("127.0.0.7", 0)
    with contextlib.closing(connection):
        connection.request("GET", "/state", headers={"X-Forwarded-For": "192.0.2.1"})
        assert connection.getresponse().status == 401
    assert "'GET /state' from '127.0.0.7', no team" in caplog.text


@pytest.mark.parametrize(
    ("n_octets", "status"), [(app.MAX_BODY, 400), (app.MAX_BODY + 1, 413)], ids=["most", "more"]
)
def test_a_body_may_be_as_large_as_the_service_takes(front, n_octets, status):
    assert front.send("POST", "/query", bytes(n_octets))[0] == status


def test_a_head_of_130_kb_is_refused(front):
    for path, header in (("/health", "a" * 130_000), ("/" + "a" * 130_000, "")):
        with contextlib.suppress(OSError):  # or the connection ends before all of it was sent
            assert front.send("GET", path, team=None, X_Long=header)[0] in (400, 414, 431)
    assert front.send("GET", "/health", team=None, X_Long="a" * 7000)[0] == 200


def test_an_address_that_asks_too_much_at_once_is_asked_to_wait_and_then_gets_through(front):
    if front.name != "nginx":
        pytest.skip("Debian's Caddy limits no address")
    asked = [front.connection() for _ in range(40)]
    for connection in asked[:32]:  # whose bodies are not yet there
        connection.putrequest("POST", "/query")
        connection.putheader("Content-Length", "9")
        connection.endheaders(b"1")
    for connection in asked[32:]:
        connection.request("GET", "/state", headers={"Authorization": f"Bearer {TOKENS['red']}"})
    for connection in asked[32:]:
        response = connection.getresponse()
        error = json.loads(response.read())["error"]
        assert (response.status, response.headers["Retry-After"]) == (503, "1")
        assert "too many requests at once from this address" in error["message"]
    waiting = threading.Timer(0.1, lambda: [connection.close() for connection in asked])
    waiting.start()
    with contextlib.closing(front.remote(timeout=20)) as remote:
        assert remote.query(Y).value == 0.0
    waiting.join()


def test_it_speaks_tls_alone(front):
    plain = front.connection()
    with contextlib.closing(plain):
        plain._context = None
        plain.connect = lambda: super(type(plain), plain).connect()
        plain.request("GET", "/health")
        response = plain.getresponse()
        assert response.status == 400 and b"ok" not in response.read()
