"""What queries return, and raise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.guard import Answer, RadaBoundAnswer, make_answer

if TYPE_CHECKING:
    from radabound_fast.guards.halting import HaltingRule

# the fields of every answer, in order
SHARED = Answer.fields
_NUMBERS = ({bool}, {int}, {float})

AnswerT_co = TypeVar("AnswerT_co", bound=Answer, covariant=True)


class HoldoutExhausted(RuntimeError):
    """The holdout cannot answer: this query is withheld, and so is every later one.

    The mean of the withheld query is neither in the message, `reason`, nor in an attribute.

    Attributes
    ----------
    n_answered : int
        Answers given before; the withheld query is not counted.
    complexity : float or None
        Monte-Carlo Rademacher complexity with the withheld query included, in units of
        loss; None for guards that have none, or whose answers are rounded.
    delta_prime, threshold : float or None
        What the tail bound gave at that complexity, clipped at 1 (nan where it has no tail), and
        what that had to stay at or below.
    """

    def __init__(
        self,
        reason: str,
        *,
        n_answered: int = 0,
        complexity: float | None = None,
        delta_prime: float | None = None,
        threshold: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.n_answered, self.complexity = n_answered, complexity
        self.delta_prime, self.threshold = delta_prime, threshold


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class MeanAnswer(Answer):
    """The fields that answers of guards in Python share; see `Answer`."""

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


class Answers(Sequence[AnswerT_co]):
    """The answers of a guard's `query_many`, up to the first query that was withheld.

    A sequence of `Answer`, and each of their fields as an array.  ``answers.to_dict()`` makes a
    `pandas.DataFrame` with a row per answer and a column per field.

    Attributes
    ----------
    values, lows, highs, half_widths : ndarray of float64, shape (k,)
        As in `Answer`; computed when asked for.
    numbers : ndarray of int64, shape (k,)
        ``number`` of each.
    halted : bool
        Whether the query after them halted the guard: it and the rows after it were withheld.
    n_answered : int
        Answers that the guard has given in all, these included.
    """

    def __init__(self, answers: Sequence[AnswerT_co], *, halted: bool, n_answered: int) -> None:
        self._answers, self.halted, self.n_answered = answers, halted, n_answered

    def _column(self, name: str, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        return np.array([getattr(answer, name) for answer in self._answers], dtype)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        return self._column("value")

    @cached_property
    def lows(self) -> NDArray[np.float64]:
        return self._column("low")

    @cached_property
    def highs(self) -> NDArray[np.float64]:
        return self._column("high")

    @cached_property
    def half_widths(self) -> NDArray[np.float64]:
        return self._column("half_width")

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        return self._column("number", np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the values of each field by name: an array, or a list if they are no numbers."""
        shared = (self.values, self.lows, self.highs, self.half_widths, self.numbers)
        return dict(zip(SHARED, shared, strict=True)) | self._own_columns()

    def _own_columns(self) -> dict[str, Any]:
        fields = dict.fromkeys(name for answer in self._answers for name in answer.to_dict())
        own = [name for name in fields if name not in SHARED]
        columns = {name: [getattr(answer, name) for answer in self._answers] for name in own}
        # keys may be anything, of several types: they stay a list
        is_number = {name: {*map(type, one)} in _NUMBERS for name, one in columns.items()}
        return {name: np.array(one) if is_number[name] else one for name, one in columns.items()}

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, index: int) -> AnswerT_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AnswerT_co]: ...
    def __getitem__(self, index: int | slice) -> AnswerT_co | Sequence[AnswerT_co]:
        return self._answers[index]

    def __iter__(self) -> Iterator[AnswerT_co]:
        return iter(self._answers)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({counted(len(self), 'answer')}, halted={self.halted}, "
            f"n_answered={self.n_answered})"
        )


class ColumnAnswers(Answers[AnswerT_co]):
    """Answers that are stored as columns, and made when asked for."""

    _numbers: NDArray[np.int64] | None  # None: up to n_answered

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        if self._numbers is not None:
            return self._numbers
        return np.arange(self.n_answered - len(self), self.n_answered) + 1

    @cached_property
    def _interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raise NotImplementedError

    @cached_property
    def lows(self) -> NDArray[np.float64]:
        return self._interval[0]

    @cached_property
    def highs(self) -> NDArray[np.float64]:
        return self._interval[1]


def hand_over(error: BaseException, answers: Sequence[Any]) -> None:
    """Put answers that were counted before an error on it, as its attribute `answers`."""
    error.answers = answers  # type: ignore[attr-defined]
    if n := len(answers):
        error.add_note(f"the answers counted before it, {n:,}, are its attribute `answers`")


class RadaBoundAnswers(ColumnAnswers[RadaBoundAnswer]):
    """What `RadaBound.query_many` answered: `Answers`, and the guard's complexity.

    Attributes
    ----------
    complexity, delta_prime : float
        The guard's after the call, a withheld query included.
    complexities, delta_primes : ndarray of float64, shape (k,), or None
        The same after each answer; only with ``trace=True``.
    """

    def __init__(
        self,
        values: NDArray[np.float64],
        *,
        numbers: NDArray[np.int64] | None = None,  # None: up to n_answered
        binary: bool | NDArray[np.bool_],
        halted: bool,
        n_answered: int,
        complexity: float,
        complexities: NDArray[np.float64] | None,
        rule: HaltingRule,
    ) -> None:
        self.values, self.halted, self.n_answered = values, halted, n_answered
        self.complexity, self.complexities = complexity, complexities
        self._numbers, self._rule = numbers, rule
        self.binary = binary  # whether the losses are 0 or 1 by their type

    @classmethod
    def joined(cls, blocks: Iterable[Self]) -> Self:
        """Several blocks as one, without a trace; the state after them is the last one's."""
        blocks = list(blocks)
        return blocks[-1]._without_trace(
            np.concatenate([block.values for block in blocks]),
            np.concatenate([block.numbers for block in blocks]),
            np.concatenate([np.broadcast_to(block.binary, len(block)) for block in blocks]),
        )

    def subset(self, rows: NDArray[np.intp]) -> Self:
        """Return the answers of some rows, without a trace."""
        binary = np.broadcast_to(self.binary, len(self))[rows]
        return self._without_trace(self.values[rows], self.numbers[rows], binary)

    def _without_trace(self, values: Any, numbers: Any, binary: Any) -> Self:
        return type(self)(
            values,
            numbers=numbers,
            binary=binary,
            halted=self.halted,
            n_answered=self.n_answered,
            complexity=self.complexity,
            complexities=None,
            rule=self._rule,
        )

    @cached_property
    def _interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._rule.interval(self.values, self.numbers, self.binary)

    @cached_property
    def half_widths(self) -> NDArray[np.float64]:
        widths: NDArray[np.float64] = self._rule.half_width(self.values, self.lows, self.highs)
        return widths

    @cached_property
    def delta_prime(self) -> float:
        return self._rule.delta_prime(self.complexity)

    @cached_property
    def delta_primes(self) -> NDArray[np.float64] | None:
        if self.complexities is None:
            return None
        # complexities never fall, and rarely rise: each run of equal ones is looked up once
        starts = np.flatnonzero(np.diff(self.complexities, prepend=np.nan) != 0)
        of_runs = [self._rule.delta_prime(value) for value in self.complexities[starts].tolist()]
        return np.repeat(of_runs, np.diff(starts, append=len(self)))

    def _own_columns(self) -> dict[str, Any]:
        unknown = np.full(len(self), np.nan)
        return {
            "complexity": unknown if self.complexities is None else self.complexities,
            "delta_prime": unknown if self.delta_primes is None else self.delta_primes,
        }

    @cached_property
    def _answers(self) -> list[RadaBoundAnswer]:  # type: ignore[override]
        columns = [column.tolist() for column in self.to_dict().values()]
        return [
            make_answer(value, complexity, number, (low, high, half_width, delta_prime))
            for value, low, high, half_width, number, complexity, delta_prime in zip(
                *columns, strict=True
            )
        ]

    def __len__(self) -> int:
        return len(self.values)

    def __getstate__(self) -> dict[str, Any]:
        computed = ("lows", "highs", "half_widths", "delta_prime", "delta_primes")
        known = {name: getattr(self, name) for name in computed}
        return self.__dict__ | known | {"_rule": None}  # what is stored needs no bound
