"""RadaBound: Algorithm 1 and its halting rule."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._checks import check_choice, check_count, check_probability
from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast._kernel import Answer
from radabound_fast._ownership import Owned
from radabound_fast.bounds import BOUNDS
from radabound_fast.packing import as_values, as_words
from radabound_fast.signs import SignMatrix

if TYPE_CHECKING:
    from radabound_fast.store import Lock

NO_LIMIT = 2**63 - 1

Gate = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Answers:
    """What `query_many` answered: the queries before the first that was withheld.

    Attributes
    ----------
    values : ndarray of float64, shape (n_answered,)
        Mean losses.
    n_answered : int
        How many of the queries of this call were answered.
    halted : bool
        Whether the query after them was withheld.
    half_width : float
        How far each value may be from its true mean: the guard's epsilon.
    n_queries : int
        Answers that the guard has given in all.
    complexity, delta_prime : float
        The guard's after the call, a withheld query included.
    complexities, delta_primes : ndarray of float64, shape (n_answered,), or None
        The same after each answer; only with ``trace=True``.
    """

    values: NDArray[np.float64]
    n_answered: int
    halted: bool
    half_width: float
    n_queries: int
    complexity: float
    delta_prime: float
    complexities: NDArray[np.float64] | None = None
    delta_primes: NDArray[np.float64] | None = None


class RadaBound(Owned):
    """Answers mean losses on one holdout until it can no longer vouch for them.

    Each query is a vector of losses in [0, 1], one per held-out sample.  Its mean is answered
    while a tail bound keeps the probability of an error above epsilon at or below delta; the
    first query for which it does not is withheld, and so is every later one.

    Parameters
    ----------
    n_samples : int
        m, the size of the holdout; 1 to 2**40.
    epsilon : float
        The error tolerated, in (0, 1).
    delta : float
        The probability of failure, in (0, 1).
    n_vectors : int, default 32
        l, the number of random sign vectors; 1 to 2**23.
    bound : str, default "bernstein"
        A row of ``bounds.BOUNDS``: "bernstein" (Theorem 4), "bernstein-split" (Theorem 3),
        "mclt" (Theorem 6, a heuristic) or "fixed-sequence" (proved, for queries fixed in advance).
    estimator : {"plain", "half-range"}, optional
        The Monte-Carlo estimate of the complexity; None takes the bound's first.
    two_sided : bool, optional
        Whether delta' is doubled to cover errors of both signs; None takes the bound's default.
    seed : int, optional
        Of the signs, 0 to 2**64 - 1.  None draws it from the operating system.  A given seed is
        for reproduction: whoever chooses the queries must not know it.
    signs : {"stored", "generated"}, default "stored"
        As in `SignMatrix`.
    max_queries : int, optional
        For "fixed-sequence": share the union part's delta among so many queries.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.

    Notes
    -----
    ``guard.guarantee`` says in words what is proved for this configuration.  Real-valued losses
    are rounded to multiples of 2**-24; the function judged, and its mean, are the rounded one's.
    Methods may be called from several threads.  Source: De Stefani and Upfal (2019), Algorithm 1,
    Theorem 7, with the misprints corrected that docs/theory.md lists.

    Examples
    --------
    >>> import numpy as np
    >>> guard = RadaBound(n_samples=4000, epsilon=0.05, delta=0.1, bound="mclt", seed=0)
    >>> losses = np.arange(4000) % 5 == 0
    >>> answer = guard.query(losses)
    >>> answer.value, answer.half_width, answer.n_queries
    (0.2, 0.05, 1)
    """

    _instead: ClassVar[str] = (
        "send predictions or packed losses (pack_losses) to the process that owns it, "
        "or move it with save and load"
    )

    def __init__(
        self,
        n_samples: int,
        *,
        epsilon: float,
        delta: float,
        n_vectors: int = 32,
        bound: str = "bernstein",
        estimator: str | None = None,
        two_sided: bool | None = None,
        seed: int | None = None,
        signs: Literal["stored", "generated"] = "stored",
        max_queries: int | None = None,
    ) -> None:
        super().__init__()
        self.epsilon = check_probability(epsilon=epsilon)
        self.delta = check_probability(delta=delta)
        self._bound = BOUNDS[check_choice(BOUNDS, bound=bound)]
        self.estimator = estimator or self._bound.estimators[0]
        check_choice(self._bound.estimators, estimator=self.estimator)
        self.two_sided = self._bound.sides[0] if two_sided is None else two_sided
        self.max_queries = None if max_queries is None else check_count(max_queries=max_queries)
        self._signs = SignMatrix(n_samples, n_vectors, seed=seed, signs=signs)
        self.n_samples, self.n_vectors = self._signs.n_samples, self._signs.n_vectors
        self.threshold = self._bound.threshold(self.delta)
        self._free = self._bound.free(self.n_samples, self.epsilon, self.delta, self.max_queries)
        self._lock: Lock | None = None  # on the file it was loaded from
        self._extremes = _kernel.Extremes(
            self._signs._store,
            half_range=self.estimator == "half-range",
            epsilon=self.epsilon,
            price=self._price,
            tail=self._delta_prime,
        )

    # ---- asking --------------------------------------------------------------------------

    def query(self, losses: Any, *, guess: object = None) -> Answer:
        """Mean of a loss vector, if it can still be vouched for.

        Parameters
        ----------
        losses : array_like, shape (n_samples,)
            Losses in [0, 1] of any bool, integer or float dtype.
        guess : object, optional
            Ignored: the mechanisms that share this protocol need one.

        Returns
        -------
        Answer

        Raises
        ------
        HoldoutExhausted
            This query's mean is withheld, or an earlier one's was.
        TypeError, ValueError
            Not a vector of losses; nothing has changed.
        """
        answer = self._extremes.query(losses)
        if answer is NotImplemented:
            answer = self._extremes.query(
                as_values(losses, n_samples=self.n_samples, ndim=1, name="losses")
            )
        if answer is None:
            self._refuse()
        return answer

    def query_packed(self, words: Any, *, guess: object = None) -> Answer:
        """`query` for losses of 0 and 1 that are bits already.

        Parameters
        ----------
        words : ndarray, uint64 (ceil(n_samples / 64),) or uint8 (ceil(n_samples / 8),)
            As `pack_losses` makes them: sample i is bit i % 64 of word i // 64, bits past
            n_samples are zero.
        guess : object, optional
            Ignored.
        """
        answer = self._extremes.query_packed(words)
        if answer is NotImplemented:
            answer = self._extremes.query_packed(as_words(words, self.n_samples, ndim=1))
        if answer is None:
            self._refuse()
        return answer

    def query_many(
        self, losses: Any, *, guesses: object = None, trace: bool = False, n_threads: int = 1
    ) -> Answers:
        """`query` for each row in order, up to the first that is withheld.

        Parameters
        ----------
        losses : array_like, shape (k, n_samples)
            Losses in [0, 1].  Memory-mapped arrays are read block by block.
        guesses : object, optional
            Ignored.
        trace : bool, default False
            Whether to return the complexity and delta' after each answer as well.
        n_threads : int, default 1
            Threads to use; the result is the same.

        Returns
        -------
        Answers
            Bit for bit what a loop of `query` gives.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError
            Not rows of losses; nothing has changed.
        """
        options = {"trace": bool(trace), "n_threads": check_count(n_threads=n_threads)}
        result = self._extremes.query_many(losses, **options)
        if result is NotImplemented:
            values = as_values(losses, n_samples=self.n_samples, ndim=2, name="losses")
            result = self._extremes.query_many(values, **options)
        return self._answers(result)

    def query_many_packed(
        self, words: Any, *, guesses: object = None, trace: bool = False, n_threads: int = 1
    ) -> Answers:
        """`query_many` for packed rows, shape (k, ceil(n_samples / 64)); see `query_packed`."""
        options = {"trace": bool(trace), "n_threads": check_count(n_threads=n_threads)}
        result = self._extremes.query_many_packed(words, **options)
        if result is NotImplemented:
            result = self._extremes.query_many_packed(
                as_words(words, self.n_samples, ndim=2), **options
            )
        return self._answers(result)

    def _query_predictions(self, values: NDArray[Any], labels: Any) -> Answer:
        """`query` for what `Labels.match` returned."""
        answer = self._extremes.query(values, labels)
        if answer is None:
            self._refuse()
        return answer

    def _query_many_predictions(
        self, values: NDArray[Any], labels: Any, *, trace: bool = False, n_threads: int = 1
    ) -> Answers:
        """`query_many` for what `Labels.match` returned."""
        n_threads = check_count(n_threads=n_threads)
        return self._answers(
            self._extremes.query_many(values, labels, trace=bool(trace), n_threads=n_threads)
        )

    def _answers(self, result: Any) -> Answers:
        if result is None:
            self._refuse()
        values, complexities, n_queries, halted, complexity = result
        return Answers(
            values=values,
            n_answered=len(values),
            halted=halted,
            half_width=self.epsilon,
            n_queries=n_queries,
            complexity=complexity,
            delta_prime=self._delta_prime(complexity),
            complexities=complexities,
            delta_primes=None if complexities is None else self._delta_primes(complexities),
        )

    def _refuse(self) -> NoReturn:
        self._check_owner()
        if self._extremes.retired:
            raise RuntimeError("this guard was saved and is retired: load it from its file")
        reason = f"the holdout is spent after {self.n_queries} answers: at complexity "
        reason += f"{self.complexity:.6g} the bound {self.bound!r} does not vouch for an error of "
        reason += f"at most {self.epsilon:g}; this query is withheld"
        raise HoldoutExhausted(
            reason,
            n_queries=self.n_queries,
            complexity=self.complexity,
            delta_prime=self._delta_prime(self.complexity),
            threshold=self.threshold,
        )

    # ---- reading -------------------------------------------------------------------------

    @property
    def bound(self) -> str:
        """Name of the bound, a key of ``bounds.BOUNDS``."""
        return self._bound.name

    @property
    def seed(self) -> int:
        """Of the signs, given or drawn.  Whoever chooses the queries must not see it."""
        return self._signs.seed

    @property
    def halted(self) -> bool:
        """Whether a query has been withheld; it never turns False again."""
        return self._extremes.halted

    @property
    def n_queries(self) -> int:
        """Answers given."""
        return self._extremes.n_rows

    @property
    def complexity(self) -> float:
        """Monte-Carlo Rademacher complexity of all queries, a withheld one included.

        In units of loss; 0.0 before the first.
        """
        return self._extremes.complexity

    @property
    def budget(self) -> float:
        """The largest complexity at which a query is answered, in units of loss.

        Negative if none can be.  For "fixed-sequence" that of its self-bounding part, or 1.0
        while its union part answers whatever the complexity.
        """
        free = self._free
        if free is not None and free.low >= free.high and self.n_queries < free.n_queries:
            return 1.0
        return self._extremes.budget / self._extremes.cells

    @property
    def remaining(self) -> float:
        """``1 - complexity / budget``, in [0, 1]; 0.0 if no query can be answered."""
        budget = self.budget
        return max(0.0, 1.0 - self.complexity / budget) if budget > 0.0 else 0.0

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, what is not, and what proves it."""
        return self._bound.guarantee(
            self.n_samples,
            self.n_vectors,
            self.epsilon,
            self.delta,
            estimator=self.estimator,
            two_sided=self.two_sided,
            max_queries=self.max_queries,
        )

    def __repr__(self) -> str:
        return (
            f"RadaBound(n_samples={self.n_samples}, epsilon={self.epsilon}, delta={self.delta}, "
            f"n_vectors={self.n_vectors}, bound={self.bound!r}, n_queries={self.n_queries}, "
            f"halted={self.halted})"
        )

    # ---- pricing -------------------------------------------------------------------------

    def _log_tail(self, complexity: float) -> float:
        tail = self._bound.log_tail
        assert tail is not None
        log_tail = tail(self.epsilon - 2.0 * complexity, self.n_samples, self.n_vectors)
        return log_tail + math.log(2.0) if self.two_sided else log_tail

    def _delta_prime(self, complexity: float) -> float:
        """delta' at a complexity, clipped at 1; nan where the bound has no tail."""
        if self._bound.log_tail is None:
            return math.nan
        return min(1.0, math.exp(self._log_tail(complexity)))

    def _delta_primes(self, complexities: NDArray[np.float64]) -> NDArray[np.float64]:
        # complexities repeat from query to query: each is looked up once
        distinct, which = np.unique(complexities, return_inverse=True)
        return np.array([self._delta_prime(c) for c in distinct.tolist()])[which]

    def _price(self, largest_total: int, unit_shift: int) -> Gate:
        """The integer gate of the kernel: see `struct watch` in src/scan.h.

        The budget is stepped to the edge of the bound's own predicate at the complexities that
        integers stand for, so the integer test and the bound never disagree.
        """
        everything = self.n_samples << unit_shift  # the sum of a vector that errs everywhere
        ranges = 2 if self.estimator == "half-range" else 1
        cells = float(ranges) * float(self.n_vectors) * float(everything)
        largest_mean = largest_total / everything

        def passes(total: int) -> bool:
            complexity = total / cells
            return self._bound.admits(
                complexity,
                self.n_samples,
                self.n_vectors,
                self.epsilon,
                self.delta,
                self.two_sided,
                largest_mean,
            ) and not self._delta_prime(complexity) > self.threshold

        estimate = self._bound.budget(
            self.n_samples,
            self.n_vectors,
            self.epsilon,
            self.delta,
            largest_mean,
            two_sided=self.two_sided,
        )
        budget = last_that_passes(passes, math.floor(estimate * cells))
        if self._bound.log_tail is not None:
            return budget, NO_LIMIT, 0, -1, NO_LIMIT
        free = self._free
        if free is None or free.n_queries == 0:
            return budget, largest_total, 0, -1, NO_LIMIT
        low = math.floor(Fraction(free.low) * everything)
        high = math.ceil(Fraction(free.high) * everything)
        return budget, largest_total, free.n_queries, low, high

    # ---- saving --------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """Everything that `_from_state` needs: JSON values, and int64 arrays."""
        state: dict[str, Any] = {
            "n_samples": self.n_samples,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "n_vectors": self.n_vectors,
            "bound": self.bound,
            "estimator": self.estimator,
            "two_sided": self.two_sided,
            "seed": self.seed,
            "signs": "stored" if self._signs.nbytes else "generated",
            "max_queries": self.max_queries,
            "n_queries": self.n_queries,
            "unit_shift": self._extremes.unit_shift,
            "halted": self.halted,
        }
        if self._extremes.started:
            state["maxima"], state["minima"] = self._extremes.extremes()
        return state

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Self:
        progress = {
            key: state.pop(key, None)
            for key in ("n_queries", "unit_shift", "halted", "maxima", "minima")
        }
        guard = cls(**state)
        guard._extremes.restore(**progress)
        return guard

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, whole or not at all, and retire this guard.

        From then on the file is the guard: load it to go on.  If it cannot be written this
        guard goes on as if nothing had happened.

        Raises
        ------
        RuntimeError
            This guard was saved before, or belongs to the parent of this process.
        ValueError
            `path` exists and this guard was not loaded from it.
        OSError
            The file cannot be written, or a live guard owns it.
        """
        from radabound_fast.store import save_state

        self._check_owner()
        if self._extremes.retired:
            raise RuntimeError("this guard was saved already and is retired")
        self._extremes.retire(True)
        try:
            save_state(path, self._state(), lock=self._lock)
        except BaseException:
            self._extremes.retire(False)
            raise
        if self._lock is not None:
            self._lock.release()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The guard that `save` wrote, and nobody else's while it lives: it locks the file.

        What it answers is in the file only after the next `save`; see `radabound_fast.store`
        for what a crash in between costs.

        Raises
        ------
        OSError
            There is no such file, or a live guard owns it.
        ValueError
            It is not a saved guard, or was cut short or altered.
        """
        from radabound_fast.store import load_state

        state, lock = load_state(path)
        try:
            guard = cls._from_state(state)
        except BaseException:
            lock.release()
            raise
        guard._lock = lock
        return guard


def last_that_passes(passes: Callable[[int], bool], start: int) -> int:
    """The largest integer that passes a test that is true up to some point; -1 if 0 does not.

    `start` is a guess: the search gallops from it.
    """
    if not passes(0):
        return -1
    low = high = max(0, start)
    step = 1
    while not passes(low):
        low, high, step = max(0, low - step), low, 2 * step
    while low == high or passes(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
