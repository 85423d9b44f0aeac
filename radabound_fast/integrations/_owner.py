"""What every adapter asks of the holdout before anything is fitted, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.planning import what_would_work

if TYPE_CHECKING:
    from radabound_fast.holdout import Holdout
    from radabound_fast.service.client import RemoteHoldout

    AnyHoldout = Holdout | RemoteHoldout

# what the adapters ask of a holdout, which has the labels or asks a service that has them
_PROTOCOL = ("query", "guard", "metric", "classes", "pos_label", "n_samples")


def check_holdout(**named: Any) -> Any:
    """A `Holdout`, or a `RemoteHoldout`, that still answers.

    Raises TypeError if it is no `Holdout`, HoldoutExhausted if it has halted or can never answer.
    """
    ((name, holdout),) = named.items()
    if isinstance(holdout, type) or not all(hasattr(holdout, part) for part in _PROTOCOL):
        raise TypeError(
            f"{name} must be a Holdout, which holds the labels, got {type(holdout).__name__}"
        )
    _check_answers(holdout.guard, name)
    return holdout


def check_error_rates(**named: Any) -> Any:
    """The same, for adapters that ask with classes and take less for better; else ValueError."""
    ((name, _),) = named.items()
    holdout = check_holdout(**named)
    if holdout.metric != "error":
        raise ValueError(f"{name} must have metric='error' here, got {holdout.metric!r}")
    return holdout


def _check_answers(guard: Any, name: str) -> None:
    """HoldoutExhausted if the guard has halted, or would at its first query, whatever that is."""
    if guard.halted:
        reason = f"{name} had halted before: nothing is fitted"
    elif isinstance(guard, RadaBound) and guard.n_queries == 0 and _answers_nothing(guard):
        reason = f"{name} can answer no query: nothing is fitted"
    else:
        return
    raise HoldoutExhausted(
        reason + ("" if guard.n_queries else what_would_work(guard)),
        n_queries=guard.n_queries,
        complexity=getattr(guard, "complexity", None),
        threshold=getattr(guard, "threshold", None),
    )


def _answers_nothing(guard: RadaBound) -> bool:
    """Whether a fresh guard refuses even a query without losses."""
    return guard.budget < 0.0 and guard.n_left(0.0, declared=True) == 0


def needs_guess(holdout: AnyHoldout) -> bool:
    """Whether its queries need a guess of the answer."""
    return bool(getattr(holdout.guard, "_needs_guess", False))


def takes_keys(holdout: AnyHoldout) -> bool:
    """Whether a query says which model of a declared space it is about."""
    return bool(getattr(holdout.guard, "_takes_keys", False))


def check_guesses(holdout: AnyHoldout, guesses: bool) -> None:
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
        reason += what_would_work(guard, guess)
    return HoldoutExhausted(
        reason,
        n_queries=guard.n_queries,
        complexity=getattr(guard, "complexity", None),
        threshold=getattr(guard, "threshold", None),
    )


def predictions_of(output: Any, guesses: bool) -> tuple[Any, Any]:
    """Predictions, and a guess or None, from what `fit_predict` returned."""
    if not guesses:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError(
            f"fit_predict must return (predictions, guess), got {type(output).__name__}"
        )
    return output
