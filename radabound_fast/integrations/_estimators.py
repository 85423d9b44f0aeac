"""What a metric takes of an estimator, and its value as scikit-learn's scores are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from radabound_fast.rows.named import by_class

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyHoldout


class Response(NamedTuple):
    """What a metric takes of a fitted estimator; a worker needs no more of the holdout."""

    takes: str  # classes, scores, probabilities or numbers
    classes: Any  # the holdout's; None where predictions are numbers
    pos_label: Any  # the class that scores are of, or None

    @classmethod
    def for_holdout(cls, holdout: AnyHoldout) -> Self:
        takes = holdout.takes
        classes = holdout.classes if takes in ("scores", "probabilities") else None
        return cls(takes, classes, holdout.pos_label if takes == "scores" else None)

    def predict(self, estimator: Any, X: Any) -> Any:
        """Return the predictions of a fitted estimator for these rows.

        Raises ValueError if its classes are not the holdout's, where their order counts, and
        TypeError if it has no such method.
        """
        if self.takes in ("classes", "numbers"):
            return _flat(self._attribute(estimator, "predict")(X))
        known = np.asarray(self._attribute(estimator, "classes_")).tolist()
        if len(known) != len(self.classes) or set(known) != set(self.classes):
            raise ValueError(
                f"estimator must have the classes {self.classes!r:.200}, got {known!r:.200}"
            )
        if self.takes == "scores" and hasattr(estimator, "decision_function"):
            scores = np.asarray(_flat(estimator.decision_function(X)))  # of the second class
            return scores if known.index(self.pos_label) == 1 else -scores
        predict_proba = self._attribute(estimator, "predict_proba")
        shares = np.asarray(by_class(predict_proba(X), known, "predict_proba"))
        if shares.ndim != 2 or shares.shape[1] != len(known):
            raise ValueError(
                f"predict_proba must return a column for each of {len(known)} classes, "
                f"got shape {shares.shape}"
            )
        if self.takes == "probabilities":
            return shares[:, [known.index(label) for label in self.classes]]
        return shares[:, known.index(self.pos_label)]

    def _attribute(self, estimator: Any, name: str) -> Any:
        if not hasattr(estimator, name):
            raise TypeError(
                f"estimator must have {name} for a metric of {self.takes}, "
                f"got {type(estimator).__name__}, which has none"
            )
        return getattr(estimator, name)


def _flat(y_pred: Any) -> Any:
    """One prediction a row, of tools that return a column."""
    if getattr(y_pred, "ndim", 1) == 2 and y_pred.shape[1] == 1:
        return np.asarray(y_pred)[:, 0]
    return y_pred


def as_score(holdout: AnyHoldout, value: Any) -> Any:
    """A value of the holdout's metric as scikit-learn's scores are, of which more is better."""
    if holdout.greater_is_better:
        return value
    return 1.0 - value if holdout.metric == "error" else -value
