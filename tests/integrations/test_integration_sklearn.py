"""HoldoutSearchCV: a proper estimator around a guard that it neither makes nor copies."""

import pickle
from importlib.util import find_spec

import numpy as np
import pytest

if not find_spec("sklearn") or not find_spec("joblib"):
    pytest.skip("scikit-learn is not installed", allow_module_level=True)

from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_absolute_error, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    ParameterGrid,
    ParameterSampler,
    cross_val_score,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
)
from radabound_fast.integrations import sklearn as module
from radabound_fast.integrations.sklearn import HoldoutSearchCV, space_of
from radabound_fast.metrics import AbsoluteError, Cost, LogLoss

TREE = DecisionTreeClassifier(random_state=0)
DEPTHS = {"max_depth": [1, 2, 3, 4, 6, 8]}
DEPTHS_KEYS = list(ParameterGrid(DEPTHS))


# 569 tumours
X, X_holdout, y, y_holdout = train_test_split(
    *load_breast_cancer(return_X_y=True), test_size=300, random_state=0
)


def guard_of(y, **parameters):
    given = {"epsilon": 0.3, "delta": 0.1, "bound": "mclt", "seed": 1} | parameters
    return RadaBound(y, **given)


def fitted(estimator, candidates, **options):
    """A search that went through the candidates on the tumours."""
    search = HoldoutSearchCV(estimator, candidates, **options)
    return search.fit(X, y, X_holdout=X_holdout)


def test_it_finds_what_a_plain_loop_finds():
    search = fitted(TREE, DEPTHS, guard=guard_of(y_holdout))
    errors = [
        np.mean(clone(TREE).set_params(**p).fit(X, y).predict(X_holdout) != y_holdout)
        for p in ParameterGrid(DEPTHS)
    ]
    assert_array_equal(search.cv_results_["answer"], errors)
    assert search.best_index_ == np.argmin(errors)
    assert search.best_params_ == list(ParameterGrid(DEPTHS))[np.argmin(errors)]
    assert search.best_answer_.value == min(errors)
    best = clone(TREE).set_params(**search.best_params_).fit(X, y)
    assert_array_equal(search.predict(X_holdout), best.predict(X_holdout))
    assert_array_equal(search.predict_proba(X_holdout), best.predict_proba(X_holdout))
    assert search.score(X_holdout, y_holdout) == best.score(X_holdout, y_holdout)
    assert not search.halted_ and not search.cv_results_["withheld"].any()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_after_the_halt_candidates_are_marked_and_unanswered(n_jobs):
    candidates = ParameterSampler(
        {"max_features": range(1, 20), "random_state": range(99)}, 40, random_state=0
    )
    guard = guard_of(y_holdout, epsilon=0.09)
    search = HoldoutSearchCV(TREE, candidates, guard=guard, n_jobs=n_jobs)
    with parallel_config(backend="threading"):  # processes: in the tests of joblib
        search.fit(X, y, X_holdout=X_holdout)
    results = search.cv_results_
    alone = guard_of(y_holdout, epsilon=0.09)
    errors = alone.query_many(
        [clone(TREE).set_params(**p).fit(X, y).predict(X_holdout) for p in candidates]
    )
    n_answered = errors.n_answered
    assert 0 < n_answered < 40
    assert guard.n_answered == n_answered
    assert_array_equal(results["answer"][:n_answered], errors.values)
    assert search.halted_ and guard.halted
    assert_array_equal(results["withheld"], np.arange(40) >= n_answered)
    for column in ("answer", "half_width", "complexity"):
        assert_array_equal(np.isnan(results[column]), results["withheld"])
    assert (np.diff(results["complexity"][:n_answered]) >= 0).all()
    assert results["params"] == list(candidates)
    assert search.best_index_ < n_answered
    with pytest.raises(HoldoutExhausted, match="guard had halted before"):
        search.fit(X, y, X_holdout=X_holdout)
    assert guard.n_answered == n_answered


def test_a_second_fit_and_a_clone_spend_the_same_budget():
    guard = guard_of(y_holdout)
    search = HoldoutSearchCV(TREE, DEPTHS, guard=guard)
    again = clone(search)
    assert again is not search and again.guard is guard
    search.fit(X, y, X_holdout=X_holdout)
    again.fit(X, y, X_holdout=X_holdout)
    assert again.set_params(estimator__criterion="entropy").guard is guard
    assert guard.n_answered == 12


def test_a_clone_queries_the_same_search():
    guard = searched(y_holdout, DEPTHS)
    again = clone(HoldoutSearchCV(TREE, DEPTHS, guard=guard))
    assert again.guard is guard
    again.fit(X, y, X_holdout=X_holdout)
    assert guard.n_answered == 6 and guard.best.key == again.best_params_


def test_nothing_is_best_if_the_first_answer_is_withheld():
    search = HoldoutSearchCV(TREE, DEPTHS, guard=guard_of(y_holdout, epsilon=0.074))
    assert search.guard.budget > 0
    with pytest.raises(HoldoutExhausted, match="withheld the first answer; mclt needs epsilon"):
        search.fit(X, y, X_holdout=X_holdout)
    assert search.halted_ and search.cv_results_["withheld"].all()
    with pytest.raises(NotFittedError):
        search.predict(X_holdout)


def test_a_guard_that_can_answer_nothing_says_what_would_work_before_anything_is_fitted():
    search = HoldoutSearchCV(TREE, DEPTHS, guard=guard_of(y_holdout, epsilon=0.01))
    with pytest.raises(HoldoutExhausted, match="guard can answer no query.*; mclt needs epsilon"):
        search.fit(X, y, X_holdout=X_holdout)
    assert not search.guard.halted and not hasattr(search, "cv_results_")


def test_the_first_of_equals_is_best():
    candidates = {"max_depth": [1, 2, 2, 2, 1]}
    search = fitted(TREE, candidates, guard=guard_of(y_holdout))
    errors = search.cv_results_["answer"].tolist()
    assert errors[1] == errors[2] == errors[3] < errors[0]
    assert search.best_index_ == 1


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_was_answered_before_an_error_is_kept(error):

    class Fails(DecisionTreeClassifier):
        def fit(self, X, y):
            if self.max_depth == 4:
                raise error("the fourth")
            return super().fit(X, y)

    plain = fitted(TREE, DEPTHS, guard=guard_of(y_holdout))
    search = HoldoutSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": [1]}, guard=guard_of(y_holdout)
    )
    search.fit(X, y, X_holdout=X_holdout)
    search.set_params(estimator=Fails(random_state=0), candidates=DEPTHS)
    with pytest.raises(error, match="the fourth") as caught:
        search.fit(X, y, X_holdout=X_holdout)
    answered = plain.cv_results_["answer"][:3]
    told = caught.value.answers
    assert [params for params, _ in told] == list(ParameterGrid(DEPTHS))[:3]
    assert_array_equal([answer.value for _, answer in told], answered)
    assert_array_equal(search.cv_results_["answer"], [*answered, np.nan, np.nan, np.nan])
    assert not search.halted_
    # of the fit before nothing is left that could be taken for this one's
    assert not hasattr(search, "best_params_") and not hasattr(search, "best_estimator_")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_guesses_are_cross_validation_errors_of_the_training_part(n_jobs):
    check = GuessAndCheck(y_holdout, epsilon=0.2, delta=0.1)
    search = HoldoutSearchCV(TREE, DEPTHS, guard=check, cv=3, n_jobs=n_jobs)
    with parallel_config(backend="threading"):  # processes: in the tests of joblib
        search.fit(X, y, X_holdout=X_holdout)
    guesses = [
        1 - cross_val_score(clone(TREE).set_params(**p), X, y, cv=3).mean()
        for p in ParameterGrid(DEPTHS)
    ]
    assert check.n_answered == 6 and check.failures == 0
    # a guess that passes is the answer
    assert_array_equal(search.cv_results_["answer"], guesses)
    assert np.isnan(search.cv_results_["complexity"]).all()


def test_a_ladder_needs_no_guesses():
    guard = Ladder(y_holdout, step=0.02, delta=0.1)
    search = fitted(TREE, DEPTHS, guard=guard, cv="not used")
    assert (np.diff(search.cv_results_["answer"]) <= 0).all()


def test_pipelines_frames_and_classes_that_are_strings():
    names = np.array(["benign", "malignant"])
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {
        "logisticregression__C": [0.01, 1.0],
        "standardscaler": [StandardScaler(), RobustScaler()],
    }
    expected = fitted(logistic, grid, guard=guard_of(y_holdout))
    columns = [f"x{i}" for i in range(X.shape[1])]
    for library in ("pandas", "polars"):
        frames = pytest.importorskip(library)
        as_frame = {
            "pandas": lambda a, frames=frames: frames.DataFrame(a, columns=columns).set_index(
                "x0", drop=False
            ),
            "polars": lambda a, frames=frames: frames.DataFrame(a, schema=columns),
        }[library]
        guard = guard_of(frames.Series(names[y_holdout]))
        search = HoldoutSearchCV(logistic, grid, guard=guard)
        search.fit(as_frame(X), frames.Series(names[y]), X_holdout=as_frame(X_holdout))
        assert_array_equal(search.cv_results_["answer"], expected.cv_results_["answer"])
        assert list(search.classes_) == ["benign", "malignant"]
        assert list(search.feature_names_in_) == columns
        assert_array_equal(search.predict(as_frame(X_holdout)), names[expected.predict(X_holdout)])


def test_samples_go_by_position():
    """Permuting the holdout together with its labels changes nothing, alone everything."""
    order = np.random.default_rng(0).permutation(300)
    told = []
    for rows, labels in [(X_holdout, y_holdout), (X_holdout[order], y_holdout[order])]:
        search = HoldoutSearchCV(TREE, DEPTHS, guard=guard_of(labels))
        told.append(search.fit(X, y, X_holdout=rows).cv_results_["answer"])
    assert_array_equal(*told)
    wrong = HoldoutSearchCV(TREE, DEPTHS, guard=guard_of(y_holdout))
    wrong.fit(X, y, X_holdout=X_holdout[order])
    assert wrong.best_answer_.value > 0.3


def test_ten_classes():
    X, y = load_digits(return_X_y=True)
    X, X_holdout, y, y_holdout = train_test_split(X, y, test_size=900, random_state=0)
    search = HoldoutSearchCV(TREE, {"max_depth": [2, 8]}, guard=guard_of(y_holdout))
    search.fit(X, y, X_holdout=X_holdout)
    assert search.best_params_ == {"max_depth": 8}
    assert search.best_answer_.value < 0.3 < search.cv_results_["answer"][0]


def searched(y, candidates, metric="error"):
    return DeclaredSearch(Holdout(y, metric=metric), space_of(candidates), delta=0.1)


# ---- results as scikit-learn's users know them ---------------------------------------------


def test_the_results_make_a_frame_with_scikit_learns_names():
    pd = pytest.importorskip("pandas")
    rows = np.vstack([X, X_holdout]), np.append(y, y_holdout)
    split = [(np.arange(len(y)), np.arange(len(y), len(rows[1])))]
    grid = {"max_depth": [1, 2, 3, 2, None], "criterion": ["gini", "entropy"]}
    theirs = GridSearchCV(TREE, grid, cv=split, scoring="accuracy", refit=False).fit(*rows)
    guard = FixedSequence(y_holdout, epsilon=0.3, delta=0.1, seed=1)
    ours = fitted(TREE, grid, guard=guard)
    frame, expected = pd.DataFrame(ours.cv_results_), pd.DataFrame(theirs.cv_results_)
    same = ["params", "param_criterion", "param_max_depth", "rank_test_score"]
    assert frame[same].astype(object).equals(expected[same].astype(object))
    assert frame.mean_test_score.to_numpy() == pytest.approx(
        expected.mean_test_score.to_numpy(), abs=1e-12
    )
    assert ours.best_index_ == theirs.best_index_ and ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-12)
    assert (ours.n_splits_, ours.multimetric_) == (theirs.n_splits_, theirs.multimetric_)
    assert (frame.low_test_score <= frame.mean_test_score).all()
    assert (frame.mean_test_score <= frame.high_test_score).all()
    assert "std_test_score" not in frame


def test_a_parameter_that_a_candidate_lacks_is_masked():
    candidates = [{"max_depth": [2]}, {"criterion": ["entropy"], "max_depth": [3]}]
    search = HoldoutSearchCV(TREE, candidates, guard=searched(y_holdout, candidates))
    results = search.fit(X, y, X_holdout=X_holdout).cv_results_
    assert results["param_max_depth"].dtype == np.int64
    assert results["param_max_depth"].tolist() == [2, 3]
    assert results["param_criterion"].mask.tolist() == [True, False]
    assert results["param_criterion"].tolist() == [None, "entropy"]


def test_what_was_withheld_has_no_score_and_the_last_rank():
    candidates = {"max_features": [1], "random_state": range(40)}
    search = HoldoutSearchCV(TREE, candidates, guard=guard_of(y_holdout, epsilon=0.09))
    results = search.fit(X, y, X_holdout=X_holdout).cv_results_
    withheld = results["withheld"]
    assert 0 < withheld.sum() < 40
    for column in ("mean_test_score", "low_test_score", "high_test_score"):
        assert_array_equal(np.isnan(results[column]), withheld)
    assert (results["rank_test_score"][withheld] == 1 + (~withheld).sum()).all()
    assert results["rank_test_score"].dtype == np.int32
    assert results["rank_test_score"][search.best_index_] == 1


@pytest.mark.parametrize(
    "metric", ["roc_auc", LogLoss(clip=0.01), "balanced_accuracy", Cost([[0, 1], [5, 0]])], ids=str
)
def test_any_metric_of_a_declared_search_is_a_score(metric):
    guard = searched(y_holdout, DEPTHS, metric)
    search = fitted(TREE, DEPTHS, guard=guard)
    results = search.cv_results_
    sign = -1 if guard.holdout.metric == "mean_cost" else 1
    assert_array_equal(results["mean_test_score"], sign * results["answer"])
    assert search.best_index_ == results["mean_test_score"].argmax()
    assert search.best_score_ == sign * search.best_answer_.value
    assert (results["low_test_score"] <= results["mean_test_score"]).all()
    assert (results["mean_test_score"] <= results["high_test_score"]).all()
    if metric == "roc_auc":
        shares = search.best_estimator_.predict_proba(X_holdout)[:, 1]
        assert search.best_score_ == pytest.approx(roc_auc_score(y_holdout, shares), abs=1e-12)


def test_decisions_are_asked_for_where_there_are_no_probabilities():
    grid = {"linearsvc__C": [0.01, 1.0]}
    guard = searched(y_holdout, grid, "roc_auc")
    search = HoldoutSearchCV(
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)), grid, guard=guard
    ).fit(X, y, X_holdout=X_holdout)
    decisions = search.decision_function(X_holdout)
    assert search.best_score_ == pytest.approx(roc_auc_score(y_holdout, decisions), abs=1e-12)


def test_regressors_have_errors_as_scores():
    X, y = load_diabetes(return_X_y=True)
    X, X_holdout, y, y_holdout = train_test_split(X, y, test_size=200, random_state=0)
    tree = DecisionTreeRegressor(random_state=0)
    guard = searched(y_holdout, DEPTHS, AbsoluteError(y_range=(0.0, 400.0)))
    search = HoldoutSearchCV(tree, DEPTHS, guard=guard)
    assert is_regressor(search) and not is_classifier(search)
    search.fit(X, y, X_holdout=X_holdout)
    error = mean_absolute_error(y_holdout, search.predict(X_holdout))
    assert search.best_score_ == pytest.approx(-error, abs=1e-12) and error > 0
    assert search.score(X_holdout, y_holdout) == search.best_estimator_.score(X_holdout, y_holdout)
    assert not hasattr(search, "predict_proba")


@pytest.mark.parametrize(("verbose", "told"), [(0, ""), (1, "6 of 6 answers, 0 s")])
def test_verbose_says_how_far_it_has_come(capsys, monkeypatch, verbose, told):
    from radabound_fast.files import progress as _progress

    monkeypatch.setattr(_progress, "SECONDS", 0.0)
    fitted(TREE, DEPTHS, guard=guard_of(y_holdout), verbose=verbose)
    assert capsys.readouterr().err.strip().splitlines()[-1:] == ([told] if told else [])


class Tosses(DecisionTreeClassifier):
    """A tree that is another in each fit; it counts its fits."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).n_fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("metric", ["error", "roc_auc"])
def test_the_best_estimator_is_the_judged_one(metric, n_jobs):
    grid = {"max_features": [1, 2, 3], "max_depth": [2, 4]}
    guard = searched(y_holdout, grid, metric)
    Tosses.n_fits = 0
    search = HoldoutSearchCV(Tosses(splitter="random"), grid, guard=guard, n_jobs=n_jobs)
    with parallel_config(backend="threading"):
        search.fit(X, y, X_holdout=X_holdout)
    assert Tosses.n_fits == 6  # nothing is fitted again
    if metric == "error":
        judged = np.mean(search.predict(X_holdout) != y_holdout)
    else:
        judged = roc_auc_score(y_holdout, search.predict_proba(X_holdout)[:, 1])
    assert judged == pytest.approx(search.best_answer_.value, abs=1e-12)
    assert search.best_params_.items() <= search.best_estimator_.get_params().items()


@pytest.mark.parametrize("refit", [True, False])
def test_workers_send_models_only_where_one_is_kept(refit, monkeypatch):
    sent, kind = [], module.Worker

    def worker(*given):
        work = kind(*given)
        return lambda params: sent.append(work(params)) or sent[-1]

    monkeypatch.setattr(module, "Worker", worker)
    search = fitted(TREE, DEPTHS, guard=searched(y_holdout, DEPTHS), refit=refit)
    assert [one.model is not None for one in sent] == 6 * [refit]
    assert hasattr(search, "best_estimator_") == refit and search.best_params_ in DEPTHS_KEYS
    if not refit:
        with pytest.raises(NotFittedError):
            search.predict(X_holdout)


@pytest.mark.parametrize("guess", [False, True])
def test_fit_takes_what_the_estimator_s_fit_takes(guess):
    weight = np.random.default_rng(0).exponential(size=len(y))
    if guess:
        guard = GuessAndCheck(y_holdout, epsilon=0.4, delta=0.1)
    else:
        guard = searched(y_holdout, DEPTHS)
    search = HoldoutSearchCV(TREE, DEPTHS, guard=guard, cv=3)
    search.fit(X, y, X_holdout=X_holdout, sample_weight=weight)
    for params, answer in zip(DEPTHS_KEYS, search.cv_results_["answer"], strict=True):
        tree = clone(TREE).set_params(**params)
        expected = np.mean(tree.fit(X, y, sample_weight=weight).predict(X_holdout) != y_holdout)
        if guess:
            given = {"params": {"sample_weight": weight}}
            expected = 1 - cross_val_score(clone(tree), X, y, cv=3, **given).mean()
        assert answer == pytest.approx(expected, abs=1e-12)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_wait'"):
        search.fit(X, y, X_holdout=X_holdout, sample_wait=weight)


# ---- what it refuses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"guard": None}, TypeError, "guard must be a guard made on labels.*got NoneType"),
        ({"guard": RadaBound(300, epsilon=0.1, delta=0.1)}, TypeError, "got a RadaBound of losses"),
        ({"candidates": []}, ValueError, "candidates must be a grid or yield parameters"),
        ({"candidates": [1, 2]}, TypeError, "candidates must be a grid or several.*is not a dict"),
        ({"candidates": [{"max_depth": 1}]}, TypeError, r"a list of candidates spaces.Choice\("),
        ({"candidates": range(3)}, ValueError, "candidates must be a grid or yield parameters"),
        ({"candidates": {"max_dept": [1]}}, ValueError, "max_dept"),
        ({"refit": "accuracy"}, TypeError, "refit must be True or False, got 'accuracy'"),
    ],
)
def test_bad_arguments_cost_nothing(change, error, message):
    guard = guard_of(y_holdout)
    search = HoldoutSearchCV(TREE, DEPTHS, guard=guard).set_params(**change)
    with pytest.raises(error, match=message):
        search.fit(X, y, X_holdout=X_holdout)
    assert guard.n_answered == 0


def test_another_length_costs_nothing():
    guard = guard_of(y_holdout)
    with pytest.raises(ValueError, match="X_holdout must have the guard's 300 samples, got 299"):
        HoldoutSearchCV(TREE, DEPTHS, guard=guard).fit(X, y, X_holdout=X_holdout[1:])
    assert guard.n_answered == 0


def test_a_search_is_not_pickled_its_best_estimator_is():
    search = fitted(TREE, DEPTHS, guard=guard_of(y_holdout))
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(search)
    assert_array_equal(
        pickle.loads(pickle.dumps(search.best_estimator_)).predict(X_holdout),
        search.predict(X_holdout),
    )


def test_a_guard_is_no_scorer():
    with pytest.raises(ValueError, match="'scoring' parameter of GridSearchCV"):
        GridSearchCV(TREE, DEPTHS, scoring=guard_of(y_holdout)).fit(X, y)


# ---- scikit-learn's own checks -------------------------------------------------------------


class AnswersAll(RadaBound):
    """A guard for data of any length, so that scikit-learn may bring its own."""

    holdout = None

    def __init__(self):
        super().__init__([0, 1] * 50, epsilon=0.9, delta=0.5, seed=0)

    def query(self, y_pred):
        return super().query([0, 1] * 50)


class OnItsOwnData(HoldoutSearchCV):
    """scikit-learn's checks know no X_holdout."""

    def fit(self, X, y):
        self.guard.holdout = Holdout(np.arange(_num_samples(X)) % 2)
        return super().fit(X, y, X_holdout=X)


ONE_OWNER = "copies or pickles the parameters, and a guard has one owner"


CHECKS = parametrize_with_checks(
    [OnItsOwnData(GaussianNB(), {"var_smoothing": [1e-8, 1e-9]}, guard=AnswersAll())],
    expected_failed_checks=lambda search: {
        "check_estimators_pickle": ONE_OWNER,
        "check_estimators_overwrite_params": ONE_OWNER,
        "check_set_params": ONE_OWNER,
    },
)


# a list, since older versions of scikit-learn hand pytest an iterator, which newer ones refuse
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learn_finds_a_proper_classifier(estimator, check):
    assert is_classifier(estimator)
    check(estimator)
