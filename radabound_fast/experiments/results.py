"""Counts of the experiments, and how they become a line of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

Value = str | int | float
Row = dict[str, Value]

# means are multiples of 1/m and may lie at epsilon exactly, but for rounding
_ROUNDING = 1e-12


def any_off(answers: ArrayLike, truths: ArrayLike, epsilon: float) -> bool:
    """Whether an answer is further than epsilon from its truth."""
    distances = np.abs(np.subtract(answers, truths))
    return bool(np.any(distances > epsilon + _ROUNDING))


def share(flags: Sequence[float]) -> Row:
    """Share of runs that are off, with its 95 % interval (Clopper and Pearson)."""
    from scipy.stats import binomtest

    test = binomtest(int(sum(flags)), len(flags))
    interval = test.proportion_ci(0.95)
    return {
        "off": round(float(test.statistic), 4),
        "off_low": round(float(interval.low), 4),
        "off_high": round(float(interval.high), 4),
    }


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Value, ...], list[Row]]:
    """Rows by the values of some columns, in the order of their first appearance."""
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def column(rows: Iterable[Row], name: str) -> list[float]:
    """The numbers of one column."""
    return [float(row[name]) for row in rows]
