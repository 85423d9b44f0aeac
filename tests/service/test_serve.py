"""`radabound serve`: what it answers, to whom, and what it tells nobody."""

import base64
import contextlib
import errno
import hmac
import io
import itertools
import json
import math
import os
import re
import socket
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from serving import A_DAY, TOKENS, Command, in_thread, octets_of, serve
from support import at_once

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    metrics,
)
from radabound_fast._kernels.guard import Answer
from radabound_fast.integrations._owner import AnyGuard
from radabound_fast.service import app, contract, reports, state
from radabound_fast.service.answering import Answering, Call
from radabound_fast.service.client import RemoteHoldout
from radabound_fast.service.tokens import Team, Tokens
from radabound_fast.service.wire import pack_body
from radabound_fast.store import served

M = 1001  # no multiple of 8, nor of 64
RNG = np.random.default_rng(7)
Y = RNG.integers(0, 2, M)
ROWS = [np.where(RNG.random(M) < 0.2, 1 - Y, Y) for _ in range(6)]
FIXED = {"epsilon": 0.1, "delta": 0.1, "seed": 1}
MCLT = {"epsilon": 0.08, "delta": 0.1, "bound": "mclt", "seed": 1}  # which halts


@pytest.fixture
def service(tmp_path):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as running:
        yield running


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """One for tests in which nothing is counted."""
    folder = tmp_path_factory.mktemp("refusing")
    with in_thread(FixedSequence.open(folder / "guard.db", Y, **FIXED), folder) as running:
        yield running


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


FORMS = {
    "bits": octets_of,
    "codes": lambda rows: np.asarray(rows, np.uint8).tobytes(),
    "npy": lambda rows: npy(np.asarray(rows, np.int16)),
}


# ---- answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_predictions_is_answered_as_the_guard_answers(tmp_path, form):
    here = FixedSequence(Y, **FIXED)
    with in_thread(FixedSequence.open(tmp_path / "guard.db", Y, **FIXED), tmp_path) as service:
        for row in ROWS[:2]:
            expected = here.query(row)
            status, told = service.post("/query", {"form": form}, FORMS[form](row))
            assert status == 200 and told == {
                "value": expected.value, "low": expected.low, "high": expected.high,
                "half_width": expected.half_width, "number": expected.number,
            }  # fmt: skip
        expected = here.query_many(ROWS)
        status, told = service.post("/query_many", {"form": form}, FORMS[form](ROWS))
        assert status == 200 and told == {
            "values": expected.values.tolist(), "lows": expected.lows.tolist(),
            "highs": expected.highs.tolist(), "half_widths": expected.half_widths.tolist(),
            "numbers": list(range(3, 9)), "halted": False, "n_answered": 8,
        }  # fmt: skip
    with FixedSequence.open(tmp_path / "guard.db", Y) as there:
        assert (there._core.progress() == here._core.progress()).all()


def test_strings_of_many_classes_are_answered_in_every_form_that_holds_them(tmp_path):
    names = np.array(["ant", "bee", "cat", "dog"])
    codes = RNG.integers(0, 4, M)
    row = np.where(RNG.random(M) < 0.3, RNG.integers(0, 4, M), codes)
    here = FixedSequence(names[codes], **FIXED)
    value = here.query(names[row]).value
    with serve(tmp_path, FixedSequence, names[codes], **FIXED) as service:
        given = {"codes": row.astype(np.uint8).tobytes(), "npy": npy(names[row])}
        for form, octets in given.items():
            assert service.post("/query", {"form": form}, octets)[1]["value"] == value
        wild = npy(names[row])[:-1] + b"\x7f"
        status, told = service.post("/query", {"form": "npy"}, wild)
        assert status == 400 and "a character that is not in Unicode" in told["error"]["message"]
        status, told = service.post("/query", {"form": "bits"}, octets_of(row > 1))
        assert status == 400 and "bits are for two classes" in told["error"]["message"]


GUARDS = {
    "RadaBound": (RadaBound, {**MCLT, "epsilon": 0.1}, {}),
    "FixedSequence": (FixedSequence, FIXED, {}),
    "without signs": (FixedSequence, {"epsilon": 0.1, "delta": 0.1, "n_vectors": 0}, {}),
    "GuessAndCheck": (GuessAndCheck, {"epsilon": 0.1, "delta": 0.1}, {"guess": 0.2}),
    "Ladder": (Ladder, {"step": 0.01, "delta": 0.1, "max_queries": 50}, {}),
    "without an end": (Ladder, {"step": 0.01, "delta": 0.1}, {}),
    "DeclaredSearch": (
        DeclaredSearch, {"space": {"depth": [1, 2, 3]}, "delta": 0.1}, {"key": {"depth": 2}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDS)
def test_a_remote_guard_is_whatever_guard_the_service_hosts(tmp_path, name):
    kind, parameters, named = GUARDS[name]
    here = kind(Y, **parameters)
    with serve(tmp_path, kind, Y, **parameters) as service:
        remote = service.remote()
        assert {name for name in vars(AnyGuard) if not name.startswith("_")} <= set(dir(remote))
        for row in ROWS[:1] * 2:
            for fact in ("kind", "needs", "guarantee", "parameters", "n_samples", "n_answered",
                         "halted", "can_answer"):  # fmt: skip
                assert getattr(remote, fact) == getattr(here, fact), fact
            assert remote.n_left() == here.n_left_public() and remote.what_would_answer() == ""
            expected, answer = here.query(row, **named), remote.query(row, **named)
            own = {} if kind is not DeclaredSearch else named | {"rerun": 1}
            shared = {field: getattr(expected, field) for field in Answer.fields}
            assert answer.to_dict() == shared | own
        plural = {"guess": "guesses", "key": "keys"}
        many = {plural[key]: [value] for key, value in named.items()}
        expected, answers = here.query_many(ROWS[:1], **many), remote.query_many(ROWS[:1], **many)
        for field in ("values", "lows", "highs", "half_widths", "numbers"):
            assert getattr(answers, field).tolist() == getattr(expected, field).tolist()
        assert answers.n_answered == expected.n_answered == remote.n_answered
        for fact in RemoteHoldout.__slots__:
            assert getattr(remote.holdout, fact) == getattr(here.holdout, fact), fact
        assert remote.holdout.labels is None
        with pytest.raises(AttributeError):
            remote.holdout.metric = "accuracy"
        for fact in ("holdout", "n_samples", "kind", "needs", "parameters", "guarantee", "halted"):
            with pytest.raises(AttributeError):
                setattr(remote, fact, None)
        if kind is DeclaredSearch:
            assert str(remote.report()) == re.sub(r" \(\d queries\)", "", str(here.report()))
        else:
            with pytest.raises(TypeError, match=f"has a report, this guard is a {kind.__name__}$"):
                remote.report()


@pytest.mark.parametrize("name", GUARDS)
def test_the_state_says_what_the_guard_is_and_what_a_query_brings(tmp_path, name):
    kind, parameters, named = GUARDS[name]
    here = kind(Y, **parameters)
    with serve(tmp_path, kind, Y, **parameters) as service:
        for n_answered in (0, 1):
            state = service.get("/state")[1]
            expected = {
                "guard": kind.__name__, "parameters": here.parameters,
                "guarantee": here.guarantee, "needs": next(iter(named), None),
                "n_samples": M, "classes": [0, 1], "metric": "error", "pos_label": None,
                "takes": "classes", "greater_is_better": False,
                "halted": False, "can_answer": True, "n_left": here.n_left_public(),
                "n_answered": n_answered,
            }  # fmt: skip
            assert {key: state[key] for key in expected} == expected
            secrets = {"seed", "complexity", "budget"} & {*state, *state["parameters"]}
            assert not secrets and set(service.get("/state", "owner")[1]) - set(state) == (
                {"teams"} | set(here.owner_facts())
            )
            here.query(ROWS[0], **named)
            service.post("/query", {"form": "bits"} | named, octets_of(ROWS[0]))


@pytest.mark.parametrize("n_calls", [1, 3, 4, 12])
@pytest.mark.parametrize("name", GUARDS)
def test_calls_that_are_answered_together_get_what_each_would_get_alone(tmp_path, name, n_calls):
    kind, parameters, named = GUARDS[name]
    here = kind(Y, **parameters)
    answering = Answering(kind.open(tmp_path / "g.db", Y, **parameters))
    try:
        rows = [np.where(RNG.random(M) < 0.2, 1 - Y, Y) for _ in range(n_calls)]
        keys = [
            {"key": {"depth": 1 + n % 3}} if named.get("key") else named for n in range(n_calls)
        ]
        if kind is DeclaredSearch:  # a key is one model
            rows = [rows[n % 3] for n in range(n_calls)]
        team = Team("red", None)
        calls = [
            Call(team, pack_body({"form": "bits", **key}, octets_of(row)), False, str(n))
            for n, (row, key) in enumerate(zip(rows, keys, strict=True))
        ]
        answering.answer(calls)
        for call, row, key in zip(calls, rows, keys, strict=True):
            reply, expected = json.loads(call.reply.body), here.query(row, **key)
            for field in ("value", "low", "high", "half_width", "number"):
                assert reply[field] == getattr(expected, field), field
        assert answering.n_commits == 1
    finally:
        answering.close()


def test_a_limit_that_is_not_known_is_null_then_nan_then_not_there(tmp_path, monkeypatch):
    """`Answer` allows it: none of these guards has such a limit now."""
    unknown = lambda _, answers: [(math.nan,) * 3 for _ in answers]  # noqa: E731
    monkeypatch.setattr(Ladder, "intervals_of", unknown)
    with serve(tmp_path, Ladder, Y, step=0.01, delta=0.1) as service:
        reply = service.post("/query", {"form": "bits"}, octets_of(ROWS[0]))[1]
        assert reply["low"] is reply["high"] is reply["half_width"] is None and reply["value"] > 0
        answer = service.remote().query(ROWS[0])
        assert math.isnan(answer.low) and math.isnan(answer.high) and math.isnan(answer.half_width)
        page = service.send("GET", "/")[2].decode()
        assert page.count("Low") == 0 and page.count("between") == 0


def test_a_key_that_comes_twice_at_once_is_one_call(tmp_path):
    answering = Answering(FixedSequence.open(tmp_path / "g.db", Y, **FIXED))
    try:
        bodies = [pack_body({"form": "bits"}, octets_of(row)) for row in ROWS]
        calls = [Call(Team("red", None), bodies[0], False, "k") for _ in range(3)]
        calls += [Call(Team("blue", None), bodies[0], False, "k")]
        calls += [Call(Team("red", None), bodies[1], False, "k")]
        answering.answer(calls)
        first, again, third, other, wrong = (call.reply for call in calls)
        assert first.body == again.body == third.body and other.status == 200
        assert [reply.outcome for reply in (first, again, third)] == [
            "answered", "repeated", "repeated",
        ]  # fmt: skip
        assert wrong.status == 422 and answering.guard.n_answered == 2
    finally:
        answering.close()


def test_a_limit_holds_among_calls_that_come_at_once(tmp_path):
    answering = Answering(FixedSequence.open(tmp_path / "g.db", Y, **FIXED))
    try:
        body = pack_body({"form": "bits"}, octets_of(ROWS[0]))
        calls = [Call(Team("small", 3), body, False, None) for _ in range(5)]
        answering.answer(calls)
        assert [call.reply.status for call in calls] == [200, 200, 200, 429, 429]
    finally:
        answering.close()


@pytest.mark.parametrize("metric", ["roc_auc", "f1", "neg_brier_score"])
def test_a_metric_is_measured_over_a_declared_search(tmp_path, metric):
    scores = np.clip(Y + RNG.normal(size=M), 0, 1) if metric == "neg_brier_score" else (
        ROWS[0] if metric == "f1" else Y + RNG.normal(size=M)
    )  # fmt: skip
    here = DeclaredSearch(Holdout(Y, metric=metric), 10, delta=0.1)
    with serve(tmp_path, DeclaredSearch, Holdout(Y, metric=metric), 10, delta=0.1) as service:
        remote, expected = service.remote(), here.query(scores, key=3)
        told = remote.query(scores, key=3)
        assert (told.value, told.low, told.high) == (expected.value, expected.low, expected.high)
        assert (told.key, told.rerun, remote.holdout.metric) == (3, 1, metric)
        report = remote.report()
        assert str(report) == str(here.report()) and report.best["key"] == 3
        assert "<table>" in report._repr_html_() and json.loads(report.to_json())["delta"] == 0.1
        with pytest.raises(ValueError, match="nothing to report"):
            service.remote("blue").report()
        assert service.remote("owner").report().n_models == 1
        service.remote("blue").query(scores[::-1].copy(), key=4)
        report = remote.report()  # of its own, whatever others have asked
        assert (report.n_models, str(report)) == (1, str(here.report()))
        assert service.remote("owner").report().n_models == 2


def test_a_query_does_not_wait_for_a_report(tmp_path, monkeypatch):
    began, answered = threading.Event(), threading.Event()
    report_fields = reports.report_fields

    def slow(report):
        began.set()
        assert answered.wait(120)
        return report_fields(report)

    monkeypatch.setattr(reports, "report_fields", slow)
    with serve(tmp_path, DeclaredSearch, Y, space=10, delta=0.1) as service:
        service.remote().query(ROWS[0], key=0)
        made = []
        asking = threading.Thread(target=lambda: made.append(service.remote().report()))
        asking.start()
        assert began.wait(30)
        service.remote(timeout=60).query(ROWS[1], key=1)  # while the report is made
        answered.set()
        asking.join(60)
    assert [report.n_models for report in made] == [1]  # of what had been asked before


@pytest.mark.parametrize("metric", ["roc_auc", "f1"])
def test_a_metric_in_a_fixed_order_is_served_without_how_many_labels_there_are(tmp_path, metric):
    """Its database keeps that; a search's does too, beside its parameters."""
    labels = (np.arange(M) < 137).astype(int)
    given = {"epsilon": 0.2, "delta": 0.1}
    here = FixedSequence(Holdout(labels, metric=metric), **given)
    with serve(tmp_path, FixedSequence, Holdout(labels, metric=metric), **given) as service:
        remote, row = service.remote(), np.where(RNG.random(M) < 0.05, 1 - labels, labels)
        told, expected = remote.query(row), here.query(row)
        assert (told.value, told.low, told.high) == (expected.value, expected.low, expected.high)
        assert remote.query_many([row, row]).n_answered == 3 and remote.holdout.metric == metric
        for team in ("red", "owner"):
            pages = [service.send("GET", path, team=team)[2].decode() for path in ("/state", "/")]
            for page in pages:
                assert not re.search(r"\b(137|864)\b", page)


def test_a_fixed_order_halts_where_an_answer_is_not_known_well_enough(tmp_path):
    given = {"epsilon": 0.03, "delta": 0.1, "n_vectors": 0}
    with serve(tmp_path, FixedSequence, Y, **given) as service:
        asked = service.remote()
        assert asked.query(Y).number == 1
        with pytest.raises(HoldoutExhausted, match="is spent after 1 answer: this query is with"):
            asked.query(RNG.integers(0, 2, M))
        assert service.get("/state")[1]["n_left"] == 0 and service.remote("blue").halted
        assert "halted" in service.send("GET", "/")[2].decode()


def test_gains_over_a_baseline_are_told(tmp_path):
    holdouts = [Holdout(Y, metric="accuracy") for _ in range(2)]
    given = {"space": 10, "delta": 0.1, "baseline": ROWS[1]}
    here = DeclaredSearch(holdouts[0], **given)
    with serve(tmp_path, DeclaredSearch, holdouts[1], **given) as service:
        remote = service.remote()
        assert remote.holdout.greater_is_better
        told, expected = remote.query(ROWS[0], key=1), here.query(ROWS[0], key=1)
        assert (told.gain, told.gain_low, told.gain_high) == (
            expected.gain, expected.gain_low, expected.gain_high,
        )  # fmt: skip
        head, schemas = {"form": "bits"}, contract.OPENAPI["components"]["schemas"]
        for path, more, rows, schema in (
            ("/query", {"key": 1}, ROWS[0], "Answer"),
            ("/query_many", {"keys": [1]}, ROWS[:1], "Answers"),
        ):
            reply = service.post(path, head | more, octets_of(rows))[1]
            assert "gain" in str(reply) and set(reply) <= set(schemas[schema]["properties"])
        many = service.remote().query_many(ROWS[:2], keys=[1, 2])
        assert many[0].gain == told.gain and many[1].gain_low < 0 < many[1].gain_high


# ---- once, whatever happens --------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/query", "/query_many"])
def test_a_call_that_is_sent_again_is_counted_once(service, path):
    first = service.post(path, {"form": "bits"}, octets_of(ROWS[0]), Idempotency_Key="a")
    again = service.post(path, {"form": "bits"}, octets_of(ROWS[0]), Idempotency_Key="a")
    assert first == again and first[0] == 200
    assert service.get("/state")[1]["n_answered"] == 1
    # the key is the team's own
    other = service.post(
        path, {"form": "bits"}, octets_of(ROWS[0]), "blue", Idempotency_Key="a"
    )  # fmt: skip
    assert other[0] == 200 and service.get("/state")[1]["n_answered"] == 2


def test_a_key_that_came_with_another_call_is_refused(service):
    assert service.post("/query", {"form": "bits"}, octets_of(ROWS[0]), Idempotency_Key="a")[0]
    for path, row in (("/query", ROWS[1]), ("/query_many", ROWS[0])):
        status, told = service.post(path, {"form": "bits"}, octets_of(row), Idempotency_Key="a")
        assert status == 422 and "another body" in told["error"]["message"]
    assert service.get("/state")[1]["n_answered"] == 1


def test_calls_that_wait_are_committed_together_and_each_has_a_number(service):
    def ask(place):
        for number in range(10):
            told.append(
                service.post(
                    "/query", {"form": "bits"}, octets_of(ROWS[place]),
                    Idempotency_Key=f"{place}-{number}",
                )[1]["number"]
            )  # fmt: skip

    told = []
    at_once(ask, range(6))
    assert sorted(told) == list(range(1, 61))
    assert 1 <= metrics_of(service)[1][("commits_total",)] <= 60


@pytest.mark.parametrize("kind", [RadaBound, Ladder, DeclaredSearch, FixedSequence])
def test_what_cannot_be_committed_is_not_counted_and_may_be_sent_again(tmp_path, kind, monkeypatch):
    parameters = {
        RadaBound: FIXED, Ladder: {"delta": 0.1, "step": 0.01},
        DeclaredSearch: {"delta": 0.1, "space": 10}, FixedSequence: {"delta": 0.1, "epsilon": 0.1},
    }[kind]  # fmt: skip
    named = {"key": 3} if kind is DeclaredSearch else {}
    fails = [True]

    def add(log, *given):
        added(log, *given)
        if fails:
            raise sqlite3.OperationalError("database or disk is full")

    added = served.Log.add
    monkeypatch.setattr(served.Log, "add", add)
    with serve(tmp_path, kind, Y, **parameters) as service:
        ask = lambda: service.post(  # noqa: E731
            "/query", {"form": "bits", **named}, octets_of(ROWS[0]), Idempotency_Key="k"
        )
        status, told = ask()
        assert status == 503 and "nothing was counted" in told["error"]["message"]
        assert service.get("/state")[1]["n_answered"] == 0
        fails.clear()
        assert ask() == ask() and ask()[0] == 200
        state = service.get("/state")[1]
        assert state["n_answered"] == state["you"]["n_answers"] == 1


def test_a_halt_that_could_not_be_committed_did_not_happen(tmp_path, monkeypatch):
    from radabound_fast.store import ledger

    with serve(tmp_path, RadaBound, Y, **MCLT) as service:
        ask = lambda: service.post("/query_many", {"form": "bits"}, octets_of(rows))  # noqa: E731
        rows = RNG.integers(0, 2, (400, M))
        with monkeypatch.context() as patch:
            patch.setattr(ledger.Ledger, "_commit", _fail)
            status, told = ask()
            assert status == 503 and "No space left on device" in told["error"]["message"]
        state = service.get("/state")[1]
        assert not state["halted"] and state["n_answered"] == 0
        status, told = ask()
        assert status == 200 and told["halted"] and told["n_answered"] == len(told["values"]) > 0
        assert ask()[0] == 410


def _fail(*_):
    raise OSError(28, "No space left on device", "g.db")


# ---- one budget, and who may see what --------------------------------------------------------


def test_a_halt_is_told_without_a_word_of_the_complexity(tmp_path):
    with serve(tmp_path, RadaBound, Y, **MCLT) as service:
        rows = RNG.integers(0, 2, (400, M))
        status, told = service.post("/query_many", {"form": "bits"}, octets_of(rows))
        assert status == 200 and told["halted"] and len(told["values"]) == told["n_answered"] < 400
        status, halted = service.post("/query", {"form": "bits"}, octets_of(Y), "blue")
        assert status == 410 and halted["error"] == {
            "type": "HoldoutExhausted",
            "message": f"the holdout is spent after {told['n_answered']:,} answers: "
            "this query is withheld",
            "n_answered": told["n_answered"],
        }
        state = service.get("/state")[1]
        assert state["halted"] and state["n_left"] == 0
        page = service.send("GET", "/")[2].decode()
        for text in (json.dumps(told), json.dumps(halted), json.dumps(state), page):
            assert "complexity" not in text.replace("at complexity", "complexity") or text == page
        assert "complexity" not in json.dumps({**state, "guarantee": ""})
        owner = service.get("/state", "owner")[1]
        assert owner["complexity"] > owner["budget"] and "seed" not in owner["parameters"]
        # what was answered before is answered still, to whoever lost the reply
        assert service.remote("red").halted


def test_a_team_sees_its_own_answers_and_the_owner_all(service):
    service.remote("red").query(ROWS[0])
    service.remote("blue").query_many(ROWS[1:4])
    pages = {team: service.send("GET", "/", team=team)[2].decode() for team in TOKENS}
    assert pages["red"].count("<title>") - 1 == 2 * 1  # a mark in each of two pictures
    assert pages["blue"].count("<title>") - 1 == 2 * 3
    assert pages["owner"].count("<title>") - 1 == 2 * 4
    assert not re.search(r"\bblue\b", pages["red"]) and not re.search(r"\bred\b", pages["blue"])
    states = {team: service.get("/state", team)[1] for team in TOKENS}
    assert states["red"]["you"]["n_answers"] == 1 and states["blue"]["you"]["n_answers"] == 3
    assert "teams" not in states["red"] and {s["n_answered"] for s in states.values()} == {4}
    assert states["owner"]["teams"]["blue"] == {"n_calls": 1, "n_answers": 3, "n_today": 3}


def test_a_team_with_a_limit_gets_so_many_answers_a_day(service):
    remote = service.remote("small")
    for _ in range(A_DAY - 1):
        remote.query(ROWS[0])
    with pytest.raises(
        RuntimeError, match=r"1 answer left of 5 today \(UTC\), and small asks for 2"
    ):
        remote.query_many(ROWS[:2])
    remote.query(ROWS[0])
    status, headers, _ = service.send("POST", "/query", b'{"form": "npy"}\n' + npy(Y), "small")
    assert status == 429 and 0 < int(headers["retry-after"]) <= 86400
    assert remote.n_answered == A_DAY and service.remote("red").query(ROWS[0]).number == 6


@pytest.mark.parametrize(
    "given",
    [
        None, "Bearer", "Bearer wrong-token-0123456789", "Basic x", f"Token {TOKENS['red']}",
        "Basic \xff\xfe", "Basic " + base64.b64encode(b"\xff:\xff").decode(), "Bearer \xff",
    ],
)  # fmt: skip
def test_nobody_is_answered_without_a_token(refusing, given):
    headers = {} if given is None else {"Authorization": given}
    for method, path in (("POST", "/query"), ("GET", "/state"), ("GET", "/"), ("GET", "/metrics")):
        status, found, body = refusing.send(method, path, team=None, **headers)
        assert status == 401 and "www-authenticate" in found
        error = json.loads(body)["error"]
        assert error["type"] == "PermissionError" and "as Authorization: Bearer" in error["message"]
        # a wrong one is not said to be missing
        assert ("no team has the token" in error["message"]) is (given is not None)


def test_what_is_refused_is_logged_with_its_address_and_bounded(service, caplog, monkeypatch):
    second = [1000]
    monkeypatch.setattr(app.time, "time", lambda: second[0])
    forged = "Bearer wrong-token-0123456789"
    behind_proxy = {"Authorization": forged, "X-Forwarded-For": "192.0.2.7"}
    assert service.send("GET", "/state", team=None, **behind_proxy)[0] == 401
    assert service.send("GET", "/metrics")[0] == 403 and service.send("GET", "/no")[0] == 404
    assert service.send("GET", "/state")[0] == 200
    assert [record.getMessage() for record in caplog.records] == [
        "refused with 401: 'GET /state' from '192.0.2.7', no team",
        "refused with 403: 'GET /metrics' from '127.0.0.1', red",
        "refused with 404: 'GET /no' from '127.0.0.1', no team",
    ]
    assert "wrong-token" not in caplog.text and TOKENS["red"] not in caplog.text
    for _ in range(30):
        service.send("GET", "/state", team=None)
    second[0] += 1
    service.send("GET", "/state", team=None)
    assert len(caplog.records) == 12 and "23 more were refused" in caplog.text


@pytest.mark.parametrize("host", ["[x", "[", "a]b", "x:y:z"])
def test_a_host_that_is_none_is_no_fault(refusing, host):
    for path, status in (("/state", 401), ("/", 401), ("/no", 404)):
        assert refusing.send("GET", path, team=None, Host=host)[0] == status


def test_whether_a_call_could_be_counted_is_another_question(service, monkeypatch, caplog):
    """On a full disk the database answers, and nothing can be counted."""
    assert service.get("/ready", None) == (200, {"status": "ready"})
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(served, "why_not_written", lambda folder: full)
    assert service.get("/ready", None)[0] == 200  # from a moment ago: it costs a write
    monkeypatch.setattr(app, "_READY_SECONDS", 0)
    assert service.get("/health", None)[0] == 200
    status, told = service.get("/ready", None)
    assert status == 503 and "nothing can be written" in told["error"]["message"]
    assert "No space left on device" in caplog.text


def test_a_browser_sends_a_token_with_a_name_but_cannot_ask_with_it(refusing):
    def basic(name, token):
        return "Basic " + base64.b64encode(f"{name}:{token}".encode()).decode()

    given = basic("red", TOKENS["red"])
    assert refusing.send("GET", "/", team=None, Authorization=given)[0] == 200
    assert refusing.send("POST", "/query", b"", team=None, Authorization=given)[0] == 401
    other = basic("owner", TOKENS["red"])
    assert refusing.send("GET", "/", team=None, Authorization=other)[0] == 401


def test_every_known_token_is_compared_whoever_asks(tmp_path, monkeypatch):
    path = tmp_path / "t.txt"
    path.write_text("\n".join(f"{name} {token}" for name, token in TOKENS.items()))
    tokens, compared = Tokens(path), []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(a) or real(a, b))
    assert tokens.team_of(TOKENS["owner"].encode()).is_owner
    assert tokens.team_of(b"nobody's") is None
    assert len(compared) == 2 * len(TOKENS)


# ---- what comes from outside ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "octets", "reason"),
    [
        ({"form": "bits"}, b"", "there must be 126 octets for 1001 samples, got 0"),
        ({"form": "bits"}, bytes(252), "there must be 126 octets"),
        ({"form": "bits"}, bytes(125) + b"\xff", "1001"),
        ({"form": "codes"}, bytes(1000), "there must be 1001 octets"),
        ({"form": "codes"}, bytes(1000) + b"\x02", "got 2 at sample 1000"),
        ({"form": "npy"}, b"nothing at all", "the magic string is not correct"),
        ({"form": "npy"}, npy(Y)[:-1], "the array's header speaks of 8008 octets, got 8007"),
        ({"form": "npy"}, npy(Y[:-1]), "y_pred must have length 1001, got shape"),
        ({"form": "npy"}, npy(Y + 0.5), "y_pred must hold only known classes"),
        ({"form": "npy"}, npy(Y.astype(str)), "y_pred must be numbers as y_true"),
        ({"form": "pickle"}, b"", "form must be one of bits, codes, npy, got 'pickle'"),
        ({"form": "bits", "guess": 0.2}, octets_of(Y), "unexpected keyword argument 'guess'"),
        ({"form": "bits", "key": 1}, octets_of(Y), "unexpected keyword argument 'key'"),
        ({"form": "bits", "rerun": 1}, octets_of(Y), "unexpected keyword argument 'rerun'"),
        ({"form": "bits", "keys": [1]}, octets_of(Y), "got 'keys'"),
        ({}, octets_of(Y), "form must be one of"),
    ],
)
def test_bad_predictions_are_refused_in_the_librarys_words(refusing, head, octets, reason):
    status, told = refusing.post("/query", head, octets)
    assert status == 400 and reason in told["error"]["message"]
    assert told["error"]["type"] in ("ValueError", "TypeError")
    assert refusing.get("/state")[1]["n_answered"] == 0


@pytest.mark.parametrize("path", ["/state/", "/query/", "//state"])
def test_nobody_is_sent_elsewhere(refusing, path):
    """A redirect would follow the Host header, and a client might take its token along."""
    for method in ("GET", "POST"):
        status, headers, _ = refusing.send(method, path, Host="elsewhere.example")
        assert status == 404 and "location" not in headers


@pytest.mark.parametrize("name", ["guesses", "keys", "reruns"])
@pytest.mark.parametrize("value", ["ab", {"a": 1, "b": 2}, 7, True])
def test_what_is_said_of_rows_is_a_list(refusing, name, value):
    status, told = refusing.post("/query_many", {"form": "bits", name: value}, octets_of(ROWS[:2]))
    assert status == 400 and f"{name} must be a list" in told["error"]["message"]


@pytest.mark.parametrize("form", ["bits", "codes", "npy"])
def test_no_rows_have_no_answers(tmp_path, form):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        none = npy(np.zeros((0, M), int)) if form == "npy" else b""
        status, told = service.post("/query_many", {"form": form}, none)
        assert status == 200 and told["values"] == told["numbers"] == [] and not told["halted"]
        assert len(service.remote().query_many(np.zeros((0, M), int))) == 0
        assert service.get("/state")[1]["n_answered"] == 0


@pytest.mark.parametrize("key", ["[" * 900 + "]" * 900, "9" * 400, f'"{"x" * 10**6}"', "[1, 2]"])
def test_a_key_of_whatever_depth_or_length_is_refused_in_a_line(tmp_path, key):
    with serve(tmp_path, DeclaredSearch, Y, space={"z": [[1], 2]}, delta=0.1) as service:
        for form in ('{"form": "bits", "key": %s}', '{"form": "bits", "key": {"z": %s}}'):
            body = (form % key).encode() + b"\n" + octets_of(Y)
            status, _, told = service.send("POST", "/query", body)
            assert status in (400, 413) and len(told) < 1000
        assert service.get("/state")[1]["n_answered"] == 0


def test_a_number_alone_is_no_row(tmp_path):
    with serve(tmp_path, DeclaredSearch, Holdout(Y, metric="f1"), 10, delta=0.1) as service:
        status, told = service.post("/query_many", {"form": "npy", "keys": [1]}, npy(np.float64(3)))
        assert status == 400 and "predictions must have a row" in told["error"]["message"]


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_service_whose_file_is_gone_says_so_and_not_where_it_was(tmp_path, suffix, caplog):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        assert service.get("/health", None)[0] == 200
        (tmp_path / f"g.db{suffix}").unlink()
        asked = [("GET", path) for path in ("/state", "/", "/metrics", "/health")]
        for method, path in [*asked, ("POST", "/query")]:
            body = b'{"form": "bits"}\n' + octets_of(Y) if method == "POST" else None
            status, headers, told = service.send(method, path, body, "owner")
            assert status == 503 and headers["retry-after"] == "1", path
            assert "the database does not answer" in json.loads(told)["error"]["message"]
            assert str(tmp_path) not in told.decode()
    assert "is gone, which an open guard needs" in caplog.text  # for whoever runs it


def test_a_fault_of_ours_is_an_error_in_json_without_its_words(service, monkeypatch, caplog):

    def fails(*_):
        raise KeyError("a label")

    monkeypatch.setattr(state, "team_state", fails)
    status, _, told = service.send("GET", "/state")
    assert status == 500 and json.loads(told)["error"]["type"] == "RuntimeError"
    assert "label" not in told.decode() + caplog.text


@pytest.mark.parametrize("body", [b"", b"\n", b"{", b"[]\n", b"\xff\n", b"{}", b"[" * 100_000])
def test_a_body_without_a_line_of_json_is_refused(refusing, body):
    status, _, told = refusing.send("POST", "/query", body)
    assert status == 400 and "error" in json.loads(told)


@pytest.mark.parametrize("form", ["bits", "codes"])
def test_codes_unfold_into_no_more_labels_than_may_be_held(tmp_path, monkeypatch, form):
    """A bit may stand for a label of 100 octets and more: 8 MB were 10 GB."""
    from radabound_fast.service import reading

    monkeypatch.setattr(reading, "MOST_UNFOLDED", 4 * M * 4 * 40)
    labels = np.where(Y, "yes-" * 10, "no")
    holdout = Holdout(labels, metric=metrics.F1(pos_label="no"))
    with serve(tmp_path, DeclaredSearch, holdout, 10, delta=0.1) as service:
        for n_rows in (4, 5):
            head = {"form": form, "keys": list(range(n_rows))}
            status, told = service.post("/query_many", head, FORMS[form](ROWS[:n_rows]))
            assert status == (200 if n_rows == 4 else 400)
        assert "rows must be at most 4 a call" in told["error"]["message"]


def test_objects_are_not_unpickled(refusing, tmp_path):
    file = io.BytesIO()
    np.save(file, np.array([_Marks(tmp_path)] * M, object), allow_pickle=True)
    status, told = refusing.post("/query", {"form": "npy"}, file.getvalue())
    assert status == 400 and "never loaded" in told["error"]["message"]
    assert not (tmp_path / "mark").exists()


class _Marks:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return (self.folder / "mark").touch, ()


@pytest.mark.parametrize("coding", ["gzip", "br", "GZIP"])
def test_a_compressed_body_is_refused_as_such(tmp_path, coding):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        head = {"form": "bits"}
        status, told = service.post("/query", head, octets_of(Y), content_encoding=coding)
        assert status == 415
        said = f"a body must come as it is, got Content-Encoding: {coding.lower()}"
        assert said in told["error"]["message"]
        assert service.post("/query", head, octets_of(Y), content_encoding="identity")[0] == 200


def test_a_body_has_a_largest_length_whether_it_is_said_or_not(tmp_path):
    with serve(tmp_path, FixedSequence, Y, max_body=1000, **FIXED) as service:
        status, _, told = service.send("POST", "/query", bytes(1001))
        assert status == 413 and "at most 1,000 a call" in json.loads(told)["error"]["message"]
        status, _, _ = service.send("POST", "/query", iter([bytes(600)] * 2))
        assert status == 413
        # one that sends all before it listens, and more than lies on the way, hears of it too
        assert service.send("POST", "/query", bytes(2**25))[0] == 413
        assert service.post("/query", {"form": "bits"}, octets_of(Y))[0] == 200


@pytest.mark.parametrize("where", ["a header", "headers", "the path", "trailers", "chunks' names"])
@pytest.mark.parametrize("token", [TOKENS["red"], "nobody's"])
def test_whoever_has_no_end_of_a_head_is_cut_off(refusing, where, token):
    """All of it would be held, whoever sends it."""
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
    first, then = {
        "a header": (head + "X: ", "a"),
        "headers": (head, "X: a\r\n"),
        "the path": ("POST /", "a"),
        "trailers": (chunked + "0\r\nX: ", "a"),
        "chunks' names": (chunked + "1;", "a"),
    }[where]
    n_sent = 0
    with socket.create_connection(("127.0.0.1", refusing.port), timeout=10) as client:
        client.sendall(first.encode())
        with pytest.raises(OSError, match="reset|pipe"):
            while n_sent < 2**26:
                n_sent += client.send((then * 10_000).encode())
    assert refusing.get("/health", None)[0] == 200


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("request_line", ["GET /state", "GET /health", "POST /query"])
def test_requests_sent_ahead_without_end_take_no_memory(tmp_path, request_line):
    """Each that was read ahead took a hundred times its length: 18 MB were a gigabyte.

    uvicorn reads more of a connection whenever the body of a request is asked for: without a bound
    of ours these 60 MB of queries were in memory.
    """
    options = ["--guard", "radabound", "--epsilon", "0.1", "--delta", "0.1"]
    body = pack_body({"form": "bits"}, octets_of(Y))
    head = f"Host: x\r\nAuthorization: Bearer {TOKENS['red']}\r\nContent-Length: {len(body)}"
    if request_line.startswith("GET"):
        head, body = "Host: x", b""
    requests = f"{request_line} HTTP/1.1\r\n{head}\r\n\r\n".encode() + body

    def peak(pid):
        status = Path(f"/proc/{pid}/status").read_text()
        return 1024 * int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)[1])

    with Command(tmp_path, Y, *options) as command:
        service = command.start()
        n_before, n_sent = peak(command.pid), 0
        until = time.monotonic() + 20
        while n_sent < 60_000_000 and time.monotonic() < until:
            with (
                socket.create_connection(("127.0.0.1", service.port), timeout=1) as client,
                contextlib.suppress(OSError),  # the service ends it, or reads no more
            ):
                while n_sent < 60_000_000:
                    n_sent += client.send(requests * 5_000)
        assert n_sent > 2**20 and peak(command.pid) - n_before < 2**25
        assert service.get("/health", None)[0] == 200


def test_a_body_in_many_pieces_is_read_whole(tmp_path):
    with serve(tmp_path, FixedSequence, Y, **FIXED) as service:
        body = pack_body({"form": "bits"}, octets_of(ROWS * 2_000))
        pieces = [body[place : place + 100] for place in range(0, len(body), 100)]
        told = service.send("POST", "/query_many", iter(pieces))
        assert told[0] == 200 and json.loads(told[2])["n_answered"] == 12_000


def test_replies_and_pages_are_the_same_for_labels_that_err_alike(tmp_path):
    """Nothing that leaves depends on a label but by the number of errors."""
    others = np.roll(Y, 1)
    told = []
    for name, labels in (("a", Y), ("b", others)):
        (tmp_path / name).mkdir()
        guard = FixedSequence.open(tmp_path / name / "g.db", labels, **FIXED)
        with in_thread(guard, tmp_path / name) as service:
            found = [
                service.send("POST", "/query", b'{"form": "bits"}\n' + octets_of(row))
                for row in (np.zeros(M), np.ones(M))
            ]
            found.append(service.post("/query", {"form": "codes"}, bytes(1000) + b"\x07"))
            found += [service.get("/state"), service.send("GET", "/")[2]]
            told.append(re.sub(r"\d\d:\d\d:\d\d", "", str(found)))
    assert told[0] == told[1]


# ---- what is told of the service -------------------------------------------------------------


def test_the_contract_names_every_path_and_what_replies_have(service):
    status, told = service.get("/openapi.json", None)
    assert status == 200 and told == json.loads(json.dumps(contract.OPENAPI))
    for path, methods in told["paths"].items():
        for method in methods:
            status = service.send(method.upper(), path, b"" if method == "post" else None)[0]
            assert status not in (404, 405), path
    schemas = told["components"]["schemas"]
    _, answer = service.post("/query", {"form": "bits"}, octets_of(Y))
    _, answers = service.post("/query_many", {"form": "bits"}, octets_of(ROWS))
    _, error = service.post("/query", {"form": "bits"}, b"")
    for schema, reply in (("Answer", answer), ("Answers", answers), ("Error", error)):
        assert set(reply) <= set(schemas[schema]["properties"])


def test_what_is_not_there_is_an_error_in_json(refusing):
    for method, path, status in (("GET", "/nothing", 404), ("GET", "/query", 405)):
        found, told = refusing.send(method, path)[::2]
        assert found == status and "there is no" in json.loads(told)["error"]["message"]


def metrics_of(service):
    """The families that Prometheus' own parser finds, by name, and their numbers by labels."""
    status, headers, body = service.send("GET", "/metrics", team="owner")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(body.decode()))
    numbers = {
        (sample.name.removeprefix("radabound_"), *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }
    return {family.name: family.type for family in families}, numbers


def test_the_metrics_are_numbers_that_prometheus_reads_and_the_owners(tmp_path):
    with serve(tmp_path, RadaBound, Y, **MCLT) as service:
        assert service.send("GET", "/metrics", team="red")[0] == 403
        for _ in range(2):
            assert service.post("/query", {"form": "bits"}, octets_of(Y), Idempotency_Key="a")
        assert service.post("/query", {"form": "bits"}, b"", "blue")[0] == 400
        kinds, numbers = metrics_of(service)
        assert {name: kind for name, kind in kinds.items() if not name.endswith("_created")} == {
            "radabound_answers": "gauge", "radabound_halted": "gauge",
            "radabound_calls": "counter", "radabound_responses": "counter",
            "radabound_commits": "counter", "radabound_commit_seconds": "counter",
            "radabound_call_seconds": "histogram",
        }  # fmt: skip
        calls = {name[1:]: n for name, n in numbers.items() if name[0] == "calls_total"}
        assert calls == {
            ("answered", "red"): 1.0, ("red", "repeated"): 1.0, ("blue", "refused"): 1.0,
        }  # fmt: skip
        responses = {name[1:]: n for name, n in numbers.items() if name[0] == "responses_total"}
        assert responses == {("200",): 2.0, ("400",): 1.0, ("403",): 1.0}
        assert numbers[("answers",)] == 1 and numbers[("halted",)] == 0
        assert numbers[("commits_total",)] == 3
        assert numbers[("call_seconds_count",)] == numbers[("call_seconds_bucket", "+Inf")] == 3
        assert 0 < numbers[("commit_seconds_total",)] < numbers[("call_seconds_sum",)] < 30
        service.post("/query_many", {"form": "bits"}, octets_of(RNG.integers(0, 2, (400, M))))
        _, numbers = metrics_of(service)
        assert numbers[("answers",)] > 1 and numbers[("halted",)] == 1


# ---- the database --------------------------------------------------------------------------------


def test_a_guard_is_one_whether_it_is_served_or_opened(tmp_path):
    path = tmp_path / "g.db"
    with FixedSequence.open(path, Y, **FIXED) as guard:
        guard.query(ROWS[0])
    with in_thread(FixedSequence.open(path, Y), tmp_path) as service:
        assert service.remote().query(ROWS[1]).number == 2
        with FixedSequence.open(path, Y) as other:  # beside it, without a log
            assert other.query(ROWS[2]).number == 3
        assert service.remote().query(ROWS[3]).number == 4
        state = service.get("/state")[1]
        assert (state["n_answered"], state["you"]["n_answers"]) == (4, 2)
    here = FixedSequence(Y, **FIXED)
    here.query_many(ROWS[:4])
    with FixedSequence.open(path, Y) as there:
        assert (there._core.progress() == here._core.progress()).all()


def test_two_services_on_one_database_are_one(tmp_path):
    """They share the guard, the keys of calls, the limits, and the halt."""
    path = tmp_path / "g.db"
    body = octets_of(ROWS[0])
    with contextlib.ExitStack() as both:
        first, second = (
            both.enter_context(in_thread(FixedSequence.open(path, Y, **FIXED), tmp_path))
            for _ in range(2)
        )
        told = first.post("/query", {"form": "bits"}, body, Idempotency_Key="a")
        assert second.post("/query", {"form": "bits"}, body, Idempotency_Key="a") == told
        other = second.post("/query", {"form": "bits"}, octets_of(ROWS[1]), Idempotency_Key="a")
        assert other[0] == 422
        for number in range(A_DAY):
            asked = (first, second)[number % 2].remote("small")
            assert asked.query(ROWS[number]).number == number + 2
        for service in (first, second):
            assert service.post("/query", {"form": "bits"}, body, "small")[0] == 429
        assert first.get("/state", "owner")[1] == second.get("/state", "owner")[1]
        keys = [f"{number}" for number in range(12)]

        def ask(asked):
            service, key = asked
            service.post("/query", {"form": "bits"}, body, Idempotency_Key=f"k{key}")

        at_once(ask, itertools.product((first, second), keys))
        # each key came to both
        assert second.get("/state")[1]["n_answered"] == 1 + A_DAY + len(keys)


def test_a_limit_a_day_ends_at_midnight_and_outlives_the_service(tmp_path, monkeypatch):
    from radabound_fast.service import answering

    class _Clock:
        now, perf_counter = 86400 * 20_000 - 2.0, time.perf_counter

        def time(self):
            return self.now

    clock = _Clock()
    monkeypatch.setattr(answering, "time", clock)
    monkeypatch.setattr(state, "time", clock)
    body, path = octets_of(ROWS[0]), tmp_path / "g.db"

    def ask(service, key):
        status, told = service.post(
            "/query", {"form": "bits"}, body, "small", Idempotency_Key=str(key)
        )
        return status, service.get("/state", "small")[1]["you"]["n_answers_today"]

    with in_thread(FixedSequence.open(path, Y, **FIXED), tmp_path) as service:
        assert [ask(service, key) for key in range(A_DAY)] == [(200, n + 1) for n in range(A_DAY)]
        assert ask(service, "late") == (429, A_DAY)
    clock.now += 1.0  # the last second of the day, after a restart
    with in_thread(FixedSequence.open(path, Y), tmp_path) as service:
        assert ask(service, "late") == (429, A_DAY)
        assert ask(service, 0) == (200, A_DAY)  # a retry, which is no answer more
        clock.now += 1.0
        assert ask(service, 0) == (200, 0)
        assert ask(service, "late") == (200, 1)
        clock.now -= 1.0  # a clock that is set back finds what was counted then
        assert ask(service, "other") == (429, A_DAY)


def test_a_search_is_one_whether_it_is_served_or_opened(tmp_path):
    given = {"space": 10, "delta": 0.1}
    path = tmp_path / "s.db"
    guard = DeclaredSearch.open(path, Y, **given)
    with in_thread(guard, tmp_path) as service:
        service.remote().query(ROWS[1], key=1)
        other = DeclaredSearch.open(path, Y)
        other.query(ROWS[2], key=2)
        with pytest.raises(ValueError, match="key must stand for one model"):
            service.remote().query(ROWS[1], key=2)
        assert service.get("/state")[1]["n_answered"] == 2


def test_a_log_of_another_form_is_refused(tmp_path):
    path = tmp_path / "g.db"
    with in_thread(FixedSequence.open(path, Y, **FIXED), tmp_path) as service:
        service.remote().query(ROWS[0])
    for statement in ("DROP INDEX served_by_day", "DROP TABLE served", "CREATE TABLE more (a)"):
        copy = tmp_path / "copy.db"
        copy.write_bytes(path.read_bytes())
        connection = sqlite3.connect(copy)
        try:
            connection.execute(statement)
        except sqlite3.OperationalError:
            connection.execute("DROP INDEX served_by_team")
        connection.commit()
        connection.close()
        with pytest.raises(ValueError, match="its tables are not those of a guard"):
            FixedSequence.open(copy, Y)


def test_a_long_log_is_opened(tmp_path):
    path = tmp_path / "g.db"
    with in_thread(FixedSequence.open(path, Y, **FIXED), tmp_path) as service:
        service.remote().query(ROWS[0])
    connection = sqlite3.connect(path)
    connection.executemany(
        "INSERT INTO served VALUES ('red', ?, zeroblob(16), 0, 1, '{}')",
        ((f"{n:032x}",) for n in range(30_000)),
    )
    connection.commit()
    connection.close()
    with FixedSequence.open(path, Y) as guard:
        assert guard.n_answered == 1
