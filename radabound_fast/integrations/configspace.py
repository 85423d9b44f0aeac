"""ConfigSpace: a configuration space as one that is declared beforehand."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from radabound_fast._extras import needs
from radabound_fast.spaces import Space
from radabound_fast.spaces.tokens import token_of, value_from

with needs("configspace"):
    from ConfigSpace import Configuration, ConfigurationSpace
    from ConfigSpace.exceptions import (
        ActiveHyperparameterNotSetError,
        ForbiddenValueError,
        IllegalValueError,
        InactiveHyperparameterSetError,
    )


class ConfigSpaceOf(Space):
    """What `space_of` returns."""

    def __init__(self, configuration_space: ConfigurationSpace) -> None:
        self._space = configuration_space
        self._log_sizes = {
            name: math.log(_size_of(name, parameter))
            for name, parameter in configuration_space.items()
        }

    @property
    def size(self) -> int | None:
        """How many configurations there are; None if some depend on others or are forbidden."""
        if self._space.conditions or self._space.forbidden_clauses:
            return None
        return math.prod(int(parameter.size) for parameter in self._space.values())

    def find(self, key: Any) -> tuple[Hashable, float]:
        if not isinstance(key, Mapping):
            raise TypeError(f"key must be a configuration, or a mapping of its values, got {key!r}")
        unknown = sorted(map(str, key.keys() - self._log_sizes.keys()))
        if unknown:
            raise ValueError(f"key must have the names of the space, got {unknown}")
        try:
            Configuration(self._space, values=dict(key)).check_valid_configuration()
        except (
            ActiveHyperparameterNotSetError,
            ForbiddenValueError,
            IllegalValueError,
            InactiveHyperparameterSetError,
        ) as error:
            raise ValueError(f"key must be a configuration of the space: {error}") from None
        path = sorted((name, token_of(value, name)) for name, value in key.items())
        return tuple(path), math.fsum(self._log_sizes[name] for name, _ in path)

    def key_of(self, code: Any) -> dict[str, Any]:
        return {name: value_from(value) for name, value in code}

    def describe(self) -> dict[str, Any]:
        return {"kind": "ConfigSpaceOf", "space": self._space.to_serialized_dict()}

    def __repr__(self) -> str:
        return f"space_of({self._space!r})"


def space_of(configuration_space: ConfigurationSpace) -> ConfigSpaceOf:
    """The space of a `ConfigurationSpace` of finitely many values, conditions included.

    Parameters
    ----------
    configuration_space : ConfigurationSpace
        Of categorical, ordinal and integer parameters and constants.

    Returns
    -------
    Space
        A key is a `Configuration`, or a mapping of its active parameters to values.  It costs the
        sum of ln(number of values) over these: a product along the path through the tree of
        conditions, which over all paths sums to 1.

    Raises
    ------
    TypeError
        No ConfigurationSpace.
    ValueError
        A parameter is continuous; the message has a line that would do.

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
    if not isinstance(configuration_space, ConfigurationSpace):
        raise TypeError(
            f"configuration_space must be a ConfigurationSpace, got {configuration_space!r}"
        )
    return ConfigSpaceOf(configuration_space)


def _size_of(name: str, parameter: Any) -> int:
    if math.isfinite(parameter.size):
        return int(parameter.size)
    low, high = getattr(parameter, "lower", 0.0), getattr(parameter, "upper", 1.0)
    values = "geomspace" if getattr(parameter, "log", False) else "linspace"
    raise ValueError(
        f"{name} must have finitely many values, got {parameter}: write "
        f'OrdinalHyperparameter("{name}", np.{values}({low:g}, {high:g}, 101).tolist())'
    )
