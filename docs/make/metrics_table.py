"""Make the table of reference/metrics.md: ``python docs/make/metrics_table.py``.

One model of 4,000 rows, 10 % of them positive, as the page says; half-widths are the longer sides
of the intervals that one of 1, 10^3 and 10^6 keys gets at delta = .1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from marked import fill
from scipy.special import expit, ndtri

from radabound_fast import DeclaredSearch, Holdout
from radabound_fast.metrics import METRICS, AbsoluteError, Cost, LogLoss, Metric, SquaredError

PAGE = Path(__file__).parents[1] / "reference" / "metrics.md"
M, N_POSITIVE, DELTA = 4000, 400, 0.1
SPACES = (1, 10**3, 10**6)
WITH_OPTIONS: dict[str, Any] = {
    "mean_cost": Cost([[0, 1], [5, 0]]),
    "neg_log_loss": LogLoss(clip=0.01),
    "neg_mean_absolute_error": AbsoluteError(y_range=(0, 1)),
    "neg_mean_squared_error": SquaredError(y_range=(0, 1)),
}


def model() -> tuple[Any, dict[str, Any]]:
    """Labels, and what the model says in each form: no chance in it, all quantiles of its laws."""
    y_true = (np.arange(M) >= M - N_POSITIVE).astype(int)
    places = np.concatenate([(np.arange(n) + 0.5) / n for n in (M - N_POSITIVE, N_POSITIVE)])
    scores = ndtri(places) + 1.8124 * y_true  # an AUC of .9
    chances = expit(1.8124 * scores - 1.8124**2 / 2 + np.log(N_POSITIVE / (M - N_POSITIVE)))
    return y_true, {
        "classes": (chances > 0.3).astype(int),
        "scores": scores,
        "probabilities": chances,
        "numbers": chances,
    }


def line(row: Metric) -> str:
    y_true, says = model()
    answers = []
    for size in SPACES:
        holdout = Holdout(y_true, metric=WITH_OPTIONS.get(row.name, row.name))
        search = DeclaredSearch(holdout, size, delta=DELTA)
        answers.append(search.query(says[row.takes], key=0))
    widths = " | ".join(f"{answer.half_width:.3f}" for answer in answers)
    given = f"given {row.conditional_on}" if row.conditional_on else "–"
    theorem = row.theorem.replace("Result", "[Result").replace(
        ":", "](../explanation/theory.md):", 1
    )
    return (
        f"| `{row.name}` | {row.takes} | {theorem} | {given} | {answers[0].value:.3f} | {widths} |"
    )


def table() -> str:
    lines = [
        "| metric | takes | limits by | holds | value | 1 key | $10^3$ | $10^6$ |",
        "|---|---|---|---|---|---|---|---|",
        *(line(row) for row in METRICS.values()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    fill(PAGE, "metrics", table())
