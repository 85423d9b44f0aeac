"""A search on a holdout: the answers of each guard, and how far off they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds import BOUNDS
from radabound_fast.experiments.runner import Row, any_off, column, share, summarised
from radabound_fast.experiments.thresholdout import Thresholdout
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.by_bound import guard_by_bound
from radabound_fast.guards.guess_and_check import GuessAndCheck
from radabound_fast.guards.ladder import Ladder
from radabound_fast.rows.packing import pack_losses

DELTA = 0.1
N_VECTORS = 32
N_SAMPLES = 4000

Candidate = TypeVar("Candidate")


class Question(NamedTuple):
    """A candidate's losses, and what is known of their mean without the holdout."""

    losses: NDArray[np.bool_]  # (N_SAMPLES,), on the holdout
    guess: float  # its cross-validation error on the training data
    truth: float  # its error on fresh data


def question_of(wrong: Iterable[NDArray[np.bool_]]) -> Question:
    """The question of a candidate that errs on these training, held-out and fresh rows."""
    training, losses, fresh = wrong
    return Question(losses, float(training.mean()), float(fresh.mean()))


class Problem(Protocol[Candidate]):
    """A source of candidates for a search."""

    def first(self) -> Candidate: ...

    def change(self, best: Candidate, rng: np.random.Generator) -> Candidate: ...

    def question(self, candidate: Candidate) -> Question: ...


class Outcome(NamedTuple):
    """The answers to a search, in order."""

    values: NDArray[np.float64]  # (n_answers,)
    truths: NDArray[np.float64]  # (n_answers,), of the candidates
    half_width: float  # the largest that was promised; nan where none is
    halted: bool


def climb(
    problem: Problem[Candidate],
    ask: Callable[[Question], tuple[float, float]],
    n_candidates: int,
    rng: np.random.Generator,
) -> Outcome:
    """A search that changes the best candidate so far: the one with the lowest answer.

    `ask` returns an answer and its half-width.
    """
    values: list[float] = []
    truths: list[float] = []
    best = candidate = problem.first()
    lowest, widest = np.inf, 0.0
    for _ in range(n_candidates):
        question = problem.question(candidate)
        try:
            value, half_width = ask(question)
        except HoldoutExhausted:
            break
        values.append(value)
        truths.append(question.truth)
        widest = max(half_width, widest)
        if value < lowest:
            best, lowest = candidate, value
        candidate = problem.change(best, rng)
    return Outcome(np.array(values), np.array(truths), widest, len(values) < n_candidates)


def against_all(
    problem: Problem[Any], epsilons: Sequence[float], n_candidates: int, seed: int
) -> list[Row]:
    """One search against every guard: a row for each, and for each epsilon tolerated.

    What the search changes, of up to `n_candidates`, is drawn from the same seed each time; signs
    and noise take the next one.
    """
    queries: list[NDArray[np.bool_]] = []

    def exact(question: Question) -> tuple[float, float]:
        queries.append(question.losses)
        return float(question.losses.mean()), math.nan

    search = partial(climb, problem, n_candidates=n_candidates)
    plain = search(ask=exact, rng=np.random.default_rng(seed))
    losses = pack_losses(np.array(queries))
    rows: list[Row] = []
    for epsilon in epsilons:
        rows.append(_row("no guard", epsilon, plain, plain.truths))
        for bound in BOUNDS:
            # exact answers until the first refusal: the same search, cut short
            guard = guard_by_bound(
                bound, N_SAMPLES, epsilon=epsilon, delta=DELTA, n_vectors=N_VECTORS, seed=seed + 1
            )
            answers = guard.query_many(losses)
            n = len(answers)
            outcome = Outcome(plain.values[:n], plain.truths[:n], epsilon, answers.halted)
            rows.append(_row(bound, epsilon, outcome, outcome.truths))
        mechanisms: tuple[tuple[str, Any], ...] = (
            ("guess and check", GuessAndCheck(N_SAMPLES, epsilon=epsilon, delta=DELTA)),
            ("Ladder, step .01", Ladder(N_SAMPLES, 0.01, delta=DELTA)),
            ("Thresholdout", thresholdout(epsilon, seed + 1)),
        )
        for name, mechanism in mechanisms:
            outcome = search(ask=partial(_ask, mechanism), rng=np.random.default_rng(seed))
            targets = outcome.truths
            if name.startswith("Ladder"):  # it speaks of the best so far
                targets = np.minimum.accumulate(targets)
            rows.append(_row(name, epsilon, outcome, targets))
    return rows


def thresholdout(epsilon: float, seed: int) -> Thresholdout:
    """Thresholdout with practical parameters: its theorem asks for millions of samples."""
    return Thresholdout(
        N_SAMPLES, threshold=0.8 * epsilon, noise=0.1 * epsilon, budget=400, seed=seed
    )


def _ask(guard: Any, question: Question) -> tuple[float, float]:
    guess = {"guess": question.guess} if guard.needs == "guess" else {}
    answer = guard.query(question.losses, **guess)
    return float(answer.value), answer.half_width


def _row(name: str, epsilon: float, outcome: Outcome, targets: NDArray[np.float64]) -> Row:
    n = len(outcome.values)
    best = int(np.argmin(outcome.values)) if n else None
    return {
        "mechanism": name,
        "epsilon": epsilon,
        "answered": n,
        "halted": int(outcome.halted),
        "half_width": round(outcome.half_width, 4),
        "told": math.nan if best is None else round(float(outcome.values[best]), 5),
        "truth": math.nan if best is None else round(float(outcome.truths[best]), 5),
        "off": int(any_off(outcome.values, targets, epsilon)),
    }


def summary(rows: Sequence[Row]) -> list[Row]:
    """A row for each data set, epsilon and mechanism, over the repeats; errors and gaps in %."""

    def line(runs: Sequence[Row]) -> Row:
        reported, truth = np.array([column(runs, "told"), column(runs, "truth")])
        return {
            "delta": DELTA,
            "runs": len(runs),
            "halted": int(sum(column(runs, "halted"))),
            "answered_median": int(np.median(column(runs, "answered"))),
            "half_width": round(float(np.max(column(runs, "half_width"))), 4),
            "told": _median_percent(reported),
            "truth": _median_percent(truth),
            "gap": _median_percent(truth - reported),
            "gap_least": _percent(np.fmin.reduce(truth - reported)),
            "gap_largest": _percent(np.fmax.reduce(truth - reported)),
            **share(column(runs, "off")),
        }

    return summarised(rows, ("data", "epsilon", "mechanism"), line)


def _median_percent(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]  # a search without an answer has no best candidate
    return _percent(float(np.median(known))) if len(known) else math.nan


def _percent(value: float) -> float:
    return round(100.0 * value, 2)
