"""How often each bound misses on a class of coverage_classes, by simulation.

*At a fixed number of queries* the class is all of F_K, and a bound misses if a mean is further
from its truth than it says.  *At the halting time* queries are asked while a rule allows, and it
misses if an answer it gave is off by more than the epsilon fixed in advance.  Epsilons are chosen
such that the rule halts about when a tenth, a half, or all of the queries have been asked, by
the average of a few draws of their own (`pilot`), or for fixed-sequence such that its signs do, or
its union bound; the worst of them is reported.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from coverage_classes import CLASSES, Draw, Path
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import rel_entr

from radabound_fast import bounds
from radabound_fast.bounds import BOUNDS, PAPER_BOUNDS, Free

SIZES = (200, 1000, 4000)  # m
VECTORS = (1, 32, 128)  # l: a draw has the most, and the first few of them stand for fewer
DELTAS = (0.1, 0.3)
STOPS = (0.0, 0.1, 0.5, 1.0)  # shares of the queries
N_PILOT = 10

FIXED, FIXED_ONE_SIDED, HALTING = "fixed k", "fixed k, one-sided", "halting time"
Booleans = NDArray[np.bool_]


class Row(NamedTuple):
    """One line of the table: misses out of so many runs; epsilon at a halting time only."""

    bound: str
    estimator: str
    proved: bool
    form: str
    n_vectors: int
    delta: float
    epsilon: float | None
    misses: int


class Seen(NamedTuple):
    """A path under its first l vectors."""

    path: Path
    half_range: NDArray[np.float64]  # (K,) complexity after each query
    plain: NDArray[np.float64]  # (K,)
    gap: NDArray[np.float64]  # (K,) largest |P_m f - P f| so far


def seen(path: Path, m: int, n_vectors: int) -> Seen:
    high = path.maxima[:, :n_vectors].astype(np.int64)
    low = path.minima[:, :n_vectors].astype(np.int64)
    return Seen(
        path,
        (high - low).sum(1) / (2 * n_vectors * m),
        np.maximum(high, 0).sum(1) / (n_vectors * m),
        np.maximum(path.above, path.below),
    )


# ---- at a fixed number of queries ------------------------------------------------------------


class Beyond(NamedTuple):
    """A bound on the excess over twice the complexity."""

    name: str
    estimator: str
    proved: bool
    excess: Callable[[float, int, int], float]  # of log delta, m, l


BEYOND = [
    Beyond(name, estimator, True, partial(function, estimator=estimator))
    for name, function in (
        ("McDiarmid", bounds.mcdiarmid_excess),
        ("symmetrised", bounds.symmetrised_excess),
    )
    for estimator in ("half-range", "plain")
] + [
    Beyond(row.name, estimator, False, row.excess)
    for row in BOUNDS.values()
    if row.excess is not None
    for estimator in row.estimators
]


def misses_at_fixed_k(runs: list[Seen], m: int, n_vectors: int) -> Iterator[Row]:
    """All bounds, on F_K.  The paper's are two-sided as Algorithm 1 uses them, at delta itself."""
    above = np.array([run.path.above[-1] for run in runs])
    below = np.array([run.path.below[-1] for run in runs])
    gap = np.maximum(above, below)
    doubled = {
        "half-range": 2 * np.array([run.half_range[-1] for run in runs]),
        "plain": 2 * np.array([run.plain[-1] for run in runs]),
    }
    for delta in DELTAS:

        def row(name: str, estimator: str, proved: bool, form: str, bad: Any, delta=delta) -> Row:
            return Row(name, estimator, proved, form, n_vectors, delta, None, int(np.sum(bad)))

        for bound in BEYOND:
            base = doubled[bound.estimator]
            excess = bound.excess(math.log(delta), m, n_vectors)
            worse = max((above, below), key=lambda side: np.sum(side > base + excess))
            one_sided = worse > base + excess
            yield row(*bound[:3], FIXED_ONE_SIDED, one_sided)
            if bound.proved:
                excess = bound.excess(math.log(delta / 2), m, n_vectors)
            yield row(*bound[:3], FIXED, gap > base + excess)

        halves = [run.half_range[-1] for run in runs]
        widths = [split_width(half, 0.5, m, n_vectors, delta) for half in halves]
        yield row("self-bounding", "half-range", True, FIXED, gap > widths)
        means = [run.path.largest[-1] / m for run in runs]
        widths = [
            bounds.low_error_half_width(half, mean, m, n_vectors, delta)
            for half, mean in zip(halves, means, strict=True)
        ]
        yield row("low error", "half-range", True, FIXED, gap > widths)
        if n_vectors == VECTORS[0] and runs[0].path.means is not None:
            for name, bad in union_misses([run.path for run in runs], m, delta):
                yield row(name, "none", True, FIXED, bad)


def union_misses(paths: list[Path], m: int, delta: float) -> Iterator[tuple[str, Booleans]]:
    """Runs in which some query is outside its interval; the bounds need no signs."""
    means = np.array([path.means for path in paths])
    truths = np.array([path.truths for path in paths])
    # b >= kl(mean, truth) is that the truth is within the interval
    divergence = rel_entr(means, truths) + rel_entr(1 - means, 1 - truths)
    queries = range(1, means.shape[1] + 1)
    for name, most in (("union, flat weights", len(queries)), ("union, 1/(k(k+1))", None)):
        widths = [bounds.union_half_width(k, m, delta, max_queries=most) for k in queries]
        yield name, (np.abs(means - truths) > widths).any(1)
        yield name + ", kl", (divergence > 2 * np.square(widths)).any(1)


# ---- at the halting time ---------------------------------------------------------------------


class Rule(NamedTuple):
    """What a guard halts by: a width at a complexity, and the complexity within an epsilon."""

    name: str
    estimator: str
    proved: bool
    by_mean: bool  # whether the budget depends on the largest mean
    width: Callable[[float, float, int, int, float], float]  # complexity, mean, m, l, delta
    budget: Callable[[float, float, int, int, float], float]  # epsilon, mean, m, l, delta
    free: Callable[[float, int, int, float], Free | None]  # epsilon, K, m, delta


def none_free(*_: Any) -> None:
    return None


def row_budget(
    name: str, epsilon: float, mean: float, m: int, n_vectors: int, delta: float
) -> float:
    return BOUNDS[name].budget(m, n_vectors, epsilon, delta, mean)


def paper_rule(name: str) -> Rule:
    row = BOUNDS[name]

    def width(complexity: float, mean: float, m: int, n_vectors: int, delta: float) -> float:
        return 2 * complexity + row.excess(math.log(row.threshold(delta)), m, n_vectors)

    return Rule(name, row.estimators[0], False, False, width, partial(row_budget, name), none_free)


def fixed_sequence_rule(name: str, with_max_queries: bool) -> Rule:
    def width(complexity: float, mean: float, m: int, n_vectors: int, delta: float) -> float:
        return bounds.low_error_half_width(complexity, mean, m, n_vectors, 0.6 * delta)

    def free(epsilon: float, n_queries: int, m: int, delta: float) -> Free:
        most = n_queries if with_max_queries else None
        return BOUNDS["fixed-sequence"].free(m, epsilon, delta, most)

    return Rule(name, "half-range", True, True, width, partial(row_budget, "fixed-sequence"), free)


def split_width(complexity: float, mean: float, m: int, n_vectors: int, delta: float) -> float:
    """The self-bounding split: the weighted bound at equal weights, whatever the mean."""
    return bounds.weighted_half_width(complexity, 1 / m, 1 / m, n_vectors, delta)


def split_budget(epsilon: float, mean: float, m: int, n_vectors: int, delta: float) -> float:
    def lacking(complexity: float) -> float:
        return split_width(complexity, mean, m, n_vectors, delta) - epsilon

    return brentq(lacking, 0.0, epsilon, xtol=1e-16) if lacking(0.0) < 0.0 else -1.0


RULES = [
    Rule(
        "self-bounding",
        "half-range",
        True,
        False,
        split_width,
        split_budget,
        none_free,
    ),
    Rule(
        "low error",
        "half-range",
        True,
        True,
        bounds.low_error_half_width,
        bounds.low_error_budget,
        none_free,
    ),
    fixed_sequence_rule("fixed-sequence", with_max_queries=False),
    fixed_sequence_rule("fixed-sequence, max_queries", with_max_queries=True),
    *map(paper_rule, PAPER_BOUNDS),
]


class Gate:
    """One rule with one epsilon; its budget is kept for every largest count met so far."""

    def __init__(
        self, rule: Rule, epsilon: float, m: int, n_vectors: int, delta: float, n_queries: int
    ) -> None:
        self.rule, self.epsilon, self.delta = rule, epsilon, delta
        self.misses = 0
        self._budget = cache(lambda count: rule.budget(epsilon, count / m, m, n_vectors, delta))
        self._m = m
        # so many errors, or correct ones, are answered without signs
        self._low = np.full(n_queries, -1)
        free, asked = rule.free(epsilon, n_queries, m, delta), 0
        while free is not None and asked < n_queries:
            stage = free.stage(asked)
            self._low[asked : stage.n_queries] = stage.low_count
            asked = stage.n_queries

    def n_answered(self, run: Seen) -> int:
        """How many queries are answered before the first that is not."""
        complexity = run.half_range if self.rule.estimator == "half-range" else run.plain
        if not self.rule.by_mean:
            return int(np.searchsorted(complexity, self._budget(self._m), side="right"))
        # from a mean of 1/2 on no larger mean is worse
        counts = np.minimum(run.path.largest, (self._m + 1) // 2)
        # widths do not decrease: what is not answered stays so
        n = bisect_left(
            range(len(complexity)), True, key=lambda k: complexity[k] > self._budget(int(counts[k]))
        )
        if run.path.means is None:
            return n
        counts = np.rint(run.path.means[n:] * self._m)
        withheld = np.minimum(counts, self._m - counts) > self._low[n:]
        return n + int(np.argmax(withheld)) if withheld.any() else len(complexity)

    def ask(self, run: Seen) -> None:
        n = self.n_answered(run)
        self.misses += bool(n and run.gap[n - 1] > self.epsilon)


def union_epsilon(pilot: list[Seen], k: int, m: int, delta: float) -> float:
    """By which the dyadic half of fixed-sequence would answer the first k queries."""
    free = BOUNDS["fixed-sequence"].free(m, 0.5, delta, 1)
    places = np.arange(1, k + 2)
    widths = []
    for run in pilot:
        means = run.path.means[: k + 1]
        low, high = free.interval(means, places, declared=True)
        widths.append(np.maximum(high - means, means - low).max())
    return float(np.mean(widths))


def gates(pilot: list[Seen], m: int, n_vectors: int, rules: list[Rule]) -> list[Gate]:
    """Every rule at every delta, with the epsilons at which it would halt at the stops."""
    queries = len(pilot[0].gap)
    made = []
    for rule in rules:
        for delta in DELTAS:
            for stop in STOPS:
                k = max(0, math.ceil(stop * queries) - 1)
                if rule.free is not none_free and pilot[0].path.means is not None:
                    epsilon = min(union_epsilon(pilot, k, m, delta), 0.999)
                    made.append(Gate(rule, epsilon, m, n_vectors, delta, queries))
                complexity = np.mean(
                    [
                        run.half_range[k] if rule.estimator == "half-range" else run.plain[k]
                        for run in pilot
                    ]
                )
                mean = np.mean([run.path.largest[k] for run in pilot]) / m
                epsilon = rule.width(float(complexity), float(mean), m, n_vectors, delta)
                epsilon = min(epsilon, 0.999)  # beyond 1 nothing can be missed
                made.append(Gate(rule, epsilon, m, n_vectors, delta, queries))
    return made


def misses_at_the_halt(asked: list[Gate], n_vectors: int, rules: list[Rule]) -> Iterator[Row]:
    """The worst epsilon of every rule and delta."""
    for rule in rules:
        for delta in DELTAS:
            same = [gate for gate in asked if gate.rule is rule and gate.delta == delta]
            worst = max(same, key=lambda gate: gate.misses)
            yield Row(
                rule.name, rule.estimator, rule.proved, HALTING, n_vectors, delta,
                worst.epsilon, worst.misses,
            )  # fmt: skip


# ---- one class -------------------------------------------------------------------------------


def draws(draw: Draw, seed: Iterable[int], n_runs: int) -> Iterator[Path]:
    rng = np.random.default_rng(list(seed))
    for _ in range(n_runs):
        yield draw(rng, max(VECTORS))


def last(run: Seen) -> Seen:
    """What is needed of a run at a fixed number of queries, without the rest of its memory."""
    path = run.path
    end = Path(*(values[-1:].copy() for values in path[:5]), means=path.means, truths=path.truths)
    return Seen(end, run.half_range[-1:], run.plain[-1:], run.gap[-1:])


def simulate(
    name: str, m: int, n_runs: int, stream: int = 0, only: tuple[str, ...] = ()
) -> list[Row]:
    """The misses of every bound on one class at one sample size, for every l.

    With `only`, of these rules alone, at the halting time.
    """
    draw = CLASSES[name](m)
    cell = [stream, list(CLASSES).index(name), m]
    rules = [rule for rule in RULES if not only or rule.name in only]
    pilot = list(draws(draw, [*cell, 1], N_PILOT))
    asked = {n: gates([seen(path, m, n) for path in pilot], m, n, rules) for n in VECTORS}
    ends: dict[int, list[Seen]] = {n: [] for n in VECTORS}
    for path in draws(draw, [*cell, 0], n_runs):
        for n in VECTORS:
            run = seen(path, m, n)
            ends[n].append(last(run))
            for gate in asked[n]:
                gate.ask(run)
    return [
        row
        for n in VECTORS
        for row in (
            *(() if only else misses_at_fixed_k(ends[n], m, n)),
            *misses_at_the_halt(asked[n], n, rules),
        )
    ]
