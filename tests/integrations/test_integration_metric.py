"""HoldoutMetric: whose rows they are, what is counted, what a halt becomes, in every process."""

import copy
import pickle
import threading
from importlib.util import find_spec

import numpy as np
import pytest
from support import at_once

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
)
from radabound_fast.integrations.metric import HoldoutMetric
from radabound_fast.metrics import choice_of
from radabound_fast.spaces import Choice, Grid, Improvements, epoch_of

M = 1000


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def y(rng):
    return rng.integers(0, 2, M)


def spoilt(y, share, rng):
    return np.where(rng.random(len(y)) < share, 1 - y, y)


def holdout_of(y, metric="error", sample_weight=None, groups=None, **options):
    choice = choice_of(metric, options)
    return Holdout(y, metric=choice, sample_weight=sample_weight, groups=groups)


def searched(y, space=100, **options):
    return DeclaredSearch(holdout_of(y, **options), space, delta=0.1)


# ---- whose rows ----------------------------------------------------------------------------


def test_the_holdout_s_own_labels_are_asked_about_and_counted(y, rng):
    search = searched(y, metric="accuracy")
    metric = HoldoutMetric(search)
    predictions = spoilt(y, 0.2, rng)
    assert metric(y, predictions, key=3) == np.mean(predictions == y)
    assert metric(y.astype(np.float32), predictions, key=3) == np.mean(predictions == y)
    assert metric(y.tolist(), predictions.tolist(), key=4) == np.mean(predictions == y)
    assert search.n_answered == 2


def others(y):
    one = y.copy()
    one[17] = 1 - one[17]
    return {
        "shorter": y[:-1],
        "longer": np.append(y, 0),
        "one differs": one,
        "another order": np.roll(y, 1),
        "strings": y.astype(str),
        "another class": np.where(np.arange(len(y)) == 5, 2, y),
        "two columns": np.column_stack([y, y]),
    }


@pytest.mark.parametrize("rows", list(others(np.zeros(2 * 17, int))))
def test_other_rows_are_refused_and_cost_nothing(y, rows):
    for guard in (searched(y), RadaBound(y, epsilon=0.3, delta=0.1)):
        metric = HoldoutMetric(guard)
        with pytest.raises(ValueError, match="y_true must be the holdout's labels, sample by samp"):
            metric(others(y)[rows], y, key=None)
        assert guard.n_answered == 0


def test_a_tool_may_pass_no_weights_and_is_refused_others(y, rng):
    search = searched(y, {"depth": [1, 2]})
    metric, X = HoldoutMetric(search, other_rows="plain"), rng.random((M, 2))
    one = Fitted(depth=2)
    for rows in (y, y[:-1]):
        for ask in (
            lambda rows=rows, **more: metric(rows, rows, key={"depth": 1}, **more),
            lambda rows=rows, **more: metric.scorer()(one, X[: len(rows)], rows, **more),
        ):
            with pytest.raises(TypeError, match="sample_weight must be left out: rows count as"):
                ask(sample_weight=np.ones(len(rows)))
            if rows is y:
                assert search.n_answered < 2
                assert ask(sample_weight=None) == ask()
    assert search.n_answered == 2


def test_rows_of_another_kind_of_label_are_named(y):
    metric = HoldoutMetric(searched(y), other_rows="plain")
    with pytest.raises(TypeError, match="y_true and classes must be of one kind, got strings and"):
        metric(["a", "b"], ["a", "b"])


@pytest.mark.parametrize("n_rows", [M, M - 1, 7])  # of equal length too
def test_training_rows_are_answered_by_the_plain_metric_if_so_declared(y, rng, n_rows):
    train = rng.integers(0, 2, n_rows)
    predictions = spoilt(train, 0.3, rng)
    for guard in (searched(y), RadaBound(y, epsilon=0.3, delta=0.1)):
        metric = HoldoutMetric(guard, other_rows="plain")
        assert metric(train, predictions) == np.mean(predictions != train)
        assert guard.n_answered == 0


@pytest.mark.skipif(not find_spec("sklearn"), reason="scikit-learn is not installed")
def test_the_plain_metric_has_the_holdout_s_options(rng):
    from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score

    names = np.array(["no", "yes"])
    y, train = names[rng.integers(0, 2, M)], names[rng.integers(0, 2, 300)]
    scores, shares = rng.normal(size=300), rng.uniform(0.1, 0.9, 300)
    auc = HoldoutMetric(searched(y, metric="roc_auc", pos_label="no"), other_rows="plain")
    assert auc(train, scores) == pytest.approx(roc_auc_score(train == "no", scores), abs=1e-12)
    loss = HoldoutMetric(
        searched(y, metric="neg_log_loss", clip=0.01, pos_label="yes"), other_rows="plain"
    )
    assert loss(train, shares) == pytest.approx(-log_loss(train == "yes", shares), abs=1e-12)
    numbers = rng.uniform(0, 10, M)
    error = HoldoutMetric(
        searched(numbers, metric="neg_mean_absolute_error", y_range=(0, 10)), other_rows="plain"
    )
    other, guess = rng.uniform(0, 10, 50), rng.uniform(0, 10, 50)
    assert error(other, guess) == pytest.approx(-mean_absolute_error(other, guess), abs=1e-12)
    assert error(numbers, numbers, key=0) == 0.0


# ---- keys ----------------------------------------------------------------------------------


def test_a_declared_space_needs_the_key_and_says_what_else_would_do(y):
    search = searched(y)
    with pytest.raises(TypeError, match=r"key must say which model.*scorer\(\).*Improvements"):
        HoldoutMetric(search)(y, y)
    assert search.n_answered == 0


def test_guesses_go_to_the_guard_that_needs_them(y, rng):
    check = GuessAndCheck(y, epsilon=0.2, delta=0.1)
    metric = HoldoutMetric(check)
    assert metric(y, spoilt(y, 0.2, rng), guess=0.25) == 0.25
    with pytest.raises(TypeError, match="guess must be given with a GuessAndCheck"):
        metric(y, y)
    with pytest.raises(TypeError, match="guard must need no guesses in a scorer"):
        metric.scorer()
    assert check.n_answered == 1


def test_what_a_guard_does_not_need_must_be_left_out(y):
    guards = (RadaBound(y, epsilon=0.3, delta=0.1), searched(y), searched(y, Improvements(11)))
    named = {"RadaBound": "a RadaBound", "DeclaredSearch": "a DeclaredSearch"}
    for guard, more in zip(
        guards, ({"key": 3}, {"key": 1, "guess": 0.2}, {"key": (0, ())}), strict=True
    ):
        over = "spaces.Improvements" if more == {"key": (0, ())} else named[guard.kind]
        with pytest.raises(TypeError, match=f"(key|guess) must be left out with {over}, got"):
            HoldoutMetric(guard)(y, y, **more)
        assert guard.n_answered == 0


# ---- a halt --------------------------------------------------------------------------------


def spent(y, rng):
    guard = RadaBound(y, epsilon=0.12, delta=0.1, bound="mclt", seed=0)
    while not guard.halted:
        try:
            guard.query(rng.integers(0, 2, M))
        except HoldoutExhausted:
            break
    return guard


@pytest.mark.parametrize(
    ("withheld", "outcome"),
    [("raise", HoldoutExhausted), ("stop", KeyboardInterrupt), ("worst", 1.0)],
)
def test_a_withheld_answer_becomes_what_was_declared(y, rng, withheld, outcome):
    guard = RadaBound(y, epsilon=0.12, delta=0.1, bound="mclt", seed=0)
    metric = HoldoutMetric(guard, other_rows="plain", withheld=withheld)
    while not guard.halted:
        predictions, before = rng.integers(0, 2, M), guard.n_answered
        try:
            told = metric(y, predictions)
        except (HoldoutExhausted, KeyboardInterrupt) as error:
            told = type(error)
            assert "spent after" in str(error)
    assert before == guard.n_answered > 0
    assert told == outcome
    # the rows of others are still scored
    assert metric([0, 1], [1, 1]) == 0.5


@pytest.mark.parametrize(
    ("options", "worst"),
    [
        ({"metric": "roc_auc"}, 0.0),
        ({"metric": "accuracy"}, 0.0),
        ({"metric": "error"}, 1.0),
        ({"metric": "neg_brier_score"}, -1.0),
        ({"metric": "neg_mean_squared_error", "y_range": (0, 3)}, -9.0),
        ({"metric": "mean_cost", "costs": [[0, 1], [5, -2]]}, 5.0),
        ({}, 1.0),
    ],
)
def test_the_worst_value_is_that_of_the_metric(y, options, worst):
    # 1.0 for all would make a withheld model the best of those that are better the greater
    guard = FixedSequence(holdout_of(y, **options), epsilon=1e-6, delta=0.1, n_vectors=0)
    metric = HoldoutMetric(guard, withheld="worst")
    told = metric(y, np.full(M, 1.0) if options.get("metric") == "roc_auc" else np.ones(M, int))
    assert guard.halted and told == worst


def test_a_spent_guard_is_refused_at_once(y, rng):
    with pytest.raises(HoldoutExhausted, match="guard had halted before"):
        HoldoutMetric(spent(y, rng))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"guard": None}, TypeError, "guard must be a guard made on labels, .*got NoneType"),
        ({"guard": Holdout([0, 1])}, TypeError, "guard must be a guard .*got Holdout"),
        ({"guard": RadaBound}, TypeError, "guard must be a guard made on labels, .*got "),
        ({"guard": RadaBound(M, epsilon=0.1, delta=0.1)}, TypeError, "got a RadaBound of losses"),
        ({"guard": DeclaredSearch(M, 5, delta=0.1)}, TypeError, "got a DeclaredSearch of losses"),
        ({"other_rows": "count"}, ValueError, "other_rows must be .*, got 'count'"),
        ({"withheld": "nan"}, ValueError, "withheld must be .*, got 'nan'"),
    ],
)
def test_bad_arguments_are_named(y, change, error, message):
    with pytest.raises(error, match=message):
        HoldoutMetric(**({"guard": searched(y)} | change))


# ---- processes -----------------------------------------------------------------------------


def test_a_copy_in_this_process_asks_the_same_guard(y):
    metric = HoldoutMetric(RadaBound(y, epsilon=0.3, delta=0.1))
    assert copy.copy(metric) is metric and copy.deepcopy([metric])[0] is metric
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(metric)


def test_over_a_declared_search_a_pickled_metric_answers_alike(y, rng):
    metric = HoldoutMetric(searched(y, metric="accuracy"), other_rows="plain")
    there = pickle.loads(pickle.dumps(metric))
    predictions = spoilt(y, 0.2, rng)
    assert there(y, predictions, key=5) == metric(y, predictions, key=5)
    assert there.other_rows == "plain" and "array" not in repr(there)


OPENED = [
    (RadaBound, {"epsilon": 0.3, "bound": "mclt"}),
    (FixedSequence, {"epsilon": 0.3}),
    (GuessAndCheck, {"epsilon": 0.3}),
    (Ladder, {"step": 0.05}),
]


@pytest.mark.parametrize(("kind", "parameters"), OPENED)
def test_over_an_opened_guard_pickled_metrics_are_one_guard(y, rng, kind, parameters, tmp_path):
    path = tmp_path / "guard.db"
    with kind.open(path, y, delta=0.1, durability="process", **parameters) as guard:
        metric = HoldoutMetric(guard, withheld="worst")
        there = pickle.loads(pickle.dumps(metric))
        assert there.guard is not guard and there.guard.kind == guard.kind
        assert there.withheld == "worst" and there.guard.database.durability == "process"
        guess = {"guess": 0.2} if kind is GuessAndCheck else {}
        for asked in (metric, there, metric, there):
            asked(y, spoilt(y, 0.2, rng), **guess)
        assert guard.n_answered == there.guard.n_answered == 4
        there.guard.close()


@pytest.mark.parametrize("weighted", ["sample_weight", "groups"])
@pytest.mark.parametrize(
    ("metric", "parameters"),
    [
        ("accuracy", {}),
        ("error", {"max_queries": 10, "n_vectors": 0}),
        ("error", {"max_queries": 10}),
    ],
)
def test_a_pickled_metric_brings_the_weights_that_its_guard_has(
    y, rng, metric, parameters, weighted, tmp_path
):
    holdout = holdout_of(y, metric, **{weighted: np.arange(M) // 3 + 1})
    made = parameters | {"epsilon": 0.9, "delta": 0.1}
    with FixedSequence.open(tmp_path / "guard.db", holdout, **made) as guard:
        metric, predictions = HoldoutMetric(guard), spoilt(y, 0.2, rng)
        there = pickle.loads(pickle.dumps(metric))
        assert there(y, predictions) == metric(y, predictions)
        assert guard.n_answered == there.guard.n_answered == 2
        again = pickle.loads(pickle.dumps(there))  # from one worker to another
        assert again(y, predictions) == metric(y, predictions)
        for one in (there, again):
            one.guard.close()


def ask_in_a_worker(metric, y, seed):
    return metric(y, spoilt(y, 0.2, np.random.default_rng(seed)))


@pytest.mark.skipif(not find_spec("joblib"), reason="joblib is not installed")
@pytest.mark.parametrize("space", [None, 21])
def test_workers_share_one_count(y, space, tmp_path):
    from joblib import Parallel, delayed

    kind, given = FixedSequence, {"epsilon": 0.3, "max_queries": 20}
    if space is not None:
        kind, given = DeclaredSearch, {"space": Improvements(space)}
    with kind.open(tmp_path / "guard.db", y, delta=0.1, **given) as guard:
        metric = HoldoutMetric(guard)
        told = Parallel(n_jobs=2)(delayed(ask_in_a_worker)(metric, y, seed) for seed in range(8))
        assert guard.n_answered == 8
        if space is None:
            means = [np.mean(spoilt(y, 0.2, np.random.default_rng(s)) != y) for s in range(8)]
            assert sorted(told) == sorted(means)
        else:
            answers = guard.answers
            assert [n for n, _ in answers.keys] == list(range(8))
            best_so_far = np.minimum.accumulate(answers.values)
            assert sorted(told) == pytest.approx(sorted(np.round(best_so_far * 20) / 20))


# ---- a search that is shown the best so far ------------------------------------------------


def test_only_improvements_are_shown_and_every_model_has_its_own_interval(y):
    search = searched(y, Improvements(101), metric="accuracy")
    metric = HoldoutMetric(search)
    told = []
    for n_wrong in (304, 412, 301, 206, 209, 153):
        predictions = y.copy()
        predictions[:n_wrong] ^= 1
        told.append(metric(y, predictions))
    assert told == pytest.approx([0.70, 0.70, 0.70, 0.79, 0.79, 0.85])
    answers = search.answers
    assert answers.values == pytest.approx([0.696, 0.588, 0.699, 0.794, 0.791, 0.847])
    assert answers.keys[0] == (0, ()) and answers.keys[3] == (3, ((1, 30),))
    assert answers.keys[5] == (5, ((1, 30), (4, 21)))
    assert (np.diff(answers.nats) > 0).all()
    assert search.report().best.value == pytest.approx(0.847)
    assert str(search.report()).startswith("The best of 6 models is number 6: accuracy 0.8470")
    assert "what it was shown, the best score so far on 101 levels" in str(search.report())
    assert "sees of the holdout the best score so far on 101 levels, and nothing else" in (
        search.guarantee
    )
    with pytest.raises(TypeError, match="key must be left out with spaces.Improvements"):
        metric(y, y, key=(6, ((1, 30), (4, 21), (6, 15))))
    with pytest.raises(TypeError, match="what its search was shown has one owner"):
        pickle.dumps(metric)


@pytest.mark.parametrize("n_levels", [1, 2, 101, 2**53])
def test_a_mean_that_is_beyond_its_range_by_rounding_has_a_level(n_levels):
    own = {"metric": "neg_mean_absolute_error", "y_range": (0, 1.1), "sample_weight": [0.9, 1.0]}
    search = searched(np.zeros(2), Improvements(n_levels), **own)
    metric = HoldoutMetric(search)
    for y_pred in (1.1, 0.0, 1.1):
        assert -1.1 <= metric(np.zeros(2), np.full(2, y_pred)) <= 0.0
    assert search.n_answered == 3
    levels = [level for _, level in search.answers.keys[-1][1]]
    assert levels == [n_levels - 1, 0][: min(2, n_levels)]


def test_a_second_metric_goes_on_where_the_first_was(y, rng):
    search = searched(y, Improvements(101))
    first = HoldoutMetric(search)
    for share in (0.3, 0.2):
        first(y, spoilt(y, share, rng))
    second = HoldoutMetric(search)
    second(y, spoilt(y, 0.1, rng))
    first(y, spoilt(y, 0.4, rng))
    assert [n for n, _ in search.answers.keys] == [0, 1, 2, 3]
    assert len(search.answers.keys[3][1]) == 3


def test_threads_have_one_transcript(y):
    search = searched(y, Improvements(51))
    metric = HoldoutMetric(search)

    def ask(seed):
        for step in range(10):
            ask_in_a_worker(metric, y, 100 * seed + step)

    at_once(ask, range(4))
    assert [n for n, _ in search.answers.keys] == list(range(40))


@pytest.mark.parametrize("kind", ["FixedSequence", "GuessAndCheck", "DeclaredSearch"])
def test_two_threads_on_one_metric_get_each_their_own_answer(y, kind):
    guard = {
        "FixedSequence": lambda: FixedSequence(y, epsilon=0.4, delta=0.1, max_queries=80),
        "GuessAndCheck": lambda: GuessAndCheck(y, epsilon=0.3, delta=0.1),
        "DeclaredSearch": lambda: DeclaredSearch(y, 80, delta=0.1),
    }[kind]()
    metric, together, told = HoldoutMetric(guard), threading.Barrier(2), [{}, {}]

    def ask(thread):
        together.wait(timeout=30)
        for step in range(40):
            y_pred = y ^ (np.arange(M) < 10 * (40 * thread + step) % 700)
            error = np.mean(y_pred != y)
            brought = {"guess": error} if kind == "GuessAndCheck" else {}
            brought |= {"key": 40 * thread + step} if kind == "DeclaredSearch" else {}
            told[thread][step] = metric(y, y_pred, **brought), error

    at_once(ask, range(2))
    assert guard.n_answered == 80
    for one in told:
        assert len(one) == 40 and all(value == error for value, error in one.values())


def test_bad_predictions_leave_the_transcript_as_it_was(y):
    metric = HoldoutMetric(searched(y, Improvements(51)))
    with pytest.raises(ValueError, match="y_pred"):
        metric(y, np.full(M, 7))
    assert metric(y, y) == 0.0 and metric.guard.n_answered == 1


def test_a_search_that_was_queried_otherwise_is_refused(y, rng):
    search = searched(y, Improvements(51))
    search.query(y, key=(3, ((1, 30),)))
    with pytest.raises(ValueError, match="guard must be queried by its metric alone"):
        HoldoutMetric(search)(y, spoilt(y, 0.2, rng))


@pytest.mark.parametrize("name", ["error", "roc_auc"])
@pytest.mark.thorough
def test_the_intervals_hold_for_an_analyst_who_climbs_by_what_he_is_shown(name):
    """Labels are coins, so that every truth is 1/2; a classifier is flipped in one of 50 cells at a
    time, and what helps is kept.

    200 runs at delta = .1: a correct program has more than 34 failures with probability < .001
    (binomial).  Seed 0.
    """
    rng, m, failed, found = np.random.default_rng(0), 400, 0, 0.0
    for _ in range(200):
        y = rng.integers(0, 2, m)
        search = searched(y, Improvements(201), metric=name)
        metric = HoldoutMetric(search)
        now = rng.integers(0, 2, m)
        best = metric(y, now)
        for cell in range(50):
            trial = now.copy()
            trial[8 * cell : 8 * cell + 8] ^= 1
            told = metric(y, trial)
            if told > best if metric.greater_is_better else told < best:
                now, best = trial, told
        answers = search.answers
        failed += bool(((answers.lows > 0.5) | (answers.highs < 0.5)).any())
        found += abs(best - 0.5) / 200
    assert found > 0.06  # where one of 51 fixed models would look .05 better than it is
    assert failed <= 34


# ---- scikit-learn's scorers ----------------------------------------------------------------


class Fitted:
    """An estimator with some parameters that predicts by a column of X."""

    def __init__(self, classes=(0, 1), with_decisions=False, **params):
        self.params, self.classes_ = params, np.array(classes)
        if with_decisions:
            self.decision_function = lambda X: X[:, 1] - X[:, 0]

    def get_params(self):
        return self.params | {"verbose": 3}

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]

    def predict_proba(self, X):
        return X


def test_a_scorer_reads_the_key_from_the_estimator(y, rng):
    search = searched(y, {"depth": [1, 2], "leaf": range(5)})
    score = HoldoutMetric(search).scorer()
    X = np.column_stack([rng.random(M), rng.random(M)])
    one = Fitted(depth=2, leaf=4)
    assert score(one, X, y) == pytest.approx(np.mean(one.predict(X) == y))  # as scores are
    assert search.answers.keys == [{"depth": 2, "leaf": 4}]
    with pytest.raises(ValueError, match="leaf must be"):
        score(Fitted(depth=2, leaf=5), X, y)
    with pytest.raises(ValueError, match="key must have the names"):
        score(Fitted(depth=2), X, y)


def test_names_in_another_order_are_the_same_key(y, rng):
    search = searched(y, {"depth": [1, 2], "leaf": range(5)})
    X = np.column_stack([rng.random(M), rng.random(M)])
    metric = HoldoutMetric(search)
    values = {
        metric.scorer()(Fitted(depth=2, leaf=4), X, y),
        metric.scorer()(Fitted(leaf=4, depth=2), X, y),
        1 - metric(y, Fitted().predict(X), key={"leaf": 4, "depth": 2}),
    }
    assert search.n_answered == 1 and len(values) == 1


def test_a_scorer_knows_which_of_several_grids_a_key_is_of(y, rng):
    grids = [{"depth": [1], "leaf": range(5)}, {"leaf": range(5, 9)}]
    for space in (Grid(grids), Choice([key for grid in grids for key in Grid(grid)])):
        search = searched(y, space)
        score = HoldoutMetric(search).scorer()
        X = rng.random((M, 2))
        score(Fitted(depth=1, leaf=4), X, y)
        score(Fitted(depth=7, leaf=8), X, y)
        assert search.answers.keys == [{"depth": 1, "leaf": 4}, {"leaf": 8}]


def test_a_scorer_takes_a_function_where_the_space_has_no_names(y, rng):
    space = {"depth": [1, 2]} * epoch_of(10)
    metric = HoldoutMetric(searched(y, space))
    with pytest.raises(TypeError, match="key must be a function of the estimator"):
        metric.scorer()
    score = metric.scorer(key=lambda estimator: ({"depth": estimator.params["depth"]}, 4))
    score(Fitted(depth=1), rng.random((M, 2)), y)
    assert metric.guard.answers.keys == [({"depth": 1}, 4)]
    with pytest.raises(TypeError, match="key must be left out"):
        HoldoutMetric(RadaBound(y, epsilon=0.3, delta=0.1)).scorer(key=len)


@pytest.mark.parametrize("with_decisions", [False, True])
@pytest.mark.parametrize("pos_label", ["a", "b"])
@pytest.mark.parametrize("classes", [["a", "b"], ["b", "a"]])
def test_scores_are_of_the_positive_class_whatever_the_order(
    rng, with_decisions, pos_label, classes
):
    y = np.array(["a", "b"])[rng.integers(0, 2, M)]
    shares = rng.random(M)
    X = np.column_stack([1 - shares, shares])
    here = Fitted(classes, with_decisions, depth=1)
    score = HoldoutMetric(searched(y, {"depth": [1]}, metric="roc_auc", pos_label=pos_label))
    expected = searched(y, metric="roc_auc", pos_label=pos_label)
    answer = expected.query(shares if classes[1] == pos_label else -shares, key=0)
    assert score.scorer()(here, X, y) == pytest.approx(answer.value, abs=1e-12)


def test_probabilities_come_in_the_order_of_the_classes_or_not_at_all(rng):
    y = rng.integers(0, 3, M)
    X = rng.dirichlet([1, 1, 1], M)
    search = searched(y, {"depth": [1]}, metric="neg_brier_score")
    score = HoldoutMetric(search).scorer()
    expected = searched(y, metric="neg_brier_score").query(X[:, [1, 2, 0]], key=0).value
    assert score(Fitted([2, 0, 1], depth=1), X, y) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="estimator must have the classes"):
        score(Fitted([2, 0, 4], depth=1), X, y)


class OfAnyKind:
    """A fitted estimator that has what it is given."""

    def __init__(self, **has):
        self.__dict__.update(has)

    def get_params(self):
        return {"depth": 1}


def answered(y, metric, estimator, **options):
    search = searched(y, {"depth": [1]}, metric=metric, **options)
    HoldoutMetric(search).scorer()(estimator, None, y)
    return search.answers[0].value


@pytest.mark.skipif(not find_spec("pandas"), reason="pandas is not installed")
@pytest.mark.parametrize("names", [["a", "b", "c"], ["c", "a", "b"], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("metric", ["neg_brier_score", "roc_auc"])
def test_probabilities_may_be_a_frame(rng, names, metric):
    """By name where its columns are the classes, else in the order of `classes_`."""
    import pandas

    classes = ["a", "b", "c"] if metric == "neg_brier_score" else ["a", "b"]
    y = np.array(classes)[rng.integers(0, len(classes), M)]
    shares = rng.dirichlet(np.ones(len(classes)), M)
    names = [name for name in names if name in classes] or list(range(len(classes)))
    order = [classes.index(name) for name in names] if names[0] in classes else slice(None)
    frame = pandas.DataFrame(shares[:, order], columns=names, index=range(7, M + 7))
    known = np.array(classes)
    plain = OfAnyKind(classes_=known, predict_proba=lambda X: shares)
    framed = OfAnyKind(classes_=known, predict_proba=lambda X: frame)
    options = {"pos_label": "b"} if metric == "roc_auc" else {}
    assert answered(y, metric, framed, **options) == answered(y, metric, plain, **options)


def test_predictions_may_be_a_column(y, rng):
    y_pred = spoilt(y, 0.2, rng)
    for metric, column in (("error", y_pred[:, None]), ("roc_auc", rng.random((M, 1)))):
        of = {"error": "predict", "roc_auc": "decision_function"}[metric]
        flat, as_column = (
            OfAnyKind(classes_=np.array([0, 1]), **{of: lambda X, told=told: told})
            for told in (column[:, 0], column)
        )
        assert answered(y, metric, flat) == answered(y, metric, as_column)
    targets = rng.random(M)
    numbers = OfAnyKind(predict=lambda X: targets[:, None])
    assert answered(targets, "neg_mean_squared_error", numbers, y_range=(0, 1)) == 0.0


@pytest.mark.parametrize(
    ("metric", "has", "message"),
    [
        ("error", {}, "estimator must have predict for a metric of classes, got OfAnyKind"),
        ("roc_auc", {}, "must have classes_ for a metric of scores"),
        ("roc_auc", {"classes_": [0, 1]}, "must have predict_proba for a metric of scores"),
        ("neg_brier_score", {"predict": len}, "must have classes_ for a metric of probabilities"),
        ("neg_brier_score", {"classes_": [0, 1]}, "must have predict_proba for a metric of pro"),
    ],
)
def test_an_estimator_that_lacks_something_is_told_what(y, metric, has, message):
    with pytest.raises(TypeError, match=message):
        answered(y, metric, OfAnyKind(**has))


@pytest.mark.parametrize("shape", [(M,), (M, 1), (M, 3)])
def test_probabilities_of_another_shape_are_an_error(y, shape):
    shares = np.full(shape, 0.5)
    with pytest.raises(ValueError, match="predict_proba must return a column for each of 2 clas"):
        estimator = OfAnyKind(classes_=[0, 1], predict_proba=lambda X: shares)
        answered(y, "neg_brier_score", estimator)


def test_a_search_by_folds_shows_no_best_so_far(y):
    search = DeclaredSearch(y, Improvements(11), delta=0.1, n_folds=5)
    with pytest.raises(ValueError, match="guard must be a search without n_folds"):
        HoldoutMetric(search)


# ---- a search that is confirmed at the end ---------------------------------------------------


@pytest.mark.parametrize(
    "duplicate", [lambda m: m, copy.copy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_confirmed_search_scores_its_search_rows_in_any_process(y, rng, duplicate):
    search = ConfirmedSearch(holdout_of(y, "accuracy"), delta=0.1, seed=1)
    metric = duplicate(HoldoutMetric(search, other_rows="plain"))
    predictions, rows = spoilt(y, 0.2, rng), search.search_rows
    right = np.mean((predictions == y)[rows])
    assert metric(y, predictions) == metric(y[rows], predictions[rows]) == right
    assert metric(y[:7], y[:7]) == 1.0 and metric.needs is None and metric.greater_is_better
    with pytest.raises(TypeError, match="key must be left out"):
        metric(y, predictions, key=3)
    search.confirm(predictions)
    assert metric(y, predictions) == right  # scores go on for ever


def test_a_scorer_of_a_confirmed_search_asks_any_estimator(y, rng):
    class Fixed:
        def predict(self, X):
            return X[:, 0]

    predictions = spoilt(y, 0.2, rng)
    search = ConfirmedSearch(y, delta=0.1, seed=1)
    score = HoldoutMetric(search).scorer()(Fixed(), predictions[:, np.newaxis], y)
    assert score == 1 - search.score(predictions)
    losses = ConfirmedSearch(M, delta=0.1)
    with pytest.raises(TypeError, match="labels in this process"):
        HoldoutMetric(losses)
