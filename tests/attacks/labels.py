"""Attacks on labels: what queries chosen by the answers before tell of them.

An attacker knows the guard and its parameters, and so all that is a function of the transcript; of
the labels it sees answers alone.  It returns the labels that it has learned for certain, by row.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import (
    ConfirmedSearch,
    DeclaredSearch,
    FixedSequence,
    GuessAndCheck,
    Holdout,
    HoldoutExhausted,
    Ladder,
    RadaBound,
    Rounded,
)

M = 4000
STEP = 0.01  # of a Ladder
ROUNDED = Rounded(0.01)
A_KEY = 40  # labels that a key of a real-valued metric tells


def model_of(y_true: NDArray[Any], error: float, rng: np.random.Generator) -> NDArray[Any]:
    """A model of known error, which the attacker has made without the holdout."""
    return np.where(rng.random(M) < error, 1 - y_true, y_true)


def flipped(row: NDArray[Any], sample: int) -> NDArray[Any]:
    """The row with another prediction for one sample."""
    other = row.copy()
    other[sample] = 1 - other[sample]
    return other


def by_differences(mean: Callable[[Any, int], float]) -> dict[int, int]:
    """Exact means: the base, and the base but for one prediction, tell that label.

    `mean` gets a row and a key that is new.
    """
    base = np.zeros(M, int)
    first = mean(base, M)
    changes = [mean(flipped(base, i), i) - first for i in range(M)]
    return {i: int(change < 0) for i, change in enumerate(changes) if change}


def by_a_cell(mean: Callable[[Any, int], float]) -> dict[int, int]:
    """Rounded means: walk until the answer changes; there one error more or less shows."""
    row, key = np.zeros(M, int), 0
    before = value = mean(row, key)
    while value == before:
        row[key] = 1
        key += 1
        value = mean(row, key)
    found = {}
    for i in range(M):
        has_moved = mean(flipped(row, i), key + 1 + i) != value
        is_right = has_moved != (value > before)
        found[i] = int(row[i] if is_right else 1 - row[i])
    return found


def by_digits(search: DeclaredSearch) -> dict[int, int]:
    """Brier scores: predictions of (1 - 2^-i)/2 put label i into bit i; 1/2 says nothing."""
    p = (1 - 2.0 ** -np.arange(1, A_KEY + 1)) / 2
    found: list[int] = []
    for key in range(M // A_KEY):
        row = np.full(M, 0.5)
        row[key * A_KEY : (key + 1) * A_KEY] = p
        sum_of_losses = -M * search.query(row, key=key).value
        code = round((sum_of_losses - (M - A_KEY) / 4 - (p**2).sum()) * 2**A_KEY)
        found += [code >> (A_KEY - 1 - i) & 1 for i in range(A_KEY)]
    return dict(enumerate(found))


def by_a_cell_of_scores(search: DeclaredSearch) -> dict[int, int]:
    """Rounded Brier scores: the sum of losses is brought to the edge of a cell, as in `by_a_cell`.

    Predictions of 1/2 lose a quarter whatever the label is.  In their place those of 1 lose 1 or
    nothing, more on average, so that the sum crosses the edge upwards, at a label of 0.
    """
    row, key, edge = np.full(M, 0.5), 0, 0.255 * M
    before = value = search.query(row, key=key).value
    while value == before:
        row[key] = 1.0
        key += 1
        value = search.query(row, key=key).value
    rest = (M - key) / 4
    above = rest + math.floor(edge - rest) + 1 - edge  # the other losses are 0 or 1
    row[key - 1] = math.sqrt(1 - above + 1e-4)
    found = {}
    for i in set(range(M)) - {key - 1}:
        less = row.copy()
        less[i] -= 1e-3  # the sum falls below the edge, or rises
        found[i] = int(search.query(less, key=key + 1 + i).value == value)
    return found | {key - 1: 0}


def edge_of(check: GuessAndCheck, errors: int, upper: bool) -> float:
    """The guess whose tolerance ends at a mean of so many errors: above it, or below it."""
    low, high = 0.0, 1.0
    for _ in range(40):
        guess = (low + high) / 2
        reach = check._tolerance(guess, check.spent)
        if guess + (reach if upper else -reach) < errors / M:
            low = guess
        else:
            high = guess
    return low


def by_the_edge(
    check: GuessAndCheck, model: NDArray[Any], errors: int, upper: bool = False
) -> dict[int, int]:
    """GuessAndCheck: with a guess at the edge, one error more or less decides whether it passes.

    A query that differs from the model in one prediction tells that label.  At the lower edge the
    likely outcome, one error more, passes and costs little.
    """
    found = {}
    with contextlib.suppress(HoldoutExhausted):
        for i in range(M):
            answer = check.query(flipped(model, i), guess=edge_of(check, errors, upper))
            found[i] = int(model[i] if answer.passed != upper else 1 - model[i])
    return found


def by_the_walk(ladder: Ladder, model: NDArray[Any]) -> dict[int, int]:
    """Ladder: walk from the complement of a model to the model, one prediction at a time.

    Where the answer falls, that prediction is right; where it falls by a step after no more
    predictions than a step has errors, all of these are right.
    """
    walk = np.where(np.arange(M) < np.arange(M + 1)[:, None], model, 1 - model)
    falls = np.flatnonzero(ladder.query_many(walk).updated)[1:].tolist()
    found = {}
    for before, fall in itertools.pairwise([None, *falls]):
        whole = before is not None and fall - before == round(STEP * M)
        for i in range(before if whole else fall - 1, fall):
            found[i] = int(model[i])
    return found


# ---- the table ----------------------------------------------------------------------------------


def means(guard: Any) -> dict[int, int]:
    """The attack of whoever gets exact means."""
    return by_differences(lambda row, _: guard.query(row).value)


def rounded_means(guard: Any) -> dict[int, int]:
    """The attack of whoever gets rounded means."""
    return by_a_cell(lambda row, _: guard.query(row).value)


# guards whose answers are exact: the attack needs no model
EXACT: dict[str, tuple[Callable[[Any], Any], Callable[[Any], dict[int, int]]]] = {
    "`radabound`": (lambda y: RadaBound(y, epsilon=0.2, delta=0.1), means),
    "`fixed-sequence`": (lambda y: FixedSequence(y, epsilon=0.1, delta=0.1), means),
    "`fixed-sequence`, without signs": (
        lambda y: FixedSequence(y, epsilon=0.1, delta=0.1, n_vectors=0), means),
    "`declared-search`": (
        lambda y: DeclaredSearch(y, M + 1, delta=0.1),
        lambda search: by_differences(lambda row, key: search.query(row, key=key).value)),
    "`declared-search` of `neg_brier_score`": (
        lambda y: DeclaredSearch(Holdout(y, metric="neg_brier_score"), M // A_KEY, delta=0.1),
        by_digits),
    "`confirmed-search`, half of the rows kept apart": (
        lambda y: ConfirmedSearch(y, confirm_share=0.5, delta=0.1),
        lambda search: by_differences(lambda row, _: search.score(row))),
    "`radabound`, `--round .01`": (
        lambda y: RadaBound(y, epsilon=0.2, delta=0.1, release=ROUNDED), rounded_means),
    "`fixed-sequence`, `--round .01`": (
        lambda y: FixedSequence(y, epsilon=0.1, delta=0.1, release=ROUNDED), rounded_means),
    "`fixed-sequence`, without signs, `--round .01`": (
        lambda y: FixedSequence(y, epsilon=0.1, delta=0.1, n_vectors=0, release=ROUNDED),
        rounded_means),
    "`declared-search`, `--round .01`": (
        lambda y: DeclaredSearch(y, 2 * M, delta=0.1, release=ROUNDED),
        lambda search: by_a_cell(lambda row, key: search.query(row, key=key).value)),
    "`declared-search` of `neg_brier_score`, `--round .01`": (
        lambda y: DeclaredSearch(
            Holdout(y, metric="neg_brier_score"), 2 * M, delta=0.1, release=ROUNDED),
        by_a_cell_of_scores),
}  # fmt: skip
ERRORS = (0.1, 0.05, 0.02, 0.01)
# guards whose answers have few bits, and the attack of whoever has a model and knows its errors
FEW_BITS: dict[str, tuple[int, Callable[[Any, Any, int], dict[int, int]]]] = {
    "`guess-and-check`, epsilon .05": (
        203, lambda y, model, n: by_the_edge(GuessAndCheck(y, epsilon=0.05, delta=0.1), model, n)),
    "`guess-and-check`, epsilon .1": (
        414, lambda y, model, n: by_the_edge(GuessAndCheck(y, epsilon=0.1, delta=0.1), model, n)),
    "`ladder`, step .01": (
        779, lambda y, model, n: by_the_walk(Ladder(y, STEP, delta=0.1), model)),
}  # fmt: skip
