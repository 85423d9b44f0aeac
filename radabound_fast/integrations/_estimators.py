"""What an estimator is asked for by a metric, and its answer as scikit-learn's scores are."""

from __future__ import annotations

from typing import Any

import numpy as np

from radabound_fast.metrics import METRICS


def takes_of(metric: str) -> str:
    """What the metric is asked with: classes, scores, probabilities or numbers."""
    return METRICS[metric].takes


def predictions_for(holdout: Any, estimator: Any, X: Any) -> Any:
    """Of a fitted estimator, what the holdout's metric takes.

    Raises ValueError if the estimator's classes are not the holdout's where their order counts.
    """
    takes = takes_of(holdout.metric)
    if takes in ("classes", "numbers"):
        return estimator.predict(X)
    order = _order(estimator, holdout.classes)
    if takes == "probabilities":
        return estimator.predict_proba(X)[:, order]
    positive = 1 if holdout.pos_label is None else holdout.classes.index(holdout.pos_label)
    if not hasattr(estimator, "decision_function"):
        return estimator.predict_proba(X)[:, order[positive]]
    scores = estimator.decision_function(X)
    # those of the second class
    return scores if order[positive] == 1 else -scores


def _order(estimator: Any, classes: list[Any]) -> list[int]:
    """Where the estimator has each of the classes."""
    known = np.asarray(estimator.classes_).tolist()
    if sorted(map(repr, known)) != sorted(map(repr, classes)) and set(known) != set(classes):
        raise ValueError(f"estimator must have the classes {classes!r:.200}, got {known!r:.200}")
    return [known.index(label) for label in classes]


def as_score(metric: str, value: Any) -> Any:
    """As scikit-learn's scores, of which more is better: the accuracy of an error."""
    if METRICS[metric].greater_is_better:
        return value
    return 1.0 - value if metric == "error" else -value
