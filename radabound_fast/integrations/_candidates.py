"""What a scikit-learn search is made of: candidates, worker, result columns, delegation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs

with needs("sklearn"):
    from sklearn.base import clone
    from sklearn.model_selection import ParameterGrid, cross_val_score
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _num_samples, check_is_fitted


def fit_predict(estimator: Any, X: Any, y: Any, X_holdout: Any, cv: Any, params: Any) -> Any:
    """What a worker does: predictions for the holdout, with a guess of their error if cv is set."""
    candidate = with_params(estimator, params)
    if cv is None:
        return candidate.fit(X, y).predict(X_holdout)
    predictions = clone(candidate).fit(X, y).predict(X_holdout)
    accuracy = cross_val_score(candidate, X, y, cv=cv, scoring="accuracy", error_score="raise")
    return predictions, 1.0 - float(accuracy.mean())


def with_params(estimator: Any, params: dict[str, Any]) -> Any:
    """A clone with these parameters."""
    # they may be estimators themselves: each candidate gets its own
    return clone(estimator).set_params(**clone(params, safe=False))


def listed_candidates(candidates: Any) -> list[dict[str, Any]]:
    """Every candidate; a dict is a grid."""
    grid = isinstance(candidates, Mapping)
    listed = list(ParameterGrid(candidates) if grid else candidates)
    if not listed or not all(isinstance(params, Mapping) for params in listed):
        raise ValueError(f"candidates must be a grid or dicts of parameters, got {candidates!r}")
    return [dict(params) for params in listed]


def results_of(candidates: list[dict[str, Any]], answers: list[Any]) -> dict[str, Any]:
    """`HoldoutSearchCV.cv_results_`."""
    n_withheld = len(candidates) - len(answers)

    def column(name: str) -> NDArray[np.float64]:
        told = [getattr(answer, name, np.nan) for answer in answers]
        return np.array(told + [np.nan] * n_withheld, np.float64)

    return {
        "params": candidates,
        "answer": column("value"),
        "half_width": column("half_width"),
        "complexity": column("complexity"),
        "withheld": np.arange(len(candidates)) >= len(answers),
    }


def check_length(X_holdout: Any, n_samples: int) -> None:
    """ValueError unless there is a row for every label."""
    n_rows = _num_samples(X_holdout)
    if n_rows != n_samples:
        raise ValueError(f"X_holdout must have the guard's {n_samples} samples, got {n_rows}")


def delegated(name: str) -> Any:
    """A method that the search has if its estimator has it, and passes on once fitted."""

    def has(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    def method(self: Any, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)(X)

    method.__name__ = name
    method.__doc__ = f"``best_estimator_.{name}(X)``."
    return available_if(has)(method)
