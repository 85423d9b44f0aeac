"""How far a holdout reaches: which m and epsilon suffice for a first answer.

`radabound_fast.planning` makes a table of it; a guard that withholds its first query says with it
what would be answered.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import partial

from radabound_fast._checks import MAX_SAMPLES, counted
from radabound_fast.bounds import BOUNDS, Bound, guess_and_check_code, kl_tolerance
from radabound_fast.guards.halting import HaltingRule

# How much of something is left at a first query, by m and epsilon: it grows with both, and the
# query can be expected to be answered while it is not negative.
Spare = Callable[[int, float], float]

# epsilons that are tried; a root outside them is no use to anyone
LEAST_EPSILON, LARGEST_EPSILON = 1e-9, 1.0 - 1e-9


def spare_by_bound(
    bound: Bound, delta: float, n_vectors: int, error_rate: float, max_queries: int | None
) -> Spare:
    """What a guard that halts by this bound has left."""

    def spare(m: int, epsilon: float) -> float:
        if bound.proved:
            rule = HaltingRule(m, n_vectors, epsilon, delta, bound.name, max_queries=max_queries)
            if rule.free_left(0, error_rate, declared=True):
                return epsilon
        plain = bound.estimators[0] == "plain"
        expected = math.sqrt(error_rate / (2.0 * math.pi * m)) if plain else 0.0
        return bound.budget(m, n_vectors, epsilon, delta, error_rate) - expected

    return spare


def spare_of_guesses(delta: float, error_rate: float, n_queries: int = 1) -> Spare:
    """What `GuessAndCheck` has left at its n_queries-th answer."""
    nats = math.log(2.0 / delta) + guess_and_check_code(n_queries, 0, 0.0)
    # what it halts by
    return lambda m, epsilon: kl_tolerance(error_rate, nats / m, epsilon) - epsilon / 10


def least_epsilon(spare: Spare, m: int) -> float | None:
    """The smallest epsilon with which m rows suffice; None: none does."""
    from scipy.optimize import brentq

    at = partial(spare, m)
    if at(LEAST_EPSILON) >= 0.0:
        return LEAST_EPSILON
    if at(LARGEST_EPSILON) < 0.0:
        return None
    least = float(brentq(at, LEAST_EPSILON, LARGEST_EPSILON, xtol=1e-15))
    step = math.ulp(least)
    while at(least) < 0.0:  # the last bits of the root: the answer has to suffice
        least, step = least + step, 2.0 * step
    return least


def least_n_samples(spare: Spare, epsilon: float) -> int | None:
    """The fewest rows that suffice with this epsilon; None: 2**40 do not."""
    sizes = range(1, MAX_SAMPLES + 1)
    place = bisect_left(sizes, True, key=lambda m: spare(m, epsilon) >= 0.0)
    return sizes[place] if place < len(sizes) else None


def enough_for(m: int, epsilon: float, epsilon_min: float | None, n_samples_min: int | None) -> str:
    """What would suffice where m and epsilon do not."""
    ways = []
    if epsilon_min is not None:
        ways.append(f"epsilon {rounded_up(epsilon_min):g} with {counted(m, 'sample')}")
    if n_samples_min is not None:
        ways.append(f"{counted(n_samples_min, 'sample')} at epsilon {epsilon:g}")
    return " or ".join(ways) or "more samples and a larger epsilon"


def rounded_up(epsilon: float) -> float:
    """An epsilon of four digits that suffices too."""
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 3)
    return math.ceil(epsilon / unit) * unit


def first_query_by_bound(rule: HaltingRule) -> str:
    """What follows the reason why a first query is withheld: what would be answered.

    It is for an error rate that does not reveal the query's.
    """
    bound, name = BOUNDS[rule.bound.name], rule.bound.name
    # a plan is of the defaults, of rows that weigh the same, and of scores as they are
    usual = (bound.estimators[0], bound.sides[0], False, None)
    if (rule.estimator, rule.two_sided, rule.has_weights, rule.rounded) == usual:
        for error_rate in (0.25, 0.5, 1.0):
            spare = spare_by_bound(bound, rule.delta, rule.n_vectors, error_rate, rule.max_queries)
            if spare(rule.n_samples, rule.epsilon) < 0.0:
                return _shortfall(name, spare, rule.n_samples, rule.epsilon, error_rate)
    return _needs_more(name)


def first_guess(n_samples: int, epsilon: float, delta: float, guess: float | None) -> str:
    """What follows the reason why a first guess is withheld: what would be answered."""
    error_rate = 0.25 if guess is None else guess
    spare = spare_of_guesses(delta, error_rate)
    if spare(n_samples, epsilon) >= 0.0:
        return _needs_more("GuessAndCheck")
    return _shortfall("GuessAndCheck", spare, n_samples, epsilon, error_rate)


def _shortfall(name: str, spare: Spare, m: int, epsilon: float, error_rate: float) -> str:
    enough = enough_for(m, epsilon, least_epsilon(spare, m), least_n_samples(spare, epsilon))
    return f"; {name} needs {enough} to answer a first query of error rate {error_rate:g}"


def _needs_more(name: str) -> str:
    return f"; {name} needs more samples or a larger epsilon: see radabound_fast.plan"
