"""How far a holdout reaches: what a guard needs of m and epsilon before a first query is answered.

`radabound_fast.planning` makes a table of these entries; guards say with them why a first query is
withheld, and what would be answered.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from radabound_fast._checks import MAX_SAMPLES, counted
from radabound_fast.bounds import BOUNDS, Bound, guess_and_check_code, kl_tolerance
from radabound_fast.guards.halting import HaltingRule

# epsilons that are tried; a root outside them is no use to anyone
LEAST_EPSILON, LARGEST_EPSILON = 1e-9, 1.0 - 1e-9


class Entry(NamedTuple):
    """A row of a plan before m and epsilon are known."""

    name: str
    # how much of something is left when the first query is asked; it grows with m and epsilon,
    # and the query can be expected to be answered while it is not negative
    spare: Callable[[int, float], float]
    budget: Callable[[int, float], float | None]
    # how many queries, and what that takes
    n_queries: Callable[[int, float], tuple[int | None, str]]

    def row(self, m: int, epsilon: float) -> dict[str, Any]:
        n_queries, provided = self.n_queries(m, epsilon)
        return {
            "name": self.name,
            "budget": self.budget(m, epsilon),
            "first_query": self.spare(m, epsilon) >= 0.0,
            "n_queries": n_queries,
            "provided": provided,
            "epsilon_min": self.least_epsilon(m),
            "n_samples_min": self.least_n_samples(epsilon),
        }

    def least_epsilon(self, m: int) -> float | None:
        from scipy.optimize import brentq

        spare = partial(self.spare, m)
        if spare(LEAST_EPSILON) >= 0.0:
            return LEAST_EPSILON
        if spare(LARGEST_EPSILON) < 0.0:
            return None
        least = float(brentq(spare, LEAST_EPSILON, LARGEST_EPSILON, xtol=1e-15))
        step = math.ulp(least)
        while spare(least) < 0.0:  # the last bits of the root: the answer has to suffice
            least, step = least + step, 2.0 * step
        return least

    def least_n_samples(self, epsilon: float) -> int | None:
        sizes = range(1, MAX_SAMPLES + 1)
        place = bisect_left(sizes, True, key=lambda m: self.spare(m, epsilon) >= 0.0)
        return sizes[place] if place < len(sizes) else None

    def shortfall(self, m: int, epsilon: float, error_rate: float) -> str | None:
        """Say what a first query of this error rate needs; None if it can be answered."""
        if self.spare(m, epsilon) >= 0.0:
            return None
        enough = enough_for(m, epsilon, self.least_epsilon(m), self.least_n_samples(epsilon))
        return f"{self.name} needs {enough} to answer a first query of error rate {error_rate:g}"


def no_budget(m: int, epsilon: float) -> None:
    return None


def of_bound(
    row: Bound, delta: float, n_vectors: int, error_rate: float, max_queries: int | None
) -> Entry:
    def budget(m: int, epsilon: float) -> float:
        return row.budget(m, n_vectors, epsilon, delta, error_rate)

    def free(m: int, epsilon: float) -> int:
        rule = HaltingRule(m, n_vectors, epsilon, delta, row.name, max_queries=max_queries)
        return rule.free_left(0, error_rate, declared=True)

    def n_queries(m: int, epsilon: float) -> tuple[int | None, str]:
        if not row.proved:
            return None, ""
        return free(m, epsilon), "in a fixed order"

    def spare(m: int, epsilon: float) -> float:
        if row.proved and free(m, epsilon):
            return epsilon
        plain = row.estimators[0] == "plain"
        expected = math.sqrt(error_rate / (2.0 * math.pi * m)) if plain else 0.0
        return budget(m, epsilon) - expected

    return Entry(row.name, spare, budget, n_queries)


def of_guess_and_check(delta: float, error_rate: float, n_queries: int = 1) -> Entry:
    """The n_queries-th answer of `GuessAndCheck`; how many it affords, `affordable` of it says."""
    nats = math.log(2.0 / delta) + guess_and_check_code(n_queries, 0, 0.0)

    def spare(m: int, epsilon: float) -> float:
        # what it halts by
        return kl_tolerance(error_rate, nats / m, epsilon) - epsilon / 10

    return Entry("GuessAndCheck", spare, no_budget, lambda *_: (None, ""))


def enough_for(m: int, epsilon: float, epsilon_min: float | None, n_samples_min: int | None) -> str:
    """What would do where m and epsilon do not."""
    ways = []
    if epsilon_min is not None:
        ways.append(f"epsilon {rounded_up(epsilon_min):g} with {counted(m, 'sample')}")
    if n_samples_min is not None:
        ways.append(f"{counted(n_samples_min, 'sample')} at epsilon {epsilon:g}")
    return " or ".join(ways) or "more samples and a larger epsilon"


def rounded_up(epsilon: float) -> float:
    """To four digits, so that what is printed suffices."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return math.ceil(epsilon / unit) * unit


def first_query_by_bound(rule: HaltingRule) -> str:
    """After a reason why a first query is withheld: what would be answered, to follow it.

    At error rates that do not reveal that of the query.
    """
    row = BOUNDS[rule.bound.name]
    # a plan is of the defaults, of rows that weigh the same, and of scores as they are
    if (rule.estimator, rule.two_sided, rule.has_weights, rule.rounded) == (
        row.estimators[0],
        row.sides[0],
        False,
        None,
    ):
        for error_rate in (0.25, 0.5, 1.0):
            entry = of_bound(row, rule.delta, rule.n_vectors, error_rate, rule.max_queries)
            if line := entry.shortfall(rule.n_samples, rule.epsilon, error_rate):
                return f"; {line}"
    return needs_more(row.name)


def first_guess(n_samples: int, epsilon: float, delta: float, guess: float | None) -> str:
    """After a reason why a first guess of `GuessAndCheck` is withheld: what would be answered."""
    error_rate = 0.25 if guess is None else guess
    entry = of_guess_and_check(delta, error_rate)
    line = entry.shortfall(n_samples, epsilon, error_rate)
    return needs_more("GuessAndCheck") if line is None else f"; {line}"


def needs_more(name: str) -> str:
    """Where no numbers are known."""
    return f"; {name} needs more samples or a larger epsilon: see radabound_fast.plan"
