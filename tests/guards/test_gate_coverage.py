"""Release gates against analysts who know the rule: wrong passes in simulated populations.

The labels are the only thing drawn: 1 with probability 1/2, independent of all else, so that the
true error of every candidate is 1/2 and every gain 0: a pass at margin 0 is wrong.  The control is
a gate that pays for nothing but delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from radabound_fast import Gate, Rounded

M, DELTA = 300, 0.2
Rng = np.random.Generator
Attack = Callable[[Gate, np.ndarray[Any, Any], Rng], None]


def fresh_candidates(gate: Gate, baseline: np.ndarray[Any, Any], rng: Rng) -> None:
    """Candidates that know nothing of each other: each has all of its own chance."""
    for _ in range(30):
        gate.query(rng.integers(0, 2, M))


def climb_on_verdicts(gate: Gate, baseline: np.ndarray[Any, Any], rng: Rng) -> None:
    """Flips of the model in production that are kept where the verdict is not "worse"."""
    candidate = baseline.copy()
    for _ in range(30):
        trial = candidate.copy()
        trial[rng.permutation(M)[:150]] ^= 1
        if gate.query(trial).verdict != "worse":
            candidate = trial


def climb_on_gains(gate: Gate, baseline: np.ndarray[Any, Any], rng: Rng) -> None:
    """Flips of single blocks; those whose rounded gain is positive are put together."""
    best = baseline.copy()
    for block in np.array_split(rng.permutation(M), 60):
        trial = baseline.copy()
        trial[block] ^= 1
        gain = gate.query(trial).value
        assert gain is not None
        if gain > 0:
            best[block] ^= 1
    gate.query(best)


ATTACKS: dict[str, tuple[Attack, Any]] = {
    "fresh candidates": (fresh_candidates, "pass"),
    "climbing on verdicts": (climb_on_verdicts, "three"),
    "climbing on rounded gains": (climb_on_gains, Rounded(0.005)),
}


def wrong_runs(attack: Attack, release: Any, n_runs: int, seed: int) -> int:
    wrong = 0
    for run in range(n_runs):
        rng = np.random.default_rng([seed, run])
        labels, baseline = rng.integers(0, 2, (2, M))
        gate = Gate(labels, baseline=baseline, delta=DELTA, release=release)
        attack(gate, baseline, rng)
        told = [one.verdict for one in gate.verdicts]
        wrong += any(verdict in ("pass", "better") for verdict in told)
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_no_more_than_delta_of_the_gates_pass_a_candidate_wrongly(name: str) -> None:
    attack, release = ATTACKS[name]
    # a correct gate fails with probability below 1e-6: more than 68 of 200 runs at 0.2
    n_runs = 200
    assert binom.sf(68, n_runs, DELTA) < 1e-5
    assert wrong_runs(attack, release, n_runs, seed=271) <= 68


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fresh candidates", "climbing on rounded gains"])
def test_a_gate_that_pays_for_nothing_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "_nats", lambda gate, counts: math.log(1 / gate.delta))
    attack, release = ATTACKS[name]
    assert wrong_runs(attack, release, 60, seed=272) > 40
