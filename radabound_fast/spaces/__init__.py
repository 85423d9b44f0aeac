"""Spaces of keys, declared before a search begins: what an answer of `DeclaredSearch` pays for.

A key says which model was asked about: the configuration that it was trained with, and whatever
else of it was chosen by its scores.  A space gives every key a weight w, fixed beforehand, and the
weights sum to at most 1; an answer pays ``nats = ln(1 / w)``.

===========================  ==================================  =================================
space                        a key                               nats
===========================  ==================================  =================================
`Choice`                     one of n values                     ln n
`Grid`                       a value for every name              sum of ln n over the names
`InOrder`                    1, 2, 3, ..., or an item of a list  ln k(k+1) for the k-th
`Product`, ``a * b``         one key of each space               the sum of theirs
`epoch_of`, `threshold_of`   what was chosen by the score        ln n
`subset_of`                  s of n members                      ln C(n, s)
`ensemble_of`                s keys, as a greedy ensemble picks  the sum of theirs, or less
`Improvements`               what a search was shown before      about ln t(t+1) + 6 an improvement
anything with ``nats(key)``  what it says                        what it says
===========================  ==================================  =================================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count, check_integer
from radabound_fast.rows.packing import is_number
from radabound_fast.spaces._values import (
    Steps,
    as_int,
    check_values,
    described,
    finder_of,
    hint_for,
    len_of,
    outside,
    quoted,
    shown,
    token_of,
    value_from,
    values_from,
)

__all__ = [
    "Choice",
    "Grid",
    "Improvements",
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
Codes = list[Hashable] | NDArray[np.int64]

# a space that can list its keys has the weights of so many of them added up
MOST_CHECKED = 2**20
_INT64 = 2**63
# subsets of so few members are counted exactly
_FEW_MEMBERS = 1000


class Space(ABC):
    """Keys, each with a weight that was fixed before any score was seen; they sum to at most 1.

    A subclass finds a key; whether the weights sum to at most 1 is for it to prove.
    """

    @property
    def shows(self) -> str | None:
        """What a search may see of the holdout, in words; None: every score.

        A space that is made of others says what they say.
        """
        told = dict.fromkeys(space.shows for space in self._parts_of())
        return " and ".join(shows for shows in told if shows is not None) or None

    def _parts_of(self) -> Sequence[Space]:
        """The spaces that this one is made of."""
        return ()

    @property
    @abstractmethod
    def size(self) -> int | None:
        """How many keys there are; None: without end, or nobody knows."""

    @abstractmethod
    def find(self, key: Any) -> Found:
        """The key's code, the same for equal keys and of no others, and its nats.

        A code is an int, a string, or a tuple of such.  Raises ValueError, or TypeError, if the key
        is not in the space.
        """

    @abstractmethod
    def key_of(self, code: Any) -> Any:
        """The key of a code that `find` gave; a tuple may come as a list, as JSON has it."""

    @property
    def _n_codes(self) -> int | None:
        """Codes are the ints from 0 on, so many or fewer; None: they may be anything."""
        return None

    def _packed(self, codes: Codes) -> Codes:
        """Codes in as few bytes as can be: ints, where there are few enough."""
        return codes

    def _unpacked(self, packed: Codes) -> Codes:
        """The codes of what `_packed` gave."""
        return packed

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The space as JSON values, the same for equal spaces."""

    def find_many(self, keys: Any) -> tuple[Codes, NDArray[np.float64]]:
        """`find` for every key in order; codes that are small ints may come as an array."""
        found = [self.find(key) for key in keys]
        nats = np.array([nats for _, nats in found], dtype=np.float64)
        return [code for code, _ in found], nats

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
        self.finder = finder_of(self.values, name)
        self._nats = math.log(len_of(self.values))

    @property
    def size(self) -> int:
        return len_of(self.values)

    _n_codes = size

    def place(self, key: Any) -> int:
        """Where the key stands among the values; ValueError: nowhere."""
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
        self._finders = [(c.name, c.finder, c.size) for c in self.choices]

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

    @property
    def _n_codes(self) -> int | None:
        return None if self._items is None else self._items.size + 1

    def find(self, key: Any) -> Found:
        if self._items is None:
            k = as_int(key)
            if k is None or k < 1:
                raise ValueError(
                    f"key must be a place in the order, 1, 2, 3, ..., got {quoted(key)}"
                )
        else:
            k = self._items.place(key) + 1
        return k, math.log(k) + math.log(k + 1)

    def key_of(self, code: Any) -> Any:
        return code if self._items is None else self._items.values[code - 1]

    def describe(self) -> dict[str, Any]:
        items = None if self._items is None else described(self._items.values)
        return {"kind": "InOrder", "items": items}

    def __repr__(self) -> str:
        return f"InOrder({'' if self._items is None else shown(self._items.values)})"


class Improvements(Space):
    """What a search was shown before it asked: for one that has no space, and no key to give.

    Its scores are rounded to n levels, and it is shown the best level so far and nothing else.  A
    key is what it had seen then: ``(n, ((1, first level), (place, level), ...))``, how many answers
    and at which of them the level fell, to what; level 0 is the best, n_levels - 1 the worst.
    `integrations.metric.HoldoutMetric` keeps this list, rounds, and shows.

    Parameters
    ----------
    n_levels : int
        Of a metric from 0 to 1, 101 are steps of .01.

    Notes
    -----
    After n answers with u improvements the weights are 1/((n+1)(n+2)) for n, 1/(u(u+1)) for u,
    equal for the places of all but the first, 1/n_levels for the first level, and 1/(j(j+1)) for
    each fall by j levels: they sum to at most 1.  The model asked about is a function of the key
    and of what is independent of the holdout, as long as the search sees nothing else of it:
    Result 12 of docs/explanation/theory.md, or Result 20 for these keys.

    "Nothing else" is for you to see to.  An answer of ``holdout.query`` has the value itself, and
    so have ``answers``, ``best`` and ``report()``: of those nothing may reach the search, nor you
    if you steer it, until it has ended.

    Examples
    --------
    >>> space = Improvements(101)
    >>> round(space.nats((0, ())), 2), round(space.nats((99, ((1, 30), (5, 24), (40, 22)))), 2)
    (0.69, 30.32)
    """

    def __init__(self, n_levels: int) -> None:
        self.n_levels = check_count(n_levels=n_levels, at_most=2**53)

    @property
    def size(self) -> None:
        """None: it has no end."""

    @property
    def shows(self) -> str:
        return f"the best score so far on {self.n_levels} levels"

    def find(self, key: Any) -> Found:
        n, falls = self._checked(key)
        nats = math.log(n + 1) + math.log(n + 2)
        if n == 0:
            return (0, ()), nats
        u = len(falls)
        nats += math.log(u) + math.log(u + 1) + _log_comb(n - 1, u - 1) + math.log(self.n_levels)
        for (_, before), (_, after) in pairwise(falls):
            nats += math.log(before - after) + math.log(before - after + 1)
        return (n, falls), nats

    def _checked(self, key: Any) -> tuple[int, tuple[tuple[int, int], ...]]:
        try:
            n, falls = _whole(key[0]), tuple((_whole(i), _whole(level)) for i, level in key[1])
            fits = len(key) == 2 and (falls[0][0] == 1 if n else not falls and n == 0)
            fits = fits and all(1 <= i <= n and 0 <= level < self.n_levels for i, level in falls)
            fits = fits and all(i < j and a > b for (i, a), (j, b) in pairwise(falls))
        except (TypeError, ValueError, LookupError):
            fits = False
        if not fits:
            raise ValueError(
                "key must be how many answers were shown, and the place and level of every "
                f"improvement among them, got {quoted(key)}"
            )
        return n, falls

    def key_of(self, code: Any) -> tuple[int, tuple[tuple[int, int], ...]]:
        n, falls = code
        return n, tuple((place, level) for place, level in falls)

    def describe(self) -> dict[str, Any]:
        return {"kind": "Improvements", "n_levels": self.n_levels}

    def __repr__(self) -> str:
        return f"Improvements({self.n_levels})"


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
        radices = [space._n_codes for space in self.spaces]
        few = None not in radices and math.prod(n for n in radices if n) <= _INT64
        self._radices = [n for n in radices if n] if few else None

    @property
    def size(self) -> int | None:
        sizes = [space.size for space in self.spaces]
        return math.prod(size for size in sizes if size) if None not in sizes else None

    def find(self, key: Any) -> Found:
        n_spaces = len(self.spaces)
        if not isinstance(key, (tuple, list)) or len(key) != n_spaces:
            raise ValueError(
                f"key must be a tuple of {n_spaces}, one key of each of {self!r}, got {quoted(key)}"
            )
        found = [space.find(part) for space, part in zip(self.spaces, key, strict=True)]
        return tuple(code for code, _ in found), sum(nats for _, nats in found)

    def key_of(self, code: Any) -> tuple[Any, ...]:
        return tuple(space.key_of(part) for space, part in zip(self.spaces, code, strict=True))

    def _packed(self, codes: Any) -> Codes:
        if self._radices is None:
            return list(codes)
        return [self._number(code) for code in codes]

    def _number(self, code: tuple[int, ...]) -> int:
        """The codes of the parts as digits."""
        number = 0
        for digit, radix in zip(code, self._radices or (), strict=True):
            number = number * radix + digit
        return number

    def _unpacked(self, packed: Any) -> Codes:
        if self._radices is None:
            return list(packed)
        digits = []
        for radix in reversed(self._radices):
            packed, digit = np.divmod(packed, radix)
            digits.append(digit.tolist())
        return list(zip(*reversed(digits), strict=True))

    def _parts_of(self) -> Sequence[Space]:
        return self.spaces

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
        places = sorted(self._members.place(one) for one in _listed(key))
        if len(set(places)) < len(places):
            raise ValueError(f"key must have different members, got {quoted(key)}")
        n, s = self._members.size, len(places)
        if self._subset_size is None:
            return tuple(places), math.log(n + 1) + _log_comb(n, s)
        if s != self._subset_size:
            raise ValueError(f"key must have {self._subset_size} members, got {s}")
        return tuple(places), _log_comb(n, s)

    def key_of(self, code: Any) -> tuple[Any, ...]:
        return tuple(self._members.values[place] for place in code)

    def describe(self) -> dict[str, Any]:
        members = described(self._members.values)
        return {"kind": "Subset", "members": members, "size": self._subset_size}

    def __repr__(self) -> str:
        return f"subset_of({shown(self._members.values)}, {self._subset_size})"


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
        repeats = Counter(code for code, _ in picks)
        orders = math.lgamma(s + 1) - sum(math.lgamma(n + 1) for n in repeats.values())
        nats = sum(nats for _, nats in picks) - orders
        if self._n_picks is None:
            nats += math.log(s) + math.log(s + 1)
        return tuple(sorted(repeats.items(), key=repr)), max(nats, 0.0)

    def key_of(self, code: Any) -> tuple[Any, ...]:
        return tuple(self._space.key_of(one) for one, n in code for _ in range(n))

    def _parts_of(self) -> Sequence[Space]:
        return (self._space,)

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
            raise ValueError(f"key must be in the space, got {quoted(key)}, of weight 0")
        return token_of(key, "key"), nats

    def key_of(self, code: Any) -> Any:
        return value_from(code)

    def _parts_of(self) -> Sequence[Space]:
        return (self.declared,) if isinstance(self.declared, Space) else ()

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
    if isinstance(space, Mapping) and not hint_for(space):
        return Grid(space)
    if as_int(space) is not None and not isinstance(space, float):
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
        f"nats(key), got {space!r}{hint_for(space)}"
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
        return Choice(values_from(fields["values"]), name=fields["name"])
    if kind == "Grid":
        return Grid(
            [{c["name"]: values_from(c["values"]) for c in part} for part in fields["grids"]]
        )
    if kind == "InOrder":
        return InOrder(None if fields["items"] is None else values_from(fields["items"]))
    if kind == "Improvements":
        return Improvements(fields["n_levels"])
    if kind == "Product":
        return Product(*map(from_description, fields["spaces"]))
    if kind == "Subset":
        return Subset(values_from(fields["members"]), fields["size"])
    if kind == "Ensemble":
        return Ensemble(from_description(fields["space"]), fields["n_picks"])
    raise ValueError(f"space must be passed again, since only its own code can make a {kind}")


def _listed(key: Any) -> list[Any]:
    if isinstance(key, (str, bytes, Mapping)) or not isinstance(key, Iterable):
        raise TypeError(f"key must be a collection, got {quoted(key)}")
    return list(key)


def _whole(number: Any) -> int:
    """As `as_int`; TypeError if it is none."""
    whole = as_int(number)
    if whole is None:
        raise TypeError(f"key must have whole numbers, got {quoted(number)}")
    return whole


def _log_comb(n: int, s: int) -> float:
    """ln C(n, s), or a little more."""
    if min(s, n - s) <= _FEW_MEMBERS:
        return math.log(math.comb(n, s))
    largest = math.lgamma(n + 1)  # whose last digits are lost in the difference
    return largest - math.lgamma(s + 1) - math.lgamma(n - s + 1) + 4 * math.ulp(largest)
