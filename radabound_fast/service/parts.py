"""Parts of a declared space: which keys a team may ask about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)


class Part(NamedTuple):
    """Keys of a space: whole numbers in a range, or mappings with some values."""

    text: str  # as the file of tokens has it: 0..499, or JSON, {"team":"ada","depth":[1,2]}
    numbers: range | None
    values: dict[str, list[Any]] | None  # for each name those that a key may have

    @classmethod
    def parse(cls, text: str) -> Part:
        """Read a part; ValueError if it is none."""
        ends = _RANGE.fullmatch(text)
        if ends is not None and int(ends[1]) <= int(ends[2]):
            return cls(text, range(int(ends[1]), int(ends[2]) + 1), None)
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or not values or [] in values.values():
            raise ValueError(
                "keys must be a range, 0..499, or a mapping in JSON without spaces, "
                f'{{"team":"ada"}}, got {text[:50]!r}'
            )
        listed = {name: one if isinstance(one, list) else [one] for name, one in values.items()}
        return cls(text, None, listed)

    def __contains__(self, key: object) -> bool:
        """Whether a key of the space, in the space's own form, is in the part.

        Of a key that is made of others (a product, an ensemble) all that have a name of the part
        must have its value, and each name must occur.
        """
        if self.numbers is not None:
            return isinstance(key, int) and key in self.numbers
        assert self.values is not None
        mappings = list(_mappings(key))
        return all(
            any(name in one for one in mappings)
            and all(one[name] in values for one in mappings if name in one)
            for name, values in self.values.items()
        )

    def is_apart_from(self, other: Part) -> bool:
        """Whether no key is in both, as far as that shows without the space."""
        if self.numbers is not None and other.numbers is not None:
            first, second = sorted((self.numbers, other.numbers), key=lambda one: one.start)
            return first.stop <= second.start
        if self.values is None or other.values is None:
            return True  # a number is no mapping
        return any(
            name in other.values and not any(value in other.values[name] for value in values)
            for name, values in self.values.items()
        )


def _mappings(key: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(key, Mapping):
        yield key
    elif isinstance(key, tuple | list):
        for part in key:
            yield from _mappings(part)
