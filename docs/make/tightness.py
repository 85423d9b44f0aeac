"""Make the tables of evidence/tightness.md, in a minute: ``python docs/make/tightness.py``.

Half-widths (the longer side) on 4,000 rows: this library's, the narrowest valid one that others
have published, and the normal approximation, for which nothing is proved.  Each fails with
probability at most exp(-nats) on each side, the last if the approximation is right.  Data have no
chance in them but for an order: all quantiles of their laws, shuffled by a fixed seed.
"""

from __future__ import annotations

import math
import re
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from marked import fill
from metrics_table import model
from scipy.special import expit, ndtri
from scipy.stats import binomtest, norm

from radabound_fast import DeclaredSearch, Holdout, bounds
from radabound_fast.metrics import LogLoss

PAGE = Path(__file__).parents[1] / "evidence" / "tightness.md"
M, SEED, CLIP = 4000, 2027, 0.01
NATS = (3.0, 5.3, 10.0, 17.0)
Limits = tuple[float, float]
Valid = Callable[[float], Limits]


class Row(NamedTuple):
    """What is estimated, its value, and limits for so many nats by each method."""

    name: str
    value: float
    ours: Valid
    published: dict[str, Valid]
    standard_error: float


# ---- published methods, written anew -------------------------------------------------------------


def clopper_pearson(count: int, n: int, nats: float) -> Limits:
    certainty = 1.0 - 2.0 * math.exp(-nats)
    found = binomtest(count, n).proportion_ci(certainty, "exact")
    return float(found.low), float(found.high)


def hedged_betting(values: Any, nats: float) -> Limits:
    """Waudby-Smith and Ramdas (2024), Theorem 3, with their predictable bets and c = 1/2."""
    n, places = len(values), np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (places + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (places + 1)
    bets = np.sqrt(2.0 * nats / (n * np.append(0.25, variances[:-1])))

    def lower(x: Any) -> float:
        low, high = 0.0, 1.0
        for _ in range(40):
            mu = (low + high) / 2
            won = np.log1p(np.minimum(bets, 0.5 / mu) * (x - mu)).cumsum().max()
            low, high = (mu, high) if won >= nats else (low, mu)
        return low

    # half of the capital against either side, which costs what a side alone does here
    return lower(values), 1.0 - lower(1.0 - values)


def empirical_bernstein(values: Any, nats: float) -> Limits:
    """Maurer and Pontil (2009), Theorem 4."""
    n, logarithm = len(values), nats + math.log(2.0)
    reach = math.sqrt(2.0 * values.var(ddof=1) * logarithm / n) + 7 * logarithm / (3 * (n - 1))
    return float(values.mean() - reach), float(values.mean() + reach)


def of_scores(positive: Any, negative: Any, nats: float) -> Limits:
    """Hoeffding (1963), section 5: his inequality for as many pairs as the rarer class has rows."""
    area = float((positive[:, None] > negative).mean())
    return bounds.auc_interval(area, len(negative), len(positive), nats)


def of_hedged_pairs(positive: Any, negative: Any, nats: float) -> Limits:
    n = min(len(positive), len(negative))
    return hedged_betting((positive[:n] > negative[:n]).astype(float), nats)


# ---- the rows --------------------------------------------------------------------------------


def of_search(answers: Callable[[float], Any]) -> Valid:
    """The limits of an answer, of a search that pays so many nats."""

    def limits(nats: float) -> Limits:
        answer = answers(2.0 * math.exp(-nats))
        return answer.low, answer.high

    return limits


def of_metric(metric: Any, y_true: Any, says: Any) -> tuple[float, Valid]:
    def answer(delta: float) -> Any:
        return DeclaredSearch(Holdout(y_true, metric=metric), 1, delta=delta).query(says, key=0)

    return answer(0.1).value, of_search(answer)


def of_errors(count: int) -> Row:
    rate = count / M
    return Row(
        f"error {rate:g}",
        rate,
        lambda nats: bounds.binomial_interval(count, M, nats),
        {"Clopper and Pearson": lambda nats: clopper_pearson(count, M, nats)},
        math.sqrt(rate * (1 - rate) / M),
    )


def of_rates() -> Iterator[Row]:
    y_true, says = shuffled(*model())
    classes = says["classes"]
    hits = int((classes & y_true).sum())
    false, missed = int(classes.sum()) - hits, int(y_true.sum()) - hits
    n_positive, n_negative = hits + missed, M - hits - missed
    value, ours = of_metric("f1", y_true, classes)
    share = hits / (hits + false + missed)
    error = math.sqrt(share * (1 - share) / (hits + false + missed)) * 2 / (1 + share) ** 2

    def by_precision_and_recall(nats: float) -> Limits:
        ends = zip(
            clopper_pearson(hits, hits + false, nats + math.log(2)),
            clopper_pearson(hits, hits + missed, nats + math.log(2)),
            strict=True,
        )
        low, high = (2 * p * r / (p + r) for p, r in ends)
        return low, high

    published: dict[str, Valid] = {"precision and recall": by_precision_and_recall}
    yield Row("F1, 10 % positive", value, ours, published, error)

    value, ours = of_metric("balanced_accuracy", y_true, classes)
    recall, specificity = hits / n_positive, 1 - false / n_negative
    variance = recall * (1 - recall) / n_positive + specificity * (1 - specificity) / n_negative

    def by_classes(nats: float) -> Limits:
        ends = zip(
            clopper_pearson(hits, n_positive, nats + math.log(2)),
            clopper_pearson(n_negative - false, n_negative, nats + math.log(2)),
            strict=True,
        )
        low, high = ((one + other) / 2 for one, other in ends)
        return low, high

    def by_hoeffding(nats: float) -> Limits:
        reach = math.sqrt(nats * (1 / n_positive + 1 / n_negative) / 8)
        return value - reach, value + reach

    yield Row(
        "balanced accuracy, 10 % positive",
        value,
        ours,
        {"Clopper and Pearson by class": by_classes, "Hoeffding": by_hoeffding},
        math.sqrt(variance) / 2,
    )


def of_areas(n_positive: int) -> Row:
    n_negative = M - n_positive
    y_true = (np.arange(M) >= n_negative).astype(int)
    places = np.concatenate([(np.arange(n) + 0.5) / n for n in (n_negative, n_positive)])
    y_true, says = shuffled(y_true, {"scores": ndtri(places) + 1.8124 * y_true})
    scores = says["scores"]
    value, ours = of_metric("roc_auc", y_true, scores)
    positive, negative = scores[y_true == 1], scores[y_true == 0]
    wins = positive[:, None] > negative
    error = math.sqrt(wins.mean(0).var(ddof=1) / n_negative + wins.mean(1).var(ddof=1) / n_positive)
    return Row(
        f"AUC .9, {100 * n_positive // M} % positive",
        value,
        ours,
        {
            "Hoeffding": lambda nats: of_scores(positive, negative, nats),
            "hedged betting on pairs": lambda nats: of_hedged_pairs(positive, negative, nats),
        },
        error,
    )


def of_log_loss() -> Row:
    places = (np.arange(M) + 0.5) / M
    logits = 2.0 * ndtri(places)
    y_true = np.zeros(M, int)  # of each run of rows as many as their chances say
    y_true[np.diff(np.rint(expit(logits).cumsum()), prepend=0.0) > 0] = 1
    y_true, says = shuffled(y_true, {"chances": expit(logits)})
    chances = says["chances"]
    value, ours = of_metric(LogLoss(clip=CLIP), y_true, chances)
    losses = -np.log(np.maximum(np.where(y_true == 1, chances, 1 - chances), CLIP))
    span = -math.log(CLIP)

    def scaled(method: Callable[[Any, float], Limits]) -> Valid:
        def limits(nats: float) -> Limits:
            low, high = method(losses / span, nats)
            return -high * span, -low * span

        return limits

    return Row(
        f"log loss, clip {CLIP:g}",
        value,
        ours,
        {
            "hedged betting": scaled(hedged_betting),
            "empirical Bernstein": scaled(empirical_bernstein),
        },
        float(losses.std()) / math.sqrt(M),
    )


def of_gains(share: float) -> Row:
    plus, minus = round(0.6 * share * M), round(0.4 * share * M)
    d = np.repeat([1, -1, 0], [plus, minus, M - plus - minus])
    d = np.random.default_rng(SEED).permutation(d)
    value = (plus - minus) / M

    def by_two_rates(nats: float) -> Limits:
        more = clopper_pearson(plus, M, nats + math.log(2))
        less = clopper_pearson(minus, M, nats + math.log(2))
        return more[0] - less[1], more[1] - less[0]

    def by_betting(nats: float) -> Limits:
        low, high = hedged_betting((1 + d) / 2, nats)
        return 2 * low - 1, 2 * high - 1

    return Row(
        f"gain, {share * 100:g} % disagree",
        value,
        lambda nats: bounds.paired_interval(plus, minus, M, nats),
        {"hedged betting": by_betting, "two rates": by_two_rates},
        math.sqrt((plus + minus) / M - value * value) / math.sqrt(M),
    )


def of_folds(rate: float) -> Row:
    def hoeffding(nats: float) -> Limits:
        reach = math.sqrt(5 * nats / (2 * M))
        return rate - reach, rate + reach

    return Row(
        f"5-fold cross-validation, error {rate:g}",
        rate,
        lambda nats: bounds.cross_validation_interval(rate, M, 5, nats),
        {"Blum, Kalai and Langford": hoeffding},
        math.sqrt(rate * (1 - rate) / M),
    )


def shuffled(y_true: Any, says: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    order = np.random.default_rng(SEED).permutation(len(y_true))
    return y_true[order], {name: rows[order] for name, rows in says.items()}


def rows() -> Iterator[Row]:
    yield from map(of_errors, (80, 800))
    yield from of_rates()
    yield from map(of_areas, (400, 2000))
    yield of_log_loss()
    yield from map(of_gains, (0.02, 0.05, 0.2))
    yield from map(of_folds, (0.02, 0.2))


def longer_side(value: float, limits: Limits) -> float:
    low, high = limits
    return max(value - low, high - value)


def of_widths() -> str:
    lines = [
        "| | narrowest published | " + " | ".join(f"{nats:g} nats" for nats in NATS) + " |",
        "|---" * (len(NATS) + 2) + "|",
    ]
    for row in rows():
        cells, names = [], []
        for nats in NATS:
            widths = {
                name: longer_side(row.value, method(nats)) for name, method in row.published.items()
            }
            names.append(min(widths, key=lambda name: widths[name]))
            three = (
                longer_side(row.value, row.ours(nats)),
                widths[names[-1]],
                float(norm.isf(math.exp(-nats))) * row.standard_error,
            )
            cells.append(" / ".join(f"{width:.4f}".removeprefix("0") for width in three))
        lines.append(f"| {row.name} | {', '.join(dict.fromkeys(names))} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


# ---- speed -----------------------------------------------------------------------------------


def of_speed() -> str:
    rng = np.random.default_rng(SEED)
    losses, counts = rng.random(M) * 0.3, rng.integers(0, M + 1, 100_000)
    weights, means = np.sort(rng.random(M)), counts / M  # in the order in which guards have them
    single: dict[str, Callable[[float], Any]] = {
        "binomial_interval": lambda nats: bounds.binomial_interval(800, M, nats),
        "kl_interval": lambda nats: bounds.kl_interval(0.2, M, nats),
        "rate_interval": lambda nats: bounds.rate_interval(320, 400, nats),
        "f1_interval": lambda nats: bounds.f1_interval(260, 280, nats),
        "auc_interval": lambda nats: bounds.auc_interval(0.9, 3600, 400, nats),
        "paired_interval": lambda nats: bounds.paired_interval(120, 80, M, nats),
        "cross_validation_interval": lambda nats: bounds.cross_validation_interval(0.2, M, 5, nats),
        "weighted_interval, 2 classes": lambda nats: bounds.weighted_interval(
            0.9, [1 / 3600, 1 / 400], [3600, 400], nats
        ),
        "weighted_interval, 4,000 weights": lambda nats: bounds.weighted_interval(
            0.2, weights, 1, nats
        ),
        "betting_interval, 4,000 losses": lambda nats: bounds.betting_interval(losses, nats),
        "roc_band": lambda nats: bounds.roc_band(3600, 400, nats),
    }
    many: dict[str, Callable[[float], Any]] = {
        "binomial_interval": lambda nats: bounds.binomial_interval(counts, M, nats),
        "kl_interval": lambda nats: bounds.kl_interval(means, M, nats),
        "paired_interval": lambda nats: bounds.paired_interval(
            100 + counts % 20, 100 + counts % 7, M, nats
        ),
        "rate_interval": lambda nats: bounds.rate_interval(counts // 10, 400, nats),
        "f1_interval": lambda nats: bounds.f1_interval(counts // 10, 180 + counts % 100, nats),
        "auc_interval": lambda nats: bounds.auc_interval(means, 3600, 400, nats),
        "cross_validation_interval": lambda nats: bounds.cross_validation_interval(
            means, M, 5, nats
        ),
    }
    lines = ["| | one, 3 nats | one, 17 nats | each of 100,000, 17 nats |", "|---|---|---|---|"]
    for name, function in single.items():
        cells = [f"{microseconds(function, nats):.1f}" for nats in (3.0, 17.0)]
        each = f"{microseconds(many[name], 17.0) / 1e5:.2f}" if name in many else "–"
        lines.append(f"| `{name}` | {' | '.join(cells)} | {each} |")
        print(lines[-1], flush=True)
    names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
    return f"Microseconds on one core, {names[0]}:\n\n" + "\n".join(lines)


def microseconds(function: Callable[[float], Any], nats: float) -> float:
    """Of the processor's time, which other programs do not lengthen."""
    timer = timeit.Timer(lambda: function(nats), timer=time.process_time)
    n = max(1, int(0.05 / max(timer.timeit(1), 1e-6)))
    return min(timer.repeat(7, n)) / n * 1e6


if __name__ == "__main__":
    fill(PAGE, "widths", of_widths())
    fill(PAGE, "speed", of_speed())
