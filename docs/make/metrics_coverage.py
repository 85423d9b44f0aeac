"""Make the tables of evidence/coverage-of-metrics.md, in some minutes:

    python docs/make/metrics_coverage.py

Seed 2027, delta = .1.  A search climbs 1,024 models that know nothing, whose truth is the same
known number, by their values: from a random key, the first of its ten neighbours that is better,
until none is.  Cross-validation is of four learners on rows of a population of 2,000 points, over
which the truth of every fold model is its mean.  The worst learner predicts a fair coin x times the
signs of the other folds' correlations of x with the label, so that all folds err the same way; or
it takes one of two models, which err on different rows, by such signs.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from marked import fill
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from radabound_fast import DeclaredSearch, Holdout, bounds
from radabound_fast.metrics import METRICS, AbsoluteError, Cost, LogLoss, SquaredError

PAGE = Path(__file__).parents[1] / "evidence" / "coverage-of-metrics.md"
SEED, DELTA, P, N_BITS, CLIP = 2027, 0.1, 0.1, 10, 0.01
RUNS = {200: 100, 1000: 100, 4000: 40, 20_000: 10}
N_FIXED = 400
N_WORST = 200_000
COSTS = np.array([[0.0, 1.0], [5.0, 0.5]])
WITH_OPTIONS: dict[str, Any] = {
    "mean_cost": Cost(COSTS),
    "neg_log_loss": LogLoss(clip=CLIP),
    "neg_mean_absolute_error": AbsoluteError(y_range=(0, 1)),
    "neg_mean_squared_error": SquaredError(y_range=(0, 1)),
}
# of a fair coin, or of a uniform number
TRUTHS = {
    "error": 0.5,
    "accuracy": 0.5,
    "balanced_accuracy": 0.5,
    "precision": P,
    "recall": 0.5,
    "specificity": 0.5,
    "f1": P / (P + 0.5),
    "mean_cost": float(np.array([1 - P, P]) @ COSTS.mean(axis=1)),
    "roc_auc": 0.5,
    "neg_log_loss": -(1 - CLIP),
    "neg_brier_score": -1 / 3,
    "neg_mean_absolute_error": -1 / 2,
    "neg_mean_squared_error": -1 / 3,
}


def misses(name: str, m: int, rng: np.random.Generator, climbs: bool = True) -> tuple[bool, ...]:
    """Whether any interval of a search misses, and that of one key at its best.

    If it does not climb, whether that of one key at a fixed model does.
    """
    columns, y_true = rng.normal(size=(m, N_BITS)), (rng.random(m) < P).astype(int)
    if METRICS[name].conditional_on == "the labels":
        y_true[:2] = 0, 1  # which these need; known beforehand
    row = METRICS[name]
    sign = 1 if row.greater_is_better else -1
    measured = {"metric": WITH_OPTIONS.get(name, name), "classes": [0, 1]}
    search, one_key = (
        DeclaredSearch(Holdout(y_true, **measured), size, delta=DELTA) for size in (2**N_BITS, 1)
    )
    truth = TRUTHS[name]

    def says(bits: Any) -> Any:
        share = ndtr(columns @ (2 * bits - 1) / math.sqrt(N_BITS))
        return (share > 0.5).astype(int) if row.takes == "classes" else share

    def value(bits: Any) -> float:
        key = int(bits @ (1 << np.arange(N_BITS)))
        return sign * float(search.query(says(bits), key=key).value)

    bits = rng.integers(0, 2, N_BITS)
    if not climbs:
        fixed = one_key.query(says(bits), key=0)
        return (not fixed.low <= truth <= fixed.high,)
    best, better = value(bits), True
    while better:
        better = False
        for place in range(N_BITS):
            other = bits.copy()
            other[place] ^= 1
            if (found := value(other)) > best:
                bits, best, better = other, found, True
    answers = search.answers
    alone = one_key.query(says(bits), key=0)
    return (
        bool(((answers.lows > truth) | (answers.highs < truth)).any()),
        not alone.low <= truth <= alone.high,
    )


def of_metrics() -> str:
    lines = [
        "| metric | " + " | ".join(f"m = {m:,}" for m in RUNS) + " |",
        "|---" * (len(RUNS) + 1) + "|",
    ]
    for name in METRICS:
        cells = []
        for m, n_runs in RUNS.items():
            rng = np.random.default_rng([SEED, m])
            fixed = np.mean([misses(name, m, rng, climbs=False) for _ in range(N_FIXED)])
            searched = np.mean([misses(name, m, rng) for _ in range(n_runs)], axis=0)
            shares = [fixed, *searched]
            cells.append(" / ".join(f"{share:.2f}".removeprefix("0") for share in shares))
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def of_folds() -> str:
    own = np.random.default_rng(SEED)
    X, n = own.normal(size=(2000, 6)), 2000
    y = (own.random(n) < 1 / (1 + np.exp(0.8 - 2 * X[:, 0] - 2 * X[:, 1] * X[:, 2]))).astype(int)
    models: list[Any] = [DecisionTreeClassifier(max_depth=d, random_state=0) for d in (1, 3, None)]
    models.append(LogisticRegression(C=0.1))
    lines = ["| m | runs | with a miss | largest error, in half-widths |", "|---|---|---|---|"]
    for m, n_runs in ((50, 200), (200, 200), (1000, 50)):
        missed, largest = 0, 0.0
        for _ in range(n_runs):
            rows, folds = own.integers(0, n, m), own.permutation(np.arange(m) % 5)
            search = DeclaredSearch(m, len(models), delta=DELTA, n_folds=5)
            errors = []
            for key, model in enumerate(models):
                wrong, truth = np.empty(m, bool), 0.0
                for fold in range(5):
                    there = folds == fold
                    model.fit(X[rows[~there]], y[rows[~there]])
                    all_wrong = model.predict(X) != y
                    wrong[there] = all_wrong[rows[there]]
                    truth += all_wrong.mean() * there.mean()
                answer = search.query(wrong, key=key)
                errors.append(abs(answer.value - truth) / answer.half_width)
            missed += max(errors) > 1
            largest = max(largest, *errors)
        lines.append(f"| {m:,} | {n_runs} | {missed} | {largest:.2f} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def of_worst_learners() -> str:
    """How often limits at delta = .1 and .5 miss, and those that take all rows for independent."""
    rng = np.random.default_rng(SEED)
    lines = [
        "| m, folds | error | delta | missed by the interval | by Chernoff for m rows |",
        "|---|---|---|---|---|",
    ]
    for m, k in ((40, 2), (200, 5), (1000, 5), (1000, 10)):
        n = m // k
        fair = rng.binomial(n, 0.5, (N_WORST, k)) / n
        sign = np.where(fair >= 0.5, 1, -1).prod(axis=1)
        of_coins = 0.5 - sign * np.abs(fair - 0.5).mean(axis=1)
        first = rng.binomial(n, 0.03, (N_WORST, k))
        second = rng.binomial(n - first, 0.03 / 0.97)
        others = np.where(first >= second, 1, -1)
        others = others.prod(axis=1, keepdims=True) * others
        of_rare = np.where(others > 0, first, second).sum(axis=1) / m
        for truth, scores in ((0.5, of_coins), (0.03, of_rare)):
            for delta in (0.1, 0.5):
                nats, cells = math.log(2 / delta), []
                for lows, highs in (
                    bounds.cross_validation_interval(scores, m, k, nats),
                    bounds.kl_interval(scores, m, nats),
                ):
                    cells.append(f"{((lows > truth) | (highs < truth)).mean():.4f}")
                lines.append(f"| {m:,}, {k} | {truth:g} | {delta:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    fill(PAGE, "coverage of worst learners", of_worst_learners())
    fill(PAGE, "coverage of folds", of_folds())
    fill(PAGE, "coverage of metrics", of_metrics())
