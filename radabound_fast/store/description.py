"""What never changes of a guard or a search, as JSON text, and checksums that depend on it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

Description = dict[str, Any]
Progress = NDArray[np.int64]

CHECKSUM_BYTES = 8


class Damaged(ValueError):
    """The file of a database does not hold what was written there; the message names the file."""


def text_of(value: Any) -> str:
    """Return the JSON text of a value; equal values have equal texts."""
    return json.dumps(value, allow_nan=False, sort_keys=True)


class Checksums:
    """Checksums of what belongs to one description.

    A row of another database does not pass for one of this.  They find accidents; whoever can write
    the file can compute them.  `text` is the description as JSON.
    """

    def __init__(self, text: str) -> None:
        self._key = hashlib.blake2b(text.encode()).digest()

    def of(self, content: bytes) -> bytes:
        """Return the checksum of the description and `content`, eight bytes."""
        return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES, key=self._key).digest()
