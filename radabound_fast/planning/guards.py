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
    check_count,
    check_delta,
    check_fraction,
    check_n_samples,
    check_n_vectors,
    check_probability,
    counted,
    table_lines,
)
from radabound_fast.bounds import BOUNDS, Bound
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.guards import reach
from radabound_fast.guards.guess_and_check import GuessAndCheck
from radabound_fast.guards.halting import HaltingRule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MANY = 2**53  # more queries than this are not counted one by one
_STEPS = [share / 200 for share in range(1, 101)]  # of a Ladder, in epsilons
_SPACES = (10**3, 10**6, 10**9, 10**12)  # what `Plan.plot` draws


@dataclass(frozen=True)
class Plan:
    """The result of `plan`; ``str(plan)`` is a table.

    Attributes
    ----------
    n_samples, epsilon, delta, n_vectors, error_rate, space_size, max_queries
        The arguments of `plan`.
    rows : list of dict
        A row per bound and guard; none without an `epsilon`:

        name : str
            A key of ``bounds.BOUNDS``, or a guard; "Ladder, 3 updates" is one without
            ``max_queries``.
        budget : float or None
            The largest complexity that the bound admits, in units of loss; below 0 if none.
            None where no signs are used.
        first_query : bool
            Whether a first query of this error rate can be expected to be answered within
            epsilon; for "DeclaredSearch", any in the space.
        n_queries : int or None
            How many queries of this error rate are answered without regard to their complexity,
            at most 2**62; for "DeclaredSearch" the largest space whose every truth is within
            epsilon.  None where it depends on how alike they are.
        provided : str
            What that takes; "" if nothing.
        epsilon_min, n_samples_min : float, int or None
            The smallest epsilon for this n_samples, and the fewest samples for this epsilon, at
            which `first_query` is true; None where there is none.
    low, high : float or None
        With a `space_size`: where `DeclaredSearch` puts the truth of a mean of this error rate.
    """

    n_samples: int
    epsilon: float | None
    delta: float
    n_vectors: int
    error_rate: float
    space_size: int | None
    max_queries: int | None
    rows: list[dict[str, Any]]
    low: float | None
    high: float | None

    def to_json(self) -> str:
        """The question and the rows, as a JSON object."""
        return json.dumps(asdict(self), indent=2)

    def __str__(self) -> str:
        question = counted(self.n_samples, "sample")
        if self.epsilon is not None:
            question += f", epsilon {self.epsilon:g}"
        question += f", delta {self.delta:g}"
        if self.epsilon is not None:
            question += f", {counted(self.n_vectors, 'sign vector')}"
        question += f", error rate {self.error_rate:g}"
        if self.max_queries is not None:
            question += f", max_queries {self.max_queries:,}"
        parts = [question]
        if self.rows:
            # words to the left, numbers to the right
            align = [str.ljust, *[str.rjust] * 5, str.ljust]
            parts.append("\n".join(table_lines([_HEAD, *map(_cells, self.rows)], align)))
        if self.space_size is not None and self.low is not None and self.high is not None:
            p, low, high = self.error_rate, self.low, self.high
            parts.append(
                f"DeclaredSearch over {self.space_size:,} keys: where the holdout says {p:g} the "
                f"truth is in {low:.4f} to {high:.4f}\n(-{p - low:.4f}, +{high - p:.4f}), for "
                f"whatever keys were asked about, in whatever order."
            )
        return "\n\n".join(parts)

    def shortfall(self, name: str) -> str | None:
        """One line on what the row of this `name` lacks for a first query; None if nothing.

        ValueError if no row has this name, or there are none, for want of an epsilon.
        """
        if self.epsilon is None:
            raise ValueError("epsilon must be given to `plan` for its rows, got None")
        rows = {row["name"]: row for row in self.rows}
        if name not in rows:
            raise ValueError(f"name must be one of {', '.join(rows)}, got {name!r}")
        row = rows[name]
        if row["first_query"]:
            return None
        needs = reach.enough_for(
            self.n_samples, self.epsilon, row["epsilon_min"], row["n_samples_min"]
        )
        what = "answer a first query"
        if name == "DeclaredSearch":
            what = f"be within epsilon for {counted(self.space_size or 1, 'key')}"
        return f"{name} needs {needs} to {what} of error rate {self.error_rate:g}"

    def plot(self) -> Figure:
        """A figure of half-widths at this error rate against the number of samples.

        For `DeclaredSearch` over 10^3 to 10^12 keys and over `space_size`, and the epsilon at
        which `GuessAndCheck` answers a thousand guesses that pass.
        """
        from radabound_fast.plots import plan_figure

        sizes = np.unique(
            np.geomspace(
                max(1.0, self.n_samples / 16), min(16.0 * self.n_samples, MAX_SAMPLES), 25
            ).astype(np.int64)
        )

        def curve(spare: reach.Spare) -> list[float]:
            leasts = (reach.least_epsilon(spare, m) for m in sizes.tolist())
            return [math.nan if least is None else least for least in leasts]

        rate, delta = self.error_rate, self.delta
        spaces = {*_SPACES, self.space_size or _SPACES[0]}
        return plan_figure(
            sizes,
            {size: curve(_declared_search(delta, rate, size).spare) for size in sorted(spaces)},
            curve(reach.spare_of_guesses(delta, rate, n_queries=1000)),
            n_samples=self.n_samples,
            epsilon=self.epsilon,
            subtitle=f"Of searches over declared spaces (blue) and guess and check (black), at an "
            f"error rate of {rate:g} and delta {delta:g}",
        )


class _Entry(NamedTuple):
    """A row of a plan before m and epsilon are known."""

    name: str
    spare: reach.Spare
    # how many queries, and what that takes
    n_queries: Callable[[int, float], tuple[int | None, str]]
    budget: Callable[[int, float], float | None] = lambda m, epsilon: None

    def row(self, m: int, epsilon: float) -> dict[str, Any]:
        n_queries, provided = self.n_queries(m, epsilon)
        return {
            "name": self.name,
            "budget": self.budget(m, epsilon),
            "first_query": self.spare(m, epsilon) >= 0.0,
            "n_queries": n_queries,
            "provided": provided,
            "epsilon_min": reach.least_epsilon(self.spare, m),
            "n_samples_min": reach.least_n_samples(self.spare, epsilon),
        }


def plan_guards(
    n_samples: int,
    epsilon: float | None,
    delta: float,
    n_vectors: int,
    error_rate: float,
    space_size: int | None,
    max_queries: int | None,
) -> Plan:
    """Make the plan of a holdout; see `radabound_fast.plan`."""
    m, n_vectors = check_n_samples(n_samples), check_n_vectors(n_vectors)
    delta = check_delta(delta)
    error_rate = check_fraction(error_rate=error_rate)
    low = high = None
    if space_size is not None:
        space_size = check_count(space_size=space_size)
        low, high = limits_at(m, error_rate, math.log(2.0 / delta) + math.log(space_size))
    max_queries = None if max_queries is None else check_count(max_queries=max_queries)
    rows = []
    if epsilon is not None:
        epsilon = check_probability(epsilon=epsilon)
        entries = _entries(delta, n_vectors, error_rate, space_size, max_queries)
        rows = [entry.row(m, epsilon) for entry in entries]
    elif space_size is None or max_queries is not None:
        raise ValueError(
            "epsilon must be given, except for a declared space alone (space_size without "
            "max_queries), got None"
        )
    return Plan(m, epsilon, delta, n_vectors, error_rate, space_size, max_queries, rows, low, high)


_HEAD = ("", "budget", "first query", "queries", "least epsilon", "least samples", "provided")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        "-" if row["budget"] is None else f"{row['budget']:.4g}",
        "yes" if row["first_query"] else "no",
        "-" if row["n_queries"] is None else _count(row["n_queries"]),
        "none" if row["epsilon_min"] is None else f"{reach.rounded_up(row['epsilon_min']):g}",
        "none" if row["n_samples_min"] is None else f"{row['n_samples_min']:,}",
        row["provided"],
    )


def _count(number: int) -> str:
    return f"{number:,}" if number < _MANY else "over 9e15"


def _entries(
    delta: float, n_vectors: int, error_rate: float, space_size: int | None, max_queries: int | None
) -> list[_Entry]:
    """The rows of a plan: every bound, then the other guards."""

    def passes(m: int, epsilon: float) -> tuple[int, str]:
        check = GuessAndCheck(m, epsilon=epsilon, delta=delta)
        return check.affordable(error_rate), "every guess passes"

    return [
        *(_bound(row, delta, n_vectors, error_rate, max_queries) for row in BOUNDS.values()),
        _declared_search(delta, error_rate, space_size or 1),
        _Entry("GuessAndCheck", reach.spare_of_guesses(delta, error_rate), passes),
        _ladder(delta),
        _ladder(delta, n_updates=3),
        _thresholdout(delta),
    ]


def _bound(
    bound: Bound, delta: float, n_vectors: int, error_rate: float, max_queries: int | None
) -> _Entry:
    def n_queries(m: int, epsilon: float) -> tuple[int | None, str]:
        if not bound.proved:
            return None, ""
        rule = HaltingRule(m, n_vectors, epsilon, delta, bound.name, max_queries=max_queries)
        return rule.free_left(0, error_rate, declared=True), "in a fixed order"

    def budget(m: int, epsilon: float) -> float:
        return bound.budget(m, n_vectors, epsilon, delta, error_rate)

    spare = reach.spare_by_bound(bound, delta, n_vectors, error_rate, max_queries)
    return _Entry(bound.name, spare, n_queries, budget)


def limits_at(m: int, mean: float, nats: float) -> tuple[float, float]:
    """The exact binomial limits of a mean, interpolated between those of the counts around it."""
    below = min(math.floor(mean * m), m - 1)
    share = mean * m - below
    lows, highs = bounds.binomial_interval(np.array([below, below + 1]), m, nats)
    return (
        float(lows[0] + share * (lows[1] - lows[0])),
        float(highs[0] + share * (highs[1] - highs[0])),
    )


def _by_count(
    name: str, spare: Callable[[int, float, int], float], first: int, most: int, provided: str
) -> _Entry:
    """The row of a guard that has the less to spare, the more queries or keys are declared."""

    def n_queries(m: int, epsilon: float) -> tuple[int, str]:
        counts = range(1, most + 1)
        return bisect_left(counts, True, key=lambda k: spare(m, epsilon, k) < 0.0), provided

    return _Entry(name, lambda m, epsilon: spare(m, epsilon, first), n_queries)


def _declared_search(delta: float, error_rate: float, size: int) -> _Entry:
    def spare(m: int, epsilon: float, size: int) -> float:
        low, high = limits_at(m, error_rate, math.log(2.0 / delta) + math.log(size))
        return epsilon - max(error_rate - low, high - error_rate)

    return _by_count("DeclaredSearch", spare, size, MOST_QUERIES, "keys of a declared space")


def _thresholdout(delta: float) -> _Entry:
    def spare(m: int, epsilon: float, k: int) -> float:
        return m - bounds.thresholdout_sample_size(k, 1, epsilon, delta)

    return _by_count("Thresholdout", spare, 1, _MANY, "one answer is the holdout's own")


def _ladder(delta: float, n_updates: int | None = None) -> _Entry:
    """The row of a Ladder with `max_queries`, or without, where at most so many queries improve."""

    def half_width(m: int, step: float, k: int) -> float:
        if n_updates is None:
            return bounds.ladder_half_width(k, m, step, delta)
        levels = bounds.ladder_levels(step)
        return bounds.ladder_transcript_half_width(k, min(n_updates, k - 1, levels), m, step, delta)

    def beyond(m: int, epsilon: float, step: float, k: int) -> bool:
        return half_width(m, step, k) > epsilon

    def spare(m: int, epsilon: float) -> float:
        return epsilon - half_width(m, _STEPS[0] * epsilon, 1)  # the first answer is best so

    def n_queries(m: int, epsilon: float) -> tuple[int, str]:
        best = 0, 0.0, 0.0  # among equals the one with the narrowest answers
        for share in _STEPS:
            step = share * epsilon
            too_many = partial(beyond, m, epsilon, step)
            if too_many(max(best[0], 1)):
                continue
            k = bisect_left(range(1, _MANY + 1), True, key=too_many)
            best = max(best, (k, -half_width(m, step, k), step))
        most, _, step = best
        if not most:
            return 0, ""
        if n_updates is None:
            return most, f"step={step:.3g}, max_queries={_count(most)}"
        return most, f"step={step:.3g}, at most {n_updates} improve"

    name = "Ladder" if n_updates is None else f"Ladder, {n_updates} updates"
    return _Entry(name, spare, n_queries)
