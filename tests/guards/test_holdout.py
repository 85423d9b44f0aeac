"""Holdout: predictions in, error rates out, labels never."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
)

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
    one, many = Holdout(y_true, **PARAMETERS), Holdout(y_true, **PARAMETERS)
    losses = RadaBound(1000, **PARAMETERS).query_many(predictions != y_true)
    answers = many.query_many(predictions, trace=True)
    assert_array_equal(answers.values, losses.values)
    assert_array_equal(answers.values, (predictions != y_true).mean(axis=1)[: answers.n_answered])
    values = [one.query(row).value for row in predictions[: answers.n_answered]]
    assert_array_equal(values, answers.values)


def test_a_guard_of_one_s_own():
    y_true, predictions = labels_and_predictions([0, 1])
    guard = RadaBound(1000, **PARAMETERS)
    holdout = Holdout(y_true, guard)
    holdout.query_many(predictions[:5])
    assert holdout.guard is guard and guard.n_answered == 5
    for name in ["halted", "n_queries", "complexity", "budget", "threshold", "seed"]:
        assert getattr(holdout, name) == getattr(guard, name)
    assert holdout.guarantee == guard.guarantee


def test_parameters_beside_a_guard_are_refused():
    with pytest.raises(TypeError, match=r"got a guard and \['epsilon'\]"):
        RadaBound([0, 1], epsilon=0.5, delta=0.5)


def test_a_guard_for_another_size_is_refused():
    with pytest.raises(
        ValueError, match="guard must be for the 3 samples of y_true, got one for 2"
    ):
        RadaBound([0, 1, 1], epsilon=0.5, delta=0.5)


@pytest.mark.parametrize(
    ("guard", "measured", "refused"),
    [
        (RadaBound(300, epsilon=0.3, delta=0.1), {}, ["reruns", "other"]),
        (DeclaredSearch(300, 9, delta=0.1), {}, ["trace", "n_threads", "other"]),
        (DeclaredSearch(300, 9, delta=0.1), {"metric": "f1"}, ["trace", "n_threads", "other"]),
        (
            FixedSequence(300, epsilon=0.3, delta=0.1, n_vectors=0),
            {"metric": "f1"},
            ["trace", "reruns"],
        ),
        (Ladder(300, step=0.1, delta=0.1), {}, ["trace", "reruns", "other"]),
    ],
)
def test_options_of_query_many_are_those_of_its_guard(guard, measured, refused):
    y_true = np.arange(300) % 2
    holdout = Holdout(y_true, guard, **measured)
    for option in refused:
        with pytest.raises(TypeError, match=f"got {option} for a {type(guard).__name__}$"):
            holdout.query_many(y_true[np.newaxis], **{option: 1})
    assert guard.n_answered == 0


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'compexity'"):
        _ = RadaBound([0, 1], epsilon=0.5, delta=0.5).compexity


def test_a_withheld_prediction_is_asked_once(monkeypatch):
    """What the compiled `query` withholds is not asked again in Python."""
    y_true, predictions = labels_and_predictions([0, 1], 300)
    parameters = PARAMETERS | {"epsilon": 0.09}
    holdout = Holdout(y_true, **parameters)
    holdout.query(predictions[0])  # from now on its dtype is known
    n_asked = 1 + holdout.guard.query_many(predictions[1:] != y_true).n_answered
    other = Holdout(y_true, **parameters)
    other.query(predictions[0])

    def asked_again(*_):
        raise AssertionError

    monkeypatch.setattr(Holdout, "_query", asked_again)
    for row in predictions[1:n_asked]:
        other.query(row)
    for _ in "the halting query", "one after it":
        with pytest.raises(HoldoutExhausted, match=f"spent after {n_asked} answers"):
            other.query(predictions[n_asked])


def test_the_halt_is_the_guard_s():
    y_true, predictions = labels_and_predictions([0, 1], n_queries=200)
    holdout = Holdout(y_true, **(PARAMETERS | {"epsilon": 0.08}))
    answers = holdout.query_many(predictions)
    assert answers.halted and holdout.halted
    with pytest.raises(HoldoutExhausted) as caught:
        holdout.query(predictions[0])
    assert caught.value.n_answered == holdout.n_answered == answers.n_answered


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
    holdout = RadaBound([0, 1, 1, 0], epsilon=0.99, delta=0.5, bound="mclt", seed=0)
    with pytest.raises(error, match=message):
        holdout.query(predictions)
    assert holdout.n_answered == 0 and holdout.complexity == 0.0
    assert "y_true" not in repr(holdout)


def test_a_bad_row_takes_the_whole_call_back():
    y_true, predictions = labels_and_predictions([0, 1], n_queries=700)
    predictions[650, 3] = 5
    holdout = Holdout(y_true, **(PARAMETERS | {"epsilon": 0.5}))
    with pytest.raises(ValueError, match="got 5 at row 650, sample 3"):
        holdout.query_many(predictions)
    assert holdout.n_answered == 0 and holdout.complexity == 0.0
