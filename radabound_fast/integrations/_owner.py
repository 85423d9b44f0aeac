"""What every adapter needs of a guard: that it still answers, and how a halt is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeGuard, cast

from radabound_fast.guards.answers import HoldoutExhausted

if TYPE_CHECKING:
    from radabound_fast._kernels.guard import Answer
    from radabound_fast.guards.declared.search import DeclaredSearch
    from radabound_fast.holdout import Holdout, Losses
    from radabound_fast.service.client import RemoteHoldout

    AnyHoldout = Holdout | Losses | RemoteHoldout


class AnyGuard(Protocol):
    """What an adapter needs of a guard; guards in this process have it, and a `RemoteGuard`."""

    @property
    def holdout(self) -> AnyHoldout: ...
    @property
    def kind(self) -> str: ...
    @property
    def needs(self) -> Literal["key", "guess"] | None: ...
    @property
    def allow_reruns(self) -> bool: ...
    @property
    def halted(self) -> bool: ...
    @property
    def can_answer(self) -> bool: ...
    @property
    def n_answered(self) -> int: ...
    @property
    def query(self) -> Callable[..., Answer]: ...
    def what_would_answer(self, guess: float | None = None) -> str: ...


def check_guard(guard: Any, *, by_scores: bool = True) -> AnyGuard:
    """Return the guard, if it was made on labels, stores all answers, and still answers.

    Raises TypeError, ValueError and HoldoutExhausted if it does not; TypeError too for a `Gate`,
    whose verdicts have no score, if the tool chooses by scores.
    """
    names = ("query", "needs", "holdout")
    if isinstance(guard, type) or not all(hasattr(guard, name) for name in names):
        raise TypeError(
            "guard must be a guard made on labels, as DeclaredSearch(y_true, ...) is, "
            f"got {type(guard).__name__}"
        )
    known = cast(AnyGuard, guard)
    if known.holdout.takes == "losses":
        raise TypeError(f"guard must be made on labels, got a {known.kind} of losses")
    if by_scores and known.kind == "Gate":
        raise TypeError("guard must answer scores, by which the tool chooses, got a Gate")
    if is_search_here(known) and known.n_best is not None:
        raise ValueError(
            f"guard must store all answers, got n_best={known.n_best}: a tool may come to a key "
            "again, with another model"
        )
    if known.halted or not known.can_answer:
        why = "had halted before" if known.halted else "can answer no query"
        raise _exhausted(known, f"guard {why}: nothing is fitted")
    return known


def check_guesses(guard: AnyGuard, guesses: bool) -> None:
    """ValueError unless a guard that needs guesses gets them."""
    if guard.needs == "guess" and not guesses:
        raise ValueError(
            f"guesses must be True with {guard.kind}, and fit_predict return (predictions, guess)"
        )


def member_of(guard: AnyGuard, candidate: Any) -> Any:
    """What to train with for a candidate: the key that the declared space has for it, if it has."""
    if not is_search_here(guard) or candidate not in guard.space:
        return candidate  # which the guard will refuse, if it must
    return guard.space.key_of(guard.space.find(candidate)[0])


def is_search_here(guard: AnyGuard) -> TypeGuard[DeclaredSearch]:
    """Whether it is a `DeclaredSearch` in this process, whose space is known."""
    return guard.needs == "key" and guard.holdout.labels is not None


def beside(guard: AnyGuard, *, key: Any, guess: float | None = None) -> dict[str, Any]:
    """What a query of this guard brings beside predictions, by name.

    Where a key may be trained again, each query is a training of its own: a tool does not say
    whether its learner tosses coins.
    """
    if guard.needs is None:
        return {}
    rerun = {"rerun": "next"} if guard.allow_reruns else {}
    return {guard.needs: key if guard.needs == "key" else guess} | rerun


def ask(
    guard: AnyGuard, y_pred: Any, *, key: Any = None, guess: float | None = None
) -> tuple[Answer, bool]:
    """Return the answer for a tool that may try a key again, and whether it is of `y_pred`.

    Where a key has one model, a second one, of a learner that tosses coins, is not judged: the
    answer is the first one's.
    """
    try:
        return guard.query(y_pred, **beside(guard, key=key, guess=guess)), True
    except ValueError as error:
        first = getattr(error, "answer", None)
        if first is None:
            raise
        return first, False


def first_withheld(
    guard: AnyGuard, spent: HoldoutExhausted | None = None, guess: float | None = None
) -> HoldoutExhausted:
    """What to raise if this call got no answer at all; `spent` is what the guard raised."""
    withheld = _exhausted(guard, "guard withheld the first answer", guess)
    if spent is not None:
        withheld.complexity, withheld.delta_prime = spent.complexity, spent.delta_prime
        withheld.threshold = spent.threshold
    return withheld


def _exhausted(guard: AnyGuard, reason: str, guess: float | None = None) -> HoldoutExhausted:
    n_answered = guard.n_answered
    hint = "" if n_answered else guard.what_would_answer(guess)
    return HoldoutExhausted(reason + hint, n_answered=n_answered)


class Fitted(NamedTuple):
    """What a worker returns of a candidate whose model may be kept."""

    y_pred: Any
    guess: float | None
    model: Any


def fitted_of(output: Any, guesses: bool) -> Fitted:
    """Predictions, and a guess or None, from what `fit_predict` returned."""
    if isinstance(output, Fitted):
        return output
    if not guesses:
        return Fitted(output, None, None)
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError(
            f"fit_predict must return (predictions, guess), got {type(output).__name__}"
        )
    return Fitted(*output, None)
