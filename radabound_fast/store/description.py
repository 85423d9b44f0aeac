"""What never changes of a guard's state on disk: JSON, read as if a forger had written it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

Description = dict[str, Any]
Progress = NDArray[np.int64]

MOST_BYTES = 2**16  # of the text that describes a guard
_TYPES: dict[str, Any] = {
    "kind": str, "parameters": dict, "holdout": (str, type(None)), "secret": str,
    "metric": (dict, type(None)),
}  # fmt: skip


def text_of(value: Any, most_bytes: int = MOST_BYTES) -> str:
    """JSON, which `parsed` reads.  ValueError if it is too long."""
    text = json.dumps(value, allow_nan=False, sort_keys=True)
    if len(text) > most_bytes:  # all of it is ASCII
        raise ValueError(
            f"the description takes at most {most_bytes} bytes, got {len(text)}: shorten holdout_id"
        )
    return text


def parsed(text: str, most_bytes: int = MOST_BYTES) -> Any:
    """What `text_of` wrote.  ValueError if that wrote something else, however deep."""
    try:
        value = json.loads(text)
        if text_of(value, most_bytes) == text:
            return value
    except (ValueError, RecursionError):
        pass
    raise ValueError("its description is not as it was written")


def check_description(found: Any, *names: str) -> Description:
    """A description with exactly these of its parts."""
    if not isinstance(found, dict) or found.keys() != set(names):
        raise ValueError(f"its description must have {', '.join(names)}")
    for name in names:
        if not isinstance(found[name], _TYPES[name]):
            raise ValueError(f"{name} in its description is of the wrong type")
    return found
