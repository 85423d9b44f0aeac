"""LightGBM and XGBoost: rounds in order, each asked once, and training ends at the halt."""

from importlib.util import find_spec

import numpy as np
import pytest

if not find_spec("sklearn"):
    pytest.skip("scikit-learn is not installed", allow_module_level=True)

from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from radabound_fast import Holdout, HoldoutExhausted, RadaBound

DATA = {"two classes": load_breast_cancer, "ten classes": load_digits}
N_ROUNDS = 12


class Lightgbm:
    """Both tools in the same few words."""

    name = "lightgbm"
    epsilon = 0.095  # halts on the way, on ten classes

    def __init__(self, n_classes):
        objective = {"objective": "multiclass", "num_class": n_classes}
        self.parameters = {"objective": "binary"} if n_classes == 2 else objective
        self.parameters |= {"num_leaves": 4, "verbosity": -1, "num_threads": 1, "seed": 0}

    def train(self, X, y, holdout, X_holdout, **options):
        import lightgbm

        from radabound_fast.integrations.lightgbm import guarded_rounds

        callbacks = [guarded_rounds(holdout, X_holdout, **options)]
        data = lightgbm.Dataset(X, y)
        return lightgbm.train(self.parameters, data, N_ROUNDS, callbacks=callbacks)

    def scores(self, booster, X, n_rounds):
        return booster.predict(X, num_iteration=n_rounds)

    def best_round(self, booster):
        return booster.best_iteration - 1


class Xgboost:
    name = "xgboost"
    epsilon = 0.1

    def __init__(self, n_classes):
        objective = {"objective": "multi:softprob", "num_class": n_classes}
        self.parameters = {"objective": "binary:logistic"} if n_classes == 2 else objective
        self.parameters |= {"max_depth": 2, "nthread": 1, "seed": 0}

    def train(self, X, y, holdout, X_holdout, **options):
        import xgboost

        from radabound_fast.integrations.xgboost import GuardedRounds

        callbacks = [GuardedRounds(holdout, X_holdout, **options)]
        data = xgboost.DMatrix(X, y)
        return xgboost.train(self.parameters, data, N_ROUNDS, callbacks=callbacks)

    def scores(self, booster, X, n_rounds):
        return booster.inplace_predict(X, iteration_range=(0, n_rounds))

    def best_round(self, booster):
        return booster.best_iteration


@pytest.fixture(params=[Lightgbm, Xgboost], ids=["lightgbm", "xgboost"])
def tool(request):
    if not find_spec(request.param.name):
        pytest.skip(f"{request.param.name} is not installed")
    return request.param


def split(data):
    X, y = DATA[data](return_X_y=True)
    return train_test_split(X, y, test_size=300, random_state=0)


def holdout_of(y, epsilon=0.5):
    return Holdout(y, epsilon=epsilon, delta=0.1, bound="mclt", seed=0)


@pytest.mark.parametrize("data", DATA)
def test_every_second_round_is_asked_and_the_best_is_kept(tool, data):
    X, X_holdout, y, y_holdout = split(data)
    boosting = tool(len(np.unique(y)))
    holdout = holdout_of(y_holdout)
    booster = boosting.train(X, y, holdout, X_holdout, every=2)
    assert holdout.n_queries == N_ROUNDS // 2
    errors = []
    for n_rounds in range(2, N_ROUNDS + 1, 2):
        scores = boosting.scores(booster, X_holdout, n_rounds)
        codes = scores.argmax(axis=1) if scores.ndim == 2 else scores > 0.5
        errors.append(np.mean(codes != y_holdout))
    assert boosting.best_round(booster) == 2 * int(np.argmin(errors)) + 1


def test_training_ends_at_the_halt_with_the_best_answered_round(tool):
    X, X_holdout, y, y_holdout = split("ten classes")
    holdout = holdout_of(y_holdout, epsilon=tool.epsilon)
    booster = tool(10).train(X, y, holdout, X_holdout, every=1)
    assert holdout.halted and 0 < holdout.n_queries < N_ROUNDS
    n_rounds = booster.num_boosted_rounds() if tool is Xgboost else booster.current_iteration()
    assert n_rounds <= holdout.n_queries + 1  # the withheld one was trained, LightGBM drops it
    assert tool(10).best_round(booster) < holdout.n_queries


def test_no_round_is_best_if_the_first_answer_is_withheld(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    with pytest.raises(HoldoutExhausted):
        tool(2).train(X, y, holdout_of(y_holdout, epsilon=0.01), X_holdout, every=1)


def test_classes_that_are_strings_are_named_by_code(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    by_number, by_name = holdout_of(y_holdout), holdout_of(np.array(["no", "yes"])[y_holdout])
    tool(2).train(X, y, by_number, X_holdout, every=4)
    tool(2).train(X, y, by_name, X_holdout, every=4, classes=["no", "yes"])
    assert by_number.n_queries == by_name.n_queries == 3
    assert_array_equal(by_number.complexity, by_name.complexity)


def test_the_classifiers_take_the_callbacks_too(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    names = np.array(["no", "yes"])
    if tool is Lightgbm:
        from lightgbm import LGBMClassifier

        from radabound_fast.integrations.lightgbm import guarded_rounds

        callback = guarded_rounds(holdout_of(names[y_holdout]), X_holdout, every=3)
        model = LGBMClassifier(n_estimators=N_ROUNDS, verbosity=-1, n_jobs=1)
        model.fit(X, names[y], callbacks=[callback])
        assert model.best_iteration_ % 3 == 0
    else:
        from xgboost import XGBClassifier

        from radabound_fast.integrations.xgboost import GuardedRounds

        callback = GuardedRounds(holdout_of(y_holdout), X_holdout, every=3)
        model = XGBClassifier(n_estimators=N_ROUNDS, callbacks=[callback], n_jobs=1)
        model.fit(X, y)
        assert model.best_iteration % 3 == 2
    assert (
        np.mean(model.predict(X_holdout) == (names[y_holdout] if tool is Lightgbm else y_holdout))
        > 0.9
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"every": 0}, ValueError, "every must be at least 1, got 0"),
        ({"holdout": RadaBound(300, epsilon=0.1, delta=0.1)}, TypeError, "must be a Holdout"),
    ],
)
def test_bad_arguments_are_refused_before_training(tool, change, error, message):
    X, X_holdout, y, y_holdout = split("two classes")
    options = {"holdout": holdout_of(y_holdout), "X_holdout": X_holdout} | change
    with pytest.raises(error, match=message):
        tool(2).train(X, y, **options)


def test_a_booster_that_is_never_due_is_trained_to_the_end(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    holdout = holdout_of(y_holdout)
    booster = tool(2).train(X, y, holdout, X_holdout, every=N_ROUNDS + 1)
    assert holdout.n_queries == 0
    n_rounds = booster.num_boosted_rounds() if tool is Xgboost else booster.current_iteration()
    assert n_rounds == N_ROUNDS
