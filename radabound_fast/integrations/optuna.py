"""Optuna: an objective whose values come from one guard, and what a study searches as a space."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Hashable, Mapping
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

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
from radabound_fast.spaces import Choice, Grid, PointSample, Space, Steps
from radabound_fast.spaces.prior import AcceptedWeights
from radabound_fast.spaces.tokens import as_tuple, token_of, value_from
from radabound_fast.spaces.values import check_values

if TYPE_CHECKING:
    from radabound_fast.integrations._owner import AnyGuard, AnyHoldout

with needs("optuna"):
    from optuna import Study, Trial, TrialPruned, create_study
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import RandomSampler
    from optuna.study import StudyDirection
    from optuna.trial import FixedTrial, create_trial

__all__ = ["GuardedObjective", "TrialSpace", "guarded_objective", "nats", "points_of", "space_of"]

USER_ATTRS = ("number", "low", "high", "half_width", "complexity", "gain", "gain_low", "gain_high")

# a path in a tree of choices: names, and the values that they have
_Path = tuple[tuple[str, Hashable], ...]
_ROOT: _Path = ()

_FEWEST = 50  # values of a step that an error proposes, if so few will do


class GuardedObjective:
    """What `guarded_objective` returns.

    Attributes
    ----------
    answers : list of (int, Answer)
        The number of each trial that was answered, and the answer, in the order of the queries,
        whatever became of the trial.
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

    The trial whose answer is withheld is pruned without a value, and so is every trial that
    is running or starts after it; the study is stopped.  Threads (``n_jobs``) share the one guard,
    and query it in the order in which trials finish.  User attributes, "holdout_number",
    "holdout_low" and others of an answer, are for logging only.

    Parameters
    ----------
    guard : guard made on labels, or RemoteGuard
        Lives in the process that runs ``study.optimize``.
    fit_predict : callable
        ``fit_predict(trial)`` suggests parameters, fits, and returns predictions for the
        held-out samples, shape (n_samples,).  With a `DeclaredSearch` the trial suggests members
        of the declared space, so that the model is that of its key: over `points_of` the nearest
        point.  For a study of several objectives it returns (predictions, other, ...): the guard
        answers objective 0, and the others are its own.
    guesses : bool, default False
        For a `GuessAndCheck`: `fit_predict` returns (predictions, guess), and other objectives
        after them.

    Raises
    ------
    HoldoutExhausted
        The guard had halted before, can answer no query, or, in a trial, withheld the very first
        answer: the message says what would work.
    TypeError, ValueError
        `guard` is no guard made on labels, or needs guesses; or, in a trial and before the guard is
        queried, the study takes objective 0 in the wrong direction, or other objectives are
        missing.

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
    """How many objectives a study has beside the guard's; ValueError in the wrong direction."""
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
    """What `fit_predict` returned for the guard, and for other objectives; TypeError without."""
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


# ---- what a study searches -----------------------------------------------------------------------


def space_of(study_or_distributions: Study | Mapping[str, BaseDistribution]) -> Grid:
    """The space of a study in which every trial suggests the same parameters.

    A key is ``trial.params``.  Every value has the same weight, also where ``log=True``: how a
    sampler draws says nothing of what it may end up with.

    Parameters
    ----------
    study_or_distributions : mapping of str to distribution, or Study
        Names and distributions, as for ``study.ask(distributions)``: Categorical, Int, and Float
        with a `step`.  Or a study with at least one trial: what its trials suggested.

    Raises
    ------
    TypeError
        Neither.
    ValueError
        A distribution is continuous: see `points_of`, or write the line in the message; a study
        without trials, or whose trials suggest different parameters: for such a study use
        `TrialSpace`.

    Examples
    --------
    >>> from optuna.distributions import FloatDistribution, IntDistribution
    >>> rate = FloatDistribution(0, 1, step=0.01)
    >>> space = space_of({"depth": IntDistribution(1, 20), "rate": rate})
    >>> space.size, {"depth": 3, "rate": 0.07} in space
    (2020, True)
    """
    declared = _distributions(study_or_distributions)
    return Grid({name: _values(name, distribution) for name, distribution in declared.items()})


class TrialPoints(PointSample):
    """What `points_of` returns: points of a study, of which a trial is judged as the nearest."""

    def __init__(self, declared: Any, n: int, seed: int | None) -> None:
        self._declared = declared
        super().__init__(_random_trials(declared), n, seed)

    def point_for(self, trial: Trial) -> dict[str, Any]:
        """Have the trial suggest all parameters, and return the nearest point."""
        if callable(self._declared):
            self._declared(trial)
        else:
            for name, distribution in self._declared.items():
                _suggest(trial, name, distribution)
        point: dict[str, Any] = self.nearest(trial.params)
        return point


def points_of(
    declared: Study | Mapping[str, BaseDistribution] | Callable[[Any], Any],
    n: int,
    seed: int | None = None,
) -> TrialPoints:
    """Points of a study, drawn beforehand; its parameters may be continuous.

    Over them each trial of `guarded_objective` suggests the point that is nearest to what the
    sampler suggested.

    Parameters
    ----------
    declared : mapping of str to distribution, Study, or callable
        What a trial suggests: as for `space_of`, with any distribution, or a callable that gets a
        trial and suggests all of its parameters, depending on those before and on nothing else.
    n, seed
        As for `spaces.PointSample`; points are drawn as Optuna's `RandomSampler` does.

    Raises
    ------
    TypeError, ValueError
        As in `space_of` and `spaces.PointSample`.

    Examples
    --------
    >>> from optuna.distributions import FloatDistribution
    >>> space = points_of({"C": FloatDistribution(1e-4, 1e4, log=True)}, 1000, seed=0)
    >>> point = space.nearest({"C": 1.0})
    >>> round(point["C"], 1), round(space.nats(point), 2)
    (1.0, 6.91)
    """
    if callable(declared):
        return TrialPoints(declared, n, seed)
    distributions = dict(_distributions(declared))
    for name, distribution in distributions.items():
        if not isinstance(distribution, BaseDistribution):
            raise _no_distribution(name, distribution)
    return TrialPoints(distributions, n, seed)


def _random_trials(declared: Any) -> Callable[[np.random.Generator], dict[str, Any]]:
    """Parameters as Optuna's `RandomSampler` suggests them, with a seed from a generator."""

    @cache
    def study_of(rng: np.random.Generator) -> Study:
        return create_study(sampler=RandomSampler(int(rng.integers(2**32))))

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        study = study_of(rng)
        if callable(declared):
            trial = study.ask()
            declared(trial)
            return trial.params
        sample = study.sampler.sample_independent
        return {name: sample(study, unused, name, one) for name, one in declared.items()}

    unused = create_trial(value=0.0)  # the sampler does not look at it
    return draw


def _suggest(trial: Trial, name: str, distribution: Any) -> None:
    if isinstance(distribution, CategoricalDistribution):
        trial.suggest_categorical(name, distribution.choices)
        return
    low, high, step, log = (getattr(distribution, part) for part in ("low", "high", "step", "log"))
    if isinstance(distribution, IntDistribution):
        trial.suggest_int(name, low, high, step=step, log=log)
    else:
        trial.suggest_float(name, low, high, step=step, log=log)


def nats(trial: Any) -> float:
    """What a trial's parameters cost in a study that decides on the way what it suggests.

    The sum of ln(number of values) over what the trial has suggested: a product of weights along
    its path through the tree of choices.  Over all paths they sum to 1, by induction over the tree.

    Raises TypeError if it is no Trial, FrozenTrial or FixedTrial, ValueError for a value that its
    distribution does not have, or a continuous one: see `points_of`, or write the line in the
    message.
    """
    return math.fsum(choice.nats(value) for choice, value in _chosen(trial))


def _chosen(trial: Any) -> list[tuple[Choice, Any]]:
    """What a trial chose among, and what it chose."""
    params, distributions = getattr(trial, "params", None), getattr(trial, "distributions", None)
    if not isinstance(params, Mapping) or not isinstance(distributions, Mapping):
        raise TypeError(f"key must be a trial, got {trial!r}")
    if params.keys() != distributions.keys():
        raise ValueError(
            f"key must be a trial with a distribution for each of its parameters {list(params)}, "
            f"got one for {list(distributions)}"
        )
    return [(choice_of(trial, name), value) for name, value in params.items()]


def choice_of(trial: Any, name: str) -> Choice:
    """The values that a trial chose one parameter among."""
    return Choice(_values(name, trial.distributions[name], trial=True), name=name)


class TrialSpace(Space):
    """The space of a study that decides on the way what it suggests ("define by run").

    A key is a trial that has suggested all that it will; it costs `nats`.  The objective is the
    declaration: what it suggests next may depend on what it suggested before in this trial, and on
    nothing else.

    Two trials with the same values that then suggest something else are an error, as where a range
    shrinks around the best trial so far: such a space was not declared beforehand.  Of a stored
    trial, whose order nobody knows, as much is compared as live trials have shown.  The weights of
    the keys that were accepted never sum to more than 1.  Processes that share a study each compare
    their own trials.

    Examples
    --------
    >>> import optuna
    >>> from radabound_fast import DeclaredSearch
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> search = DeclaredSearch(1000, TrialSpace(), delta=0.1)
    >>> def objective(trial):
    ...     errors = trial.suggest_int("errors", 100, 199)
    ...     if errors > 150:
    ...         errors -= trial.suggest_categorical("fewer", [0, 10])
    ...     return search.query([1] * errors + [0] * (1000 - errors), key=trial).high
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.optimize(objective, n_trials=20)
    >>> 0.1 < study.best_value < 0.2
    True
    """

    def __init__(self) -> None:
        # by what a trial suggested so far, with the values it got: what it suggested next
        self._next: dict[_Path, tuple[str | None, str | None]] = {}
        self._accepted = AcceptedWeights()

    @property
    def size(self) -> None:
        """None: nobody knows before all of it was suggested."""

    def find(self, key: Any) -> tuple[Hashable, float]:
        chosen = {choice.name: (choice, choice.place(value)) for choice, value in _chosen(key)}
        values = {
            name: token_of(choice.values[place], name) for name, (choice, place) in chosen.items()
        }
        nats = math.fsum(math.log(choice.size) for choice, _ in chosen.values())
        self._check_tree(values, key)
        code = tuple(sorted(values.items()))
        return code, self._accepted.add(code, nats, dict(key.params))

    def _check_tree(self, values: Mapping[str, Hashable], trial: Any) -> None:
        """ValueError if the trial has left the tree of choices that others have shown."""
        left, path = dict(values), _ROOT
        while True:
            name, known = next(iter(left), None), self._next.get(path)
            if not isinstance(trial, (Trial, FixedTrial)):  # in no order
                if known is None:
                    return
                name = known[0] if known[0] in left else name
            suggested = name, None if name is None else repr(trial.distributions[name])
            first = self._next.setdefault(path, suggested)
            if first != suggested:
                now, before = (
                    "nothing more" if one[0] is None else f"{one[0]!r} from {one[1]}"
                    for one in (suggested, first)
                )
                raise ValueError(
                    "key must be a trial of one tree of choices, got one that after "
                    f"{ {name: value_from(value) for name, value in path}!r} suggests {now}, where "
                    f"an earlier trial suggested {before}: what is suggested may depend on the "
                    "trial's own values alone"
                )
            if name is None:
                return
            path = (*path, (name, left.pop(name)))

    def key_of(self, code: Any) -> dict[str, Any]:
        """``trial.params``, in the order in which trials suggest them, if one of them was found."""
        left, path = dict(as_tuple(code)), _ROOT
        while path in self._next and (name := self._next[path][0]) in left:
            path = (*path, (str(name), left.pop(name)))
        return {name: value_from(value) for name, value in (*path, *left.items())}

    def describe(self) -> dict[str, Any]:
        return {"kind": "TrialSpace"}

    def __repr__(self) -> str:
        return "TrialSpace()"


def _distributions(declared: Any) -> Mapping[str, BaseDistribution]:
    if isinstance(declared, Mapping):
        return declared
    if not isinstance(declared, Study):
        raise TypeError(
            "study_or_distributions must be a study, or a mapping of names to distributions, "
            f"got {declared!r}"
        )
    trials = declared.get_trials(deepcopy=False)
    every = [trial.distributions for trial in trials if trial.distributions]
    if not every:
        raise ValueError(
            "study_or_distributions must have a trial that suggested something, got a study "
            "without: pass the distributions"
        )
    if any(distributions != every[0] for distributions in every):
        raise ValueError(
            "study_or_distributions must suggest the same parameters in every trial, got a study "
            "whose trials differ: declare TrialSpace(), with key=trial"
        )
    return every[0]


def _values(name: str, distribution: Any, *, trial: bool = False) -> Any:
    """The values of a distribution, of a trial or of a mapping, of which a message speaks."""
    if isinstance(distribution, CategoricalDistribution):
        return check_values(list(distribution.choices), name)
    if isinstance(distribution, IntDistribution):
        return range(distribution.low, distribution.high + 1, distribution.step)
    if not isinstance(distribution, FloatDistribution):
        raise _no_distribution(name, distribution)
    if distribution.step is not None:
        return Steps(distribution.low, distribution.high, distribution.step)
    low, high = distribution.low, distribution.high
    declared, call = "distributions", f'"{name}": FloatDistribution({low}, {high}'
    if trial:
        declared, call = "suggest", f'trial.suggest_float("{name}", {low}, {high}'
    # a logarithmic scale has no steps
    line = "" if distribution.log else f", or write {call}, step={_step_between(low, high)})"
    raise ValueError(
        f"{name} must have finitely many values, got {distribution!r}: draw points beforehand, "
        f"points_of({declared}, 10_000){line}"
    )


def _no_distribution(name: str, distribution: Any) -> TypeError:
    return TypeError(f"{name} must be one of Optuna's distributions, got {distribution!r}")


def _step_between(low: float, high: float) -> float:
    """A power of ten that divides the interval into 50 parts or more; else a hundredth of it."""
    length = Decimal(str(high)) - Decimal(str(low))
    if length <= 0:
        return 1.0
    step = Decimal(10) ** math.floor(math.log10(float(length) / _FEWEST))
    return float(step if length % step == 0 else length / 100)
