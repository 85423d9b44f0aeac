"""The base class of all guards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

from radabound_fast._checks import counted
from radabound_fast._ownership import SetOnce
from radabound_fast.guards.opening import open_guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from radabound_fast.holdout import Holdout, Losses
    from radabound_fast.store import Database
    from radabound_fast.store.served import ServedDatabase


class Outlook(NamedTuple):
    """What a guard can still answer: in words, and as the share that is left, where it is known."""

    text: str
    share: float | None


# of any guard, set when it is made
_ATTRIBUTES = """bound confirm_share delta epsilon estimator halted kind limits low_error
max_queries n_batches n_best n_folds n_groups n_vectors needs of_teams pairs release row_ids rule
search_part seed signs space step stratify tells threshold two_sided"""


class Guard(SetOnce):
    """What every guard has, whatever it answers.

    ::

        Guard
        |-- DeclaredSearch            an interval for every score in a declared space; never halts
        |-- ConfirmedSearch           any search on some rows, its finalists on the others
        |-- Gate                      verdicts on candidates for a release, and nothing else
        `-- HaltingGuard              one count of answers: one owner, or one database
            |-- RadaBound             the paper: Algorithm 1 by its bounds
            |-- FixedSequence         every answer within epsilon, in an order fixed beforehand
            `-- MeanGuard             guards that look at mean losses alone
                |-- GuessAndCheck     every answer within epsilon; each query brings a guess
                |-- Ladder            the best mean so far
                `-- Thresholdout      experiments.thresholdout, to be compared with

    Attributes
    ----------
    kind : str
        The name of the guard's public class.
    delta : float
        The probability that the guarantee fails.
    needs : {"key", "guess"} or None
        What a query brings beside predictions: ``query(y_pred, key=...)``.
    tells : {"scores", "verdicts"}
        What an answer has.
    of_teams : bool
        Whether a query of the service says which team it is of.
    """

    delta: float
    kind: ClassVar[str]
    needs: ClassVar[Literal["key", "guess"] | None] = None
    tells: ClassVar[Literal["scores", "verdicts"]] = "scores"
    of_teams: ClassVar[bool] = False
    _set_once = frozenset(_ATTRIBUTES.split())
    _holdout: Holdout | Losses
    _record: Any = None  # the database that it was opened from
    _record_kind = "EventRecord"  # its class, in `store`

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
    def allow_reruns(self) -> bool:
        """Whether a query may bring ``rerun=``, which training of its key it is."""
        return False

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, when, and proved by what."""
        raise NotImplementedError

    @property
    def halted(self) -> bool:
        """Whether a query has been withheld, or would be; it never turns False again."""
        return self.n_left() == 0

    @property
    def n_answered(self) -> int:
        """Answers given so far."""
        raise NotImplementedError

    @property
    def can_answer(self) -> bool:
        """Whether some query might be answered: False once halted, or where nothing ever is."""
        return not self.halted

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that may be shown to anybody, as JSON values by name."""
        return {}

    def n_left(self) -> int | None:
        """Return how many queries more will be answered for certain; None: there is no end."""
        raise NotImplementedError

    def n_left_public(self) -> int | None:
        """Return `n_left` as far as the answers reveal it, for analysts who see nothing else."""
        return 0 if self.halted else self.n_left()

    def outlook(self) -> Outlook:
        """Return in words what is left, for people."""
        if self.halted:
            return Outlook("nothing: the next query is withheld, and so is every later one", 0.0)
        return self._outlook()

    def _outlook(self) -> Outlook:
        """What is left before the halt."""
        left = self.n_left()
        if left is None:
            return Outlook("no limit", None)
        of_all = left + self.n_answered
        return Outlook(f"{left:,} of {counted(of_all, 'answer')}", left / of_all if of_all else 0.0)

    def what_now(self) -> str:
        """Return what to do after the halt, for people; "" before it."""
        if not self.halted:
            return ""
        return (
            "Report the best answer with its interval: all that were given hold as before. To "
            "judge more models take new rows, since a second guard on these would not know what "
            "was learned from them."
        )

    def owner_facts(self) -> dict[str, float]:
        """Return numbers that reveal more than the answers do, for the holdout's owner alone."""
        return {}

    @property
    def database(self) -> Database | None:
        """The database that the guard was opened from, if it was."""
        return cast("Database | None", self._record)

    def share_transactions(self) -> ServedDatabase:
        """Have the calls of an opened guard committed together from now on, with a log of them."""
        from radabound_fast.store.served import ServedDatabase

        return ServedDatabase(self._opened())

    def _opened(self) -> Any:
        """The database; RuntimeError where there is none."""
        if self._record is None:
            raise RuntimeError(f"this {self.kind} is in no database: share it as a database (open)")
        return self._record

    def intervals_of(self, answers: Sequence[Any]) -> Iterable[tuple[float, float, float]]:
        """Return low, high and half-width of answers: many cost little more than one."""
        return ((answer.low, answer.high, answer.half_width) for answer in answers)

    def what_would_answer(self, guess: float | None = None) -> str:
        """Return what to change so that a first query, with this `guess`, is answered; or ""."""
        return ""

    def close(self) -> None:
        """Do nothing: the database of an opened guard is open for the length of a call."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __sklearn_clone__(self) -> Self:
        """scikit-learn's ``clone`` keeps this very object, and so its answers."""
        return self

    @classmethod
    def _open(cls, arguments: dict[str, Any]) -> Self:
        """Return what `open` does, given all of its arguments by name, the class too."""
        return cast(Self, open_guard(**arguments))

    def _keep_in(self, record: Any) -> None:
        """Answer by a database from now on."""
        self._record = record
