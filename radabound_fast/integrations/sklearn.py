"""scikit-learn: a search over candidates that asks one guard; what any search declares."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from radabound_fast._checks import check_integer
from radabound_fast._extras import needs
from radabound_fast.integrations._estimators import Response, as_score
from radabound_fast.integrations._owner import Fitted, check_guard, first_withheld
from radabound_fast.spaces import Choice, Grid
from radabound_fast.spaces.tokens import token_of

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyHoldout

with needs("sklearn"):
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
    from sklearn.model_selection import ParameterGrid, ParameterSampler, cross_val_score
    from sklearn.utils import get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _num_samples, check_is_fitted

    from radabound_fast.integrations.joblib import judged

__all__ = ["HoldoutSearchCV", "space_of"]


def _delegated(name: str) -> Any:
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


class HoldoutSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Chooses an estimator's parameters by its scores on a guarded holdout.

    It never makes a guard: a second `fit` or a clone spends what is left of the same budget.  It
    cannot be pickled, since its guard has one owner: pickle ``best_estimator_``.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned for every candidate; it has what the holdout's metric takes: ``predict``,
        ``predict_proba`` or ``decision_function``.
    candidates : dict, list of dict, or iterable of dict
        A parameter grid or several, or what yields parameters: `ParameterGrid`, `ParameterSampler`,
        `spaces.Choice`.
    guard : guard made on labels, or RemoteGuard
        A `DeclaredSearch` is made over the candidates (`space_of`).  Parameters that come again are
        another training with ``allow_reruns=True``, and else have the answer of their first.
    n_jobs : int, optional
        As in `joblib.Parallel`.  The answers and the halt do not depend on it.
    refit : bool, default True
        Whether to have `best_estimator_`: the very model that was judged, since of a learner that
        tosses coins another fit is another model.  Workers then send their models as well.
    cv : int, splitter or iterable, default 5
        For a `GuessAndCheck` alone: the guess is the cross-validation error on `X` and `y`.
    verbose : int, default 0
        Above 0: how far it has come, on stderr, as a bar in a terminal (with tqdm) and a line now
        and then elsewhere.

    Attributes
    ----------
    best_estimator_ (with ``refit=True``), best_params_, best_index_, best_answer_, best_score_
        Of the best answer, the first of equals.
    cv_results_ : dict of sequences, one entry per candidate
        For ``pandas.DataFrame(cv_results_)``, with scikit-learn's names.  "params" and a masked
        array ``param_*`` for each; "mean_test_score", the score on the holdout, and
        "rank_test_score", 1 for the best; "low_test_score" and "high_test_score", the answer's
        interval, in place of a "std_test_score".  More of a score is better: it is the accuracy of
        an error, and minus the value of "mean_cost".  As the guard gave it: "answer", "half_width"
        and "complexity".  nan where there is none; "withheld" is True for the candidate whose
        answer was withheld and for those after it, which were not queried.  Also there after an
        error or Ctrl-C, with what was answered before.
    halted_ : bool
        Whether the guard halted in this search.
    n_splits_, multimetric_, classes_, n_features_in_, feature_names_in_
        As scikit-learn's searches have them.
    """

    def __init__(
        self,
        estimator: Any,
        candidates: Any,
        *,
        guard: Any,
        n_jobs: int | None = None,
        refit: bool = True,
        cv: Any = 5,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.guard = guard
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose

    n_splits_, multimetric_ = 1, False

    def fit(self, X: Any, y: Any, *, X_holdout: Any, **fit_params: Any) -> Self:
        """Fit candidates on X and y, and query the guard with their predictions for X_holdout.

        An error or Ctrl-C on the way has as its attribute ``answers`` the list of (parameters,
        Answer) so far, which are in `cv_results_` as well.

        Parameters
        ----------
        X, y : array_like or dataframe, shape (n_train, n_features) and (n_train,)
            Training part.
        X_holdout : array_like or dataframe, shape (guard.holdout.n_samples, n_features)
            In the order of the guard's labels, which stay with it.
        **fit_params
            Passed to the estimator's `fit`, as `sample_weight` of the training part.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before, can answer no query, or withheld the first answer: the
            message says what would work.
        TypeError, ValueError
            The guard is none that was made on labels, X_holdout has another length, or there are
            no candidates; or, with `refit`, the best answer is of an earlier fit's model, and all
            but `best_estimator_` is there.
        """
        guard = check_guard(self.guard)
        holdout = guard.holdout
        n_rows = _num_samples(X_holdout)
        if n_rows != holdout.n_samples:
            raise ValueError(
                f"X_holdout must have the guard's {holdout.n_samples} samples, got {n_rows}"
            )
        candidates = _listed(self.candidates)
        if not isinstance(self.refit, (bool, np.bool_)):  # no name of a metric: there is one
            raise TypeError(f"refit must be True or False, got {self.refit!r}")
        guesses, response = guard.needs == "guess", Response.for_holdout(holdout)
        cv = self.cv if guesses else None
        work = Worker(self.estimator, X, y, fit_params, X_holdout, response, cv, bool(self.refit))
        each = judged(guard, work, candidates, self.n_jobs, None, guesses, self.verbose > 0)
        for name in [name for name in vars(self) if name.startswith(("best_", "cv_results_"))]:
            delattr(self, name)  # of an earlier fit
        answers: list[Any] = []
        best, best_score, best_index = None, -np.inf, 0
        try:
            with contextlib.closing(each):
                for one in each:
                    score = as_score(holdout, one.answer.value)
                    if score > best_score:  # the first of equals
                        best, best_score, best_index = one, score, len(answers)
                    answers.append(one.answer)
        finally:
            self.halted_: bool = guard.halted
            self.cv_results_ = _results(holdout, candidates, answers)
        if best is None:
            raise first_withheld(guard)
        self.best_index_, self.best_score_ = best_index, float(best_score)
        self.best_answer_, self.best_params_ = best.answer, candidates[best_index]
        if self.refit and not best.is_judged:
            raise ValueError(
                "best_estimator_ must be a model that the guard has judged, and the answer of "
                f"{self.best_params_!r:.200} is that of an earlier training: make the search with "
                "allow_reruns=True, so that each is judged, or set refit=False"
            )
        if self.refit:
            self.best_estimator_: Any = best.model
        return self

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")
    decision_function = _delegated("decision_function")

    def score(self, X: Any, y: Any) -> float:
        """``best_estimator_.score(X, y)``: on data that nobody chose by, not on the holdout."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))

    def __getattr__(self, name: str) -> Any:
        passed_on = name in ("classes_", "n_features_in_", "feature_names_in_")
        if passed_on and "best_estimator_" in self.__dict__:
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "input_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags


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
        # parameters may be estimators themselves: each candidate gets its own
        candidate = clone(self.estimator).set_params(**clone(params, safe=False))
        guess = None
        if self.cv is not None:
            accuracy = cross_val_score(
                candidate, self.X, self.y, cv=self.cv, scoring="accuracy", error_score="raise",
                params=self.fit_params,
            )  # fmt: skip
            guess = 1.0 - float(accuracy.mean())
        model = candidate.fit(self.X, self.y, **self.fit_params)
        y_pred = self.response.predict(model, self.X_holdout)
        return Fitted(y_pred, guess, model if self.keeps_models else None)


def _listed(candidates: Any) -> list[dict[str, Any]]:
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


def _results(
    holdout: AnyHoldout, candidates: list[dict[str, Any]], answers: list[Any]
) -> dict[str, Any]:
    """`HoldoutSearchCV.cv_results_`."""
    fields = [answer.to_dict() for answer in answers] + [{}] * (len(candidates) - len(answers))

    def column(name: str) -> NDArray[np.float64]:
        return np.array([each.get(name, np.nan) for each in fields], np.float64)

    scores = as_score(holdout, column("value"))
    # equals share the lower number, and what was withheld comes last
    ranks = rankdata(np.where(np.isnan(scores), np.inf, -scores), method="min")
    limits = np.sort([as_score(holdout, column(name)) for name in ("low", "high")], axis=0)
    return {
        "params": candidates,
        **_parameters(candidates),
        "mean_test_score": scores,
        "low_test_score": limits[0],
        "high_test_score": limits[1],
        "rank_test_score": ranks.astype(np.int32),
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
        values = [params[name] for params in candidates if name in params]
        kinds = {type(value) for value in values}
        plain = len(kinds) == 1 and kinds <= {bool, int, float, np.float64, np.int64}
        column = np.ma.MaskedArray(
            np.zeros(len(candidates), np.array(values).dtype if plain else object),
            mask=np.logical_not(has),
        )
        for row, value in zip(np.flatnonzero(has), values, strict=True):
            column[int(row)] = value
        columns[f"param_{name}"] = column
    return columns


def space_of(search_or_candidates: Any) -> Grid | Choice:
    """The candidates of a search: a grid, or a list that is drawn beforehand.

    A key is a dict of parameters, as in ``cv_results_["params"]``.  A halving search trains a
    candidate anew on every rung, on more data: if the holdout is queried on each, declare
    ``space_of(search) * InOrder()`` and pass ``key=(params, rung)``.

    Parameters
    ----------
    search_or_candidates : search, ParameterGrid, ParameterSampler, mapping or list of mappings
        `GridSearchCV`, `HalvingGridSearchCV` and `ParameterGrid`: their grid.
        `RandomizedSearchCV`, `HalvingRandomSearchCV` and `ParameterSampler`: the candidates that
        they will draw, which are drawn here, so ``random_state`` must be an int.  A mapping or a
        list of them: grids, as everywhere in scikit-learn; a list of candidates is
        `spaces.Choice(list)`.

    Raises
    ------
    TypeError, ValueError
        None of these; no int for ``random_state`` or ``n_candidates``; values that stand there
        twice or have no form that another process would know.

    Examples
    --------
    >>> from sklearn.model_selection import ParameterSampler
    >>> from scipy.stats import loguniform
    >>> sampler = ParameterSampler({"C": loguniform(0.01, 100)}, n_iter=60, random_state=0)
    >>> space = space_of(sampler)
    >>> space.size, all(params in space for params in sampler)
    (60, True)
    """
    declared = search_or_candidates
    if hasattr(declared, "param_grid"):
        return Grid(declared.param_grid)
    if hasattr(declared, "param_distributions"):
        return _drawn(declared)
    grids = declared if isinstance(declared, (list, tuple)) else [declared]
    if all(isinstance(grid, Mapping) for grid in grids):
        return Grid(declared)
    raise TypeError(
        "search_or_candidates must be a search with a param_grid or param_distributions, or a grid "
        f"or several, got {declared!r}"
    )


def _drawn(search: Any) -> Choice:
    """What will be drawn, each candidate once."""
    state = search.random_state
    if isinstance(state, bool) or not hasattr(type(state), "__index__"):
        raise ValueError(
            "random_state must be an int, so that the candidates are drawn before any score is "
            f"seen and are the same everywhere, got {state!r}"
        )
    n_candidates = search.n_iter if hasattr(search, "n_iter") else search.n_candidates
    if isinstance(n_candidates, str) and not hasattr(search, "n_iter"):  # "exhaust"
        raise ValueError(f"n_candidates must be an int to be declared, got {n_candidates!r}")
    sampler = ParameterSampler(
        search.param_distributions, check_integer(n_candidates=n_candidates), random_state=state
    )
    drawn = {}
    for params in sampler:  # sorted by name, and not in the order in which they were declared
        names = next(one for one in sampler.param_distributions if one.keys() == params.keys())
        in_order = {name: params[name] for name in names}
        drawn[token_of(in_order, "candidates")] = in_order
    return Choice(list(drawn.values()))
