"""What an estimator is asked for by a metric, and its answer as scikit-learn's scores are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyHoldout


class Response(NamedTuple):
    """What a holdout's metric takes of a fitted estimator; a worker needs no more of the holdout.

    Attributes
    ----------
    takes : str
        Classes, scores, probabilities or numbers.
    classes : list, or None
        Of the holdout; None of numbers.
    pos_label : object
        The class that scores are of, or None.
    """

    takes: str
    classes: Any
    pos_label: Any

    @classmethod
    def to(cls, holdout: AnyHoldout) -> Self:
        """What this holdout takes."""
        takes = holdout.takes
        classes = holdout.classes if takes in ("scores", "probabilities") else None
        return cls(takes, classes, holdout.pos_label if takes == "scores" else None)

    def of(self, estimator: Any, X: Any) -> Any:
        """Return what a fitted estimator says of these rows.

        Raises ValueError if its classes are not the holdout's, where their order counts.
        """
        if self.takes in ("classes", "numbers"):
            return estimator.predict(X)
        known = np.asarray(estimator.classes_).tolist()
        if len(known) != len(self.classes) or set(known) != set(self.classes):
            raise ValueError(
                f"estimator must have the classes {self.classes!r:.200}, got {known!r:.200}"
            )
        if self.takes == "probabilities":
            return estimator.predict_proba(X)[:, [known.index(label) for label in self.classes]]
        place = known.index(self.pos_label)
        if not hasattr(estimator, "decision_function"):
            return estimator.predict_proba(X)[:, place]
        scores = estimator.decision_function(X)  # of the second class
        return scores if place == 1 else -scores


def as_score(holdout: AnyHoldout, value: Any) -> Any:
    """A value of the holdout's metric as scikit-learn's scores are, of which more is better."""
    if holdout.greater_is_better:
        return value
    return 1.0 - value if holdout.metric == "error" else -value
