"""Values as tokens: equal for equal values, in every process.

Numbers are equal by value, whatever their type; True and False are no numbers; lists and tuples
are equal by what is in them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import quoted


def as_int(value: Any) -> int | None:
    """A whole number of any type as an int; None for anything else, booleans included."""
    if isinstance(value, (bool, np.bool_)) or not is_number(value):
        return None
    if isinstance(value, (float, np.floating)):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return int(value)


def as_float(value: Any) -> float:
    """A number as a float; infinity for an integer that is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def token_of(value: Any, name: str) -> Hashable:
    """The token of a value: equal for equal values, in any process.

    Strings and numbers are themselves; anything else is a tuple that begins with its kind.
    """
    try:
        return _token_of(value, name)
    except RecursionError:
        raise ValueError(f"{name} must not be nested so deep, or within itself") from None


def plain(value: Any) -> Any:
    """The value as Python's own: NumPy's numbers and strings, and a copy of every container."""
    kind = type(value)
    if kind in (str, int, float, bool):
        return value
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return kind(map(plain, value)) if kind in (list, tuple) else tuple(map(plain, value))
    return kind(map(plain, value)) if kind in (set, frozenset) else value


def _token_of(value: Any, name: str) -> Hashable:
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = plain(value)
    if value is None:
        return ("None",)
    if isinstance(value, enum.Enum):
        return ("name", _name_of(type(value), name), value.name)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}")
        # as text too, in a database, an integer is the same whatever its type
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return ("list", *(_token_of(one, name) for one in value))
    if isinstance(value, (set, frozenset)):
        return ("set", *sorted((_token_of(one, name) for one in value), key=repr))
    if isinstance(value, Mapping):
        items = ((_token_of(key, name), _token_of(one, name)) for key, one in value.items())
        return ("mapping", *sorted(items, key=repr))
    if isinstance(value, _Known):
        return value.token
    if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
        return ("name", _name_of(value, name))
    if hasattr(value, "get_params"):
        params = _token_of(value.get_params(deep=False), name)
        return ("object", _name_of(type(value), name), params)
    raise TypeError(
        f"{name} must be numbers, strings, None, or lists and mappings of them, got "
        f"{quoted(value)}: give it a name, and look the object up by that"
    )


def _name_of(thing: Any, name: str) -> str:
    if "<" in thing.__qualname__:  # a lambda, or what a call made: several have this name
        raise TypeError(f"{name} must be something that has a name of its own, got {thing!r}")
    return f"{thing.__module__}.{thing.__qualname__}"


class _Known:
    """A value that cannot be made from its description: an estimator, or a function."""

    def __init__(self, token: tuple[Any, ...]) -> None:
        self.token = token

    def __repr__(self) -> str:
        return f"<{self.token[1]}>"


def value_from(token: Any) -> Any:
    """The value of a token, or of a token as JSON has it."""
    match token:
        case ["None"]:
            return None
        case ["bool", one]:
            return bool(one)
        case ["list", *parts]:
            return tuple(map(value_from, parts))
        case ["set", *parts]:
            return frozenset(map(value_from, parts))
        case ["mapping", *items]:
            return {value_from(key): value_from(value) for key, value in items}
        case [*_]:
            return _Known(as_tuple(token))
    return token


def as_tuple(token: Any) -> Any:
    """A token as JSON has it, with tuples for its lists."""
    return tuple(map(as_tuple, token)) if isinstance(token, (list, tuple)) else token
