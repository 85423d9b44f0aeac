"""``radabound confirm``: a database, finalists from files, exit codes, and what is printed."""

import json
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import ConfirmedSearch

M = 1000
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, M)
MODELS = {name: Y ^ (RNG.random(M) < error) for name, error in (("a", 0.1), ("b", 0.3))}
MADE = ["confirm", "s.db", "--labels", "y.npy"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, values in {"y": Y, **MODELS}.items():
        np.save(f"{name}.npy", values)


def test_from_the_split_to_the_report(run):
    code, out, _ = run(*MADE, "--delta", 0.1, "--seed", 4, "--search-rows", "rows.npy")
    assert code == 0 and "No finalist was confirmed yet; 500 rows are kept for the end." in out
    search = ConfirmedSearch(Y, delta=0.1, seed=4)
    assert (np.load("rows.npy") == search.search_rows).all()
    code, out, _ = run(*MADE, "--finalist", "a.npy", "--finalist", "second=b.npy")
    answers = search.confirm({"a": MODELS["a"], "second": MODELS["b"]})
    assert code == 0 and f"a: {answers['a'].value:.4f}, in the population between" in out
    assert "The best of 2 finalists is a: error" in out and "Left: nothing" in out
    assert run("report", "s.db")[:2] == (0, f"{search.report()}\n")
    assert run("confirm", "s.db")[1] == out
    code, out, _ = run(*MADE, "--finalist", "c=y.npy")
    assert code == 3 and "n_batches=1 allows no further batch" in out


@pytest.mark.parametrize(
    ("names", "code"), [("a", 0), ("b", 1), ("ab", 1), ("ba", 1)], ids=["a", "b", "a b", "b a"]
)
def test_one_that_does_not_pass_is_enough_for_exit_code_1(run, names, code):
    finalists = [part for name in names for part in ("--finalist", f"{name}.npy")]
    bar = ["--release", "pass", "--at-most", 0.2]
    found, out, _ = run(*MADE, "--delta", 0.1, *finalists, *bar)
    assert found == code and ("b: not passed" in out) == ("b" in names)


def test_a_bar_decides_the_exit_code_and_the_end_tells_the_rest(run):
    bar = ["--release", "pass", "--at-most", 0.2]
    new = ["--delta", 0.1, "--n-batches", "any"]
    code, out, _ = run(*MADE, *new, "--finalist", "a.npy", *bar)
    assert code == 0 and "a: passed, the rest is told at the end" in out and "0." not in out
    code, out, _ = run(*MADE, "--finalist", "b.npy", *bar)
    assert code == 1 and "b: not passed" in out
    code, out, _ = run(*MADE, "--close-out", "--json", "--plot", "f.png")
    told = json.loads(out)
    assert code == 0 and [one["passed"] for one in told["finalists"]] == [True, False]
    assert told["report"]["best"]["name"] == "a" and told["n_left"] == 0
    assert Path("f.png").stat().st_size > 1000
    # delta alone may be repeated: the rest is as in the file
    assert run(*MADE, "--delta", 0.1)[0] == 0
    assert run(*MADE, "--delta", 0.2)[2].startswith(
        "radabound confirm: delta must be 0.1, with which s.db"
    )


def test_rows_metric_and_baseline_are_those_of_the_library(run):
    np.save("kept.npy", np.arange(M) < 300)
    options = ["--rows", "kept.npy", "--metric", "accuracy", "--baseline", "b.npy", "--delta", 0.2]
    code, out, _ = run(*MADE, *options, "--finalist", "a.npy", "--json")
    (told,) = json.loads(out)["finalists"]
    right = MODELS["a"] == Y
    assert code == 0 and told["value"] == right[:300].mean()
    assert told["search_value"] == pytest.approx(right[300:].mean()) and told["gain_low"] > 0


def test_limits_by_the_bootstrap_are_declared_with_the_file(run):
    options = ["--delta", 0.1, "--seed", 4, "--limits", "bootstrap"]
    code, out, _ = run(*MADE, *options, "--finalist", "a.npy", "--finalist", "b.npy")
    search = ConfirmedSearch(Y, delta=0.1, seed=4, limits="bootstrap")
    answer = search.confirm(MODELS)["b"]
    assert code == 0 and f"b: {answer.value:.4f}, in the population between" in out
    assert "by the bootstrap, asymptotic, between" in out and str(search.report()) in out
    code, out, _ = run("confirm", "s.db", "--json")
    told = json.loads(out)
    assert told["finalists"][1]["asymptotic_low"] == answer.asymptotic_low
    assert (
        told["parameters"]["limits"] == "bootstrap" and "not proved" in told["report"]["guarantee"]
    )


LABELS = ["--labels", "y.npy"]
NEW = [*LABELS, "--delta", 0.1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*NEW, "--limits", "bootstrap", "--n-batches", 2],
         "n_batches must be 1 with limits='bootstrap', got 2"),
        (["--delta", 0.1], "--labels must be given with --delta"),
        ([], "--labels and --delta must be given to make FILE"),
        (LABELS, "--delta must be given to make FILE"),
        ([*NEW, "--finalist", "=a.npy"], "--finalist must be NAME="),
        ([*NEW, "--rows", "wrong.npy"], "must hold 1 for a row"),
        ([*NEW, "--finalist", "none.npy"], "none.npy: No such file"),
        ([*NEW, "--at-most", 0.1], "must be given with --finalist"),
        ([*LABELS, "--delta", 2], "delta must be in"),
        ([*NEW, "--finalist", "a=y.npy", "--finalist", "a=y.npy"],
         "--finalist must have each name once, got 'a' twice"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(refuse, arguments, message):
    np.save("wrong.npy", np.arange(M) % 3)
    refuse(message, "confirm", "s.db", *arguments)
