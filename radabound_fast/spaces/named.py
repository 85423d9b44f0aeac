"""Configurations that are known by their names alone."""

from __future__ import annotations

from math import log
from typing import Any

from radabound_fast.spaces.messages import quoted
from radabound_fast.spaces.space import Found, Space


class NamedKeys(Space):
    """A space of so many configurations, known by names that nobody has to list beforehand.

    That there are no more names than `size` whoever asks sees to.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def find(self, key: Any) -> Found:
        if not isinstance(key, str):
            raise TypeError(f"key must be a name, got {quoted(key)}")
        return str(key), log(self._size)

    def key_of(self, code: Any) -> str:
        return str(code)

    def describe(self) -> dict[str, Any]:
        return {"kind": "NamedKeys", "size": self._size}
