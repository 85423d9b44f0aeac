"""What the boosting hooks share: a guard that is asked about a growing ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.integrations._owner import beside, check_error_rates, first_withheld


class Rounds:
    """Asks about an ensemble of so many rounds, and remembers what was answered."""

    def __init__(self, guard: Any, X_holdout: Any, every: int, classes: Any, key: Any) -> None:
        self.guard = check_error_rates(guard)
        holdout = self.guard.holdout
        if self.guard.needs == "guess":
            raise ValueError(
                f"guard must need no guesses, as a RadaBound or a Ladder, got {self.guard.kind}"
            )
        if (key is not None) != (self.guard.needs == "key"):
            raise TypeError(
                "key must be a function of the number of rounds with a DeclaredSearch, "
                f"and None otherwise, got {key!r} with {self.guard.kind}"
            )
        self.key = key
        self.every = check_count(every=every)
        n_rows = _n_rows(X_holdout)
        if n_rows not in (None, holdout.n_samples):
            raise ValueError(
                f"X_holdout must have the holdout's {holdout.n_samples} samples, got {n_rows}"
            )
        self.X_holdout = X_holdout
        self._named = None if classes is None else _checked(list(classes), holdout.classes or [])
        self._labels: NDArray[Any] = np.empty(0)  # of each class number of the booster
        self.answers: list[tuple[int, Any]] = []

    def start(self, n_classes: int) -> None:
        """A training begins, of a booster with so many classes; what was answered is forgotten.

        Raises ValueError if it is not known which label each class number of the booster is.
        """
        self.answers = []
        # class numbers are labels where both are 0, 1, 2, ...; else only the user knows
        labels = list(range(n_classes)) if self._named is None else self._named
        if self._named is None and self.guard.holdout.classes != labels:
            raise ValueError(
                f"classes must say which label each of the booster's {n_classes} class numbers "
                f"is, since the holdout's classes are not 0 to {n_classes - 1}: "
                "np.unique(y_train) where a classifier numbered them"
            )
        if len(labels) != n_classes:
            raise ValueError(
                f"classes must have a label for each of the booster's {n_classes} classes, "
                f"got {len(labels)}"
            )
        self._labels = _as_row(labels)

    def is_due(self, n_rounds: int) -> bool:
        """Whether an ensemble of so many rounds is one to ask about."""
        return n_rounds % self.every == 0

    def ask(self, n_rounds: int, codes: NDArray[np.intp]) -> bool:
        """Whether the guard still answers, given the class number of each sample.

        Raises HoldoutExhausted if the very first answer is withheld: then no round is best.
        """
        key = None if self.key is None else self.key(n_rounds)
        try:
            answer = self.guard.query(self._labels[codes], **beside(self.guard, key=key))
        except HoldoutExhausted as spent:
            if not self.answers:
                raise first_withheld(self.guard, spent) from None
            return False
        self.answers.append((n_rounds, answer))
        return True

    @property
    def best(self) -> tuple[int, float] | None:
        """How many rounds have the lowest error, the first of equals, and that error."""
        errors = ((n_rounds, answer.value) for n_rounds, answer in self.answers)
        return min(errors, key=lambda told: told[1], default=None)


def above(scores: NDArray[Any], threshold: float) -> NDArray[np.intp]:
    """Class numbers of two classes, from one score a sample."""
    if scores.ndim != 1:
        raise ValueError(f"the booster must give one score a sample, got shape {scores.shape}")
    return (scores > threshold).astype(np.intp)


def _n_rows(X: Any) -> int | None:
    if hasattr(X, "num_row"):  # a DMatrix of XGBoost
        return int(X.num_row())
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(X) if isinstance(X, (list, tuple)) else None


def _checked(labels: list[Any], known: list[Any]) -> list[Any]:
    if len(set(labels)) != len(labels):
        raise ValueError(f"classes must be distinct, got {labels!r}")
    unknown = [label for label in labels if label not in set(known)]
    if unknown:
        raise ValueError(
            f"classes must be classes of the holdout, got {unknown[0]!r}: "
            "Holdout(y_true, classes=...) names those that are not in y_true"
        )
    return labels


def _as_row(labels: list[Any]) -> NDArray[Any]:
    row = np.array(labels)
    # NumPy makes strings of numbers beside strings, and a table of tuples
    same = row.ndim == 1 and row.tolist() == labels
    return row if same else np.fromiter(labels, object, len(labels))
