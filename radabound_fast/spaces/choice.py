"""One of finitely many values: a parameter, or an epoch or threshold chosen by its score."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count
from radabound_fast.spaces.messages import outside, shown
from radabound_fast.spaces.numbers import len_of
from radabound_fast.spaces.space import Codes, Found, Space
from radabound_fast.spaces.values import check_values, described, finder_of

_INT64 = 2**63


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
    forgives rounding.

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

    def find(self, key: Any) -> Found:
        return self.place(key), self._nats

    def find_many(self, keys: Any) -> tuple[Codes, NDArray[np.float64]]:
        values = self.values
        if isinstance(values, range) and values.step == 1 and values.start >= -_INT64:
            wanted = np.asarray(keys)
            if values.stop <= _INT64 and wanted.dtype.kind in "iu" and wanted.ndim == 1:
                missing = (wanted < values.start) | (wanted >= values.stop)
                if missing.any():
                    raise outside(self.name, int(wanted[missing.argmax()]), values)
                # a copy: the keys are the caller's, who may change them
                places = wanted.astype(np.int64) - values.start
                return places, np.broadcast_to(self._nats, len(places))
        return super().find_many(keys)

    def key_of(self, code: Any) -> Any:
        return self.values[code]

    def __getitem__(self, place: int) -> Any:
        return self.values[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

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
