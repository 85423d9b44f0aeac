"""Guards that look at mean losses alone: one decision a query, under one lock."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from radabound_fast._kernels.guard import Answer
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.halting_guard import HaltingGuard
from radabound_fast.guards.log import note_answer, note_answers
from radabound_fast.guards.progress import Progress
from radabound_fast.guards.reader import LossReader


@dataclass(frozen=True, slots=True, repr=False, eq=False)
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


class MeanGuard(HaltingGuard, Generic[AnswerT, AnswersT]):
    """Base class of guards that decide query by query.

    A subclass defines `_decide`, which may change its progress; `progress` is what its queries
    change, as it begins.  Of a `Holdout` the metric must be "error".
    """

    # the constructor's arguments that are attributes of the same name
    _arguments: ClassVar[tuple[str, ...]]
    # what `query_many` returns
    _answers_type: type[AnswersT]

    def __init__(self, judged: Any, progress: Progress) -> None:
        super().__init__(judged)
        self._check_judged()
        self._progress = self._shared = progress

    def _check_judged(self) -> None:
        """ValueError for a metric, or for weights, that this guard does not answer."""
        self._check_metric()
        if self._holdout.weighting is not None:
            raise ValueError(
                f"sample_weight and groups must be left out for a {self.kind}: DeclaredSearch and "
                "FixedSequence take them"
            )

    @property
    def n_answered(self) -> int:
        """Answers given so far."""
        return int(self._current.n_answered)

    @property
    def _current(self) -> Any:
        """The progress, after what other processes have committed to the database."""
        self._progress.refresh()
        return self._progress

    def __repr__(self) -> str:
        names = (*self._arguments, "n_answered", "halted")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name != "seed")
        return f"{self.kind}({self.holdout!r}, {shown})"

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
            done = self._progress
            return self._answers_type(answered, halted=done.has_halted, n_answered=done.n_answered)

        return self._kept(decide)

    def _next(self, rows: Any, row: int, guess: float) -> AnswerT | str:
        outcome = self._decide(rows, row, guess, self._progress.n_answered + 1)
        if isinstance(outcome, str):
            self._progress.has_halted = True
        else:
            self._progress.n_answered += 1
        return outcome

    def _kept(self, decide: Callable[[], OutcomeT | str]) -> OutcomeT:
        """What is decided, once it is counted; a reason to refuse as the exception that it is."""
        outcome = self._progress.change(decide)
        if outcome is None:
            self._check_open()
            outcome = f"this {self.kind} has halted and answers no more"
        n_answered = self._progress.n_answered
        if self._progress.has_halted:
            self._note_halt(n_answered)
        if isinstance(outcome, str):
            raise HoldoutExhausted(outcome, n_answered=n_answered)
        if self._logs:
            self._log(outcome)
        return outcome

    def _log(self, outcome: Any) -> None:
        if isinstance(outcome, Answers):
            note_answers(self.kind, len(outcome), outcome.n_answered)
        else:
            note_answer(self.kind, outcome.number, outcome.value)

    def _parameters(self) -> dict[str, Any]:
        arguments = {name: getattr(self, name) for name in self._arguments}
        return {"n_samples": self.n_samples} | arguments

    @abstractmethod
    def _decide(self, rows: Any, row: int, guess: float, number: int) -> AnswerT | str:
        """Answer the query of this number and count its cost, or say why it is refused."""
