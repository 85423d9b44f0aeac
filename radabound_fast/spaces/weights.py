"""The weights of the keys that a space has accepted, where nobody can list them beforehand."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Hashable
from typing import Any

from radabound_fast.spaces.messages import quoted

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
