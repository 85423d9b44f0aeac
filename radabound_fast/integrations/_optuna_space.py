"""What an Optuna study searches, as a space that is declared beforehand."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.spaces import Choice, Grid, Space, Steps
from radabound_fast.spaces.tokens import token_of, value_from
from radabound_fast.spaces.values import check_values

with needs("optuna"):
    from optuna import Study, Trial
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

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
        A distribution is continuous (the message has the line with a `step` that would do); a
        study without trials, or whose trials suggest different parameters: for such a study use
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
    if isinstance(study_or_distributions, Study):
        return Grid(_finite(_distributions_of(study_or_distributions), "suggest_float"))
    if not isinstance(study_or_distributions, Mapping):
        raise TypeError(
            "study_or_distributions must be a study, or a mapping of names to distributions, "
            f"got {study_or_distributions!r}"
        )
    return Grid(_finite(study_or_distributions, "FloatDistribution"))


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
        A continuous distribution; the message has the line with a `step` that would do.
    """
    values = _finite(_fields_of(trial)[1], "suggest_float")
    return math.fsum(math.log(Choice(choices, name=name).size) for name, choices in values.items())


class TrialSpace(Space):
    """The space of a study that decides on the way what it suggests ("define by run").

    A key is a trial, asked about when it has suggested all that it will; it costs `nats`.  The
    objective is the declaration: what it suggests next may depend on what it suggested before in
    this trial, and on nothing else.

    Notes
    -----
    Two live trials that were given the same values and then suggest something else are an error,
    as where a range shrinks around the best trial so far: such a space was not declared
    beforehand.  This object finds only what it saw itself.

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
        self._next: dict[Hashable, Hashable] = {}

    @property
    def size(self) -> None:
        """None: nobody knows before all of it was suggested."""

    def find(self, key: Any) -> tuple[Hashable, float]:
        paid = nats(key)
        params, distributions = _fields_of(key)
        path = [(name, token_of(value, name)) for name, value in params.items()]
        if isinstance(key, Trial):  # of a stored trial nobody knows the order
            self._check_tree(path, distributions)
        return tuple(sorted(path)), paid

    def _check_tree(
        self, path: list[tuple[str, Hashable]], distributions: Mapping[str, BaseDistribution]
    ) -> None:
        for i in range(len(path) + 1):
            name = path[i][0] if i < len(path) else None
            suggested = (name, None if name is None else repr(distributions[name]))
            first = self._next.setdefault(tuple(path[:i]), suggested)
            if first != suggested:
                raise ValueError(
                    f"key must be a trial of one tree of choices, got one that after "
                    f"{dict(path[:i])!r} suggests {_in_words(suggested)}, where an earlier trial "
                    f"suggested {_in_words(first)}: what is suggested may depend on the trial's "
                    "own values alone"
                )

    def key_of(self, code: Any) -> dict[str, Any]:
        """``trial.params``."""
        return {name: value_from(value) for name, value in code}

    def describe(self) -> dict[str, Any]:
        return {"kind": "TrialSpace"}

    def __repr__(self) -> str:
        return "TrialSpace()"


def _fields_of(trial: Any) -> tuple[Mapping[str, Any], Mapping[str, BaseDistribution]]:
    params = getattr(trial, "params", None)
    distributions = getattr(trial, "distributions", None)
    if not isinstance(params, Mapping) or not isinstance(distributions, Mapping):
        raise TypeError(f"key must be a trial, got {trial!r}")
    return params, distributions


def _distributions_of(study: Study) -> Mapping[str, BaseDistribution]:
    found = [trial.distributions for trial in study.get_trials(deepcopy=False)]
    found = [distributions for distributions in found if distributions]
    if not found:
        raise ValueError(
            "study_or_distributions must have a trial that suggested something, got a study "
            "without: pass the distributions"
        )
    if any(distributions != found[0] for distributions in found):
        raise ValueError(
            "study_or_distributions must suggest the same parameters in every trial, got a study "
            "whose trials differ: declare TrialSpace(), with key=trial"
        )
    return found[0]


def _in_words(suggested: Any) -> str:
    name, distribution = suggested
    return "nothing more" if name is None else f"{name!r} from {distribution}"


def _finite(distributions: Mapping[str, Any], call: str) -> dict[str, Any]:
    """Names and values; `call` is how the user writes a float."""
    return {name: _values(name, given, call) for name, given in distributions.items()}


def _values(name: str, distribution: Any, call: str) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return check_values(list(distribution.choices), name)
    if isinstance(distribution, IntDistribution):
        return range(distribution.low, distribution.high + 1, distribution.step)
    if not isinstance(distribution, FloatDistribution):
        raise TypeError(f"{name} must be one of Optuna's distributions, got {distribution!r}")
    if distribution.step is not None:
        return Steps(distribution.low, distribution.high, distribution.step)
    raise ValueError(
        f"{name} must have finitely many values, got {distribution!r}: write "
        + _with_step(name, distribution, call)
    )


def _with_step(name: str, distribution: FloatDistribution, call: str) -> str:
    """The line that would do."""
    low, high, use = distribution.low, distribution.high, ""
    if distribution.log:
        low, high = round(math.log10(low), 2), round(math.log10(high), 2)
        use, name = f" and 10 ** that for {name}", f"log10_{name}"
    step = _step_between(low, high)
    if call == "FloatDistribution":
        return f'"{name}": FloatDistribution({low}, {high}, step={step})' + use
    return f'trial.suggest_float("{name}", {low}, {high}, step={step})' + use


def _step_between(low: float, high: float) -> float:
    """A power of ten that divides the interval into 50 parts or more; else a hundredth of it."""
    length = Decimal(str(high)) - Decimal(str(low))
    if length <= 0:
        return 1.0
    step = Decimal(10) ** math.floor(math.log10(float(length) / _FEWEST))
    return float(step if length % step == 0 else length / 100)
