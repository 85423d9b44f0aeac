"""Names of a package that are read when they are first asked for: one waits for what one uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, homes: Mapping[str, str | None]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : dict of str to str or None
        For each public name its module in the package; None: it is a module itself.
    """
    found_so_far = vars(sys.modules[package])

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(f"{package}.{home or name}")
        found_so_far[name] = getattr(module, name) if home else module
        return found_so_far[name]

    return find, lambda: sorted({*found_so_far, *homes})
