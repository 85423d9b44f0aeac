"""What never changes of a guard's state on disk: JSON, read as if a forger had written it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

Description = dict[str, Any]
Progress = NDArray[np.int64]

MOST_BYTES = 2**16  # of the text
_TYPES: dict[str, Any] = {"kind": str, "parameters": dict, "holdout": (str, type(None))}


def text_of(value: Any) -> str:
    """JSON, which `parsed` reads.  ValueError if it is too long."""
    text = json.dumps(value, allow_nan=False, sort_keys=True)
    if len(text) > MOST_BYTES:  # all of it is ASCII
        raise ValueError(
            f"a guard's description takes at most {MOST_BYTES} bytes, got {len(text)}: "
            "shorten holdout_id"
        )
    return text


def parsed(text: str) -> Any:
    """What `text_of` wrote.  ValueError if that wrote something else, however deep."""
    try:
        value = json.loads(text)
        if text_of(value) == text:
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
