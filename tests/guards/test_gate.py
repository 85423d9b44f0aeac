"""A release gate: its verdicts by hand, conditions, history, file, and what leaves it."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from support import at_once

from radabound_fast import Gate, Holdout, HoldoutExhausted, Losses, Rounded, pack_losses
from radabound_fast.bounds import betting_interval, binomial_interval, history_nats, paired_interval
from radabound_fast.metrics import LogLoss

M = 1501
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, M)


def wrong_in(share: float, seed: int = 0) -> np.ndarray[Any, Any]:
    """Predictions that err on a share of the rows."""
    rows = np.random.default_rng(seed).permutation(M)[: round(share * M)]
    y_pred = Y.copy()
    y_pred[rows] ^= 1
    return y_pred


BASELINE = wrong_in(0.3)
# errs on fewer and fewer of the rows on which the baseline errs
STEPS = [wrong_in(share) for share in (0.298, 0.28, 0.25, 0.15, 0.02)]


def lower_limit(before: Any, after: Any, nats: float, where: Any = slice(None)) -> float:
    """The lower limit of a gain, from its definition."""
    one, other = (before != Y)[where], (after != Y)[where]
    plus, minus = int((one & ~other).sum()), int((other & ~one).sum())
    return paired_interval(plus, minus, len(one), nats)[0]


# ---- verdicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [None, 20])
@pytest.mark.parametrize("margin", [0.0, -0.02, 0.02])
@pytest.mark.parametrize("promote", [True, False])
def test_verdicts_are_those_of_the_theorem(declared: int | None, margin: float, promote: bool):
    gate = Gate(
        Y, baseline=BASELINE, delta=0.1, margin=margin, n_candidates=declared, promote=promote
    )
    production, passes, told = BASELINE, 0, []
    for number, y_pred in enumerate([wrong_in(0.4), *STEPS]):
        nats = math.log(10) + history_nats([passes, number - passes], n_candidates=declared)
        expected = lower_limit(production, y_pred, nats) > margin
        verdict = gate.query(y_pred)
        assert verdict.passed == expected
        assert (verdict.number, verdict.n_passes) == (number + 1, passes + expected)
        passes += expected
        production = y_pred if expected and promote else production
        told.append(expected)
    assert True in told and False in told
    assert [one.passed for one in gate.verdicts] == told


def test_gains_of_real_valued_metrics_are_by_betting():
    truth = np.where(Y == 1, 0.9, 0.1)
    before, after = np.full(M, 0.5), 0.5 + 0.2 * (truth - 0.5)
    gate = Gate(Holdout(Y, metric=LogLoss(clip=0.01)), baseline=before, margin=0.05)
    losses = [-np.log(np.where(Y == 1, p, 1 - p)) for p in (before, after)]
    span = -math.log(0.01) + math.log(0.99)
    nats = math.log(20) + history_nats([0, 0])
    share = betting_interval(0.5 + (losses[0] - losses[1]) / (2 * span), nats)[0]
    assert (2 * share - 1) * span > 0.05
    assert gate.query(after).passed
    report = gate.close_out().candidates[0]
    assert report.estimates["value"].value == pytest.approx(-log_loss(Y, after))
    assert report.estimates["gain"].value == pytest.approx(losses[0].mean() - losses[1].mean())


@pytest.mark.parametrize(
    ("metric", "y_pred", "value"),
    [
        ("roc_auc", Y + RNG.normal(size=M), roc_auc_score),
        ("f1", wrong_in(0.2), f1_score),
        ("error", wrong_in(0.2), lambda y, p: float(np.mean(y != p))),
        ("balanced_accuracy", wrong_in(0.2), None),
    ],
)
def test_a_bar_on_the_value_is_passed_where_its_limit_is(metric, y_pred, value):
    report = Gate(Holdout(Y, metric=metric), at_least=0.0)
    report.query(y_pred)
    nats = math.log(20) + history_nats([0, 0])
    (one,) = report.close_out().candidates
    if value is not None:
        assert one.estimates["value"].value == pytest.approx(value(Y, y_pred), abs=1e-12)
    # the limits that are told are two-sided: those of the verdict are at ln 2 less
    assert one.nats == pytest.approx(nats + math.log(2))
    estimate = one.estimates["value"]
    for bar, passes in ((estimate.low, True), (estimate.value, False)):
        assert Gate(Holdout(Y, metric=metric), at_least=bar).query(y_pred).passed == passes
    for bar, passes in ((estimate.high, True), (estimate.value, False)):
        assert Gate(Holdout(Y, metric=metric), at_most=bar).query(y_pred).passed == passes


@pytest.mark.parametrize("condition", ["margin", "total_margin", "at_least", "at_most", "slices"])
def test_a_limit_exactly_at_a_condition(condition: str):
    """A gain has to be larger than a margin; a value at its bar is enough, and so is a slice."""
    passes_at = "margin" not in condition
    harder = -1 if condition in ("at_most", "slices") else 1
    nats = math.log(20) + history_nats([0, 0])
    limits = binomial_interval(int((STEPS[3] != Y).sum()), M, nats)
    options: dict[str, Any] = {"margin": None}
    y_pred, argument, edge = STEPS[3], condition, lower_limit(BASELINE, STEPS[3], nats)
    if condition == "slices":
        options["slices"] = {"all": np.ones(M, bool)}
        y_pred, argument = STEPS[0], "slice_margin"
        edge = -lower_limit(BASELINE, STEPS[0], nats)
    elif condition in ("at_least", "at_most"):
        edge = limits[condition == "at_most"]
    for bar, expected in (
        (math.nextafter(edge, -harder * math.inf), True),
        (edge, passes_at),
        (math.nextafter(edge, harder * math.inf), False),
    ):
        gate = Gate(Y, baseline=BASELINE, **options | {argument: bar})
        assert gate.query(y_pred).passed == expected, bar


def test_a_slice_has_its_own_rows():
    part = np.arange(M) < 600
    worse = STEPS[3].copy()
    worse[:150] = 1 - Y[:150]  # much better on the whole, worse on a slice
    passed = part.copy()
    gate = Gate(Y, baseline=BASELINE, slices={"first": passed, "rest": ~part}, slice_margin=0.02)
    passed[:] = False  # what is changed later is the slice that was passed
    assert Gate(Y, baseline=BASELINE).query(worse).passed
    assert not gate.query(worse).passed
    assert gate.query(STEPS[3]).passed
    one, other = gate.close_out().candidates
    nats = math.log(20) + history_nats([0, 1]) + math.log(2 * 4)
    low = other.estimates["gain on first"].low
    assert low == lower_limit(BASELINE, STEPS[3], nats, part)
    assert one.estimates["gain on first"].value == pytest.approx(
        np.mean((BASELINE != Y)[part]) - np.mean((worse != Y)[part])
    )


def test_conditions_are_a_conjunction():
    tight = {"margin": 0.1, "total_margin": 0.1, "at_most": 0.2}
    for name, value in tight.items():
        gate = Gate(Y, baseline=BASELINE, **{name: value})
        assert gate.query(STEPS[3]).passed, name
        loose = tight | {name: {"margin": 0.15, "total_margin": 0.15, "at_most": 0.15}[name]}
        assert not Gate(Y, baseline=BASELINE, **loose).query(STEPS[3]).passed, name


def test_the_total_margin_is_over_the_first_baseline():
    gate = Gate(Y, baseline=BASELINE, margin=-0.05, total_margin=-0.06)
    verdicts = [gate.query(wrong_in(share)).passed for share in (0.31, 0.32, 0.33, 0.34, 0.35)]
    assert verdicts[0] and not verdicts[-1]
    free = Gate(Y, baseline=BASELINE, margin=-0.05)
    assert all(free.query(wrong_in(share)).passed for share in (0.31, 0.32, 0.33, 0.34, 0.35))


def test_three_verdicts():
    gate = Gate(Y, baseline=BASELINE, release="three")
    told = [gate.query(y_pred).verdict for y_pred in (STEPS[0], wrong_in(0.5), STEPS[4])]
    assert told == ["neither", "worse", "better"]
    nats = math.log(20) + history_nats([0, 0, 1])
    assert lower_limit(wrong_in(0.5), BASELINE, nats) > 0
    # a bar that fails is no reason to say worse
    bar = Gate(Y, baseline=BASELINE, release="three", at_most=0.001)
    assert bar.query(STEPS[3]).verdict == "neither"


def test_a_rounded_gain_costs_every_later_candidate():
    gate = Gate(Y, baseline=BASELINE, release=Rounded(0.01))
    first = gate.query(STEPS[0])
    assert first.value == pytest.approx(0.0) and not first.passed
    assert gate.query(wrong_in(0.26)).value == pytest.approx(0.04)
    for y_pred in STEPS[3:]:
        gate.query(y_pred)
    passes = 0
    for number, one in enumerate(gate.close_out().candidates):
        price = math.log(20) + history_nats([passes, number - passes])
        assert one.nats == pytest.approx(price + number * math.log(201) + math.log(4))
        passes += one.verdict.passed


# ---- history -------------------------------------------------------------------------------------


def test_the_same_question_is_free():
    gate = Gate(Y, baseline=BASELINE, n_candidates=3)
    first = [gate.query(y_pred) for y_pred in STEPS[2:5]]
    assert first[1].passed
    # the one in production has passed; one that failed is asked against another model now
    assert gate.query(STEPS[4]) == first[2]
    with pytest.raises(HoldoutExhausted, match="all 3 declared candidates had their verdict"):
        gate.query(STEPS[2])
    assert (gate.n_answered, gate.n_left(), gate.halted) == (3, 0, True)


def test_a_pass_taken_back_and_restored():
    gate = Gate(Y, baseline=BASELINE)
    with pytest.raises(ValueError, match="there is no pass to revoke"):
        gate.revoke()
    passed = gate.query(STEPS[3])
    assert (passed.compared_with, gate.in_production) == (0, 1)
    assert gate.revoke() == 0 and gate.in_production == 0
    assert gate.query(STEPS[0]).compared_with == 0
    assert gate.query(STEPS[3]) == passed and gate.in_production == 1
    assert gate.n_answered == 2


def test_without_promotion_the_baseline_stays_in_production():
    gate = Gate(Y, baseline=BASELINE, promote=False)
    for _ in range(2):
        assert gate.query(STEPS[4]).passed and gate.in_production == 0
    assert gate.query(STEPS[3]).compared_with == 0
    with pytest.raises(ValueError, match="there is no pass to revoke"):
        gate.revoke()


def test_needed_is_what_passes():
    gate = Gate(Y, baseline=BASELINE, n_candidates=4)
    needed = gate.needed(0.05)
    differ = round(0.05 * M)
    gains = np.flatnonzero(BASELINE != Y), np.flatnonzero(BASELINE == Y)
    n_plus = (round(needed[0] * M) + differ) // 2
    for less, passes in ((1, False), (0, True)):
        y_pred = BASELINE.copy()
        y_pred[gains[0][: n_plus - less]] ^= 1
        y_pred[gains[1][: differ - n_plus + less]] ^= 1
        assert Gate(Y, baseline=BASELINE, n_candidates=4).query(y_pred).passed == passes
    assert needed[0] < needed[1] <= needed[2] and needed[5] == math.inf
    with pytest.raises(ValueError, match="disagreement must be in"):
        gate.needed(1.5)


def test_closed_it_tells_all_and_answers_no_more():
    gate = Gate(Y, baseline=BASELINE)
    for y_pred in (STEPS[0], STEPS[3]):
        gate.query(y_pred)
    report = gate.close_out()
    value = report.candidates[1].estimates["value"]
    wrong = int((STEPS[3] != Y).sum())
    nats = math.log(2 / 0.05) + history_nats([0, 1]) + math.log(2)
    assert value[1:] == binomial_interval(wrong, M, nats)
    assert report.to_dict()["candidates"][1]["gain low"] == lower_limit(BASELINE, STEPS[3], nats)
    assert "closed" in gate.outlook().text and gate.halted
    with pytest.raises(HoldoutExhausted, match="this gate is closed"):
        gate.query(STEPS[1])
    assert gate.close_out() == report


@pytest.mark.parametrize(
    "options",
    [
        {"at_least": 0.9},
        {"baseline": BASELINE},
        {"baseline": BASELINE, "total_margin": -0.1},
        {"baseline": BASELINE, "slices": {"a": Y == 0}},
        {"baseline": BASELINE, "total_margin": 0.0, "slices": {"a": Y == 0, "b": Y == 1}},
    ],
)
def test_the_intervals_of_a_closed_gate_share_delta(options: dict[str, Any]):
    gate = Gate(Y, **options)
    gate.query(STEPS[0])
    (one,) = gate.close_out().candidates
    price = math.log(20) + history_nats([0, 0])
    assert one.nats == pytest.approx(price + math.log(2 * len(one.estimates)))


@pytest.mark.parametrize("margin", [-0.1, 0.0, 0.1])
def test_worse_is_a_gain_that_is_at_most_the_margin(margin: float):
    nats = math.log(20) + history_nats([0, 0, 0])
    told = set()
    for further in (-0.15, -0.08, -0.02, 0.0, 0.02, 0.08, 0.15):
        y_pred = wrong_in(0.3 - margin + further, seed=1)
        expected = "neither"
        if lower_limit(BASELINE, y_pred, nats) > margin:
            expected = "better"
        elif -lower_limit(y_pred, BASELINE, nats) <= margin:
            expected = "worse"
        gate = Gate(Y, baseline=BASELINE, release="three", margin=margin)
        assert gate.query(y_pred).verdict == expected
        told.add(expected)
    assert len(told) == 3


def test_passes_are_taken_back_one_at_a_time():
    gate = Gate(Y, baseline=BASELINE)
    for y_pred in [*STEPS[2:], STEPS[-1]]:  # the last is in production, and is not put there again
        gate.query(y_pred)
    path = [0, *(one.number for one in gate.verdicts if one.passed)]
    assert len(path) > 2 and gate.in_production == path[-1]
    while len(path) > 1:
        path.pop()
        assert gate.revoke() == gate.in_production == path[-1]


def test_threads_count_each_candidate_once():
    gate = Gate(Losses(200), baseline=np.ones(200, int), n_candidates=60)
    rows = np.random.default_rng(1).integers(0, 2, (60, 200))
    at_once(gate.query_many, [rows[start::3] for start in range(3)])
    assert sorted(one.number for one in gate.verdicts) == list(range(1, 61))


# ---- what is judged ------------------------------------------------------------------------------


def test_losses_in_every_form_are_the_same_candidate():
    losses = (BASELINE != Y).astype(int)
    better = (STEPS[3] != Y).astype(int)
    gate = Gate(M, baseline=losses)
    forms = [better, better.astype(bool), list(map(int, better)), pack_losses(better)]
    assert len({gate.query(form) for form in forms}) == 1 and gate.n_answered == 1
    # floats are real-valued losses, with limits of their own
    assert gate.query(better.astype(float)).number == 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "a gate needs a condition"),
        ({"baseline": BASELINE, "margin": None}, ValueError, "a gate needs a condition"),
        ({"baseline": BASELINE, "margin": "0"}, TypeError, "margin must be a real number"),
        ({"baseline": BASELINE, "margin": math.nan}, ValueError, "margin must be"),
        ({"baseline": BASELINE, "delta": 1.0}, ValueError, "delta must be in"),
        ({"baseline": BASELINE[:-1]}, ValueError, "baseline must have"),
        ({"baseline": BASELINE, "slices": {"a": Y}}, TypeError, r"slices\['a'\] must be bool"),
        ({"baseline": BASELINE, "slices": {"a": Y[1:] > 0}}, ValueError, r"slices\['a'\] must"),
        ({"baseline": BASELINE, "slices": {"a": Y > 5}}, ValueError, "at least one row"),
        ({"baseline": BASELINE, "slices": [Y > 0]}, TypeError, "slices must be a mapping"),
        ({"baseline": BASELINE, "slice_margin": -1.0}, ValueError, "slice_margin must not be"),
        ({"baseline": BASELINE, "release": "all"}, ValueError, "release must be one of"),
        ({"baseline": BASELINE, "release": "three", "margin": None}, ValueError, "margin must be"),
        ({"at_least": 0.5, "release": "three"}, ValueError, "release must be 'pass' without"),
        ({"at_least": 0.5, "total_margin": 0.1}, ValueError, "total_margin must be left out"),
        # 0.0 is a margin: without a baseline it would be a condition that nothing can fail
        ({"total_margin": 0.0}, ValueError, "total_margin must be left out"),
        ({"at_least": 0.5, "slices": {"a": Y > 0}}, ValueError, "slices must be left out"),
        ({"at_least": 0.5, "n_candidates": 0}, ValueError, "n_candidates must be at least 1"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        Gate(Y, **arguments)


def test_bad_queries_change_nothing():
    gate = Gate(Y, baseline=BASELINE)
    for bad in (Y[1:], np.full(M, 7), ["a"] * M, None, pack_losses(Y), np.ones((2, M))):
        with pytest.raises((TypeError, ValueError)):
            gate.query(bad)
        with pytest.raises((TypeError, ValueError)):
            gate.query_many([BASELINE, wrong_in(0.1), bad])  # nor the good ones before it
    assert gate.n_answered == 0
    with pytest.raises(ValueError, match="baseline must be left out"):
        Gate(Holdout(Y, metric="roc_auc"), baseline=Y + 0.0, at_least=0.5)
    with pytest.raises(ValueError, match="sample_weight and groups must be left out"):
        Gate(Losses(M, groups=Y), at_most=0.5)


def test_verdicts_of_many_stop_at_the_declared_number():
    """What was counted is told: no verdict is lost with the candidate that had none."""
    candidates = [wrong_in(share) for share in (0.5, 0.4, 0.02, 0.01)]
    gate, single = (Gate(Y, baseline=BASELINE, n_candidates=3) for _ in range(2))
    told = gate.query_many(candidates)
    assert told == [single.query(one) for one in candidates[:3]] == gate.verdicts
    with pytest.raises(HoldoutExhausted):
        gate.query_many(candidates[3:])
    assert gate.query_many([]) == []


# ---- the file ------------------------------------------------------------------------------------


def test_a_file_is_the_gate(tmp_path: Path):
    path, slices = tmp_path / "release.db", {"some": np.arange(M) % 3 == 0}
    options = {"margin": -0.01, "slices": slices, "slice_margin": 0.1}
    kept = Gate.open(path, Y, baseline=BASELINE, **options)
    memory = Gate(Y.copy(), baseline=BASELINE, **options)
    for y_pred in STEPS[:3]:
        assert kept.query(y_pred) == memory.query(y_pred)
    again = Gate.open(path, Y)
    assert again.verdicts == memory.verdicts and again.parameters == memory.parameters
    assert again.query(STEPS[3]) == memory.query(STEPS[3])
    assert kept.in_production == memory.in_production
    shown = Gate.open(path)
    assert shown.verdicts == memory.verdicts and shown.needed(0.1) == memory.needed(0.1)
    for call in (lambda: shown.query(STEPS[4]), shown.close_out):
        with pytest.raises(TypeError, match="the gate needs the labels"):
            call()
    assert Gate.open(path, Y, baseline=BASELINE, **options).close_out() == memory.close_out()


def test_no_file_is_made_of_bad_arguments(tmp_path: Path):
    path = tmp_path / "release.db"
    with pytest.raises(ValueError, match="a gate needs a condition"):
        Gate.open(path, Y)
    with pytest.raises(FileNotFoundError):
        Gate.open(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET event = replace(event, 'fail', 'pass')",
        "UPDATE event SET content = zeroblob(length(content))",
        "DELETE FROM event WHERE rowid = 1",
        "DELETE FROM guard",
    ],
)
def test_a_damaged_file_gives_no_verdict(tmp_path: Path, damage: str):
    path = tmp_path / "release.db"
    Gate.open(path, Y, baseline=BASELINE).query(STEPS[0])
    database = sqlite3.connect(path)
    assert database.execute(damage).rowcount > 0
    database.commit()
    database.close()
    with pytest.raises(ValueError, match="is damaged"):
        Gate.open(path, Y).query(STEPS[1])


ASK = """
import sys, numpy as np
from radabound_fast import Gate
losses = np.random.default_rng(int(sys.argv[2])).integers(0, 2, (40, 300))
gate = Gate.open(sys.argv[1], 300, baseline=np.ones(300, int), durability="process")
for row in losses:
    print(gate.query(row).number, flush=True)
"""


def ask(path: Path, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", ASK, str(path), str(seed)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_count_each_candidate_once(tmp_path: Path):
    asking = [ask(tmp_path / "a.db", seed) for seed in (1, 2)]
    numbers = [int(line) for one in asking for line in one.communicate(timeout=60)[0].split()]
    assert sorted(numbers) == list(range(1, 81))


@pytest.mark.parametrize("n_kills", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_a_killed_process_loses_no_verdict(tmp_path: Path, n_kills: int):
    path, released = tmp_path / "a.db", 0
    rng = np.random.default_rng(3)
    for seed in range(n_kills):
        with ask(path, seed) as asking:
            assert asking.stdout is not None
            lines = [asking.stdout.readline() for _ in range(int(rng.integers(1, 8)))]
            asking.kill()
            lines += asking.stdout.readlines()
        seen = [int(line) for line in lines if line.endswith("\n")]
        assert all(after == before + 1 for before, after in pairwise(seen))
        assert released < seen[0] and seen[0] - released <= 2  # one may have been counted unseen
        stored = Gate.open(path).n_answered
        assert seen[-1] <= stored <= seen[-1] + 1
        released = stored


# ---- what leaves it ------------------------------------------------------------------------------


def test_nothing_but_verdicts_leaves(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Counts of the candidates, found nowhere: not in words, numbers, errors, logs or the file."""
    caplog.set_level(logging.DEBUG, "radabound_fast")
    m = 10_007
    labels = np.random.default_rng(8).integers(0, 2, m)
    models = []
    for n_wrong in (3571, 3463, 2719):  # the baseline, one that fails, one that passes
        y_pred = labels.copy()
        y_pred[np.random.default_rng(n_wrong).permutation(m)[:n_wrong]] ^= 1
        models.append(y_pred)
    path = tmp_path / "release.db"
    gate = Gate.open(path, labels, baseline=models[0], n_candidates=2)
    left = [repr(gate.query(y_pred).to_dict()) for y_pred in models[1:]]
    assert [one.passed for one in gate.verdicts] == [False, True]
    with pytest.raises(HoldoutExhausted) as caught:
        gate.query(1 - models[1])
    left += [str(caught.value), repr(vars(caught.value)), repr(gate), gate.guarantee]
    left += [repr(gate.verdicts), gate.outlook().text, json.dumps(gate.parameters), caplog.text]
    left += [repr(gate.needed(0.1))]
    database = sqlite3.connect(path)
    stored = [*database.execute("SELECT event FROM event")]
    for (text,) in [*stored, *database.execute("SELECT description FROM guard")]:
        parts = json.loads(text)
        hashes = ("fingerprint", "secret", "holdout")  # digits by chance
        left.append(repr({name: part for name, part in parts.items() if name not in hashes}))
    wrong = np.array([y_pred != labels for y_pred in models])
    counts = {int(n) for n in wrong.sum(axis=1)}
    counts |= {int((one & ~other).sum()) for one in wrong for other in wrong if one is not other}
    counts = {n for count in counts for n in (count, m - count) if 99 < n < m}
    for text in left:
        for n in counts:
            assert str(n) not in text
            assert f"{n / m:.4f}"[1:] not in text
    octets = path.read_bytes()
    packed = [np.packbits(labels), np.packbits(labels, bitorder="little"), labels.astype(np.uint8)]
    for part in (*packed, *np.packbits(wrong, axis=1), *wrong.view(np.uint8)):
        assert part.tobytes()[:64] not in octets
    database.close()


@pytest.mark.parametrize("overridden", ["query", "query_many"])
def test_a_subclass_may_ask_one_way_by_the_other(overridden):
    class Loop(Gate):
        if overridden == "query":

            def query(self, y_pred):
                return self.query_many([y_pred])[0]
        else:

            def query_many(self, Y_pred):
                return [self.query(y_pred) for y_pred in Y_pred]

    gate = Loop(40, delta=0.1, at_most=0.5)
    assert gate.query(np.zeros(40)).number == 1
    assert [one.number for one in gate.query_many(np.eye(2, 40))] == [2, 3]
