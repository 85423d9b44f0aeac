"""Keys in an order that was fixed beforehand: the first cost the least."""

from __future__ import annotations

import math
from typing import Any

from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.messages import quoted, shown
from radabound_fast.spaces.numbers import as_int
from radabound_fast.spaces.space import Found, Space
from radabound_fast.spaces.values import described


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
        return code if self._items is None else self._items.key_of(code - 1)

    def nearest(self, params: Any) -> Any:
        return super().nearest(params) if self._items is None else self._items.nearest(params)

    def describe(self) -> dict[str, Any]:
        items = None if self._items is None else described(self._items.values)
        return {"kind": "InOrder", "items": items}

    def __repr__(self) -> str:
        return f"InOrder({'' if self._items is None else shown(self._items.values)})"
