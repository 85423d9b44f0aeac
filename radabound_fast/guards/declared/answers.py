"""The answers of a `DeclaredSearch`, made on demand of what is stored of each query."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.guard import Answer
from radabound_fast.bounds._limits import at_least
from radabound_fast.guards.answers import ColumnAnswers
from radabound_fast.metrics import MeanLoss, Measure
from radabound_fast.rows.partial import listed
from radabound_fast.spaces.space import Codes, Space

if TYPE_CHECKING:
    from radabound_fast.store.record import Query

Floats = NDArray[np.float64]
Stored = tuple[Any, ...]  # what is stored of a query, nats last, but for its fingerprint


class Terms(NamedTuple):
    """What the answers of one search share."""

    space: Space
    measure: MeanLoss | Measure
    nats: float  # ln(2/delta); ln(1/delta) for one side alone; ln 2 more beside gains
    two_sided: bool

    @property
    def dtype(self) -> Any:
        """The dtype of what is stored of a query."""
        return np.float64 if self.measure.stores == "limits" else np.int64

    def value(self, stored: Stored) -> float:
        if isinstance(self.measure, MeanLoss):
            total, shift, _ = stored
            return float(total / (self.measure.n_samples << shift))
        return float(self.measure.values(np.array([stored[:-1]]))[0])

    def interval(self, stored: Stored) -> tuple[float, float]:
        if isinstance(self.measure, MeanLoss):
            total, shift, nats = stored
            return self.sides(*self.measure.interval(total, shift, self.nats + nats))
        lows, highs = self.intervals(np.array([stored[:-1]]), np.array(stored[-1:]))
        return float(lows[0]), float(highs[0])

    def intervals(self, stored: NDArray[Any], nats: Floats) -> tuple[Any, Any]:
        return self.sides(*self.measure.intervals(stored, self.nats + nats))

    def sides(self, lows: Any, highs: Any) -> tuple[Any, Any]:
        """Both limits; with one side alone, the one that says how good it is at least."""
        if self.two_sided:
            return lows, highs
        least, most = self.measure.ends
        if self.measure.greater_is_better:
            return lows, 0.0 * highs + most
        return 0.0 * lows + least, highs

    def half_width(self, values: Any, lows: Any, highs: Any) -> Any:
        above, below = highs - values, values - lows
        if self.two_sided:
            return at_least(above, below)
        return below if self.measure.greater_is_better else above

    @property
    def own_fields(self) -> tuple[str, ...]:
        """Fields that only some answers have."""
        gains = ("gain", "gain_low", "gain_high") if self.measure.is_paired else ()
        return gains if self.measure.n_folds is None else ("truth_of", *gains)

    @property
    def truth_of(self) -> str | None:
        """What the intervals cover under cross-validation; None without it."""
        n_folds = self.measure.n_folds
        return None if n_folds is None else f"the {n_folds} fold models on average"

    @property
    def paired(self) -> Measure:
        """The measure of a search with a baseline; AttributeError without one."""
        if isinstance(self.measure, Measure) and self.measure.is_paired:
            return self.measure
        raise AttributeError("only a search with a baseline has gains")

    def gain_intervals(self, stored: NDArray[Any], nats: Floats) -> tuple[Any, Any]:
        lows, highs = self.paired.gain_intervals(stored, self.nats + nats)
        return lows, (highs if self.two_sided else 0.0 * highs + self.most_gain)

    @property
    def most_gain(self) -> float:
        least, most = self.measure.ends
        return most - least


class DeclaredSearchAnswer(Answer):
    """One answer of `DeclaredSearch`.

    Attributes
    ----------
    value : float
        The holdout's metric, or the mean loss.
    low, high : float
        Limits of the population's value, for all answers at once; computed when asked for.
    half_width : float
        How far the value may be from the population's: the longer side of the interval.
    number : int
        How many different queries were answered, this one included.
    key, rerun : object, int
        The model: its key in the space, and which training of it.
    nats : float
        The price of the key and the rerun, ln(1/w).
    gain, gain_low, gain_high : float
        Of a search with a baseline: how much less often than it the model errs, or of other metrics
        how much lower its mean loss is; and limits of the population's gain, which hold together
        with `low` and `high`.
    truth_of : str
        Of a search with `n_folds`: what `low` and `high` cover, the models of the folds on average
        over the rows; not a model that is trained again on all rows.
    """

    __slots__ = ("_gain_limits", "_limits", "_number", "_query", "_terms", "stored")

    def __init__(self, terms: Terms, query: Query, stored: Stored, number: int) -> None:
        self._terms, self._query, self.stored, self._number = terms, query, stored, number
        # None: not computed yet
        self._limits: tuple[float, float] | None = None
        self._gain_limits: tuple[float, float] | None = None

    @property
    def value(self) -> float:
        return self._terms.value(self.stored)

    @property
    def low(self) -> float:
        return self._interval[0]

    @property
    def high(self) -> float:
        return self._interval[1]

    @property
    def half_width(self) -> float:
        low, high = self._interval
        return float(self._terms.half_width(self.value, low, high))

    @property
    def number(self) -> int:
        return self._number

    @property
    def key(self) -> Any:
        return self._terms.space.key_of(self._query[0])

    @property
    def rerun(self) -> int:
        return self._query[1]

    @property
    def nats(self) -> float:
        return float(self.stored[-1])

    @property
    def _interval(self) -> tuple[float, float]:
        if self._limits is None:
            low, high = self._terms.interval(self.stored)
            self._limits = float(low), float(high)
        return self._limits

    @property
    def gain(self) -> float:
        return float(self._terms.paired.gains(np.array([self.stored[:-1]]))[0])

    @property
    def gain_low(self) -> float:
        return self._gain_interval[0]

    @property
    def gain_high(self) -> float:
        return self._gain_interval[1]

    @property
    def _gain_interval(self) -> tuple[float, float]:
        if self._gain_limits is None:
            stored, nats = np.array([self.stored[:-1]]), np.array(self.stored[-1:])
            lows, highs = self._terms.gain_intervals(stored, nats)
            self._gain_limits = float(lows[0]), float(highs[0])
        return self._gain_limits

    @property
    def truth_of(self) -> str:
        if self._terms.truth_of is None:
            raise AttributeError("only a search with n_folds says whose truth it is")
        return self._terms.truth_of

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name; gains and `truth_of` where the search has them."""
        names = (*Answer.fields, "key", "rerun", "nats", *self._terms.own_fields)
        return {name: getattr(self, name) for name in names}

    def __reduce__(self) -> Any:
        return type(self), (self._terms, self._query, self.stored, self._number)


class Comparison(NamedTuple):
    """How much better one model of a search is than another.

    Attributes
    ----------
    gain : float
        How much less often the first errs; of other metrics, how much lower its mean loss is.
    gain_low, gain_high : float
        Limits of the population's gain, for all comparisons at once.
    nats : float
        The price of delta and both keys together; of finalists that of all pairs.
    asymptotic_low, asymptotic_high : float or None
        The same limits at the bootstrap's level, of a `ConfirmedSearch` that has them.
    """

    gain: float
    gain_low: float
    gain_high: float
    nats: float
    asymptotic_low: float | None = None
    asymptotic_high: float | None = None

    def reversed(self) -> Comparison:
        """Return how much better the second is than the first."""
        low, high = self.asymptotic_low, self.asymptotic_high
        beside = (None, None) if low is None or high is None else (-high, -low)
        return Comparison(-self.gain, -self.gain_high, -self.gain_low, self.nats, *beside)


class DeclaredSearchAnswers(ColumnAnswers[DeclaredSearchAnswer]):
    """The answers to a block of queries.

    Attributes
    ----------
    values, lows, highs, half_widths, nats : ndarray of float64, shape (k,)
        As in `DeclaredSearchAnswer`; the limits are computed when asked for.
    keys : list, length k
    reruns, numbers : ndarray of int64, shape (k,)
        Which training of the key, and ``number`` of each answer.
    gains, gain_lows, gain_highs : ndarray of float64, shape (k,)
        Of a search that has a baseline.
    halted : bool
        False: nothing is ever withheld.
    n_answered : int
        How many different queries the search has answered, these included.
    """

    def __init__(
        self,
        terms: Terms,  # space, metric, delta and sides
        codes: Codes,
        reruns: NDArray[np.int64],
        columns: list[NDArray[Any]],  # of what values and limits are made from
        nats: Floats,
        numbers: NDArray[np.int64] | None,  # None: up to n_answered
        n_answered: int,
    ) -> None:
        self.terms, self._codes, self._reruns = terms, codes, reruns
        self._columns, self._nats, self._numbers = columns, nats, numbers
        self.n_answered, self.halted = n_answered, False

    @classmethod
    def joined(cls, blocks: Sequence[Self]) -> Self:
        """Several blocks of one search as one."""
        return cls(
            blocks[-1].terms,
            joined_codes([block._codes for block in blocks]),
            np.concatenate([block._reruns for block in blocks]),
            list(map(np.concatenate, zip(*(block._columns for block in blocks), strict=True))),
            np.concatenate([block._nats for block in blocks]),
            np.concatenate([block.numbers for block in blocks]),
            blocks[-1].n_answered,
        )

    def those(
        self, rows: NDArray[np.intp], n_before: int = 0, n_answered: int | None = None
    ) -> Self:
        """Return the answers of some rows, with so many queries before them, and in all."""
        return type(self)(
            self.terms,
            codes_at(self._codes, rows),
            self._reruns[rows],
            [column[rows] for column in self._columns],
            self._nats[rows],
            self.numbers[rows] + n_before,
            self.n_answered + n_before if n_answered is None else n_answered,
        )

    @cached_property
    def codes(self) -> list[Hashable]:
        """The code of each key in the space."""
        return listed(self._codes)

    # one number for all rows takes no memory until it is asked for
    @cached_property
    def reruns(self) -> NDArray[np.int64]:
        return np.ascontiguousarray(self._reruns)

    @cached_property
    def nats(self) -> Floats:
        return np.ascontiguousarray(self._nats)

    @cached_property
    def stored(self) -> NDArray[Any]:
        """What value and limits of each answer are made from, a row each."""
        return np.stack(self._columns, axis=1)

    @cached_property
    def values(self) -> Floats:
        return np.asarray(self.terms.measure.values(self.stored))

    @cached_property
    def _interval(self) -> tuple[Floats, Floats]:
        return self.terms.intervals(self.stored, self.nats)

    @property
    def ranks(self) -> Floats:
        """The limit that an answer is ranked by, better where smaller: its high, or -low."""
        return -self.lows if self.terms.measure.greater_is_better else self.highs

    @property
    def best(self) -> DeclaredSearchAnswer:
        """The first answer with the best limit; there is at least one."""
        return self[int(self.ranks.argmin())]

    @cached_property
    def half_widths(self) -> Floats:
        return np.asarray(self.terms.half_width(self.values, self.lows, self.highs))

    @cached_property
    def gains(self) -> Floats:
        return self.terms.paired.gains(self.stored)

    @cached_property
    def _gain_intervals(self) -> tuple[Floats, Floats]:
        return self.terms.gain_intervals(self.stored, self.nats)

    @property
    def gain_lows(self) -> Floats:
        return self._gain_intervals[0]

    @property
    def gain_highs(self) -> Floats:
        return self._gain_intervals[1]

    @cached_property
    def keys(self) -> list[Any]:
        return [self.terms.space.key_of(code) for code in self.codes]

    @overload
    def __getitem__(self, index: int) -> DeclaredSearchAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[DeclaredSearchAnswer]: ...
    def __getitem__(
        self, index: int | slice
    ) -> DeclaredSearchAnswer | Sequence[DeclaredSearchAnswer]:
        rows = range(len(self))[index]
        return self._answer(rows) if isinstance(rows, int) else list(map(self._answer, rows))

    def __iter__(self) -> Iterator[DeclaredSearchAnswer]:
        return map(self._answer, range(len(self)))

    def _answer(self, row: int) -> DeclaredSearchAnswer:
        stored = *self.stored[row].tolist(), float(self._nats[row])
        query = self.codes[row], int(self._reruns[row])
        return DeclaredSearchAnswer(self.terms, query, stored, int(self.numbers[row]))

    def __len__(self) -> int:
        return len(self._codes)

    def _own_columns(self) -> dict[str, Any]:
        columns = {"key": self.keys, "rerun": self.reruns, "nats": self.nats}
        if self.terms.truth_of is not None:
            columns["truth_of"] = [self.terms.truth_of] * len(self)
        if self.terms.measure.is_paired:
            gains = {"gain": self.gains, "gain_low": self.gain_lows, "gain_high": self.gain_highs}
            columns |= gains
        return columns


def codes_at(codes: Codes, rows: NDArray[np.intp]) -> Codes:
    return codes[rows] if isinstance(codes, np.ndarray) else [codes[row] for row in rows]


def joined_codes(blocks: Sequence[Codes]) -> Codes:
    arrays = [block for block in blocks if isinstance(block, np.ndarray)]
    if arrays and len(arrays) == len(blocks):
        return np.concatenate(arrays)
    return [code for block in blocks for code in listed(block)]
