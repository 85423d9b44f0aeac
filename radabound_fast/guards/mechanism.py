"""What every mechanism shares: the query protocol, one owner, one count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_fraction, check_n_samples
from radabound_fast._kernel import Answer, SharedState, sealed
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.log import note_answer, note_answers
from radabound_fast.guards.reader import LossReader
from radabound_fast.guards.saving import Saved
from radabound_fast.rows.packing import as_array


@dataclass(frozen=True, slots=True, repr=False)
class MechanismAnswer(Answer):
    """The fields that every mechanism's answer has; see `Answer`."""

    # field(): else the properties of `Answer` would be taken for their defaults
    value: float = field()
    low: float = field()
    high: float = field()
    half_width: float = field()
    n_queries: int = field()


def cut(end: float) -> float:
    """The end of an interval for a mean loss, in [0, 1]; nan stays nan."""
    return min(max(end, 0.0), 1.0)


AnswerT = TypeVar("AnswerT", bound=MechanismAnswer)
AnswersT = TypeVar("AnswersT", bound=Answers[Any])
OutcomeT = TypeVar("OutcomeT")

# more than anybody asks, and few enough to be counted on from
MOST_QUERIES = 2**53


class Mechanism(Saved, SharedState, Generic[AnswerT, AnswersT]):
    """Base of the mechanisms: reads and checks losses, then lets a subclass decide under the lock.

    A subclass defines `_decide`, and names in `_own` and `_resume_own` what its queries change;
    everything public is written here once, and how a change is kept in `SharedState`.
    """

    _instead: ClassVar[str] = (
        "send predictions or packed losses (pack_losses) to the process that owns it, "
        "share it as a database (open), or move it with save and load"
    )
    # the constructor's arguments, each an attribute of the same name
    _arguments: ClassVar[tuple[str, ...]]

    # what `query_many` returns
    _answers_type: type[AnswersT]
    # how many numbers `_own` has, but for losses
    _n_own: ClassVar[int]
    # whether a query must bring a guess
    _needs_guess: ClassVar[bool]
    # the attributes that repr shows, in order
    _shown: ClassVar[tuple[str, ...]]

    def __init__(self, n_samples: int) -> None:
        super().__init__()
        self.n_samples = check_n_samples(n_samples)
        self._n_queries = 0

    @property
    def n_queries(self) -> int:
        """Answers given so far."""
        self._refresh()
        return self._n_queries

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""

    @sealed
    def query(self, losses: Any, *, guess: float | None = None) -> AnswerT:
        """Answer one query.

        Parameters
        ----------
        losses : array_like, shape (n_samples,)
            One loss in [0, 1] per held-out example, of any bool, integer or float dtype.
            Losses other than 0 and 1 are rounded to the nearest multiple of 2**-24.
        guess : float, optional
            A guess of the mean loss, in [0, 1], made without the holdout. `GuessAndCheck`
            and `Thresholdout` require it; `Ladder` ignores it.

        Returns
        -------
        Answer
            With what the mechanism adds.

        Raises
        ------
        HoldoutExhausted
            The mechanism refuses: this query is withheld, and so is every later one.
        TypeError, ValueError
            For bad losses or a bad guess; nothing has changed then.
        RuntimeError
            In a process forked after the mechanism was made; or in the middle of another call, on
            its very thread: in a signal handler, a destructor or a trace function.
        """
        return self._one(self._reader(losses, many=False, packed=False), guess)

    @sealed
    def query_packed(self, words: Any, *, guess: float | None = None) -> AnswerT:
        """Answer one query of 0-1 losses, packed as `pack_losses` packs them.

        Parameters
        ----------
        words : ndarray of uint64, shape (ceil(n_samples / 64),)
            Sample i is bit i % 64 of word i // 64; bits past n_samples are zero.
        guess : float, optional
            As in `query`, whose answers and errors these are too.
        """
        return self._one(self._reader(words, many=False, packed=True), guess)

    @sealed
    def query_many(self, losses: Any, *, guesses: Any = None) -> AnswersT:
        """Answer queries in order, bit for bit as a loop of `query` would.

        Parameters
        ----------
        losses : array_like, shape (k, n_samples)
            One query per row, as in `query`. Never copied whole.
        guesses : array_like, shape (k,), optional
            One guess per row, as in `query`.

        Returns
        -------
        Answers
            Of the rows before the first that was refused.

        Raises
        ------
        HoldoutExhausted
            If the mechanism had halted before this call.
        TypeError, ValueError
            For bad losses or guesses in any row; nothing has changed then.
        RuntimeError
            As in `query`.
        """
        return self._many(self._reader(losses, many=True, packed=False), guesses)

    @sealed
    def query_many_packed(self, words: Any, *, guesses: Any = None) -> AnswersT:
        """Answer queries of 0-1 losses, one packed row each; see `query_packed`, `query_many`."""
        return self._many(self._reader(words, many=True, packed=True), guesses)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"{type(self).__name__}({shown})"

    def _reader(self, losses: Any, *, many: bool, packed: bool) -> LossReader:
        self._check_owner()
        return LossReader(losses, self.n_samples, many=many, packed=packed)

    def _one(self, rows: LossReader, guess: float | None) -> AnswerT:
        checked = self._check_guess(guess)
        return self._kept(lambda: self._next(rows, 0, checked))

    def _many(self, rows: LossReader, guesses: Any) -> AnswersT:
        checked = self._check_guesses(guesses, len(rows.means))

        def decide() -> AnswersT:
            answered: list[AnswerT] = []
            for row, guess in enumerate(checked):
                outcome = self._next(rows, row, guess)
                if isinstance(outcome, str):
                    break
                answered.append(outcome)
            return self._answers_type(answered, halted=self._halted, n_queries=self._n_queries)

        return self._kept(decide)

    def _next(self, rows: LossReader, row: int, guess: float) -> AnswerT | str:
        outcome = self._decide(rows, row, guess, self._n_queries + 1)
        if isinstance(outcome, str):
            self._halted = True
        else:
            self._n_queries += 1
        return outcome

    def _kept(self, decide: Callable[[], OutcomeT | str]) -> OutcomeT:
        """What is decided, once it is counted; a reason to refuse as the exception that it is."""
        outcome = self._change(decide)
        if outcome is None:
            self._check_open()
            outcome = f"this {type(self).__name__} has halted and answers no more"
        if self._halted:
            self._note_halt(self._n_queries, self.n_samples)
        if isinstance(outcome, str):
            raise HoldoutExhausted(outcome, n_queries=self._n_queries)
        if self._logs:
            self._note(outcome)
        return outcome

    def _note(self, outcome: Any) -> None:
        if isinstance(outcome, Answers):
            note_answers(type(self).__name__, len(outcome), outcome.n_queries)
        else:
            note_answer(type(self).__name__, outcome.n_queries, outcome.value)

    # ---- the state, and what of it is kept on disk -----------------------------------------

    @property
    def _shared(self) -> Self:
        return self

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._arguments}

    @classmethod
    def _most_numbers(cls, parameters: dict[str, Any]) -> int:
        return 2 + cls._n_own

    def _lay_out(self) -> NDArray[np.int64]:
        shared = np.array([self._n_queries, self._halted], np.int64)
        return np.concatenate([shared, self._own()])

    def _take_over(self, progress: NDArray[np.int64]) -> None:
        n_queries, halted = progress[:2].tolist()
        if not (0 <= n_queries <= MOST_QUERIES and halted in (0, 1)):
            raise ValueError("the state has counters that no mechanism has")
        self._resume_own(progress[2:], n_queries)
        self._n_queries, self._halted = n_queries, bool(halted)

    @abstractmethod
    def _own(self) -> NDArray[np.int64]:
        """What the subclass's queries change, as integers; floats by their bits."""

    @abstractmethod
    def _resume_own(self, own: NDArray[np.int64], n_queries: int) -> None:
        """Go on where `_own` was taken; ValueError, and nothing has changed, if it never was."""

    @abstractmethod
    def _decide(self, rows: LossReader, row: int, guess: float, number: int) -> AnswerT | str:
        """Answer the query of this number and count its cost, or say why it is refused."""

    def _check_guess(self, guess: float | None) -> float:
        if not self._needs_guess:
            return nan
        if guess is None:
            raise ValueError(f"guess must be in [0, 1] for {type(self).__name__}, got None")
        return check_fraction(guess=guess)

    def _check_guesses(self, guesses: Any, n_rows: int) -> list[float]:
        if not self._needs_guess:
            return [nan] * n_rows
        if guesses is None:
            raise ValueError(
                f"guesses must be one number per query for {type(self).__name__}, got None"
            )
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
