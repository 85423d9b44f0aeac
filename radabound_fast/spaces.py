"""Spaces of keys, declared before a search begins: what an answer of `DeclaredSearch` pays for.

A key says which model was asked about: the configuration that it was trained with, and whatever
else of it was chosen by its scores.  A space gives every key a weight w, fixed beforehand, and the
weights sum to at most 1; an answer pays ``nats = ln(1 / w)``.

==========================  ==================================  ==================================
space                       a key                               nats
==========================  ==================================  ==================================
`Choice`                    one of n values                     ln n
`Grid`                      a value for every name              sum of ln n over the names
`InOrder`                   1, 2, 3, ..., or an item of a list  ln k(k+1) for the k-th
`Product`, ``a * b``        one key of each space               the sum of theirs
`epoch_of`, `threshold_of`  what was chosen by the score        ln n
`subset_of`                 s of n members                      ln C(n, s)
`ensemble_of`               s keys of a space, as a greedy      the sum of theirs, less
                            ensemble picks them                 ln(s! / the repeats' factorials)
anything with ``nats(key)`` what it says                        what it says
==========================  ==================================  ==================================
"""

from __future__ import annotations

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count, check_integer, check_positive, check_real
from radabound_fast.packing import is_number

__all__ = [
    "Choice",
    "Grid",
    "InOrder",
    "Prior",
    "Product",
    "Space",
    "Steps",
    "as_space",
    "ensemble_of",
    "epoch_of",
    "subset_of",
    "threshold_of",
]

Found = tuple[Hashable, float]
Finder = Callable[[Any], int | None]

# a space that can list its keys has the weights of so many of them added up
MOST_CHECKED = 2**20
# how far off its place a value of `Steps` may be, in steps: sums and products are rounded
STEP_TOLERANCE = 1e-6
_FEW = 6  # values that a message shows


class Space(ABC):
    """Keys, each with a weight that was fixed before any score was seen; they sum to at most 1.

    A subclass finds a key; whether the weights sum to at most 1 is for it to prove.
    """

    @property
    @abstractmethod
    def size(self) -> int | None:
        """How many keys there are; None: without end, or nobody knows."""

    @abstractmethod
    def find(self, key: Any) -> Found:
        """The key in one form, the same for equal keys, and its nats.

        Raises ValueError, or TypeError, if the key is not in the space.
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The space as JSON values, the same for equal spaces."""

    def find_many(self, keys: Any) -> tuple[list[Hashable], NDArray[np.float64]]:
        """`find` for every key in order."""
        found = [self.find(key) for key in keys]
        nats = np.array([nats for _, nats in found], dtype=np.float64)
        return [name for name, _ in found], nats

    def nats(self, key: Any) -> float:
        """``ln(1 / w)``: what the key costs.

        Raises
        ------
        TypeError, ValueError
            The key is not in the space.
        """
        return self.find(key)[1]

    def __contains__(self, key: Any) -> bool:
        try:
            self.find(key)
        except (TypeError, ValueError):
            return False
        return True

    def __mul__(self, other: Any) -> Product:
        """Both: a key is a tuple with one key of each."""
        return Product(self, other)

    def __rmul__(self, other: Any) -> Product:
        return Product(other, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self.describe()))


# ---- one value of a few -------------------------------------------------------------------------


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
        self._length = math.floor(n_steps + STEP_TOLERANCE) + 1

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

    def index(self, value: Any, *_: Any) -> int:
        """Where the value stands; ValueError: nowhere."""
        place = _place_in_steps(self)(value)
        if place is None:
            raise ValueError(f"value must be one of {self!r}, got {value!r}")
        return place

    def __contains__(self, value: Any) -> bool:
        return _place_in_steps(self)(value) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steps) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"Steps({self.low!r}, {self.high!r}, {self.step!r})"


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
        What messages call it.

    Raises
    ------
    TypeError, ValueError
        No finite sequence; empty; a value that is not finite, stands there twice, or has no form
        by which another process would know it.

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
        self._finder = _finder_of(self.values, name)
        self._nats = math.log(len_of(self.values))

    @property
    def size(self) -> int:
        return len_of(self.values)

    def find(self, key: Any) -> Found:
        place = self._finder(key)
        if place is None:
            raise outside(self.name, key, self.values)
        return place, self._nats

    def find_many(self, keys: Any) -> tuple[list[Hashable], NDArray[np.float64]]:
        if isinstance(self.values, range) and self.values.step == 1:
            wanted = np.asarray(keys)
            if wanted.dtype.kind in "iu" and wanted.ndim == 1:
                missing = (wanted < self.values.start) | (wanted >= self.values.stop)
                if missing.any():
                    raise outside(self.name, int(wanted[missing.argmax()]), self.values)
                places = (wanted - wanted.dtype.type(self.values.start)).tolist()
                return places, np.full(len(places), self._nats)
        return super().find_many(keys)

    def __getitem__(self, place: int) -> Any:
        return self.values[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Choice", "name": self.name, "values": _described(self.values)}

    def __repr__(self) -> str:
        return f"Choice({_shown(self.values)})"


class Grid(Space):
    """A value for every name, all combinations of the same weight.

    Parameters
    ----------
    grid : mapping, or sequence of mappings
        Names to what `Choice` takes: what scikit-learn's `ParameterGrid` takes.  Of several
        mappings a key is in one of them.

    Raises
    ------
    TypeError, ValueError
        As of `Choice`; a name that is no string; nothing at all.

    Notes
    -----
    A key is a mapping of exactly these names.  ``grid[i]`` and iteration go through the keys in
    the order of `ParameterGrid`: the last name in the alphabet changes fastest.

    Examples
    --------
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

    @property
    def grids(self) -> list[dict[str, Any]]:
        """The mappings of names to values."""
        return [{choice.name: choice.values for choice in part.choices} for part in self._parts]

    def find(self, key: Any) -> Found:
        if not isinstance(key, Mapping):
            raise TypeError(f"key must be a mapping of names to values, got {key!r}")
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
            return ValueError(f"key must have the names {names}, got {sorted(map(str, key))}")
        if len(named) > 1:
            return ValueError(f"key must be in one of {len(named)} grids, got {dict(key)!r}")
        wrong = next(c for c in named[0].choices if key[c.name] not in c)
        return outside(wrong.name, key[wrong.name], wrong.values)

    def __getitem__(self, place: int) -> dict[str, Any]:
        place = range(self._size)[check_integer(place=place)]
        for part in self._parts:
            if place < part.size:
                return part.key(place)
            place -= part.size
        raise AssertionError("the sizes of the parts add up")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[place] for place in range(self._size))

    def describe(self) -> dict[str, Any]:
        grids = [[choice.describe() for choice in part.choices] for part in self._parts]
        return {"kind": "Grid", "grids": grids}

    def __repr__(self) -> str:
        shown = [
            "{" + ", ".join(f"{c.name!r}: {_shown(c.values)}" for c in part.choices) + "}"
            for part in self._parts
        ]
        return f"Grid({shown[0] if len(shown) == 1 else '[' + ', '.join(shown) + ']'})"


class _GridPart:
    """One mapping of a grid."""

    def __init__(self, grid: Mapping[str, Any]) -> None:
        if not isinstance(grid, Mapping):
            raise TypeError(f"space must be a mapping of names to values, got {grid!r}")
        for name in grid:
            if not isinstance(name, str):
                raise TypeError(f"space must have names that are strings, got {name!r}")
        self.choices = [Choice(grid[name], name=name) for name in sorted(grid)]
        self.names = set(grid)
        self.size = math.prod(choice.size for choice in self.choices)
        self._finders = [(c.name, c._finder, c.size) for c in self.choices]

    def place(self, key: Mapping[str, Any]) -> int | None:
        place = 0
        for name, finder, size in self._finders:
            found = finder(key[name])
            if found is None:
                return None
            place = place * size + found
        return place

    def key(self, place: int) -> dict[str, Any]:
        values = []
        for choice in reversed(self.choices):
            place, digit = divmod(place, choice.size)
            values.append((choice.name, choice.values[digit]))
        return dict(reversed(values))


# ---- an order, a product, a collection ----------------------------------------------------------


class InOrder(Space):
    """What stands in an order that was fixed beforehand: the k-th has the weight 1 / (k(k+1)).

    Parameters
    ----------
    items : sequence, optional
        The keys, in order, as `Choice` takes them: configurations by their rank in
        cross-validation, say.  None: the keys are 1, 2, 3, ... without end.

    Raises
    ------
    TypeError, ValueError
        As of `Choice`.

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

    def find(self, key: Any) -> Found:
        if self._items is None:
            k = _as_int(key)
            if k is None or k < 1:
                raise ValueError(f"key must be a place in the order, 1, 2, 3, ..., got {key!r}")
        else:
            k = cast(int, self._items.find(key)[0]) + 1
        return k, math.log(k) + math.log(k + 1)

    def describe(self) -> dict[str, Any]:
        items = None if self._items is None else _described(self._items.values)
        return {"kind": "InOrder", "items": items}

    def __repr__(self) -> str:
        return f"InOrder({'' if self._items is None else _shown(self._items.values)})"


class Product(Space):
    """One key of each of several spaces: ``Grid(...) * epoch_of(100)``.

    Parameters
    ----------
    *spaces : space
        What `as_space` takes; factors of a product are taken one by one.

    Notes
    -----
    A key is a tuple with one key of each.  Its weight is the product of theirs.

    Examples
    --------
    >>> space = Grid({"depth": [2, 4, 8]}) * epoch_of(100)
    >>> space.size, round(space.nats(({"depth": 4}, 99)), 4)
    (300, 5.7038)
    """

    def __init__(self, *spaces: Any) -> None:
        self.spaces: list[Space] = []
        for space in map(as_space, spaces):
            self.spaces += space.spaces if isinstance(space, Product) else [space]
        if not self.spaces:
            raise ValueError("spaces must be at least one, got none")

    @property
    def size(self) -> int | None:
        sizes = [space.size for space in self.spaces]
        return math.prod(size for size in sizes if size) if None not in sizes else None

    def find(self, key: Any) -> Found:
        n_spaces = len(self.spaces)
        if not isinstance(key, (tuple, list)) or len(key) != n_spaces:
            raise ValueError(
                f"key must be a tuple of {n_spaces}, one key of each of {self!r}, got {key!r}"
            )
        found = [space.find(part) for space, part in zip(self.spaces, key, strict=True)]
        return tuple(name for name, _ in found), sum(nats for _, nats in found)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Product", "spaces": [space.describe() for space in self.spaces]}

    def __repr__(self) -> str:
        return " * ".join(map(repr, self.spaces))


class Subset(Space):
    """Some members of a list, in any order; see `subset_of`."""

    def __init__(self, members: Any, size: int | None = None) -> None:
        self._members = Choice(members, name="a member of key")
        self._subset_size = None if size is None else check_integer(size=size)
        n = self._members.size
        if self._subset_size is not None and not 0 <= self._subset_size <= n:
            raise ValueError(f"size must be in [0, {n}], the number of members, got {size}")

    @property
    def size(self) -> int:
        n, s = self._members.size, self._subset_size
        return 2**n if s is None else math.comb(n, s)

    def find(self, key: Any) -> Found:
        places = sorted(cast(int, self._members.find(one)[0]) for one in _listed(key))
        if len(set(places)) < len(places):
            raise ValueError(f"key must have different members, got {key!r}")
        n, s = self._members.size, len(places)
        if self._subset_size is None:
            return tuple(places), math.log(n + 1) + _log_comb(n, s)
        if s != self._subset_size:
            raise ValueError(f"key must have {self._subset_size} members, got {s}")
        return tuple(places), _log_comb(n, s)

    def describe(self) -> dict[str, Any]:
        members = _described(self._members.values)
        return {"kind": "Subset", "members": members, "size": self._subset_size}

    def __repr__(self) -> str:
        return f"subset_of({_shown(self._members.values)}, {self._subset_size})"


class Ensemble(Space):
    """Some keys of a space in any order, with repeats; see `ensemble_of`."""

    def __init__(self, space: Any, n_picks: int | None = None) -> None:
        self._space = as_space(space)
        self._n_picks = None if n_picks is None else check_count(n_picks=n_picks)

    @property
    def size(self) -> int | None:
        n, s = self._space.size, self._n_picks
        return None if n is None or s is None else math.comb(n + s - 1, s)

    def find(self, key: Any) -> Found:
        picks = [self._space.find(pick) for pick in _listed(key)]
        s = len(picks)
        if s == 0 or self._n_picks not in (None, s):
            wanted = self._n_picks or "at least 1"
            raise ValueError(f"key must have {wanted} picks, got {s}")
        repeats: dict[Hashable, int] = {}
        for name, _ in picks:
            repeats[name] = repeats.get(name, 0) + 1
        orders = math.lgamma(s + 1) - sum(math.lgamma(n + 1) for n in repeats.values())
        nats = sum(nats for _, nats in picks) - orders
        if self._n_picks is None:
            nats += math.log(s) + math.log(s + 1)
        return tuple(sorted(repeats.items(), key=repr)), max(nats, 0.0)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Ensemble", "space": self._space.describe(), "n_picks": self._n_picks}

    def __repr__(self) -> str:
        return f"ensemble_of({self._space!r}, {self._n_picks})"


# ---- what reads the holdout joins the key -------------------------------------------------------


def epoch_of(n_epochs: int) -> Choice:
    """An epoch that was chosen by its score: 0 to n_epochs - 1, ln(n_epochs) nats.

    Parameters
    ----------
    n_epochs : int
        At least 1; rounds of boosting are epochs too.

    Examples
    --------
    >>> space = Grid({"depth": [2, 4, 8]}) * epoch_of(100)  # key=({"depth": 4}, 17)
    >>> ({"depth": 4}, 17) in space, ({"depth": 4}, 100) in space
    (True, False)
    """
    return Choice(check_count(n_epochs=n_epochs), name="epoch")


def threshold_of(thresholds: Any) -> Choice:
    """A threshold that was chosen by its score on the holdout: ln of how many there are.

    Parameters
    ----------
    thresholds : int or sequence of float
        The grid, fixed beforehand: the thresholds, or how many (the keys are then 0, 1, ...).

    Examples
    --------
    >>> round(threshold_of(Steps(0.0, 1.0, 0.01)).nats(0.35), 4)
    4.6151
    """
    return Choice(thresholds, name="threshold")


def subset_of(members: Any, size: int | None = None) -> Subset:
    """Some of n members, chosen by scores: features, models of a library, rows of a committee.

    Parameters
    ----------
    members : int or sequence
        What there is to choose from, as `Choice` takes it.
    size : int, optional
        How many are chosen.  None: that was chosen by scores too, for ln(n + 1) nats more.

    Returns
    -------
    Subset
        Its keys are collections of different members in any order; ln C(n, size) nats.

    Examples
    --------
    >>> features = subset_of(["month", "day", "hour", "carrier"], 2)
    >>> round(features.nats({"hour", "day"}), 4), round(features.nats(["day", "hour"]), 4)
    (1.7918, 1.7918)
    """
    return Subset(members, size)


def ensemble_of(space: Any, n_picks: int | None = None) -> Ensemble:
    """An ensemble of some keys of a space, picked one after another by its scores.

    Parameters
    ----------
    space : space
        What `as_space` takes: where each pick comes from.
    n_picks : int, optional
        s, how many are picked, repeats counted.  None: that was chosen by scores too, for
        ln s(s+1) nats more.

    Returns
    -------
    Ensemble
        Its keys are collections of s keys, in any order.

    Notes
    -----
    For an ensemble that is settled by which members it has and how often, as a mean of their
    votes is (Caruana et al., 2004).  The picks in order have the product of their weights; there
    are ``s! / (c_1! c_2! ...)`` orders of members that occur c_1, c_2, ... times, all the same
    ensemble.  So their sum is a weight, by the multinomial theorem: never more than s ln N nats.

    Examples
    --------
    >>> ensemble = ensemble_of(1000, 5)
    >>> round(ensemble.nats([3, 3, 17, 256, 999]), 2), round(5 * math.log(1000), 2)
    (30.44, 34.54)
    """
    return Ensemble(space, n_picks)


# ---- what somebody else says --------------------------------------------------------------------


class Prior(Space):
    """Weights that an object of yours declares: it has a method ``nats(key)``.

    Parameters
    ----------
    declared : object
        ``nats(key)`` returns ln(1 / w), at least 0; inf, or a ValueError, for a key that is not
        in the space.  If it can be iterated, its first 2**20 keys are added up.

    Raises
    ------
    TypeError
        It has no method ``nats``.
    ValueError
        The weights of the keys that it lists sum to more than 1.

    Examples
    --------
    >>> class Linear:  # simpler models first
    ...     def nats(self, depth):
    ...         return depth * math.log(2)
    ...     def __iter__(self):
    ...         return iter(range(1, 31))
    >>> round(Prior(Linear()).nats(3), 4)
    2.0794
    """

    def __init__(self, declared: Any) -> None:
        if isinstance(declared, type) or not callable(getattr(declared, "nats", None)):
            raise TypeError(f"space must have a method nats(key), got {declared!r}")
        self.declared = declared
        if isinstance(declared, Iterable):
            weight = 0.0
            for n_keys, key in enumerate(islice(declared, MOST_CHECKED), start=1):
                weight += math.exp(-self.find(key)[1])
                if weight > 1 + 1e-9:
                    raise ValueError(
                        f"space must have weights that sum to at most 1, got {weight:.6g} after "
                        f"{n_keys} keys of {declared!r}: nats must be ln(1/w)"
                    )

    @property
    def size(self) -> int | None:
        return len_of(self.declared) if isinstance(self.declared, Sized) else None

    def find(self, key: Any) -> Found:
        nats = check_not_nan(self.declared.nats(key))
        if nats == math.inf:
            raise ValueError(f"key must be in the space, got {key!r}, of weight 0")
        return token_of(key, "key"), nats

    def describe(self) -> dict[str, Any]:
        kind = type(self.declared)
        described = getattr(self.declared, "describe", None)
        return {
            "kind": "Prior",
            "type": f"{kind.__module__}.{kind.__qualname__}",
            "declared": described() if callable(described) else None,
        }

    def __repr__(self) -> str:
        return f"Prior({self.declared!r})"


def check_not_nan(nats: Any) -> float:
    """Nats that somebody else's space said."""
    if isinstance(nats, bool) or not is_number(nats) or not nats >= 0:
        raise ValueError(f"nats(key) must be at least 0, that is ln(1/w), got {nats!r}")
    return float(nats)


def as_space(space: Any) -> Space:
    """A space from what declares one.

    Parameters
    ----------
    space : int, mapping, sequence of mappings, space, or object with ``nats(key)``
        An int N has the keys 0 to N - 1 (`Choice`); a mapping of names to values, or several,
        is a `Grid`; an object that says the nats of a key is a `Prior`.

    Raises
    ------
    TypeError
        None of these.
    ValueError
        An empty space; values that are not finite or stand there twice; weights that sum to more
        than 1.
    """
    if isinstance(space, Space):
        return space
    if isinstance(space, Mapping):
        return Grid(space)
    if _as_int(space) is not None and not isinstance(space, float):
        return Choice(check_count(space=space))
    if callable(getattr(space, "nats", None)):
        return Prior(space)
    if isinstance(space, (list, tuple)):
        if all(isinstance(part, Mapping) for part in space):
            return Grid(space)
        raise TypeError(
            "space must be a mapping of names to values, or several; a list of keys is "
            f"spaces.Choice(list), got {space!r}"
        )
    raise TypeError(
        "space must be an int, a mapping of names to sequences of values, or have a method "
        f"nats(key), got {space!r}"
    )


def from_description(description: dict[str, Any]) -> Space:
    """The space that `Space.describe` described.

    Raises
    ------
    ValueError
        It is one that only its own code can make: pass that space again.
    """
    fields = dict(description)
    kind = fields.pop("kind")
    if kind == "Choice":
        return Choice(_values_from(fields["values"]), name=fields["name"])
    if kind == "Grid":
        return Grid(
            [{c["name"]: _values_from(c["values"]) for c in part} for part in fields["grids"]]
        )
    if kind == "InOrder":
        return InOrder(None if fields["items"] is None else _values_from(fields["items"]))
    if kind == "Product":
        return Product(*map(from_description, fields["spaces"]))
    if kind == "Subset":
        return Subset(_values_from(fields["members"]), fields["size"])
    if kind == "Ensemble":
        return Ensemble(from_description(fields["space"]), fields["n_picks"])
    raise ValueError(f"space must be passed again, since only its own code can make a {kind}")


# ---- values, and what makes two of them equal ---------------------------------------------------


def check_values(values: Any, name: str) -> Any:
    """A range, `Steps`, or a list of at least one value."""
    n_values = None if isinstance(values, (float, np.floating)) else _as_int(values)
    if n_values is not None:
        values = range(check_count(**{name: n_values}))
    if not isinstance(values, (range, Steps)):
        if isinstance(values, np.ndarray) and values.ndim == 1:
            values = values.tolist()
        if hasattr(values, "rvs"):
            raise TypeError(
                f"{name} must have finitely many values, got the distribution {values!r}: "
                "list them, or give spaces.Steps(low, high, step)"
            )
        sequence = isinstance(values, Sized) and isinstance(values, Iterable)
        if not sequence or isinstance(values, (str, bytes, Mapping, set, frozenset, np.ndarray)):
            raise TypeError(f"{name} must be a sequence of values, got {values!r}")
        values = list(values)
    if len_of(values) == 0:
        raise ValueError(f"{name} must not be empty, got {values!r}")
    return values


def len_of(values: Any) -> int:
    """The length, which of a range may be more than `len` can say."""
    if isinstance(values, range):
        return max(0, -((values.start - values.stop) // values.step))
    return len(values)


def _finder_of(values: Any, name: str) -> Finder:
    """Where a value stands among these, or None."""
    if isinstance(values, Steps):
        return _place_in_steps(values)
    if isinstance(values, range):

        def find_integer(value: Any) -> int | None:
            number = value if type(value) is int else _as_int(value)
            return values.index(number) if number is not None and number in values else None

        return find_integer

    place_of: dict[Hashable, int] = {}
    for place, value in enumerate(values):
        first = place_of.setdefault(token_of(value, name), place)
        if first != place:
            raise ValueError(
                f"{name} must have different values, got {value!r} at {first} and at {place}"
            )

    def find(value: Any) -> int | None:
        simple = type(value) in (str, int, float)
        return place_of.get(value if simple else token_of(value, name))

    return find


def _place_in_steps(steps: Steps) -> Finder:
    low, step, length = steps.low, steps.step, len(steps)
    largest = max(abs(low), abs(steps.high))
    tolerance = min(0.25, max(STEP_TOLERANCE, 4 * math.ulp(largest) / step))

    def find(value: Any) -> int | None:
        if isinstance(value, (bool, np.bool_)) or not is_number(value):
            return None
        position = (float(value) - low) / step
        if not -1 < position < length:
            return None
        place = round(position)
        return place if abs(position - place) <= tolerance and 0 <= place < length else None

    return find


def outside(name: str, value: Any, values: Any) -> ValueError:
    """The error for a value that is not among these, with the nearest if there is one."""
    hint = ""
    if isinstance(value, (bool, np.bool_)):
        hint = "; True and False are no numbers here"
    elif is_number(value) and math.isfinite(value):
        nearest = _nearest(float(value), values)
        hint = "" if nearest is None else f"; the nearest is {nearest!r}"
    return ValueError(f"{name} must be one of {_shown(values)}, got {value!r}{hint}")


def _nearest(value: float, values: Any) -> Any:
    if isinstance(values, list):
        numbers = [one for one in values if is_number(one) and not isinstance(one, bool)]
        return min(numbers, key=lambda one: abs(one - value), default=None)
    step = values.step
    first = values.low if isinstance(values, Steps) else values.start
    return values[min(max(round((value - first) / step), 0), len_of(values) - 1)]


def _shown(values: Any) -> str:
    if not isinstance(values, list):
        return repr(values)
    shown = ", ".join(map(repr, values[:_FEW]))
    rest = f", ... {len(values)} values" if len(values) > _FEW else ""
    return f"[{shown}{rest}]"


def token_of(value: Any, name: str) -> Hashable:
    """The value in one form: equal for equal values, of any process.

    Strings and numbers are themselves; anything else is a tuple that begins with its kind.
    """
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
        return ("list", *(token_of(one, name) for one in value))
    if isinstance(value, (set, frozenset)):
        return ("set", *sorted((token_of(one, name) for one in value), key=repr))
    if isinstance(value, Mapping):
        items = ((token_of(key, name), token_of(one, name)) for key, one in value.items())
        return ("mapping", *sorted(items, key=repr))
    if isinstance(value, _Known):
        return value.token
    if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
        return ("name", _name_of(value, name))
    if hasattr(value, "get_params"):
        params = token_of(value.get_params(deep=False), name)
        return ("object", _name_of(type(value), name), params)
    raise TypeError(
        f"{name} must be numbers, strings, None, or lists and mappings of them, got {value!r}: "
        "give it a name, and look the object up by that"
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


def _described(values: Any) -> Any:
    """A sequence of values as JSON."""
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    if isinstance(values, Steps):
        return {"steps": [values.low, values.high, values.step]}
    return {"list": [_as_json(token_of(value, "value")) for value in values]}


def _as_json(token: Any) -> Any:
    return [_as_json(part) for part in token] if isinstance(token, tuple) else token


def _values_from(description: dict[str, Any]) -> Any:
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
    return _Known(_as_tuple(token))


def _as_tuple(token: Any) -> Any:
    return tuple(map(_as_tuple, token)) if isinstance(token, (list, tuple)) else token


def _as_int(value: Any) -> int | None:
    """A whole number of any type; None for anything else, booleans included."""
    if isinstance(value, (bool, np.bool_)) or not is_number(value):
        return None
    if isinstance(value, (float, np.floating)):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return int(value)


def _listed(key: Any) -> list[Any]:
    if isinstance(key, (str, bytes, Mapping)) or not isinstance(key, Iterable):
        raise TypeError(f"key must be a collection, got {key!r}")
    return list(key)


def _log_comb(n: int, s: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(s + 1) - math.lgamma(n - s + 1)
