"""Guards that look at mean losses alone: one decision a query, under one lock."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_fraction
from radabound_fast._kernels.guard import Answer
from radabound_fast._kernels.support import SharedState
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.halting_guard import HaltingGuard
from radabound_fast.guards.log import note_answer, note_answers
from radabound_fast.guards.reader import LossReader
from radabound_fast.holdout import Holdout
from radabound_fast.rows.packing import as_array


@dataclass(frozen=True, slots=True, repr=False)
class MeanAnswer(Answer):
    """The fields that the answers of these guards share; see `Answer`."""

    # field(): else the properties of `Answer` would be taken for their defaults
    value: float = field()
    low: float = field()
    high: float = field()
    half_width: float = field()
    number: int = field()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as a new dict."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def clip_to_unit(end: float) -> float:
    """The end of an interval for a mean loss, in [0, 1]; nan stays nan."""
    return min(max(end, 0.0), 1.0)


AnswerT = TypeVar("AnswerT", bound=MeanAnswer)
AnswersT = TypeVar("AnswersT", bound=Answers[Any])
OutcomeT = TypeVar("OutcomeT")

# more than anybody asks, and few enough to be counted on from
MOST_ANSWERS = 2**53


class MeanGuard(HaltingGuard, SharedState, Generic[AnswerT, AnswersT]):
    """Base class of guards that decide query by query.

    A subclass defines `_decide`, and names in `_own` and `_resume_own` what its queries change.
    How a change is counted whole or not at all is in `SharedState`.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged; of a `Holdout` the metric must be "error".
    """

    # the constructor's arguments that are attributes of the same name
    _arguments: ClassVar[tuple[str, ...]]
    # what `query_many` returns
    _answers_type: type[AnswersT]

    def __init__(self, judged: Any) -> None:
        super().__init__(judged)
        self._check_judged()
        self._n_answered = 0

    def _check_judged(self) -> None:
        """ValueError for a metric, or for weights, that this guard does not answer."""
        if isinstance(self._holdout, Holdout) and self._holdout.metric != "error":
            raise ValueError(
                f"metric must be 'error' for a {self.kind}, got {self._holdout.metric!r}: "
                "DeclaredSearch answers every metric, and in an order fixed beforehand "
                "FixedSequence does"
            )
        if self._holdout.weighting is not None:
            raise ValueError(
                f"sample_weight and groups must be left out for a {self.kind}: DeclaredSearch and "
                "FixedSequence take them"
            )

    halted = SharedState.halted

    @property
    def n_answered(self) -> int:
        """Answers given so far."""
        self.refresh()
        return self._n_answered

    def __repr__(self) -> str:
        names = (*self._arguments, "n_answered", "halted")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name != "seed")
        return f"{self.kind}({self.holdout!r}, {shown})"

    # ---- what `query` and `query_many` of the subclasses call --------------------------------

    def _reader(self, y_pred: Any, *, many: bool) -> Any:
        self._check_owner()
        return LossReader(y_pred, self._holdout, many=many)

    def _one(self, rows: Any, guess: float = np.nan) -> AnswerT:
        return self._kept(lambda: self._next(rows, 0, guess))

    def _many(self, rows: Any, guesses: list[float] | None = None) -> AnswersT:
        each = [np.nan] * len(rows.means) if guesses is None else guesses

        def decide() -> AnswersT:
            answered: list[AnswerT] = []
            for row, guess in enumerate(each):
                outcome = self._next(rows, row, guess)
                if isinstance(outcome, str):
                    break
                answered.append(outcome)
            return self._answers_type(answered, halted=self.has_halted, n_answered=self._n_answered)

        return self._kept(decide)

    def _next(self, rows: Any, row: int, guess: float) -> AnswerT | str:
        outcome = self._decide(rows, row, guess, self._n_answered + 1)
        if isinstance(outcome, str):
            self.has_halted = True
        else:
            self._n_answered += 1
        return outcome

    def _kept(self, decide: Callable[[], OutcomeT | str]) -> OutcomeT:
        """What is decided, once it is counted; a reason to refuse as the exception that it is."""
        outcome = self.change(decide)
        if outcome is None:
            self._check_open()
            outcome = f"this {self.kind} has halted and answers no more"
        if self.has_halted:
            self._note_halt(self._n_answered)
        if isinstance(outcome, str):
            raise HoldoutExhausted(outcome, n_answered=self._n_answered)
        if self._logs:
            self._log(outcome)
        return outcome

    def _log(self, outcome: Any) -> None:
        if isinstance(outcome, Answers):
            note_answers(self.kind, len(outcome), outcome.n_answered)
        else:
            note_answer(self.kind, outcome.number, outcome.value)

    # ---- the state, and what of it is kept on disk -----------------------------------------

    @property
    def _shared(self) -> Self:
        return self

    def _parameters(self) -> dict[str, Any]:
        arguments = {name: getattr(self, name) for name in self._arguments}
        return {"n_samples": self.n_samples} | arguments

    def _lay_out(self) -> NDArray[np.int64]:
        shared = np.array([self._n_answered, self.has_halted], np.int64)
        return np.concatenate([shared, self._own()])

    def _take_over(self, progress: NDArray[np.int64]) -> None:
        n_answered, halted = progress[:2].tolist()
        self._resume_own(progress[2:], n_answered)
        self._n_answered, self.has_halted = n_answered, bool(halted)

    @abstractmethod
    def _own(self) -> NDArray[np.int64]:
        """What the subclass's queries change, as integers; floats by their bits."""

    @abstractmethod
    def _resume_own(self, own: NDArray[np.int64], n_answered: int) -> None:
        """Go on where `_own` was taken."""

    @abstractmethod
    def _decide(self, rows: Any, row: int, guess: float, number: int) -> AnswerT | str:
        """Answer the query of this number and count its cost, or say why it is refused."""


def check_guess(guess: Any, kind: str) -> float:
    """A guess of a mean loss, in [0, 1]."""
    if guess is None:
        raise ValueError(f"guess must be in [0, 1] for {kind}, got None")
    return check_fraction(guess=guess)


def check_guesses(guesses: Any, n_rows: int, kind: str) -> list[float]:
    """One guess a row."""
    if guesses is None:
        raise ValueError(f"guesses must be one number per query for {kind}, got None")
    checked = as_array(guesses, "guesses")
    if checked.dtype.kind not in "iuf":
        raise TypeError(f"guesses must be real numbers, got dtype {checked.dtype}")
    if checked.shape != (n_rows,):
        raise ValueError(
            f"guesses must have shape ({n_rows},), one per query, got shape {checked.shape}"
        )
    # also False for nan
    outside = ~((checked >= 0) & (checked <= 1))
    if outside.any():
        first = int(outside.argmax())
        raise ValueError(f"guesses must be in [0, 1], got {checked[first]} at {first}")
    return [float(guess) for guess in checked]
