"""One key of each of several spaces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.reading import as_space
from radabound_fast.spaces.space import Codes, Found, Space

_INT64 = 2**63


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
        if self._radices is None:
            return list(codes)
        return [self._number(code) for code in codes]

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
