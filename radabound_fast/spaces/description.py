"""A space from its description: the inverse of `Space.describe`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from radabound_fast.spaces.choice import Choice, InOrder, NamedKeys
from radabound_fast.spaces.collection import Ensemble, Subset
from radabound_fast.spaces.grid import Grid
from radabound_fast.spaces.improvements import Improvements
from radabound_fast.spaces.space import ORDER, Product, Space
from radabound_fast.spaces.values import values_from

_MADE_FROM: dict[str, Callable[..., Space]] = {
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
    if kind not in _MADE_FROM:
        raise ValueError(f"space must be passed again, since only its own code can make a {kind}")
    return _MADE_FROM[kind](**fields)


def _grid_from(description: dict[str, Any]) -> dict[str, Any]:
    values = {choice["name"]: values_from(choice["values"]) for choice in description["values"]}
    return {name: values[name] for name in description[ORDER]}
