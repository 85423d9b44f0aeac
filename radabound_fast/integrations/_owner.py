"""What every adapter asks of the holdout before anything is fitted, and how it ends."""

from __future__ import annotations

from typing import Any

from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast.bounds import BOUNDS
from radabound_fast.guard import RadaBound
from radabound_fast.holdout import Holdout
from radabound_fast.mechanisms import DeclaredSearch, GuessAndCheck
from radabound_fast.planning import plan


def check_holdout(**named: Any) -> Holdout:
    """A `Holdout` that still answers.

    Raises TypeError if it is no `Holdout`, HoldoutExhausted if it has halted or can never answer.
    """
    ((name, holdout),) = named.items()
    if not isinstance(holdout, Holdout):
        raise TypeError(
            f"{name} must be a Holdout, which holds the labels, got {type(holdout).__name__}"
        )
    check_answers(holdout.guard, name)
    return holdout


def check_answers(guard: Any, name: str) -> None:
    """HoldoutExhausted if the guard has halted, or would at its first query, whatever that is."""
    if guard.halted:
        reason = f"{name} had halted before: nothing is fitted"
    elif isinstance(guard, RadaBound) and guard.n_queries == 0 and _answers_nothing(guard):
        reason = f"{name} can answer no query: nothing is fitted"
    else:
        return
    raise HoldoutExhausted(
        reason + ("" if guard.n_queries else _what_would_work(guard)),
        n_queries=guard.n_queries,
        complexity=getattr(guard, "complexity", None),
        threshold=getattr(guard, "threshold", None),
    )


def _answers_nothing(guard: RadaBound) -> bool:
    """Whether a fresh guard refuses even a query without losses."""
    return guard.budget < 0.0 and guard.n_left(0.0, declared=True) == 0


def needs_guess(holdout: Holdout) -> bool:
    """Whether its queries need a guess of the answer."""
    return bool(getattr(holdout.guard, "_needs_guess", False))


def takes_keys(holdout: Holdout) -> bool:
    """Whether a query says which model of a declared space it is about."""
    return isinstance(holdout.guard, DeclaredSearch)


def check_guesses(holdout: Holdout, guesses: bool) -> None:
    """ValueError unless a holdout that needs guesses gets them."""
    if needs_guess(holdout) and not guesses:
        kind = type(holdout.guard).__name__
        raise ValueError(
            f"guesses must be True with {kind}, and fit_predict return (predictions, guess)"
        )


def first_withheld(guard: Any, name: str, guess: float | None = None) -> HoldoutExhausted:
    """What to raise if this call got no answer at all."""
    reason = f"{name} withheld the first answer"
    if guard.n_queries == 0:
        reason += _what_would_work(guard, guess)
    return HoldoutExhausted(
        reason,
        n_queries=guard.n_queries,
        complexity=getattr(guard, "complexity", None),
        threshold=getattr(guard, "threshold", None),
    )


def _what_would_work(guard: Any, guess: float | None = None) -> str:
    """What `Plan.shortfall` says of the guard, at error rates that do not tell the true one."""
    rates: list[float]
    if isinstance(guard, RadaBound):
        name, n_vectors, rates = guard.bound, guard.n_vectors, [0.25, 0.5, 1.0]
        row, rule = BOUNDS[name], guard._rule
        chosen = (guard.estimator, guard.two_sided, rule.max_queries)
        if chosen != (row.estimators[0], row.sides[0], None):
            rates = []  # a plan is of the defaults
    elif isinstance(guard, GuessAndCheck):
        name, n_vectors, rates = "GuessAndCheck", 32, [0.25 if guess is None else guess]
    else:
        return ""  # no holdout is too small for the first answer of another mechanism
    for error_rate in rates:
        planned = plan(guard.n_samples, guard.epsilon, guard.delta, n_vectors, error_rate)
        shortfall = planned.shortfall(name)
        if shortfall:
            return f"; {shortfall}"
    return f"; {name} needs more samples or a larger epsilon: see radabound_fast.plan"


def predictions_of(output: Any, guesses: bool) -> tuple[Any, Any]:
    """Predictions, and a guess or None, from what `fit_predict` returned."""
    if not guesses:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError(
            f"fit_predict must return (predictions, guess), got {type(output).__name__}"
        )
    return output


def hand_over(error: BaseException, answers: Any, n_answers: int) -> None:
    """Put answers that were counted before an error on it, as its attribute `answers`."""
    error.answers = answers  # type: ignore[attr-defined]
    if n_answers:
        error.add_note(f"the answers counted before it, {n_answers:,}, are its attribute `answers`")
