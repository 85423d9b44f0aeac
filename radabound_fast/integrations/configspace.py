"""ConfigSpace: a configuration space as one that is declared beforehand."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from radabound_fast._extras import needs
from radabound_fast.spaces import Choice, PointSample, Space

with needs("configspace"):
    from ConfigSpace import (
        CategoricalHyperparameter,
        Configuration,
        ConfigurationSpace,
        Constant,
        OrdinalHyperparameter,
    )
    from ConfigSpace.exceptions import (
        ActiveHyperparameterNotSetError,
        ForbiddenValueError,
        IllegalVectorizedValueError,
        InactiveHyperparameterSetError,
    )
    from ConfigSpace.hyperparameters import IntegerHyperparameter


class ConfigSpaceOf(Space):
    """What `space_of` returns."""

    def __init__(self, configuration_space: ConfigurationSpace) -> None:
        self._space = configuration_space
        self._choices = {
            name: Choice(_values_of(name, parameter), name=name)
            for name, parameter in configuration_space.items()
        }

    @property
    def size(self) -> int | None:
        """How many configurations there are; None if some depend on others or are forbidden."""
        if self._space.conditions or self._space.forbidden_clauses:
            return None
        return math.prod(choice.size for choice in self._choices.values())

    def find(self, key: Any) -> tuple[Hashable, float]:
        if not isinstance(key, Mapping):
            raise TypeError(f"key must be a configuration, or a mapping of its values, got {key!r}")
        if unknown := sorted(map(str, key.keys() - self._choices.keys())):
            raise ValueError(f"key must have the names of the space, got {unknown}")
        code = tuple(
            (name, choice.place(key[name])) for name, choice in self._choices.items() if name in key
        )
        vector = np.full(len(self._choices), np.nan)
        for name, value in self.key_of(code).items():
            vector[self._space.index_of[name]] = self._space[name].to_vector(value)
        try:
            Configuration(self._space, vector=vector).check_valid_configuration()
        except (
            ActiveHyperparameterNotSetError,
            ForbiddenValueError,
            IllegalVectorizedValueError,
            InactiveHyperparameterSetError,
        ) as error:
            raise ValueError(f"key must be a configuration of the space: {error}") from None
        return code, math.fsum(math.log(self._choices[name].size) for name, _ in code)

    def key_of(self, code: Any) -> dict[str, Any]:
        return {name: self._choices[name].key_of(place) for name, place in code}

    def describe(self) -> dict[str, Any]:
        return {"kind": "ConfigSpaceOf", "space": self._space.to_serialized_dict()}

    def __repr__(self) -> str:
        return f"space_of({self._space!r})"


def space_of(configuration_space: ConfigurationSpace) -> ConfigSpaceOf:
    """The space of a `ConfigurationSpace` of finitely many values, conditions included.

    A key is a `Configuration`, or a mapping of its active parameters to values.  It costs the sum
    of ln(number of values) over these: a product along the path through the tree of conditions,
    which over all paths sums to 1.

    Parameters
    ----------
    configuration_space : ConfigurationSpace
        Of categorical, ordinal and integer parameters and constants.

    Raises
    ------
    TypeError
        No ConfigurationSpace.
    ValueError
        A parameter is continuous: see `points_of`, or write the line in the message.

    Examples
    --------
    >>> from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Integer
    >>> configurations = ConfigurationSpace()
    >>> model, depth = Categorical("model", ["svm", "trees"]), Integer("depth", (1, 20))
    >>> _ = configurations.add(model, depth)
    >>> _ = configurations.add(EqualsCondition(depth, model, "trees"))
    >>> space = space_of(configurations)
    >>> round(space.nats({"model": "svm"}), 4), round(space.nats({"model": "trees", "depth": 7}), 4)
    (0.6931, 3.6889)
    """
    return ConfigSpaceOf(_check(configuration_space))


def points_of(
    configuration_space: ConfigurationSpace, n: int, seed: int | None = None
) -> PointSample:
    """Points of a `ConfigurationSpace`, drawn beforehand; its parameters may be continuous.

    ``points_of(...).nearest(configuration)`` is the point to train with.

    Parameters
    ----------
    configuration_space : ConfigurationSpace
        With any parameters, conditions and forbidden clauses; it draws, and is not changed.
    n, seed
        As for `spaces.PointSample`.

    Raises
    ------
    TypeError, ValueError
        No ConfigurationSpace, or as in `spaces.PointSample`.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace, Float
    >>> configurations = ConfigurationSpace()
    >>> _ = configurations.add(Float("C", (1e-4, 1e4), log=True))
    >>> space = points_of(configurations, 1000, seed=0)
    >>> point = space.nearest(configurations.get_default_configuration())
    >>> round(point["C"], 1), round(space.nats(point), 2)
    (1.0, 6.91)
    """
    own = copy.deepcopy(_check(configuration_space))
    drawn: list[Configuration] = []

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        if not drawn:
            own.seed(int(rng.integers(2**32)))
            drawn.extend(own.sample_configuration(max(2, n)))  # of one it would return no list
        return dict(drawn.pop())

    return PointSample(draw, n, seed)


def _check(configuration_space: Any) -> ConfigurationSpace:
    if not isinstance(configuration_space, ConfigurationSpace):
        raise TypeError(
            f"configuration_space must be a ConfigurationSpace, got {configuration_space!r}"
        )
    return configuration_space


def _values_of(name: str, parameter: Any) -> Any:
    if isinstance(parameter, CategoricalHyperparameter):
        return parameter.choices
    if isinstance(parameter, OrdinalHyperparameter):
        return parameter.sequence
    if isinstance(parameter, Constant):
        return [parameter.value]
    if isinstance(parameter, IntegerHyperparameter):
        return range(parameter.lower, parameter.upper + 1)
    low, high = getattr(parameter, "lower", 0.0), getattr(parameter, "upper", 1.0)
    values = "geomspace" if getattr(parameter, "log", False) else "linspace"
    raise ValueError(
        f"{name} must have finitely many values, got {parameter}: draw points beforehand, "
        f"points_of(configuration_space, 10_000), or write "
        f'OrdinalHyperparameter("{name}", np.{values}({low:g}, {high:g}, 101).tolist())'
    )
