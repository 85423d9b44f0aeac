"""Finitely many values, of which a key has one: checked, found, and described as JSON."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sized
from functools import partial
from typing import Any

import numpy as np

from radabound_fast._checks import check_count
from radabound_fast.spaces.numbers import as_int, len_of
from radabound_fast.spaces.steps import Steps
from radabound_fast.spaces.tokens import plain, token_of, value_from

Finder = Callable[[Any], int | None]


def check_values(values: Any, name: str) -> Any:
    """The values of a space as a range, `Steps`, or a list of Python's own, with at least one."""
    n_values = None if isinstance(values, (float, np.floating)) else as_int(values)
    if n_values is not None:
        values = range(check_count(**{name: n_values}))
    if not isinstance(values, (range, Steps)):
        if isinstance(values, np.ndarray) and values.ndim == 1:
            values = values.tolist()
        if hint_for(values):
            raise TypeError(
                f"{name} must be a sequence of values, got {values!r}{hint_for(values)}"
            )
        if hasattr(values, "rvs"):
            raise TypeError(
                f"{name} must have finitely many values, got the distribution {values!r}: "
                "list them, give spaces.Steps(low, high, step), or draw points beforehand: "
                "spaces.PointSample"
            )
        sequence = isinstance(values, Sized) and isinstance(values, Iterable)
        if not sequence or isinstance(values, (str, bytes, Mapping, set, frozenset, np.ndarray)):
            raise TypeError(f"{name} must be a sequence of values, got {values!r}")
        values = [plain(value) for value in values]
    if len_of(values) == 0:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    return values


# the tools whose search spaces are translated, and by which module of integrations
_TOOLS = {
    "optuna": "optuna",
    "sklearn": "sklearn",
    "ConfigSpace": "configspace",
    "ray": "ray",
    "flaml": "ray",
}
# how others draw a point
_DRAWS = {
    "hyperopt": "hyperopt.pyll.stochastic.sample(space, rng)",
    "nevergrad": "parametrization.sample().value",
}


def hint_for(declared: Any, function: str = "space_of") -> str:
    """What to write instead of an object with which a tool declares its spaces."""
    tool = type(declared).__module__.partition(".")[0]
    if tool in _DRAWS:
        return f": draw points beforehand, spaces.PointSample(lambda rng: {_DRAWS[tool]}, 10_000)"
    if tool not in _TOOLS:
        return ""
    if tool == "sklearn":
        function = "space_of"  # which draws what the search itself will draw
    return f": see radabound_fast.integrations.{_TOOLS[tool]}.{function}"


def finder_of(values: Any, name: str) -> Finder:
    """A function that returns the place of a value among these, or None."""
    if isinstance(values, Steps):
        return values.place
    if isinstance(values, range):
        return partial(_place_in_range, values)
    place_of: dict[Hashable, int] = {}
    for place, value in enumerate(values):
        first = place_of.setdefault(token_of(value, name), place)
        if first != place:
            raise ValueError(
                f"{name} must have different values, got {value!r} at {first} and at {place}"
            )
    return partial(_place_in_table, place_of, name)


def _place_in_range(values: range, value: Any) -> int | None:
    number = value if type(value) is int else as_int(value)
    return values.index(number) if number is not None and number in values else None


def _place_in_table(place_of: dict[Hashable, int], name: str, value: Any) -> int | None:
    simple = type(value) in (str, int, float)
    return place_of.get(value if simple else token_of(value, name))


def described(values: Any) -> Any:
    """A sequence of values as JSON."""
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    if isinstance(values, Steps):
        return {"steps": [values.low, values.high, values.step]}
    return {"list": [_as_json(token_of(value, "value")) for value in values]}


def _as_json(token: Any) -> Any:
    return [_as_json(part) for part in token] if isinstance(token, tuple) else token


def values_from(description: dict[str, Any]) -> Any:
    """The sequence that `described` returned this description of."""
    ((kind, values),) = description.items()
    if kind == "list":
        return [value_from(value) for value in values]
    return range(*values) if kind == "range" else Steps(*values)
