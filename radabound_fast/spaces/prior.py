"""Weights that an object of the user's declares."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Hashable, Sequence, Sized
from itertools import islice
from typing import Any

from radabound_fast.rows.packing import is_number
from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.space import Coded, Space
from radabound_fast.spaces.tokens import as_tuple, plain, token_of, value_from
from radabound_fast.spaces.values import len_of

# so many keys that an object lists have their weights added up
MOST_CHECKED = 2**20
# 1, and the rounding of a sum
MOST_WEIGHT = 1 + 1e-9

# one for all, so that a space may be pickled; a child of os.fork must not find it taken
_adding = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_adding.acquire, after_in_parent=_adding.release, after_in_child=_adding.release
    )


class AcceptedWeights:
    """The weights of the keys accepted so far, which sum to at most 1."""

    def __init__(self) -> None:
        self._nats: dict[Hashable, float] = {}
        self._sum = 0.0

    def add(self, code: Hashable, nats: float, key: Any) -> float:
        """Return the nats of a key: those that it was accepted with first.

        ValueError: with this key the weights would sum to more than 1.
        """
        with _adding:
            if code not in self._nats:
                weight = self._sum + math.exp(-nats)
                if weight > MOST_WEIGHT:
                    raise ValueError(
                        "key must have a weight that leaves the sum at most 1, got "
                        f"{quoted(key)}, with which the weights of {len(self._nats) + 1:,} "
                        f"accepted keys sum to {weight:.6g}: nats must be ln(1/w), of a space that "
                        "was declared beforehand"
                    )
                # in this order, so that Ctrl-C between them counts too much and not too little
                self._sum = weight
                self._nats[code] = nats
            return self._nats[code]


class Prior(Space):
    """A space whose weights come from an object of yours with a method ``nats(key)``.

    Parameters
    ----------
    declared : object
        Its ``nats(key)`` returns ln(1 / w), at least 0, and for a key that is not in the space
        inf, or raises ValueError.  It should say what its keys are: by listing them (``__iter__``;
        then it has these alone), or, where there are more than 2**20, by ``__contains__``.

    Raises
    ------
    TypeError
        The object has no method ``nats``.
    ValueError
        The weights of the keys that it lists sum to more than 1.

    Notes
    -----
    Of an object that does not list its keys the weights are added up as keys are accepted, by this
    object; a key with which they would sum to more than 1 is refused.

    Examples
    --------
    >>> class Linear:  # simpler models first
    ...     def nats(self, depth):
    ...         return depth * math.log(2)
    ...     def __iter__(self):
    ...         return iter(range(1, 31))
    >>> space = Prior(Linear())
    >>> round(space.nats(3), 4), 0 in space, 31 in space
    (2.0794, False, False)
    """

    def __init__(self, declared: Any) -> None:
        if isinstance(declared, type) or not callable(getattr(declared, "nats", None)):
            raise TypeError(f"space must have a method nats(key), got {declared!r}")
        self.declared = declared
        self._accepted = AcceptedWeights()
        self._listed = None if isinstance(declared, Space) else _listed_by(declared)

    @property
    def size(self) -> int | None:
        if self._listed is not None:
            return len(self._listed)
        return len_of(self.declared) if isinstance(self.declared, Sized) else None

    def find(self, key: Any) -> Coded:
        if isinstance(self.declared, Space):
            return self.declared.find(key)
        code = token_of(key, "key")
        if self._listed is not None:
            if code not in self._listed:
                raise ValueError(
                    f"key must be one of the {len(self._listed):,} that the space lists, "
                    f"got {quoted(key)}"
                )
            return code, self._listed[code][1]
        own = plain(key) if isinstance(code, tuple) else code  # 1.0 is asked about as 1
        if hasattr(type(self.declared), "__contains__") and own not in self.declared:
            raise ValueError(f"key must be in the space, got {quoted(key)}")
        nats = _checked(self.declared.nats(own))
        if nats == math.inf:
            raise ValueError(f"key must be in the space, got {quoted(key)}, of weight 0")
        return code, self._accepted.add(code, nats, key)

    def key_of(self, code: Any) -> Any:
        if isinstance(self.declared, Space):
            return self.declared.key_of(code)
        return value_from(code) if self._listed is None else plain(self._listed[as_tuple(code)][0])

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


def _listed_by(declared: Any) -> dict[Any, tuple[Any, float]] | None:
    """Keys and nats by code, of an object that lists its keys; None if it lists none, or too many.

    Raises ValueError if the weights sum to more than 1.
    """
    if not hasattr(declared, "__iter__"):
        return None
    listed: dict[Any, tuple[Any, float]] = {}
    weight, keys = 0.0, iter(declared)
    for key in islice(keys, MOST_CHECKED):
        code, nats = token_of(key, "key"), _checked(declared.nats(key))
        if code in listed or nats == math.inf:
            continue
        listed[code] = plain(key), nats
        weight += math.exp(-nats)
        if weight > MOST_WEIGHT:
            raise ValueError(
                f"space must have weights that sum to at most 1, got {weight:.6g} after "
                f"{len(listed)} keys of {declared!r}: nats must be ln(1/w)"
            )
    return listed if next(keys, listed) is listed else None


def _checked(nats: Any) -> float:
    """Nats that an object of the user's returned: at least 0, and not nan."""
    if isinstance(nats, bool) or not is_number(nats) or not nats >= 0:
        raise ValueError(f"nats(key) must be at least 0, that is ln(1/w), got {nats!r}")
    return float(nats)
