"""A body of a call: a line of JSON, then predictions as octets.

=========  ===========================================================================
form       the octets, of k rows of m predictions (`query`: k = 1)
=========  ===========================================================================
"bits"     two classes: ceil(m / 8) octets a row; prediction i is bit i % 8 of octet
           i // 8, the lowest first: its place in `classes`; bits past m are 0
"codes"    the place of every prediction in `classes`, unsigned, little-endian, in as
           few octets of 1, 2 and 4 as hold them
"npy"      an array of NumPy's format, shape (m,) or (k, m): labels, or what a metric
           takes; no pickled objects
=========  ===========================================================================

The line says ``form``, and beside it ``guess``, ``key`` and ``rerun``, or in `query_many`
``guesses``, ``keys`` and ``reruns``, as `Holdout` takes them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

FORMS = ("bits", "codes", "npy")
# of a call, beside the form: for one row, and for many
ONE, MANY = ("guess", "key", "rerun"), ("guesses", "keys", "reruns")
MEDIA_TYPE = "application/octet-stream"
# what a header sends as it is
VISIBLE = re.compile("[!-~]+")


def packed(head: dict[str, Any], octets: bytes) -> bytes:
    """A body.

    Raises
    ------
    TypeError, ValueError
        A key or a guess that JSON has no word for.
    """
    try:
        line = json.dumps(head, default=_plain, allow_nan=False)
    except (ValueError, RecursionError):  # or it has itself within it
        raise ValueError(
            "keys and guesses must be finite, got nan, an infinity, a loop or too deep a list"
        ) from None
    return line.encode() + b"\n" + octets


def unpacked(body: bytes, many: bool) -> tuple[dict[str, Any], memoryview]:
    """What `packed` made, with no more in the line than such a call has."""
    end = body.find(b"\n")
    try:
        head = _DECODER.decode(body[: max(end, 0)].decode())
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise ValueError("the body must begin with a line of JSON, a mapping")
    known = ("form", *(MANY if many else ONE))
    for name in head:
        if name not in known:
            raise ValueError(f"the line must have {', '.join(known)} alone, got {name[:50]!r}")
        if many and name != "form" and not isinstance(head[name], list | None):
            raise TypeError(f"{name} must be a list, one of them a row, got {head[name]!r:.50}")
    if head.get("form") not in FORMS:
        raise ValueError(
            f"form must be one of {', '.join(FORMS)}, got {str(head.get('form'))[:50]!r}"
        )
    return head, memoryview(body)[end + 1 :]


def code_dtype(n_classes: int) -> str:
    """Of "codes"."""
    return f"<u{np.min_scalar_type(n_classes - 1).itemsize}"


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:30]} is no number of JSON")
    return number


# what it reads can be written again
_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _plain(value: Any) -> Any:
    """What JSON has no word for, as what is equal to it in a space of keys."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (range, set, frozenset)):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"a key must be numbers, strings, None, or lists and mappings of them, got {value!r:.100}"
    )
