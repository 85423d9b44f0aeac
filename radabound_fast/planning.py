"""What a holdout affords, before any of it is spent."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from radabound_fast import bounds
from radabound_fast._checks import (
    MAX_SAMPLES,
    check_fraction,
    check_n_samples,
    check_n_vectors,
    check_probability,
    counted,
)
from radabound_fast.bounds import BOUNDS, Bound
from radabound_fast.mechanisms import GuessAndCheck

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# epsilons that are tried; a root outside them is no use to anyone
_LEAST_EPSILON, _LARGEST_EPSILON = 1e-9, 1.0 - 1e-9
_MANY = 2**53  # more queries than this are not counted one by one


@dataclass(frozen=True)
class Plan:
    """What `plan` found; ``str(plan)`` is a table.

    Attributes
    ----------
    n_samples, epsilon, delta, n_vectors, error_rate
        The question, as `plan` was given it.
    rows : list of dict
        A row per bound and mechanism:

        name : str
            A key of ``bounds.BOUNDS``; "union", the union bound alone; or a mechanism.
        budget : float or None
            The largest complexity at which a query is answered, in units of loss; below 0 if
            none can be.  None where no signs are used.
        first_query : bool
            Whether a first query of this error rate can be expected to be answered.
        n_queries : int or None
            How many queries are answered without regard to their complexity, at most 2**62.
            None where there is no such number: it depends on how alike the queries are.
        epsilon_min : float or None
            The smallest epsilon, for this n_samples, at which `first_query` is true.
        n_samples_min : int or None
            The fewest samples, for this epsilon, at which `first_query` is true.  Both are
            None where there is none.
    """

    n_samples: int
    epsilon: float
    delta: float
    n_vectors: int
    error_rate: float
    rows: list[dict[str, Any]]

    def to_json(self) -> str:
        """The question and the rows, as a JSON object."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        lines = [("", "budget", "first query", "queries", "least epsilon", "least samples")]
        lines += [
            (
                row["name"],
                "-" if row["budget"] is None else f"{row['budget']:.4g}",
                "yes" if row["first_query"] else "no",
                _count(row["n_queries"]),
                "none" if row["epsilon_min"] is None else f"{_rounded_up(row['epsilon_min']):g}",
                "none" if row["n_samples_min"] is None else f"{row['n_samples_min']:,}",
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = "\n".join(
            "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]).rstrip()
            for first, *others in lines
        )
        return (
            f"{counted(self.n_samples, 'sample')}, epsilon {self.epsilon:g}, "
            f"delta {self.delta:g}, {counted(self.n_vectors, 'sign vector')}, "
            f"error rate {self.error_rate:g}\n\n{table}"
        )

    def shortfall(self, name: str) -> str | None:
        """One line on what a bound or mechanism lacks for a first query; None if nothing.

        Raises
        ------
        ValueError
            No row has this name.
        """
        rows = {row["name"]: row for row in self.rows}
        if name not in rows:
            raise ValueError(f"name must be one of {', '.join(rows)}, got {name!r}")
        row = rows[name]
        if row["first_query"]:
            return None
        ways = []
        if row["epsilon_min"] is not None:
            ways.append(
                f"epsilon {_rounded_up(row['epsilon_min']):g} with "
                f"{counted(self.n_samples, 'sample')}"
            )
        if row["n_samples_min"] is not None:
            ways.append(f"{counted(row['n_samples_min'], 'sample')} at epsilon {self.epsilon:g}")
        needs = " or ".join(ways) or "more samples and a larger epsilon"
        return f"{name} needs {needs} to answer a first query of error rate {self.error_rate:g}"

    def plot(self) -> Figure:
        """The smallest epsilon against the number of samples, a curve per row.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from radabound_fast.plots import plan_figure

        sizes = np.unique(
            np.geomspace(
                max(1.0, self.n_samples / 64), min(64.0 * self.n_samples, MAX_SAMPLES), 25
            ).astype(np.int64)
        )
        curves = {
            entry.name: [
                math.nan if least is None else least
                for least in (entry.least_epsilon(m) for m in sizes.tolist())
            ]
            for entry in _entries(self.delta, self.n_vectors, self.error_rate)
        }
        return plan_figure(sizes, curves, n_samples=self.n_samples, epsilon=self.epsilon)


def plan(
    n_samples: int,
    epsilon: float,
    delta: float,
    n_vectors: int = 32,
    error_rate: float = 0.25,
) -> Plan:
    """What each bound and mechanism affords on a holdout that is not yet spent.

    Parameters
    ----------
    n_samples : int
        m, the size of the holdout; 1 to 2**40.
    epsilon : float
        The error tolerated, in (0, 1).
    delta : float
        The probability of failure, in (0, 1).
    n_vectors : int, default 32
        l, the number of sign vectors; 1 to 2**23.
    error_rate : float, default 0.25
        The mean loss to expect of the first query, in [0, 1].

    Returns
    -------
    Plan

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    A first query of error rate p has an expected complexity of ``sqrt(p / (2 pi m))``, about
    ``0.4 sqrt(p / m)``, by the plain estimator, and 0 by half-range.

    "fixed-sequence" answers `n_queries` by its union part, at 2/5 of delta, and goes on by its
    complexity; "union" is the same bound alone, at delta.  "GuessAndCheck": guesses of this
    error rate that all pass.  "Ladder": queries at the step epsilon / 2, by the exact count,
    that stay within epsilon of the best.  "Thresholdout": queries at a budget of one answer from
    the holdout, by its Theorem 25.  What each guarantees is not the same: docs/theory.md.

    Examples
    --------
    >>> rows = {row["name"]: row for row in plan(4000, 0.04, 0.1).rows}
    >>> rows["union"]["n_queries"], rows["fixed-sequence"]["n_queries"]
    (18110, 7244)
    >>> rows["bernstein"]["first_query"], rows["bernstein-split"]["first_query"]
    (True, False)
    """
    m, n_vectors = check_n_samples(n_samples), check_n_vectors(n_vectors)
    epsilon, delta = check_probability(epsilon=epsilon), check_probability(delta=delta)
    error_rate = check_fraction(error_rate=error_rate)
    rows = [entry.row(m, epsilon) for entry in _entries(delta, n_vectors, error_rate)]
    return Plan(m, epsilon, delta, n_vectors, error_rate, rows)


def _count(number: int | None) -> str:
    if number is None:
        return "-"
    return f"{number:,}" if number < _MANY else "over 9e15"


def _rounded_up(epsilon: float) -> float:
    """To four digits, so that what is printed suffices."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return math.ceil(epsilon / unit) * unit


class _Entry(NamedTuple):
    """A row before m and epsilon are known."""

    name: str
    # how much of something is left when the first query is asked; it grows with m and epsilon,
    # and the query can be expected to be answered while it is not negative
    spare: Callable[[int, float], float]
    budget: Callable[[int, float], float | None]
    n_queries: Callable[[int, float], int | None]

    def row(self, m: int, epsilon: float) -> dict[str, Any]:
        return {
            "name": self.name,
            "budget": self.budget(m, epsilon),
            "first_query": self.spare(m, epsilon) >= 0.0,
            "n_queries": self.n_queries(m, epsilon),
            "epsilon_min": self.least_epsilon(m),
            "n_samples_min": self.least_n_samples(epsilon),
        }

    def least_epsilon(self, m: int) -> float | None:
        from scipy.optimize import brentq

        spare = partial(self.spare, m)
        if spare(_LEAST_EPSILON) >= 0.0:
            return _LEAST_EPSILON
        if spare(_LARGEST_EPSILON) < 0.0:
            return None
        least = float(brentq(spare, _LEAST_EPSILON, _LARGEST_EPSILON, xtol=1e-15))
        step = math.ulp(least)
        while spare(least) < 0.0:  # the last bits of the root: the answer has to suffice
            least, step = least + step, 2.0 * step
        return least

    def least_n_samples(self, epsilon: float) -> int | None:
        sizes = range(1, MAX_SAMPLES + 1)
        place = bisect_left(sizes, True, key=lambda m: self.spare(m, epsilon) >= 0.0)
        return sizes[place] if place < len(sizes) else None


def _entries(delta: float, n_vectors: int, error_rate: float) -> list[_Entry]:
    """Every bound, then the union bound alone, then the mechanisms."""
    return [
        *(_of_bound(row, delta, n_vectors, error_rate) for row in BOUNDS.values()),
        _union(delta),
        _guess_and_check(delta, error_rate),
        _ladder(delta),
        _thresholdout(delta),
    ]


def _of_bound(row: Bound, delta: float, n_vectors: int, error_rate: float) -> _Entry:
    def budget(m: int, epsilon: float) -> float:
        return row.budget(m, n_vectors, epsilon, delta, error_rate)

    def n_queries(m: int, epsilon: float) -> int | None:
        free = row.free(m, epsilon, delta)
        return None if free is None else free.n_queries

    def spare(m: int, epsilon: float) -> float:
        if n_queries(m, epsilon):
            return epsilon
        plain = row.estimators[0] == "plain"
        expected = math.sqrt(error_rate / (2.0 * math.pi * m)) if plain else 0.0
        return budget(m, epsilon) - expected

    return _Entry(row.name, spare, budget, n_queries)


def _no_budget(m: int, epsilon: float) -> None:
    return None


def _union(delta: float) -> _Entry:
    def n_queries(m: int, epsilon: float) -> int:
        return bounds.union_queries(m, epsilon, delta)

    def spare(m: int, epsilon: float) -> float:
        return epsilon if n_queries(m, epsilon) else -epsilon

    return _Entry("union", spare, _no_budget, n_queries)


def _guess_and_check(delta: float, error_rate: float) -> _Entry:
    def n_queries(m: int, epsilon: float) -> int:
        return GuessAndCheck(m, epsilon=epsilon, delta=delta).affordable(error_rate)

    code = math.log(2.0 / delta) + bounds.guess_and_check_code(1, 0, 0.0)

    def spare(m: int, epsilon: float) -> float:
        # what it halts by
        return bounds.kl_tolerance(error_rate, code / m, epsilon) - epsilon / 10

    return _Entry("GuessAndCheck", spare, _no_budget, n_queries)


def _ladder(delta: float) -> _Entry:
    def spare(m: int, epsilon: float, k: int = 1) -> float:
        return epsilon - bounds.ladder_half_width(k, m, epsilon / 2, delta)

    def n_queries(m: int, epsilon: float) -> int:
        return bisect_left(range(1, _MANY + 1), True, key=lambda k: spare(m, epsilon, k) < 0.0)

    return _Entry("Ladder", spare, _no_budget, n_queries)


def _thresholdout(delta: float) -> _Entry:
    def spare(m: int, epsilon: float, k: int = 1) -> float:
        return m - bounds.thresholdout_sample_size(k, 1, epsilon, delta)

    def n_queries(m: int, epsilon: float) -> int:
        return bisect_left(range(1, _MANY + 1), True, key=lambda k: spare(m, epsilon, k) < 0.0)

    return _Entry("Thresholdout", spare, _no_budget, n_queries)
