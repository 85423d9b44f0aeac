"""A space from what declares one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from radabound_fast._checks import check_count, shown
from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.grid import Grid
from radabound_fast.spaces.prior import Prior
from radabound_fast.spaces.space import Space
from radabound_fast.spaces.tokens import as_int
from radabound_fast.spaces.values import hint_for


def as_space(space: Any) -> Space:
    """A space from what declares one.

    Parameters
    ----------
    space : int, mapping, sequence of mappings, space, or object with ``nats(key)``
        An int N has the keys 0 to N - 1 (`Choice`); a mapping of names to values, or several,
        is a `Grid`; an object with a method ``nats`` is a `Prior`.

    Raises
    ------
    TypeError
        The argument is none of these.
    ValueError
        An empty space; values that are not finite or occur twice; weights that sum to more than 1.
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
            f"spaces.Choice(list), got {shown(space)}"
        )
    raise TypeError(
        "space must be an int, a mapping of names to sequences of values, or have a method "
        f"nats(key), got {shown(space)}{hint_for(space)}"
    )
