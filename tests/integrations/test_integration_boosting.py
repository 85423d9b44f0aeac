"""LightGBM and XGBoost: rounds in order, each asked once, and training ends at the halt."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

if not find_spec("sklearn"):
    pytest.skip("scikit-learn is not installed", allow_module_level=True)

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from radabound_fast import DeclaredSearch, GuessAndCheck, Holdout, HoldoutExhausted, RadaBound
from radabound_fast.integrations._rounds import Rounds
from radabound_fast.metrics import AbsoluteError, LogLoss, RocAuc, choice_of
from radabound_fast.spaces import Grid, epoch_of

DATA = {"two classes": load_breast_cancer, "ten classes": load_digits}
N_ROUNDS = 12
N_HOLDOUT = 300


class Lightgbm:
    """Both tools in the same few words."""

    name = "lightgbm"

    def __init__(self, n_classes, **parameters):
        objective = {"objective": "multiclass", "num_class": n_classes}
        self.parameters = {"objective": "binary"} if n_classes == 2 else objective
        self.parameters |= {"num_leaves": 4, "verbosity": -1, "num_threads": 1, "seed": 0}
        self.parameters |= parameters

    def hook(self, guard, X_holdout, **options):
        from radabound_fast.integrations.lightgbm import guarded_rounds

        return guarded_rounds(guard, X_holdout, **options)

    def fit(self, X, y, hooks=(), *, onto=None, n_rounds=N_ROUNDS, group=None, **options):
        import lightgbm

        data = lightgbm.Dataset(X, y, group=group)
        return lightgbm.train(
            self.parameters, data, n_rounds, callbacks=list(hooks), init_model=onto, **options
        )

    def cross_validate(self, X, y, hooks):
        import lightgbm

        return lightgbm.cv(self.parameters, lightgbm.Dataset(X, y), 4, callbacks=hooks)

    def with_own_objective(self, gradients):
        def objective(scores, data):
            return gradients(scores, data.get_label())

        self.parameters["objective"] = objective
        return {}

    def scores(self, booster, X, n_rounds):
        return booster.predict(X, num_iteration=n_rounds)

    def n_rounds(self, booster):
        return booster.current_iteration()

    def best(self, booster):
        """How many rounds are best."""
        return booster.best_iteration

    def stopping(self, X, y, after=2):
        """Options of early stopping by X and y, and its hook."""
        import lightgbm

        return {"valid_sets": [lightgbm.Dataset(X, y)]}, lightgbm.early_stopping(
            after, verbose=False
        )


class Xgboost:
    name = "xgboost"

    def __init__(self, n_classes, **parameters):
        objective = {"objective": "multi:softprob", "num_class": n_classes}
        self.parameters = {"objective": "binary:logistic"} if n_classes == 2 else objective
        self.parameters |= {"max_depth": 2, "nthread": 1, "seed": 0} | parameters

    def hook(self, guard, X_holdout, **options):
        from radabound_fast.integrations.xgboost import GuardedRounds

        return GuardedRounds(guard, X_holdout, **options)

    def fit(self, X, y, hooks=(), *, onto=None, n_rounds=N_ROUNDS, group=None, **options):
        import xgboost

        data = xgboost.DMatrix(X, y, group=group)
        return xgboost.train(
            self.parameters, data, n_rounds, callbacks=list(hooks), xgb_model=onto, **options
        )

    def cross_validate(self, X, y, hooks):
        import xgboost

        return xgboost.cv(self.parameters, xgboost.DMatrix(X, y), 4, callbacks=hooks)

    def with_own_objective(self, gradients):
        del self.parameters["objective"]
        return {"obj": lambda scores, data: gradients(scores, data.get_label())}

    def scores(self, booster, X, n_rounds):
        return booster.inplace_predict(X, iteration_range=(0, n_rounds))

    def n_rounds(self, booster):
        return booster.num_boosted_rounds()

    def best(self, booster):
        return booster.best_iteration + 1

    def stopping(self, X, y, after=2):
        import xgboost

        evals = {"evals": [(xgboost.DMatrix(X, y), "valid")], "verbose_eval": False}
        return evals, xgboost.callback.EarlyStopping(rounds=after)


@pytest.fixture(params=[Lightgbm, Xgboost], ids=["lightgbm", "xgboost"])
def tool(request):
    if not find_spec(request.param.name):
        pytest.skip(f"{request.param.name} is not installed")
    return request.param


@pytest.fixture
def xgboost():
    return pytest.importorskip("xgboost")


@pytest.fixture
def lightgbm():
    return pytest.importorskip("lightgbm")


def split(data):
    """X, X_holdout, y, y_holdout."""
    X, y = DATA[data](return_X_y=True)
    return train_test_split(X, y, test_size=N_HOLDOUT, random_state=0)


def guard_of(y, epsilon=0.5):
    return RadaBound(y, epsilon=epsilon, delta=0.1, bound="mclt", seed=0)


def watched(boosting, data="two classes", guard=None, **options):
    """The hook and the booster of a training that the guard watches."""
    X, X_holdout, y, y_holdout = split(data)
    hook = boosting.hook(guard or guard_of(y_holdout), X_holdout, **options)
    return hook, boosting.fit(X, y, [hook])


def codes_of(scores):
    return scores.argmax(axis=1) if scores.ndim == 2 else scores > 0.5


def told(hook):
    return [(n_rounds, answer.value) for n_rounds, answer in hook.answers]


def logistic(scores, labels):
    """Gradient and second derivative of the logistic loss."""
    chance = 1 / (1 + np.exp(-scores))
    return chance - labels, chance * (1 - chance)


# ---- the answers, and the round that is best -----------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("n_before", [0, 7])
def test_every_fourth_round_of_the_ensemble_is_asked_and_the_best_is_kept(tool, data, n_before):
    """Also of one that was begun before: what is asked is what the booster says of the rounds."""
    X, X_holdout, y, y_holdout = split(data)
    boosting = tool(len(np.unique(y)))
    before = boosting.fit(X, y, n_rounds=n_before) if n_before else None
    hook = boosting.hook(guard_of(y_holdout), X_holdout, every=4)
    booster = boosting.fit(X, y, [hook], onto=before)
    whole, errors = boosting.fit(X, y, onto=before), {}
    for n_rounds in range(4, n_before + N_ROUNDS + 1, 4):
        if n_rounds > n_before:
            codes = codes_of(boosting.scores(whole, X_holdout, n_rounds))
            errors[n_rounds] = np.mean(codes != y_holdout)
    assert told(hook) == list(errors.items())
    best = min(errors, key=errors.get)
    assert boosting.best(booster) == best
    # what is returned is the model that was judged, without a word on rounds
    scores = booster.predict(X_holdout) if tool is Lightgbm else booster.inplace_predict(X_holdout)
    np.testing.assert_array_equal(scores, boosting.scores(whole, X_holdout, best))
    assert np.mean(codes_of(scores) != y_holdout) == errors[best]


def test_the_first_of_equals_is_best(tool):
    boosting = tool(2, learning_rate=1e-9)  # no round changes a class
    hook, booster = watched(boosting, every=3)
    assert len(hook.answers) == 4 and len(set(dict(told(hook)).values())) == 1
    assert boosting.best(booster) == 3


@pytest.mark.thorough
def test_training_ends_at_the_halt_with_the_best_answered_round(tool):
    *_, y_holdout = split("ten classes")
    for epsilon in np.arange(0.105, 0.08, -0.002):  # the first that is too small for all rounds
        guard = guard_of(y_holdout, epsilon=epsilon)
        hook, booster = watched(tool(10), "ten classes", guard, every=1)
        if guard.halted:
            break
    assert 0 < guard.n_answered < N_ROUNDS
    assert [n_rounds for n_rounds, _ in hook.answers] == list(range(1, guard.n_answered + 1))
    errors = dict(told(hook))
    assert tool(10).best(booster) == min(errors, key=errors.get)
    if tool is Xgboost:  # the withheld one was trained, and is cut off
        assert tool(10).n_rounds(booster) == tool(10).best(booster)


def test_a_booster_that_is_never_due_is_trained_to_the_end(tool):
    hook, booster = watched(tool(2), every=N_ROUNDS + 1)
    assert hook.answers == [] and tool(2).n_rounds(booster) == N_ROUNDS


def test_rounds_of_a_declared_search_are_asked_by_key(tool):
    *_, y_holdout = split("two classes")
    search = DeclaredSearch(y_holdout, Grid({"depth": [2, 3]}) * epoch_of(N_ROUNDS), delta=0.1)
    hook, booster = watched(tool(2), guard=search, every=4, key=lambda n: ({"depth": 2}, n - 1))
    plain, other = watched(tool(2), every=4)
    assert tool(2).best(booster) == tool(2).best(other) and told(hook) == told(plain)
    keys = [answer.key for _, answer in hook.answers]
    assert keys == [({"depth": 2}, epoch) for epoch in (3, 7, 11)]


def test_a_hook_that_is_used_again_forgets_the_training_before(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    guard = guard_of(y_holdout)
    hook = tool(2).hook(guard, X_holdout, every=6)
    tool(2).fit(X, y, [hook])
    tool(2, learning_rate=1e-9).fit(X, y, [hook])  # all rounds are worse
    assert guard.n_answered == 4 and len(hook.answers) == 2
    assert tool(2, learning_rate=1e-9).best(tool(2).fit(X, y, [hook])) in (6, 12)


def test_what_was_answered_before_an_interrupt_is_on_the_hook(tool, monkeypatch):
    X, X_holdout, y, y_holdout = split("two classes")
    boosting, guard = tool(2), guard_of(y_holdout)
    hook = boosting.hook(guard, X_holdout, every=2)
    whole, _ = watched(boosting, every=2)
    query = type(guard).query

    def interrupted(guard, *arguments, **named):
        if guard.n_answered == 3:
            raise KeyboardInterrupt
        return query(guard, *arguments, **named)

    monkeypatch.setattr(type(guard), "query", interrupted)
    with pytest.raises(KeyboardInterrupt):
        boosting.fit(X, y, [hook])
    assert told(hook) == told(whole)[:3]


@pytest.mark.parametrize("halts", [False, True])
@pytest.mark.parametrize("hook_first", [False, True])
def test_beside_early_stopping_its_best_round_stands_unless_the_guard_halts(
    tool, halts, hook_first
):
    X, X_holdout, y, y_holdout = split("two classes")
    boosting = tool(2, learning_rate=1.0)
    options, stopping = boosting.stopping(X_holdout[:50], y_holdout[:50])
    stopped = boosting.fit(X, y, [stopping], n_rounds=100, **options)
    assert boosting.n_rounds(stopped) < 100

    options, stopping = boosting.stopping(X_holdout[:50], y_holdout[:50])
    hook = boosting.hook(guard_of(y_holdout), X_holdout, every=1)
    if halts:

        class Halts(RadaBound):
            def query(self, y_pred):
                if self.n_answered:
                    raise HoldoutExhausted("spent", n_answered=1)
                return super().query(y_pred)

        guard = Halts(y_holdout, epsilon=0.5, delta=0.1, seed=0)
        hook = boosting.hook(guard, X_holdout, every=1)
    hooks = [hook, stopping] if hook_first else [stopping, hook]
    booster = boosting.fit(X, y, hooks, n_rounds=100, **options)
    assert boosting.best(booster) == (1 if halts else boosting.best(stopped))


@pytest.mark.thorough
@pytest.mark.parametrize("hook_first", [False, True])
def test_early_stopping_that_does_not_stop_names_the_best_round_too(tool, hook_first):
    X, X_holdout, y, y_holdout = split("two classes")
    boosting, best = tool(2), []
    for hooked in (False, True):
        options, stopping = boosting.stopping(X_holdout[:50], y_holdout[:50], after=1000)
        hook = boosting.hook(guard_of(y_holdout), X_holdout, every=1)
        hooks = [hook, stopping] if hook_first else [stopping, hook]
        booster = boosting.fit(X, y, hooks if hooked else [stopping], **options)
        best.append(boosting.best(booster))
    assert best[0] == best[1] != min(hook.answers, key=lambda told: told[1].value)[0]


def test_a_best_round_of_the_model_that_is_continued_does_not_stay(xgboost):
    X, X_holdout, y, y_holdout = split("two classes")
    before = Xgboost(2).fit(X, y, [Xgboost(2).hook(guard_of(y_holdout), X_holdout, every=2)])
    assert before.attr("best_iteration") is not None
    hook = Xgboost(2).hook(guard_of(y_holdout), X_holdout, every=10**6)
    assert Xgboost(2).fit(X, y, [hook], onto=before).attr("best_iteration") is None


# ---- what the scores mean ------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["reg:logistic", "binary:logitraw", "binary:hinge"])
def test_xgboosts_objectives_of_two_classes(xgboost, objective):
    """By the sign of the raw score, which is what each of them is fitted for."""
    X, X_holdout, y, y_holdout = split("two classes")
    boosting = Xgboost(2, objective=objective, base_score=0.5)
    hook, _ = watched(boosting, every=3)
    booster = boosting.fit(X, y)
    limit = 0.5 if objective == "binary:hinge" else 0.0  # its base is no logit
    for n_rounds, value in told(hook):
        raw = booster.predict(
            xgboost.DMatrix(X_holdout), iteration_range=(0, n_rounds), output_margin=True
        )
        codes = boosting.scores(booster, X_holdout, n_rounds) if limit else raw > 0
        assert value == np.mean(codes != y_holdout)
        assert value < 0.15


@pytest.mark.filterwarnings("ignore:.*updater:UserWarning")
def test_xgboosts_update_of_a_model_begins_at_its_first_round(xgboost):
    X, X_holdout, y, y_holdout = split("two classes")
    before = Xgboost(2).fit(X, y)
    update = {"process_type": "update", "updater": "refresh", "lambda": 50.0, "verbosity": 0}
    boosting = Xgboost(2, **update)
    hook = boosting.hook(guard_of(y_holdout), X_holdout, every=2)
    booster = boosting.fit(X, y, [hook], onto=before)
    errors = [
        (n_rounds, np.mean((boosting.scores(booster, X_holdout, n_rounds) > 0.5) != y_holdout))
        for n_rounds in range(2, N_ROUNDS + 1, 2)
    ]
    assert told(hook) == errors


def test_xgboosts_objective_of_ones_own_is_read_as_the_one_that_is_named(xgboost):
    """Without a name it is refused, below."""
    X, X_holdout, y, y_holdout = split("two classes")
    boosting = Xgboost(2)
    hook = boosting.hook(guard_of(y_holdout), X_holdout, every=3)
    own = {"obj": lambda scores, data: logistic(scores, data.get_label())}
    boosting.fit(X, y, [hook], **own)
    booster = boosting.fit(X, y, **own)
    for n_rounds, value in told(hook):
        codes = boosting.scores(booster, X_holdout, n_rounds) > 0.5
        assert value == np.mean(codes != y_holdout) < 0.15


def test_xgboosts_softmax_gives_class_numbers(xgboost):
    labels, chances = (
        told(watched(Xgboost(10, objective=f"multi:{name}"), "ten classes", every=3)[0])
        for name in ("softmax", "softprob")
    )
    assert labels == chances and labels[-1][1] < 0.3


@pytest.mark.parametrize(
    ("data", "parameters"),
    [
        ("ten classes", {"objective": "ova"}),
        ("two classes", {"objective": "xentropy"}),
        ("two classes", {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}),
    ],
)
def test_lightgbms_other_objectives_and_forests(lightgbm, data, parameters):
    X, X_holdout, y, y_holdout = split(data)
    boosting = Lightgbm(len(np.unique(y)), **parameters)
    hook, booster = watched(boosting, data, every=3)
    for n_rounds, value in told(hook):
        codes = codes_of(boosting.scores(booster, X_holdout, n_rounds))
        assert value == np.mean(codes != y_holdout)


# ---- other metrics -------------------------------------------------------------------------


def by_metric(metric, scores, y):
    """scikit-learn's value, of one chance a sample or of one for each class."""
    from sklearn.metrics import (
        balanced_accuracy_score,
        brier_score_loss,
        f1_score,
        log_loss,
        roc_auc_score,
    )  # fmt: skip

    codes = codes_of(scores)
    if metric == "neg_log_loss":
        return -log_loss(y, np.clip(scores, 0.001, 0.999))
    if metric == "neg_brier_score" and scores.ndim == 2:
        return -np.sum((scores - np.eye(scores.shape[1])[y]) ** 2, axis=1).mean()
    return {
        "accuracy": lambda: np.mean(codes == y),
        "balanced_accuracy": lambda: balanced_accuracy_score(y, codes),
        "f1": lambda: f1_score(y, codes),
        "roc_auc": lambda: roc_auc_score(y, scores),
        "neg_brier_score": lambda: -brier_score_loss(y, scores),
    }[metric]()


@pytest.mark.parametrize(
    ("data", "metric"),
    [
        *(("two classes", name) for name in ("accuracy", "balanced_accuracy", "f1", "roc_auc")),
        ("two classes", LogLoss(clip=0.001)),
        ("two classes", "neg_brier_score"),
        ("ten classes", "balanced_accuracy"),
        ("ten classes", "neg_brier_score"),
    ],
    ids=str,
)
def test_rounds_are_judged_by_the_metric_of_the_holdout_and_the_best_is_kept(tool, data, metric):
    X, X_holdout, y, y_holdout = split(data)
    boosting = tool(len(np.unique(y)))
    guard = DeclaredSearch(Holdout(y_holdout, metric=metric), N_ROUNDS, delta=0.1)
    hook, booster = watched(boosting, data, guard, every=2, key=lambda n: n - 1)
    whole = boosting.fit(X, y)
    expected = [
        by_metric(guard.holdout.metric, boosting.scores(whole, X_holdout, n), y_holdout)
        for n, _ in hook.answers
    ]
    values = [value for _, value in told(hook)]
    assert values == pytest.approx(expected, abs=2e-6)
    assert boosting.best(booster) == hook.answers[int(np.argmax(values))][0]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("metric", ["roc_auc", "neg_brier_score", "f1"])
def test_labels_in_another_order_are_the_same_classes(tool, metric, order):
    """The booster numbers the classes otherwise than the holdout sorts them."""
    X, X_holdout, y, y_holdout = split("two classes")
    names = np.array(["no", "yes"])[order]  # of the booster's numbers
    options = {} if metric == "neg_brier_score" else {"pos_label": names[1]}
    holdout = Holdout(names[y_holdout], metric=choice_of(metric, options))
    plain = Holdout(y_holdout, metric=metric)
    answers = []
    for judged, named in ((plain, {}), (holdout, {"classes": names})):
        guard = DeclaredSearch(judged, N_ROUNDS, delta=0.1)
        hook, _ = watched(tool(2), guard=guard, every=4, key=lambda n: n - 1, **named)
        answers.append([value for _, value in told(hook)])
    assert answers[0] == pytest.approx(answers[1], abs=1e-12)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_chances_of_the_first_class_have_no_ties_that_those_of_the_second_have_not(pos_label):
    """1 - 1e-20 and 1 - 2e-20 are one number."""
    y = np.arange(40) % 2
    guard = DeclaredSearch(Holdout(y, metric=RocAuc(pos_label=pos_label)), 1, delta=0.1)
    rounds = Rounds(guard, np.zeros((40, 1)), every=1, key=lambda n_rounds: 0)
    rounds._start("binary", {"binary": "chances"}, 2)
    assert rounds._goes_on(1, lambda: np.where(y == 1, 2e-20, 1e-20))
    assert rounds._best == (1, 1.0)


def test_xgboosts_raw_scores_are_log_odds(xgboost):
    X, X_holdout, y, y_holdout = split("two classes")
    boosting = Xgboost(2, objective="binary:logitraw")
    for metric in ("neg_brier_score", "roc_auc"):
        guard = DeclaredSearch(Holdout(y_holdout, metric=metric), N_ROUNDS, delta=0.1)
        hook, _ = watched(boosting, guard=guard, every=4, key=lambda n: n - 1)
        booster = boosting.fit(X, y)
        for n_rounds, value in told(hook):
            chances = 1 / (1 + np.exp(-boosting.scores(booster, X_holdout, n_rounds)))
            assert value == pytest.approx(by_metric(metric, chances, y_holdout), abs=1e-6)


REGRESSION = [
    *((Lightgbm, name) for name in (
        "regression", "l1", "huber", "fair", "poisson", "gamma", "tweedie", "quantile")),
    *((Xgboost, name) for name in (
        "reg:squarederror", "reg:absoluteerror", "reg:gamma", "reg:tweedie", "count:poisson")),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "objective"), REGRESSION)
def test_regressors_are_judged_by_their_error(tool, objective):
    if not find_spec(tool.name):
        pytest.skip(f"{tool.name} is not installed")
    X, X_holdout, y, y_holdout = split("two classes")
    y, y_holdout = y + 1.0 + X[:, 0] / 100, y_holdout + 1.0 + X_holdout[:, 0] / 100
    holdout = Holdout(y_holdout, metric=AbsoluteError(y_range=(-5, 10)))
    guard = DeclaredSearch(holdout, N_ROUNDS, delta=0.1)
    boosting = tool(2, objective=objective)
    hook = boosting.hook(guard, X_holdout, every=4, key=lambda n: n - 1)
    booster, whole = boosting.fit(X, y, [hook]), boosting.fit(X, y)
    errors = [
        np.abs(boosting.scores(whole, X_holdout, n) - y_holdout).mean() for n, _ in hook.answers
    ]
    values = [-value for _, value in told(hook)]
    assert values == pytest.approx(errors, abs=1e-6)
    assert boosting.best(booster) == hook.answers[int(np.argmin(values))][0]


@pytest.mark.parametrize(
    ("metric", "objective", "message"),
    [
        ("roc_auc", {Lightgbm: "regression", Xgboost: "binary:hinge"}, "for a metric of scores"),
        ("neg_brier_score", {Lightgbm: "l1", Xgboost: "reg:gamma"}, "for a metric of probabiliti"),
        (AbsoluteError(y_range=(0, 1)), {Lightgbm: "binary", Xgboost: "binary:logistic"},
         "for a metric of numbers"),
    ],
    ids=str,
)  # fmt: skip
def test_an_objective_that_gives_something_else_is_refused(tool, metric, objective, message):
    X, X_holdout, y, y_holdout = split("two classes")
    y_holdout = y_holdout.astype(float) if isinstance(metric, AbsoluteError) else y_holdout
    guard = DeclaredSearch(Holdout(y_holdout, metric=metric), N_ROUNDS, delta=0.1)
    boosting = tool(2, objective=objective[tool])
    with pytest.raises(ValueError, match=f"objective must be one of .* {message}"):
        boosting.fit(X, y + 0.5, [boosting.hook(guard, X_holdout, key=int)])
    assert guard.n_answered == 0


def test_numbers_have_no_classes(tool):
    holdout = Holdout(np.arange(N_HOLDOUT) / N_HOLDOUT, metric=AbsoluteError(y_range=(0, 1)))
    guard = DeclaredSearch(holdout, N_ROUNDS, delta=0.1)
    with pytest.raises(TypeError, match="classes must be left out with metric='neg_mean_absolute"):
        tool(2).hook(guard, np.zeros((N_HOLDOUT, 2)), classes=[0, 1], key=int)


def test_probabilities_are_those_of_all_classes(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    holdout = Holdout(y_holdout, metric="neg_brier_score", classes=[0, 1, 2])
    guard, boosting = DeclaredSearch(holdout, N_ROUNDS, delta=0.1), tool(2)
    with pytest.raises(ValueError, match="the booster must have the holdout's 3 classes"):
        boosting.fit(X, y, [boosting.hook(guard, X_holdout, classes=[0, 1], key=int)])


# ---- refused before any query --------------------------------------------------------------


REFUSED = [
    (Lightgbm, {}, {"own": logistic}, "objective must be one of .*got a function"),
    (Xgboost, {}, {"own": logistic}, r"got reg:squarederror \(the default, where an"),
    (Lightgbm, {"objective": "regression"}, {}, "objective must be one of .*got reg"),
    (Xgboost, {"objective": "reg:squarederror"}, {}, "objective must be one of .*got reg"),
    (Lightgbm, {"objective": "lambdarank"}, {"group": [100, 169]}, "objective .*got lambdarank"),
    (Xgboost, {"objective": "rank:pairwise"}, {"group": [100, 169]}, "objective .*got rank:pair"),
    *((Lightgbm, {alias: "dart"}, {}, "boosting must not be dart")
      for alias in ("boosting", "boosting_type", "boost")),
    *((Xgboost, {"booster": name}, {}, f"booster must not be {name}")
      for name in ("dart", "gblinear")),
    (Xgboost, {}, {"columns": 2}, r"booster must give one score a sample, got shape \(300, 2\)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "parameters", "given", "message"), REFUSED)
@pytest.mark.filterwarnings("ignore:.*gblinear:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # max_depth is not gblinear's
def test_a_training_that_cannot_be_judged_is_refused_before_any_query(
    kind, parameters, given, message
):
    pytest.importorskip(kind.name)
    X, X_holdout, y, y_holdout = split("two classes")
    boosting, guard = kind(2, **parameters), guard_of(y_holdout)
    options = {"group": given["group"]} if "group" in given else {}
    options |= boosting.with_own_objective(given["own"]) if "own" in given else {}
    y = np.stack([y, 1 - y], axis=1) if "columns" in given else y
    with pytest.raises(ValueError, match=message):
        boosting.fit(X, y, [boosting.hook(guard, X_holdout, every=1)], **options)
    assert guard.n_answered == 0 and not guard.halted


def test_cross_validation_of_the_tools_is_told_what_to_do(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    guard = guard_of(y_holdout)
    with pytest.raises(TypeError, match=r"got (lightgbm|xgboost)\.cv: its folds are cut from the"):
        tool(2).cross_validate(X, y, [tool(2).hook(guard, X_holdout)])
    assert guard.n_answered == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"every": 0}, ValueError, "every must be at least 1, got 0"),
        ({"guard": None}, TypeError, "guard must be a guard made on labels, .* got NoneType"),
        ({"guard": RadaBound(300, epsilon=0.1, delta=0.1)}, TypeError, "got a RadaBound of losses"),
        (
            {"guard": GuessAndCheck([0, 1] * 150, epsilon=0.3, delta=0.1)},
            ValueError,
            "guard must need no guesses, as a RadaBound or a Ladder, got GuessAndCheck",
        ),
        ({"X_holdout": np.zeros((299, 30))}, ValueError, "the holdout's 300 samples, got 299"),
        ({"classes": [0, 2]}, ValueError, "classes must be classes of the holdout, got 2: Holdout"),
        (
            {"key": lambda n_rounds: n_rounds},
            TypeError,
            "key must be a function of the number of rounds with a DeclaredSearch, and None other",
        ),
        (
            {"guard": DeclaredSearch([0, 1] * 150, 12, delta=0.1)},
            TypeError,
            "key must be a function .* got None with DeclaredSearch",
        ),
        ({"classes": [1, 1]}, ValueError, r"classes must be distinct, got \[1, 1\]"),
    ],
)
def test_bad_arguments_are_refused_before_training(tool, change, error, message):
    X, X_holdout, y, y_holdout = split("two classes")
    options = {"guard": guard_of(y_holdout), "X_holdout": X_holdout} | change
    with pytest.raises(error, match=message):
        tool(2).hook(**options)


def test_a_guard_that_can_answer_nothing_says_what_would_work(tool):
    X, X_holdout, y, y_holdout = split("two classes")
    needs = r"mclt needs epsilon 0\.\d+ with 300 samples or [\d,]+ samples at epsilon 0.01"
    with pytest.raises(HoldoutExhausted, match=f"guard can answer no query.*{needs}"):
        tool(2).hook(guard_of(y_holdout, epsilon=0.01), X_holdout)


def test_no_round_is_best_if_the_first_answer_is_withheld(tool):
    X, X_holdout, y, y_holdout = split("ten classes")
    guard = next(  # enough for models that are all alike, if for any
        guard
        for guard in (guard_of(y_holdout, epsilon) for epsilon in np.arange(0.03, 0.1, 0.001))
        if guard.budget > 0
    )
    hook = tool(10).hook(guard, X_holdout, every=1)
    with pytest.raises(HoldoutExhausted, match="withheld the first answer; mclt needs") as caught:
        tool(10).fit(X, y, [hook])
    assert guard.halted and caught.value.n_answered == 0 and hook.answers == []


# ---- which label each class number is ------------------------------------------------------


def test_classes_missing_in_training_are_mapped_by_the_models_own(tool):
    """A model of three digits, whose class numbers are 0, 1, 2, for a holdout of all ten."""
    X, X_holdout, y, y_holdout = split("ten classes")
    known = np.array([3, 5, 9])
    keep = np.isin(y, known)
    boosting = tool(3)
    guard = guard_of(y_holdout)
    hook = boosting.hook(guard, X_holdout, every=6, classes=known)
    booster = boosting.fit(X[keep], np.searchsorted(known, y[keep]), [hook])
    for n_rounds, value in told(hook):
        predicted = known[boosting.scores(booster, X_holdout, n_rounds).argmax(axis=1)]
        assert value == np.mean(predicted != y_holdout)
        assert 0.6 < value < 0.8  # it cannot know seven of ten


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (range(4), {}, "classes must say which label each of the booster's 3 class numbers is"),
        ([0, 1, 3], {}, "since the holdout's classes are not 0 to 2: np.unique"),
        (["a", "b", "c"], {}, "classes must say which label"),
        (range(4), {"classes": range(4)}, "a label for each of the booster's 3 classes, got 4"),
    ],
)
def test_classes_that_are_not_known_are_asked_for(tool, labels, options, message):
    X, X_holdout, y, y_holdout = split("ten classes")
    guard = guard_of(np.array(labels)[y_holdout % len(labels)])
    boosting = tool(3)
    with pytest.raises(ValueError, match=message):
        boosting.fit(X, y % 3, [boosting.hook(guard, X_holdout, **options)])
    assert guard.n_answered == 0


@pytest.mark.parametrize(
    "names",
    [["no", "yes"], [7, -7], [0.5, 1.5], [True, False], [("a", 1), ("b", 2)], ["a", 1]],
    ids=str,
)
def test_labels_of_every_kind_are_named_by_number(tool, names):
    X, X_holdout, y, y_holdout = split("two classes")
    labels = np.fromiter((names[code] for code in y_holdout), object, N_HOLDOUT)
    by_number = tool(2).hook(guard_of(y_holdout), X_holdout, every=4)
    by_name = tool(2).hook(guard_of(labels), X_holdout, every=4, classes=names)
    tool(2).fit(X, y, [by_number])
    tool(2).fit(X, y, [by_name])
    assert told(by_number) == told(by_name) and len(by_name.answers) == 3


def test_a_holdout_may_lack_a_class_of_the_model(tool):
    X, X_holdout, y, y_holdout = split("ten classes")
    keep = y_holdout != 4
    guard = guard_of(Holdout(y_holdout[keep], classes=range(10)))
    boosting = tool(10)
    hook = boosting.hook(guard, X_holdout[keep], every=6)
    booster = boosting.fit(X, y, [hook])
    n_rounds, value = told(hook)[-1]
    predicted = boosting.scores(booster, X_holdout[keep], n_rounds).argmax(axis=1)
    assert value == np.mean(predicted != y_holdout[keep])


# ---- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "n_threads"),
    [
        ({"num_threads": 1}, 1),
        ({"nthread": 1}, 1),
        pytest.param({"nthread": 2}, 2, marks=pytest.mark.thorough),
        ({"n_jobs": 1}, 1),
        pytest.param({"num_threads": 0}, 0, marks=pytest.mark.thorough),
    ],
)
def test_lightgbm_predicts_with_as_many_threads_as_it_trains(
    lightgbm, monkeypatch, given, n_threads
):
    """What `predict` is told holds for the rounds after it as well: 0 is all cores."""
    X, X_holdout, y, y_holdout = split("two classes")
    told, predict = [], lightgbm.Booster.predict

    def spy(booster, rows, **options):
        told.append(options["num_threads"])
        return predict(booster, rows, **options)

    monkeypatch.setattr(lightgbm.Booster, "predict", spy)
    boosting = Lightgbm(2)
    del boosting.parameters["num_threads"]
    boosting.parameters |= given
    boosting.fit(X, y, [boosting.hook(guard_of(y_holdout), X_holdout, every=4)])
    model = lightgbm.LGBMClassifier(n_estimators=8, verbosity=-1, n_jobs=n_threads)
    model.fit(X, y, callbacks=[boosting.hook(guard_of(y_holdout), X_holdout, every=4)])
    assert told == 5 * [n_threads]


def n_threads_here():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.thorough
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_training_with_one_thread_starts_no_other(name):
    """In a process of its own: a thread of OpenMP never ends."""
    if not find_spec(name):
        pytest.skip(f"{name} is not installed")
    program = f"""
import sys
sys.path[:0] = {sys.path!r}
sys.argv = ["-"]
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("boosting", {__file__!r})
boosting = module_from_spec(spec)
spec.loader.exec_module(boosting)
tool = boosting.{name.capitalize()}(2)
X, X_holdout, y, y_holdout = boosting.split("two classes")
tool.fit(X, y, n_rounds=2)
before = boosting.n_threads_here()
hook = tool.hook(boosting.guard_of(y_holdout), X_holdout, every=1)
tool.fit(X, y, [hook], n_rounds=4)
print(boosting.n_threads_here() - before, len(hook.answers))
"""
    environment = os.environ | {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.stdout.split() == ["0", "4"], done.stderr


# ---- the tools' classifiers and data -------------------------------------------------------


def test_lightgbms_classifier_takes_the_callback(lightgbm):
    X, X_holdout, y, y_holdout = split("two classes")
    names = np.array(["no", "yes"])
    hook = Lightgbm(2).hook(
        guard_of(names[y_holdout]), X_holdout, every=3, classes=np.unique(names[y])
    )
    model = lightgbm.LGBMClassifier(n_estimators=N_ROUNDS, verbosity=-1, n_jobs=1)
    model.fit(X, names[y], callbacks=[hook])
    error = np.mean(model.predict(X_holdout) != names[y_holdout])
    assert error == min(dict(told(hook)).values()) == model.best_score_["holdout"]["error"]
    assert model.best_iteration_ == next(n for n, value in told(hook) if value == error)


def test_xgboosts_classifier_takes_the_callback(xgboost):
    X, X_holdout, y, y_holdout = split("two classes")
    hook = Xgboost(2).hook(guard_of(y_holdout), X_holdout, every=3)
    model = xgboost.XGBClassifier(n_estimators=N_ROUNDS, callbacks=[hook], n_jobs=1)
    model.fit(X, y)
    error = np.mean(model.predict(X_holdout) != y_holdout)
    assert error == min(dict(told(hook)).values()) == model.best_score
    assert model.best_iteration + 1 == next(n for n, value in told(hook) if value == error)


def test_xgboost_takes_its_own_matrix_with_its_missing_values(xgboost):
    X, X_holdout, y, y_holdout = split("two classes")
    X, X_holdout = X.copy(), X_holdout.copy()
    X[::3, :20], X_holdout[::3, :20] = -999, -999
    answers = []
    data = xgboost.DMatrix(X, y, missing=-999)
    for rows in (
        xgboost.DMatrix(X_holdout, missing=-999),
        np.where(X_holdout == -999, np.nan, X_holdout),
    ):
        hook = Xgboost(2).hook(guard_of(y_holdout), rows, every=3)
        xgboost.train(Xgboost(2).parameters, data, N_ROUNDS, callbacks=[hook])
        answers.append(told(hook))
    assert answers[0] == answers[1]
