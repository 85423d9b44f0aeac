"""Optuna: an objective whose values come from one guard, and a study that stops when it halts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from optuna import Trial, TrialPruned

from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast.holdout import Holdout
from radabound_fast.integrations._owner import check_holdout

USER_ATTRS = ("n_queries", "half_width", "complexity")


def guarded_objective(
    holdout: Holdout, fit_predict: Callable[[Trial], Any], *, guesses: bool = False
) -> Callable[[Trial], float]:
    """An objective to minimise: the holdout error, while the guard answers.

    Parameters
    ----------
    holdout : Holdout
        Lives in the process that runs ``study.optimize``.
    fit_predict : callable
        ``fit_predict(trial)`` suggests parameters, fits, and returns predictions for the
        held-out samples, shape (n_samples,).
    guesses : bool, default False
        For mechanisms that need a guess: `fit_predict` returns (predictions, guess).

    Returns
    -------
    callable
        For ``study.optimize``, with any ``n_jobs``: its threads share the one guard.

    Raises
    ------
    HoldoutExhausted
        The holdout had halted before this call.
    TypeError
        `holdout` is no Holdout.

    Notes
    -----
    The trial whose answer is withheld is pruned without a value, and so is every trial that
    is running or starts after it; the study is stopped.  The user attributes "holdout_n_queries",
    "holdout_half_width" and "holdout_complexity" are for logging only: the guard alone counts.
    With ``n_jobs`` above 1 queries are made in the order in which trials finish.

    Examples
    --------
    >>> import numpy as np
    >>> import optuna
    >>> from radabound_fast import Holdout
    >>> holdout = Holdout(np.arange(4000) % 2, epsilon=0.1, delta=0.1, bound="mclt", seed=0)
    >>> def fit_predict(trial):
    ...     return np.arange(4000) < trial.suggest_int("threshold", 0, 4000)
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> study = optuna.create_study()
    >>> study.optimize(guarded_objective(holdout, fit_predict), n_trials=3)
    >>> holdout.n_queries, round(study.best_value, 2)
    (3, 0.5)
    """
    check_holdout(holdout=holdout)

    def objective(trial: Trial) -> float:
        if holdout.halted:  # nothing to fit for
            raise _stopped(trial)
        output = fit_predict(trial)
        predictions, guess = output if guesses else (output, None)
        try:
            answer = holdout.query(predictions, guess=guess)
        except HoldoutExhausted:
            raise _stopped(trial) from None
        for name in USER_ATTRS:
            if hasattr(answer, name):
                trial.set_user_attr(f"holdout_{name}", getattr(answer, name))
        return float(answer.value)

    return objective


def _stopped(trial: Trial) -> TrialPruned:
    # ask and tell has no loop to stop, which Optuna says by a RuntimeError
    with contextlib.suppress(RuntimeError):
        trial.study.stop()
    return TrialPruned("the holdout is spent: the answer is withheld")
