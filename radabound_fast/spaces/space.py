"""The base class of spaces of keys, and the product of several."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.spaces.messages import quoted

# in a description: names in the order in which they were declared, which is no part of a space
ORDER = "declared_order"
INT64 = 2**63
_FEW_MEMBERS = 1000  # subsets of so few are counted exactly

Coded = tuple[Hashable, float]  # a code, and its nats
Codes = list[Hashable] | NDArray[np.int64]


class Space(ABC):
    """Keys, each with a weight that was fixed before any score was seen; they sum to at most 1.

    A subclass finds the code of a key; its author proves that the weights sum to at most 1.
    """

    @property
    def shows(self) -> str | None:
        """The part of the scores that a search may see, in words; None: every score.

        A space that is made of others joins their words.
        """
        parts = dict.fromkeys(space.shows for space in self._parts_of())
        return " and ".join(shows for shows in parts if shows is not None) or None

    def _parts_of(self) -> Sequence[Space]:
        """The spaces that this one is made of."""
        return ()

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Number of keys; None where it is infinite or unknown."""

    @abstractmethod
    def find(self, key: Any) -> Coded:
        """The code of a key, equal exactly for equal keys, and its nats.

        A code is an int, a string, or a tuple of such.  ValueError or TypeError: no key of the
        space.
        """

    @abstractmethod
    def key_of(self, code: Any) -> Any:
        """The key of a code that `find` returned; a list counts as a tuple, as in JSON."""

    def nearest(self, params: Any) -> Any:
        """Return the key of the space to train with, where an optimiser suggests `params`.

        Grids and lists return the nearest of their keys; any other space the key that `params`
        equals.  Valid whatever the optimiser saw, as long as the model is trained with what this
        returns, and that is its key.  TypeError or ValueError: nothing is near.
        """
        return self.key_of(self.find(params)[0])

    @property
    def _n_codes(self) -> int | None:
        """A number that all codes are below, where they are ints from 0 on; None elsewhere."""
        return None

    def pack_codes(self, codes: Codes) -> Codes:
        """Codes in a form that takes little memory: ints, where there are few enough."""
        return codes

    def unpack_codes(self, packed: Codes) -> Codes:
        """The inverse of `pack_codes`."""
        return packed

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The space as JSON values: `same_description` of those of equal spaces."""

    def find_many(self, keys: Any) -> tuple[Codes, NDArray[np.float64]]:
        """`find` for every key in order; codes that are small ints may come as an array."""
        pairs = [self.find(key) for key in keys]
        nats = np.array([nats for _, nats in pairs], dtype=np.float64)
        return [code for code, _ in pairs], nats

    def nats(self, key: Any) -> float:
        """The cost of a key, ``ln(1 / w)``; TypeError or ValueError if it is not in the space."""
        return self.find(key)[1]

    def __contains__(self, key: Any) -> bool:
        try:
            self.find(key)
        except (TypeError, ValueError):
            return False
        return True

    def __mul__(self, other: Any) -> Space:
        """The product space: a key is a tuple with one key of each."""
        return Product(self, other)

    def __rmul__(self, other: Any) -> Space:
        return Product(other, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and same_description(self.describe(), other.describe())

    def __hash__(self) -> int:
        return hash(json.dumps(_without_order(self.describe()), sort_keys=True))


class Product(Space):
    """One key of each of several spaces: ``Grid(...) * epoch_of(100)``.

    Parameters
    ----------
    *spaces : space
        The factors, as `as_space` takes them; a factor that is a product counts as its factors.

    Notes
    -----
    A key is a tuple with one key of each space.  Its weight is the product of their weights.

    Examples
    --------
    >>> from radabound_fast.spaces import Grid, epoch_of
    >>> space = Grid({"depth": [2, 4, 8]}) * epoch_of(100)
    >>> space.size, round(space.nats(({"depth": 4}, 99)), 4)
    (300, 5.7038)
    """

    def __init__(self, *spaces: Any) -> None:
        from radabound_fast.spaces.reading import as_space  # which knows every kind of space

        self.spaces: list[Space] = []
        for space in map(as_space, spaces):
            self.spaces += space.spaces if isinstance(space, Product) else [space]
        if not self.spaces:
            raise ValueError("spaces must be at least one, got none")
        radices = [n for space in self.spaces if (n := space._n_codes)]
        few = len(radices) == len(self.spaces) and math.prod(radices) <= INT64
        self._radices = radices if few else None  # of one int for the codes of all parts

    @property
    def size(self) -> int | None:
        sizes = [size for space in self.spaces if (size := space.size) is not None]
        return math.prod(sizes) if len(sizes) == len(self.spaces) else None

    def find(self, key: Any) -> Coded:
        parts = [space.find(part) for space, part in self._split(key, "key")]
        return tuple(code for code, _ in parts), sum(nats for _, nats in parts)

    def _split(self, key: Any, what: str) -> Iterable[tuple[Space, Any]]:
        n_spaces = len(self.spaces)
        if not isinstance(key, (tuple, list)) or len(key) != n_spaces:
            raise ValueError(
                f"{what} must be a tuple of {n_spaces}, one key of each of {self!r}, "
                f"got {quoted(key)}"
            )
        return zip(self.spaces, key, strict=True)

    def nearest(self, params: Any) -> tuple[Any, ...]:
        """Return the nearest key of each space."""
        return tuple(space.nearest(part) for space, part in self._split(params, "params"))

    def key_of(self, code: Any) -> tuple[Any, ...]:
        return tuple(space.key_of(part) for space, part in zip(self.spaces, code, strict=True))

    def pack_codes(self, codes: Any) -> Codes:
        return list(codes) if self._radices is None else [self._number(code) for code in codes]

    def _number(self, code: tuple[int, ...]) -> int:
        """One int whose digits are the codes of the parts."""
        number = 0
        for digit, radix in zip(code, self._radices or (), strict=True):
            number = number * radix + digit
        return number

    def unpack_codes(self, packed: Any) -> Codes:
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


def same_description(one: Any, other: Any) -> bool:
    """Whether two descriptions, as JSON, are equal but for the order of declared names."""
    return bool(_without_order(one) == _without_order(other))


def _without_order(description: Any) -> Any:
    """A description but for the order of names."""
    if isinstance(description, dict):
        parts = {name: _without_order(part) for name, part in description.items()}
        return parts | {ORDER: sorted(parts[ORDER])} if ORDER in parts else parts
    return list(map(_without_order, description)) if isinstance(description, list) else description


def log_comb(n: int, s: int) -> float:
    """The logarithm of C(n, s), rounded up a little."""
    if min(s, n - s) <= _FEW_MEMBERS:
        return math.log(math.comb(n, s))
    largest = math.lgamma(n + 1)  # whose last digits are lost in the difference
    return largest - math.lgamma(s + 1) - math.lgamma(n - s + 1) + 4 * math.ulp(largest)
