"""A value for every name, as in scikit-learn's `ParameterGrid`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from radabound_fast._checks import check_integer
from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.nearest import Points
from radabound_fast.spaces.space import ORDER, Coded, Space
from radabound_fast.spaces.tokens import as_int
from radabound_fast.spaces.values import outside, shown


class Grid(Space):
    """A value for every name; all combinations have the same weight.

    Parameters
    ----------
    grid : mapping, or sequence of mappings
        Names, and for each the values as `Choice` takes a sequence of them: the argument of
        scikit-learn's `ParameterGrid`.  With several mappings, a key belongs to one of them.

    Raises
    ------
    TypeError, ValueError
        Values that `Choice` rejects; a name that is not a string; an empty grid.

    Notes
    -----
    A key is a mapping of exactly these names, in the order in which they were declared.
    ``grid[i]`` and iteration go through the keys in the order of `ParameterGrid`: the last name in
    the alphabet changes fastest.

    Examples
    --------
    >>> from radabound_fast.spaces import Steps
    >>> grid = Grid({"depth": range(1, 21), "rate": Steps(0.01, 0.5, 0.01), "loss": ["log", "exp"]})
    >>> grid.size, grid[0]
    (2000, {'depth': 1, 'rate': 0.01, 'loss': 'log'})
    >>> round(grid.nats({"depth": 3, "rate": 0.25, "loss": "exp"}), 4)
    7.6009
    """

    def __init__(self, grid: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        grids = [grid] if isinstance(grid, Mapping) else list(grid)
        if not grids or grids == [{}]:
            raise ValueError(f"space must not be empty, got {grid!r}")
        self._parts = [_GridPart(part) for part in grids]
        self._size = sum(part.size for part in self._parts)
        self._nats = math.log(self._size)

    @property
    def size(self) -> int:
        return self._size

    _n_codes = size

    @property
    def grids(self) -> list[dict[str, Any]]:
        """The mappings of names to values."""
        return [{name: c.values for name, c in part.choices.items()} for part in self._parts]

    def find(self, key: Any) -> Coded:
        _check_mapping(key, "key")
        first = 0
        for part in self._parts:
            if part.choices.keys() == key.keys():
                place = part.place(key)
                if place is not None:
                    return first + place, self._nats
            first += part.size
        named = self._named(key, "key")
        if len(named) > 1:
            raise ValueError(f"key must be in one of {len(named)} grids, got {quoted(dict(key))}")
        wrong = next(c for name, c in named[0].choices.items() if key[name] not in c)
        raise outside(wrong.name, key[wrong.name], wrong.values)

    def _named(self, key: Mapping[str, Any], what: str) -> list[_GridPart]:
        """The mappings that have the names of a key; ValueError if none has."""
        named = [part for part in self._parts if part.choices.keys() == key.keys()]
        if not named:
            names = " or ".join(str(sorted(part.choices)) for part in self._parts)
            raise ValueError(
                f"{what} must have the names {names}, got {quoted(sorted(map(str, key)))}"
            )
        return named

    def key_of(self, code: Any) -> dict[str, Any]:
        for part in self._parts:
            if code < part.size:
                return part.key(code)
            code -= part.size
        raise IndexError("place must be below the size of the grid")

    def nearest(self, params: Any) -> dict[str, Any]:
        """Return the key whose every number is nearest to that of `params`, a mapping.

        With several mappings, the nearest of what each has, as `Choice.nearest` measures it.
        TypeError or ValueError: it has other names, or a value that is no number and not in the
        grid.

        >>> grid = Grid({"depth": range(1, 21), "loss": ["log", "exp"]})
        >>> grid.nearest({"depth": 3.4, "loss": "log"})
        {'depth': 3, 'loss': 'log'}
        """
        _check_mapping(params, "params")
        keys, errors = [], []
        for part in self._named(params, "params"):
            try:
                keys.append({name: c.nearest(params[name]) for name, c in part.choices.items()})
            except (TypeError, ValueError) as error:
                errors.append(error)
        if not keys:
            raise errors[0]
        return keys[0] if len(keys) == 1 else keys[Points(keys).nearest(params)]

    def __getitem__(self, place: int) -> dict[str, Any]:
        return self.key_of(range(self._size)[check_integer(place=place)])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.key_of, range(self._size))

    def describe(self) -> dict[str, Any]:
        grids = [
            {ORDER: list(part.choices), "values": [c.describe() for c in part.digits]}
            for part in self._parts
        ]
        return {"kind": "Grid", "grids": grids}

    def __repr__(self) -> str:
        grids = [
            "{" + ", ".join(f"{name!r}: {shown(values)}" for name, values in grid.items()) + "}"
            for grid in self.grids
        ]
        return f"Grid({grids[0] if len(grids) == 1 else '[' + ', '.join(grids) + ']'})"


def _check_mapping(key: Any, what: str) -> None:
    if not isinstance(key, Mapping):
        raise TypeError(f"{what} must be a mapping of names to values, got {quoted(key)}")


class _GridPart:
    """One mapping of a `Grid`."""

    def __init__(self, grid: Mapping[str, Any]) -> None:
        if not isinstance(grid, Mapping):
            raise TypeError(f"space must be a mapping of names to values, got {grid!r}")
        for name, values in grid.items():
            if not isinstance(name, str):
                raise TypeError(f"space must have names that are strings, got {name!r}")
            if as_int(values) is not None:
                raise TypeError(
                    f"{name} must be a sequence of values, got {values!r}: [{values!r}] for one, "
                    f"range({values!r}) for many; a list of keys is spaces.Choice(list)"
                )
        self.choices = {name: Choice(values, name=name) for name, values in grid.items()}
        # of the place of a key, the last in the alphabet counting least
        self.digits = [self.choices[name] for name in sorted(grid)]
        self.size = math.prod(choice.size for choice in self.digits)
        self._finders = [(c.name, c.finder, c.size) for c in self.digits]

    def place(self, key: Mapping[str, Any]) -> int | None:
        place = 0
        for name, finder, size in self._finders:
            digit = finder(key[name])
            if digit is None:
                return None
            place = place * size + digit
        return place

    def key(self, place: int) -> dict[str, Any]:
        values = {}
        for choice in reversed(self.digits):
            place, digit = divmod(place, choice.size)
            values[choice.name] = choice.key_of(digit)
        return {name: values[name] for name in self.choices}
