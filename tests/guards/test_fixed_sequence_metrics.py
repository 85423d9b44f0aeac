"""Metrics in a fixed order: `FixedSequence`, the union part of "fixed-sequence" by itself.

By Result 29 a run of a coverage test misses with probability at most delta, so that a correct
program has more misses than `most_failures` with probability at most 1e-6 a test.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    bounds,
)
from radabound_fast.metrics import METRICS

M = 500
RNG = np.random.default_rng(81)
Y = (RNG.random(M) < 0.3).astype(int)
CHANCES = np.clip(0.5 * Y + 0.5 * RNG.random(M), 0, 1)
SAYS = {
    "classes": (CHANCES > 0.5).astype(int) ^ (RNG.random(M) < 0.1),
    "scores": CHANCES,
    "probabilities": CHANCES,
    "numbers": CHANCES,
}
OPTIONS = {
    "neg_log_loss": {"clip": 0.01},
    "neg_mean_absolute_error": {"y_range": (0, 1)},
    "neg_mean_squared_error": {"y_range": (0, 1)},
    "mean_cost": {"costs": [[0, 1], [5, 0]]},
}


def most_failures(n_runs, delta):
    return int(binom.isf(1e-6, n_runs, delta))


def holdout_of(name, epsilon=9.0, **given):
    guard = FixedSequence(M, epsilon=epsilon, delta=0.1, max_queries=given.pop("max_queries", None))
    return Holdout(Y, guard, metric=name, **OPTIONS.get(name, {}), **given)


@pytest.mark.parametrize("name", METRICS)
def test_an_answer_has_the_interval_of_its_metric_at_its_place(name):
    holdout = holdout_of(name)
    says = SAYS[METRICS[name].takes]
    answers = [holdout.query(says) for _ in range(3)]
    for answer, weight in zip(answers, (1 / 2, 1 / 12, 1 / 12), strict=True):
        space = type("Space", (), {"nats": lambda self, key, w=weight: -math.log(w)})()
        search = DeclaredSearch(M, space, delta=0.1)
        expected = Holdout(Y, search, metric=name, **OPTIONS.get(name, {})).query(says, key=0)
        told = (expected.value, expected.low, expected.high)
        assert (answer.value, answer.low, answer.high) == pytest.approx(told, rel=1e-12)
    many = holdout_of(name).query_many(np.stack([says] * 3))
    assert list(many) == answers and many.numbers.tolist() == [1, 2, 3]


def test_losses_are_answered_by_the_union_bound():
    guard = FixedSequence(M, epsilon=0.9, delta=0.1, max_queries=10)
    losses = SAYS["classes"] != Y
    nats = math.log(4 * 10 / 0.1)
    guard.query(losses)
    for given, expected in (
        (losses, bounds.binomial_interval(int(losses.sum()), M, nats)),
        (losses * 0.5, bounds.kl_interval(losses.mean() / 2, M, nats)),
    ):
        answer = guard.query(given)
        assert (answer.low, answer.high) == pytest.approx(expected, rel=1e-12)
    assert Holdout(Y, FixedSequence(M, epsilon=0.9, delta=0.1)).query(Y).value == 0.0


def test_it_halts_at_the_first_answer_that_is_not_within_epsilon():
    holdout = holdout_of("roc_auc", epsilon=0.07)
    answers = holdout.query_many(np.tile(CHANCES, (10_000, 1)))
    assert answers.halted and 1 < len(answers) < 10_000
    assert (answers.half_widths <= 0.07).all() and holdout.halted
    with pytest.raises(HoldoutExhausted, match="has halted and answers no more"):
        holdout.query(CHANCES)
    with pytest.raises(HoldoutExhausted, match="spent after 0 answers: the next is not known"):
        holdout_of("roc_auc", epsilon=0.01).query(CHANCES)


def test_weights_and_groups_go_along():
    weights, groups = RNG.uniform(0.5, 2, M), np.arange(M) // 2
    answer = holdout_of("accuracy", sample_weight=weights, groups=groups).query(SAYS["classes"])
    right = SAYS["classes"] == Y
    assert answer.value == pytest.approx(np.average(right, weights=weights))
    of_groups = np.bincount(groups, weights)
    expected = bounds.weighted_interval(answer.value, of_groups, 1, math.log(2 * 2 / 0.1))
    assert (answer.low, answer.high) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("given", [{"sample_weight": np.arange(1.0, M + 1)}, {"groups": Y}])
def test_a_guarantee_names_weights_and_groups_where_they_are_given(given):
    said = "or groups of them where groups are given, and weights that were fixed before"
    for guard, has in (
        (FixedSequence(M, epsilon=9.0, delta=0.1), said),
        (DeclaredSearch(M, 5, delta=0.1), said),
        (
            DeclaredSearch(M, 5, delta=0.1, n_folds=5),
            said.replace("given,", "given, each in one fold,"),
        ),
    ):
        assert "Assumed: independent held-out examples" in guard.guarantee
        assert "weights" not in guard.guarantee
        weighted = Holdout(Y, guard, metric="accuracy", **given)
        assert f"Assumed: independent held-out examples, {has}" in weighted.guarantee
    own = RadaBound(M, epsilon=0.9, delta=0.1, bound="fixed-sequence", **given).guarantee
    assert "Weights (rounded to about 2**-24" in own and "rows of different groups be" in own


def test_what_it_does_not_do_is_refused_by_name():
    with pytest.raises(ValueError, match="baseline needs a DeclaredSearch, got a FixedSequence"):
        holdout_of("accuracy", baseline=Y)
    holdout = holdout_of("roc_auc")
    with pytest.raises(TypeError, match="roc_band needs a DeclaredSearch"):
        holdout.roc_band(CHANCES, key=0)
    with pytest.raises(TypeError, match="only a DeclaredSearch is asked by key"):
        holdout.query(CHANCES, key=0)
    with pytest.raises(ValueError, match="answers the population's roc_auc: ask its Holdout"):
        holdout.guard.query(Y)
    with pytest.raises(ValueError, match="one of its own for each holdout and metric"):
        Holdout(Y, holdout.guard, metric="f1")
    for guard in (RadaBound(M, epsilon=0.1, delta=0.1), Ladder(M, step=0.1, delta=0.1)):
        with pytest.raises(ValueError, match="'f1' needs a DeclaredSearch, or in a fixed order a"):
            Holdout(Y, guard, metric="f1")
    with pytest.raises(ValueError, match="epsilon must be positive, got 0.0"):
        FixedSequence(M, epsilon=0, delta=0.1)


@pytest.mark.parametrize("name", [None, "roc_auc", "neg_brier_score"])
def test_it_lives_in_a_database_that_knows_its_metric(tmp_path, name):
    path, given = tmp_path / "guard.db", {"epsilon": 0.5, "delta": 0.1}
    says = SAYS[METRICS[name or "error"].takes]
    with Holdout.open(path, Y, FixedSequence, metric=name, **given) as made:
        first = made.query(says)
    for again in ({"metric": name, **given}, {}):
        with Holdout.open(path, Y, FixedSequence, **again) as holdout:
            assert holdout.metric == (name or "error")
            assert holdout.query(says).value == first.value
    assert FixedSequence.open(path).n_queries == 3
    with pytest.raises(ValueError, match="metric must be|guard must be one of its own"):
        Holdout.open(path, Y, FixedSequence, metric="f1", **given)


def test_an_error_changes_nothing():
    holdout = holdout_of("roc_auc")
    for bad in (CHANCES[:-1], np.full(M, np.nan), CHANCES[np.newaxis]):
        with pytest.raises(ValueError, match="y_pred|score|finite|shape"):
            holdout.query(bad)
    assert holdout.n_queries == 0 and not holdout.halted


@pytest.mark.parametrize("name", ["roc_auc", "f1", "neg_brier_score"])
def test_no_answer_of_a_fixed_sequence_is_off(name):
    """60 runs of up to 20 models that know nothing, seed 82, delta .3, m = 200."""
    rng, missed, n_answers = np.random.default_rng(82), 0, 0
    truth = {"roc_auc": 0.5, "f1": 2 * 0.15 / (2 * 0.15 + 0.35 + 0.15), "neg_brier_score": -1 / 3}
    epsilon = {"roc_auc": 0.19, "f1": 0.17, "neg_brier_score": 0.09}[name]
    for _ in range(60):
        y = (rng.random(200) < 0.3).astype(int)
        y[:2] = (0, 1) if name == "roc_auc" else y[:2]
        guard = FixedSequence(200, epsilon=epsilon, delta=0.3)
        holdout = Holdout(y, guard, metric=name, classes=[0, 1])
        says = rng.random((20, 200))
        answers = holdout.query_many((says > 0.5).astype(int) if name == "f1" else says)
        off = abs(answers.values - truth[name]) > epsilon
        outside = (answers.lows > truth[name]) | (answers.highs < truth[name])
        missed, n_answers = missed + bool((off | outside).any()), n_answers + len(answers)
    assert missed <= most_failures(60, 0.3)
    assert n_answers > 60
