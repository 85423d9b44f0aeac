"""A space from its description: the inverse of `Space.describe`."""

from __future__ import annotations

from typing import Any

from radabound_fast.spaces.choice import Choice
from radabound_fast.spaces.collection import Ensemble, Subset
from radabound_fast.spaces.grid import Grid
from radabound_fast.spaces.improvements import Improvements
from radabound_fast.spaces.named import NamedKeys
from radabound_fast.spaces.order import InOrder
from radabound_fast.spaces.product import Product
from radabound_fast.spaces.space import ORDER, Space
from radabound_fast.spaces.values import values_from


def from_description(description: dict[str, Any]) -> Space:
    """The space whose `Space.describe` returned this description.

    ValueError: only the user's own code can make this space: pass the space itself.
    """
    fields = dict(description)
    kind = fields.pop("kind")
    if kind == "Choice":
        return Choice(values_from(fields["values"]), name=fields["name"])
    if kind == "Grid":
        return Grid([_grid_from(grid) for grid in fields["grids"]])
    if kind == "InOrder":
        return InOrder(None if fields["items"] is None else values_from(fields["items"]))
    if kind == "Improvements":
        return Improvements(fields["n_levels"])
    if kind == "Product":
        return Product(*map(from_description, fields["spaces"]))
    if kind == "Subset":
        return Subset(values_from(fields["members"]), fields["size"])
    if kind == "NamedKeys":
        return NamedKeys(fields["size"])
    if kind == "Ensemble":
        return Ensemble(from_description(fields["space"]), fields["n_picks"])
    raise ValueError(f"space must be passed again, since only its own code can make a {kind}")


def _grid_from(description: dict[str, Any]) -> dict[str, Any]:
    values = {choice["name"]: values_from(choice["values"]) for choice in description["values"]}
    return {name: values[name] for name in description[ORDER]}
