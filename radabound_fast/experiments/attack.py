"""The attack of the weighted vote: k random classifiers, then the vote that looks best.

Labels are fair coins, so every truth is 1/2.  The analyst weights each of k random classifiers by
how far its answer lies from 1/2, and asks about their vote: by exact means it errs far less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.bounds import BOUNDS
from radabound_fast.experiments.runner import Row, Task, any_off, column, share, summarised
from radabound_fast.experiments.searches import DELTA, N_SAMPLES, N_VECTORS, thresholdout
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.guards.by_bound import guard_by_bound
from radabound_fast.guards.guess_and_check import GuessAndCheck
from radabound_fast.guards.ladder import Ladder
from radabound_fast.rows.packing import pack_losses

EPSILONS = (0.05, 0.06, 0.07, 0.08, 0.1, 0.2)
N_CLASSIFIERS = (10, 20, 50, 100, 200, 400, 800, 1600, 3200)


# of the classifiers in the vote, by the answers to a block of them
Weights = Callable[[Any], NDArray[np.float64]]


class Classifiers:
    """Random classifiers on one holdout, and votes of the first k of them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        losses = rng.integers(0, 2, (N_CLASSIFIERS[-1], N_SAMPLES), dtype=np.uint8)
        self.losses = pack_losses(losses)
        self._right = 1 - 2 * losses.astype(np.float32)  # +1 where a classifier is right, else -1
        # ties are broken by coins of their own, so that a vote is a fair coin too
        self._coins = 1e-6 * rng.standard_normal(N_SAMPLES, dtype=np.float32)

    def vote(self, weights: NDArray[np.float64]) -> PackedLosses:
        """Losses of the vote of the first ``len(weights)`` classifiers."""
        score = weights.astype(np.float32) @ self._right[: len(weights)] + self._coins
        return pack_losses(score < 0)

    def near(self, deviation: float) -> NDArray[np.float64]:
        """Honest guesses of the means of all classifiers and of the vote: normal errors."""
        guesses = 0.5 + deviation * self.rng.standard_normal(N_CLASSIFIERS[-1] + 1)
        return np.clip(guesses, 0.0, 1.0)


class Run(NamedTuple):
    """The answers to one run of the attack."""

    answers: Sequence[float]  # in order; the vote's last, where it was answered
    half_width: float  # the largest that was promised; nan where none is


def tasks(repeats: int) -> list[Task]:
    """One cell per repeat."""
    return [Task("attack", f"{repeat:04}", partial(attack, repeat)) for repeat in range(repeats)]


def attack(repeat: int) -> list[Row]:
    """One set of classifiers against everything: a row for each mechanism, epsilon and k."""
    rng = np.random.default_rng([repeat, 40])
    classifiers = Classifiers(rng)
    return [
        {
            "mechanism": mechanism,
            "epsilon": epsilon,
            "k": k,
            "repeat": repeat,
            "answered": len(run.answers),
            "vote_answered": int(len(run.answers) == k + 1),
            "half_width": round(run.half_width, 5),
            "off": int(any_off(run.answers, 0.5, epsilon)),
            "broken": int(any_off(run.answers, 0.5, run.half_width)),
        }
        for mechanism, epsilon, runs in _against(classifiers, int(rng.integers(2**63)))
        for k, run in zip(N_CLASSIFIERS, runs, strict=True)
    ]


def _against(classifiers: Classifiers, seed: int) -> Iterator[tuple[str, float, list[Run]]]:
    near, far = classifiers.near(0.005), classifiers.near(0.02)
    training = classifiers.near(0.5 / math.sqrt(N_SAMPLES))  # of a training set as large

    def against(mechanism: Callable[[], Any], weights: Weights, **options: Any) -> list[Run]:
        return _for_each_k(partial(_in_a_block, classifiers, mechanism, weights, **options))

    for epsilon in EPSILONS:
        common: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
        signed = {"n_vectors": N_VECTORS, "seed": seed, **common}
        for bound in BOUNDS:
            guard = partial(guard_by_bound, bound, N_SAMPLES, **signed)
            yield bound, epsilon, against(guard, _by_values, half_width=epsilon)
        # at means near 1/2 the tolerance by relative entropy is Hoeffding's, and halts sooner
        check = partial(GuessAndCheck, N_SAMPLES, **common, low_error=False)
        for name, guesses in (("off by .005", near), ("off by .02", far)):
            runs = against(check, _by_values, guesses=guesses)
            yield f"guess and check, guesses {name}", epsilon, runs
        runs = _for_each_k(partial(_with_attackers_guesses, classifiers, check))
        yield "guess and check, attacker's guesses", epsilon, runs
        practical = partial(thresholdout, epsilon, seed)
        yield "Thresholdout", epsilon, against(practical, _by_failures, guesses=training)
    runs = against(partial(Ladder, N_SAMPLES, 0.01, delta=DELTA), _by_updates)
    for epsilon in EPSILONS:  # which a Ladder does not know
        yield "Ladder, step .01", epsilon, runs


def _by_values(block: Any) -> NDArray[np.float64]:
    return np.asarray(0.5 - block.values)


def _by_failures(block: Any) -> NDArray[np.float64]:
    """A training mean says nothing of its classifier."""
    return np.where(block.passed, 0.0, 0.5 - block.values)


def _by_updates(block: Any) -> NDArray[np.float64]:
    """An answer that is repeated says nothing of its classifier."""
    return np.asarray(block.updated, np.float64)


def _for_each_k(attack_of: Callable[[int], Run]) -> list[Run]:
    """The attack with each number of classifiers, the most first.

    Where that is halted among the classifiers, so is every attack with more of them.
    """
    runs: list[Run] = []
    for k in reversed(N_CLASSIFIERS):
        is_halted = runs and len(runs[-1].answers) < k
        runs.append(runs[-1] if is_halted else attack_of(k))
    return runs[::-1]


def _in_a_block(
    classifiers: Classifiers,
    mechanism: Callable[[], Any],
    weights: Weights,
    k: int,
    *,
    guesses: NDArray[np.float64] | None = None,
    half_width: float = 0.0,
) -> Run:
    """The attack by one block of queries, and the vote, with guesses that no answer decides."""
    guard = mechanism()
    first, last = ({}, {}) if guesses is None else ({"guesses": guesses[:k]}, {"guess": guesses[k]})
    block = guard.query_many(classifiers.losses[:k], **first)
    answers, width = block.values.tolist(), float(np.max(block.half_widths, initial=half_width))
    if not block.halted:
        with suppress(HoldoutExhausted):
            answer = guard.query(classifiers.vote(weights(block)), **last)
            answers.append(answer.value)
            width = max(width, answer.half_width)
    return Run(answers, width)


def _with_attackers_guesses(
    classifiers: Classifiers, mechanism: Callable[[], GuessAndCheck], k: int
) -> Run:
    """The attack with guesses that put 1/2 two standard deviations inside the tolerance's rim.

    A failed guess is rare and shows that the classifier does well here.  The guess for the vote
    tests whether the vote is as good as an error of epsilon needs.
    """
    check = mechanism()
    answers: list[float] = []
    weights = np.empty(k)
    with suppress(HoldoutExhausted):
        for number in range(k):
            guess = 0.5 + check.tolerance - 1.0 / math.sqrt(N_SAMPLES)
            answer = check.query(classifiers.losses[number], guess=min(guess, 1.0))
            answers.append(answer.value)
            weights[number] = -1.0 if answer.passed else 1.0
        vote = classifiers.vote(weights)
        answers.append(check.query(vote, guess=0.5 - 1.01 * check.epsilon).value)
    return Run(answers, check.epsilon)


def summary(rows: Sequence[Row]) -> list[Row]:
    """A row for each mechanism, epsilon and k, over the repeats."""

    def line(runs: Sequence[Row]) -> Row:
        return {
            "delta": DELTA,
            "repeats": len(runs),
            "answered_mean": round(float(np.mean(column(runs, "answered"))), 1),
            "votes_answered": round(float(np.mean(column(runs, "vote_answered"))), 4),
            "half_width": round(float(np.max(column(runs, "half_width"))), 4),
            **share(column(runs, "off")),
            "broken": round(float(np.mean(column(runs, "broken"))), 4),
        }

    return summarised(rows, ("mechanism", "epsilon", "k"), line)
