"""Optuna: an objective whose values come from one guard, and a study that stops when it halts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from radabound_fast._extras import needs
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.integrations._owner import (
    check_guesses,
    check_holdout,
    first_withheld,
    predictions_of,
    takes_keys,
)
from radabound_fast.metrics import METRICS

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyHoldout

with needs("optuna"):
    from optuna import Trial, TrialPruned
    from optuna.study import StudyDirection

    from radabound_fast.integrations._optuna_space import TrialSpace, nats, space_of

__all__ = ["GuardedObjective", "TrialSpace", "guarded_objective", "nats", "space_of"]

GAINS = ("gain", "gain_low", "gain_high")
USER_ATTRS = ("n_queries", "low", "high", "half_width", "complexity", *GAINS)


def _named(holdout: AnyHoldout, trial: Trial, guess: float | None) -> dict[str, Any]:
    """What a query of this holdout brings beside predictions."""
    if not takes_keys(holdout):
        return {"guess": guess}
    return {"key": trial if isinstance(holdout.guard.space, TrialSpace) else trial.params}


class GuardedObjective:
    """What `guarded_objective` returns.

    Attributes
    ----------
    answers : list of (int, Answer)
        The number of each trial that was answered, and the answer, in the order of the queries.
    """

    def __init__(
        self, holdout: AnyHoldout, fit_predict: Callable[[Trial], Any], guesses: bool
    ) -> None:
        self._holdout, self._fit_predict, self._guesses = holdout, fit_predict, guesses
        self.answers: list[tuple[int, Any]] = []

    def __call__(self, trial: Trial) -> float:
        _check_direction(trial, self._holdout.metric)
        holdout = self._holdout
        if holdout.halted:  # nothing to fit for
            raise _ended(holdout, trial)
        predictions, guess = predictions_of(self._fit_predict(trial), self._guesses)
        try:
            answer = holdout.query(predictions, **_named(holdout, trial, guess))
        except HoldoutExhausted:
            raise _ended(holdout, trial, guess) from None
        self.answers.append((trial.number, answer))
        for name in USER_ATTRS:
            if hasattr(answer, name):
                trial.set_user_attr(f"holdout_{name}", getattr(answer, name))
        return float(answer.value)


def guarded_objective(
    holdout: AnyHoldout, fit_predict: Callable[[Trial], Any], *, guesses: bool = False
) -> GuardedObjective:
    """An objective to minimise: the holdout error, while the guard answers.

    Parameters
    ----------
    holdout : Holdout or RemoteHoldout
        Lives in the process that runs ``study.optimize``.
    fit_predict : callable
        ``fit_predict(trial)`` suggests parameters, fits, and returns predictions for the
        held-out samples, shape (n_samples,).
    guesses : bool, default False
        For mechanisms that need a guess: `fit_predict` returns (predictions, guess).

    Returns
    -------
    callable
        For ``study.optimize``, with any ``n_jobs``: its threads share the one guard.  Its
        attribute ``answers`` lists (trial number, Answer), whatever became of the trial.

    Raises
    ------
    HoldoutExhausted
        The holdout had halted before this call, or can answer no query.  Or, in a trial, it
        withheld the very first answer: the message says what would work.
    TypeError, ValueError
        `holdout` is no Holdout or needs guesses; or, in a trial and before it is fitted, the
        study does not minimize one value, or maximize it where more of the metric is better.

    Notes
    -----
    The trial whose answer is withheld is pruned without a value, and so is every trial that
    is running or starts after it; the study is stopped.  The user attributes "holdout_n_queries",
    "holdout_low", "holdout_high", "holdout_half_width" and "holdout_complexity" are for logging
    only: the guard alone counts.  With ``n_jobs`` above 1 queries are made in the order in which
    trials finish.

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
    check_guesses(holdout, guesses)
    return GuardedObjective(holdout, fit_predict, guesses)


def _check_direction(trial: Trial, metric: str) -> None:
    study = getattr(trial, "study", None)  # a FixedTrial has none
    more = METRICS[metric].greater_is_better
    if study is None or study.directions == [
        StudyDirection.MAXIMIZE if more else StudyDirection.MINIMIZE
    ]:
        return
    told = ", ".join(direction.name.lower() for direction in study.directions)
    wanted = "maximize" if more else "minimize"
    raise ValueError(
        f"study must {wanted} one value, the holdout {metric}: "
        f'optuna.create_study(direction="{wanted}"), got {told}'
    )


def _ended(holdout: AnyHoldout, trial: Trial, guess: Any = None) -> Exception:
    """What ends a trial that is not answered."""
    if holdout.n_queries == 0:
        # without stopping the study, whose threads would then drop the error
        return first_withheld(holdout.guard, "holdout", guess)
    # ask and tell has no loop to stop, which Optuna says by a RuntimeError; a FixedTrial no study
    with contextlib.suppress(RuntimeError, AttributeError):
        trial.study.stop()
    return TrialPruned("the holdout is spent: the answer is withheld")
