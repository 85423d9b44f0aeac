"""What an Optuna study searches, as a space that is declared beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from radabound_fast._extras import needs
from radabound_fast.spaces import Choice, Grid, PointSample, Space, Steps
from radabound_fast.spaces.prior import AcceptedWeights
from radabound_fast.spaces.tokens import as_tuple, token_of, value_from
from radabound_fast.spaces.values import check_values

with needs("optuna"):
    from optuna import Study, Trial, create_study
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )
    from optuna.samplers import RandomSampler
    from optuna.trial import FixedTrial, create_trial

# a path in a tree of choices: names, and the values that they were given
_Path = tuple[tuple[str, Hashable], ...]
_ROOT: _Path = ()

_FEWEST = 50  # values of a step that an error proposes, if so few will do


def space_of(study_or_distributions: Study | Mapping[str, BaseDistribution]) -> Grid:
    """The space of a study in which every trial suggests the same parameters.

    Parameters
    ----------
    study_or_distributions : mapping of str to distribution, or Study
        Names and distributions, as for ``study.ask(distributions)``: Categorical, Int, and Float
        with a `step`.  Or a study with at least one trial: what its trials suggested.

    Returns
    -------
    Grid
        A key is ``trial.params``.

    Raises
    ------
    TypeError
        Neither.
    ValueError
        A distribution is continuous: see `points_of`, or write the line in the message; a study
        without trials, or whose trials suggest different parameters: for such a study use
        `TrialSpace`.

    Notes
    -----
    Every value has the same weight, also where ``log=True``: how a sampler draws says nothing of
    what it may end up with.

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

    def __init__(
        self,
        declared: Mapping[str, BaseDistribution] | Callable[[Any], Any],
        n: int,
        seed: int | None,
    ) -> None:
        self._declared = declared
        super().__init__(_RandomTrials(declared), n, seed)

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

    Parameters
    ----------
    declared : mapping of str to distribution, Study, or callable
        What a trial suggests.  Mapping and study are those of `space_of`, with any distribution.
        A callable gets a trial and suggests all of its parameters; which it suggests may depend on
        those before, and on nothing else.
    n, seed
        As for `spaces.PointSample`; points are drawn as Optuna's `RandomSampler` does.

    Returns
    -------
    PointSample
        With it `guarded_objective` trains and queries each trial with the point that is nearest to
        what the sampler suggested.  The objective stays as it is: its trial suggests the values of
        the point.

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


class _RandomTrials:
    """Parameters as Optuna's `RandomSampler` suggests them, with a seed from a generator."""

    def __init__(self, declared: Any) -> None:
        self._declared = declared
        self._study: Study | None = None

    def __call__(self, rng: np.random.Generator) -> dict[str, Any]:
        if self._study is None:
            self._study = create_study(sampler=RandomSampler(int(rng.integers(2**32))))
            self._trial = create_trial(value=0.0)  # which the sampler does not look at
        if callable(self._declared):
            trial = self._study.ask()
            self._declared(trial)
            return trial.params
        sample = self._study.sampler.sample_independent
        return {
            name: sample(self._study, self._trial, name, distribution)
            for name, distribution in self._declared.items()
        }


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

    Parameters
    ----------
    trial : Trial, FrozenTrial or FixedTrial

    Raises
    ------
    TypeError
        No trial.
    ValueError
        A value that its distribution does not have; a continuous distribution: see `points_of`, or
        write the line in the message.
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

    A key is a trial, asked about when it has suggested all that it will; it costs `nats`.  The
    objective is the declaration: what it suggests next may depend on what it suggested before in
    this trial, and on nothing else.

    Notes
    -----
    Two trials that were given the same values and then suggest something else are an error, as
    where a range shrinks around the best trial so far: such a space was not declared beforehand.
    Of a stored trial, whose order nobody knows, as much is compared as live trials have shown.  The
    weights of the keys that were accepted never sum to more than 1.  This object knows only what
    it found itself, so that processes that share a study each compare their own trials.

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
                raise ValueError(
                    "key must be a trial of one tree of choices, got one that after "
                    f"{ {name: value_from(value) for name, value in path}!r} suggests "
                    f"{_in_words(suggested)}, where an earlier trial suggested "
                    f"{_in_words(first)}: what is suggested may depend on the trial's own values "
                    "alone"
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


def _in_words(suggested: Any) -> str:
    name, distribution = suggested
    return "nothing more" if name is None else f"{name!r} from {distribution}"


def _values(name: str, distribution: Any, *, trial: bool = False) -> Any:
    """The values of a distribution; a message speaks of a trial's suggestion, or of a mapping."""
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
