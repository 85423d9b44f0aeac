"""The one exception of the library."""

from __future__ import annotations


class HoldoutExhausted(RuntimeError):
    """The holdout cannot answer: this query is withheld, and so is every later one.

    The mean of the withheld query is neither in the message nor in an attribute.

    Attributes
    ----------
    n_answered : int
        Answers given before; the withheld query is not counted.
    complexity : float or None
        Monte-Carlo Rademacher complexity with the withheld query included, in units of
        loss; None for guards that have none, or whose answers are rounded.
    delta_prime : float or None
        What the tail bound gave at that complexity, clipped at 1; nan where the bound has no tail.
    threshold : float or None
        What `delta_prime` had to stay at or below.
    """

    def __init__(
        self,
        reason: str,
        *,
        n_answered: int,
        complexity: float | None = None,
        delta_prime: float | None = None,
        threshold: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.n_answered = n_answered
        self.complexity = complexity
        self.delta_prime = delta_prime
        self.threshold = threshold

    def __reduce__(self) -> tuple[object, ...]:
        # exceptions rebuild themselves from positional arguments alone, which loses keywords
        return _rebuild, (str(self),), dict(self.__dict__)


def _rebuild(reason: str) -> HoldoutExhausted:
    return HoldoutExhausted(reason, n_answered=0)  # its attributes follow
