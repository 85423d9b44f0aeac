"""A space from what declares it, or from its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from radabound_fast._checks import check_count, shown
from radabound_fast.spaces.choice import Choice, InOrder, NamedKeys
from radabound_fast.spaces.collection import Ensemble, Subset
from radabound_fast.spaces.grid import Grid
from radabound_fast.spaces.improvements import Improvements
from radabound_fast.spaces.prior import Prior
from radabound_fast.spaces.space import ORDER, Product, Space
from radabound_fast.spaces.tokens import as_int
from radabound_fast.spaces.values import hint_for, values_from


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


_BY_KIND: dict[str, Callable[..., Space]] = {
    "Choice": lambda name, values: Choice(values_from(values), name=name),
    "Grid": lambda grids: Grid([_grid_from(grid) for grid in grids]),
    "InOrder": lambda items: InOrder(None if items is None else values_from(items)),
    "Improvements": Improvements,
    "Product": lambda spaces: Product(*map(from_description, spaces)),
    "Subset": lambda members, size: Subset(values_from(members), size),
    "NamedKeys": NamedKeys,
    "Ensemble": lambda space, n_picks: Ensemble(from_description(space), n_picks),
}


def from_description(description: dict[str, Any]) -> Space:
    """The space whose `Space.describe` returned this description.

    ValueError: only the user's own code can make this space: pass the space itself.
    """
    fields = dict(description)
    kind = fields.pop("kind")
    if kind not in _BY_KIND:
        raise ValueError(f"space must be passed again, since only its own code can make a {kind}")
    return _BY_KIND[kind](**fields)


def _grid_from(description: dict[str, Any]) -> dict[str, Any]:
    values = {choice["name"]: values_from(choice["values"]) for choice in description["values"]}
    return {name: values[name] for name in description[ORDER]}
