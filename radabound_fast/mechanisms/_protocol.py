"""What every mechanism shares: the query protocol, one lock, one owner, one count."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_fraction
from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast._kernel import n_forks
from radabound_fast._saving import Saved
from radabound_fast.mechanisms._reader import LossReader
from radabound_fast.packing import as_array
from radabound_fast.signs import SignMatrix

if TYPE_CHECKING:
    from radabound_fast.store import Ledger


@dataclass(frozen=True, slots=True)
class Answer:
    """What every mechanism answers.

    Attributes
    ----------
    value : float
        The answer, in units of loss.
    half_width : float
        How far the value may be from what the mechanism estimates; nan where no bound is known.
    n_queries : int
        Answers given so far, this one counted.
    """

    value: float
    half_width: float
    n_queries: int


@dataclass(frozen=True, eq=False)  # arrays have no one truth value
class Answers:
    """The answered prefix of a block of queries.

    Attributes
    ----------
    values, half_widths : ndarray of float64, shape (n_answered,)
        What `query` would have answered, row by row.
    n_answered : int
        How many of the block's queries were answered; the rest were withheld.
    halted : bool
        True if a query of this block halted the mechanism.
    n_queries : int
        Answers that the mechanism has given in all.
    """

    values: NDArray[np.float64]
    half_widths: NDArray[np.float64]
    n_answered: int
    halted: bool
    n_queries: int


AnswerT = TypeVar("AnswerT", bound=Answer)
AnswersT = TypeVar("AnswersT", bound=Answers)
OutcomeT = TypeVar("OutcomeT")


class Mechanism(Saved, Generic[AnswerT, AnswersT]):
    """Base of the mechanisms: reads and checks losses, then lets a subclass decide under the lock.

    A subclass defines `_decide` and `_gather`, and names in `_own` and `_resume_own` what its
    queries change; everything public is written here once.
    """

    _instead: ClassVar[str] = (
        "send predictions or packed losses (pack_losses) to the process that owns it, "
        "share it as a database (open), or move it with save and load"
    )
    # the constructor's arguments, each an attribute of the same name
    _arguments: ClassVar[tuple[str, ...]]

    # whether a query must bring a guess
    _needs_guess: ClassVar[bool]
    # the attributes that repr shows, in order
    _shown: ClassVar[tuple[str, ...]]

    def __init__(self, n_samples: int) -> None:
        super().__init__()
        # the pass over losses takes signs, which play no part; generated, they take no memory
        signs = SignMatrix(n_samples, 1, seed=0, signs="generated")
        self.n_samples = signs.n_samples
        self._signs = signs._store
        self._lock = threading.Lock()
        self._n_queries = 0
        self._halted = False
        self._retired = False
        # the state at the start of a change, until that is kept or undone
        self._before: NDArray[np.int64] | None = None

    @property
    def n_queries(self) -> int:
        """Answers given so far."""
        self._refresh()
        return self._n_queries

    @property
    def halted(self) -> bool:
        """True once a query was refused; every later one is refused too."""
        self._refresh()
        return self._halted

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""

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
            ``value``, ``half_width``, ``n_queries``, and what the mechanism adds.

        Raises
        ------
        HoldoutExhausted
            The mechanism refuses: this query is withheld, and so is every later one.
        TypeError, ValueError
            For bad losses or a bad guess; nothing has changed then.
        RuntimeError
            In a process forked after the mechanism was made.
        """
        return self._one(self._read(losses, many=False, packed=False), guess)

    def query_packed(self, words: Any, *, guess: float | None = None) -> AnswerT:
        """Answer one query of 0-1 losses, packed as `pack_losses` packs them.

        Parameters
        ----------
        words : ndarray of uint64, shape (ceil(n_samples / 64),)
            Sample i is bit i % 64 of word i // 64; bits past n_samples are zero.
        guess : float, optional
            As in `query`, whose answers and errors these are too.
        """
        return self._one(self._read(words, many=False, packed=True), guess)

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
            Arrays over the answered prefix; ``halted`` if a row of this block was refused.

        Raises
        ------
        HoldoutExhausted
            If the mechanism had halted before this call.
        TypeError, ValueError
            For bad losses or guesses in any row; nothing has changed then.
        RuntimeError
            In a process forked after the mechanism was made.
        """
        return self._many(self._read(losses, many=True, packed=False), guesses)

    def query_many_packed(self, words: Any, *, guesses: Any = None) -> AnswersT:
        """Answer queries of 0-1 losses, one packed row each; see `query_packed`, `query_many`."""
        return self._many(self._read(words, many=True, packed=True), guesses)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"{type(self).__name__}({shown})"

    def _read(self, losses: Any, *, many: bool, packed: bool) -> LossReader:
        self._check_owner()
        return LossReader(losses, self._signs, many=many, packed=packed)

    def _one(self, rows: LossReader, guess: float | None) -> AnswerT:
        checked = self._check_guess(guess)
        outcome = self._change(lambda: self._refusal() or self._next(rows, 0, checked))
        if isinstance(outcome, HoldoutExhausted):
            del rows  # the traceback keeps this frame, and they know the mean
            raise outcome
        return outcome

    def _many(self, rows: LossReader, guesses: Any) -> AnswersT:
        checked = self._check_guesses(guesses, len(rows.means))
        answered: list[AnswerT] = []

        def decide() -> dict[str, Any] | HoldoutExhausted:
            refusal = self._refusal()
            if refusal is not None:
                return refusal
            for row, guess in enumerate(checked):
                outcome = self._next(rows, row, guess)
                if isinstance(outcome, HoldoutExhausted):
                    break
                answered.append(outcome)
            return {
                "values": np.array([answer.value for answer in answered], dtype=np.float64),
                "half_widths": np.array([a.half_width for a in answered], dtype=np.float64),
                "n_answered": len(answered),
                "halted": self._halted,
                "n_queries": self._n_queries,
            }

        shared = self._change(decide)
        if isinstance(shared, HoldoutExhausted):
            del rows
            raise shared
        return self._gather(answered, shared)

    def _next(self, rows: LossReader, row: int, guess: float) -> AnswerT | HoldoutExhausted:
        outcome = self._decide(rows, row, guess, self._n_queries + 1)
        if isinstance(outcome, str):
            self._halted = True
            # returned, not raised: a traceback would keep the frame that knows the mean
            return HoldoutExhausted(outcome, n_queries=self._n_queries)
        self._n_queries += 1
        return outcome

    def _refusal(self) -> HoldoutExhausted | None:
        if not self._halted:
            return None
        return HoldoutExhausted(
            f"this {type(self).__name__} has halted and answers no more",
            n_queries=self._n_queries,
        )

    # ---- the state, and where it is kept ---------------------------------------------------

    def _change(self, change: Callable[[], OutcomeT]) -> OutcomeT:
        """One at a time, and all or nothing: what `change` changes is kept, or none of it.

        A function and no context manager: an interrupt between that and its block would leave
        the lock held.
        """
        with self._lock:
            if self._retired:
                raise RuntimeError(
                    f"this {type(self).__name__} is retired, saved or closed: load or open its file"
                )
            self._undo()
            self._before = self._progress()
            try:
                if self._ledger is not None:
                    self._take(self._ledger.begin())
                outcome = change()
                if self._ledger is not None:
                    self._ledger.commit(self._progress())
                self._before = None
            except BaseException:  # KeyboardInterrupt too: no answer has left yet
                self._undo()
                raise
        return outcome

    def _undo(self) -> None:
        """Back to where a change began; whoever comes next does it if Ctrl-C breaks into it."""
        if self._before is not None:
            if self._ledger is not None:
                self._ledger.rollback()
            self._resume(self._before)
            self._before = None

    def _refresh(self) -> None:
        """Take over what other processes have committed to the database."""
        if self._born != n_forks() or (self._ledger is None and self._before is None):
            return
        with self._lock:
            if self._retired:
                return
            self._undo()
            if self._ledger is None:
                return
            try:
                self._take(self._ledger.read())
            except BaseException:
                self._ledger.rollback()  # so that it is read again
                raise

    def _take(self, progress: NDArray[np.int64] | None) -> None:
        if progress is not None:
            self._resume(progress)

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._arguments}

    def _progress(self) -> NDArray[np.int64]:
        shared = np.array([self._n_queries, self._halted], np.int64)
        return np.concatenate([shared, self._own()])

    def _resume(self, progress: NDArray[np.int64]) -> None:
        self._resume_own(progress[2:])
        self._n_queries = int(progress[0])
        self._halted = bool(progress[1])

    def _retire(self, retired: bool) -> bool:
        with self._lock:
            self._undo()
            before, self._retired = self._retired, retired
        return before

    def _keep(self, ledger: Ledger) -> None:
        with self._lock:
            self._ledger = ledger

    @abstractmethod
    def _own(self) -> NDArray[np.int64]:
        """What the subclass's queries change, as integers; floats by their bits."""

    @abstractmethod
    def _resume_own(self, own: NDArray[np.int64]) -> None:
        """Go on where `_own` was taken."""

    @abstractmethod
    def _decide(self, rows: LossReader, row: int, guess: float, number: int) -> AnswerT | str:
        """Answer the query of this number and count its cost, or say why it is refused."""

    @abstractmethod
    def _gather(self, answered: list[AnswerT], shared: dict[str, Any]) -> AnswersT:
        """The answers of a block, given the fields that every mechanism shares."""

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
