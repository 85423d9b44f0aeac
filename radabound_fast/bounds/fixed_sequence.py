"""The type of the bound that is proved at the halting time, for a sequence fixed in advance."""

from __future__ import annotations

from .._checks import check_probability
from . import guarantees
from .bound import Bound, Case
from .free import Free, union_free
from .selfbounding import low_error_budget, low_error_half_width

# shares of delta for the self-bounding (low-error) bound and for the union bound
BY_SIGNS, BY_UNION = 0.6, 0.4


class FixedSequence(Bound):
    """The self-bounding (low-error) bound at 3/5 of delta, or the union bound at 2/5 of it.

    An answer admitted by either is covered by that one, so either may go on after the other
    has stopped.  `budget` and `admits` are the first, `free` is the second.
    """

    name, source = "fixed-sequence", "self-bounding and union bounds, docs/explanation/theory.md"
    proved, estimators, sides = True, ("half-range",), (True,)

    def threshold(self, delta: float) -> float:
        """delta itself: the proof covers the halting time."""
        return check_probability(delta=delta)

    def _admits(self, complexity: float, case: Case) -> bool:
        """Whether `_half_width` at 3/5 of delta is at most epsilon."""
        case = case._replace(delta=BY_SIGNS * check_probability(delta=case.delta))
        return self._half_width(complexity, case) <= check_probability(epsilon=case.epsilon)

    def _half_width(self, complexity: float, case: Case) -> float:
        """The half-width by the signs: the low-error bound."""
        m, n, _, delta, _, largest_mean = case
        return low_error_half_width(complexity, largest_mean, m, n, delta)

    def free(
        self, n_samples: int, epsilon: float, delta: float, max_queries: int | None = None
    ) -> Free:
        """The union part, `union_free` at 2/5 of delta."""
        delta = BY_UNION * check_probability(delta=delta)
        return union_free(n_samples, epsilon, delta, max_queries)

    def _estimate(self, case: Case) -> float:
        m, n, epsilon, delta, _, largest_mean = case
        share = BY_SIGNS * check_probability(delta=delta)
        return low_error_budget(epsilon, largest_mean, m, n, share)

    def _words(self, case: Case, estimator: str, free: Free | None) -> str:
        assert free is not None
        return guarantees.fixed_sequence(case.epsilon, case.delta, free)
