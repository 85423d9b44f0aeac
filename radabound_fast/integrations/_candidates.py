"""What a scikit-learn search is made of: candidates, worker, result columns, delegation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._extras import needs
from radabound_fast.integrations._estimators import Response, as_score
from radabound_fast.integrations._owner import Fitted

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyHoldout

with needs("sklearn"):
    from sklearn.base import clone
    from sklearn.model_selection import ParameterGrid, cross_val_score
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _num_samples, check_is_fitted


@dataclass(frozen=True)
class Worker:
    """What a worker needs to fit a candidate: the training part, and the rows to predict."""

    estimator: Any
    X: Any
    y: Any
    fit_params: dict[str, Any]
    X_holdout: Any
    response: Response
    cv: Any  # what a guess is made with; None: no guess is needed
    keeps_models: bool  # whether models are sent beside their predictions

    def __call__(self, params: dict[str, Any]) -> Fitted:
        candidate, guess = with_params(self.estimator, params), None
        if self.cv is not None:
            accuracy = cross_val_score(
                candidate, self.X, self.y, cv=self.cv, scoring="accuracy", error_score="raise",
                params=self.fit_params,
            )  # fmt: skip
            guess = 1.0 - float(accuracy.mean())
        model = candidate.fit(self.X, self.y, **self.fit_params)
        y_pred = self.response.of(model, self.X_holdout)
        return Fitted(y_pred, guess, model if self.keeps_models else None)


def with_params(estimator: Any, params: dict[str, Any]) -> Any:
    """A clone with these parameters."""
    # they may be estimators themselves: each candidate gets its own
    return clone(estimator).set_params(**clone(params, safe=False))


def listed_candidates(candidates: Any) -> list[dict[str, Any]]:
    """Every candidate; a dict is a grid, and a list of them grids, as in `ParameterGrid`."""
    are_grids = isinstance(candidates, (Mapping, list, tuple))
    try:
        listed = list(ParameterGrid(candidates) if are_grids else candidates)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"candidates must be a grid or several, and a list of candidates spaces.Choice(list): "
            f"{error}"
        ) from None
    if not listed or not all(isinstance(params, Mapping) for params in listed):
        raise ValueError(f"candidates must be a grid or yield parameters, got {candidates!r}")
    return [dict(params) for params in listed]


def results_of(
    holdout: AnyHoldout, candidates: list[dict[str, Any]], answers: list[Any]
) -> dict[str, Any]:
    """`HoldoutSearchCV.cv_results_`."""
    fields = [answer.to_dict() for answer in answers] + [{}] * (len(candidates) - len(answers))

    def column(name: str) -> NDArray[np.float64]:
        return np.array([each.get(name, np.nan) for each in fields], np.float64)

    scores = as_score(holdout, column("value"))
    limits = np.sort([as_score(holdout, column(name)) for name in ("low", "high")], axis=0)
    return {
        "params": candidates,
        **_parameters(candidates),
        "mean_test_score": scores,
        "low_test_score": limits[0],
        "high_test_score": limits[1],
        "rank_test_score": _ranks(scores),
        "answer": column("value"),
        "half_width": column("half_width"),
        "complexity": column("complexity"),
        "withheld": np.arange(len(candidates)) >= len(answers),
    }


def _parameters(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """A masked array for each parameter, masked where a candidate does not have it."""
    columns = {}
    for name in sorted({name for params in candidates for name in params}):
        has = [name in params for params in candidates]
        given = [params[name] for params in candidates if name in params]
        kinds = {type(value) for value in given}
        plain = len(kinds) == 1 and kinds <= {bool, int, float, np.float64, np.int64}
        column = np.ma.MaskedArray(
            np.zeros(len(candidates), np.array(given).dtype if plain else object),
            mask=np.logical_not(has),
        )
        for row, value in zip(np.flatnonzero(has), given, strict=True):
            column[int(row)] = value
        columns[f"param_{name}"] = column
    return columns


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.int32]:
    """1 is the best, equals share the lower number, and what was withheld comes last."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    return np.array([1 + np.sum(known > score) for score in known], np.int32)


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
