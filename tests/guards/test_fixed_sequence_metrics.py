"""Metrics in a fixed order: a `FixedSequence` that uses the union bound alone.

By Result 29 a run of a coverage test misses with probability at most delta, so that a correct
program has more misses than `most_failures` with probability at most 1e-6 a test.
"""

import math

import numpy as np
import pytest
from support import most_failures

from radabound_fast import (
    DeclaredSearch,
    FixedSequence,
    Holdout,
    HoldoutExhausted,
    Ladder,
    Losses,
    RadaBound,
    bounds,
    pack_losses,
)
from radabound_fast.guards import fixed_sequence
from radabound_fast.metrics import MEANS, METRICS, choice_of

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


def judged_by(name, **given):
    return Holdout(Y, metric=choice_of(name, OPTIONS.get(name, {})), **given)


def guard_by(name, epsilon=9.0, max_queries=None, **given):
    judged = judged_by(name, **given)
    return FixedSequence(judged, epsilon=epsilon, delta=0.1, max_queries=max_queries, n_vectors=0)


@pytest.mark.parametrize("name", METRICS)
def test_an_answer_has_the_interval_of_its_metric_at_its_place(name):
    guard = guard_by(name)
    says = SAYS[METRICS[name].takes]
    answers = [guard.query(says) for _ in range(3)]
    for answer, weight in zip(answers, (1 / 2, 1 / 12, 1 / 12), strict=True):
        space = type("Space", (), {"nats": lambda self, key, w=weight: -math.log(w)})()
        expected = DeclaredSearch(judged_by(name), space, delta=0.1).query(says, key=0)
        told = (expected.value, expected.low, expected.high)
        assert (answer.value, answer.low, answer.high) == pytest.approx(told, rel=1e-12)
    many = guard_by(name).query_many(np.stack([says] * 3))
    assert list(many) == answers and many.numbers.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "weighted"), [*((name, False) for name in METRICS), *((name, True) for name in MEANS)]
)
def test_a_block_is_bit_for_bit_what_its_rows_are_one_by_one(monkeypatch, name, weighted):
    """Up to the same halt, over the ends of the steps in which a metric judges rows."""
    monkeypatch.setattr(fixed_sequence, "_BLOCK_ROWS", 4)
    rng = np.random.default_rng(5)
    says = SAYS[METRICS[name].takes]
    share = 0.05 * np.arange(13)[:, np.newaxis]
    rows = np.where(rng.random((13, M)) < share, says[::-1], says)
    given = {"sample_weight": rng.random(M)} if weighted else {}
    widths = [one.half_width for one in guard_by(name, **given).query_many(rows)]
    for epsilon in (9.0, max(widths[:7]), widths[0] / 2):
        many = guard_by(name, epsilon, **given).query_many(rows)
        guard, answers = guard_by(name, epsilon, **given), []
        for row in rows:
            try:
                answers.append(guard.query(row))
            except HoldoutExhausted:
                break
        assert list(many) == answers and many.halted is guard.halted


def test_losses_are_answered_by_the_union_bound():
    guard = FixedSequence(M, epsilon=0.9, delta=0.1, max_queries=10, n_vectors=0)
    losses = SAYS["classes"] != Y
    nats = math.log(4 * 10 / 0.1)
    guard.query(losses)
    for given, expected in (
        (losses, bounds.binomial_interval(int(losses.sum()), M, nats)),
        (losses * 0.5, bounds.kl_interval(losses.mean() / 2, M, nats)),
    ):
        answer = guard.query(given)
        assert (answer.low, answer.high) == pytest.approx(expected, rel=1e-12)
    on_labels = FixedSequence(Y, epsilon=0.9, delta=0.1, n_vectors=0)
    assert (
        on_labels.query(Y).value == 0.0
        and on_labels.query(pack_losses(losses)).value == losses.mean()
    )


def test_it_halts_at_the_first_answer_that_is_not_within_epsilon():
    guard = guard_by("roc_auc", epsilon=0.07)
    answers = guard.query_many(np.tile(CHANCES, (10_000, 1)))
    assert answers.halted and 1 < len(answers) < 10_000
    assert (answers.half_widths <= 0.07).all() and guard.halted
    with pytest.raises(HoldoutExhausted, match="has halted and answers no more"):
        guard.query(CHANCES)
    with pytest.raises(HoldoutExhausted, match="spent after 0 answers: the next is not known"):
        guard_by("roc_auc", epsilon=0.01).query(CHANCES)


def test_weights_and_groups_go_along():
    weights, groups = RNG.uniform(0.5, 2, M), np.arange(M) // 2
    answer = guard_by("accuracy", sample_weight=weights, groups=groups).query(SAYS["classes"])
    right = SAYS["classes"] == Y
    assert answer.value == pytest.approx(np.average(right, weights=weights))
    of_groups = np.bincount(groups, weights)
    expected = bounds.weighted_interval(answer.value, of_groups, 1, math.log(2 * 2 / 0.1))
    assert (answer.low, answer.high) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("given", [{"sample_weight": np.arange(1.0, M + 1)}, {"groups": Y}])
def test_a_guarantee_names_weights_and_groups_if_there_are_any(given):
    said = "or groups of them where groups are given, and weights that were fixed before"
    in_folds = said.replace("given,", "given, each in one fold,")
    for make, has in (
        (lambda judged: FixedSequence(judged, epsilon=9.0, delta=0.1), said),
        (lambda judged: DeclaredSearch(judged, 5, delta=0.1), said),
        (lambda judged: DeclaredSearch(judged, 5, delta=0.1, n_folds=5), in_folds),
    ):
        plain = make(judged_by("accuracy")).guarantee
        assert "Assumed: independent held-out examples" in plain and "weights" not in plain
        assert (
            f"Assumed: independent held-out examples, {has}"
            in make(judged_by("accuracy", **given)).guarantee
        )
    own = FixedSequence(Losses(M, **given), epsilon=0.9, delta=0.1).guarantee
    assert "Weights (rounded to about 2**-24" in own and "rows of different groups be" in own


def test_what_it_does_not_do_is_refused_by_name():
    for make in (
        lambda judged: RadaBound(judged, epsilon=0.1, delta=0.1),
        lambda judged: Ladder(judged, step=0.1, delta=0.1),
    ):
        with pytest.raises(ValueError, match="metric must be 'error' .* got 'f1': DeclaredSearch"):
            make(judged_by("f1"))
    for epsilon in (0, -0.1):
        with pytest.raises(ValueError, match=f"epsilon must be positive, got {float(epsilon)}"):
            FixedSequence(M, epsilon=epsilon, delta=0.1, n_vectors=0)
    with pytest.raises(
        ValueError, match="n_vectors must be at least 1 for losses with sample_weig"
    ):
        FixedSequence(Losses(M, groups=Y), epsilon=0.1, delta=0.1, n_vectors=0)
    for name in ("roc_band", "compare", "report", "interval", "best", "task", "take", "budget"):
        assert not hasattr(guard_by("roc_auc"), name)


@pytest.mark.parametrize("name", ["error", "roc_auc", "neg_brier_score"])
def test_it_lives_in_a_database_that_knows_its_metric(tmp_path, name):
    path, given = tmp_path / "guard.db", {"epsilon": 0.5, "delta": 0.1, "n_vectors": 0}
    says = SAYS[METRICS[name].takes]
    with FixedSequence.open(path, judged_by(name), **given) as made:
        first = made.query(says)
    for judged, again in ((judged_by(name), given), (judged_by(name), {}), (Y, {})):
        with FixedSequence.open(path, judged, **again) as guard:
            assert guard.holdout.metric == name
            assert guard.query(says).value == first.value
    with FixedSequence.open(path, Y) as guard:
        assert guard.n_answered == 4
    with pytest.raises(ValueError, match="judged must be given: the labels"):
        FixedSequence.open(path)
    for again in (given, {}):
        with pytest.raises(ValueError, match="metric, its options, .* must be those with which"):
            FixedSequence.open(path, judged_by("f1"), **again)


@pytest.mark.parametrize(
    "other",
    [
        {"metric": choice_of("neg_log_loss", {"clip": 0.02})},
        {"metric": choice_of("neg_log_loss", {"clip": 0.01}), "sample_weight": np.arange(1.0, 501)},
        {"metric": choice_of("neg_log_loss", {"clip": 0.01}), "groups": np.arange(500) // 2},
        {"metric": "neg_brier_score"},
    ],
)
def test_a_database_opens_for_its_own_metric_options_and_weights(tmp_path, other):
    given = {"epsilon": 9.0, "delta": 0.1}
    FixedSequence.open(tmp_path / "guard.db", judged_by("neg_log_loss"), **given).close()
    for again in (given, {}):
        with pytest.raises(ValueError, match="must be those with which"):
            FixedSequence.open(tmp_path / "guard.db", Holdout(Y, **other), **again)


def test_an_error_changes_nothing():
    guard = guard_by("roc_auc")
    for bad in (CHANCES[:-1], np.full(M, np.nan), CHANCES[np.newaxis]):
        with pytest.raises(ValueError, match="y_pred|score|finite|shape"):
            guard.query(bad)
    assert guard.n_answered == 0 and not guard.halted


@pytest.mark.parametrize("name", ["roc_auc", "f1", "neg_brier_score"])
def test_no_answer_of_a_fixed_sequence_is_off(name):
    """60 runs of up to 20 models that know nothing, seed 82, delta .3, m = 200."""
    rng, missed, n_answers = np.random.default_rng(82), 0, 0
    truth = {"roc_auc": 0.5, "f1": 2 * 0.15 / (2 * 0.15 + 0.35 + 0.15), "neg_brier_score": -1 / 3}
    epsilon = {"roc_auc": 0.19, "f1": 0.17, "neg_brier_score": 0.09}[name]
    for _ in range(60):
        y = (rng.random(200) < 0.3).astype(int)
        y[:2] = (0, 1) if name == "roc_auc" else y[:2]
        judged = Holdout(y, metric=name, classes=[0, 1])
        guard = FixedSequence(judged, epsilon=epsilon, delta=0.3)
        says = rng.random((20, 200))
        answers = guard.query_many((says > 0.5).astype(int) if name == "f1" else says)
        off = abs(answers.values - truth[name]) > epsilon
        outside = (answers.lows > truth[name]) | (answers.highs < truth[name])
        missed, n_answers = missed + bool((off | outside).any()), n_answers + len(answers)
    assert missed <= most_failures(60, 0.3)
    assert n_answers > 60


@pytest.mark.parametrize("error", [0.0, 0.02, 0.98, 1.0])
def test_it_halts_by_the_longer_side_whichever_that_is(error):
    m, y_true = 400, np.arange(400) % 2
    wrong = np.arange(m) < round(error * m)
    wide = FixedSequence(y_true, epsilon=0.9, delta=0.1, n_vectors=0).query(y_true ^ wrong)
    below, above = wide.value - wide.low, wide.high - wide.value
    longer, shorter = max(below, above), min(below, above)
    assert shorter < 0.8 * longer and wide.half_width == longer
    enough, less = longer * (1 + 1e-9), (longer + shorter) / 2
    assert FixedSequence(y_true, epsilon=enough, delta=0.1, n_vectors=0).query(y_true ^ wrong)
    with pytest.raises(HoldoutExhausted):
        FixedSequence(y_true, epsilon=less, delta=0.1, n_vectors=0).query(y_true ^ wrong)
