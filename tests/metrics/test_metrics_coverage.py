"""How often intervals of metrics miss the population's value: of one model, and in searches.

By the theorems a run misses with probability at most delta, so that a correct program has more
misses than `most_failures` with probability at most 1e-6 a test.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from support import METRIC_OPTIONS, most_failures, search_of

from radabound_fast.metrics import METRICS

P = 0.1  # of positive rows
N_BITS = 12
CLIP = METRIC_OPTIONS["neg_log_loss"]["clip"]
COSTS = np.array(METRIC_OPTIONS["mean_cost"]["costs"])


# ---- one model that knows something ----------------------------------------------------------


def truths(recall, fall_out):
    """Of a model with these rates of positive predictions among positive and negative rows."""
    hit, false, missed = P * recall, (1 - P) * fall_out, P * (1 - recall)
    return {
        "error": false + missed,
        "accuracy": 1 - false - missed,
        "balanced_accuracy": (recall + 1 - fall_out) / 2,
        "precision": hit / (hit + false),
        "recall": recall,
        "specificity": 1 - fall_out,
        "f1": 2 * hit / (2 * hit + false + missed),
    }


@pytest.mark.parametrize(
    "rates", [(0.7, 0.05), pytest.param((0.3, 0.3), marks=pytest.mark.thorough), (1.0, 0.001)]
)
@pytest.mark.parametrize("name", truths(0.5, 0.5))
@pytest.mark.parametrize("m", [50, 1000])
def test_an_interval_of_one_model_s_classes_holds_its_truth(name, rates, m):
    """600 runs with labels of their own, seed 31, delta .2."""
    rng, truth, missed = np.random.default_rng(31), truths(*rates)[name], 0
    row, nats = METRICS[name], np.array([math.log(2 / 0.2)])
    for _ in range(600):
        n_positive = rng.binomial(m, P)
        sizes = (m - n_positive, n_positive)
        if not n_positive and name in ("recall", "balanced_accuracy"):
            continue  # no holdout is made of these
        errors = rng.binomial(sizes[0], rates[1]), rng.binomial(sizes[1], 1 - rates[0])
        if name in ("error", "accuracy"):
            sizes, errors = (m,), (sum(errors),)
        lows, highs = row.interval(sizes, np.array([errors]), nats)
        missed += not lows[0] <= truth <= highs[0]
    assert missed <= most_failures(600, 0.2)


# ---- searches for the best of 4,096 models that know nothing ---------------------------------


class Noise:
    """Models that weigh columns of noise by +1 or -1, as the bits of the key say."""

    def __init__(self, rng, m):
        self.columns = rng.normal(size=(m, N_BITS))
        self.y_true = (rng.random(m) < P).astype(int)
        self.y_true[:2] = 0, 1  # so that there are both; known beforehand, and not of the law

    def predictions(self, name, bits):
        share = ndtr(self.columns @ (2 * bits - 1) / math.sqrt(N_BITS))  # uniform
        return (share > 0.5).astype(int) if METRICS[name].takes == "classes" else share


NOTHING = truths(0.5, 0.5) | {
    "roc_auc": 0.5,
    "neg_log_loss": -(1 - CLIP),
    "neg_brier_score": -1 / 3,
    "neg_mean_absolute_error": -1 / 2,
    "neg_mean_squared_error": -1 / 3,
    "mean_cost": float(np.array([1 - P, P]) @ COSTS.mean(axis=1)),
}


def a_search_misses(name, rng, m, delta, n_starts=1):
    """Coordinate ascent that sees every value: did any interval miss, would one alone have?"""
    noise = Noise(rng, m)
    # what is given is the labels, but for metrics that are means over them as well
    if METRICS[name].conditional_on != "the labels":
        noise.y_true = (rng.random(m) < P).astype(int)
    own = {"metric": name, "classes": [0, 1], "delta": delta, **METRIC_OPTIONS.get(name, {})}
    search = search_of(noise.y_true, 2**N_BITS, **own)
    sign = 1 if METRICS[name].greater_is_better else -1

    def value(bits):
        key = int(bits @ (1 << np.arange(N_BITS)))
        return sign * search.query(noise.predictions(name, bits), key=key).value

    for _ in range(n_starts):
        bits = rng.integers(0, 2, N_BITS)
        best = value(bits)
        improved = True
        while improved:
            improved = False
            for place in range(N_BITS):
                other = bits.copy()
                other[place] ^= 1
                if (found := value(other)) > best:
                    bits, best, improved = other, found, True
    answers, truth = search.answers, NOTHING[name]
    missed = bool(((answers.lows > truth) | (answers.highs < truth)).any())
    alone = search_of(noise.y_true, 1, **own).query(noise.predictions(name, bits), key=0)
    return missed, not alone.low <= truth <= alone.high


@pytest.mark.parametrize("name", METRICS)
def test_no_search_for_the_best_makes_an_interval_miss(name):
    """6 runs, seed 33, m = 200, delta .5."""
    rng = np.random.default_rng(33)
    missed = [a_search_misses(name, rng, 200, 0.5)[0] for _ in range(6)]
    assert sum(missed) <= most_failures(6, 0.5)


def test_an_interval_that_ignores_the_search_misses():
    """20 runs, seed 34: the best of a search is outside the interval of one key in most runs."""
    rng = np.random.default_rng(34)
    runs = [a_search_misses("accuracy", rng, 1000, 0.5) for _ in range(20)]
    missed, alone = np.array(runs).T
    assert missed.sum() <= most_failures(20, 0.5)
    assert alone.mean() > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.1, 0.5])
@pytest.mark.parametrize("m", [200, 1000, 4000, 20_000])
@pytest.mark.parametrize("name", METRICS)
def test_many_searches_by_each_metric(name, m, delta):
    """60 runs of 3 starts, 15 at m = 20,000, seed 35."""
    n_runs = 15 if m == 20_000 else 60
    rng = np.random.default_rng(35)
    missed = [a_search_misses(name, rng, m, delta, 3)[0] for _ in range(n_runs)]
    assert sum(missed) <= most_failures(n_runs, delta)


# ---- gains and comparisons ------------------------------------------------------------------


def gains_miss(rng, m, delta, n_models=20):
    """Models that change some answers of a baseline; the best is compared with the worst."""
    y_true = rng.integers(0, 2, m)
    base = rng.random(m) < 0.2
    search = search_of(y_true, delta=delta, baseline=y_true ^ base)
    # each flips what the baseline says in some rows: it errs less often by .2 a - .8 b
    rates = [(0.1, 0.02)] * n_models
    losses = [np.where(base, rng.random(m) >= a, rng.random(m) < b) for a, b in rates]
    truth = 0.2 * rates[0][0] - 0.8 * rates[0][1]
    error = 0.2 - truth
    answers = [search.query(y_true ^ one, key=key) for key, one in enumerate(losses)]
    scores = any(not a.low <= error <= a.high for a in answers)
    gains = any(not a.gain_low <= truth <= a.gain_high for a in answers)
    order = sorted(range(n_models), key=lambda key: answers[key].value)
    best, worst = order[0], order[-1]
    compared = search.compare(
        y_true ^ losses[best], y_true ^ losses[worst], key_a=best, key_b=worst
    )
    return scores or gains, not compared.gain_low <= 0 <= compared.gain_high


@pytest.mark.parametrize("m", [30, 1000])
def test_scores_gains_and_comparisons_of_extremes_hold_together(m):
    """100 runs, seed 36, delta .3."""
    rng = np.random.default_rng(36)
    missed, compared = np.array([gains_miss(rng, m, 0.3) for _ in range(100)]).T
    assert missed.sum() <= most_failures(100, 0.3)
    assert compared.sum() <= most_failures(100, 0.3)


@pytest.mark.thorough
@pytest.mark.parametrize("m", [50, 500])
def test_gains_of_a_brier_score_hold(m):
    """200 runs, seed 38, delta .2: models of known probabilities, off by a little or a lot."""
    rng = np.random.default_rng(38)
    missed = 0
    for _ in range(200):
        chances = rng.random(m)
        y_true = (rng.random(m) < chances).astype(int)
        models = [0.5 + slope * (chances - 0.5) for slope in (1.0, 0.6, 0.2)]
        # E (y - p)^2 = Var + (1 - slope)^2 E (chance - 1/2)^2
        worse = [(1 - slope) ** 2 / 12 for slope in (1.0, 0.6, 0.2)]
        own = {"metric": "neg_brier_score", "classes": [0, 1], "baseline": models[1]}
        answers = search_of(y_true, 3, delta=0.2, **own).query_many(models, keys=[0, 1, 2])
        truths = worse[1] - np.array(worse)
        missed += ((answers.gain_lows > truths) | (answers.gain_highs < truths)).any()
    assert missed <= most_failures(200, 0.2)


# ---- groups ------------------------------------------------------------------------------------


def test_groups_are_covered_and_rows_taken_for_independent_are_not():
    """200 runs, seed 37, delta .2: 60 patients with 1 to 40 rows, all wrong or all right."""
    rng = np.random.default_rng(37)
    missed = alone = 0
    for _ in range(200):
        groups = np.repeat(np.arange(60), rng.integers(1, 41, 60))
        m, truth = len(groups), 0.3
        y_true = np.zeros(m, int)
        y_pred = (rng.random(60) < truth).astype(int)[groups]
        for own in ({"groups": groups}, {}):
            search = search_of(y_true, 1, classes=[0, 1], delta=0.2, **own)
            answer = search.query(y_pred, key=0)
            out = not answer.low <= truth <= answer.high
            missed, alone = missed + (out if own else 0), alone + (0 if own else out)
    assert missed <= most_failures(200, 0.2)
    assert alone > 100
