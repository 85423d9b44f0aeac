"""The base class of spaces of keys."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# in a description: names in the order in which they were declared, which is no part of a space
ORDER = "declared_order"

Found = tuple[Hashable, float]
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
    def find(self, key: Any) -> Found:
        """The code of a key, equal exactly for equal keys, and its nats.

        A code is an int, a string, or a tuple of such.  Raises ValueError, or TypeError, if the key
        is not in the space.
        """

    @abstractmethod
    def key_of(self, code: Any) -> Any:
        """The key of a code that `find` returned; a list counts as a tuple, as in JSON."""

    def nearest(self, params: Any) -> Any:
        """Return the key of the space to train with, where an optimiser suggests `params`.

        Grids and lists return the nearest of their keys; any other space the key that `params`
        equals.  Valid whatever the optimiser saw, as long as the model is trained with what this
        returns, and that is its key.

        Raises
        ------
        TypeError, ValueError
            Nothing is near: names or categories that the space does not have.
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
        """The cost of a key: ``ln(1 / w)``.

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

    def __mul__(self, other: Any) -> Space:
        """The product space: a key is a tuple with one key of each."""
        from radabound_fast.spaces.product import Product

        return Product(self, other)

    def __rmul__(self, other: Any) -> Space:
        from radabound_fast.spaces.product import Product

        return Product(other, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and same_description(self.describe(), other.describe())

    def __hash__(self) -> int:
        return hash(json.dumps(_without_order(self.describe()), sort_keys=True))


def same_description(one: Any, other: Any) -> bool:
    """Whether two descriptions, as JSON, are equal but for the order of declared names."""
    return bool(_without_order(one) == _without_order(other))


def _without_order(description: Any) -> Any:
    """A description but for the order of names."""
    if isinstance(description, dict):
        parts = {name: _without_order(part) for name, part in description.items()}
        return parts | {ORDER: sorted(parts[ORDER])} if ORDER in parts else parts
    return list(map(_without_order, description)) if isinstance(description, list) else description
