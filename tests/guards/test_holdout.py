"""Holdout and Losses: what guards are made on; predictions in, error rates out, labels never."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import support
from numpy.testing import assert_array_equal
from support import GUARDS

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    Holdout,
    HoldoutExhausted,
    Ladder,
    Losses,
    RadaBound,
    metrics,
)
from radabound_fast.rows.labels import Labels

PARAMETERS = {"epsilon": 0.12, "delta": 0.1, "bound": "mclt", "seed": 3}


def labels_and_predictions(classes, n_queries=30, n_samples=1000, seed=0):
    rng = np.random.default_rng(seed)
    y_true = rng.choice(classes, n_samples)
    noise = rng.choice(classes, (n_queries, n_samples))
    return y_true, np.where(rng.random((n_queries, n_samples)) < 0.3, noise, y_true)


@pytest.mark.parametrize(
    "classes",
    [
        [0, 1],
        [-1, 1],
        [0, 1, 2, 3],
        [3, 17, 1000],
        [0.5, 1.5, 7.0],
        ["cat", "dog"],
        ["a", "b", "c"],
    ],
)
def test_the_answer_is_the_share_of_wrong_predictions(classes):
    y_true, predictions = labels_and_predictions(classes)
    one, many = RadaBound(y_true, **PARAMETERS), RadaBound(y_true, **PARAMETERS)
    losses = RadaBound(1000, **PARAMETERS).query_many(predictions != y_true)
    answers = many.query_many(predictions, trace=True)
    assert_array_equal(answers.values, losses.values)
    assert_array_equal(answers.values, (predictions != y_true).mean(axis=1)[: len(answers)])
    values = [one.query(row).value for row in predictions[: len(answers)]]
    assert_array_equal(values, answers.values)


# ---- what a guard is made on ---------------------------------------------------------------------


@pytest.fixture(params=GUARDS)
def make(request):
    return GUARDS[request.param]


def test_labels_stand_for_a_holdout_and_a_number_for_losses(make):
    y_true = np.arange(300) % 2
    for judged in (y_true, y_true.tolist(), Labels(y_true), Holdout(y_true)):
        guard = make(judged)
        assert isinstance(guard.holdout, Holdout) and guard.holdout.takes == "classes"
        assert guard.n_samples == 300 and guard.holdout.classes == [0, 1]
    for judged in (300, np.int64(300), Losses(300)):
        guard = make(judged)
        assert isinstance(guard.holdout, Losses) and guard.holdout.takes == "losses"
        assert guard.n_samples == 300 and guard.holdout.classes is None
    holdout = Holdout(y_true)
    assert make(holdout).holdout is holdout


def test_a_second_guard_on_one_holdout_is_warned_of_once(make):
    for judged in (Holdout(np.arange(300) % 2), Losses(300)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            make(judged)
        with pytest.warns(UserWarning, match="second guard.*split delta.*or share one") as caught:
            make(judged)
        assert caught[0].filename == support.__file__  # of whoever made it
        make(judged)  # a third is no news


def test_labels_that_are_passed_twice_are_two_holdouts(make):
    y_true = np.arange(300) % 2
    make(y_true), make(y_true)  # a warning would be an error


def test_one_database_opened_twice_is_one_guard(tmp_path):
    holdout, given = Holdout(np.arange(300) % 2), {"epsilon": 0.3, "delta": 0.1}
    for _ in range(3):
        RadaBound.open(tmp_path / "guard.db", holdout, **given).close()
        DeclaredSearch.open(tmp_path / "search.db", Losses(300), 9, delta=0.1)
    with pytest.warns(UserWarning, match="second guard"):
        Ladder.open(tmp_path / "ladder.db", holdout, step=0.1, delta=0.1).close()


def test_an_open_that_fails_counts_for_nothing(tmp_path):
    y_true, given = np.arange(300) % 2, {"epsilon": 0.3, "delta": 0.1}
    RadaBound.open(tmp_path / "guard.db", 1 - y_true, **given).close()
    holdout = Holdout(y_true)
    with pytest.raises(ValueError, match="made for another holdout"):
        RadaBound.open(tmp_path / "guard.db", holdout, **given)
    RadaBound(holdout, **PARAMETERS)  # the first


def test_threads_that_make_guards_at_once_are_warned_once():
    holdout = Holdout(np.arange(300) % 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        support.at_once(lambda _: RadaBound(holdout, **PARAMETERS), range(8))
    assert len(caught) == 1


@pytest.mark.parametrize(
    "metric",
    [
        "accuracy",
        metrics.F1(pos_label="dog"),
        metrics.LogLoss(clip=1e-6, pos_label="dog"),
        metrics.Error(),
    ],
)
def test_a_holdout_is_copied_with_its_labels_and_metric(metric):
    y_true, predictions = labels_and_predictions(["cat", "dog"], 2)
    if isinstance(metric, metrics.LogLoss):
        predictions = (predictions == "dog") * 0.8 + 0.1
    holdout = Holdout(y_true, metric=metric)
    expected = DeclaredSearch(holdout, 9, delta=0.1).query_many(predictions, keys=[0, 1])
    for again in (copy.copy(holdout), copy.deepcopy(holdout), pickle.loads(pickle.dumps(holdout))):
        assert again.metric == holdout.metric and again.classes == ["cat", "dog"]
        search = DeclaredSearch(again.apart(), 9, delta=0.1)
        assert_array_equal(search.query_many(predictions, keys=[0, 1]).lows, expected.lows)


def test_the_metric_is_a_name_or_an_object_with_options():
    y_true = [0, 1] * 50
    for metric in ("f1", metrics.F1(), metrics.F1(pos_label=1)):
        holdout = Holdout(y_true, metric=metric)
        assert (holdout.metric, holdout.pos_label, holdout.takes) == ("f1", 1, "classes")
        assert holdout.greater_is_better and repr(holdout) == "Holdout(n_samples=100, metric='f1')"
    assert Holdout(y_true, metric=metrics.F1(pos_label=0)).pos_label == 0
    assert Holdout(y_true).pos_label is None and not Holdout(y_true).greater_is_better
    with pytest.raises(ValueError, match="metric must be one of .*'roc_auc'.*, got 'auc'"):
        Holdout(y_true, metric="auc")
    with pytest.raises(TypeError, match="metric must be a name or an object, got the class F1"):
        Holdout(y_true, metric=metrics.F1)
    with pytest.raises(TypeError, match=r"clip must be given .*: metrics.LogLoss\(clip=...\)"):
        Holdout(y_true, metric="neg_log_loss")


def test_an_unknown_attribute_is_an_attribute_error(make):
    with pytest.raises(AttributeError, match="has no attribute 'compexity'"):
        _ = make([0, 1]).compexity


def test_a_keyword_of_another_guard_is_a_type_error(make):
    y_true = np.arange(300) % 2
    guard = make(y_true)
    own = {"key": {"key": 3}, "guess": {"guess": 0.1}, None: {}}[guard.needs]
    taken = {"key": {"key", "rerun"}, "guess": {"guess"}, None: set()}[guard.needs]
    for name in {"key", "guess", "rerun", "trace", "n_threads", "other"} - taken:
        with pytest.raises(TypeError, match=name):
            guard.query(y_true, **own, **{name: 1})
    of_keys = {"keys", "reruns", "n_threads"}
    taken = {"key": of_keys, "guess": {"guesses"}, None: set()}[guard.needs]
    signed = isinstance(guard, (RadaBound, FixedSequence))
    taken |= {"trace", "n_threads"} if signed and guard.kind != "union" else set()
    own = {name + ("es" if name == "guess" else "s"): [value] for name, value in own.items()}
    for name in {"keys", "guesses", "reruns", "trace", "n_threads", "other"} - taken:
        with pytest.raises(TypeError, match=name):
            guard.query_many(y_true[np.newaxis], **own, **{name: 1})
    assert guard.n_answered == 0


@pytest.mark.parametrize(
    "given", [{"sample_weight": np.arange(1.0, 301)}, {"groups": np.arange(300) // 3}]
)
def test_weights_and_groups_are_taken_or_refused_by_name(make, given):
    judged = Holdout(np.arange(300) % 2, **given)
    try:
        guard = make(judged)
    except ValueError as error:
        assert "DeclaredSearch" in str(error) or "sample_weight" in str(error)
    else:
        assert isinstance(guard, (DeclaredSearch, FixedSequence))
        assert "weights" in guard.guarantee.lower()


def test_a_withheld_prediction_is_matched_once(monkeypatch):
    """What the compiled `query` withholds is not asked again in Python."""
    y_true, predictions = labels_and_predictions([0, 1], 300)
    parameters = PARAMETERS | {"epsilon": 0.09}
    guard = RadaBound(y_true, **parameters)
    guard.query(predictions[0])  # from now on its dtype is known
    n_asked = 1 + len(guard.query_many(predictions[1:]))
    other = RadaBound(y_true, **parameters)
    other.query(predictions[0])

    def asked_again(*_):
        raise AssertionError

    monkeypatch.setattr(RadaBound, "_match", asked_again)
    for row in predictions[1:n_asked]:
        other.query(row)
    for _ in "the halting query", "one after it":
        with pytest.raises(HoldoutExhausted, match=f"spent after {n_asked} answers"):
            other.query(predictions[n_asked])


@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [
        ([0, 1, 2, 0], ValueError, "got 2"),
        ([0.0, 1.0, 0.73, 0.0], ValueError, "0.73.*looks like a score"),
        ([0, 1, 1], ValueError, r"\(3,\)"),
        ([[0], [1], [1], [0]], ValueError, "dimension"),
        (["0", "1", "1", "0"], TypeError, "numbers"),
        ([0, 1, np.nan, 1], ValueError, "nan"),
        ([], ValueError, "y_pred"),
    ],
)
def test_bad_predictions_change_nothing_and_tell_no_label(predictions, error, message):
    guard = RadaBound([0, 1, 1, 0], epsilon=0.99, delta=0.5, bound="mclt", seed=0)
    with pytest.raises(error, match=message):
        guard.query(predictions)
    assert guard.n_answered == 0 and guard.complexity == 0.0
    assert "1, 1" not in repr(guard)


def test_a_bad_row_takes_the_whole_call_back():
    y_true, predictions = labels_and_predictions([0, 1], n_queries=700)
    predictions[650, 3] = 5
    guard = RadaBound(y_true, **(PARAMETERS | {"epsilon": 0.5}))
    with pytest.raises(ValueError, match="got 5 at row 650, sample 3"):
        guard.query_many(predictions)
    assert guard.n_answered == 0 and guard.complexity == 0.0


def test_numbers_in_a_range_have_no_classes():
    for metric in (metrics.AbsoluteError(y_range=(0, 3)), metrics.SquaredError(y_range=(0, 3))):
        assert Holdout([0.5, 1, 2], metric=metric).classes is None
    assert Holdout([0.5, 1, 2]).classes == [0.5, 1, 2]


def test_the_classes_of_a_holdout_are_its_own():
    holdout = Holdout([0, 1, 2])
    holdout.classes.append(3)
    assert holdout.classes == holdout.of_other_rows([2, 0]).classes == [0, 1, 2]


def test_what_counts_rows_of_one_holdout_does_not_count_those_of_another():
    whole = Holdout([0, 1, 1, 0], groups=[1, 1, 2, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        Holdout([0, 1], sample_weight=whole.weighting)
    other = whole.with_metric("accuracy", {})
    assert other.weighting.fingerprint(bytes(16)) == whole.weighting.fingerprint(bytes(16))
