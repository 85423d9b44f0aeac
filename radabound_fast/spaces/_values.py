"""Values that a key may have: finitely many of them, and what makes two of them equal.

Numbers are equal by value, whatever their type; True and False are no numbers; lists and tuples
are equal by what is in them.  A value that is no number and no string is known by a token, which
is the same in every process.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from functools import partial
from typing import Any, overload

import numpy as np

from radabound_fast._checks import check_count, check_positive, check_real
from radabound_fast.rows.packing import is_number

Finder = Callable[[Any], int | None]

# how far off its place a value of `Steps` may be, in steps: sums and products are rounded
STEP_TOLERANCE = 1e-6
_FEW = 6  # values that a message shows
_MOST_QUOTED = 200  # characters of one


class Steps(Sequence[float]):
    """The floats low, low + step, ... up to high: a finite stand-in for an interval.

    Parameters
    ----------
    low, high : float
        The first, and what the last does not exceed.
    step : float
        Above 0.

    Raises
    ------
    TypeError, ValueError
        An argument of the wrong type, not finite, or ``high < low``.

    Notes
    -----
    A value counts as the member that it is within a millionth of a step of, since products and
    sums are rounded: ``3 * 0.1`` is the 0.3 of ``Steps(0, 1, 0.1)``.

    Examples
    --------
    >>> len(Steps(0.0, 1.0, 0.1)), Steps(0.0, 1.0, 0.1).index(3 * 0.1)
    (11, 3)
    """

    def __init__(self, low: float, high: float, step: float) -> None:
        self.low, self.step = check_real(low=low), check_positive(step=step)
        self.high = check_real(high=high)
        if self.high < self.low:
            raise ValueError(f"high must be at least low = {self.low!r}, got {self.high!r}")
        n_steps = (self.high - self.low) / self.step
        if not n_steps < 2**53:
            raise ValueError(f"step must leave fewer than 2**53 values, got {self.step!r}")
        largest = max(abs(self.low), abs(self.high))
        self._tolerance = min(0.25, max(STEP_TOLERANCE, 4 * math.ulp(largest) / self.step))
        self._length = math.floor(n_steps + self._tolerance) + 1

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...
    def __getitem__(self, index: int | slice) -> float | list[float]:
        places = range(self._length)[index]
        if isinstance(places, int):
            return min(self.low + places * self.step, self.high)
        return [self[place] for place in places]

    def place(self, value: Any) -> int | None:
        """Where the value stands; None: nowhere."""
        if isinstance(value, (bool, np.bool_)) or not is_number(value):
            return None
        position = (_as_float(value) - self.low) / self.step
        if not -1 < position < self._length:  # also for nan
            return None
        place = round(position)
        near = abs(position - place) <= self._tolerance and 0 <= place < self._length
        return place if near else None

    def index(self, value: Any, *_: Any) -> int:
        """Where the value stands; ValueError: nowhere."""
        place = self.place(value)
        if place is None:
            raise outside("value", value, self)
        return place

    def __contains__(self, value: Any) -> bool:
        return self.place(value) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steps) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Steps({self.low!r}, {self.high!r}, {self.step!r})"


def check_values(values: Any, name: str) -> Any:
    """A range, `Steps`, or a list of at least one value."""
    n_values = None if isinstance(values, (float, np.floating)) else as_int(values)
    if n_values is not None:
        values = range(check_count(**{name: n_values}))
    if not isinstance(values, (range, Steps)):
        if isinstance(values, np.ndarray) and values.ndim == 1:
            values = values.tolist()
        if hasattr(values, "rvs") and not hint_for(values):
            raise TypeError(
                f"{name} must have finitely many values, got the distribution {values!r}: "
                "list them, or give spaces.Steps(low, high, step)"
            )
        sequence = isinstance(values, Sized) and isinstance(values, Iterable)
        if not sequence or isinstance(values, (str, bytes, Mapping, set, frozenset, np.ndarray)):
            raise TypeError(
                f"{name} must be a sequence of values, got {values!r}{hint_for(values)}"
            )
        values = list(values)
    if len_of(values) == 0:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    return values


# whose search spaces have a function that makes one of ours
_TOOLS = {"optuna", "sklearn", "ConfigSpace", "ray"}


def hint_for(declared: Any) -> str:
    """What to write instead, for what a tool declares its spaces with."""
    tool = type(declared).__module__.partition(".")[0]
    if tool not in _TOOLS:
        return ""
    return f": see radabound_fast.integrations.{tool.lower()}.space_of"


def len_of(values: Any) -> int:
    """The length, which of a range may be more than `len` can say."""
    if isinstance(values, range):
        return max(0, -((values.start - values.stop) // values.step))
    return len(values)


def finder_of(values: Any, name: str) -> Finder:
    """Where a value stands among these, or None."""
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


def outside(name: str, value: Any, values: Any) -> ValueError:
    """The error for a value that is not among these, with the nearest if there is one."""
    hint = ""
    if isinstance(value, (bool, np.bool_)):
        hint = "; True and False are no numbers here"
    elif is_number(value) and math.isfinite(_as_float(value)):
        nearest = _nearest(float(value), values)
        hint = "" if nearest is None else f"; the nearest is {nearest!r}"
    return ValueError(f"{name} must be one of {shown(values)}, got {quoted(value)}{hint}")


def _as_float(value: Any) -> float:
    """An integer that is too large for it is an infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _nearest(value: float, values: Any) -> Any:
    if isinstance(values, list):
        numbers = [one for one in values if is_number(one) and not isinstance(one, bool)]
        numbers = [one for one in numbers if math.isfinite(_as_float(one))]
        return min(numbers, key=lambda one: abs(one - value), default=None)
    step = values.step
    first = values.low if isinstance(values, Steps) else values.start
    return values[min(max(round((value - first) / step), 0), len_of(values) - 1)]


def quoted(value: Any) -> str:
    """A key, or a part of one, in a message: as it is, but of a line or two at most."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # too deep; or an integer of thousands of digits
        return f"a value of type {type(value).__name__}"
    return shortened(text)


def shortened(text: str) -> str:
    """Of a line or two at most."""
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 3]}..."


def shown(values: Any) -> str:
    if not isinstance(values, list):
        return repr(values)
    shown = ", ".join(map(repr, values[:_FEW]))
    rest = f", ... {len(values)} values" if len(values) > _FEW else ""
    return f"[{shown}{rest}]"


def token_of(value: Any, name: str) -> Hashable:
    """The value in one form: equal for equal values, of any process.

    Strings and numbers are themselves; anything else is a tuple that begins with its kind.
    """
    try:
        return _token_of(value, name)
    except RecursionError:
        raise ValueError(f"{name} must not be nested so deep, or within itself") from None


def _token_of(value: Any, name: str) -> Hashable:
    if isinstance(value, np.generic) and not isinstance(value, (str, bytes)):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None:
        return ("None",)
    if isinstance(value, enum.Enum):
        return ("name", _name_of(type(value), name), value.name)
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
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
    """What stands in a description and cannot be made from it: an estimator, a function."""

    def __init__(self, token: tuple[Any, ...]) -> None:
        self.token = token

    def __repr__(self) -> str:
        return f"<{self.token[1]}>"


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
    ((kind, values),) = description.items()
    if kind == "list":
        return [value_from(value) for value in values]
    return range(*values) if kind == "range" else Steps(*values)


def value_from(token: Any) -> Any:
    """A value from its token, or from that as JSON."""
    if not isinstance(token, (list, tuple)):
        return token
    kind, *parts = token
    if kind == "None":
        return None
    if kind == "bool":
        return bool(parts[0])
    if kind == "list":
        return tuple(value_from(part) for part in parts)
    if kind == "set":
        return frozenset(value_from(part) for part in parts)
    if kind == "mapping":
        return {value_from(key): value_from(value) for key, value in parts}
    return _Known(as_tuple(token))


def as_tuple(token: Any) -> Any:
    return tuple(map(as_tuple, token)) if isinstance(token, (list, tuple)) else token


def as_int(value: Any) -> int | None:
    """A whole number of any type; None for anything else, booleans included."""
    if isinstance(value, (bool, np.bool_)) or not is_number(value):
        return None
    if isinstance(value, (float, np.floating)):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return int(value)
