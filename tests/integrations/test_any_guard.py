"""Adapters need of a guard what `AnyGuard` names, and nothing else: so one elsewhere will do."""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    Gate,
    GuessAndCheck,
    Holdout,
    Ladder,
    Losses,
    RadaBound,
)
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.integrations._owner import AnyGuard
from radabound_fast.integrations.metric import HoldoutMetric
from radabound_fast.service.client import RemoteHoldout

M = 300
RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, M)
X = RNG.normal(size=(M, 3)) + Y[:, np.newaxis]
GRID = {"max_depth": [1, 2, 4]}
KEYS = [{"max_depth": depth} for depth in GRID["max_depth"]]


def members(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


class Elsewhere:
    """A guard of which adapters see the members of `AnyGuard`, and of its holdout the facts."""

    def __init__(self, guard):
        self._guard = guard
        facts = {name: getattr(guard.holdout, name) for name in RemoteHoldout.__slots__}
        self._facts = SimpleNamespace(**facts | {"labels": None})

    @property
    def holdout(self):
        return self._facts

    def __sklearn_clone__(self):
        return self


for name in members(AnyGuard) - {"holdout"}:
    setattr(Elsewhere, name, property(lambda self, name=name: getattr(self._guard, name)))


@pytest.mark.parametrize(
    "kind",
    [DeclaredSearch, FixedSequence, GuessAndCheck, Ladder, RadaBound, Thresholdout, Elsewhere],
)
def test_every_guard_has_what_adapters_need(kind):
    assert members(AnyGuard) <= set(dir(kind))


@pytest.mark.parametrize("holdout", [Holdout([0, 1]), Losses(2)], ids=repr)
def test_every_holdout_has_the_facts(holdout):
    assert set(RemoteHoldout.__slots__) <= set(dir(holdout))


GUARDS = {
    "RadaBound": lambda: RadaBound(Y, epsilon=0.4, delta=0.1, bound="mclt", seed=0),
    "FixedSequence": lambda: FixedSequence(Y, epsilon=0.4, delta=0.1, seed=0),
    "Ladder": lambda: Ladder(Y, step=0.05, delta=0.1),
    "GuessAndCheck": lambda: GuessAndCheck(Y, epsilon=0.3, delta=0.1),
    "DeclaredSearch": lambda: DeclaredSearch(Y, GRID, delta=0.1),
    "roc_auc": lambda: DeclaredSearch(Holdout(Y, metric="roc_auc"), GRID, delta=0.1),
}


def judged(guard):
    pytest.importorskip("joblib")
    from radabound_fast.integrations.joblib import guarded_map

    def fit_predict(key):
        scores = X.sum(axis=1) + key["max_depth"]
        predictions = scores if guard.holdout.takes == "scores" else (scores > 3).astype(int)
        return (predictions, 0.3) if guard.needs == "guess" else predictions

    guesses = guard.needs == "guess"
    return [
        answer.to_dict() for _, answer in guarded_map(guard, fit_predict, KEYS, guesses=guesses)
    ]


def searched(guard):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.tree import DecisionTreeClassifier

    from radabound_fast.integrations.sklearn import HoldoutSearchCV

    search = HoldoutSearchCV(DecisionTreeClassifier(random_state=0), GRID, guard=guard, cv=3)
    search = clone(search).fit(X[::-1], Y[::-1], X_holdout=X)
    return search.best_params_, search.cv_results_["mean_test_score"].tolist()


def studied(guard):
    optuna = pytest.importorskip("optuna")
    from radabound_fast.integrations.optuna import guarded_objective

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def fit_predict(trial):
        scores = X.sum(axis=1) + trial.suggest_categorical("max_depth", GRID["max_depth"])
        predictions = scores if guard.holdout.takes == "scores" else (scores > 3).astype(int)
        return (predictions, 0.3) if guard.needs == "guess" else predictions

    objective = guarded_objective(guard, fit_predict, guesses=guard.needs == "guess")
    direction = "maximize" if guard.holdout.greater_is_better else "minimize"
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=5)
    return [(trial.value, trial.user_attrs) for trial in study.trials]


@pytest.mark.parametrize("adapter", [judged, searched, studied])
@pytest.mark.parametrize("guard", GUARDS)
def test_an_adapter_takes_a_guard_that_is_elsewhere(adapter, guard):
    here, there = GUARDS[guard](), GUARDS[guard]()
    assert adapter(here) == adapter(Elsewhere(there))
    assert here.n_answered == there.n_answered > 0


@pytest.mark.skipif(not find_spec("lightgbm"), reason="lightgbm is not installed")
@pytest.mark.parametrize("guard", ["RadaBound", "FixedSequence", "Ladder", "DeclaredSearch"])
def test_boosting_takes_a_guard_that_is_elsewhere(guard):
    import lightgbm

    from radabound_fast.integrations.lightgbm import guarded_rounds

    answers = []
    for asked in (GUARDS[guard](), Elsewhere(GUARDS[guard]())):
        key = (lambda n_rounds: {"max_depth": n_rounds}) if asked.needs == "key" else None
        hook = guarded_rounds(asked, X, every=2, key=key)
        lightgbm.train(
            {"objective": "binary", "verbose": -1, "num_threads": 1},
            lightgbm.Dataset(X, Y),
            4,
            callbacks=[hook],
        )
        answers.append([(n_rounds, answer.to_dict()) for n_rounds, answer in hook.answers])
    assert answers[0] == answers[1] and len(answers[0]) == 2


def test_a_metric_needs_the_labels_here():
    with pytest.raises(TypeError, match="guard must have its labels in this process, .*Elsewhere"):
        HoldoutMetric(Elsewhere(GUARDS["RadaBound"]()))


@pytest.mark.parametrize("adapter", [searched, studied, HoldoutMetric])
def test_a_tool_that_chooses_by_scores_takes_no_gate(adapter):
    gate = Gate(Y, delta=0.1, at_most=0.9)
    with pytest.raises(TypeError, match="guard must answer scores, by which the tool chooses"):
        adapter(gate)
    assert gate.n_answered == 0


def test_candidates_go_through_a_gate_one_by_one():
    gate = Gate(Y, delta=0.1, at_most=0.9)
    assert [verdict["number"] for verdict in judged(gate)] == [
        1 + place for place in range(len(KEYS))
    ]
