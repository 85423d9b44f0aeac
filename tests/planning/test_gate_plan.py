"""The plan of a release gate is what a gate does."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from radabound_fast import Gate, plan
from radabound_fast.bounds import gain_needed, history_nats


def test_a_plan_is_what_the_gate_asks():
    m = 2000
    gate = Gate(m, baseline=np.zeros(m, int), n_candidates=8, promote=False)
    rows = plan(m, gate=True, disagreement=0.1, n_candidates=8).rows
    assert [row["candidate"] for row in rows] == [1, 2, 4, 8]
    for row in rows:
        while gate.n_answered + 1 < row["candidate"]:
            losses = np.zeros(m, int)
            losses[: 900 + gate.n_answered] = 1
            assert not gate.query(losses).passed
        assert gate.needed(0.1)[0] == row["gains"][0]
        for passes, gain in row["gains"].items():
            told = [passes, row["candidate"] - 1 - passes]
            nats = math.log(20) + history_nats(told, n_candidates=8)
            assert gain == gain_needed(m, 0.1, nats)


def test_the_labels_needed_are_the_fewest():
    made = plan(None, gate=True, disagreement=0.2, delta=0.1, n_passes=1, tolerance=0.05)
    for row in made.rows:
        ((passes, samples),) = row["samples"].items()
        nats = math.log(10) + history_nats([passes, row["candidate"] - 1 - passes])
        assert gain_needed(samples, 0.2, nats) <= 0.05 < gain_needed(samples - 1, 0.2, nats)


def test_no_number_of_labels_shows_a_gain_within_the_margin():
    made = plan(None, gate=True, disagreement=0.1, margin=0.02, tolerance=0.02)
    assert {number for row in made.rows for number in row["samples"].values()} == {math.inf}
    assert json.loads(made.to_json())["rows"][0]["samples"] == {"0": None}
    assert "none" in str(made)
    with pytest.raises(ValueError, match="lines must hold a candidate that can pass"):
        made.plot()


def test_it_is_printed_and_drawn(tmp_path):
    made = plan(4000, gate=True, disagreement=0.1, n_candidates=32)
    text = str(made).splitlines()
    assert text[0] == "The least observed gain that passes on 4,000 rows, by the passes before."
    assert " ".join(text[2].split()) == "candidate 0 passes 1 pass 2 passes 4 passes 8 passes"
    made.plot().savefig(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gate": True}, "disagreement must be given for a gate"),
        ({"gate": True, "disagreement": 1.1}, "disagreement must be in"),
        ({"gate": True, "disagreement": 0.1, "n_candidates": 4, "n_passes": 4}, "n_passes must be"),
        ({"gate": True, "disagreement": 0.1, "tolerance": 0.1}, "tolerance must be left out"),
        ({"disagreement": 0.1, "delta": 0.1}, "disagreement must be left out unless gate=True"),
        ({"n_passes": 1, "delta": 0.1}, "n_passes must be left out unless gate=True"),
        ({}, "n_samples and delta must be given unless gate=True"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(1000, **arguments)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_command_prints_the_plan(run, folder):
    asked = ["plan", "--gate", "--disagreement", ".1"]
    code, out, _ = run(*asked, "--n-samples", "4000", "--n-candidates", "8")
    made = plan(4000, gate=True, disagreement=0.1, n_candidates=8)
    assert (code, out) == (0, f"{made}\n")
    code, out, _ = run(*asked, "--tolerance", ".05", "--delta", ".1", "--json")
    assert code == 0 and json.loads(out)["rows"][0]["samples"]["0"] > 100
    for bad, message in (
        (["plan", "--gate", "--n-samples", "9"], "--disagreement must be given with --gate"),
        ([*asked, "--epsilon", ".1"], "--epsilon must be left out with --gate"),
        (["plan", "--margin", "0", "--delta", ".1"], "--margin must be given with --gate"),
        (["plan", "--delta", ".1"], "--n-samples must be given"),
    ):
        code, _, err = run(*bad)
        assert code == 2 and message in err
