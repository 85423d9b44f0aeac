"""RemoteGuard: the guard of a service for whoever queries it, without labels, retries and all."""

import contextlib
import copy
import hashlib
import http.client
import http.server
import json
import logging
import pickle
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from proxies import certificate
from serving import TOKENS, Command, Running, arguments, in_thread, serve, tokens_file
from support import at_once

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    RadaBound,
    cli,
    metrics,
    spaces,
)
from radabound_fast._kernels.guard import Answer
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.integrations._owner import beside
from radabound_fast.service import client as remote
from radabound_fast.service.client import RemoteGuard
from radabound_fast.spaces import as_space

M = 900
RNG = np.random.default_rng(21)
Y = RNG.integers(0, 2, M)
FIXED = {"epsilon": 0.1, "delta": 0.1, "seed": 1}


@pytest.fixture
def service(tmp_path):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as running:
        yield running


def row(error=0.2):
    return np.where(RNG.random(M) < error, 1 - Y, Y)


def test_it_takes_predictions_as_a_guard_does_and_refuses_them_before_they_leave(service):
    guard, here = service.remote(), FixedSequence(Y, **FIXED)
    for given in (Y, Y.tolist(), Y.astype(float), Y.astype(bool), Y.astype(np.int8)[::-1][::-1]):
        assert guard.query(given).value == here.query(given).value == 0.0
    for bad in (Y[:-1], Y + 1, Y.astype(str), Y[np.newaxis], np.full(M, np.nan)):
        with pytest.raises((TypeError, ValueError)) as mine:
            guard.query(bad)
        with pytest.raises(mine.type) as other:
            here.query(bad)
        assert str(mine.value) == str(other.value)
    assert guard.n_answered == 5 and "token" not in repr(guard)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("space", "keys"),
    [
        (spaces.Choice([1, "a"]), [1, "a"]),
        (spaces.Choice([1, 2.5]), [1, 2.5]),
        (spaces.subset_of(range(5)), [[1, 2], [3, 4]]),
        ({"depth": [1, 2]}, [{"depth": 1}, {"depth": 2}]),
    ],
)
def test_answers_as_a_dict_have_the_keys_as_they_are(tmp_path, space, keys):
    with serve(tmp_path, DeclaredSearch, Y, space=space, delta=0.1) as service:
        columns = service.remote().query_many([Y, Y], keys=keys).to_dict()
        assert columns["key"] == keys and columns["rerun"].tolist() == [1, 1]
        assert list(columns) == [*Answer.fields, "key", "rerun"]


def test_a_guard_that_can_answer_nothing_says_so_before_it_is_queried(tmp_path):
    with serve(tmp_path, RadaBound, Y[:20], epsilon=0.01, delta=0.1) as service:
        assert not service.remote().can_answer and not service.remote().halted


REFUSED = {
    "FixedSequence": (
        FixedSequence, FIXED,
        [{"guess": 0.2}, {"key": 1}, {"rerun": 1}],
        [{"guesses": [0.1, 0.1]}, {"keys": [1, 2]}, {"reruns": [1, 1]}],
    ),
    "GuessAndCheck": (
        GuessAndCheck, {"epsilon": 0.2, "delta": 0.1},
        [{}, {"guess": 2}, {"guess": "x"}, {"guess": 0.2, "key": 1}],
        [{}, {"guesses": [0.1]}, {"guesses": [0.1, 0.1], "keys": [1, 2]}],
    ),
    "DeclaredSearch": (
        DeclaredSearch, {"space": 10, "delta": 0.1},
        [{}, {"key": 10}, {"key": "a"}, {"key": 1, "rerun": 2}, {"key": 1, "rerun": "a"},
         {"key": 1, "guess": 0.2}],
        [{}, {"keys": 3}, {"keys": [1]}, {"keys": "ab"}, {"keys": [1, 2], "reruns": [1]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_guard_refuses_is_refused_in_its_words(tmp_path, name):
    kind, parameters, ones, many = REFUSED[name]
    with serve(tmp_path, kind, Y, **parameters) as service:
        guard, here = service.remote(), kind(Y, **parameters)
        for calls, method, given in ((ones, "query", Y), (many, "query_many", [Y, Y])):
            for named in calls:
                raised = []
                for one in (here, guard):
                    with pytest.raises((TypeError, ValueError)) as error:
                        getattr(one, method)(given, **named)
                    raised.append((error.type, str(error.value)))
                assert raised[0] == raised[1]
        assert guard.n_answered == 0


def test_what_json_has_no_word_for_is_refused_before_it_leaves(service):
    guard = service.remote()
    for named in ({"guess": np.nan}, {"key": np.inf}):
        with pytest.raises(ValueError, match="keys and guesses must be finite"):
            guard.query(Y, **named)
    with pytest.raises(TypeError, match=r"guesses must be a sequence, one a row, got 0\.1"):
        guard.query_many([Y], guesses=0.1)
    assert guard.query(Y).number == 1


def test_it_may_be_copied_pickled_and_shared(service):
    guard = service.remote()
    copies = [copy.copy(guard), copy.deepcopy(guard), pickle.loads(pickle.dumps(guard))]
    numbers = []

    def ask(one):
        for _ in range(5):
            numbers.append(one.query(row()).number)

    at_once(ask, [guard, guard, *copies])
    assert sorted(numbers) == list(range(1, 26))
    for one in copies:
        one.close()


def test_a_halt_is_the_exception_that_it_is(tmp_path):
    given = {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1}
    with serve(tmp_path, RadaBound, Y, **given) as service:
        asked = service.remote()
        answers = asked.query_many(RNG.integers(0, 2, (400, M)))
        assert answers.halted and asked.halted and len(answers) == answers.n_answered
        with pytest.raises(HoldoutExhausted, match="is spent after") as halt:
            asked.query(row())
        assert halt.value.n_answered == len(answers) and halt.value.complexity is None
        assert service.remote("blue").halted and not asked.can_answer and asked.n_left() == 0


@pytest.mark.parametrize("many", [False, True])
def test_a_halt_that_was_told_is_known_without_the_service(tmp_path, many):
    given = {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1}
    with serve(tmp_path, RadaBound, Y, **given) as service:
        asked, other = service.remote(timeout=60), service.remote("blue")
        rows = RNG.integers(0, 2, (400, M))
        if many:
            asked.query_many(rows)
        else:
            other.query_many(rows)
            with pytest.raises(HoldoutExhausted):
                asked.query(rows[0])
    assert asked.halted


@contextlib.contextmanager
def unheard_port():
    """A port at which nobody listens, and which nobody else is given."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_a_wrong_token_or_url_is_told_at_once(service):
    with pytest.raises(PermissionError, match="a token of the service"):
        RemoteGuard(service.url, token="somebody-else's-token")
    for url in ("127.0.0.1:1", "ftp://x", "http://", ""):
        with pytest.raises(ValueError, match="url must be http"):
            RemoteGuard(url, token="x")
    late = pytest.raises(ConnectionError, match=r"gave no answer within 0.2 seconds")
    with unheard_port() as port, late:
        RemoteGuard(f"http://127.0.0.1:{port}", token="x", timeout=0.2)


def simulated_time(monkeypatch):
    """The pauses of a client, which take no time; each look at the clock takes 0.01 seconds."""
    slept = []
    monkeypatch.setattr(remote.time, "sleep", slept.append)
    monkeypatch.setattr(remote.random, "uniform", lambda *_: 1.0)
    now = iter(np.arange(0, 10_000, 0.01).tolist())
    monkeypatch.setattr(remote.time, "monotonic", lambda: next(now) + sum(slept))
    return slept


def test_where_nobody_listens_the_first_call_fails_in_seconds_and_says_that_it_waits(
    monkeypatch, caplog
):
    slept = simulated_time(monkeypatch)
    late = pytest.raises(ConnectionError, match="gave no answer within 5 seconds")
    with unheard_port() as port, late:
        RemoteGuard(f"http://127.0.0.1:{port}", token="hidden")
    assert 2 < sum(slept) <= 5
    assert f"waiting for http://127.0.0.1:{port}" in caplog.text and "hidden" not in caplog.text


@pytest.mark.parametrize(
    "token", ["secret-token-0123456\n", "secret-token-ж0123456", "secret token", "", "\x00secret"]
)
def test_a_token_that_no_header_holds_is_refused_without_it(token):
    with pytest.raises(ValueError, match="token must be visible characters of ASCII") as refused:
        RemoteGuard("http://127.0.0.1:9", token=token, timeout=60)
    assert "secret" not in str(refused.value) and refused.value.__cause__ is None
    with pytest.raises(TypeError, match="token must be a string, got NoneType"):
        RemoteGuard("http://127.0.0.1:9", token=None)


@pytest.mark.parametrize(
    "url", ["http://me:hidden@127.0.0.1:9", "http://127.0.0.1:9/a b", "http://127.0.0.1:9/?hidden",
            "http://127.0.0.1:9/#x", "http://127.0.0.1:9/\x7f"],
)  # fmt: skip
def test_a_url_that_is_more_than_an_address_is_refused_at_once(url):
    with pytest.raises(ValueError, match="url must") as refused:
        RemoteGuard(url, token="x", timeout=60)
    assert "me:hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://[2001:db8::1]", ("2001:db8::1", 443)),  # whose end is no port
        ("http://[::1]/under/", ("::1", 80)),
        ("http://[::1]:8000", ("::1", 8000)),
        ("https://holdout.example", ("holdout.example", 443)),
    ],
)
def test_the_port_is_that_of_the_url_or_of_its_scheme(url, address, monkeypatch):
    asked = []

    def nowhere(address, *_, **__):
        asked.append(address)
        raise PermissionError("not sent")

    monkeypatch.setattr(socket, "create_connection", nowhere)
    with pytest.raises(PermissionError):
        RemoteGuard(url, token="x")
    assert asked == [address]


@pytest.mark.parametrize("url", ["http://here:x", "http://here:65536", "http://here:0", "http://"])
def test_a_url_without_a_host_or_with_no_port_is_refused_with_it(url):
    with pytest.raises(ValueError, match=f"^url must be http://host:port .*got '{url}'$"):
        RemoteGuard(url, token="x")


@pytest.mark.parametrize("url", [None, 8000, b"http://here"])
def test_a_url_that_is_no_string_is_refused_by_its_type(url):
    with pytest.raises(TypeError, match=f"^url must be a string, got {type(url).__name__}$"):
        RemoteGuard(url, token="x")


def test_a_service_that_speaks_no_tls_is_told_at_once(monkeypatch):
    def answered_in_clear(*_):
        error = ssl.SSLError(1, "wrong version number")
        error.reason = "WRONG_VERSION_NUMBER"  # as OpenSSL 3.0 has it
        raise error

    monkeypatch.setattr(RemoteGuard, "_send", answered_in_clear)
    monkeypatch.setattr(remote.time, "sleep", None)
    with pytest.raises(ConnectionError, match=r"https://here speaks no TLS: is it http://\?$"):
        RemoteGuard("https://here", token="x")


@pytest.mark.parametrize("host", ["holdout.example", "192.0.2.1", "[2001:db8::1]"])
def test_a_token_in_clear_to_another_machine_is_warned_of(host, monkeypatch):
    def nowhere(*_):
        raise PermissionError("not sent")

    monkeypatch.setattr(RemoteGuard, "_send", nowhere)
    with pytest.warns(UserWarning, match="in clear: take https"), pytest.raises(PermissionError):
        RemoteGuard(f"http://{host}:80", token="x")
    for url in (f"https://{host}", "http://127.9.9.9", "http://[::1]:1", "http://localhost"):
        with warnings.catch_warnings(), pytest.raises(PermissionError):
            warnings.simplefilter("error")
            RemoteGuard(url, token="x")


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    """Sends everybody to another address, or away."""

    def do_GET(self):
        self.server.asked.append(self.headers["Authorization"])
        self.send_response(self.server.status)
        self.send_header("Location", self.server.to)
        body = b'{"error": {"type": "PermissionError", "message": "not yours"}}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.server.status == 403 else bytes(len(body)))

    def log_message(self, *_):
        pass


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [(301, ValueError, "it replied 301"), (307, ValueError, "it replied 307"),
     (308, ValueError, "it replied 308"), (403, PermissionError, "^not yours$")],
)  # fmt: skip
def test_a_redirect_is_not_followed_nor_is_what_is_told_asked_again(
    status, error, reason, monkeypatch
):
    servers = [http.server.HTTPServer(("127.0.0.1", 0), _Elsewhere) for _ in range(2)]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for server, thread in zip(servers, threads, strict=True):
        server.asked, server.status = [], status
        server.to = f"http://127.0.0.1:{servers[1].server_port}/state"
        thread.start()
    # no proxy of the environment either
    monkeypatch.setenv("http_proxy", servers[1].server_address[0])
    try:
        with pytest.raises(error, match=reason):
            RemoteGuard(f"http://127.0.0.1:{servers[0].server_port}", token="x", timeout=60)
        assert servers[0].asked == ["Bearer x"] and servers[1].asked == []
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


class _Flaky(http.server.BaseHTTPRequestHandler):
    """A proxy that fails in every way once, and passes on what comes after."""

    def do_GET(self):
        self._pass(None)

    def do_POST(self):
        self._pass(self.rfile.read(int(self.headers["Content-Length"])))

    def _pass(self, body):
        way = self.server.ways.pop(0) if body is not None and self.server.ways else "pass"
        keys = self.headers.get("Idempotency-Key")
        if body is not None:
            self.server.keys.append(keys)
        if way == "drop the call":
            self.close_connection = True
            return
        if way in ("500", "502"):  # with a page of its own
            self.send_error(int(way))
            return
        sent = dict(self.headers.items())
        names = {name.replace("-", "_"): value for name, value in sent.items()
                 if name in ("Authorization", "Idempotency-Key")}  # fmt: skip
        status, _, reply = self.server.service.send(
            self.command, self.path, body, team=None, **names
        )
        if way == "drop the reply":
            self.close_connection = True
            return
        reply_sent = reply[:5] if way == "cut the reply" else reply
        if way == "another reply":
            reply = reply_sent = b"<p>Accept our terms"
        elif way == "another object":
            reply = reply_sent = b'{"status": "queued"}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply_sent)
        self.close_connection = way != "pass"

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def behind_a_proxy(service, ways):
    proxy = http.server.HTTPServer(("127.0.0.1", 0), _Flaky)
    proxy.service, proxy.keys, proxy.ways = service, [], ways
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{proxy.server_port}"
        with RemoteGuard(url, token=TOKENS["red"], timeout=30) as guard:
            yield proxy, guard
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


@pytest.mark.thorough
def test_a_reply_that_is_lost_on_the_way_is_not_asked_for_as_another_query(service):
    ways = ["drop the call", "502", "500", "drop the reply", "cut the reply"]
    with behind_a_proxy(service, ways) as (proxy, guard):
        predictions = row()
        answer = guard.query(predictions)
        assert answer.number == 1 and answer.value == np.mean(predictions != Y)
        assert len(proxy.keys) == 6 and len(set(proxy.keys)) == 1
        assert guard.query(predictions).number == 2 and len(set(proxy.keys)) == 2
    assert service.get("/state")[1]["you"]["n_answers"] == 2


@pytest.mark.parametrize("way", ["another reply", "another object"])
def test_of_a_call_whose_reply_was_replaced_it_is_not_said_that_nothing_has_changed(service, way):
    with (
        behind_a_proxy(service, [way]) as (_, guard),
        pytest.raises(ConnectionError, match="replied 200, and whether the call was counted is"),
    ):
        guard.query(row())
    assert service.get("/state")[1]["you"]["n_answers"] == 1


def test_after_a_failure_connections_that_lay_idle_are_not_tried_one_by_one(service, monkeypatch):
    guard = service.remote()
    for _ in range(8):  # as threads leave them
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        connection.request("GET", "/health")
        connection.getresponse().read()
        guard._idle.append(connection)
    for connection in guard._idle:  # as a service leaves them that is started anew
        connection.sock.shutdown(socket.SHUT_RDWR)
    slept = []
    monkeypatch.setattr(remote.time, "sleep", slept.append)
    assert guard.n_answered == 0 and len(slept) == 1


def test_a_body_that_the_service_does_not_take_is_refused_before_it_leaves(tmp_path):
    guard = FixedSequence.open(tmp_path / "guard.db", Y, **FIXED)
    with in_thread(guard, tmp_path, max_body=1000) as service:
        guard = service.remote()
        sent = []
        guard._send = lambda *_: sent.append(1)
        with pytest.raises(ValueError, match="at most 1,000 octets, got 1,1"):
            guard.query_many([row()] * 10)
        assert not sent
        del guard._send
        assert len(guard.query_many([row()] * 8)) == 8


def test_it_needs_neither_the_extra_nor_a_database():
    program = (
        "import sys; sys.modules.update({name: None for name in ('starlette', 'uvicorn',"
        " 'h11', 'uvloop', 'prometheus_client', 'pyarrow', 'scipy', 'sqlite3')});"
        "import radabound_fast.service.client"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_certificate_of_ones_own_is_trusted_where_it_is_named(tmp_path):
    cert, key = certificate(tmp_path)
    guard = FixedSequence.open(tmp_path / "g.db", Y, **FIXED)
    with in_thread(guard, tmp_path, tls=(cert, key)) as service:
        url = service.url.replace("http:", "https:")
        asked = RemoteGuard(url, token=TOKENS["red"], cafile=cert)
        assert asked.query(Y).value == 0.0
        asked.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            RemoteGuard(url, token=TOKENS["red"])


# ---- inside other tools --------------------------------------------------------------------------


def test_joblib_takes_it(service):
    pytest.importorskip("joblib")
    from radabound_fast.integrations.joblib import guarded_map

    rows = np.array([row() for _ in range(4)])
    judged = list(guarded_map(service.remote(), rows.__getitem__, range(4), n_jobs=1))
    assert [answer.number for _, answer in judged] == [1, 2, 3, 4]
    assert [answer.value for _, answer in judged] == np.mean(rows != Y, axis=1).tolist()


@pytest.mark.thorough
def test_joblib_takes_one_that_needs_guesses_and_one_with_keys(tmp_path):
    pytest.importorskip("joblib")
    from radabound_fast.integrations.joblib import guarded_map

    for name, kind, given in (
        ("a", GuessAndCheck, {"epsilon": 0.1, "delta": 0.1}),
        ("b", DeclaredSearch, {"space": {"depth": [1, 2]}, "delta": 0.1}),
    ):
        with in_thread(kind.open(tmp_path / name, Y, **given), tmp_path) as service:
            asked = service.remote()
            guesses = kind is GuessAndCheck
            fit = (lambda _: (row(), 0.2)) if guesses else (lambda _: row())
            if guesses:
                with pytest.raises(ValueError, match="guesses must be True"):
                    guarded_map(asked, fit, [{"depth": 1}])
            judged = list(guarded_map(asked, fit, [{"depth": 1}, {"depth": 2}], guesses=guesses))
            assert len(judged) == 2 and asked.n_answered == 2


def test_scikit_learn_takes_it(tmp_path):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast.integrations.sklearn import HoldoutSearchCV

    parts = train_test_split(*load_breast_cancer(return_X_y=True), test_size=300, random_state=0)
    X, X_holdout, y, y_holdout = parts
    found = []
    with serve(tmp_path, FixedSequence, y_holdout, **FIXED) as service:
        for guard in (FixedSequence(y_holdout, **FIXED), service.remote()):
            search = HoldoutSearchCV(
                DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4]}, guard=guard
            )
            search = clone(search).fit(X, y, X_holdout=X_holdout)
            found.append((search.best_params_, search.cv_results_["answer"].tolist()))
    assert found[0] == found[1]


@pytest.mark.thorough
@pytest.mark.parametrize(("labels", "positive"), [(("no", "yes"), "no"), ((0, 1), None)])
@pytest.mark.parametrize("metric", ["roc_auc", "neg_log_loss", "f1"])
def test_scikit_learn_scores_the_positive_class_of_the_service(tmp_path, metric, labels, positive):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    from radabound_fast.integrations.sklearn import HoldoutSearchCV

    y = np.array(labels)[Y]
    X = RNG.normal(size=(M, 3)) + Y[:, np.newaxis]
    X_train, y_train = X + RNG.normal(size=X.shape), y
    options = {"pos_label": positive} | ({"clip": 0.01} if metric == "neg_log_loss" else {})
    here, there = (Holdout(y, metric=metrics.choice_of(metric, options)) for _ in range(2))
    given, found = {"space": {"C": [0.01, 1.0]}, "delta": 0.1}, []
    with serve(tmp_path, DeclaredSearch, there, **given) as service:
        assert service.remote().holdout.pos_label == here.pos_label == (positive or 1)
        for guard in (DeclaredSearch(here, **given), service.remote()):
            search = HoldoutSearchCV(LogisticRegression(), given["space"], guard=guard)
            search.fit(X_train, y_train, X_holdout=X)
            found.append(search.cv_results_["answer"].tolist())
    assert found[0] == found[1] and len(found[0]) == 2


@pytest.mark.thorough
def test_columns_named_as_classes_reach_the_service_in_order(tmp_path):
    pandas = pytest.importorskip("pandas")
    y_true, chances = np.array(["no", "yes"])[Y], RNG.random(M)
    holdout = Holdout(y_true, metric=metrics.BrierScore(pos_label="yes"))
    columns = {"yes": chances, "no": 1 - chances}
    with in_thread(
        DeclaredSearch.open(tmp_path / "g.db", holdout, 9, delta=0.1), tmp_path
    ) as service:
        guard = service.remote()
        expected = guard.query(chances, key=0).value
        for key, order in enumerate((["yes", "no"], ["no", "yes"]), start=1):
            frame = pandas.DataFrame(columns)[order]
            assert guard.query(frame, key=key).value == pytest.approx(expected, rel=1e-12)
        with pytest.raises(ValueError, match="must be of the class 'yes', got the column of 'no'"):
            guard.query(pandas.Series(columns["no"], name="no"), key=3)
        with pytest.raises(ValueError, match="must name each of the classes"):
            guard.query(pandas.DataFrame({"yes": chances, "x": chances}), key=3)


def test_optuna_takes_it(service):
    optuna = pytest.importorskip("optuna")
    from radabound_fast.integrations.optuna import guarded_objective

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    objective = guarded_objective(
        service.remote(), lambda trial: np.arange(M) < trial.suggest_int("end", 0, M)
    )
    study = optuna.create_study()
    study.optimize(objective, n_trials=5, n_jobs=2)
    assert len(objective.answers) == 5
    assert sorted(t.user_attrs["holdout_number"] for t in study.trials) == [1, 2, 3, 4, 5]


@pytest.mark.skipif(not find_spec("lightgbm"), reason="lightgbm is not installed")
def test_boosting_takes_it(service):
    import lightgbm

    from radabound_fast.integrations.lightgbm import guarded_rounds

    X = RNG.normal(size=(M, 3)) + Y[:, np.newaxis]
    hook = guarded_rounds(service.remote(), X, every=2)
    lightgbm.train(
        {"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(X, Y), 6,
        callbacks=[hook],
    )  # fmt: skip
    assert [n for n, _ in hook.answers] == [2, 4, 6]


def test_what_is_no_guard_is_refused_by_them(service):
    pytest.importorskip("joblib")
    from radabound_fast.integrations.joblib import guarded_map

    for other in (None, service, Holdout(Y), service.remote().holdout, RemoteGuard):
        with pytest.raises(TypeError, match="guard must be a guard made on labels"):
            guarded_map(other, row, [1])


def test_a_metric_is_computed_where_the_labels_are(service):
    from radabound_fast.integrations.metric import HoldoutMetric

    with pytest.raises(TypeError, match="guard must have its labels in this process, .*RemoteGu"):
        HoldoutMetric(service.remote())


# ---- the command ----------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_command_serves_ends_and_goes_on(tmp_path):
    options = ["--guard", "guess-and-check", "--epsilon", "0.1", "--delta", "0.1"]
    with Command(tmp_path, Y, *options) as command:
        service = command.start()
        with service.remote() as asked:
            assert asked.query(row(), guess=0.2).number == 1
        # counts, and not when each began
        assert b"_created" not in service.send("GET", "/metrics", team="owner")[2]
        assert command.stop() == 143  # as SIGTERM has it
        assert sorted(path.name for path in tmp_path.glob("guard.db*")) == ["guard.db"]
        command.options = []  # all is in the file
        with command.start().remote() as asked:
            assert asked.query(row(), guess=0.2).number == 2
        command.stop()


@pytest.mark.thorough
def test_the_command_logs_why_it_failed_and_the_halt(tmp_path):
    """The library itself logs nowhere, and a test that looks for its records does not see that."""
    given = arguments(tmp_path, Y, *MEANS, "--bound", "mclt")
    process = subprocess.Popen(
        [sys.executable, "-m", "radabound_fast", *given],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        service = Running(int(process.stdout.readline().split()[0].rpartition(":")[2]))
        with service.remote() as guard:
            assert guard.query_many(RNG.random((4000, M)) < 0.5).halted
        (tmp_path / "g.db").unlink()
        assert service.get("/health", None)[0] == 503
    finally:
        process.terminate()
        _, logged = process.communicate(timeout=30)
    halt, failure = logged.splitlines()
    assert "INFO RadaBound of 900 samples halted after" in halt
    assert "ERROR RuntimeError: " in failure and "is gone, which an open guard needs" in failure


@pytest.mark.thorough
def test_a_search_over_a_space_in_a_file_is_served_with_a_metric(tmp_path):
    (tmp_path / "space.json").write_text(json.dumps({"depth": [1, 2, 3], "leaf": [1, 10]}))
    labels = np.where(Y, "yes", "no")
    options = ["--guard", "declared-search", "--space", tmp_path / "space.json", "--delta",
               "0.1", "--metric", "f1", "--pos-label", "yes", "--allow-reruns"]  # fmt: skip
    with Command(tmp_path, labels, *options) as command:
        with command.start().remote() as asked:
            predictions = np.where(row(), "yes", "no")
            answer = asked.query(predictions, key={"depth": 2, "leaf": np.int64(10)})
            holdout = Holdout(labels, metric=metrics.F1(pos_label="yes"))
            grid, key = {"depth": [1, 2, 3], "leaf": [1, 10]}, {"depth": 2, "leaf": 10}
            here = DeclaredSearch(holdout, grid, delta=0.1, allow_reruns=True)
            assert answer.value == here.query(predictions, key=key).value
            worse = np.where(row(0.4), "yes", "no")
            assert (
                asked.query(worse, key=key, rerun=2).high
                == here.query(worse, key=key, rerun=2).high
            )
            assert asked.report().best["key"] == {"depth": 2, "leaf": 10}
            assert asked.allow_reruns
            assert asked.query(worse, key=key, rerun="next").rerun == 3
            assert beside(asked, key=key) == {"key": key, "rerun": "next"}
        command.stop()


SEARCH = ["--guard", "declared-search", "--delta", ".1"]
MEANS = ["--guard", "radabound", "--epsilon", ".1", "--delta", ".1"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([], "is not there: to make it give --guard, one of radabound, guess-and-check, ladder, "),
        (["--epsilon", "0.1", "--delta", "0.1"], "to make it give --guard, one of"),
        (["--guard", "radabound"], "for radabound give --epsilon and --delta"),
        ([*MEANS, "--epsilon", "2"], "epsilon must be in (0, 1), got 2.0"),
        (["--guard", "radabound", "--epsilon", "0.1"], "for radabound give --epsilon and --delta"),
        (SEARCH, "for declared-search give --delta and --space-size or --space"),
        (["--guard", "ladder"], "for ladder give --delta and --step"),
        ([*SEARCH, "--space", "no.json"], "no.json"),
        ([*MEANS, "--metric", "f1"], "metric must be 'error' for a Rad"),
        ([*SEARCH, "--space", "no.json", "--space-size", "5"], "--space must be given without"),
        ([*SEARCH, "--space", "list.json"], "list.json: a grid must be a mapping"),
        ([*SEARCH, "--space", "bad.json"], "bad.json must be JSON: "),
        ([*SEARCH, "--space-size", "0"], "space_size must be at least 1, got 0"),
        ([*SEARCH, "--space-size", "5", "--metric", "nope"], "metric must be one of"),
        ([*SEARCH, "--space-size", "5", "--metric", "f1", "--pos-label", "x"], "--pos-label must"),
        ([*SEARCH, "--space-size", "5", "--metric", "neg_log_loss"], "clip must be given"),
        ([*SEARCH, "--space-size", "5", "--step", ".1"], "--step must be left out with declared-"),
        ([*MEANS, "--space-size", "5"], "--space-size must be left out"),
        (["--guard", "ladder", "--delta", ".1", "--epsilon", ".1"], "--epsilon must be left"),
        ([*SEARCH, "--space-size", "5", "--max-queries", "9"], "--max-queries must be left out"),
        ([*MEANS, "--allow-reruns"], "--allow-reruns must be left"),
        ([*MEANS, "--bound", "nope"], "bound must be one of"),
        ([*MEANS, "--port", "65536"], "--port must be in [0, 65535]"),
        ([*MEANS, "--port", "-1"], "--port must be in [0, 65535]"),
        ([*MEANS, "--max-body", "0"], "max_body must be at least 1"),
    ],
)
def test_the_command_refuses_in_one_line_and_makes_nothing(
    tmp_path, capsys, monkeypatch, more, reason
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "bad.json").write_text("[" * 100_000)
    assert cli.main(arguments(tmp_path, Y, *more)) == 2
    said = capsys.readouterr().err
    assert reason in said and said.count("\n") == 1 and not (tmp_path / "g.db").exists()


def test_what_is_not_served_is_refused_with_what_is(tmp_path, capsys):
    parameters = {"threshold": 0.1, "noise": 0.01, "budget": 10}
    Thresholdout.open(tmp_path / "g.db", Y, **parameters).close()
    assert cli.main(arguments(tmp_path, Y)) == 2
    assert "a Thresholdout, which is not served: RadaBound, Gu" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_metrics_of_an_audit_are_those_of_a_service(tmp_path):
    """A baseline, costs, and a clip, said as `radabound audit` takes them."""
    np.save(tmp_path / "costs.npy", costs := np.array([[0.0, 1.0], [4.0, 0.0]]))
    np.save(tmp_path / "baseline.npy", baseline := row(0.4))
    y_range = ["--y-range", "0", "1"]
    for name, options, metric, given in (
        ("a", ["--metric", "mean_cost", "--costs", tmp_path / "costs.npy", "--baseline",
               tmp_path / "baseline.npy"], metrics.Cost(costs), {"baseline": baseline}),
        ("b", ["--metric", "neg_log_loss", "--clip", "0.01"], metrics.LogLoss(clip=0.01), {}),
        ("c", ["--metric", "neg_mean_squared_error", *y_range],
         metrics.SquaredError(y_range=(0, 1)), {}),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        predictions = row() if name == "a" else np.clip(0.5 * Y + 0.3 * RNG.random(M), 0, 1)
        search = DeclaredSearch(Holdout(Y, metric=metric), 10, delta=0.1, **given)
        here = search.query(predictions, key=3)
        with Command(tmp_path / name, Y, *SEARCH, "--space-size", "10", *options) as command:
            with command.start().remote() as asked:
                there = asked.query(predictions, key=3)
            command.stop()
        assert (there.value, there.low, there.high) == (here.value, here.low, here.high)
        assert name != "a" or there.gain == here.gain


def test_another_guard_than_that_of_the_file_is_refused(tmp_path, capsys):
    FixedSequence.open(tmp_path / "g.db", Y, **FIXED).close()
    given = arguments(tmp_path, Y)
    assert cli.main([*given, "--guard", "ladder", "--delta", "0.1"]) == 2
    assert "--guard must be that of" in capsys.readouterr().err
    for part in (["--epsilon", "0.1"], ["--delta", "0.1"], ["--n-vectors", "32"]):
        assert cli.main([*given, *part]) == 2
        told = capsys.readouterr().err
        assert "has its parameters: give --epsilon and --delta as it was made with, or no" in told
    assert cli.main([*given, "--epsilon", "0.2", "--delta", "0.1"]) == 2
    assert "epsilon must be 0.1, with which" in capsys.readouterr().err
    np.save(tmp_path / "y.npy", 1 - Y)
    assert cli.main(given) == 2
    assert "was made for another holdout" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "is_warned"), [(0o600, False), (0o640, True), (0o602, True)])
def test_a_file_of_tokens_that_others_may_open_is_warned_of(
    tmp_path, capsys, monkeypatch, mode, is_warned
):
    from radabound_fast import cli
    from radabound_fast.service import server

    tokens_file(tmp_path).chmod(mode)
    logger, levels = logging.getLogger("radabound_fast"), []
    logger.handlers or logger.addHandler(logging.NullHandler())  # as the first guard does
    before = logger.level, list(logger.handlers)
    monkeypatch.setattr(server, "run", lambda *_: levels.append(logger.level))
    assert cli.main(arguments(tmp_path, Y, *MEANS)) == 0
    assert levels == [logging.INFO] and (logger.level, logger.handlers) == before
    told = capsys.readouterr()
    assert ("chmod 600" in told.err) is is_warned and "with a RadaBound" in told.out
    assert "token-" not in told.out + told.err


@pytest.mark.parametrize(
    ("options", "address", "warns"),
    [
        ([], "http://127.0.0.1:", None),
        (["--host", "localhost"], "http://127.0.0.1:", None),
        (["--host", "0.0.0.0"], "http://0.0.0.0:", "other machines can connect past"),
    ],
)
def test_the_command_says_what_it_expects_in_front_and_who_can_connect_without_it(
    tmp_path, capsys, monkeypatch, options, address, warns
):
    from radabound_fast import cli
    from radabound_fast.service import server

    monkeypatch.setattr(server, "run", lambda *_: None)
    assert cli.main(arguments(tmp_path, Y, *MEANS, *options)) == 0
    told = capsys.readouterr()
    assert told.out.startswith(address)
    assert "expects a reverse proxy in front" in told.out
    assert ("other machines" in told.err) is (warns is not None) and (warns or "") in told.err


def test_without_the_extra_the_command_says_which_line_installs_it(tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("radabound_fast.service")]:
        monkeypatch.delitem(sys.modules, name)
    for package in ("starlette", "uvicorn", "prometheus_client"):
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
    given = ["serve", "g.db", "--labels", "y.npy", "--tokens", "t.txt"]
    assert cli.main(given) == 2
    assert 'pip install ".[serve]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must have a line `name token` for everybody"),
        ("red", "line 1: must be a name, a token, and at most limits, got 1 word"),
        ("# x\n\nred short", "line 3: a token must have at least 16 characters"),
        ("r/d token-0123456789ab", "line 1: a name must be letters"),
        ("red sha256:12", "line 1: sha256: must be followed by 64 hexadecimal digits"),
        ("red token-0123456789ab -5", "line 1: a limit must be a whole number"),
        ("red token-0123456789ab until=soon", "line 1: until must be a date or a time"),
        ("red token-0123456789ab until=9999-12-31", "line 1: until must be a date or a time"),
        ("red token-0123456789ab keys=5..4", "line 1: keys must be a range"),
        ("red token-0123456789ab keys={}", "line 1: keys must be a range"),
        ("* keys=0..4", "line 1: a limit must be a whole number"),
        ("red token-0123456789ab\n* 5\n* 6", "must have one line of '*' at most"),
        ("red token-0123456789ab keys=0..4\nblue token-9876543210ab", "blue has or had none"),
        (
            "red token-0123456789ab keys=0..4\nblue token-9876543210ab keys=4..5",
            "keys of red and blue must be apart",
        ),
        ("owner token-0123456789ab 5", "line 1: 'owner' has no limit"),
        ("red token-0123456789ab\nred token-9876543210ab", "must have each name once"),
        ("red token-0123456789ab\nblue token-0123456789ab", "must have each token once"),
        ("red Fq3...at-least-16-characters", "line 1: a token must be a secret of its own"),
        *(
            (f"red {word}{hashlib.sha256(known).hexdigest()}", "an empty one or a known example")
            for known in (b"", b"\n", b"test")
            for word in ("sha256:", "SHA256:")
        ),
        ("red token-0123456789ж", "line 1: a token must be visible characters of ASCII"),
        (b"\xff\xfe", "must be text in UTF-8"),
    ],
)
def test_a_file_of_tokens_is_refused_by_its_line_and_without_a_token(tmp_path, text, reason):
    from radabound_fast.service.tokens import Tokens

    path = tmp_path / "t.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match="t.txt") as refused:
        Tokens(path)
    assert reason in str(refused.value) and "0123" not in str(refused.value)


@pytest.mark.parametrize("word", ["sha256:", "SHA256:", "Sha256:"])
def test_a_token_may_stand_in_the_file_as_its_hash(tmp_path, word):
    from radabound_fast.service.tokens import Team, Tokens

    path = tmp_path / "t.txt"
    digest = hashlib.sha256(b"a token of mine").hexdigest()
    path.write_text(f"red {word}{digest} 7\nowner owner-token-0123456789\n")
    tokens = Tokens(path)
    assert tokens.team_of(b"a token of mine") == Team("red", 7)
    assert tokens.team_of(f"sha256:{digest}".encode()) is tokens.team_of(digest.encode()) is None


def test_files_of_an_editor_that_marks_utf_8_are_read(tmp_path):
    from radabound_fast.cli.spaces import read_space
    from radabound_fast.service.tokens import Tokens

    path = tmp_path / "t.txt"
    path.write_text("owner owner-token-0123456789\r\nred red-token-0123456789\r\n", "utf-8-sig")
    assert [team.name for team in Tokens(path).teams] == ["owner", "red"]
    path.write_text('{"depth": [1, 2]}', "utf-8-sig")
    assert read_space(path) == as_space({"depth": [1, 2]})


BUSY = json.dumps({"error": {"type": "RuntimeError", "message": "64 calls of red wait"}}).encode()
TODAY = json.dumps({"error": {"type": "RuntimeError", "message": "0 answers left"}}).encode()


def test_it_waits_where_the_service_says_that_waiting_helps(service, monkeypatch, caplog):
    """After a limit that is free again in seconds; a proxy's 429 as well, which says nothing."""
    client = service.remote(timeout=100)
    replies = [(429, BUSY, 1.0), (429, b"<html>", None), (429, BUSY, 7.0), (503, BUSY, 1.0)]
    send, came = client._send, iter(replies)
    monkeypatch.setattr(client, "_send", lambda *sent: next(came, None) or send(*sent))
    slept = simulated_time(monkeypatch)
    assert client.query(row()).number == 1
    assert slept[0] == 1.0 and slept[1] == 0.1 and slept[2] == 7.0 and len(slept) == 4
    assert "64 calls of red wait" in caplog.text


@pytest.mark.parametrize(("seconds", "n_tries"), [(101.0, 1), (40.0, 3)])
def test_it_raises_what_the_service_says_where_waiting_is_longer_than_a_call(
    service, monkeypatch, seconds, n_tries
):
    client, tries = service.remote(timeout=100), []
    monkeypatch.setattr(client, "_send", lambda *_: tries.append(0) or (429, TODAY, seconds))
    simulated_time(monkeypatch)
    with pytest.raises(RuntimeError, match="0 answers left"):
        client.query(row())
    assert len(tries) == n_tries


def test_more_rows_than_the_service_takes_are_refused_before_they_leave(service, monkeypatch):
    client = service.remote()
    monkeypatch.setattr(client, "_max_rows", 3)
    monkeypatch.setattr(client, "_send", None)
    with pytest.raises(ValueError, match="rows must be at most 3 a call, got 4"):
        client.query_many([row()] * 4)


def test_a_connection_that_is_kept_waits_for_the_seconds_of_the_call_that_takes_it(service):
    client = service.remote(timeout=100)
    client.query(row())
    kept = client._connection(0.25)
    assert kept.sock.gettimeout() == 0.25
    kept.close()


def test_the_pauses_between_two_tries_grow_and_end(tmp_path, monkeypatch):
    """A service that was there may be restarting: a call waits for as long as the user says."""
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        guard = service.remote(timeout=60)
    slept = simulated_time(monkeypatch)
    with pytest.raises(ConnectionError, match="gave no answer within 60 seconds"):
        guard.query(Y)
    assert slept[:3] == [0.05, 0.1, 0.2] and max(slept) == 5.0 and 50 < sum(slept) <= 60
