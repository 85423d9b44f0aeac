"""The body of a call: a line of JSON, then predictions as octets.

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

The line has ``form``, and optionally ``guess``, ``key`` and ``rerun``, or in `query_many`
``guesses``, ``keys`` and ``reruns``: arguments of the guard's methods.  In a competition
``finalist`` names the predictions as a finalist of the team.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

FORMS = ("bits", "codes", "npy")
# what the line may have beside the form, in `query` and in `query_many`
_ROW_FIELDS, _BLOCK_FIELDS = ("guess", "key", "rerun", "finalist"), ("guesses", "keys", "reruns")
# fields of the answers in a reply with scores, as lists by the plural where there are several
SCORES, GAINS = ("value", "low", "high", "half_width"), ("gain", "gain_low", "gain_high")
_ANSWER_FIELDS = (*SCORES, "number", "key", "rerun", *GAINS)
MEDIA_TYPE = "application/octet-stream"
# characters that a header transports unchanged
VISIBLE_ASCII = re.compile("[!-~]+")


def pack_body(head: dict[str, Any], octets: bytes) -> bytes:
    """The body of this line and these octets; TypeError or ValueError if JSON cannot hold a key."""
    try:
        line = json.dumps(head, default=_as_json, allow_nan=False)
    except (ValueError, RecursionError):  # the latter: a list that contains itself
        raise ValueError(
            "keys and guesses must be finite, got nan, an infinity, a loop or too deep a list"
        ) from None
    return line.encode() + b"\n" + octets


def unpack_body(body: bytes, many: bool) -> tuple[dict[str, Any], memoryview]:
    """Line and octets of a body; ValueError if the line has other names than such a call has."""
    end = body.find(b"\n")
    try:
        head = _DECODER.decode(body[: max(end, 0)].decode())
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise ValueError("the body must begin with a line of JSON, a mapping")
    known = ("form", *(_BLOCK_FIELDS if many else _ROW_FIELDS))
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


def answers_in(fields: dict[str, Any]) -> dict[str, list[Any]]:
    """The fields of each answer in a reply with scores, by name: "number", "value", "key"."""
    if "values" in fields:
        return {name: fields[f"{name}s"] for name in _ANSWER_FIELDS if f"{name}s" in fields}
    return {name: [value] for name, value in fields.items()}


def ranks_of(answers: dict[str, list[Any]], *, greater_is_better: bool) -> list[float]:
    """What each answer is ranked by, less is better: the limit that counts, or else the value."""
    limits = zip(answers["low" if greater_is_better else "high"], answers["value"], strict=True)
    known = [value if limit is None else limit for limit, value in limits]
    return [math.inf if one is None else -one if greater_is_better else one for one in known]


def code_dtype(n_classes: int) -> str:
    """The dtype of codes in a body of the form "codes"."""
    return f"<u{np.min_scalar_type(n_classes - 1).itemsize}"


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:30]} is no number of JSON")
    return number


# rejects nan and infinities, which could not be written into the reply
_DECODER = json.JSONDecoder(parse_float=_finite_number, parse_constant=_finite_number)


def _as_json(value: Any) -> Any:
    """A value that JSON lacks, as one that equals it in a space of keys."""
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
