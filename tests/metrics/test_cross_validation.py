"""A declared search by cross-validation: what it answers, what it refuses, and what it keeps."""

import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import METRIC_OPTIONS, holdout_of

from radabound_fast import DeclaredSearch, bounds
from radabound_fast.metrics import FOLDED, METRICS

M, K, DELTA, N_KEYS = 400, 5, 0.1, 50
NATS = math.log(2 / DELTA) + math.log(N_KEYS)
rng = np.random.default_rng(61)
Y = (rng.random(M) < 0.3).astype(int)
CHANCES = np.clip(0.6 * Y + 0.4 * rng.random(M), 0, 1)
SAYS = {
    "classes": (CHANCES > 0.5).astype(int) ^ (rng.random(M) < 0.1),
    "probabilities": CHANCES,
    "numbers": CHANCES,
}


def by_folds(judged=M, **given):
    return DeclaredSearch(judged, N_KEYS, **{"delta": DELTA, "n_folds": K} | given)


def answer_by(name, n_folds=K, **given):
    judged = holdout_of(Y, metric=name, **METRIC_OPTIONS.get(name, {}), **given)
    return by_folds(judged, n_folds=n_folds).query(SAYS[METRICS[name].takes], key=7)


# ---- what a search answers ----------------------------------------------------------------------


def test_losses_have_the_interval_of_the_bound():
    losses = SAYS["classes"] != Y
    for given in (losses, losses * 0.75):
        answer = by_folds().query(given, key=3)
        assert answer.value == np.mean(given)
        expected = bounds.cross_validation_interval(answer.value, M, K, NATS)
        assert (answer.low, answer.high) == expected
    search = by_folds()
    by_count = search.interval_of_count(int(losses.sum()), key=3)
    assert by_count == search.interval_of_value(losses.mean(), key=3)
    many = search.query_many(np.stack([losses, losses]), keys=[3, 4])
    assert [(one.low, one.high) for one in many] == list(zip(many.lows, many.highs, strict=True))


N_ROWS = {"recall": int(Y.sum()), "specificity": int(M - Y.sum())}


@pytest.mark.parametrize("name", FOLDED)
def test_a_value_is_as_ever_and_its_limits_are_those_of_folds(name):
    answer = answer_by(name)
    plain = answer_by(name, n_folds=None)
    assert answer.value == plain.value
    least, most = (-1.0, 0.0) if name.startswith("neg_") else (0.0, 1.0)
    if name in ("neg_log_loss", "mean_cost"):
        least, most = {"neg_log_loss": (math.log(0.01), 0.0), "mean_cost": (0.0, 5.0)}[name]
    share = (answer.value - least) / (most - least)
    low, high = bounds.cross_validation_interval(share, N_ROWS.get(name, M), K, NATS)
    if name == "balanced_accuracy":
        worth = 4 / (1 / Y.sum() + 1 / (M - Y.sum()))
        low, high = bounds.weighted_cross_validation_interval(share, worth, K, NATS)
    assert answer.low == pytest.approx(least + (most - least) * low, rel=1e-9)
    assert answer.high == pytest.approx(least + (most - least) * high, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(METRICS) - set(FOLDED)))
def test_a_metric_that_is_no_mean_over_rows_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"metric must be a mean over rows.* {name!r} is proved"):
        by_folds(holdout_of(Y, metric=name))


def test_gains_and_comparisons_are_refused():
    with pytest.raises(ValueError, match="baseline must be left out in a search with n_folds"):
        by_folds(Y, baseline=Y)
    search = by_folds(Y)
    with pytest.raises(ValueError, match="compare needs a search without n_folds"):
        search.compare(Y, 1 - Y, key_a=1, key_b=2)
    assert search.n_answered == 0


@pytest.mark.parametrize("name", ["error", "accuracy", "neg_brier_score"])
def test_weights_and_groups_count_by_their_squares(name):
    weights, groups = rng.uniform(0.5, 2.0, M), np.arange(M) // 3
    answer = answer_by(name, sample_weight=weights, groups=groups)
    of_groups = np.bincount(groups, weights) / weights.sum()
    reach = math.sqrt(K * NATS * (of_groups**2).sum() / 2)
    plain = answer_by(name, n_folds=None, sample_weight=weights, groups=groups)
    assert answer.value == plain.value
    assert answer.half_width == pytest.approx(reach, rel=1e-9)


def test_one_side_is_for_a_nat_of_two_less():
    losses = SAYS["classes"] != Y
    answer = by_folds(two_sided=False).query(losses, key=3)
    nats = NATS - math.log(2)
    assert answer.low == 0.0
    assert answer.high == bounds.cross_validation_interval(answer.value, M, K, nats)[1]


def test_repeats_are_averaged_by_the_row():
    """Result 27: the mean of several cross-validations has the interval of one."""
    repeats = rng.random((3, M)) < 0.2
    answer = by_folds().query(repeats.mean(axis=0), key=0)
    assert answer.value == pytest.approx(repeats.mean(), abs=2.0**-24)


# ---- whose truth it is --------------------------------------------------------------------------


def test_everything_says_that_it_is_the_fold_models():
    search = by_folds(Y)
    answer = search.query(SAYS["classes"], key=7)
    assert answer.truth_of == "the 5 fold models on average"
    assert "truth_of='the 5 fold models on average'" in repr(answer)
    assert search.answers.to_dict().keys() == answer.to_dict().keys()
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert "n_folds=5" in repr(search)
    assert "of the 5 fold models of every answer, averaged over the rows" in search.guarantee
    assert "Of a model trained again on all rows nothing is said." in search.guarantee
    report = search.report()
    assert "in 5-fold cross-validation on 400 rows" in str(report)
    assert "for its 5 fold models on average (a refitted model is another one)" in str(report)
    assert '"n_folds": 5' in report.to_json()
    assert not hasattr(by_folds(n_folds=None).query(Y, key=0), "truth_of")


@pytest.mark.parametrize(
    ("n_folds", "error", "message"),
    [
        (1, ValueError, "n_folds must be at least 2, got 1"),
        (M + 1, ValueError, f"n_folds must be at most the number of rows, {M}, got {M + 1}"),
        (5.0, TypeError, "n_folds must be an integer, got 5.0"),
        (True, TypeError, "n_folds must be an integer, got True"),
    ],
)
def test_bad_folds_are_refused(n_folds, error, message):
    with pytest.raises(error, match=message):
        by_folds(n_folds=n_folds)


# ---- kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["error", "accuracy", "neg_brier_score"])
def test_an_opened_search_keeps_its_folds_and_refuses_others(tmp_path, name):
    path, judged = tmp_path / "search.db", holdout_of(Y, metric=name)
    given = {"space": N_KEYS, "delta": DELTA, "n_folds": K}
    made = DeclaredSearch.open(path, judged, **given)
    answer = made.query(SAYS[METRICS[name].takes], key=7)
    for again in (DeclaredSearch.open(path, Y), pickle.loads(pickle.dumps(made))):
        assert again.n_folds == K
        assert again.best == answer and again.best.truth_of == answer.truth_of
    assert DeclaredSearch.open(path).best == answer
    for other in (4, None):
        with pytest.raises(ValueError, match=f"n_folds must be 5, with which .* got {other}"):
            DeclaredSearch.open(path, judged, **given | {"n_folds": other})


# ---- the recipe for FLAML -----------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "cross-validate.md"

DATA = """
import numpy as np
from radabound_fast import DeclaredSearch
rng = np.random.default_rng(66)
X = rng.normal(size=(303, 4))
y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=303) > 0).astype(int)
"""


@pytest.mark.source
@pytest.mark.slow
def test_the_recipe_for_flaml_gives_every_trial_its_interval(tmp_path):
    pytest.importorskip("flaml")
    (code,) = re.findall(r"```python\n(import json\n.*?)```", PAGE.read_text(), re.S)
    script = tmp_path / "recipe.py"
    script.write_text(DATA + code)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"error (\S+), between (\S+) and (\S+)", done.stdout)
    assert len(lines) == 10
    nats = math.log(2 * 96 / 0.1)
    for error, low, high in np.array(lines, float):  # five folds of 60 rows at least
        expected = bounds.cross_validation_interval(error, 300, 5, nats)
        assert [low, high] == pytest.approx(expected, abs=0.0015)
