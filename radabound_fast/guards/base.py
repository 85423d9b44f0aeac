"""The base class of all guards."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

if TYPE_CHECKING:
    from radabound_fast.holdout import Holdout, Losses


class Guard:
    """What every guard has, whatever it answers.

    ::

        Guard
        |-- DeclaredSearch            an interval for every score in a declared space; never halts
        `-- HaltingGuard              one count of answers: one owner, or one database
            |-- RadaBound             the paper: Algorithm 1 by its bounds
            |-- FixedSequence         every answer within epsilon, in an order fixed beforehand
            `-- MeanGuard             guards that look at mean losses alone
                |-- GuessAndCheck     every answer within epsilon; each query brings a guess
                |-- Ladder            the best mean so far
                `-- Thresholdout      experiments.thresholdout, to be compared with

    Attributes
    ----------
    delta : float
        The probability that the guarantee fails.
    needs : {"key", "guess"} or None
        What a query brings beside predictions: ``query(y_pred, key=...)`` or
        ``query(y_pred, guess=...)``.
    kind : str
        The name of the guard's public class.
    """

    delta: float
    kind: ClassVar[str]
    needs: ClassVar[Literal["key", "guess"] | None] = None
    _holdout: Holdout | Losses

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" not in vars(cls):
            cls.kind = cls.__name__

    @property
    def holdout(self) -> Holdout | Losses:
        """What the guard was made on."""
        return self._holdout

    @property
    def n_samples(self) -> int:
        """Held-out rows, m."""
        return self._holdout.n_samples

    @property
    @abstractmethod
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, when, and proved by what."""

    @property
    @abstractmethod
    def halted(self) -> bool:
        """Whether a query has been withheld; it never turns False again."""

    @property
    @abstractmethod
    def n_answered(self) -> int:
        """Answers given so far."""

    @property
    def can_answer(self) -> bool:
        """Whether some query might be answered: False once halted, or where nothing ever is."""
        return not self.halted

    @abstractmethod
    def n_left(self) -> int | None:
        """Return how many queries more will be answered for certain; None: there is no end."""

    def what_would_answer(self, guess: float | None = None) -> str:
        """Return what to change so that a first query is answered, to follow a reason; or ""."""
        return ""

    @abstractmethod
    def close(self) -> None:
        """Let go of the guard's database, if it has one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __sklearn_clone__(self) -> Self:
        """scikit-learn's ``clone`` keeps this very object, and so its answers."""
        return self
