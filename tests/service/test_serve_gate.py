"""A release gate behind a service: verdicts, and nothing else."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from serving import Command, in_thread, octets_of, serve

from radabound_fast import Gate, Holdout, Rounded
from radabound_fast.service.client import RemoteGuard, RemoteVerdict

M = 901
RNG = np.random.default_rng(4)
Y = RNG.integers(0, 2, M)
PRODUCTION = Y ^ (RNG.random(M) < 0.3)
CANDIDATES = [Y ^ (RNG.random(M) < share) for share in (0.3, 0.1, 0.1)]


def told(verdict):
    return verdict.passed, verdict.verdict, verdict.number, verdict.n_passes, verdict.compared_with


@pytest.fixture
def served(tmp_path):
    with serve(tmp_path, Gate, Y, baseline=PRODUCTION, durability="process") as running:
        yield running


def test_verdicts_are_those_of_the_gate(served):
    gate = Gate(Y.copy(), baseline=PRODUCTION)
    with served.remote() as remote:
        assert remote.kind == "Gate" and remote.needs is None and remote.n_left() is None
        one = remote.query(CANDIDATES[0])
        assert isinstance(one, RemoteVerdict)
        assert told(one) == told(gate.query(CANDIDATES[0]))
        block = remote.query_many(CANDIDATES[1:])
        assert [told(each) for each in block] == [told(gate.query(p)) for p in CANDIDATES[1:]]
        assert told(remote.query(CANDIDATES[0])) == told(gate.query(CANDIDATES[0]))
        assert remote.n_answered == gate.n_answered
        with pytest.raises(TypeError, match="only a DeclaredSearch has a report"):
            remote.report()


def test_a_block_has_the_verdicts_before_the_declared_number_was_used(tmp_path):
    options = {"baseline": PRODUCTION, "n_candidates": 2}
    guard = Gate.open(tmp_path / "gate.db", Y, **options, durability="process")
    with in_thread(guard, tmp_path) as running, running.remote() as remote:
        block = remote.query_many(CANDIDATES)
        assert [told(one) for one in block] == [told(one) for one in guard.verdicts]
        assert len(block) == 2 and block.halted


@pytest.mark.parametrize("metric", ["roc_auc", "accuracy"])
def test_a_bar_with_another_metric(tmp_path, metric):
    holdout = Holdout(Y, metric=metric)
    y_pred = Y + RNG.normal(size=M) if metric == "roc_auc" else CANDIDATES[1]
    with (
        serve(tmp_path, Gate, holdout, at_least=0.7, durability="process") as running,
        running.remote() as remote,
    ):
        expected = Gate(Holdout(Y, metric=metric), at_least=0.7).query(y_pred)
        assert told(remote.query(y_pred)) == told(expected)


def test_a_rounded_value_is_told(tmp_path):
    options = {"baseline": PRODUCTION, "release": Rounded(0.01)}
    with (
        serve(tmp_path, Gate, Y, durability="process", **options) as running,
        running.remote() as remote,
    ):
        assert remote.query(CANDIDATES[1]).value == Gate(Y, **options).query(CANDIDATES[1]).value


def test_replies_and_pages_have_no_counts(served):
    started = time.perf_counter()
    status, reply = served.post("/query", {"form": "bits"}, octets_of(CANDIDATES[1]))
    assert time.perf_counter() - started >= 0.25  # a verdict waits, whatever it took
    assert status == 200
    assert set(reply) == {"passed", "verdict", "number", "n_passes", "compared_with"}
    pages = [served.send("GET", "/", team=team)[2].decode() for team in ("red", "blue", "owner")]
    pages += [json.dumps(served.get("/state", team)[1]) for team in ("red", "owner")]
    assert "Your verdicts" in pages[0] and "pass" in pages[0] and "Nothing was" in pages[1]
    wrong = {int((p != Y).sum()) for p in (PRODUCTION, *CANDIDATES)}
    for page in pages:
        assert not any(f">{n}<" in page or f" {n} " in page for n in wrong)
        assert not any(f"{n / M:.4f}" in page for n in wrong)


def test_the_command_serves_a_gate(tmp_path):
    np.save(tmp_path / "production.npy", PRODUCTION)
    options = ["--gate", "--baseline", tmp_path / "production.npy", "--margin", "-.02"]
    with Command(tmp_path, Y, *options) as command:
        running = command.start()
        with RemoteGuard(running.url, token="red-token-0123456789") as remote:
            assert remote.parameters["margin"] == -0.02
            first = told(remote.query(CANDIDATES[1]))
        command.kill()
        command.options = ()  # the file has them
        running = command.start()
        with RemoteGuard(running.url, token="red-token-0123456789") as remote:
            assert told(remote.query(CANDIDATES[1])) == first and remote.n_answered == 1
        assert command.stop() == 143
    assert Gate.open(tmp_path / "guard.db", Y).verdicts[0].passed == first[0]
