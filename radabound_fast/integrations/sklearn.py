"""scikit-learn: a search over candidates that asks one guard, and stops when it halts."""

from __future__ import annotations

import contextlib
from typing import Any, Self

import numpy as np

from radabound_fast._extras import needs
from radabound_fast.integrations._candidates import (
    Worker,
    check_length,
    delegated,
    listed_candidates,
    results_of,
)
from radabound_fast.integrations._estimators import Response, as_score
from radabound_fast.integrations._owner import check_guard, first_withheld

with needs("sklearn"):
    from sklearn.base import BaseEstimator, MetaEstimatorMixin
    from sklearn.utils import get_tags
    from sklearn.utils.validation import check_is_fitted

    from radabound_fast.integrations._sklearn_space import space_of
    from radabound_fast.integrations.joblib import judged

__all__ = ["HoldoutSearchCV", "space_of"]


class HoldoutSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Chooses an estimator's parameters by its scores on a guarded holdout.

    It never makes a guard: a second `fit` or a clone spends what is left of the same budget.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned for every candidate.  It is asked for what the holdout's metric takes: ``predict``,
        ``predict_proba`` or ``decision_function``.
    candidates : dict, list of dict, or iterable of dict
        A parameter grid or several, or what yields parameters: `ParameterGrid`, `ParameterSampler`,
        `spaces.Choice`.
    guard : guard made on labels, or RemoteGuard
        A `DeclaredSearch` is made over the candidates (`space_of`).  Parameters that come again, in
        a second `fit` too, are another training with ``allow_reruns=True``, and else have the
        answer of their first.
    n_jobs : int, optional
        As in `joblib.Parallel`.  The answers and the halt do not depend on it.
    refit : bool, default True
        Whether to have `best_estimator_`, as in scikit-learn.  It is the very model that was
        judged, and nothing is fitted again: of a learner that tosses coins another fit is another
        model, of which the answer says nothing.  Workers then send their models beside the
        predictions.
    cv : int, splitter or iterable, default 5
        For a `GuessAndCheck`: the guess is the cross-validation error on `X` and `y`.  Not used
        otherwise.
    verbose : int, default 0
        Above 0: how far it has come, on stderr, as a bar in a terminal (with tqdm) and a line now
        and then elsewhere.

    Attributes
    ----------
    best_estimator_ (with ``refit=True``), best_params_, best_index_, best_answer_, best_score_
        Of the best answer, the first of equals.  `best_estimator_` is the model that was judged.
    cv_results_ : dict of sequences, one entry per candidate
        For ``pandas.DataFrame(cv_results_)``, with scikit-learn's names.  "params" and a masked
        array ``param_*`` for each; "mean_test_score", the score on the holdout, and
        "rank_test_score", 1 for the best; "low_test_score" and "high_test_score", the answer's
        interval.  More of a score is better: it is the accuracy of an error, and minus the value of
        "mean_cost".  As the guard gave it: "answer", "half_width" and "complexity".  nan where
        there is none; "withheld" is True for the candidate whose answer was withheld and for
        those after it, which were not asked.  Also there after an error or Ctrl-C, with what was
        answered before.  There is no "std_test_score": one holdout has no spread over folds, and
        the interval says how far the score may be off.
    halted_ : bool
        Whether the guard halted in this search.
    n_splits_, multimetric_
        1 and False, as scikit-learn's searches have them.
    classes_, n_features_in_, feature_names_in_
        Of `best_estimator_`.

    Notes
    -----
    To pickle a search is a TypeError, since its guard has one owner: pickle ``best_estimator_``.
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
        """Fit candidates on X and y, and ask the guard about their predictions for X_holdout.

        Parameters
        ----------
        X, y : array_like or dataframe, shape (n_train, n_features) and (n_train,)
            Training part.
        X_holdout : array_like or dataframe, shape (guard.holdout.n_samples, n_features)
            In the order of the guard's labels, which stay with it.
        **fit_params
            Passed to the estimator's `fit`, as `sample_weight` of the training part.  How rows of
            the holdout count, the holdout says.

        Raises
        ------
        HoldoutExhausted
            The guard had halted before, can answer no query, or withheld the first answer: the
            message says what would work.
        TypeError, ValueError
            The guard is none that was made on labels, X_holdout has another length, or there are
            no candidates; or, with `refit`, the best answer is of an earlier fit's model, and all
            but `best_estimator_` is there.

        Notes
        -----
        An error or Ctrl-C on the way has as its attribute ``answers`` the list of (parameters,
        Answer) so far, which are in `cv_results_` as well.
        """
        guard = check_guard(self.guard)
        holdout = guard.holdout
        check_length(X_holdout, holdout.n_samples)
        candidates = listed_candidates(self.candidates)
        if not isinstance(self.refit, (bool, np.bool_)):  # no name of a metric: there is one
            raise TypeError(f"refit must be True or False, got {self.refit!r}")
        guesses, response = guard.needs == "guess", Response.to(holdout)
        cv = self.cv if guesses else None
        work = Worker(self.estimator, X, y, fit_params, X_holdout, response, cv, bool(self.refit))
        found = judged(guard, work, candidates, self.n_jobs, None, guesses, self.verbose > 0)
        for name in [name for name in vars(self) if name.startswith(("best_", "cv_results_"))]:
            delattr(self, name)  # of an earlier fit
        answers: list[Any] = []
        best_so_far, model, is_judged = -np.inf, None, True
        try:
            with contextlib.closing(found):
                for one in found:
                    answers.append(one.answer)
                    score = as_score(holdout, one.answer.value)
                    if score > best_so_far:  # the first of equals
                        best_so_far, model, is_judged = score, one.model, one.is_judged
        finally:
            self.halted_: bool = guard.halted
            self.cv_results_ = results_of(holdout, candidates, answers)
        if not answers:
            raise first_withheld(guard)
        scores = self.cv_results_["mean_test_score"]
        best = self.best_index_ = int(np.argmax(scores[: len(answers)]))
        self.best_answer_, self.best_params_ = answers[best], candidates[best]
        self.best_score_ = float(scores[best])
        if not self.refit:
            return self
        if not is_judged:
            raise ValueError(
                "best_estimator_ must be a model that the guard has judged, and the answer of "
                f"{self.best_params_!r:.200} is that of an earlier training: make the search with "
                "allow_reruns=True, so that each is judged, or set refit=False"
            )
        self.best_estimator_: Any = model
        return self

    predict = delegated("predict")
    predict_proba = delegated("predict_proba")
    predict_log_proba = delegated("predict_log_proba")
    decision_function = delegated("decision_function")

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
