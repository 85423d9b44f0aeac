"""`open` of every guard: whatever a database was made with is compared, and by one message."""

import os

import numpy as np
import pytest

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    Gate,
    GuessAndCheck,
    Holdout,
    Ladder,
    Losses,
    RadaBound,
    Rounded,
)
from radabound_fast.experiments.thresholdout import Thresholdout

M = 200
Y = np.random.default_rng(1).integers(0, 2, M)
GRID = {"depth": [1, 2, 3], "leaf": [1, 2]}
ONE = {"epsilon": 0.3, "delta": 0.1}
SIGNS = {"n_vectors": 8, "seed": 1}

# what is judged and the arguments of a guard, and by the name in the message other ones
GUARDS = {
    "RadaBound": (RadaBound, M, ONE | SIGNS, {"epsilon": 0.31, "delta": 0.11, "n_vectors": 9,
     "seed": 2, "bound": "mclt", "estimator": "half-range", "two_sided": True}),
    "FixedSequence": (FixedSequence, M, ONE | SIGNS, {"epsilon": 0.31, "delta": 0.11,
     "n_vectors": 9, "seed": 2, "max_queries": 7}),
    "union": (FixedSequence, Y, ONE | {"n_vectors": 0, "max_queries": 6}, {"epsilon": 0.31,
     "delta": 0.11, "n_vectors": 8, "max_queries": 7, "release": Rounded(0.01)}),
    "GuessAndCheck": (GuessAndCheck, M, ONE, {"epsilon": 0.31, "delta": 0.11,
     "low_error": False}),
    "Ladder": (Ladder, M, {"step": 0.1, "delta": 0.1, "max_queries": 6}, {"step": 0.11,
     "delta": 0.11, "max_queries": 7}),
    "Thresholdout": (Thresholdout, M, {"threshold": 0.1, "noise": 0.02, "budget": 9, "seed": 3},
     {"threshold": 0.11, "noise": 0.03, "budget": 8, "seed": 4}),
    "DeclaredSearch": (DeclaredSearch, Y, {"space": GRID, "delta": 0.1}, {"space": 300,
     "delta": 0.2, "allow_reruns": True, "two_sided": False, "n_folds": 5,
     "release": Rounded(0.01), "metric": {"baseline": Y}}),
    "ConfirmedSearch": (ConfirmedSearch, Y, {"delta": 0.1, "seed": 5}, {"delta": 0.2,
     "n_batches": None, "confirm_share": 0.3, "seed": 9, "stratify": True, "pairs": True,
     "limits": "bootstrap", "baseline": Y}),
    "Gate": (Gate, Y, {"baseline": 1 - Y, "margin": -0.01, "slices": {"a": Y > 0}},
     {"margin": 0.0, "delta": 0.1, "promote": False, "release": "three", "n_candidates": 5,
      "slices": ({"a": Y < 1}, {"b": Y > 0}, None), "total_margin": 0.0, "at_least": 0.5,
      "at_most": 0.5, "slice_margin": 0.1, "baseline": Y, "row_ids": [str(i) for i in range(M)]}),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDS)
def test_a_database_opens_with_its_own_arguments_alone(tmp_path, name):
    kind, judged, given, others = GUARDS[name]
    path = tmp_path / "guard.db"
    kind.open(path, judged, durability="process", **given)
    content = path.read_bytes()
    changes = [(part, value) for part, one in others.items()
               for value in (one if isinstance(one, tuple) else (one,))]  # fmt: skip
    for part, value in changes:
        changed = value if isinstance(value, dict) and "baseline" in value else {part: value}
        with pytest.raises(ValueError, match=rf"^{part}.* must be .*with which .*guard.db") as told:
            kind.open(path, judged, durability="process", **given | changed)
            pytest.fail(part)
        is_shown = part not in ("seed", "baseline", "slices", "metric", "row_ids")
        assert (", got " in str(told.value)) == is_shown
    for same in (given, {}):
        kind.open(path, judged, durability="process", **same)
    assert path.read_bytes() == content or os.path.exists(f"{path}-wal")


@pytest.mark.parametrize("name", ["RadaBound", "FixedSequence"])
def test_where_the_signs_are_may_differ(tmp_path, name):
    kind, judged, given, _ = GUARDS[name]
    for signs in ("stored", "generated", "stored"):
        with kind.open(tmp_path / "g.db", judged, signs=signs, **given) as guard:
            guard.query(np.zeros(M))
    assert guard.n_answered == 3


def test_what_a_gate_is_not_given_is_as_in_its_database(tmp_path):
    gate = Gate.open(tmp_path / "g.db", Y, baseline=1 - Y, margin=-0.01, n_candidates=5)
    for given in ({}, {"margin": -0.01}, {"n_candidates": 5}):
        assert Gate.open(tmp_path / "g.db", Y, **given).parameters == gate.parameters


@pytest.mark.parametrize("name", GUARDS)
def test_a_database_opens_for_the_rows_that_it_was_made_for(tmp_path, name):
    kind, judged, given, _ = GUARDS[name]
    path = tmp_path / "guard.db"
    kind.open(path, judged, durability="process", **given)
    if judged is M:
        others = {M - 1: "^n_samples must be 200, with which", Losses(M): None}
        others[Losses(M - 1)] = others[M - 1]
    else:
        metric = "metric, its options, classes, weights and groups must be those with which"
        measured = Holdout(Y, classes=[0, 1, 2]) if name == "Gate" else Holdout(Y, metric="f1")
        others = {measured: metric, Holdout(Y, groups=np.arange(M) // 2): "with which .* was made",
                  Holdout(1 - Y): "was made for another holdout",
                  Holdout(Y[:-1]): "was made for another holdout"}  # fmt: skip
        if name == "Gate":
            given = {
                one: value for one, value in given.items() if one not in ("slices", "baseline")
            }
        if name in ("union", "ConfirmedSearch"):
            given = {}
    for other, message in others.items():
        if message is None:
            kind.open(path, other, durability="process", **given)
            continue
        with pytest.raises(ValueError, match=message):
            kind.open(path, other, durability="process", **given)
            pytest.fail(repr(other))


@pytest.mark.parametrize("name", GUARDS)
def test_a_name_beside_labels_and_a_guard_without_any_rows_are_refused(tmp_path, name):
    kind, judged, given, _ = GUARDS[name]
    with pytest.raises(TypeError, match="holdout_id must be left out beside labels"):
        kind.open(tmp_path / "guard.db", Y, holdout_id="mine", **given)
    with pytest.raises((TypeError, FileNotFoundError)):
        kind.open(tmp_path / "guard.db", **given)
    assert not os.listdir(tmp_path)
