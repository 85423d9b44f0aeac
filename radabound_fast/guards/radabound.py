"""RadaBound: Algorithm 1 and its halting rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._checks import (
    check_bool,
    check_count,
    check_fraction,
    check_n_samples,
    check_n_vectors,
    counted,
)
from radabound_fast._kernel import UNIT_SHIFT, RadaBoundAnswer, sealed
from radabound_fast.guards.answers import AnswerStream, RadaBoundAnswers, hand_over
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.halting import HaltingRule
from radabound_fast.guards.log import note_answer, note_answers
from radabound_fast.guards.saving import Saved
from radabound_fast.rows.packing import as_rows, as_values, as_words
from radabound_fast.rows.partial import Partial, Task, each_of
from radabound_fast.rows.signs import SignMatrix


class RadaBound(Saved, _kernel.LossQueries):
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
        "mclt" (Theorem 6, a heuristic) or "fixed-sequence" (proved, for queries in a fixed order).
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
        For "fixed-sequence": share half of the union part's delta alike among so many queries.
        None: among as many as it can answer whatever their means.
    sample_weight : array_like of float, shape (n_samples,), optional
        For "fixed-sequence": how much each row counts, positive, and fixed before any score was
        seen.  Answers are weighted means.
    groups : array_like, shape (n_samples,), optional
        The same: rows of one group (patient, video) may depend on each other, and get one sign.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.
    MemoryError
        Stored signs take more than the machine's memory: ``signs="generated"`` takes none.

    Notes
    -----
    ``guard.guarantee`` says in words what is proved for this configuration.  Real-valued losses
    are rounded to multiples of 2**-24; the function judged, and its mean, are the rounded one's.
    Weights are multiplied by a power of 2 and rounded to integers, so that the heaviest row or
    group has about 2**24; rows that all weigh the same, each a group, are a guard without weights.
    Methods may be called from several threads.  What a signal handler, a destructor or a trace
    function calls in the middle of a call, on its very thread, is a RuntimeError; it may read
    `halted` and `n_queries`.  Source: De Stefani and Upfal (2019), Algorithm 1,
    Theorem 7, with the misprints corrected that docs/explanation/theory.md lists.

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
        "share it as a database (open), or move it with save and load"
    )
    _given_again: ClassVar[tuple[str, ...]] = ("sample_weight", "groups")

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
        sample_weight: Any = None,
        groups: Any = None,
    ) -> None:
        super().__init__()
        self._n_samples = check_n_samples(n_samples)
        units = None
        if sample_weight is not None or groups is not None:
            from radabound_fast.rows.weighting import Units  # which few guards need

            units = Units.of(self._n_samples, sample_weight, groups)
        self._units = units
        n_signs = self._n_samples if units is None else units.n_groups
        self._signs = SignMatrix(n_signs, n_vectors, seed=seed, signs=signs)
        self._rule = HaltingRule(
            *self._signs.shape[::-1],
            epsilon,
            delta,
            bound,
            estimator,
            two_sided,
            max_queries,
            units,
        )
        # the state knows the rule, not this guard: no cycle keeps a dropped guard, or the lock on
        # its file, alive
        self._core = _kernel.GuardCore(
            self._signs._store,
            half_range=self._rule.estimator == "half-range",
            price=self._rule.price,
            rule=self._rule,
            weighting=units,
        )
        if units is not None:  # whose rows are in units from the first on
            nothing = np.zeros(self.n_vectors, np.int64)
            self._core._resume(
                _kernel.lay_out(
                    nothing, nothing, n_rows=0, unit_shift=UNIT_SHIFT, largest=0, started=False
                )
            )

    # ---- asking: `query` and `query_packed` are compiled ------------------------------------

    @sealed
    def query_many(
        self, losses: Any, *, guesses: object = None, trace: bool = False, n_threads: int = 1
    ) -> RadaBoundAnswers:
        """`query` for each row in order, up to the first that is withheld.

        Parameters
        ----------
        losses : array_like, shape (k, n_samples)
            Losses in [0, 1].  Arrays are read where they lie, memory-mapped ones too.
        guesses : object, optional
            Ignored.
        trace : bool, default False
            Whether to return the complexity and delta' after each answer as well.
        n_threads : int, default 1
            Threads to use at most, this one among them: one for about every millisecond of
            work.  The result is the same.

        Returns
        -------
        RadaBoundAnswers
            Bit for bit what a loop of `query` gives.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError
            Not rows of losses; nothing has changed.
        """
        n_threads = check_count(n_threads=n_threads)
        return self._answers(self._core.query_many(losses, trace=trace, n_threads=n_threads))

    @sealed
    def query_many_packed(
        self, words: Any, *, guesses: object = None, trace: bool = False, n_threads: int = 1
    ) -> RadaBoundAnswers:
        """`query_many` for packed rows, shape (k, ceil(n_samples / 64)); see `query_packed`."""
        n_threads = check_count(n_threads=n_threads)
        return self._answers(self._core.query_many_packed(words, trace=trace, n_threads=n_threads))

    def iter_query_many(
        self, losses: Any, *, block: int, trace: bool = False, n_threads: int = 1
    ) -> Iterator[RadaBoundAnswers]:
        """`query_many`, a block of rows at a time: for more answers than should be held at once.

        Parameters
        ----------
        losses : array_like, shape (k, n_samples)
            Whatever has a shape and slices of rows is read a block at a time: arrays on disk too.
        block : int
            Rows of a block.
        trace, n_threads
            As for `query_many`.

        Yields
        ------
        RadaBoundAnswers
            Of each block; together bit for bit what `query_many` answers.  A halt ends the stream
            with the answers before it and `halted`; so does another process's between two blocks.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before the first block.
        TypeError, ValueError
            Not rows of losses; the blocks before have been counted.
        """
        rows = as_rows(losses, "losses")
        return AnswerStream(
            lambda part: self.query_many(rows[part], trace=trace, n_threads=n_threads),
            lambda: self._answered_nothing(halted=True),
            len(rows),
            block,
        )

    def iter_query_many_packed(
        self, words: Any, *, block: int, trace: bool = False, n_threads: int = 1
    ) -> Iterator[RadaBoundAnswers]:
        """`iter_query_many` for packed rows, shape (k, ceil(n_samples / 64))."""
        rows = as_rows(words, "words")
        return AnswerStream(
            lambda part: self.query_many_packed(rows[part], trace=trace, n_threads=n_threads),
            lambda: self._answered_nothing(halted=True),
            len(rows),
            block,
        )

    # ---- rows that are counted elsewhere ------------------------------------------------------

    def task(self) -> Task:
        """What workers need to count losses for this guard: small, and can be pickled.

        It holds the seed of the signs: docs/explanation/trust.md says what that means.

        Raises
        ------
        TypeError
            The guard has weights or groups, which workers do not know.
        """
        if self._units is not None:
            raise TypeError("a guard with sample_weight or groups has no task: ask it itself")
        signs: Literal["stored", "generated"] = "stored" if self._signs.nbytes else "generated"
        return Task(self.seed, self.n_samples, self.n_vectors, signs)

    @sealed
    def take(
        self, partials: Iterable[Partial], *, fetch: Callable[[int], Any] | None = None
    ) -> RadaBoundAnswers:
        """`query_many` for rows that were counted elsewhere, in the order of the partials.

        Parameters
        ----------
        partials : iterable of Partial
            Each of some whole rows, made by the `task` of a guard with these signs.  After a halt
            no more are asked for.
        fetch : callable, optional
            ``fetch(i)`` returns the rows that the i-th partial was made of, from 0 on: losses, or
            words if it is `packed`.  It is asked for those of which some row might not pass: the
            block of the halt, and hardly another.

        Returns
        -------
        RadaBoundAnswers
            Bit for bit what `query_many` of all the rows gives, and the same state.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError
            Something is no partial, of other signs, or of some samples only; rows are needed and
            there is no `fetch`, or they are not what the partial was made of.

        Notes
        -----
        An error has as its attribute ``answers`` the `Answers` to the partials before it, which
        have been counted.

        Examples
        --------
        >>> guard = RadaBound(n_samples=1000, epsilon=0.1, delta=0.1, bound="mclt", seed=0)
        >>> blocks = np.random.default_rng(0).random((3, 10, 1000)) < 0.1
        >>> partials = [guard.task().reduce(block) for block in blocks]  # anywhere
        >>> guard.take(partials, fetch=lambda i: blocks[i])
        RadaBoundAnswers(n_answered=30, halted=False, n_queries=30)
        """
        each = each_of(partials)
        answered = [self.query_many(np.empty((0, self.n_samples), np.bool_))]
        try:
            for number, partial in enumerate(each):
                answered.append(self._taken(number, partial, fetch))
                if answered[-1].halted:
                    break
        except BaseException as error:
            answers = RadaBoundAnswers.joined(answered)
            hand_over(error, answers, len(answers))
            raise
        return RadaBoundAnswers.joined(answered)

    def _taken(
        self, number: int, partial: Partial, fetch: Callable[[int], Any] | None
    ) -> RadaBoundAnswers:
        if not isinstance(partial, Partial):
            raise TypeError(f"partial {number} must be a Partial, got {type(partial).__name__}")
        if partial._identity != self.task()._identity:
            raise ValueError(f"partial {number} is of another guard's signs")
        if not partial.is_whole:
            raise ValueError(f"partial {number} must have all samples, got {partial!r}")
        n_rows, shift = len(partial), partial.unit_shift
        if not n_rows:
            return self._answered_nothing(halted=False)
        found = self._core.adopt(
            _kernel.lay_out(
                *partial.sums,
                n_rows=n_rows,
                unit_shift=shift,
                largest=int(partial.totals.max()),
            ),
            partial.totals,
            may_be_real=not partial.declared,
        )
        if found is not None:
            values = partial.totals / (self.n_samples << shift)
            n_queries, complexity = found
            return self._answers((values, None, n_queries, False, complexity, partial.declared))
        try:
            return self._fetched(number, partial, fetch)
        except HoldoutExhausted:  # another process has halted it since the partial before
            return self._answered_nothing(halted=True)

    def _fetched(
        self, number: int, partial: Partial, fetch: Callable[[int], Any] | None
    ) -> RadaBoundAnswers:
        if self.halted:
            self._refuse()
        self._check_open()
        if fetch is None:
            raise ValueError(
                f"fetch must return the rows of partial {number}, of which some might not pass, "
                "got None"
            )
        rows, m = fetch(number), self.n_samples
        rows = as_words(rows, m, 2) if partial.packed else as_values(rows, m, 2)
        totals, shift = _kernel.sums_of_rows(rows, m, packed=partial.packed)
        same = (
            len(totals) == len(partial)
            and shift == partial.unit_shift
            and (totals == partial.totals).all()
            and partial.declared == (rows.dtype.kind != "f")
        )
        if not same:
            raise ValueError(f"fetch must return the rows of partial {number}, got others")
        return self.query_many_packed(rows) if partial.packed else self.query_many(rows)

    def _query_predictions(self, values: NDArray[Any], labels: Any) -> RadaBoundAnswer:
        """`query` for what `Labels.match` returned."""
        answer = self._core.query(values, labels) or self._refuse()
        return self._noted(answer) if self._logs else answer

    def _query_many_predictions(
        self, values: NDArray[Any], labels: Any, *, trace: bool = False, n_threads: int = 1
    ) -> RadaBoundAnswers:
        """`query_many` for what `Labels.match` returned."""
        n_threads = check_count(n_threads=n_threads)
        return self._answers(
            self._core.query_many(values, labels, trace=trace, n_threads=n_threads)
        )

    def _answers(self, result: Any) -> RadaBoundAnswers:
        if result is None:
            self._refuse()
        values, complexities, n_queries, halted, complexity, declared = result
        if self._logs:
            note_answers(type(self).__name__, len(values), n_queries)
        if halted:
            self._note_halt(n_queries, self.n_samples)
        return RadaBoundAnswers(
            values,
            declared=declared,
            halted=halted,
            n_queries=n_queries,
            complexity=complexity,
            complexities=complexities,
            rule=self._rule,
        )

    def _answered_nothing(self, *, halted: bool) -> RadaBoundAnswers:
        found = self._core
        return self._answers((np.empty(0), None, found.n_rows, halted, found.complexity, True))

    def _noted(self, answer: RadaBoundAnswer) -> RadaBoundAnswer:
        note_answer(type(self).__name__, answer.n_queries, answer.value)
        return answer

    def _refuse(self) -> NoReturn:
        self._check_open()
        found = self._core
        self._note_halt(found.n_rows, self.n_samples)
        reason = f"the holdout is spent after {counted(found.n_rows, 'answer')}"
        if not found.n_rows:
            reason = "the holdout cannot answer a first query"
        reason += f": at complexity {found.complexity:.6g} the bound {self.bound!r} does not vouch "
        reason += f"for an error of at most {self.epsilon:g}; this query is withheld"
        if not found.n_rows:
            from radabound_fast.planning import what_would_work  # which needs guards

            reason += what_would_work(self)
        raise HoldoutExhausted(
            reason,
            n_queries=found.n_rows,
            complexity=found.complexity,
            delta_prime=self._rule.delta_prime(found.complexity),
            threshold=self.threshold,
        )

    # ---- reading -------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """m, the size of the holdout."""
        return self._n_samples

    @property
    def n_groups(self) -> int:
        """How many rows, or groups of rows, are independent: each has a sign of its own."""
        return self._signs.n_samples

    @property
    def n_vectors(self) -> int:
        """l, the number of sign vectors."""
        return self._signs.n_vectors

    @property
    def epsilon(self) -> float:
        """The error tolerated."""
        return self._rule.epsilon

    @property
    def delta(self) -> float:
        """The probability of failure."""
        return self._rule.delta

    @property
    def bound(self) -> str:
        """Name of the bound, a key of ``bounds.BOUNDS``."""
        return self._rule.bound.name

    @property
    def estimator(self) -> str:
        """ "plain" or "half-range": the Monte-Carlo estimate that the bound is given."""
        return self._rule.estimator

    @property
    def two_sided(self) -> bool:
        """Whether delta' covers errors of both signs."""
        return self._rule.two_sided

    @property
    def threshold(self) -> float:
        """What delta' must stay at or below: delta (1 - delta), or delta for "fixed-sequence"."""
        return self._rule.threshold

    @property
    def seed(self) -> int:
        """Of the signs, given or drawn.  Whoever chooses the queries must not see it."""
        return self._signs.seed

    @property
    def _current(self) -> _kernel.GuardCore:
        """The state, after what other processes have committed to the database."""
        self._core._refresh()
        return self._core

    @property
    def halted(self) -> bool:
        """Whether a query has been withheld; it never turns False again."""
        return self._core.halted

    @property
    def n_queries(self) -> int:
        """Answers given."""
        return self._current.n_rows

    @property
    def complexity(self) -> float:
        """Monte-Carlo Rademacher complexity of all queries, a withheld one included.

        In units of loss; 0.0 before the first.
        """
        return self._current.complexity

    @property
    def budget(self) -> float:
        """The largest complexity that the bound admits, in units of loss; negative if none.

        For "fixed-sequence" at the largest mean so far, and its union part answers beyond it.
        It is no promise: a single query may exceed what is left.  `n_left` is one.
        """
        found = self._current
        return found.budget / found.cells

    def n_left(self, mean: float | None = None, *, declared: bool = False) -> int:
        """How many queries more will be answered for certain, whatever they are.

        Parameters
        ----------
        mean : float, optional
            Of queries with this mean loss, in [0, 1].  None: whatever their means.
        declared : bool, default False
            Of losses that are declared 0 or 1: bits, bool or integers.  `Holdout.n_left`
            takes them to be, since its losses are.

        Returns
        -------
        int
            At most 2**62, which stands for no limit.  For "fixed-sequence" what its union part
            has left, which is exact; more may be answered by their complexity.  For the paper's
            bounds nearly always 0: any query may agree with the signs and exceed the budget,
            unless its mean is as small as that.

        Raises
        ------
        TypeError, ValueError
            An argument is of the wrong type or out of its range.
        """
        if mean is not None:
            mean = check_fraction(mean=mean)
        return self._rule.n_left(self._current, mean, check_bool(declared=declared))

    @property
    def guarantee(self) -> str:
        """What is guaranteed in this configuration, what is not, and what proves it."""
        return self._rule.guarantee

    def __repr__(self) -> str:
        grouped = "" if self._units is None else f", n_groups={self.n_groups}"
        return (
            f"RadaBound(n_samples={self.n_samples}, epsilon={self.epsilon}, delta={self.delta}, "
            f"n_vectors={self.n_vectors}, bound={self.bound!r}{grouped}, "
            f"n_queries={self._core.n_rows}, halted={self._core._halted})"
        )

    # ---- memory --------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of the signs, and of the tables that `free_tables` is about."""
        return self._signs.nbytes + self._core.table_bytes

    def free_tables(self) -> None:
        """Gives back what the second call of `query_many` with many rows has kept for later ones.

        With the tables of its signs a guard judges many rows at once up to three times as fast.
        They take ``n_samples * n_vectors / 3`` bytes, 45 KB at (4000, 32); of generated signs they
        are kept up to 2 MB.  No answer depends on them: later calls make them anew.  A guard that
        halts, or is saved, frees them by itself.
        """
        self._core.free_tables()

    # ---- what is kept on disk --------------------------------------------------------------

    @property
    def _shared(self) -> _kernel.GuardCore:
        return self._core

    @classmethod
    def _most_numbers(cls, parameters: dict[str, Any]) -> int:
        return _kernel.n_numbers(check_n_vectors(parameters["n_vectors"]))

    def _parameters(self) -> dict[str, Any]:
        return {
            "n_samples": self.n_samples,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "n_vectors": self.n_vectors,
            "bound": self.bound,
            "estimator": self.estimator,
            "two_sided": self.two_sided,
            "seed": self.seed,
            "signs": "stored" if self._signs.nbytes else "generated",
            "max_queries": self._rule.max_queries,
            "weighting": None if self._units is None else self._units.fingerprint(),
        }
