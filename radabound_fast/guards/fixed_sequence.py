"""Queries in an order fixed beforehand: the proved halting guard, for every metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_bool,
    check_count,
    check_delta,
    check_fraction,
    check_integer,
    check_positive,
)
from radabound_fast._kernels.guard import Answer
from radabound_fast._kernels.rows import UNIT_SHIFT
from radabound_fast._kernels.support import sealed
from radabound_fast.bounds import Free, binomial_interval, kl_interval
from radabound_fast.bounds.binomial import binomial_free
from radabound_fast.bounds.kl import kl_free
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.guards.answers import Answers, MeanAnswer
from radabound_fast.guards.base import Outlook
from radabound_fast.guards.halting_guard import HaltingGuard
from radabound_fast.guards.mean_guard import MeanGuard, Progress
from radabound_fast.guards.release import Release, rounding, rounding_sentence, tolerance_before
from radabound_fast.guards.signed import ARGUMENTS, SignedGuard
from radabound_fast.holdout import Holdout, Losses
from radabound_fast.metrics import COUNTED, MeanLoss, Measure, Truth

if TYPE_CHECKING:
    from radabound_fast.store import Durability, Path

# more than rounding widens an interval, relative to its length; of exact limits at so many nats
_MARGIN = 1e-8
_EXACT_NATS = 3.0
# rows and values of predictions that a metric judges in one step
_BLOCK_ROWS, _BLOCK_VALUES = 256, 2**22
_KEY = bytes(16)  # hashes weights, which are no secret; no labels are hashed by it

Limits = tuple[float, float, float]  # value, low, high
Judge = Callable[[int], Limits]  # of one row, at the number of the query


class FixedSequence(HaltingGuard):
    """Answers queries in an order fixed beforehand while each is known to within epsilon.

    The order, and the models in it, must be fixed before any score on this holdout was seen; an
    analyst who chooses the next model by the scores so far needs a `DeclaredSearch`.

    Parameters
    ----------
    judged : array_like, Holdout, int or Losses
        What is judged: labels, or a `Holdout` with any metric; then queries bring predictions.  Or
        the number of held-out rows, m, or `Losses`; then queries bring losses.  Rows may have
        weights and groups.
    epsilon : float
        The error tolerated, above 0, in units of the metric.
    delta : float
        The probability that any answer is off by more; 0 < delta < 1.
    n_vectors : int, default 32
        Random sign vectors, l, for error rates and losses: half of delta then goes to the
        Monte-Carlo Rademacher complexity of the queries, which answers on where the union bound
        ends.  0: the union bound alone, with all of delta.  Other metrics use the union bound
        alone, whatever `n_vectors` is.
    max_queries : int, optional
        How many queries share half of the union bound's delta alike; the rest goes by dyadic
        weights, which last for any number.
    seed : int, optional
        The seed of the signs; None draws it from the operating system.  Whoever chooses the queries
        must not know it.
    signs : {"stored", "generated"}, default "stored"
        As for `RadaBound`.
    release : "interval" or Rounded, default "interval"
        As for `RadaBound`, whatever the metric; limits as for `DeclaredSearch`.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    By the union bound query k has the interval of its metric that fails with probability at most
    ``exp(-L)`` on each side, ``L = ln(2 / (w_k delta))``, with the larger of its weights ``w_k``.
    It is answered if that lies within epsilon of the value; the first that is not is withheld, and
    so are all after it.  (Result 29 of docs/explanation/theory.md; with signs Theorem F.)
    `DeclaredSearch` over `spaces.InOrder` has such intervals without an epsilon, and never halts.

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import Holdout
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 4000)
    >>> guard = FixedSequence(Holdout(y_true, metric="roc_auc"), epsilon=0.05, delta=0.1)
    >>> answer = guard.query(y_true + rng.normal(size=4000))
    >>> round(answer.value, 4), round(answer.low, 4), round(answer.high, 4)
    (0.7734, 0.7422, 0.7898)
    """

    epsilon: float
    max_queries: int | None

    @sealed
    def __new__(cls, judged: Any = None, **options: Any) -> Self:
        kind: Any = cls
        if cls is FixedSequence:
            n_vectors = check_integer(n_vectors=options.get("n_vectors", 32))
            if n_vectors < 0:
                raise ValueError(f"n_vectors must be at least 0, got {n_vectors}")
            other_metric = isinstance(judged, Holdout) and judged.metric != "error"
            kind = SignedSequence if n_vectors and not other_metric else UnionSequence
        guard: Self = super(FixedSequence, kind).__new__(kind)
        return guard

    @sealed
    def __init__(
        self,
        judged: Any,
        *,
        epsilon: float,
        delta: float,
        n_vectors: int = 32,
        max_queries: int | None = None,
        seed: int | None = None,
        signs: Literal["stored", "generated"] = "stored",
        release: Release = "interval",
    ) -> None:
        self._set_up(
            judged,
            epsilon=epsilon,
            delta=delta,
            n_vectors=n_vectors,
            max_queries=max_queries,
            seed=seed,
            signs=signs,
            release=release,
        )

    # else it is that of `__new__`
    __signature__ = signature(partial(__init__, None))  # type: ignore[arg-type]

    def _set_up(self, judged: Any, **arguments: Any) -> None:
        """What `__init__` does."""
        raise NotImplementedError

    def query(self, y_pred: Any) -> Answer:
        """Return an `Answer` with the metric of one model, if it is known to within epsilon.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predictions in the order of the holdout's rows, as its metric takes them; losses in
            [0, 1] for a guard made on `Losses`.  `PackedLosses` are losses of 0 and 1.

        Raises
        ------
        HoldoutExhausted
            This query's answer is withheld, or an earlier one's was.
        TypeError, ValueError
            Not such an array; nothing has changed.
        RuntimeError
            In a process forked after the guard was made, once it was closed, or in the middle of
            another call on this very thread.
        """
        raise NotImplementedError

    def query_many(self, Y_pred: Any, *, n_threads: int = 1) -> Answers[Any]:
        """Answer each row in order, up to the first that is withheld.

        Parameters
        ----------
        Y_pred : array_like, shape (k, n_samples), or PackedLosses
            Rows as `query` takes them; probabilities of every class have shape
            (k, n_samples, n_classes).
        n_threads : int, default 1
            Threads to use at most, for error rates and losses.  The result is the same.

        Returns
        -------
        Answers
            Bit for bit what a loop of `query` gives.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError, RuntimeError
            As in `query`, for any row; nothing has changed.
        """
        raise NotImplementedError

    def n_left(self, mean: float | None = None, *, binary: bool | None = None) -> int:
        """Return how many queries more will be answered for certain, whatever they are.

        Parameters
        ----------
        mean : float, optional
            Of queries with this mean loss, in [0, 1], to the nearest that there is.  None: whatever
            their means.
        binary : bool, optional
            Whether the losses are 0 or 1 by their type: bits, bool or integers.  By default they
            are where the guard was made on labels.

        Returns
        -------
        int
            At most 2**62, which stands for no limit; 0 for a metric other than "error" and
            "accuracy", whose intervals are not known beforehand.  More may be answered.
        """
        raise NotImplementedError

    @classmethod
    @sealed
    def open(
        cls,
        path: Path,
        judged: Any = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        n_vectors: int = 32,
        max_queries: int | None = None,
        seed: int | None = None,
        signs: Literal["stored", "generated"] = "stored",
        release: Release = "interval",
        holdout_id: str | None = None,
        durability: Durability = "power",
    ) -> Self:
        """Open the guard that lives in a database, made now if there is none: see `RadaBound.open`.

        Other parameters are those of the class, and must be those that the database was made with.
        Without epsilon and delta all are those of the database; labels without a metric are
        measured as it says.
        """
        return cls._open(locals())


class SignedSequence(FixedSequence, SignedGuard):
    """A `FixedSequence` of error rates or losses, with sign vectors."""

    kind = "FixedSequence"

    _arguments = (*ARGUMENTS, "max_queries")

    query = SignedGuard.query
    n_left = SignedGuard.n_left
    query_many = SignedGuard.query_many

    def _set_up(self, judged: Any, **arguments: Any) -> None:
        SignedGuard.__init__(self, judged, bound="fixed-sequence", **arguments)
        self.max_queries = self.rule.max_queries

    def _parameters(self) -> dict[str, Any]:
        weighting = None if self._units is None else self._units.fingerprint()
        return super()._parameters() | {"metric": None, "weighting": weighting}

    def __repr__(self) -> str:
        grouped = "" if self._units is None else f", n_groups={self.n_groups}"
        return (
            f"FixedSequence({self.holdout!r}, epsilon={self.epsilon}, delta={self.delta}, "
            f"n_vectors={self.n_vectors}{grouped}, n_answered={self._core.n_rows}, "
            f"halted={self._core.has_halted})"
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class FixedSequenceAnswer(MeanAnswer):
    """An answer of a `FixedSequence` by the union bound alone: `Answer`, of any metric."""


class UnionSequence(FixedSequence, MeanGuard[FixedSequenceAnswer, Answers[FixedSequenceAnswer]]):
    """A `FixedSequence` of any metric, by the union bound alone."""

    kind = "FixedSequence"
    _answers_type = Answers[FixedSequenceAnswer]
    _arguments = ("epsilon", "delta", "max_queries", "n_vectors", "release")
    n_vectors = 0

    def _set_up(self, judged: Any, **arguments: Any) -> None:
        MeanGuard.__init__(self, judged, Progress())
        self.release: Release = arguments["release"]
        self._rounded = rounding(self.release, self._holdout)
        self._truth: Truth | None = None
        self._measure: Measure | MeanLoss = MeanLoss(self.n_samples)
        if isinstance(self._holdout, Holdout):
            self._truth = self._holdout.truth
            self._measure = self._truth.measure(_KEY)._replace(rounded=self._rounded)
        self.epsilon = check_positive(epsilon=arguments["epsilon"])
        self._tolerance = tolerance_before(self._rounded, self.epsilon)
        self.delta = check_delta(arguments["delta"])
        max_queries = arguments["max_queries"]
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        # half of delta alike and half by dyadic weights, or all of it; they do not rest on epsilon
        share = self.delta if self.max_queries else 2.0 * self.delta
        self._weights = Free(self.n_samples, 0.5, share, self.max_queries or 0)
        self._holdout.note_guard(None)

    def _outlook(self) -> Outlook:
        return Outlook(f"unknown: until a score is not known to within {self.epsilon:g}", None)

    def what_would_answer(self, guess: float | None = None) -> str:
        return f"; {self.kind} needs more samples or a larger epsilon"

    def _check_judged(self) -> None:
        if isinstance(self._holdout, Losses) and self._holdout.weighting is not None:
            raise ValueError(
                "n_vectors must be at least 1 for losses with sample_weight or groups, got 0"
            )

    @sealed
    def query(self, y_pred: Any) -> FixedSequenceAnswer:
        (judge,) = self._read(y_pred, many=False)
        return self._one(judge)

    @sealed
    def query_many(self, Y_pred: Any, *, n_threads: int = 1) -> Answers[FixedSequenceAnswer]:
        check_count(n_threads=n_threads)
        return self._many(self._read(Y_pred, many=True))

    def n_left(self, mean: float | None = None, *, binary: bool | None = None) -> int:
        binary = self._truth is not None if binary is None else check_bool(binary=binary)
        if mean is not None:
            mean = check_fraction(mean=mean)
        measure, n_answered = self._measure, self.n_answered
        is_known = measure.name in COUNTED and not measure.is_weighted  # how wide intervals will be
        if self.halted or isinstance(measure, Measure) and not is_known:
            return 0
        query = n_answered + 1
        while query <= MOST_QUERIES and self._answers_all(mean, binary, self._nats(query)):
            query = self._weights.last_alike(query) + 1
        return min(query - 1, MOST_QUERIES) - n_answered

    @property
    def guarantee(self) -> str:
        measure, (what, limits) = self._measure, self._measure.in_words
        return (
            f"With probability at least {certainty(self.delta)} every answer is within "
            f"{self.epsilon} of the {what} {measure.where}, and that is between its low and "
            f"high. Two-sided, finite-sample, for queries in an order fixed in advance (before any "
            f"score on this holdout was seen), up to a halting time that depends on the data; "
            f"proved by the union bound, with {limits}.{rounding_sentence(self._rounded)} Assumed: "
            f"{measure.assumed}. Never for an adaptive analyst: DeclaredSearch stays valid "
            f"there."
        )

    def _answers_all(self, mean: float | None, binary: bool, nats: float) -> bool:
        """Whether the interval of every query with this mean is within epsilon."""
        from fractions import Fraction  # which is slow to import

        m, measure, epsilon = self.n_samples, self._measure, self._tolerance * (1.0 - _MARGIN)
        if epsilon >= 1.0:
            return True
        if mean is None and (not binary or nats < _EXACT_NATS):
            return kl_free(epsilon, nats / m) >= 0.5
        if mean is None:
            return binomial_free(m, epsilon, nats) == m
        if isinstance(measure, Measure) and self._rounded is not None:
            count = round(Fraction(mean) * m)
            count, epsilon = m - count if measure.greater_is_better else count, self.epsilon
            value, (low, high) = self._rounded.of(count / m), measure.interval_of_count(count, nats)
        elif binary:
            count = round(Fraction(mean) * m)
            value, (low, high) = count / m, binomial_interval(count, m, nats)
        else:
            unit = m << UNIT_SHIFT
            value = round(Fraction(mean) * unit) / unit
            low, high = kl_interval(value, m, nats)
        return bool(max(value - low, high - value) <= epsilon)

    def _nats(self, number: int) -> float:
        """``ln(2 / (w_k delta))``."""
        return float(self._weights.nats(number))

    def _decide(self, judge: Judge, guess: float, number: int) -> FixedSequenceAnswer | str:
        value, low, high = judge(number)
        half_width = max(value - low, high - value)
        if half_width > self.epsilon:
            return (
                f"the holdout is spent after {number - 1:,} answers: the next is not known to "
                f"within {self.epsilon:g}, and is withheld"
            )
        return FixedSequenceAnswer(value, low, high, half_width, number)

    def _read(self, y_pred: Any, *, many: bool) -> list[Judge]:
        """A function for each row: from the number of the query to value, low and high."""
        truth, measure = self._truth, self._measure
        is_counted = measure.name == "error" and not measure.is_weighted and self._rounded is None
        if truth is None or is_counted:
            means, binary = self._means(y_pred, many=many)
            return [partial(self._limits_of_mean, mean, binary) for mean in means]
        self._check_owner()
        assert isinstance(measure, Measure)
        rows = _MeasuredRows(truth, measure, truth.read(y_pred, 2 if many else 1), self._nats)
        return [partial(rows.judge, row) for row in range(len(rows))]

    def _limits_of_mean(self, mean: float, binary: bool, number: int) -> Limits:
        m, nats = self.n_samples, self._nats(number)
        if binary:
            return mean, *binomial_interval(round(mean * m), m, nats)
        return mean, *kl_interval(mean, m, nats)

    def _parameters(self) -> dict[str, Any]:
        weighting = getattr(self._measure, "weighting", None)
        return super()._parameters() | {
            "metric": self._measure.describe(),
            "weighting": None if weighting is None else str(weighting),
        }


class _MeasuredRows:
    """Predictions, judged by a metric: a block of queries that follow each other in one step."""

    def __init__(
        self, truth: Truth, measure: Measure, rows: NDArray[Any], nats: Callable[[int], float]
    ) -> None:
        self._truth, self._measure, self._rows, self._nats = truth, measure, rows, nats
        self._n_block = max(1, min(_BLOCK_ROWS, _BLOCK_VALUES // truth.n_samples))
        # value and limits of the present block's rows, by row and number
        self._judged: dict[tuple[int, int], Limits] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def judge(self, row: int, number: int) -> Limits:
        if (row, number) not in self._judged:
            rows = self._rows[row : row + self._n_block]
            nats = np.array([self._nats(number + place) for place in range(len(rows))])
            stored = self._truth.stored(self._measure, rows, nats)
            columns = self._measure.values(stored), *self._measure.intervals(stored, nats)
            answers = zip(*(column.tolist() for column in columns), strict=True)
            self._judged = {
                (row + place, number + place): limits for place, limits in enumerate(answers)
            }
        return self._judged[row, number]
