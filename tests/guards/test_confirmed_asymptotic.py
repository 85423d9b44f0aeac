"""Asymptotic limits beside the proved ones of a confirmed search: where they are, and what of."""

import json

import numpy as np
import pytest
from support import METRIC_OPTIONS, holdout_of

from radabound_fast import ConfirmedSearch, Losses, bounds
from radabound_fast.metrics import METRICS

M = 1000
ON_B = np.arange(M) >= 400
rng = np.random.default_rng(9)
Y = (rng.random(M) < 0.3).astype(int)
CHANCES = np.clip(0.5 * Y + 0.5 * rng.random(M), 0.01, 0.99)
SAYS = {
    "classes": (CHANCES > 0.5).astype(int) ^ (rng.random(M) < 0.1),
    "scores": CHANCES + 0.2 * rng.normal(size=M),
    "probabilities": CHANCES,
    "numbers": CHANCES,
}
HAVE = {"balanced_accuracy", "roc_auc", *METRIC_OPTIONS, "neg_brier_score"}


def confirmed(name, **given):
    holdout = holdout_of(Y, metric=name, **METRIC_OPTIONS.get(name, {}), **given)
    search = ConfirmedSearch(holdout, delta=0.1, rows=ON_B)
    return search, search.confirm({"a": SAYS[METRICS[name].takes]})["a"]


@pytest.mark.parametrize("name", METRICS)
def test_metrics_with_much_wider_proved_limits_have_them(name):
    search, answer = confirmed(name)
    assert (answer.asymptotic_low is not None) == (name in HAVE)
    if name not in HAVE:
        assert answer.asymptotic_high is None
        assert "asymptotic" not in answer.to_dict() and "asymptotic" not in str(search.report())
        return
    assert answer.low <= answer.asymptotic_low < answer.value < answer.asymptotic_high
    assert answer.asymptotic_high <= answer.high
    assert answer.to_dict()["asymptotic_low"] == answer.asymptotic_low
    assert "By the normal approximation, which is asymptotic" in str(search.report())
    assert (
        json.loads(search.report().to_json())["best"]["asymptotic_high"] == answer.asymptotic_high
    )


def test_they_are_those_of_the_bounds_on_the_confirmation_rows():
    _, answer = confirmed("roc_auc")
    scores = SAYS["scores"][ON_B]
    positive, negative = scores[Y[ON_B] == 1], scores[Y[ON_B] == 0]
    expected = bounds.asymptotic_auc_interval(positive, negative, answer.nats)
    assert (answer.asymptotic_low, answer.asymptotic_high) == pytest.approx(expected)
    _, answer = confirmed("neg_brier_score")
    low, high = bounds.asymptotic_mean_interval(((CHANCES - Y) ** 2)[ON_B], answer.nats)
    assert (answer.asymptotic_low, answer.asymptotic_high) == pytest.approx((-high, -low))


@pytest.mark.parametrize("name", ["error", "accuracy", "neg_brier_score"])
def test_weights_and_groups_have_them_by_groups(name):
    weights, groups = rng.uniform(0.5, 2.0, M), np.arange(M) // 4
    _, answer = confirmed(name, sample_weight=weights, groups=groups)
    losses = {"neg_brier_score": (CHANCES - Y) ** 2, "error": SAYS["classes"] != Y,
              "accuracy": SAYS["classes"] == Y}[name][ON_B]  # fmt: skip
    low, high = bounds.asymptotic_mean_interval(
        losses, answer.nats, weights=weights[ON_B], groups=groups[ON_B] - groups[ON_B].min()
    )
    if name.startswith("neg_"):
        low, high = -high, -low
    assert (answer.asymptotic_low, answer.asymptotic_high) == pytest.approx((low, high))


def test_real_valued_losses_have_them_and_binary_ones_have_not():
    search = ConfirmedSearch(Losses(M), delta=0.1, rows=ON_B)
    told = search.confirm({"real": rng.random(M), "binary": rng.random(M) < 0.2, "same": [0.5] * M})
    assert told["real"].asymptotic_low is not None
    assert told["binary"].asymptotic_low is None and told["same"].asymptotic_low is None


def test_they_are_kept_in_a_database_and_wait_for_the_end(tmp_path):
    path, holdout = tmp_path / "search.db", holdout_of(Y, metric="roc_auc")
    search = ConfirmedSearch.open(path, holdout, delta=0.1, rows=ON_B, n_batches=2)
    first = search.confirm({"a": SAYS["scores"]})["a"]
    assert first.asymptotic_low is None
    search.confirm({"b": SAYS["scores"][::-1]})
    again = ConfirmedSearch.open(path)
    assert again.answers["a"].asymptotic_low is not None
    assert again.answers["a"].asymptotic_low == search.answers["a"].asymptotic_low
