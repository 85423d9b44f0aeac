"""A search over a space that was declared beforehand: an interval for every score, and no halt."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import fields, make_dataclass
from functools import cached_property
from math import isclose, log
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._checks import (
    certainty,
    check_bool,
    check_count,
    check_delta,
    check_fraction,
    check_integer,
    check_n_folds,
    check_n_samples,
    read_as,
)
from radabound_fast._kernel import UNIT_SHIFT, Answer, QueryTable, sealed
from radabound_fast.bounds import paired_interval
from radabound_fast.bounds._limits import at_least
from radabound_fast.guards.answers import ColumnAnswers
from radabound_fast.guards.log import hears_queries, note_answer, note_answers
from radabound_fast.guards.saving import check_made_for, faults_of, named, same_json
from radabound_fast.metrics import COUNTED, MeanLoss, Measure, fingerprints_of
from radabound_fast.rows.packing import as_array, as_values, unchecked_words
from radabound_fast.spaces import Codes, Space, as_space, from_description
from radabound_fast.spaces._values import quoted

if TYPE_CHECKING:
    from radabound_fast.guards.report import Report
    from radabound_fast.metrics import Truth
    from radabound_fast.store import Durability, Path
    from radabound_fast.store.record import Asked, Query, SearchRecord

# real-valued losses become units of 2**-24 a block of so many values at a time
_BLOCK_VALUES = 2**20

Floats = NDArray[np.float64]
Told = tuple[Any, ...]  # what an answer has of `Asked`: all but the fingerprint


class _Terms(NamedTuple):
    """What the answers of one search share."""

    space: Space
    measure: MeanLoss | Measure
    nats: float  # ln(2/delta); ln(1/delta) for one side alone; ln 2 more beside gains
    two_sided: bool

    def value(self, told: Told) -> float:
        if isinstance(self.measure, MeanLoss):
            total, shift, _ = told
            return float(total / (self.measure.n_samples << shift))
        return float(self.measure.values(np.array([told[:-1]]))[0])

    def interval(self, told: Told) -> tuple[float, float]:
        if isinstance(self.measure, MeanLoss):
            total, shift, nats = told
            return self._side(*self.measure.interval(total, shift, self.nats + nats))
        lows, highs = self.intervals(np.array([told[:-1]]), np.array(told[-1:]))
        return float(lows[0]), float(highs[0])

    def intervals(self, kept: NDArray[Any], nats: Floats) -> tuple[Any, Any]:
        return self._side(*self.measure.intervals(kept, self.nats + nats))

    def _side(self, lows: Any, highs: Any) -> tuple[Any, Any]:
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
    def truth_of(self) -> str | None:
        """Of a cross-validation: whose truth intervals speak of."""
        n_folds = self.measure.n_folds
        return None if n_folds is None else f"the {n_folds} fold models on average"

    def gain_intervals(self, kept: NDArray[Any], nats: Floats) -> tuple[Any, Any]:
        assert isinstance(self.measure, Measure)
        lows, highs = self.measure.gain_intervals(kept, self.nats + nats + self.nats_of_gains)
        return lows, (highs if self.two_sided else 0.0 * highs + self.most_gain)

    @property
    def most_gain(self) -> float:
        least, most = self.measure.ends
        return most - least

    @property
    def nats_of_gains(self) -> float:
        """More than for a score: a lower limit alone takes two of three events."""
        return 0.0 if self.two_sided else log(4 / 3)


_TOLD = ["value", "low", "high", "half_width", "n_queries", "key", "rerun", "nats"]
_GAINS = ["gain", "gain_low", "gain_high"]


def _fields_of(names: list[str]) -> dict[str, Any]:
    made = make_dataclass("_", names, init=False, repr=False, eq=False)
    return {one.name: one for one in fields(made)}


class DeclaredSearchAnswer(Answer):
    """One answer of `DeclaredSearch`.

    Attributes
    ----------
    value : float
        The mean loss; of a `Holdout` with a metric, that.
    low, high : float
        Where the population's is, for all answers at once; computed when asked for.
    half_width : float
        How far the value may be from the population's: the longer side of the interval.
    n_queries : int
        Different queries answered so far, this one counted.
    key, rerun
        What was asked about.
    nats : float
        What the key and the rerun cost: ln(1/w).
    """

    __slots__ = ("_limits", "_number", "_query", "_terms", "_told")
    __dataclass_fields__ = _fields_of(_TOLD)

    def __init__(self, terms: _Terms, query: Query, told: Told, number: int) -> None:
        self._terms, self._query, self._told, self._number = terms, query, told, number
        self._limits: tuple[float, float] | None = None  # not yet asked for

    @property
    def value(self) -> float:
        return self._terms.value(self._told)

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
    def n_queries(self) -> int:
        return self._number

    @property
    def key(self) -> Any:
        return self._terms.space.key_of(self._query[0])

    @property
    def rerun(self) -> int:
        return self._query[1]

    @property
    def nats(self) -> float:
        return float(self._told[-1])

    @property
    def _interval(self) -> tuple[float, float]:
        if self._limits is None:
            low, high = self._terms.interval(self._told)
            self._limits = float(low), float(high)
        return self._limits

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeclaredSearchAnswer):
            return NotImplemented
        return bool(self.__reduce__() == other.__reduce__())

    def __hash__(self) -> int:
        return hash((self._query, self._told))

    def __reduce__(self) -> Any:
        return type(self), (self._terms, self._query, self._told, self._number)


class ComparedAnswer(DeclaredSearchAnswer):
    """One answer of a `DeclaredSearch` in a `Holdout` that has a baseline.

    Attributes
    ----------
    gain : float
        How much less often than the baseline the model errs; of other metrics, how much lower its
        mean loss is.
    gain_low, gain_high : float
        Where the true gain is; these limits and `low` and `high` hold for all answers at once.

    Notes
    -----
    And those of `DeclaredSearchAnswer`.
    """

    __slots__ = ("_gain_limits",)
    __dataclass_fields__ = _fields_of(_TOLD + _GAINS)

    def __init__(self, terms: _Terms, query: Query, told: Told, number: int) -> None:
        super().__init__(terms, query, told, number)
        self._gain_limits: tuple[float, float] | None = None

    @property
    def gain(self) -> float:
        measure = self._terms.measure
        assert isinstance(measure, Measure)
        return float(measure.gains(np.array([self._told[:-1]]))[0])

    @property
    def gain_low(self) -> float:
        return self._gain_interval[0]

    @property
    def gain_high(self) -> float:
        return self._gain_interval[1]

    @property
    def _gain_interval(self) -> tuple[float, float]:
        if self._gain_limits is None:
            kept, nats = np.array([self._told[:-1]]), np.array(self._told[-1:])
            lows, highs = self._terms.gain_intervals(kept, nats)
            self._gain_limits = float(lows[0]), float(highs[0])
        return self._gain_limits


class CrossValidatedAnswer(DeclaredSearchAnswer):
    """One answer of a `DeclaredSearch` with `n_folds`.

    Attributes
    ----------
    truth_of : str
        What `low` and `high` speak of: the models of the folds, on average over the rows; not a
        model that is trained again on all rows.

    Notes
    -----
    And those of `DeclaredSearchAnswer`.
    """

    __slots__ = ()
    __dataclass_fields__ = _fields_of([*_TOLD, "truth_of"])

    @property
    def truth_of(self) -> str | None:
        return self._terms.truth_of


class Comparison(NamedTuple):
    """How much better one model of a `DeclaredSearch` is than another.

    Attributes
    ----------
    gain : float
        How much less often the first errs; of other metrics, how much lower its mean loss is.
    gain_low, gain_high : float
        Where the true gain is, for all comparisons at once.
    nats : float
        What was paid in all: for delta and both keys.
    """

    gain: float
    gain_low: float
    gain_high: float
    nats: float


class DeclaredSearchAnswers(ColumnAnswers[DeclaredSearchAnswer]):
    """The answers to a block of queries, all of them.

    Attributes
    ----------
    values, lows, highs, half_widths, nats : ndarray of float64, shape (n_answered,)
        As of each `DeclaredSearchAnswer`; the limits are computed when asked for.
    keys : list, length n_answered
    reruns, numbers : ndarray of int64, shape (n_answered,)
        The second is ``n_queries`` of each.
    gains, gain_lows, gain_highs : ndarray of float64, shape (n_answered,)
        As of each `ComparedAnswer`, in a `Holdout` that has a baseline.
    n_answered : int
    halted : bool
        False: nothing is ever withheld.
    n_queries : int
        Different queries answered so far, these counted.
    """

    def __init__(
        self,
        terms: _Terms,
        codes: Codes,
        reruns: NDArray[np.int64],
        columns: list[NDArray[Any]],  # of what is kept
        nats: Floats,
        numbers: NDArray[np.int64] | None,  # None: up to n_queries
        n_queries: int,
    ) -> None:
        self._terms, self._codes, self._reruns = terms, codes, reruns
        self._columns, self._nats, self._numbers = columns, nats, numbers
        self.n_queries, self.halted = n_queries, False

    @classmethod
    def joined(cls, blocks: Sequence[Self]) -> Self:
        """Several blocks of one search as one."""
        return cls(
            blocks[-1]._terms,
            _joined_codes([block._codes for block in blocks]),
            np.concatenate([block._reruns for block in blocks]),
            list(map(np.concatenate, zip(*(block._columns for block in blocks), strict=True))),
            np.concatenate([block._nats for block in blocks]),
            np.concatenate([block.numbers for block in blocks]),
            blocks[-1].n_queries,
        )

    def _some(self, rows: Sequence[int]) -> Self:
        """Those of some rows, as if nothing else had been asked."""
        return type(self)(
            self._terms,
            [self.codes[row] for row in rows],
            self._reruns[rows],
            [column[rows] for column in self._columns],
            self._nats[rows],
            None,
            len(rows),
        )

    def _only(self, row: int) -> Self:
        """That of one row."""
        one = slice(row, row + 1)
        return type(self)(
            self._terms,
            self._codes[one],
            self._reruns[one],
            [column[one] for column in self._columns],
            self._nats[one],
            self.numbers[one],
            self.n_queries,
        )

    @cached_property
    def codes(self) -> list[Hashable]:
        """What the space calls each key."""
        return self._codes.tolist() if isinstance(self._codes, np.ndarray) else self._codes

    # one number for all rows takes no memory until it is asked for
    @cached_property
    def reruns(self) -> NDArray[np.int64]:
        return np.ascontiguousarray(self._reruns)

    @cached_property
    def nats(self) -> Floats:
        return np.ascontiguousarray(self._nats)

    @cached_property
    def _kept(self) -> NDArray[Any]:
        return np.stack(self._columns, axis=1)

    @cached_property
    def values(self) -> Floats:
        return np.asarray(self._terms.measure.values(self._kept))

    @cached_property
    def _intervals(self) -> tuple[Floats, Floats]:
        return self._terms.intervals(self._kept, self.nats)

    @property
    def lows(self) -> Floats:
        return self._intervals[0]

    @property
    def highs(self) -> Floats:
        return self._intervals[1]

    @property
    def _ranks(self) -> Floats:
        """The limit that an answer is judged by, the better the less: its high, or -low."""
        return -self.lows if self._terms.measure.greater_is_better else self.highs

    @property
    def _best(self) -> DeclaredSearchAnswer:
        """The first of those with the best limit; there is an answer."""
        return self[int(self._ranks.argmin())]

    @cached_property
    def half_widths(self) -> Floats:
        return np.asarray(self._terms.half_width(self.values, self.lows, self.highs))

    @cached_property
    def gains(self) -> Floats:
        return self._compared.gains(self._kept)

    @cached_property
    def _gain_intervals(self) -> tuple[Floats, Floats]:
        return self._terms.gain_intervals(self._kept, self.nats)

    @property
    def gain_lows(self) -> Floats:
        self._compared  # noqa: B018 raises without a baseline
        return self._gain_intervals[0]

    @property
    def gain_highs(self) -> Floats:
        self._compared  # noqa: B018
        return self._gain_intervals[1]

    @property
    def _compared(self) -> Measure:
        measure = self._terms.measure
        if isinstance(measure, Measure) and measure.is_paired:
            return measure
        raise AttributeError("gains are of a Holdout that has a baseline")

    @cached_property
    def keys(self) -> list[Any]:
        return [self._terms.space.key_of(code) for code in self.codes]

    @overload
    def __getitem__(self, index: int) -> DeclaredSearchAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[DeclaredSearchAnswer]: ...
    def __getitem__(
        self, index: int | slice
    ) -> DeclaredSearchAnswer | Sequence[DeclaredSearchAnswer]:
        rows = range(len(self))[index]
        return self._answer(rows) if isinstance(rows, int) else [self._answer(row) for row in rows]

    def __iter__(self) -> Iterator[DeclaredSearchAnswer]:
        return map(self._answer, range(len(self)))

    def _answer(self, row: int) -> DeclaredSearchAnswer:
        told = *self._kept[row].tolist(), float(self._nats[row])
        query, number = (self.codes[row], int(self._reruns[row])), int(self.numbers[row])
        return _answer_of(self._terms, query, told, number)

    def __len__(self) -> int:
        return len(self._codes)

    def _own_columns(self) -> dict[str, Any]:
        columns = {"key": self.keys, "rerun": self.reruns, "nats": self.nats}
        if self._terms.truth_of is not None:
            columns["truth_of"] = [self._terms.truth_of] * len(self)
        if not self._terms.measure.is_paired:
            return columns
        gains = {"gain": self.gains, "gain_low": self.gain_lows, "gain_high": self.gain_highs}
        return columns | gains


def _joined_codes(blocks: list[Codes]) -> Codes:
    arrays = [block for block in blocks if isinstance(block, np.ndarray)]
    if len(arrays) == len(blocks):
        return np.concatenate(arrays)
    listed = (block.tolist() if isinstance(block, np.ndarray) else block for block in blocks)
    return [code for block in listed for code in block]


def _answer_of(terms: _Terms, query: Query, told: Told, number: int) -> DeclaredSearchAnswer:
    kind = DeclaredSearchAnswer
    if terms.measure.is_paired:
        kind = ComparedAnswer
    elif terms.truth_of is not None:
        kind = CrossValidatedAnswer
    return kind(terms, query, told, number)


class DeclaredSearch:
    """Judges any search inside a space that was declared beforehand: every score has an interval.

    All intervals hold at once, with probability 1 - delta, however the search goes about it: TPE,
    evolution, by hand, with every score in view.  What counts is the size of the space, not the
    number of queries.  So nothing halts and nothing is secret, and it may be copied, pickled,
    forked, and used as a scorer by any worker.

    Parameters
    ----------
    n_samples : int
        m, the size of the holdout; 1 to 2**40.
    space : int, mapping, sequence of mappings, `spaces.Space`, or object with ``nats(key)``
        What may be asked about.  An int N has the keys 0 to N - 1; a mapping of names to values
        has all combinations of them, as scikit-learn's `ParameterGrid`; see `radabound_fast.spaces`
        for lists in a fixed order, products, ensembles, and priors of your own.
    delta : float
        The probability that any interval misses, in (0, 1).
    reruns : bool, default False
        Whether a key may be trained again with new coins and asked about again.  Rerun r has the
        weight w/(r(r+1)), so the first costs ln 2 more than without.  With False a key has one
        model, and may be asked about again as often as you like.
    two_sided : bool, default True
        False: only the upper side ("is it really this good?"), for ln 2 less; ``low`` is 0.
    n_folds : int, optional
        The losses are those of a cross-validation of so many folds, every row's by the model that
        was trained without its fold; m counts all rows.  Intervals are of the mean truth of the
        models of the folds.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    Let omega, all that the training rests on (data, seeds, noise), be independent of the holdout,
    and ``f_key = F(key, omega)``.  Given omega every f_key is fixed, so by the union bound, with
    weights w(key) that sum to at most 1,

        kl(P_m f_key, P f_key) <= (ln(2/delta) + ln(1/w(key))) / m

    for all keys at once (Chernoff), and for losses *declared* 0 or 1 the limits of Clopper and
    Pearson hold at ``delta w(key) / 2`` a side.  Declared are bits, bools, integers and the
    predictions of a `Holdout`; floats that happen to be 0 and 1 are not.  (Theorem S, Result 20 of
    docs/explanation/theory.md; the Occam bound of Blumer et al., 1987, and Langford, 2005.)

    With `n_folds` the interval is Hoeffding's for m / n_folds rows, of the mean over the rows of
    the truth of each row's model (Result 27).  No model that is trained again on all rows is
    covered.  What a fold reads of the rows that it is judged by joins the key.

    Whatever in training reads the holdout joins the key: an epoch chosen by its score
    (`spaces.epoch_of`), a threshold, a subset, an ensemble; a warm start brings the keys of its
    whole lineage.  Not covered: a space that is changed after scores were seen, and whatever else
    was fitted to the holdout.

    What it keeps are the keys with their counts and a keyed fingerprint of the losses, to tell you
    when one key stands for two models.  The intervals never rest on that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> search = DeclaredSearch(4000, {"depth": range(1, 21), "leaf": [1, 3, 10, 30]}, delta=0.1)
    >>> answer = search.query(rng.random(4000) < 0.2, key={"depth": 5, "leaf": 10})
    >>> answer.value, round(answer.low, 4), round(answer.high, 4)
    (0.20825, 0.188, 0.2296)
    >>> search.size, round(answer.nats, 4)
    (80, 4.382)
    """

    _takes_keys: ClassVar[bool] = True  # a query says which model it is about

    def __init__(
        self,
        n_samples: int,
        space: Any,
        *,
        delta: float,
        reruns: bool = False,
        two_sided: bool = True,
        n_folds: int | None = None,
    ) -> None:
        self.n_samples = check_n_samples(n_samples)
        self.space: Space = as_space(space)
        self.delta = check_delta(delta)
        self.reruns = check_bool(reruns=reruns)
        self.two_sided = check_bool(two_sided=two_sided)
        self.n_folds = None if n_folds is None else check_n_folds(n_folds)
        if self.n_folds is not None and self.n_folds > self.n_samples:
            raise ValueError(f"n_folds must be at most n_samples, {n_samples}, got {n_folds}")
        self._terms = self._terms_for(MeanLoss(self.n_samples, self.n_folds))
        self._secret = os.urandom(16)
        self._record: SearchRecord | None = None  # what it was opened from
        self._logs = hears_queries()
        # a query changes this and nothing else, in one step, so that an interrupt leaves nothing
        # half done
        self._forget()

    @property
    def size(self) -> int | None:
        """How many keys the space has; None: without end, or nobody knows."""
        return self.space.size

    @property
    def n_queries(self) -> int:
        """Different queries answered so far: keys, and with `reruns` keys and reruns."""
        return len(self._asked) if self._record is None else len(self._record)

    @property
    def halted(self) -> bool:
        """False: nothing is ever withheld."""
        return False

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        measure = self._terms.measure
        what, limits = measure.told
        upper = "at or above its low" if measure.greater_is_better else "at or below its high"
        side = "between its low and high" if self.two_sided else upper
        gains = ""
        if measure.is_paired:
            of_gain = "between its own two limits" if self.two_sided else "at or above gain_low"
            gains = f", and the true gain over the baseline {of_gain}"
        size = "" if self.size is None else f" of {self.size:,} keys"
        whose = "of every answer"
        assumed = (
            f"{measure.assumed}; models trained from their key and from data "
            "independent of the holdout, so that whatever else of a model was chosen by holdout "
            "scores is part of its key."
        )
        seen = (
            f"looks at every score, as long as it stays in the space{size} that was declared "
            "before any score was seen"
        )
        if measure.is_paired:
            assumed += " The baseline was fixed before any holdout score was seen."
        if self.space.shows is not None:
            seen = f"sees of the holdout {self.space.shows}, and nothing else"
        if self.n_folds is not None:
            whose = f"of the {self.n_folds} fold models of every answer, averaged over the rows,"
            assumed = (
                f"{measure.assumed}; fold models trained from their key and from the rows of the "
                "other folds, so that whatever else of them was chosen by scores is part of the "
                "key; folds made by chance (by the labels: then the truth is given the labels). "
                "Of a model trained again on all rows nothing is said."
            )
        return (
            f"With probability at least {certainty(self.delta)} the {what} {whose} is {side}"
            f"{gains}, of all answers at once. Finite-sample, valid for any search that {seen}; "
            f"proved by the union bound over its keys, with {limits}. Assumed: {assumed}"
        )

    # ---- asking ----------------------------------------------------------------------------

    @sealed
    def query(self, losses: Any, *, key: Any, rerun: int = 1) -> DeclaredSearchAnswer:
        """The mean loss of the model of a key, and where the truth is.

        Parameters
        ----------
        losses : array_like, shape (n_samples,)
            One loss in [0, 1] per held-out example.  Those of a bool or integer dtype are
            declared to be 0 or 1; floats are rounded to the nearest multiple of 2**-24.
        key : object
            Of the model, in the space.
        rerun : int, default 1
            With `reruns`: which training of this key it is.

        Returns
        -------
        DeclaredSearchAnswer

        Raises
        ------
        TypeError, ValueError
            The key is not in the space, was asked about with other losses, or the losses are
            bad; nothing has changed then.
        """
        self._check_takes_losses()
        query, nats = self._find(key, rerun)
        return self._one(query, nats, _LossRows.of_losses(losses, self.n_samples, 1, self._secret))

    @sealed
    def query_packed(self, words: Any, *, key: Any, rerun: int = 1) -> DeclaredSearchAnswer:
        """`query` for losses declared 0 or 1 that are bits already.

        Parameters
        ----------
        words : ndarray of uint64, shape (ceil(n_samples / 64),)
            As `pack_losses` makes them: sample i is bit i % 64 of word i // 64.
        key, rerun
            As in `query`, whose answers and errors these are too.
        """
        self._check_takes_losses()
        query, nats = self._find(key, rerun)
        return self._one(query, nats, _LossRows.of_words(words, self.n_samples, 1, self._secret))

    @sealed
    def query_many(self, losses: Any, *, keys: Any, reruns: Any = None) -> DeclaredSearchAnswers:
        """`query` for each row.

        Parameters
        ----------
        losses : array_like, shape (k, n_samples)
        keys : sequence or ndarray, length k
            One key a row.
        reruns : array_like of int, shape (k,), optional
            None: all 1.

        Returns
        -------
        DeclaredSearchAnswers

        Raises
        ------
        TypeError, ValueError
            As in `query`, for any row; nothing has changed then.
        """
        self._check_takes_losses()
        found = self._find_many(keys, reruns)
        return self._many(*found, _LossRows.of_losses(losses, self.n_samples, 2, self._secret))

    @sealed
    def query_many_packed(
        self, words: Any, *, keys: Any, reruns: Any = None
    ) -> DeclaredSearchAnswers:
        """`query_many` for bits; see `query_packed`."""
        self._check_takes_losses()
        found = self._find_many(keys, reruns)
        return self._many(*found, _LossRows.of_words(words, self.n_samples, 2, self._secret))

    def interval(self, value: float, *, key: Any, rerun: int = 1) -> tuple[float, float]:
        """The low and high that an answer would have: for planning, and for stored scores.

        Parameters
        ----------
        value : int or float
            An int is a count: so many of the losses are 1, and they are declared to be 0 or 1.
            A float is a mean of real-valued losses.
        key, rerun
            As in `query`.

        Examples
        --------
        >>> million = DeclaredSearch(4000, 10**6, delta=0.1)
        >>> [round(limit, 4) for limit in million.interval(80, key=0)]  # an error of .02
        [0.0103, 0.0343]
        """
        self._check_takes_losses()
        _, nats = self._find(key, rerun)
        if isinstance(value, (float, np.floating)):
            mean = check_fraction(value=value)
            total, shift = round(mean * (self.n_samples << UNIT_SHIFT)), UNIT_SHIFT
        else:
            total, shift = check_integer(value=value), 0
            if not 0 <= total <= self.n_samples:
                raise ValueError(f"value must be in [0, {self.n_samples}], got {total}")
        low, high = self._terms.interval((total, shift, nats))
        return float(low), float(high)

    # ---- what it came to -------------------------------------------------------------------

    @property
    def answers(self) -> DeclaredSearchAnswers:
        """All answers so far, each query once, in the order in which they were first asked."""
        if self._record is None:
            packed, reruns, values = self._asked.columns()
            codes = self.space._unpacked(packed)
            *columns, nats, _ = self._as_kept(values)
        else:
            asked = self._record.all(self._check_ours)
            codes, reruns = [code for code, _ in asked], np.array([rerun for _, rerun in asked])
            n_kept, are_floats = self._terms.measure.n_kept, self._keeps_floats
            table = np.array([told[:-2] for told in asked.values()], float if are_floats else int)
            columns = list(table.reshape(-1, n_kept).T)
            nats = np.array([told[-2] for told in asked.values()], np.float64)
        return DeclaredSearchAnswers(
            self._terms, codes, reruns.astype(np.int64), columns, nats, None, len(codes)
        )

    @property
    def best(self) -> DeclaredSearchAnswer | None:
        """The answer with the lowest high, the first of equals; None before the first query.

        With probability 1 - delta the smallest true mean among all models that were asked about
        is at most ``best.high``.  Of a metric of which more is better it is the answer with the
        highest low, in mirror image.
        """
        answers = self.answers
        return answers._best if len(answers) else None

    def report(self) -> Report:
        """What the search came to so far: a sentence to paste, a table, JSON, and a picture.

        Raises
        ------
        ValueError
            Nothing was asked yet.
        """
        from radabound_fast.guards.report import Report

        return Report.of(self)

    # ---- a record that processes share -------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: Path,
        n_samples: int | None = None,
        space: Any = None,
        *,
        holdout_id: str | None = None,
        durability: Durability = "power",
        **parameters: Any,
    ) -> Self:
        """A search whose queries are in a database, made now if there is none.

        Any number of processes and threads on one machine may open it: each sees the `answers` of
        all, and a key that one asked about with other losses is an error for every other.  The
        intervals do not rest on it: they are the same for a search that nobody shares.  The
        file is opened for each query and closed after it, so that a copy, in another process too,
        writes to the same.

        Parameters
        ----------
        path : path
            Of the database.
        n_samples, space, **parameters
            As for the constructor; those that the database was made with.  With none of them all
            are taken from the file, which must exist; a space that only its own code can make has
            to be passed each time.
        holdout_id : str, optional
            A name for the holdout.  One that was given when the database was made must be given
            again, or left out.
        durability : {"power", "process"}
            "power": an answer waits for the disk.  "process": it does not, and a power cut may
            cost the record.

        Raises
        ------
        FileNotFoundError
            There is no file and no parameters to make one.
        ValueError
            It was made with other parameters or for another holdout, or is no such database.
        OSError
            It cannot be read and written.
        """
        wanted = None
        if n_samples is not None or space is not None or parameters:
            wanted = {"n_samples": n_samples, "space": space} | parameters

        return cls._open(path, wanted, durability, holdout_id, named(holdout_id))

    @classmethod
    def _open(
        cls,
        path: Path,
        parameters: dict[str, Any] | None,
        durability: Durability,
        holdout: str | None,
        same_holdout: Callable[[str | None], bool],
        measure_of: Callable[[Self], Measure | None] | None = None,
    ) -> Self:
        """`open`, where `holdout` is stored in a new database and else compared with.

        `measure_of` says what a `Holdout` measures, given the search.
        """
        from radabound_fast.store.record import open_record

        name, new = os.fsdecode(path), None
        made = None if parameters is None else cls(**parameters)
        if made is not None:
            if measure_of is not None:
                made._measure_by(measure_of(made))
            described = {"parameters": made._parameters(), "holdout": holdout}
            metric = made._terms.measure.describe()
            new = described | {"secret": made._secret.hex(), "metric": metric}
        record = open_record(path, durability, new)
        stored = record.description["parameters"]
        with faults_of(name, "a search"):
            secret = bytes.fromhex(record.description["secret"])
        check_made_for(name, record.description, same_holdout, "a search")
        if made is None:
            with faults_of(name, "a search"):
                made = cls(**stored | {"space": from_description(stored["space"])})
                if not same_json(made._parameters(), stored):
                    raise ValueError("its parameters are not as they were written")
        for parameter, value in made._parameters().items():
            if value != stored.get(parameter):
                raise ValueError(
                    f"{parameter} must be {stored.get(parameter)!r:.200}, with which {name} was "
                    f"made, got {value!r:.200}"
                )
        made._secret, made._terms = secret, made._terms_for(record.measure)
        if measure_of is not None and measure_of(made) != made._metric:
            raise ValueError(
                f"metric, its options and baseline must be those with which {name} was made, "
                f"{made._metric or repr('error')}"
            )
        made._record = record
        return made

    def _parameters(self) -> dict[str, Any]:
        # as they come back from JSON
        import json

        space = json.loads(json.dumps(self.space.describe(), allow_nan=False))
        return {
            "n_samples": self.n_samples,
            "space": space,
            "delta": self.delta,
            "reruns": self.reruns,
            "two_sided": self.two_sided,
            "n_folds": self.n_folds,
        }

    def close(self) -> None:
        """Nothing: the database of an opened search is open for the length of a query."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing, as `close`."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_asked": self._asked.copy()}  # a copy goes its own way

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={value}"
            for name, value, usual in (
                ("reruns", self.reruns, False),
                ("two_sided", self.two_sided, True),
                ("n_folds", self.n_folds, None),
            )
            if value != usual
        )
        return (
            f"DeclaredSearch({self.n_samples}, {self.space!r}, delta={self.delta!r}{options}, "
            f"n_queries={self.n_queries})"
        )

    # ---- inside ----------------------------------------------------------------------------

    def _terms_for(self, measure: MeanLoss | Measure) -> _Terms:
        nats = log((1 + self.two_sided) / self.delta)
        # scores and gains have half of delta each
        nats += log(2) if measure.is_paired else 0.0
        return _Terms(self.space, measure, nats, self.two_sided)

    def _forget(self) -> None:
        """As if nothing had been asked."""
        self._asked = QueryTable(self._terms.measure.n_kept + 2)  # nats and the fingerprint

    @property
    def _keeps_floats(self) -> bool:
        return self._terms.measure.keeps == "limits"

    def _as_kept(self, values: Iterable[NDArray[np.int64]]) -> list[NDArray[Any]]:
        """What a `QueryTable` has of queries, as it was given."""
        *columns, nats, fingerprints = values
        if self._keeps_floats:
            columns = [column.view(np.float64) for column in columns]
        return [*columns, nats.view(np.float64), fingerprints.view(np.uint64)]

    @property
    def _metric(self) -> Measure | None:
        """What a `Holdout` measures; None: mean losses."""
        measure = self._terms.measure
        return measure if isinstance(measure, Measure) else None

    def _measure_by(self, measure: Measure | None) -> None:
        """From now on, what a `Holdout` measures; None: error rates."""
        if measure is None or measure == self._terms.measure:
            return
        if self._record is not None:
            raise ValueError("guard must be opened by Holdout.open, which stores the metric")
        if self._metric is not None or self._asked:
            raise ValueError(
                f"guard must be a search of its own for each holdout, metric and baseline: this "
                f"one answers the {self._terms.measure.told[0]}, and each has its own delta"
            )
        self._terms = self._terms_for(measure)
        self._forget()

    def _check_takes_losses(self) -> None:
        measure = self._terms.measure
        if type(measure) is not MeanLoss:
            raise ValueError(
                f"this search answers the {measure.told[0]}: ask its Holdout with predictions"
            )

    def _query_predictions(
        self, truth: Truth, y_pred: Any, key: Any, rerun: int
    ) -> DeclaredSearchAnswer:
        """`query` for a `Holdout` with a metric."""
        query, nats = self._find(key, rerun)
        rows = truth.read(y_pred, 1)
        paid = np.array([self._terms.nats + nats])
        return self._one(query, nats, self._measured(truth, rows, paid))

    def _query_many_predictions(
        self, truth: Truth, y_pred: Any, *, keys: Any, reruns: Any = None
    ) -> DeclaredSearchAnswers:
        """`query_many` for a `Holdout` with a metric."""
        codes, numbers, nats = self._find_many(keys, reruns)
        rows = truth.read(y_pred, 2)
        _check_one_a_row(codes, len(rows))
        measured = self._measured(truth, rows, self._terms.nats + nats)
        return self._many(codes, numbers, nats, measured)

    def _compare(
        self, truth: Truth | None, rows: list[NDArray[Any]], keys: list[Any], reruns: list[int]
    ) -> Comparison:
        """Two models by where they lose, once both are asked about."""
        asked = []
        for which, key, rerun in zip("ab", keys, reruns, strict=True):
            with read_as(key=f"key_{which}", rerun=f"rerun_{which}"):
                asked.append(self._find(key, rerun))
        if asked[0] == asked[1]:
            raise ValueError(f"key_a and key_b must be two models, got {quoted(keys[0])} twice")
        codes = [code for (code, _), _ in asked]
        numbers = np.array([rerun for (_, rerun), _ in asked], np.int64)
        nats = np.array([paid for _, paid in asked])
        both = np.concatenate(rows)
        if truth is None:
            found: _Rows = _LossRows(both, self.n_samples, True, self._secret)
        else:
            found = self._measured(truth, both, self._terms.nats + nats)
        self._many(codes, numbers, nats, found)
        paid = log((1 + self.two_sided) / self.delta) + float(nats.sum())
        # both sides of a pair are those of the pair the other way round: of two ordered pairs one
        # is paid for
        paid -= log(2) if self.two_sided else 0.0
        paid += self._terms.nats_of_gains
        if truth is None or truth.row.name in COUNTED:
            (minus,), (plus,) = (
                _kernel.sums_of_rows(one & ~other, self.n_samples, packed=True)[0].tolist()
                for one, other in (rows, rows[::-1])
            )
            gain = (plus - minus) / self.n_samples
            low, high = paired_interval(plus, minus, self.n_samples, paid)
        else:
            losses, others = truth.row.summary(truth, both)
            gain, low, high = truth.gain(others, losses, paid)
        return Comparison(gain, low, high if self.two_sided else self._terms.most_gain, paid)

    def _measured(self, truth: Truth, rows: NDArray[Any], paid: Floats) -> _Rows:
        if truth.counts_errors:
            return _Rows(*truth.keep_errors(rows, self._secret))
        measure = self._terms.measure
        assert isinstance(measure, Measure)
        kept = truth.keep(measure, rows, paid, self._terms.nats_of_gains)
        return _Rows(kept, fingerprints_of(rows, self._secret))

    def _find(self, key: Any, rerun: int) -> tuple[Query, float]:
        code, nats = self.space.find(key)
        nats = float(nats)
        if not self.reruns:
            if rerun != 1:
                raise ValueError(
                    f"rerun must be 1 unless the search is declared with reruns=True, got {rerun!r}"
                )
            return (code, 1), nats
        rerun = check_count(rerun=rerun, at_most=2**63 - 1)
        return (code, rerun), nats + log(rerun) + log(rerun + 1)

    def _find_many(self, keys: Any, reruns: Any) -> tuple[Codes, NDArray[np.int64], Floats]:
        for name, given in (("keys", keys), ("reruns", [] if reruns is None else reruns)):
            if not np.iterable(given):
                raise TypeError(f"{name} must be a sequence, one a row, got {given!r:.50}")
        if reruns is None and not self.reruns:
            codes, nats = self.space.find_many(keys)
            return codes, np.broadcast_to(np.int64(1), len(codes)), nats
        listed = list(keys)
        which = [1] * len(listed) if reruns is None else list(reruns)
        if len(which) != len(listed):
            raise ValueError(f"reruns must be one a key, {len(listed)}, got {len(which)}")
        found = [self._find(key, rerun) for key, rerun in zip(listed, which, strict=True)]
        return (
            [code for (code, _), _ in found],
            np.array([rerun for (_, rerun), _ in found], np.int64),
            np.array([nats for _, nats in found], np.float64),
        )

    def _check_ours(self, query: Query, nats: float) -> None:
        """Raise unless this is a query in the space, and costs so much."""
        code, rerun = query
        ours, expected = self._find(self.space.key_of(code), rerun)
        if repr(ours) != repr(query) or not isclose(nats, expected):  # True is no 1 here
            raise ValueError(f"{query!r:.100} for {nats} nats is no query of this search")

    def _one(self, query: Query, nats: float, rows: _Rows) -> DeclaredSearchAnswer:
        asked = *rows.first(), nats, rows.fingerprints.item(0)
        if self._record is None:
            code, rerun = query
            (packed,) = self.space._packed([code])
            n_queries, before = self._asked.add_one(packed, rerun, *asked)
            if before is not None:
                told = self._as_kept(list(np.array(before)[:, np.newaxis]))
                self._check_same(query, tuple(column.item() for column in told), rows, 0)
        else:
            n_queries = self._record.add(
                {query: asked}, lambda query, before: self._check_same(query, before, rows, 0)
            )
        answer = _answer_of(self._terms, query, asked[:-1], n_queries)
        if self._logs:
            key = f", key {answer.key!r:.200}"
            value = answer.value if self.space.shows is None else None
            note_answer(type(self).__name__, n_queries, value, key)
        return answer

    def _many(
        self, codes: Codes, reruns: NDArray[np.int64], nats: Floats, rows: _Rows
    ) -> DeclaredSearchAnswers:
        columns, n_rows = rows.columns, len(rows.fingerprints)
        _check_one_a_row(codes, n_rows)
        add = self._add if self._record is None else self._add_to_record
        n_queries, numbers = add(codes, reruns, [*columns, nats, rows.fingerprints], rows)
        if self._logs:
            note_answers(type(self).__name__, n_rows, n_queries)
        return DeclaredSearchAnswers(self._terms, codes, reruns, columns, nats, numbers, n_queries)

    def _add(
        self, codes: Codes, reruns: NDArray[np.int64], values: list[NDArray[Any]], rows: _Rows
    ) -> tuple[int, NDArray[np.int64] | None]:
        packed = self.space._packed(codes)
        while True:
            n_queries, numbers, odd = self._asked.add(packed, reruns, values)
            if odd is None:
                return n_queries, numbers
            # as they were asked before, if they have the same losses
            values = [np.array(column) for column in values]
            before = self._as_kept(list(odd[1]))
            told = zip(*(column.tolist() for column in before), strict=True)
            for row, asked in zip(odd[0].tolist(), told, strict=True):
                self._check_same((codes[row], int(reruns[row])), asked, rows, row)
            for column, theirs in zip(values, before, strict=True):
                column[odd[0]] = theirs

    def _add_to_record(
        self, codes: Codes, reruns: NDArray[np.int64], values: list[NDArray[Any]], rows: _Rows
    ) -> tuple[int, NDArray[np.int64] | None]:
        assert self._record is not None
        listed = codes.tolist() if isinstance(codes, np.ndarray) else codes
        asked = zip(*(column.tolist() for column in values), strict=True)
        queries = list(zip(listed, reruns.tolist(), strict=True))
        is_new = np.ones(len(queries), np.bool_)
        row_of: dict[Query, int] = {}
        added: dict[Query, Asked] = {}
        for row, (query, told) in enumerate(zip(queries, asked, strict=True)):
            if query in added:
                self._check_same(query, added[query], rows, row)
                is_new[row] = False
            else:
                row_of[query], added[query] = row, told

        def check(query: Query, before: Asked) -> None:
            self._check_same(query, before, rows, row_of[query])
            is_new[row_of[query]] = False

        n_queries = self._record.add(added, check)
        return n_queries, n_queries - int(is_new.sum()) + is_new.cumsum()

    def _check_same(self, query: Query, before: Asked, rows: _Rows, row: int) -> None:
        """ValueError unless the row has the losses that were asked about before."""
        if rows.fingerprint_as(row, before, self._secret) == before[-1]:
            return
        code, rerun = query
        again = (
            "a second training with other coins is another rerun"
            if self.reruns
            else "if its training tosses coins, declare the search with reruns=True and pass rerun="
        )
        raise ValueError(
            f"key must stand for one model, got {quoted(self.space.key_of(code))} (rerun {rerun}) "
            f"a second time with other {rows.of}: {again}"
        )


def _check_one_a_row(codes: Codes, n_rows: int) -> None:
    if len(codes) != n_rows:
        raise ValueError(f"keys must be one a row, {n_rows}, got {len(codes)}")


class _Rows:
    """Predictions: what is kept of rows of them, and what tells them apart.

    Attributes
    ----------
    kept : ndarray of int64 or float64, shape (k, n_kept)
        As the measure wants it.
    fingerprints : ndarray of uint64, shape (k,)
        Keyed hashes of what came.
    """

    of = "predictions"

    def __init__(self, kept: NDArray[Any], fingerprints: NDArray[np.uint64]) -> None:
        self._kept, self.fingerprints = kept, fingerprints

    @property
    def columns(self) -> list[NDArray[Any]]:
        """Of what is kept."""
        return list(self._kept.T)

    def first(self) -> list[Any]:
        """What is kept of the first row."""
        row: list[Any] = self._kept[0].tolist()
        return row

    def fingerprint_as(self, row: int, before: Asked, secret: bytes) -> int | None:
        """The row's fingerprint, if it had come as the one before."""
        return int(self.fingerprints[row])


class _LossRows(_Rows):
    """Losses: their sums, and in units of which power of 2."""

    of = "losses"

    def __init__(self, values: NDArray[Any], n_samples: int, declared: bool, secret: bytes) -> None:
        self._shift = 0 if declared else UNIT_SHIFT
        self._values = values if values.ndim == 2 else values[np.newaxis]
        self._n_samples = n_samples
        if declared:
            little = self._values.astype("<u8", copy=False)
            hashes, sums = _kernel.fingerprints_and_sums(little, n_samples, secret)
        else:
            # floats that happen to be 0 and 1 are summed as such
            sums, shift = _kernel.sums_of_rows(self._values, n_samples, packed=False)
            sums <<= self._shift - shift
            hashes = self._of_units(self._values, secret)
        self._totals, self.fingerprints = sums, hashes

    @property
    def columns(self) -> list[NDArray[np.int64]]:
        return [self._totals, np.broadcast_to(np.int64(self._shift), len(self._totals))]

    def first(self) -> list[Any]:
        return [self._totals.item(0), self._shift]

    @classmethod
    def of_words(cls, words: Any, n_samples: int, ndim: int, secret: bytes) -> _LossRows:
        return cls(unchecked_words(words, n_samples, ndim), n_samples, True, secret)

    @classmethod
    def of_losses(cls, losses: Any, n_samples: int, ndim: int, secret: bytes) -> _LossRows:
        array = as_array(losses, "losses")
        values = as_values(array, n_samples, ndim)
        whole = array.dtype.kind in "biu" or array.dtype.kind == "O" and _are_whole(array)
        if not whole:
            return cls(values, n_samples, False, secret)
        return cls(_kernel.pack_rows(values), n_samples, True, secret)

    def fingerprint_as(self, row: int, before: Asked, secret: bytes) -> int | None:
        """The row's fingerprint, declared as the one before; None: it cannot be."""
        shift = before[1]
        if shift == self._shift:
            return int(self.fingerprints[row])
        values = self._values[row]
        if shift:
            octets = values.astype("<u8").view(np.uint8)
            bits = np.unpackbits(octets, count=self._n_samples, bitorder="little")
            return int(self._of_units(bits[np.newaxis].astype(np.float64), secret)[0])
        if not ((values == 0) | (values == 1)).all():
            return None
        packed = _kernel.pack_rows(values)[np.newaxis].astype("<u8", copy=False)
        return int(_kernel.fingerprints(packed, -(-self._n_samples // 8), secret)[0])

    def _of_units(self, values: NDArray[Any], secret: bytes) -> NDArray[np.uint64]:
        hashes = np.empty(len(values), np.uint64)
        step = max(1, _BLOCK_VALUES // self._n_samples)
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            units = _kernel.rows_in_units(values[block]).astype("<i4", copy=False)
            hashes[block] = _kernel.fingerprints(units, 4 * self._n_samples, secret)
        return hashes


def _are_whole(array: NDArray[np.object_]) -> bool:
    whole = (bool, int, np.bool_, np.integer)
    return all(isinstance(value, whole) for value in array.ravel().tolist())
