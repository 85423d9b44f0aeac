"""One of some values: a parameter, what was chosen by its score, or an item of an order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count
from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.nearest import Points
from radabound_fast.spaces.space import INT64, Coded, Codes, Space
from radabound_fast.spaces.tokens import as_float, as_int, plain
from radabound_fast.spaces.values import (
    check_values,
    described,
    finder_of,
    len_of,
    nearest_of,
    outside,
    shown,
)


class Choice(Space):
    """One of finitely many values, all of the same weight.

    Parameters
    ----------
    values : int or sequence
        n values, all different: numbers, strings, booleans, None, tuples, lists or mappings of
        such, classes and functions by their names, or objects with ``get_params``, as
        scikit-learn's estimators.  A range, or `Steps`, is never written out.  An int n is
        ``range(n)``.
    name : str, default "key"
        The name in error messages.

    Raises
    ------
    TypeError, ValueError
        Not a finite sequence; empty; a value that is not finite, occurs twice, or has no form by
        which another process would recognize it.

    Notes
    -----
    Numbers are equal by value, whatever their type: 1, 1.0 and ``np.int64(1)``.  True is not 1:
    a key that is True where 1 was declared is a mistake.  Floats are compared exactly; `Steps`
    forgives rounding.  NumPy's numbers and strings among the values become Python's own.

    Examples
    --------
    >>> depth = Choice([2, 4, 8, None])
    >>> round(depth.nats(8), 4), 3 in depth
    (1.3863, False)
    """

    def __init__(self, values: Any, *, name: str = "key") -> None:
        self.name = name
        self.values: Any = check_values(values, name)
        self.finder = finder_of(self.values, name)
        self._nats = math.log(len_of(self.values))
        self._points: Points | None = None  # made when the nearest is asked for

    @property
    def size(self) -> int:
        return len_of(self.values)

    _n_codes = size

    def place(self, key: Any) -> int:
        """The place of a key among the values; ValueError if it is none of them."""
        place = self.finder(key)
        if place is None:
            raise outside(self.name, key, self.values)
        return place

    def find(self, key: Any) -> Coded:
        return self.place(key), self._nats

    def find_many(self, keys: Any) -> tuple[Codes, NDArray[np.float64]]:
        values = self.values
        # of a list NumPy would take True for 1
        mixed = isinstance(keys, (list, tuple)) and set(map(type, keys)) != {int}
        if not mixed and isinstance(values, range) and values.step == 1 and values.start >= -INT64:
            wanted = np.asarray(keys)
            if values.stop <= INT64 and wanted.dtype.kind in "iu" and wanted.ndim == 1:
                missing = (wanted < values.start) | (wanted >= values.stop)
                if missing.any():
                    raise outside(self.name, int(wanted[missing.argmax()]), values)
                # a copy: the keys are the caller's, who may change them
                places = wanted.astype(np.int64) - values.start
                return places, np.broadcast_to(self._nats, len(places))
        return super().find_many(keys)

    def key_of(self, code: Any) -> Any:
        value = self.values[code]
        # a copy, which whoever gets it may change
        return plain(value) if isinstance(self.values, list) else value

    def nearest(self, params: Any) -> Any:
        """Return the value that is nearest to a number, or to a configuration.

        Of numbers it is the nearest.  Of mappings, nested mappings and lists it is the one with the
        least sum of squares over the parameters, the first of equals.  Where both have a number,
        its square is that of the difference on the parameter's own scale: a number stands at the
        share of the values' numbers that are less, counting half of those that are equal, so that a
        parameter that was drawn evenly on a logarithmic scale is measured on it.  Else it is 0 for
        equal categories, and for a parameter that both lack, and 1 for others.  Of anything else it
        is the value that equals it.

        TypeError or ValueError: `params` has other parameters than the values, is not finite, or is
        no number and equals none.

        >>> space = Choice([{"C": 0.01, "kernel": "rbf"}, {"C": 1, "kernel": "poly"}])
        >>> space.nearest({"C": 0.5, "kernel": "poly"}), Choice([1, 2, 4]).nearest(2.9)
        ({'C': 1, 'kernel': 'poly'}, 2)
        """
        params = plain(params)
        if isinstance(params, (Mapping, list, tuple)) and isinstance(self.values, list):
            self._points = self._points or Points(self.values)
            return self.key_of(self._points.nearest(params))
        if is_number(params) and not isinstance(params, bool):
            number = as_float(params)
            nearest = nearest_of(number, self.values) if math.isfinite(number) else None
            if nearest is not None:
                return nearest
        return super().nearest(params)

    def __getitem__(self, place: int) -> Any:
        return self.key_of(place)

    def __iter__(self) -> Iterator[Any]:
        return map(plain, self.values)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Choice", "name": self.name, "values": described(self.values)}

    def __repr__(self) -> str:
        return f"Choice({shown(self.values)})"


def epoch_of(n_epochs: int) -> Choice:
    """The space of an epoch that was chosen by its score: 0 to n_epochs - 1, ln(n_epochs) nats.

    Parameters
    ----------
    n_epochs : int
        At least 1; rounds of boosting are epochs too.

    Examples
    --------
    >>> from radabound_fast.spaces import Grid
    >>> space = Grid({"depth": [2, 4, 8]}) * epoch_of(100)  # key=({"depth": 4}, 17)
    >>> ({"depth": 4}, 17) in space, ({"depth": 4}, 100) in space
    (True, False)
    """
    return Choice(check_count(n_epochs=n_epochs), name="epoch")


def threshold_of(thresholds: Any) -> Choice:
    """The space of a threshold that was chosen by its score on the holdout: ln(their number) nats.

    Parameters
    ----------
    thresholds : int or sequence of float
        The grid, fixed beforehand: the thresholds, or their number (the keys are then 0, 1, ...).

    Examples
    --------
    >>> from radabound_fast.spaces import Steps
    >>> round(threshold_of(Steps(0.0, 1.0, 0.01)).nats(0.35), 4)
    4.6151
    """
    return Choice(thresholds, name="threshold")


class InOrder(Space):
    """Keys in an order that was fixed beforehand: the k-th has the weight 1 / (k(k+1)).

    Parameters
    ----------
    items : sequence, optional
        The keys, in order, as `Choice` takes them: for example configurations by their rank in
        cross-validation.  None: the keys are 1, 2, 3, ... without end.

    Raises
    ------
    TypeError, ValueError
        Items that `Choice` rejects.

    Examples
    --------
    >>> [round(InOrder().nats(k), 2) for k in (1, 2, 10, 1000)]
    [0.69, 1.79, 4.7, 13.82]
    """

    def __init__(self, items: Any = None) -> None:
        self._items = None if items is None else Choice(items)

    @property
    def size(self) -> int | None:
        return None if self._items is None else self._items.size

    @property
    def _n_codes(self) -> int | None:
        return None if self._items is None else self._items.size + 1

    def find(self, key: Any) -> Coded:
        k = as_int(key) if self._items is None else self._items.place(key) + 1
        if k is None or k < 1:
            raise ValueError(f"key must be a place in the order, 1, 2, 3, ..., got {quoted(key)}")
        return k, math.log(k) + math.log(k + 1)

    def key_of(self, code: Any) -> Any:
        return code if self._items is None else self._items.key_of(code - 1)

    def nearest(self, params: Any) -> Any:
        return super().nearest(params) if self._items is None else self._items.nearest(params)

    def describe(self) -> dict[str, Any]:
        items = None if self._items is None else described(self._items.values)
        return {"kind": "InOrder", "items": items}

    def __repr__(self) -> str:
        return f"InOrder({'' if self._items is None else shown(self._items.values)})"


class NamedKeys(Space):
    """At most `size` configurations, known by names that nobody has to list beforehand.

    The caller sees to it that there are no more names.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def find(self, key: Any) -> Coded:
        if not isinstance(key, str):
            raise TypeError(f"key must be a name, got {quoted(key)}")
        return str(key), math.log(self._size)

    def key_of(self, code: Any) -> str:
        return str(code)

    def describe(self) -> dict[str, Any]:
        return {"kind": "NamedKeys", "size": self._size}
