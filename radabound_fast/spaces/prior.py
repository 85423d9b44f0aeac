"""Weights that an object of the user's declares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Sized
from itertools import islice
from typing import Any

from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.numbers import len_of
from radabound_fast.spaces.space import Found, Space
from radabound_fast.spaces.tokens import token_of, value_from

# a space that can list its keys has the weights of so many of them added up
MOST_CHECKED = 2**20


class Prior(Space):
    """A space whose weights come from an object of yours with a method ``nats(key)``.

    Parameters
    ----------
    declared : object
        Its ``nats(key)`` returns ln(1 / w), at least 0, and for a key that is not in the space
        inf, or raises ValueError.  If it is iterable, the weights of its first 2**20 keys are
        added up.

    Raises
    ------
    TypeError
        The object has no method ``nats``.
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
        nats = _checked(self.declared.nats(key))
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


def _checked(nats: Any) -> float:
    """Nats that an object of the user's returned: at least 0, and not nan."""
    if isinstance(nats, bool) or not is_number(nats) or not nats >= 0:
        raise ValueError(f"nats(key) must be at least 0, that is ln(1/w), got {nats!r}")
    return float(nats)
