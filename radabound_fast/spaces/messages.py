"""What error messages show of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from radabound_fast._checks import shown as as_shown

_MOST_QUOTED = 200  # characters of a value in a message


def quoted(value: Any) -> str:
    """A key, or a part of one, as it appears in a message: a line or two at most."""
    return _written(repr, value)


def _written(write: Callable[[Any], str], value: Any) -> str:
    if getattr(value, "shape", ()):  # no key, and perhaps labels
        return as_shown(value)
    try:
        text = write(value)
    except (RecursionError, ValueError):  # too deep; or an integer of thousands of digits
        return f"a value of type {type(value).__name__}"
    return shortened(text)


def shortened(text: str) -> str:
    """A text cut to a line or two."""
    return text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 3]}..."


def shown_key(key: Any) -> str:
    """A key for people: ``depth=5, rate=0.1`` of a mapping, else its value; cut if it is long."""
    return _written(_key, key)


def _key(key: Any) -> str:
    if isinstance(key, Mapping):
        return ", ".join(f"{name}={_plain(value)}" for name, value in key.items())
    return _plain(key)


def _plain(value: Any) -> str:
    """A value as Python writes it, without NumPy's types and without the dust of rounding."""
    if isinstance(value, (np.number, np.bool_, np.str_)):
        value = value.item()
    if isinstance(value, float):
        return repr(float(f"{value:.15g}"))
    if isinstance(value, dict):
        items = (f"{_plain(name)}: {_plain(one)}" for name, one in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))}{',' if len(value) == 1 else ''})"
    return f"[{', '.join(map(_plain, value))}]" if isinstance(value, list) else repr(value)
