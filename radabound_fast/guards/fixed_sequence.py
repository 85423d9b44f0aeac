"""Queries in an order fixed in advance, of any metric: the union part of "fixed-sequence" alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import (
    certainty,
    check_bool,
    check_count,
    check_delta,
    check_fraction,
    check_positive,
)
from radabound_fast._kernel import UNIT_SHIFT
from radabound_fast.bounds import (
    Free,
    binomial_free,
    binomial_interval,
    kl_free,
    kl_interval,
)
from radabound_fast.bounds.union import MOST_QUERIES
from radabound_fast.guards.answers import Answers
from radabound_fast.guards.mechanism import Mechanism, MechanismAnswer
from radabound_fast.guards.reader import LossReader
from radabound_fast.metrics import COUNTED, MeanLoss

if TYPE_CHECKING:
    from radabound_fast.metrics import Measure, Truth

# more than rounding widens an interval, relative to its length; of exact limits at so many nats
_MARGIN = 1e-8
_EXACT_NATS = 3.0


@dataclass(frozen=True, slots=True, repr=False)
class FixedSequenceAnswer(MechanismAnswer):
    """One answer of `FixedSequence`.

    Attributes
    ----------
    value : float
        The mean loss; of a `Holdout` with a metric, that.
    low, high : float
        Where the population's is, for all answers at once.
    half_width : float
        The longer side of the interval, at most epsilon.
    n_queries : int
        Answers given so far, this one counted.
    """


class FixedSequence(Mechanism[FixedSequenceAnswer, Answers[FixedSequenceAnswer]]):
    """Answers queries in an order fixed in advance while each is known to within epsilon.

    What ``RadaBound(bound="fixed-sequence")`` answers without signs, with all of delta and by any
    metric of a `Holdout`.  Not for an analyst who chooses models, or their order, by their scores.

    Parameters
    ----------
    n_samples : int
        m, the number of held-out examples; at least 1.
    epsilon : float
        The error tolerated, above 0, in units of the metric.
    delta : float
        Probability that any answer is off by more; 0 < delta < 1.
    max_queries : int, optional
        How many queries share half of delta alike; the rest goes by dyadic weights, which last for
        any number.  None: all of it does.

    Raises
    ------
    TypeError, ValueError
        For an argument outside its rule; the message names it.

    Notes
    -----
    Query k has the interval of its metric that fails with probability at most ``exp(-L)`` on each
    side, ``L = ln(2 / (w_k delta))``, with the larger of its weights ``w_k``.  It is answered if
    that lies within epsilon of the value; the first that is not is withheld, and so are all after
    it.  (Result 29 of docs/explanation/theory.md.)  `DeclaredSearch` over `spaces.InOrder` has
    such intervals without an epsilon, and never halts.

    Examples
    --------
    >>> import numpy as np
    >>> from radabound_fast import Holdout
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, 4000)
    >>> guard = FixedSequence(4000, epsilon=0.05, delta=0.1)
    >>> holdout = Holdout(y_true, guard, metric="roc_auc")
    >>> answer = holdout.query(y_true + rng.normal(size=4000))
    >>> round(answer.value, 4), round(answer.low, 4), round(answer.high, 4)
    (0.7734, 0.7471, 0.7983)
    """

    _answers_type = Answers[FixedSequenceAnswer]
    _needs_guess = False
    _arguments = ("n_samples", "epsilon", "delta", "max_queries")
    _n_own = 0
    _key = bytes(16)  # hashes weights, which are no secret; of labels nothing is hashed
    _shown = (*_arguments, "n_queries", "halted")

    def __init__(
        self,
        n_samples: int,
        *,
        epsilon: float,
        delta: float,
        max_queries: int | None = None,
        metric: Any = None,
    ) -> None:
        # `metric`: what a Holdout measures, as it is stored; a Holdout says it
        super().__init__(n_samples)
        self.epsilon = check_positive(epsilon=epsilon)
        self.delta = check_delta(delta)
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        # half of delta alike and half by dyadic weights, or all of it; they do not rest on epsilon
        share = self.delta if self.max_queries else 2.0 * self.delta
        self._weights = Free(self.n_samples, 0.5, share, self.max_queries or 0)
        self._metric: Measure | None = None
        if metric is not None:
            from radabound_fast.metrics import Measure

            self._metric = Measure.from_description(metric, None)

    @property
    def guarantee(self) -> str:
        """What is guaranteed, when, and proved by what."""
        measure = self._metric or MeanLoss(self.n_samples)
        what, limits = measure.told
        return (
            f"With probability at least {certainty(self.delta)} every answer is within "
            f"{self.epsilon} of the {what}, and that is between its low and high. Two-sided, "
            f"finite-sample, for queries in an order fixed in advance (before any score on this "
            f"holdout was seen), up to a halting time that depends on the data; proved by the "
            f"union bound, with {limits}. Assumed: {measure.assumed}. Never for an adaptive "
            f"analyst: DeclaredSearch stays valid there."
        )

    def n_left(self, mean: float | None = None, *, declared: bool = False) -> int:
        """How many queries more will be answered for certain, whatever they are.

        Parameters
        ----------
        mean : float, optional
            Of queries with this mean loss, in [0, 1], to the nearest that there is.  None: whatever
            their means.
        declared : bool, default False
            Of losses that are declared 0 or 1: bits, bool or integers.  `Holdout.n_left` takes
            them to be, since its losses are.

        Returns
        -------
        int
            At most 2**62, which stands for no limit.  More may be answered.

        Raises
        ------
        TypeError, ValueError
            An argument is of the wrong type or out of its range, or the guard answers a metric
            other than "error" and "accuracy": how wide its intervals will be is not known.
        """
        measure, declared = self._metric, check_bool(declared=declared)
        if mean is not None:
            mean = check_fraction(mean=mean)
        if measure is not None and (measure.name not in COUNTED or measure.weighting is not None):
            raise ValueError(f"n_left is known of errors, this guard answers the {measure.told[0]}")
        n_queries = self.n_queries
        if self.halted:
            return 0
        query = n_queries + 1
        while query <= MOST_QUERIES and self._answers_all(mean, declared, self._nats(query)):
            query = self._weights.last_alike(query) + 1
        return min(query - 1, MOST_QUERIES) - n_queries

    def _answers_all(self, mean: float | None, declared: bool, nats: float) -> bool:
        """Whether the interval of every query with this mean is within epsilon."""
        from fractions import Fraction  # which is slow to import

        m, epsilon = self.n_samples, self.epsilon * (1.0 - _MARGIN)
        if epsilon >= 1.0:
            return True
        if mean is None and (not declared or nats < _EXACT_NATS):
            return kl_free(epsilon, nats / m) >= 0.5
        if mean is None:
            return binomial_free(m, epsilon, nats) == m
        if declared:
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

    def _decide(self, rows: Any, row: int, guess: float, number: int) -> FixedSequenceAnswer | str:
        value, low, high = self._judged(rows, row, self._nats(number))
        half_width = max(value - low, high - value)
        if half_width > self.epsilon:
            return (
                f"the holdout is spent after {number - 1:,} answers: the next is not known to "
                f"within {self.epsilon:g}, and is withheld"
            )
        return FixedSequenceAnswer(value, low, high, half_width, number)

    def _judged(self, rows: Any, row: int, nats: float) -> tuple[float, float, float]:
        if isinstance(rows, _Measured):
            return rows.judged(row, nats)
        mean, m = rows.means[row], self.n_samples
        if rows.declared:
            return mean, *binomial_interval(round(mean * m), m, nats)
        return mean, *kl_interval(mean, m, nats)

    # ---- for a Holdout with a metric -------------------------------------------------------

    def _measure_by(self, truth: Truth) -> None:
        """From now on, what a `Holdout` measures."""
        measure = truth.measure(self._key)
        if measure == self._metric:
            return
        if self._metric is not None or self.n_queries or self._ledger is not None:
            raise ValueError(
                "guard must be one of its own for each holdout and metric, which a Holdout gives "
                "it before the first query"
            )
        self._metric = measure

    def _check_reads_losses(self) -> None:
        if self._metric is not None:
            raise ValueError(
                f"this guard answers the {self._metric.told[0]}: ask its Holdout with predictions"
            )

    def _reader(self, losses: Any, *, many: bool, packed: bool) -> LossReader:
        self._check_reads_losses()
        return super()._reader(losses, many=many, packed=packed)

    def _query_predictions(self, truth: Truth, y_pred: Any) -> FixedSequenceAnswer:
        return self._one(self._measured(truth, y_pred, 1), None)

    def _query_many_predictions(self, truth: Truth, y_pred: Any) -> Answers[FixedSequenceAnswer]:
        return self._many(self._measured(truth, y_pred, 2), None)

    def _measured(self, truth: Truth, y_pred: Any, ndim: int) -> Any:
        self._check_owner()
        assert self._metric is not None
        return _Measured(truth, self._metric, truth.read(y_pred, ndim))

    # ---- the state -------------------------------------------------------------------------

    def _parameters(self) -> dict[str, Any]:
        metric = None if self._metric is None else self._metric.describe()
        return super()._parameters() | {"metric": metric}

    def _own(self) -> NDArray[np.int64]:
        return np.empty(0, np.int64)

    def _resume_own(self, own: NDArray[np.int64], n_queries: int) -> None:
        if len(own):
            raise ValueError("the state has numbers of another mechanism")


class _Measured(NamedTuple):
    """Predictions, judged one by one by a metric."""

    truth: Truth
    measure: Measure
    rows: NDArray[Any]

    @property
    def means(self) -> NDArray[Any]:
        """One a row: how many there are is all that is read of them."""
        return self.rows

    def judged(self, row: int, nats: float) -> tuple[float, float, float]:
        paid = np.array([nats])
        kept = self.truth.keep(self.measure, self.rows[row : row + 1], paid)
        lows, highs = self.measure.intervals(kept, paid)
        return float(self.measure.values(kept)[0]), float(lows[0]), float(highs[0])
