"""The nearest of some points: parameters on scales of their own, categories, conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.tokens import as_float, token_of

Path = tuple[Any, ...]

# codes of what is no category
_NUMBER, _ABSENT, _UNKNOWN = -1, -2, -3
_ABSENT_VALUE = object()  # of a parameter that a point does not have


class Points:
    """Finds the nearest of some points, at least one: see `Choice.nearest`."""

    def __init__(self, points: list[Any]) -> None:
        listed = [dict(_parameters(point)) for point in points]
        paths = dict.fromkeys(path for point in listed for path in point)
        self._n_points = len(points)
        self._columns = {
            path: _Column([point.get(path, _ABSENT_VALUE) for point in listed]) for path in paths
        }
        # where all points have the same parameters, others are a mistake
        self._is_flat = all(len(point) == len(paths) for point in listed)

    def nearest(self, key: Any) -> int:
        """The place of the nearest point, the first of equals."""
        parameters = dict(_parameters(key))
        known = parameters.keys() & self._columns.keys()
        differ = parameters.keys() ^ self._columns.keys()
        if differ if self._is_flat else not known:
            raise ValueError(
                f"params must have the names {_names(self._columns)}, got {_names(parameters)}"
            )
        squares = np.zeros(self._n_points)
        for path, column in self._columns.items():
            squares += column.squares(parameters.get(path, _ABSENT_VALUE))
        return int(squares.argmin())


class _Column:
    """One parameter of all points."""

    def __init__(self, values: list[Any]) -> None:
        self._codes = np.full(len(values), _NUMBER)
        self._category: dict[Any, int] = {}
        numbers = np.zeros(len(values))
        for row, value in enumerate(values):
            if _is_real(value):
                numbers[row] = as_float(value)
            elif value is _ABSENT_VALUE:
                self._codes[row] = _ABSENT
            else:
                token = token_of(value, "params")
                self._codes[row] = self._category.setdefault(token, len(self._category))
        self._is_number = self._codes == _NUMBER
        distinct, counts = np.unique(numbers[self._is_number], return_counts=True)
        # the share of the points below a value, and half of those that have it
        self._values, self._shares = distinct, (counts.cumsum() - counts / 2) / max(1, counts.sum())
        self._scaled = np.interp(numbers, distinct, self._shares) if len(distinct) else numbers

    def squares(self, value: Any) -> Any:
        """The squared distance of every point from a value, by this parameter alone."""
        if _is_real(value):
            number = as_float(value)
            if not math.isfinite(number):
                raise ValueError(f"params must be finite, got {quoted(value)}")
            if not len(self._values):
                return 1.0
            place = np.interp(number, self._values, self._shares)
            return np.where(self._is_number, (self._scaled - place) ** 2, 1.0)
        if value is _ABSENT_VALUE:
            return self._codes != _ABSENT
        return self._codes != self._category.get(token_of(value, "params"), _UNKNOWN)


def _is_real(value: Any) -> bool:
    return is_number(value) and not isinstance(value, (bool, np.bool_))


def _parameters(key: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every parameter of a key with its path: names, and places in lists."""
    if isinstance(key, Mapping):
        parts: Iterable[tuple[Any, Any]] = key.items()
    elif isinstance(key, (list, tuple)) or isinstance(key, np.ndarray) and key.ndim:
        parts = enumerate(key)
    else:
        yield path, key
        return
    for name, value in parts:
        yield from _parameters(value, (*path, name))


def _names(paths: Iterable[Path]) -> str:
    """Names as in a message: those of nested mappings are joined by "/"."""
    return quoted(["/".join(map(str, path)) for path in paths])
