"""Guards that look at mean losses alone: one decision a query, under one lock."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_fraction
from radabound_fast._kernels.rows import sums_of_rows
from radabound_fast._kernels.support import SharedState, sealed
from radabound_fast.guards.answers import Answers, HoldoutExhausted, MeanAnswer
from radabound_fast.guards.halting_guard import HaltingGuard
from radabound_fast.guards.log import note_answer, note_answers
from radabound_fast.rows.packing import as_array

AnswerT = TypeVar("AnswerT", bound=MeanAnswer)
AnswersT = TypeVar("AnswersT", bound=Answers[Any])
OutcomeT = TypeVar("OutcomeT")

# more than anybody asks, and few enough to be counted on from
MOST_ANSWERS = 2**53
_NOT_SHOWN = ("seed", "n_vectors", "release")  # in a repr


class Progress(SharedState):
    """What the queries of a guard change: the number of answers, and numbers of its own.

    A subclass has these as class attributes, int or float, with the values that they begin with;
    their order is that in a database.  `SharedState` has the lock, and what a change is.
    """

    n_answered = 0
    _names: ClassVar[tuple[str, ...]] = ("n_answered", "has_halted")
    _layout: ClassVar[struct.Struct] = struct.Struct("=qq")

    def __init_subclass__(cls) -> None:
        own = {
            name: one
            for name, one in vars(cls).items()
            if type(one) in (int, float) and name[0] != "_"
        }
        cls._names = (*Progress._names, *own)
        kinds = ("q" if type(one) is int else "d" for one in own.values())
        cls._layout = struct.Struct("=qq" + "".join(kinds))

    def _lay_out(self) -> NDArray[np.int64]:
        numbers = (getattr(self, name) for name in self._names)
        return np.frombuffer(self._layout.pack(*numbers), np.int64)

    def _take_over(self, progress: NDArray[np.int64]) -> None:
        if len(progress) != len(self._names):
            raise ValueError(f"the state must have {len(self._names)} numbers, got {len(progress)}")
        for name, number in zip(self._names, self._layout.unpack(progress.tobytes()), strict=True):
            setattr(self, name, number)


class MeanGuard(HaltingGuard, Generic[AnswerT, AnswersT]):
    """Base class of guards that decide query by query.

    A subclass defines `_decide`, which may change its progress; `progress` is what its queries
    change, as it begins.  Of a `Holdout` the metric must be "error".
    """

    _answers_type: type[AnswersT]  # what `query_many` returns

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
        return int(self._current.n_answered)

    def __repr__(self) -> str:
        names = [name for name in self._arguments if name not in _NOT_SHOWN]
        shown = (f"{name}={getattr(self, name)!r}" for name in (*names, "n_answered", "halted"))
        return f"{self.kind}({self.holdout!r}, {', '.join(shown)})"

    def _read(self, y_pred: Any, *, many: bool) -> Sequence[Any]:
        """What `_decide` needs of each row: its mean loss."""
        return self._means(y_pred, many=many)[0]

    def _means(self, y_pred: Any, *, many: bool) -> tuple[list[float], bool]:
        """Mean losses of rows, and whether these are binary: 0 or 1 by their type."""
        self._check_owner()
        values, packed = self._losses(y_pred, 2 if many else 1)
        sums, shift = sums_of_rows(values if many else values[None], self.n_samples, packed=packed)
        means: list[float] = (sums / (self.n_samples << shift)).tolist()
        return means, packed or values.dtype.kind != "f"

    def _one(self, row: Any, guess: float = np.nan) -> AnswerT:
        return self._counted(lambda: self._next(row, guess))

    def _many(self, rows: Sequence[Any], guesses: Iterable[float] = repeat(np.nan)) -> AnswersT:
        def decide() -> AnswersT:
            answered: list[AnswerT] = []
            for row, guess in zip(rows, guesses, strict=False):
                outcome = self._next(row, guess)
                if isinstance(outcome, str):
                    break
                answered.append(outcome)
            done = self._progress
            return self._answers_type(answered, halted=done.has_halted, n_answered=done.n_answered)

        return self._counted(decide)

    def _next(self, row: Any, guess: float) -> AnswerT | str:
        outcome = self._decide(row, guess, self._progress.n_answered + 1)
        if isinstance(outcome, str):
            self._progress.has_halted = True
        else:
            self._progress.n_answered += 1
        return outcome

    def _counted(self, decide: Callable[[], OutcomeT | str]) -> OutcomeT:
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
        if self._logs and isinstance(outcome, Answers):
            note_answers(self.kind, len(outcome), outcome.n_answered)
        elif self._logs and isinstance(outcome, MeanAnswer):
            note_answer(self.kind, outcome.number, outcome.value)
        return outcome

    @abstractmethod
    def _decide(self, row: Any, guess: float, number: int) -> AnswerT | str:
        """Answer the query of this number and count its cost, or say why it is refused."""


class GuessGuard(MeanGuard[AnswerT, AnswersT]):
    """Base class of guards whose queries bring a guess of their mean, made without the holdout."""

    needs: ClassVar[Literal["key", "guess"] | None] = "guess"

    @sealed
    def query(self, y_pred: Any, *, guess: float) -> AnswerT:
        """Answer one query: an `Answer` that also says whether the guess has ``passed``.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,), or PackedLosses
            Predicted classes, in the order of the holdout's rows; losses in [0, 1] for a guard
            made on `Losses`, which are rounded to multiples of 2**-24 unless they are 0 or 1.
        guess : float
            A guess of the mean loss, in [0, 1], made without the holdout: that on other data, say.

        Raises
        ------
        HoldoutExhausted, TypeError, ValueError, RuntimeError
            As in `FixedSequence.query`; a guess that is none changes nothing either.
        """
        (mean,) = self._read(y_pred, many=False)
        if guess is None:
            raise ValueError(f"guess must be in [0, 1] for {self.kind}, got None")
        guess = check_fraction(guess=guess)
        self._check_first(guess)
        return self._one(mean, guess)

    @sealed
    def query_many(self, Y_pred: Any, *, guesses: Any) -> AnswersT:
        """Answer queries in order, bit for bit as a loop of `query` would.

        Rows, shape (k, n_samples), answers and errors are those of `FixedSequence.query_many`;
        `guesses`, array_like of shape (k,), are one a row.
        """
        means = self._read(Y_pred, many=True)
        checked = self._check_guesses(guesses, len(means))
        for guess in checked[:1]:
            self._check_first(guess)
        return self._many(means, checked)

    def _check_guesses(self, guesses: Any, n_rows: int) -> list[float]:
        if guesses is None:
            raise ValueError(f"guesses must be one number per query for {self.kind}, got None")
        checked = as_array(guesses, "guesses")
        if checked.dtype.kind not in "iuf":
            raise TypeError(f"guesses must be real numbers, got dtype {checked.dtype}")
        if checked.shape != (n_rows,):
            raise ValueError(
                f"guesses must have shape ({n_rows},), one per query, got shape {checked.shape}"
            )
        outside = ~((checked >= 0) & (checked <= 1))  # also where it is nan
        if outside.any():
            first = int(outside.argmax())
            raise ValueError(f"guesses must be in [0, 1], got {checked[first]} at {first}")
        return [float(guess) for guess in checked]

    def _check_first(self, guess: float) -> None:
        """ValueError for a guess that would end an unused guard, while another would not."""
