"""``radabound gate``: verdicts, exit codes, and the files that tell a CI system."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from radabound_fast import Gate

M = 1201
RNG = np.random.default_rng(11)
Y = RNG.integers(0, 2, M)
MODELS = {
    "production": Y ^ (RNG.random(M) < 0.3),
    "alike": Y ^ (RNG.random(M) < 0.3),
    "better": Y ^ (RNG.random(M) < 0.1),
}
GATE = ["gate", "release.db", "--labels", "y.npy"]
NEW = [*GATE, "--baseline", "production.npy"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, values in {"y": Y, **MODELS}.items():
        np.save(f"{name}.npy", values)


def results_of(name, wrong, names=None):
    names = [f"case {i}" for i in range(len(wrong))] if names is None else names
    cases = [
        {"case": name, "passed": not error}
        for name, error in zip(names, wrong.tolist(), strict=True)
    ]
    Path(name).write_text("\n".join(map(json.dumps, cases)))


def test_exit_codes_are_the_verdicts(run):
    assert run(*NEW)[0] == 0
    code, out, _ = run(*GATE, "--candidate", "alike.npy")
    assert code == 1 and out.startswith("Candidate 1 did not pass: these rows do not prove that it")
    code, out, _ = run(*GATE, "--candidate", "better.npy")
    assert code == 0 and out.startswith(
        "Candidate 2 passed: it is better than the baseline (error)"
    )
    gate = Gate.open("release.db", Y)
    assert [one.passed for one in gate.verdicts] == [False, True]
    assert run(*GATE, "--candidate", "nothing.npy")[0] == 2
    assert run("gate", "release.db", "--revoke")[0] == 0 and gate.in_production == 0
    code, out, _ = run(*GATE, "--close-out")
    assert code == 0 and "Closed gate on 1,201 rows" in out
    assert run(*GATE, "--candidate", "alike.npy")[0] == 3


def test_one_command_makes_the_gate_and_asks(run, refuse):
    conditions = ["--delta", ".1", "--margin", "-.02", "--n-candidates", "5", "--release", "three"]
    code, out, _ = run(*NEW, *conditions, "--candidate", "better.npy", "--json")
    told = json.loads(out)
    assert code == 0 and told["verdict"] == "better" and told["passed"] is True
    assert told["text"].startswith("Candidate 1 passed: it is worse than the baseline by less than")
    kept = Gate.open("release.db").parameters
    assert (kept["delta"], kept["margin"], kept["n_candidates"]) == (0.1, -0.02, 5)
    # conditions are in the file, and another one is refused
    other = "margin must be -0.02, with which release.db was made, got 0.0"
    refuse(other, *GATE, "--margin", "0", "--candidate", "alike.npy")


def test_files_for_a_ci_system(run):
    Path("summary.md").write_text("before\n")
    run(*NEW, "--candidate", "alike.npy", "--junit", "fail.xml", "--summary", "summary.md")
    run(*GATE, "--candidate", "better.npy", "--junit", "pass.xml", "--summary", "summary.md")
    for name, n_failures in (("fail.xml", 1), ("pass.xml", 0)):
        suite = ElementTree.parse(name).getroot()
        assert suite.get("failures") == str(n_failures)
        assert len(suite.findall("testcase/failure")) == n_failures
    text = Path("summary.md").read_text()
    assert text.startswith("before\n") and "Release gate: Not passed" in text
    assert "| 2 | pass | the baseline |" in text


def test_slices_and_bars(run, refuse):
    np.save("part.npy", (np.arange(M) < 400).astype(np.int8))
    sliced = ["--slice", "first=part.npy", "--slice-margin", ".1", "--at-most", ".2"]
    code, out, _ = run(*NEW, *sliced, "--candidate", "better.npy")
    assert code == 0 and "on no slice (first) it is worse" in out and "at most 0.2" in out
    for bad, message in (("part.npy", "--slice must be NAME=FILE"), ("a=y3.npy", "must hold 1")):
        np.save("y3.npy", np.full(M, 3))
        refuse(message, *NEW, "--slice", bad)


def test_results_are_matched_by_the_names_of_their_cases(run, refuse):
    wrong = {name: MODELS[name] != Y for name in MODELS}
    order = RNG.permutation(M)
    names = [f"case {i}" for i in range(M)]
    results_of("production.jsonl", wrong["production"], names)
    results_of("better.jsonl", wrong["better"][order], [names[i] for i in order])
    fields = ["--id", "case", "--score", "passed"]
    ask = ["gate", "r.db", *fields, "--results"]
    assert run(*ask, "better.jsonl", "--baseline", "production.jsonl")[0] == 0
    straight = Gate(M, baseline=wrong["production"])
    assert straight.query(wrong["better"]).passed
    results_of("few.jsonl", wrong["alike"][1:], names[1:])
    refuse("few.jsonl lacks case 'case 0'", *ask, "few.jsonl")
    assert Gate.open("r.db").n_answered == 1
    refuse("--labels must be left out with results", *ask, "better.jsonl", "--labels", "y.npy")


def test_without_a_candidate_it_says_where_the_gate_stands(run):
    run(*NEW, "--candidate", "better.npy")
    code, out, _ = run("gate", "release.db")
    assert code == 0 and out.startswith("1 candidate, 1 pass; in production: candidate 1.")
    assert f"{Gate.open('release.db').needed(0.1)[0]:.4f}" in out
    told = json.loads(run("gate", "release.db", "--json")[1])
    assert told["in_production"] == 1 and told["verdicts"][0]["passed"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gate", "release.db"], "--labels must be given to make FILE"),
        (GATE, "a gate needs a condition"),
        ([*NEW, "--candidate", "better.npy", "--revoke"], "--revoke must be given without --cand"),
        ([*NEW, "--delta", "2"], "delta must be in"),
        ([*NEW, "--metric", "roc_auc"], "baseline must be left out"),
        ([*NEW, "--slice", "a=y.npy", "--slice", "a=y.npy"], "--slice must have each name once"),
        ([*NEW, "--candidate", "better.npy", "--junit", "no/x.xml"], "its folder does not exist"),
        ([*NEW, "--candidate", "better.npy", "--summary", "no/x.md"], "its folder does not exist"),
    ],
)
def test_misuse_is_one_line(refuse, arguments, message):
    refuse(message, *arguments)
    assert not Path("release.db").exists()


@pytest.mark.parametrize("option", [["--slice", "a=y.npy"], ["--baseline", "better.npy"]])
def test_no_option_is_ignored(run, refuse, option):
    run(*NEW)
    refuse(f"--labels must be given with {option[0]}", "gate", "release.db", *option)
