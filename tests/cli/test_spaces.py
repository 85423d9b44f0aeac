"""Declared spaces as files, and numbers as people type them."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from radabound_fast import DeclaredSearch
from radabound_fast.cli.options import integer
from radabound_fast.cli.spaces import read_space
from radabound_fast.spaces import Grid, Steps, as_space

M, K = 200, 6
RNG = np.random.default_rng(4)
LABELS = RNG.integers(0, 2, M)
PREDICTIONS = LABELS ^ (RNG.random((K, M)) < np.linspace(0.2, 0.3, K)[:, np.newaxis])
AUDIT = ["audit", "--labels", "y.npy", "--predictions", "p.npy", "--delta", "0.1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", LABELS)
    np.save("p.npy", PREDICTIONS)
    return tmp_path


@pytest.mark.parametrize(
    ("declared", "space"),
    [
        (80, 80),
        ({"leaf": [1, 3, 10]}, {"leaf": [1, 3, 10]}),
        ({"depth": {"from": 1, "to": 20}}, {"depth": range(1, 21)}),
        ({"depth": {"from": 1, "to": 20, "step": 5}}, {"depth": range(1, 21, 5)}),
        ({"n": {"from": -3, "to": -3}}, {"n": [-3]}),
        ({"rate": {"from": 0.1, "to": 0.5, "step": 0.1}}, {"rate": Steps(0.1, 0.5, 0.1)}),
        ({"rate": {"from": 0, "to": 1, "step": 0.25}}, {"rate": Steps(0, 1, 0.25)}),
        ([{"a": [1, 2]}, {"b": [None, "x", True, [1, 2]]}],) * 2,
    ],
)
def test_a_file_declares_the_space_that_it_says(folder, declared, space):
    Path("s.json").write_text(json.dumps(declared), encoding="utf-8-sig")
    found, wanted = read_space("s.json"), as_space(space)
    assert found.size == wanted.size
    for place in range(wanted.size):
        key = wanted.key_of(place)
        assert found.nats(key) == wanted.nats(key)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.json must be JSON: "),
        ("[" * 10**5, "s.json must be JSON: "),
        ('{"a": [1], "a": [2]}', "a name occurs twice"),
        ("[1, 2]", "a grid must be a mapping of names to values, got 1"),
        ('"x"', "space must be an int"),
        ("0", "space must be at least 1, got 0"),
        ("{}", "space must not be empty"),
        ('{"a": []}', "a must not be empty"),
        ('{"a": 1.5}', "a must be a sequence of values"),
        ('{"a": [1, 1.0]}', "a must have different values"),
        ('{"a": [NaN]}', "a must be finite"),
        ('{"a": {"from": 1}}', 'with "from", "to" and perhaps "step"'),
        ('{"a": {"from": 1, "to": 2, "by": 1}}', 'with "from", "to" and perhaps "step"'),
        ('{"a": {"from": 1, "to": 2.5}}', 'a must have a "step"'),
        ('{"a": {"from": 2, "to": 1}}', "a must not be empty"),
        ('{"a": {"from": 0, "to": 1, "step": 0}}', "step must be positive"),
        ('{"a": {"from": true, "to": 2, "step": 1}}', "low must be a real number, got True"),
        ('{"a": {"from": "1", "to": 2, "step": 1}}', "low must be a real number"),
    ],
)
def test_what_is_no_space_is_one_line_with_the_file(refuse, text, message):
    Path("s.json").write_text(text)
    assert refuse(message, *AUDIT, "--space", "s.json").startswith("radabound audit: s.json")


def test_rows_are_configurations_of_the_space_by_their_keys(run):
    grid = {"depth": range(1, 21), "loss": ["log", "exp"]}
    declared = {"depth": {"from": 1, "to": 20}, "loss": ["log", "exp"]}
    Path("s.json").write_text(json.dumps(declared))
    keys = [{"loss": "log", "depth": depth + 1} for depth in range(K)]
    keys[-1] = keys[0]  # which is one configuration, and one model
    rows = np.vstack([PREDICTIONS[:-1], PREDICTIONS[:1]])
    np.save("p.npy", rows)
    Path("k.txt").write_text("".join(f"{json.dumps(key)}\n" for key in keys))
    search = DeclaredSearch(LABELS, grid, delta=0.1)
    answers = search.query_many(rows, keys=keys)
    code, out, _ = run(*AUDIT, "--space", "s.json", "--keys", "k.txt", "--output", "a.csv")
    assert code == 0 and f"\n\n{search.report()}\n\n" in out
    told = json.loads(run(*AUDIT, "--space", "s.json", "--keys", "k.txt", "--json")[1])["search"]
    best = search.best
    assert told["best"] == {"query": best.number} | {
        name: value for name, value in best.to_dict().items() if name not in ("number", "rerun")
    }
    assert answers.highs.min() == told["best"]["high"]
    assert [json.loads(line) for line in Path("k.txt").read_text().splitlines()] == keys
    # without keys each row is a configuration of its own
    told = json.loads(run(*AUDIT, "--space", "s.json", "--json")[1])["search"]
    assert (told["n_models"], told["space_size"]) == (K, 40)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"depth": 99, "loss": "log"}', "k.txt, line 3: depth must be one of"),
        ('{"depth": 1}', "k.txt, line 3: key must have the names"),
        ("depth=1", "k.txt, line 3 must be JSON"),
        ("", "k.txt: line 3 must not be empty"),
    ],
)
def test_a_row_of_no_configuration_is_told_by_its_line(refuse, line, message):
    Path("s.json").write_text('{"depth": {"from": 1, "to": 20}, "loss": ["log", "exp"]}')
    lines = [f'{{"depth": {depth + 1}, "loss": "exp"}}' for depth in range(K)]
    Path("k.txt").write_text("\n".join([*lines[:2], line, *lines[3:]]))
    refuse(message, *AUDIT, "--space", "s.json", "--keys", "k.txt")


def test_a_plan_counts_the_configurations_of_the_file(run, refuse):
    Path("s.json").write_text('{"depth": {"from": 1, "to": 20}, "leaf": [1, 3, 10, 30]}')
    of_file = run("plan", "--n-samples", "1e3", "--delta", ".1", "--space", "s.json")
    assert of_file == run("plan", "--n-samples", 1000, "--delta", 0.1, "--space-size", 80)
    assert Grid({"depth": range(1, 21), "leaf": [1, 3, 10, 30]}).size == 80
    both = ["--space", "s.json", "--space-size", 80]
    once = "--space must be given without --space-size"
    refuse(once, "plan", "--n-samples", "1e3", "--delta", ".1", *both)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1000", 1000), ("1e6", 10**6), ("2.5E3", 2500), ("1,000,000", 10**6), ("-3", -3),
     ("1_000", 1000), ("1e100", 10**100), ("0", 0), ("1.0", 1)],
)  # fmt: skip
def test_whole_numbers_are_read_as_people_type_them(text, number):
    assert integer(text) == number and type(integer(text)) is int


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e-1", "nan", "inf", "1e999999999", "0x10"])
def test_what_is_no_whole_number_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number"):
        integer(text)


@pytest.mark.parametrize(
    "limits", [("-1e3", "1e3"), ("-1000", "1000"), ("-.5e1", "5"), ("-5.", "5")]
)
def test_limits_below_zero_are_numbers_and_no_options(run, limits):
    low, high = map(float, limits)
    y_true = RNG.uniform(low, high, M)
    np.save("y.npy", y_true)
    np.save("p.npy", np.vstack([y_true, 0.5 * y_true]))
    options = ["--space-size", "1e3", "--metric", "neg_mean_squared_error", "--y-range", *limits]
    code, out, err = run(*AUDIT, *options)
    assert (code, err) == (0, "") and "query 1: neg_mean_squared_error 0.0" in out
