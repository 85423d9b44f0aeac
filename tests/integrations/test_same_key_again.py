"""A tool comes with one configuration again, of a learner that tosses coins: in every adapter."""

import pickle
import threading
from importlib.util import find_spec

import numpy as np
import pytest
from support import at_once

from radabound_fast import DeclaredSearch, Holdout
from radabound_fast.integrations.metric import HoldoutMetric
from radabound_fast.spaces import epoch_of

M = 300
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, M)
X = RNG.normal(size=(M, 3)) + Y[:, np.newaxis]
DEPTHS = [1, 1, 2, 1]  # what the tool tries
GRID = {"max_depth": [1, 2]}


class Coins:
    """What a learner predicts: other coins in each training."""

    def __init__(self):
        self.errors = []

    def __call__(self, *_):
        y_pred = Y ^ (np.random.default_rng(len(self.errors)).random(M) < 0.3)
        self.errors.append(float(np.mean(y_pred != Y)))
        return y_pred


def mapped(guard, coins):
    pytest.importorskip("joblib")
    from radabound_fast.integrations.joblib import guarded_map

    keys = [{"max_depth": depth} for depth in DEPTHS]
    return [answer.value for _, answer in guarded_map(guard, coins, keys)]


def searched(guard, coins):
    pytest.importorskip("sklearn")
    from sklearn.base import BaseEstimator, ClassifierMixin

    from radabound_fast.integrations.sklearn import HoldoutSearchCV

    class Learner(ClassifierMixin, BaseEstimator):
        def __init__(self, max_depth=1):
            self.max_depth = max_depth

        def fit(self, X, y):
            self.classes_, self.y_pred = np.unique(y), coins()
            return self

        def predict(self, X):
            return self.y_pred

    search = HoldoutSearchCV(Learner(), {"max_depth": list(DEPTHS)}, guard=guard).fit(
        X, Y, X_holdout=X
    )
    assert np.mean(search.predict(X) != Y) == search.best_answer_.value  # the judged model
    return search.cv_results_["answer"].tolist()


def studied(guard, coins):
    optuna = pytest.importorskip("optuna")
    from radabound_fast.integrations.optuna import guarded_objective

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study()
    for depth in DEPTHS:
        study.enqueue_trial({"max_depth": depth})

    def fit_predict(trial):
        trial.suggest_categorical("max_depth", GRID["max_depth"])
        return coins()

    study.optimize(guarded_objective(guard, fit_predict), n_trials=len(DEPTHS))
    return [trial.value for trial in study.trials]


def measured(guard, coins):
    metric = HoldoutMetric(guard)
    return [metric(Y, coins(), key={"max_depth": depth}) for depth in DEPTHS]


class Fitted:
    def __init__(self, max_depth, predict):
        self.max_depth, self.predict = max_depth, predict

    def get_params(self):
        return {"max_depth": self.max_depth}


def scored(guard, coins):
    score = HoldoutMetric(guard).scorer()
    return [1.0 - score(Fitted(depth, coins), X, Y) for depth in DEPTHS]


ADAPTERS = [mapped, searched, studied, measured, scored]


@pytest.fixture(params=["memory", "database"])
def search_with(request, tmp_path):
    def make(**options):
        if request.param == "memory":
            return DeclaredSearch(Y, GRID, delta=0.1, **options)
        options |= {"delta": 0.1, "durability": "process"}
        return DeclaredSearch.open(tmp_path / "search.db", Y, GRID, **options)

    return make


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_with_reruns_each_training_is_judged(adapter, search_with):
    search, coins = search_with(allow_reruns=True), Coins()
    assert adapter(search, coins) == pytest.approx(coins.errors, abs=1e-12)
    assert search.answers.values.tolist() == coins.errors
    assert search.answers.reruns.tolist() == [1, 2, 1, 3]
    # a second study on the same search goes on
    adapter(search, coins)
    assert search.answers.reruns.tolist() == [1, 2, 1, 3, 4, 5, 2, 6]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_without_reruns_the_first_answer_stands(adapter, search_with):
    search, coins = search_with(), Coins()
    first, _, other, _ = told = adapter(search, coins)
    assert told == pytest.approx([first, first, other, first], abs=1e-12)
    assert search.answers.values.tolist() == coins.errors[::2]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_search_that_would_not_notice_a_second_model_is_refused(adapter):
    search, coins = DeclaredSearch(Y, GRID, delta=0.1, n_best=10), Coins()
    with pytest.raises(ValueError, match="guard must store all answers, got n_best=10"):
        adapter(search, coins)
    assert search.n_answered == 0 and not coins.errors


@pytest.mark.parametrize("adapter", [mapped, studied, measured, scored])
def test_bad_predictions_of_a_known_key_are_an_error_all_the_same(adapter, search_with):
    search = search_with()
    search.query(Y, key={"max_depth": 1})
    with pytest.raises(ValueError, match="y_pred must have length 300"):
        adapter(search, lambda *_: Y[1:])
    assert search.n_answered == 1


@pytest.mark.skipif(not find_spec("sklearn"), reason="scikit-learn is not installed")
def test_an_earlier_fit_s_answer_is_of_no_model_of_this_fit():
    from sklearn.tree import ExtraTreeClassifier

    from radabound_fast.integrations.sklearn import HoldoutSearchCV

    guard = DeclaredSearch(Y, GRID, delta=0.1)
    search = HoldoutSearchCV(ExtraTreeClassifier(), GRID, guard=guard)
    search.fit(X[::-1], Y[::-1], X_holdout=X)
    scores = search.cv_results_["mean_test_score"].tolist()
    with pytest.raises(ValueError, match="best_estimator_ must be a model that the guard has judg"):
        search.fit(X[50:], Y[50:], X_holdout=X)
    assert search.cv_results_["mean_test_score"].tolist() == scores
    assert not hasattr(search, "best_estimator_") and search.best_params_ in list(guard.space)
    assert search.set_params(refit=False).fit(X, Y, X_holdout=X).best_score_ == max(scores)


@pytest.mark.parametrize("engine", ["lightgbm", "xgboost"])
def test_a_booster_is_returned_with_its_own_answers_or_not_at_all(engine):
    pytest.importorskip(engine)
    if engine == "lightgbm":
        import lightgbm

        from radabound_fast.integrations.lightgbm import guarded_rounds as hook_of

        def train(hook, seed):
            own = {"extra_trees": True, "seed": seed, "verbosity": -1, "num_threads": 1}
            data = lightgbm.Dataset(X, Y, params={"verbosity": -1})
            lightgbm.train({"objective": "binary"} | own, data, 4, callbacks=[hook])
    else:
        import xgboost

        from radabound_fast.integrations.xgboost import GuardedRounds as hook_of

        def train(hook, seed):
            own = {"subsample": 0.5, "seed": seed, "nthread": 1}
            data = xgboost.DMatrix(X, Y)
            xgboost.train({"objective": "binary:logistic"} | own, data, 4, callbacks=[hook])

    space = GRID * epoch_of(4)
    asked = {"every": 1, "key": lambda n_rounds: ({"max_depth": 1}, n_rounds - 1)}
    with_reruns = DeclaredSearch(Y, space, delta=0.1, allow_reruns=True)
    for seed in (0, 1):
        train(hook_of(with_reruns, X, **asked), seed)
    assert with_reruns.answers.reruns.tolist() == 4 * [1] + 4 * [2]
    plain = DeclaredSearch(Y, space, delta=0.1)
    train(hook_of(plain, X, **asked), 0)
    train(hook_of(plain, X, **asked), 0)  # of the same model the same
    with pytest.raises(ValueError, match="key must stand for one model"):
        train(hook_of(plain, X, **asked), 1)
    assert plain.n_answered == 4


def test_copies_in_other_processes_cannot_count_trainings(tmp_path):
    metric = HoldoutMetric(DeclaredSearch(Y, GRID, delta=0.1, allow_reruns=True))
    with pytest.raises(TypeError, match="trainings of a key are counted in one place"):
        pickle.dumps(metric)
    shared = DeclaredSearch.open(tmp_path / "s.db", Y, GRID, delta=0.1, allow_reruns=True)
    metric, coins = HoldoutMetric(shared), Coins()
    for asked in (metric, pickle.loads(pickle.dumps(metric))):
        asked(Y, coins(), key={"max_depth": 2})
    assert shared.answers.reruns.tolist() == [1, 2]


@pytest.mark.parametrize("metric", ["error", "roc_auc"])
def test_two_threads_on_one_metric_count_every_training_once(metric):
    search = DeclaredSearch(Holdout(Y, metric=metric), GRID, delta=0.1, allow_reruns=True)
    holdout_metric, together = HoldoutMetric(search), threading.Barrier(2)
    told = []

    def ask(seed):
        together.wait(timeout=30)
        for step in range(20):
            y_pred = Y ^ (np.random.default_rng([seed, step]).random(M) < 0.3)
            told.append(holdout_metric(Y, y_pred, key={"max_depth": 1 + step % 2}))

    at_once(ask, range(2))
    answers = search.answers
    trainings = {
        (key["max_depth"], rerun) for key, rerun in zip(answers.keys, answers.reruns, strict=True)
    }
    assert trainings == {(depth, rerun) for depth in (1, 2) for rerun in range(1, 21)}
    assert sorted(told) == sorted(answers.values)


# ---- a key says all that is tuned ----------------------------------------------------------------


class Learner:
    def __init__(self, **params):
        self.params = params

    def get_params(self):
        return self.params

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


class OtherLearner(Learner):
    pass


@pytest.mark.parametrize(
    ("first", "second", "name"),
    [
        (Learner(max_depth=1, leaf=1), Learner(max_depth=2, leaf=2), "leaf"),
        (Learner(max_depth=1, leaf=None), Learner(max_depth=2, leaf=2), "leaf"),
        (Learner(max_depth=1, seed=1), Learner(max_depth=1, seed=2), "seed"),
        (Learner(max_depth=1), OtherLearner(max_depth=1), "class"),
    ],
)
def test_a_tuned_parameter_that_the_space_lacks_is_an_error(first, second, name):
    search = DeclaredSearch(Y, GRID, delta=0.1)
    score = HoldoutMetric(search).scorer()
    score(first, X, Y)
    with pytest.raises(ValueError, match=f"key must say all that is tuned, got.* no {name}$"):
        score(second, X, Y)
    assert search.n_answered == 1


def test_what_no_model_depends_on_may_differ():
    search = DeclaredSearch(Y, [GRID, {"leaf": [1, 2]}], delta=0.1)
    score = HoldoutMetric(search).scorer(key=None)
    for n_jobs, key in enumerate(search.space):
        score(Learner(**key, n_jobs=n_jobs, inner=Learner()), X, Y)
    assert search.n_answered == 4
