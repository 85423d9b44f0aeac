"""Finitely many values, of which a key has one: checked, searched, and described as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from decimal import Decimal
from functools import partial
from typing import Any, overload

import numpy as np

from radabound_fast._checks import check_count, check_positive, check_real
from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.tokens import as_float, as_int, plain, token_of, value_from

Finder = Callable[[Any], int | None]

_FEW = 6  # values that a message shows
# how far off its place a value of `Steps` may be, in steps: sums and products are rounded
STEP_TOLERANCE = 1e-6
# a step has at least so many units of the last digit of the largest value
_ULPS_IN_A_STEP = 16


class Steps(Sequence[float]):
    """The floats low, low + step, ... up to high: a finite stand-in for an interval.

    Parameters
    ----------
    low, high : float
        The first value, and the limit that the last one does not exceed.
    step : float
        The distance of two neighbours, above 0.

    Raises
    ------
    TypeError, ValueError
        An argument of the wrong type, not finite, or ``high < low``.

    Notes
    -----
    A value within a millionth of a step of a member counts as that member, since products and sums
    are rounded: ``3 * 0.1`` is the 0.3 of ``Steps(0, 1, 0.1)``.  Train with the member, which
    `Space.nearest` returns; members are decimals, as `low` and `step` are.

    Examples
    --------
    >>> steps = Steps(0.0, 1.0, 0.1)
    >>> len(steps), steps.index(3 * 0.1), steps[3]
    (11, 3, 0.3)
    """

    def __init__(self, low: float, high: float, step: float) -> None:
        self.low, self.step = check_real(low=low), check_positive(step=step)
        self.high = check_real(high=high)
        if self.high < self.low:
            raise ValueError(f"high must be at least low = {self.low!r}, got {self.high!r}")
        n_steps = (self.high - self.low) / self.step
        if not n_steps < 2**53:
            raise ValueError(f"step must leave fewer than 2**53 values, got {self.step!r}")
        rounding = math.ulp(max(abs(self.low), abs(self.high)))
        if self.step < _ULPS_IN_A_STEP * rounding:
            raise ValueError(
                f"step must be at least {_ULPS_IN_A_STEP * rounding!r}, so that values differ by "
                f"more than rounding, got {self.step!r}"
            )
        self._tolerance = max(STEP_TOLERANCE, 4 * rounding / self.step)
        self._length = math.floor(n_steps + self._tolerance) + 1
        decimals = (Decimal(repr(one)).normalize().as_tuple() for one in (self.low, self.step))
        self._n_decimals = max(0, *(-int(one.exponent) for one in decimals))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> list[float]: ...
    def __getitem__(self, index: int | slice) -> float | list[float]:
        places = range(self._length)[index]
        if isinstance(places, int):
            return min(round(self.low + places * self.step, self._n_decimals), self.high)
        return [self[place] for place in places]

    def place(self, value: Any) -> int | None:
        """The place of a value; None if it is no member."""
        if isinstance(value, (bool, np.bool_)) or not is_number(value):
            return None
        position = (as_float(value) - self.low) / self.step
        if not -1 < position < self._length:  # also for nan
            return None
        place = round(position)
        near = abs(position - place) <= self._tolerance and 0 <= place < self._length
        return place if near else None

    def index(self, value: Any, *_: Any) -> int:
        """The place of a value; ValueError if it is no member."""
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
    """The values of a space as a range, `Steps`, or a list of Python's own, with at least one."""
    n_values = None if isinstance(values, (float, np.floating)) else as_int(values)
    if n_values is not None:
        values = range(check_count(**{name: n_values}))
    if not isinstance(values, (range, Steps)):
        if isinstance(values, np.ndarray) and values.ndim == 1:
            values = values.tolist()
        hint = hint_for(values)
        if hasattr(values, "rvs") and not hint:
            raise TypeError(
                f"{name} must have finitely many values, got the distribution {values!r}: "
                "list them, give spaces.Steps(low, high, step), or draw points beforehand: "
                "spaces.PointSample"
            )
        sequence = isinstance(values, Sized) and isinstance(values, Iterable)
        others = (str, bytes, Mapping, set, frozenset, np.ndarray)
        if hint or not sequence or isinstance(values, others):
            raise TypeError(f"{name} must be a sequence of values, got {values!r}{hint}")
        values = [plain(value) for value in values]
    if len_of(values) == 0:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    return values


# the tools whose search spaces are translated, and by which module of integrations
_TOOLS = {name: name.lower() for name in ("optuna", "sklearn", "ConfigSpace", "ray")}
_TOOLS["flaml"] = "ray"
# how others draw a point
_DRAWS = {
    "hyperopt": "hyperopt.pyll.stochastic.sample(space, rng)",
    "nevergrad": "parametrization.sample().value",
}


def hint_for(declared: Any, function: str = "space_of") -> str:
    """What to write instead of an object with which a tool declares its spaces; else nothing."""
    tool = type(declared).__module__.partition(".")[0]
    if tool in _DRAWS:
        return f": draw points beforehand, spaces.PointSample(lambda rng: {_DRAWS[tool]}, 10_000)"
    if tool == "sklearn":
        function = "space_of"  # which draws what the search itself will draw
    known = tool in _TOOLS
    return f": see radabound_fast.integrations.{_TOOLS[tool]}.{function}" if known else ""


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


def nearest_of(number: float, values: Any) -> Any:
    """The nearest number among a range, `Steps` or a list, the first of equals; None: no number."""
    if isinstance(values, list):
        numbers = [one for one in values if is_number(one) and not isinstance(one, bool)]
        numbers = [one for one in numbers if math.isfinite(as_float(one))]
        return min(numbers, key=lambda one: abs(one - number), default=None)
    try:
        place = math.ceil((number - values[0]) / values.step - 0.5)
    except OverflowError:  # integers that no float holds
        return None
    return values[min(max(place, 0), len_of(values) - 1)]


def len_of(values: Any) -> int:
    """The number of values; that of a range may be more than `len` can return."""
    if isinstance(values, range):
        return max(0, -((values.start - values.stop) // values.step))
    return len(values)


def outside(name: str, value: Any, values: Any) -> ValueError:
    """The error for a value that is not one of these, which names the nearest if there is one."""
    hint = ""
    if isinstance(value, (bool, np.bool_)):
        hint = "; True and False are no numbers here"
    elif is_number(value) and math.isfinite(as_float(value)):
        nearest = nearest_of(float(value), values)
        hint = "" if nearest is None else f"; the nearest is {nearest!r}"
    return ValueError(f"{name} must be one of {shown(values)}, got {quoted(value)}{hint}")


def shown(values: Any) -> str:
    """Values as they appear in a message: the first few of a list."""
    if not isinstance(values, list):
        return repr(values)
    first = ", ".join(map(repr, values[:_FEW]))
    rest = f", ... {len(values)} values" if len(values) > _FEW else ""
    return f"[{first}{rest}]"
