"""Guards that count signed sums: what `RadaBound` and `FixedSequence` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_bool, check_count, check_fraction, counted
from radabound_fast._kernels.guard import (
    GuardCore,
    RadaBoundAnswer,
    SignedQueries,
    lay_out,
    make_answer,
)
from radabound_fast._kernels.rows import UNIT_SHIFT, LabelRow, PackedLosses, sums_of_rows
from radabound_fast._kernels.support import sealed
from radabound_fast.guards.answers import HoldoutExhausted, RadaBoundAnswers, hand_over
from radabound_fast.guards.base import Outlook
from radabound_fast.guards.halting import HaltingRule, Limits
from radabound_fast.guards.halting_guard import HaltingGuard
from radabound_fast.guards.log import note_answer, note_answers
from radabound_fast.guards.release import Release, rounding
from radabound_fast.holdout import Holdout
from radabound_fast.rows.labels import Labels
from radabound_fast.rows.packing import words_for
from radabound_fast.rows.partial import Partial, SignedTask, each_of, in_order
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.weighting import Units

Signs = Literal["stored", "generated"]

ARGUMENTS = ("epsilon", "delta", "n_vectors", "seed", "signs", "release")

# answers whose limits are computed one by one
_FEW = 3


class SignedGuard(HaltingGuard, SignedQueries):
    """Base class of guards that halt by the Monte-Carlo Rademacher complexity of the queries.

    The arguments are those of `RadaBound` and, as `rule`, of `HaltingRule`.
    """

    _arguments: ClassVar[tuple[str, ...]] = ARGUMENTS

    def __init__(
        self,
        judged: Any,
        *,
        n_vectors: int,
        seed: int | None,
        signs: Signs,
        release: Release,
        **rule: Any,
    ) -> None:
        super().__init__(judged)
        self._check_metric()
        is_labelled = isinstance(self._holdout, Holdout)
        self._labels: Labels | None = self._holdout.labels if is_labelled else None
        self._rows = None if self._labels is None else self._labels.rows
        self.release, self.signs = release, signs
        self._rounded = rounding(release, self._holdout)
        self._finishes = self._logs or self._rounded is not None
        self._units = units = Units.of(self._holdout.weighting)
        self.n_groups = self.n_samples if units is None else units.n_groups
        self._signs = SignMatrix(self.n_groups, n_vectors, seed=seed, signs=signs)
        self.n_vectors, self.seed = self._signs.n_vectors, self._signs.seed
        self.rule = rules = HaltingRule(
            self.n_groups, self.n_vectors, units=units, rounded=self._rounded, **rule
        )
        self.bound, self.epsilon, self.delta = rules.bound.name, rules.epsilon, rules.delta
        self.estimator, self.two_sided = rules.estimator, rules.two_sided
        self.threshold = rules.threshold
        # the state knows the rule, not this guard: no cycle keeps a dropped guard, or the lock on
        # its file, alive
        self._core = self._shared = GuardCore(
            self._signs.store,
            half_range=self.estimator == "half-range",
            price=rules.price,
            rule=rules,
            weighting=units,
        )
        if units is not None:  # whose rows are in units from the first on
            nothing = np.zeros(self.n_vectors, np.int64)
            self._core.resume(
                lay_out(nothing, nothing, n_rows=0, unit_shift=UNIT_SHIFT, largest=0, started=False)
            )
        self._holdout.note_guard(None)

    @sealed
    def query_many(
        self, Y_pred: Any, *, trace: bool = False, n_threads: int = 1
    ) -> RadaBoundAnswers:
        """Answer each row in order, up to the first that is withheld.

        Rows, `n_threads` and errors are those of `FixedSequence.query_many`.  Arrays are read where
        they lie, memory maps too.

        Parameters
        ----------
        trace : bool, default False
            Whether to return the complexity and delta' after each answer as well.

        Returns
        -------
        RadaBoundAnswers
            Bit for bit what a loop of `query` gives.
        """
        n_threads = check_count(n_threads=n_threads)
        if isinstance(Y_pred, PackedLosses):
            words = self._words_of(Y_pred)
            result = self._core.query_many(words, packed=True, trace=trace, n_threads=n_threads)
        elif self._labels is None:
            result = self._core.query_many(Y_pred, trace=trace, n_threads=n_threads)
        else:
            values, labels = self._match(Y_pred, 2)
            result = self._core.query_many(values, labels, trace=trace, n_threads=n_threads)
        return self._answers(result)

    def _match(self, y_pred: Any, ndim: int) -> tuple[NDArray[Any], LabelRow]:
        """Predictions and labels, as the packers compare them."""
        assert self._labels is not None
        self._check_owner()
        return self._labels.match(y_pred, ndim=ndim)

    def _words_of(self, packed: PackedLosses) -> NDArray[np.uint64]:
        return words_for(packed, self.n_samples)

    # ---- rows that are counted elsewhere ------------------------------------------------------

    def task(self) -> SignedTask:
        """Return what workers need to count rows for this guard: small, and can be pickled.

        It holds the seed of the signs and, where the guard was made on labels, these:
        docs/how-to/count-losses-elsewhere.md says what workers are trusted with.  A guard with
        weights or groups, which workers do not know, raises TypeError.
        """
        if self._units is not None:
            raise TypeError(
                "a guard with sample_weight or groups has no task: ask it itself, or use a "
                "DeclaredSearch, whose task has them"
            )
        return SignedTask(self.n_samples, self._labels, self.seed, self.n_vectors, self.signs)

    @sealed
    def take(
        self, partials: Iterable[Partial], *, fetch: Callable[[int], Any] | None = None
    ) -> RadaBoundAnswers:
        """Answer rows that were counted elsewhere, in the order of the partials, or of their ids.

        Parameters
        ----------
        partials : iterable of Partial
            Each of some whole rows, made by the `task` of a guard with these signs.  With ids they
            may come in any order: the rows of each must be side by side in the order that was
            fixed, and all together those from ``n_answered`` on, each once.  Without, no more are
            asked for after a halt.
        fetch : callable, optional
            ``fetch(i)`` returns the rows that the i-th partial was made of, from 0 on, as
            `query_many` takes them.  It is called where some row might not pass: for the block of
            the halt, and hardly another.

        Returns
        -------
        RadaBoundAnswers
            Bit for bit what `query_many` of all the rows gives, and the same state.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before this call.
        TypeError, ValueError
            Something is no partial, of other signs, or of some samples only; a row comes twice or
            is missing; rows are needed and there is no `fetch`, or they are not what the partial
            was made of.  Its attribute ``answers`` are those to the partials before it, which have
            been counted.
        """
        each = each_of(partials, self.task().identity, "another guard's signs")
        nothing = np.empty((0, -(-self.n_samples // 64)), np.uint64)
        answered = [self.query_many(PackedLosses(nothing, self.n_samples))]
        try:
            for number, partial in in_order(each, self.n_answered):
                answered.append(self._take_one(number, partial, fetch))
                if answered[-1].halted:
                    break
        except BaseException as error:
            hand_over(error, RadaBoundAnswers.joined(answered))
            raise
        return RadaBoundAnswers.joined(answered)

    def _take_one(
        self, number: int, partial: Partial, fetch: Callable[[int], Any] | None
    ) -> RadaBoundAnswers:
        n_rows, shift = len(partial), partial.unit_shift
        if not n_rows:
            return self._no_answers(halted=False)
        order = slice(None) if partial.ids is None else np.argsort(partial.ids)
        totals = partial.totals[order]
        largest = int(totals.max())
        adopted = self._core.adopt(
            lay_out(*partial.sums, n_rows=n_rows, unit_shift=shift, largest=largest),
            totals,
            may_be_real=not partial.binary,
        )
        if adopted is not None:
            values = totals / (self.n_samples << shift)
            n_answered, complexity = adopted
            return self._answers((values, None, n_answered, False, complexity, partial.binary))
        try:
            return self._fetched(number, partial, order, fetch)
        except HoldoutExhausted:  # another process has halted it since the partial before
            return self._no_answers(halted=True)

    def _fetched(
        self, number: int, partial: Partial, order: Any, fetch: Callable[[int], Any] | None
    ) -> RadaBoundAnswers:
        if self.halted:
            self._refuse()
        self._check_open()
        if fetch is None:
            raise ValueError(
                f"fetch must return the rows of partial {number}, some of which might not pass, "
                "got None"
            )
        m, (values, packed) = self.n_samples, self._losses(fetch(number), 2)
        totals, shift = sums_of_rows(values, m, packed=packed)
        same = (
            len(totals) == len(partial)
            and shift == partial.unit_shift
            and (totals == partial.totals).all()
            and partial.binary == (values.dtype.kind != "f")
        )
        if not same:
            raise ValueError(f"fetch must return the rows of partial {number}, got others")
        values = values[order]
        return self.query_many(PackedLosses(values, m) if packed else values)

    def _answers(self, result: Any) -> RadaBoundAnswers:
        if result is None:
            self._refuse()
        values, complexities, n_answered, halted, complexity, binary = result
        if self._logs:
            note_answers(self.kind, len(values), n_answered)
        if halted:
            self._note_halt(n_answered)
        if self._rounded is not None:
            values, complexities, complexity = self.rule.released(values), None, np.nan
        return RadaBoundAnswers(
            values,
            binary=binary,
            halted=halted,
            n_answered=n_answered,
            complexity=complexity,
            complexities=complexities,
            rule=self.rule,
        )

    def _no_answers(self, *, halted: bool) -> RadaBoundAnswers:
        core = self._core
        return self._answers((np.empty(0), None, core.n_rows, halted, core.complexity, True))

    def _finish(self, answer: RadaBoundAnswer) -> RadaBoundAnswer:
        """The answer that is returned, which is logged."""
        if self._rounded is not None:
            value = self.rule.released(answer.value)
            answer = make_answer(value, np.nan, answer.number, self.rule)
        if self._logs:
            note_answer(self.kind, answer.number, answer.value)
        return answer

    def _refuse(self) -> NoReturn:
        self._check_open()
        core = self._core
        self._note_halt(core.n_rows)
        reason = f"the holdout is spent after {counted(core.n_rows, 'answer')}"
        if not core.n_rows:
            reason = "the holdout cannot answer a first query"
        # it covers the withheld query, of which it tells more than a rounded answer does
        complexity = core.complexity if self._rounded is None else None
        at = "" if complexity is None else f"at complexity {complexity:.6g} "
        reason += (
            f": {at}the bound {self.bound!r} does not vouch for an error of at most "
            f"{self.epsilon:g}; this query is withheld"
        )
        if not core.n_rows:
            reason += self.what_would_answer()
        raise HoldoutExhausted(
            reason,
            n_answered=core.n_rows,
            complexity=complexity,
            delta_prime=None if complexity is None else self.rule.delta_prime(complexity),
            threshold=self.threshold,
        )

    @property
    def n_answered(self) -> int:
        return int(self._current.n_rows)

    @property
    def complexity(self) -> float:
        """Monte-Carlo Rademacher complexity of all queries, a withheld one too, in units of loss.

        0.0 before the first.
        """
        return float(self._current.complexity)

    @property
    def budget(self) -> float:
        """The largest complexity that the bound admits, in units of loss; negative if none.

        For "fixed-sequence" at the largest mean so far, and its union part answers beyond it.
        It is no promise: a single query may exceed what is left.  `n_left` is one.
        """
        core = self._current
        return float(core.budget / core.cells)

    def n_left(self, mean: float | None = None, *, binary: bool | None = None) -> int:
        """Return how many queries more will be answered for certain, whatever they are.

        The arguments are those of `FixedSequence.n_left`.  For the paper's bounds it is nearly
        always 0: any query may agree with the signs and exceed the budget, unless its mean is as
        small as that.
        """
        if mean is not None:
            mean = check_fraction(mean=mean)
        if binary is None:
            binary = self._labels is not None
        return self.rule.n_left(self._current, mean, check_bool(binary=binary))

    def n_left_public(self) -> int:  # without what depends on the complexity
        return 0 if self.halted else self.rule.free_left(self.n_answered, None, True)

    def _outlook(self) -> Outlook:
        if self.rule.free is None:
            return Outlook("unknown: until the queries are too many or too complex", None)
        left = counted(self.n_left_public(), "answer")
        return Outlook(f"at least {left}, whatever is asked", None)

    def owner_facts(self) -> dict[str, float]:
        return {"complexity": self.complexity, "budget": self.budget}

    def intervals_of(
        self, answers: Sequence[RadaBoundAnswer]
    ) -> Iterable[tuple[float, float, float]]:
        # of binary losses: each count once
        if len(answers) <= _FEW or self._units is not None:
            return super().intervals_of(answers)
        values = np.array([answer.value for answer in answers])
        lows, highs = self._limits.of(values, np.array([one.number for one in answers]), True)
        widths = self.rule.half_width(values, lows, highs)
        return zip(lows.tolist(), highs.tolist(), widths.tolist(), strict=True)

    @cached_property
    def _limits(self) -> Limits:
        return Limits(self.rule)

    @property
    def can_answer(self) -> bool:
        if self.halted:
            return False
        return self.n_answered > 0 or self.budget >= 0.0 or self.n_left(0.0, binary=True) > 0

    def what_would_answer(self, guess: float | None = None) -> str:
        from radabound_fast.guards.reach import first_query_by_bound

        return first_query_by_bound(self.rule)

    @property
    def guarantee(self) -> str:
        return self.rule.guarantee
