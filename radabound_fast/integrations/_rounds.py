"""What the boosting callbacks share: queries of a growing ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from radabound_fast._checks import check_count
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.integrations._owner import beside, check_guard, first_withheld

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyGuard

# what the scores of an objective may be, for a metric that takes these
OUTPUTS_FOR = {
    "classes": ("chances", "logits", "codes"),
    "scores": ("chances", "logits"),
    "probabilities": ("chances", "logits"),
    "numbers": ("numbers",),
}


class Rounds:
    """A callback that queries an ensemble after so many rounds, and stores the answers."""

    def __init__(
        self,
        guard: AnyGuard,
        X_holdout: Any,
        *,
        every: int = 10,
        classes: Any = None,
        key: Callable[[int], Any] | None = None,
    ) -> None:
        self._guard = guard = check_guard(guard)
        self._holdout = holdout = guard.holdout
        if guard.needs == "guess":
            raise ValueError(
                f"guard must need no guesses, as a RadaBound or a Ladder, got {guard.kind}"
            )
        if (key is not None) != (guard.needs == "key"):
            raise TypeError(
                "key must be a function of the number of rounds with a DeclaredSearch, "
                f"and None otherwise, got {key!r} with {guard.kind}"
            )
        self._key, self._every = key, check_count(every=every)
        n_rows = _n_rows(X_holdout)
        if n_rows not in (None, holdout.n_samples):
            raise ValueError(
                f"X_holdout must have the holdout's {holdout.n_samples} samples, got {n_rows}"
            )
        self._X_holdout = X_holdout
        if classes is not None and holdout.takes == "numbers":
            raise TypeError(f"classes must be left out with metric={holdout.metric!r}")
        self._named = None if classes is None else _checked(list(classes), holdout.classes or [])
        self._labels: list[Any] = []  # of each class number of the booster
        self._output, self._by_class = "codes", False
        self.answers: list[tuple[int, Any]] = []

    def _start(
        self, objective: str, outputs: Mapping[str, str], n_classes: int, hint: str = ""
    ) -> None:
        """Begin a training of a booster with so many classes; what was answered is forgotten.

        `outputs` says what the scores of each objective are: class numbers ("codes"), "numbers",
        "chances" or "logits" of the second class or of each.

        Raises ValueError if they are not what the metric takes, or it is not known which label each
        class number of the booster is.
        """
        self.answers, takes, known = [], self._holdout.takes, self._holdout.classes or []
        fitting = [name for name, output in outputs.items() if output in OUTPUTS_FOR[takes]]
        if objective not in fitting:
            raise ValueError(
                f"objective must be one of {', '.join(fitting)} for a metric of {takes}, "
                f"got {objective}{hint}"
            )
        self._output, self._by_class = outputs[objective], objective.startswith("multi")
        if takes == "numbers":
            return
        # class numbers are labels where both are 0, 1, 2, ...; else only the user knows
        labels = list(range(n_classes)) if self._named is None else self._named
        if self._named is None and known != labels:
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
        if takes == "probabilities" and set(labels) != set(known):
            raise ValueError(
                f"the booster must have the holdout's {len(known)} classes for a metric of "
                f"probabilities, got {len(labels)} of them"
            )
        self._labels = labels

    def _goes_on(self, n_rounds: int, scores: Callable[[], Any]) -> bool:
        """Query the guard if an ensemble of so many rounds is due; whether it still answers.

        Raises HoldoutExhausted if the very first answer is withheld: then no round is best.
        """
        if n_rounds % self._every:
            return True
        predictions = self._predictions(np.asarray(scores()))
        key = None if self._key is None else self._key(n_rounds)
        try:
            answer = self._guard.query(predictions, **beside(self._guard, key=key))
        except HoldoutExhausted as spent:
            if not self.answers:
                raise first_withheld(self._guard, spent) from None
            return False
        self.answers.append((n_rounds, answer))
        return True

    def _predictions(self, scores: NDArray[Any]) -> NDArray[Any]:
        """What the metric takes, of what the booster says."""
        holdout = self._holdout
        if not self._by_class and scores.ndim != 1:
            raise ValueError(f"the booster must give one score a sample, got shape {scores.shape}")
        if holdout.takes == "numbers":
            return scores
        if holdout.takes == "classes":
            return _as_row(self._labels)[self._codes(scores)]
        if holdout.takes == "scores":
            place = self._labels.index(holdout.pos_label)
            if scores.ndim == 2:
                return np.asarray(scores[:, place])
            return scores if place == 1 else -scores  # 1 - scores would make ties
        if scores.ndim == 1:
            chances = expit(scores) if self._output == "logits" else scores
            scores = np.stack([1 - chances, chances], axis=1)
        known = holdout.classes or []
        return np.asarray(scores[:, [self._labels.index(label) for label in known]])

    def _codes(self, scores: NDArray[Any]) -> NDArray[np.intp]:
        """Class numbers."""
        if scores.ndim == 2:
            return np.asarray(scores.argmax(axis=1))
        if self._output == "codes":
            return scores.astype(np.intp)
        return (scores > (0.5 if self._output == "chances" else 0.0)).astype(np.intp)

    @property
    def _best(self) -> tuple[int, float] | None:
        """How many rounds are best, the first of equals, and their value of the metric."""
        sign = -1 if self._holdout.greater_is_better else 1
        values = ((n_rounds, answer.value) for n_rounds, answer in self.answers)
        return min(values, key=lambda scored: sign * scored[1], default=None)


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
