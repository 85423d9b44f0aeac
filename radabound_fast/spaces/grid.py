"""A value for every name, as in scikit-learn's `ParameterGrid`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from radabound_fast._checks import check_integer
from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.messages import outside, quoted, shown
from radabound_fast.spaces.space import Found, Space


class Grid(Space):
    """A value for every name; all combinations have the same weight.

    Parameters
    ----------
    grid : mapping, or sequence of mappings
        Names, and for each the values as `Choice` takes them: the argument of scikit-learn's
        `ParameterGrid`.  With several mappings, a key belongs to one of them.

    Raises
    ------
    TypeError, ValueError
        Values that `Choice` rejects; a name that is not a string; an empty grid.

    Notes
    -----
    A key is a mapping of exactly these names.  ``grid[i]`` and iteration go through the keys in
    the order of `ParameterGrid`: the last name in the alphabet changes fastest.

    Examples
    --------
    >>> from radabound_fast.spaces import Steps
    >>> grid = Grid({"depth": range(1, 21), "rate": Steps(0.01, 0.5, 0.01), "loss": ["log", "exp"]})
    >>> grid.size, grid[0]
    (2000, {'depth': 1, 'loss': 'log', 'rate': 0.01})
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
        return [{choice.name: choice.values for choice in part.choices} for part in self._parts]

    def find(self, key: Any) -> Found:
        if not isinstance(key, Mapping):
            raise TypeError(f"key must be a mapping of names to values, got {quoted(key)}")
        first = 0
        for part in self._parts:
            if part.names == key.keys():
                place = part.place(key)
                if place is not None:
                    return first + place, self._nats
            first += part.size
        raise self._outside(key)

    def _outside(self, key: Mapping[str, Any]) -> ValueError:
        named = [part for part in self._parts if part.names == key.keys()]
        if not named:
            names = " or ".join(str(sorted(part.names)) for part in self._parts)
            return ValueError(
                f"key must have the names {names}, got {quoted(sorted(map(str, key)))}"
            )
        if len(named) > 1:
            return ValueError(f"key must be in one of {len(named)} grids, got {quoted(dict(key))}")
        wrong = next(c for c in named[0].choices if key[c.name] not in c)
        return outside(wrong.name, key[wrong.name], wrong.values)

    def key_of(self, code: Any) -> dict[str, Any]:
        for part in self._parts:
            if code < part.size:
                return part.key(code)
            code -= part.size
        raise IndexError("place must be below the size of the grid")

    def __getitem__(self, place: int) -> dict[str, Any]:
        place = check_integer(place=place)
        return self.key_of(place + self._size if place < 0 else place)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[place] for place in range(self._size))

    def describe(self) -> dict[str, Any]:
        grids = [[choice.describe() for choice in part.choices] for part in self._parts]
        return {"kind": "Grid", "grids": grids}

    def __repr__(self) -> str:
        grids = [
            "{" + ", ".join(f"{c.name!r}: {shown(c.values)}" for c in part.choices) + "}"
            for part in self._parts
        ]
        return f"Grid({grids[0] if len(grids) == 1 else '[' + ', '.join(grids) + ']'})"


class _GridPart:
    """One mapping of a `Grid`."""

    def __init__(self, grid: Mapping[str, Any]) -> None:
        if not isinstance(grid, Mapping):
            raise TypeError(f"space must be a mapping of names to values, got {grid!r}")
        for name in grid:
            if not isinstance(name, str):
                raise TypeError(f"space must have names that are strings, got {name!r}")
        self.choices = [Choice(grid[name], name=name) for name in sorted(grid)]
        self.names = set(grid)
        self.size = math.prod(choice.size for choice in self.choices)
        self._finders = [(c.name, c.finder, c.size) for c in self.choices]

    def place(self, key: Mapping[str, Any]) -> int | None:
        place = 0
        for name, finder, size in self._finders:
            digit = finder(key[name])
            if digit is None:
                return None
            place = place * size + digit
        return place

    def key(self, place: int) -> dict[str, Any]:
        values = []
        for choice in reversed(self.choices):
            place, digit = divmod(place, choice.size)
            values.append((choice.name, choice.values[digit]))
        return dict(reversed(values))
