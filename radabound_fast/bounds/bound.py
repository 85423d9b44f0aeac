"""The interface of a bound: the one type of every row of the table."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from .._checks import check_bool, check_choice
from ._limits import at_least, at_most
from .free import Free

Tail = Callable[[float, int, int], float]

# sentences of several guarantees, whose words are fixed: "fixed in advance" or "adaptive",
# "one-sided" or "two-sided", "finite-sample" or "asymptotic", "proved" or "heuristic"
ASSUMED = "Assumed: independent held-out examples of one law, and losses in [0, 1]."
NEVER_ADAPTIVE = (
    "Never for an adaptive analyst: queries, or an order of queries, chosen after seeing earlier "
    "answers can make returned answers wrong by more than epsilon; DeclaredSearch, GuessAndCheck "
    "and Ladder stay valid there."
)


class Case(NamedTuple):
    """What a row decides by; see `Bound.admits`."""

    n_samples: int
    n_vectors: int
    epsilon: float
    delta: float
    two_sided: bool
    largest_mean: float


class Bound(ABC):
    """One row: what a guard needs to halt, and to say what its halting is worth.

    Attributes
    ----------
    name, source : str
        The name by which a guard selects the bound, and the theorem behind it.
    proved, asymptotic : bool
        Whether the row's guarantee is proved at the halting time, for queries fixed in advance;
        whether it speaks of the limit of many samples only.
    estimators, sides : tuple of str, tuple of bool
        Monte-Carlo estimates, and values of `two_sided`, that it allows; each default comes first.
    log_tail, excess : callable or None
        ``log_tail(excess, n_samples, n_vectors)``, the natural logarithm of delta', and
        its inverse ``excess(log_delta, n_samples, n_vectors)``; None without a tail.
    """

    name: str
    source: str
    proved: bool
    asymptotic = False
    estimators: tuple[str, ...]
    sides: tuple[bool, ...]
    log_tail: Tail | None = None
    excess: Tail | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a row cannot be changed, got {name} for {self.name!r}")

    @abstractmethod
    def threshold(self, delta: float) -> float:
        """The largest delta' at which a query is answered, for a `delta` in (0, 1)."""

    def admits(
        self,
        complexity: float,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        two_sided: bool | None = None,
        largest_mean: float = 1.0,
    ) -> bool:
        """Whether a query is answered at this complexity: the test a guard halts by.

        Parameters
        ----------
        complexity : float
            The Monte-Carlo Rademacher average with this query counted, in units of loss.
        n_samples, n_vectors : int
            m held-out samples (1 to 2^40) and l sign vectors (1 to 2^23).
        epsilon, delta : float
            The error tolerated and the probability of failure, in (0, 1).
        two_sided : bool, optional
            One of `sides`; by default the first.
        largest_mean : float
            The largest mean loss so far, this query's counted, in [0, 1].
        """
        sided = self._sides(two_sided)
        return self._admits(
            complexity, Case(n_samples, n_vectors, epsilon, delta, sided, largest_mean)
        )

    def budget(
        self,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        largest_mean: float = 1.0,
        *,
        two_sided: bool | None = None,
    ) -> float:
        """The largest complexity that `admits` accepts, to rounding; it accepts the one returned.

        In units of loss; negative if complexity 0 is too large already.  Parameters: those of
        `admits`.
        """
        sided = self._sides(two_sided)
        case = Case(n_samples, n_vectors, epsilon, delta, sided, largest_mean)
        estimate = self._estimate(case)
        if not self._admits(0.0, case):
            return min(estimate, -math.ulp(epsilon))
        budget, step = max(0.0, estimate), math.ulp(epsilon)
        while not self._admits(budget, case):
            budget, step = max(0.0, budget - step), 2.0 * step
        return budget

    def free(
        self, n_samples: int, epsilon: float, delta: float, max_queries: int | None = None
    ) -> Free | None:
        """What is answered without signs, or None where the row has no such part.

        Parameters: those of `union_free`; `delta` is that of the row.
        """
        return None

    def interval(
        self, free: Free | None, means: Any, queries: Any, epsilon: float, declared: bool
    ) -> tuple[Any, Any]:
        """Confidence intervals of answers at the row's guarantee: ``mean -+ epsilon`` in [0, 1].

        `free` is the result of `free`, whose intervals are proved for all answers at once, so that
        both may be quoted; `means`, `queries`, `declared` and what is returned are as in
        `Free.interval`.
        """
        lows, highs = at_least(means - epsilon, 0.0), at_most(means + epsilon, 1.0)
        if free is None:
            return lows, highs
        free_lows, free_highs = free.interval(means, queries, declared)
        return at_least(lows, free_lows), at_most(highs, free_highs)

    def guarantee(
        self,
        n_samples: int,
        n_vectors: int,
        epsilon: float,
        delta: float,
        estimator: str | None = None,
        two_sided: bool | None = None,
        max_queries: int | None = None,
    ) -> str:
        """What is guaranteed in this configuration, and what is not, in a few sentences.

        `estimator` is one of `estimators`, by default the first.  Other parameters: those of
        `admits`, and `max_queries` of `union_free`.
        """
        estimator = self.estimators[0] if estimator is None else estimator
        check_choice(self.estimators, estimator=estimator)
        two_sided = self._sides(two_sided)
        free = self.free(n_samples, epsilon, delta, max_queries)
        # at a largest mean of 0 the budget is at its largest
        budget = self.budget(n_samples, n_vectors, epsilon, delta, 0.0, two_sided=two_sided)
        case = Case(n_samples, n_vectors, epsilon, delta, two_sided, 0.0)
        words = self._words(case, estimator, free)
        if budget < 0.0 and not (free and free.answers_any):
            return (
                f"No query can be answered: n_samples={n_samples} with n_vectors={n_vectors} is "
                f"too small for epsilon={epsilon} and delta={delta}; the guard halts at the first "
                f"query. {words}"
            )
        return words

    def _sides(self, two_sided: bool | None) -> bool:
        """The value of `two_sided`, if this row allows it; the default for None."""
        if two_sided is None:
            return self.sides[0]
        if check_bool(two_sided=two_sided) not in self.sides:
            raise ValueError(
                f"two_sided must be {self.sides[0]} for bound {self.name!r}, got {two_sided}"
            )
        return two_sided

    @abstractmethod
    def _admits(self, complexity: float, case: Case) -> bool:
        """`admits`, for one of `sides`."""

    @abstractmethod
    def _estimate(self, case: Case) -> float:
        """The budget as computed; `_admits` settles its rounding."""

    @abstractmethod
    def _words(self, case: Case, estimator: str, free: Free | None) -> str:
        """The guarantee in words; `guarantee` adds whether the row can answer at all."""


def complexity_part(complexity: float, budget: float, *, halted: bool = False) -> str:
    """The complexity beside its budget: beyond it, only a union bound may still answer."""
    if complexity <= budget:
        return f"complexity {complexity:.4g}, within its budget of {budget:.4g}"
    over = f"complexity {complexity:.4g}, beyond its budget of {max(budget, 0.0):.4g}"
    return over if halted else f"{over}: only the union bound still answers"
