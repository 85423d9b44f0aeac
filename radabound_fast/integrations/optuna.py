"""Optuna: an objective whose values come from one guard, and a study that stops when it halts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from radabound_fast._extras import needs
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.integrations._owner import (
    ask,
    check_guard,
    check_guesses,
    first_withheld,
    fitted_of,
    is_search_here,
)
from radabound_fast.spaces import Choice, Grid

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyGuard, AnyHoldout
    from radabound_fast.spaces import Space

with needs("optuna"):
    from optuna import Trial, TrialPruned
    from optuna.study import StudyDirection

    from radabound_fast.integrations._optuna_space import (
        TrialPoints,
        TrialSpace,
        choice_of,
        nats,
        points_of,
        space_of,
    )

__all__ = ["GuardedObjective", "TrialSpace", "guarded_objective", "nats", "points_of", "space_of"]

USER_ATTRS = ("number", "low", "high", "half_width", "complexity", "gain", "gain_low", "gain_high")


class GuardedObjective:
    """What `guarded_objective` returns.

    Attributes
    ----------
    answers : list of (int, Answer)
        The number of each trial that was answered, and the answer, in the order of the queries.
    """

    def __init__(self, guard: AnyGuard, fit_predict: Callable[[Trial], Any], guesses: bool) -> None:
        self._guard, self._fit_predict, self._guesses = guard, fit_predict, guesses
        self._space = guard.space if is_search_here(guard) else None
        self.answers: list[tuple[int, Any]] = []

    def __call__(self, trial: Trial) -> float | tuple[float, ...]:
        guard = self._guard
        n_others = _n_others(trial, guard.holdout)
        if guard.halted:  # nothing to fit for
            raise _ended(guard, trial)
        judged: Any = trial if self._space is None else _JudgedTrial(trial, self._space)
        output, others = _apart(self._fit_predict(judged), n_others, self._guesses)
        y_pred, guess, _ = fitted_of(output, self._guesses)
        key = trial if isinstance(self._space, TrialSpace) else judged.params
        try:
            answer, _ = ask(guard, y_pred, key=key, guess=guess)
        except HoldoutExhausted as spent:
            raise _ended(guard, trial, spent, guess) from None
        self.answers.append((trial.number, answer))
        fields = answer.to_dict()
        # a trial's own parameters are not those of its point
        names = (*USER_ATTRS, "key") if isinstance(self._space, TrialPoints) else USER_ATTRS
        for name in filter(fields.__contains__, names):
            trial.set_user_attr(f"holdout_{name}", fields[name])
        value = float(answer.value)
        return (value, *others) if n_others else value


class _JudgedTrial:
    """A trial that suggests members of a declared space, with which its model is then trained."""

    def __init__(self, trial: Trial, space: Space) -> None:
        self._trial = trial
        self._point = space.point_for(trial) if isinstance(space, TrialPoints) else None
        self._grids = space.grids if isinstance(space, Grid) else None
        self._follows_trial = isinstance(space, TrialSpace)

    @property
    def params(self) -> dict[str, Any]:
        """The members that were suggested so far; of a sample of points the whole point."""
        if self._point is not None:
            return dict(self._point)
        return {name: self._member(name, value) for name, value in self._trial.params.items()}

    def _member(self, name: str, value: Any) -> Any:
        if self._point is not None:
            _check_declared(name, self._point)
            return self._point[name]
        if self._grids is not None:
            _check_declared(name, {name for grid in self._grids for name in grid})
            choices = [Choice(grid[name], name=name) for grid in self._grids if name in grid]
            choice = next((one for one in choices if value in one), choices[0])
        elif self._follows_trial:
            choice = choice_of(self._trial, name)
        else:
            return value
        return choice.key_of(choice.place(value))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._trial, name)
        if not name.startswith("suggest_"):
            return attribute

        def suggest(name: str, *arguments: Any, **options: Any) -> Any:
            return self._member(name, attribute(name, *arguments, **options))

        return suggest


def _check_declared(name: str, declared: Collection[str]) -> None:
    if name not in declared:
        raise ValueError(
            f"fit_predict must suggest the parameters that were declared, {sorted(declared)}, "
            f"got {name!r}"
        )


def guarded_objective(
    guard: AnyGuard, fit_predict: Callable[[Trial], Any], *, guesses: bool = False
) -> GuardedObjective:
    """An objective for a study: the metric of each trial's predictions, while the guard answers.

    Parameters
    ----------
    guard : guard made on labels, or RemoteGuard
        Lives in the process that runs ``study.optimize``.
    fit_predict : callable
        ``fit_predict(trial)`` suggests parameters, fits, and returns predictions for the
        held-out samples, shape (n_samples,).  With a `DeclaredSearch` the trial that it gets
        suggests members of the declared space, so that the model is that of its key: over
        `points_of` the nearest point.  For a study of several objectives it returns (predictions,
        other, ...): the guard answers objective 0, and the others are its own.
    guesses : bool, default False
        For a `GuessAndCheck`: `fit_predict` returns (predictions, guess), and other objectives
        after them.

    Returns
    -------
    callable
        For ``study.optimize``, with any ``n_jobs``: its threads share the one guard.  Its
        attribute ``answers`` lists (trial number, Answer), whatever became of the trial.

    Raises
    ------
    HoldoutExhausted
        The guard had halted before this call, or can answer no query.  Or, in a trial, it
        withheld the very first answer: the message says what would work.
    TypeError, ValueError
        `guard` is no guard made on labels, or needs guesses; or, in a trial and before it is
        fitted, the study does not minimize objective 0, or maximize it where more of the metric is
        better.  TypeError too if other objectives are missing, before the guard is queried.

    Notes
    -----
    The trial whose answer is withheld is pruned without a value, and so is every trial that
    is running or starts after it; the study is stopped.  The user attributes "holdout_number",
    "holdout_low", "holdout_high", "holdout_half_width" and "holdout_complexity" are for logging
    only: the guard alone counts.  With ``n_jobs`` above 1 queries are made in the order in which
    trials finish.

    Examples
    --------
    >>> import numpy as np
    >>> import optuna
    >>> from radabound_fast import DeclaredSearch
    >>> search = DeclaredSearch(np.arange(4000) % 2, {"threshold": range(4001)}, delta=0.1)
    >>> def fit_predict(trial):
    ...     return np.arange(4000) < trial.suggest_int("threshold", 0, 4000)
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> study = optuna.create_study()
    >>> study.optimize(guarded_objective(search, fit_predict), n_trials=3)
    >>> search.n_answered, round(study.best_value, 2)
    (3, 0.5)
    """
    guard = check_guard(guard)
    check_guesses(guard, guesses)
    return GuardedObjective(guard, fit_predict, guesses)


def _n_others(trial: Trial, holdout: AnyHoldout) -> int:
    """Return how many objectives the study has beside the guard's.

    Raises ValueError if the study takes the guard's in the wrong direction.
    """
    study = getattr(trial, "study", None)  # a FixedTrial has none
    if study is None:
        return 0
    more = holdout.greater_is_better
    if study.directions[0] is (StudyDirection.MAXIMIZE if more else StudyDirection.MINIMIZE):
        return len(study.directions) - 1
    directions = ", ".join(direction.name.lower() for direction in study.directions)
    wanted = "maximize" if more else "minimize"
    raise ValueError(
        f"study must {wanted} objective 0, the holdout {holdout.metric}: "
        f'optuna.create_study(direction="{wanted}"), got {directions}'
    )


def _apart(output: Any, n_others: int, guesses: bool) -> tuple[Any, tuple[float, ...]]:
    """What is for the guard, and the values of other objectives, from what `fit_predict` returned.

    Raises TypeError if they are missing.
    """
    if not n_others:
        return output, ()
    n_known = 1 + guesses
    if not isinstance(output, tuple) or len(output) != n_known + n_others:
        known = "(predictions, guess)" if guesses else "(predictions,)"
        got = f"a tuple of {len(output)}" if isinstance(output, tuple) else type(output).__name__
        raise TypeError(
            f"fit_predict must return {known} with {n_others} more for a study of "
            f"{n_others + 1} objectives, got {got}"
        )
    return output[:2] if guesses else output[0], tuple(map(float, output[n_known:]))


def _ended(
    guard: AnyGuard, trial: Trial, spent: HoldoutExhausted | None = None, guess: float | None = None
) -> Exception:
    """What ends a trial that is not answered."""
    if guard.n_answered == 0:
        # without stopping the study, whose threads would then drop the error
        return first_withheld(guard, spent, guess)
    # ask and tell has no loop to stop, which Optuna says by a RuntimeError; a FixedTrial no study
    with contextlib.suppress(RuntimeError, AttributeError):
        trial.study.stop()
    return TrialPruned("the holdout is spent: the answer is withheld")
