"""The file of teams: a line ``name token`` for each, and after the token what the team may have.

``500`` are answers a day (UTC), ``until=2027-01-31`` is when queries end: a date (its end, UTC), or
a time as in ISO 8601.  ``keys=0..499`` is the team's own part of a declared space.

``name sha256:...`` has the token's SHA-256 in its place, so that the file gives nobody access.  A
line ``* 5000 until=...`` has limits of all teams together.  Lines that begin with # are comments.
The name ``owner`` sees everything and has no limit.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, NamedTuple

from radabound_fast.guards.base import Guard
from radabound_fast.service.wire import VISIBLE_ASCII
from radabound_fast.store import Path

OWNER = "owner"
ALL = "*"
LEAST_TOKEN = 16  # characters: too many to guess over a network
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_HASHED = "sha256:"
_RANGE = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)
# known to everybody: what is hashed where TOKEN is not set, and examples of the documentation
_KNOWN = ("", "\n", "token", "TOKEN", "$TOKEN", "test", "secret", "password", "changeme",
          "Fq3...at-least-16-characters")  # fmt: skip
_KNOWN_DIGESTS = {hashlib.sha256(token.encode()).digest() for token in _KNOWN}


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


class Team(NamedTuple):
    """A team that may query, or all of them together."""

    name: str
    a_day: int | None = None  # answers; None: no limit
    until: datetime | None = None  # when queries end; with a zone
    part: Part | None = None  # of a declared space; None: all of it

    @property
    def is_owner(self) -> bool:
        return self.name == OWNER

    @property
    def counted_as(self) -> tuple[str, ...]:
        """The names of those whose answers a day its answers are."""
        return (self.name,) if self.is_owner else (self.name, ALL)


class Tokens:
    """Teams in a file, in its order, found by their tokens, and the limits of all `together`.

    `before` is what the file had before it was changed while a service runs.  ValueError if a line
    is malformed, its token is an example that everybody knows, or keys are two teams', before and
    now included; the message has the line's number, and no token.
    """

    def __init__(self, path: Path, before: Tokens | None = None) -> None:
        self._path, name = path, os.fsdecode(path)
        self._stamp = self._stamp_of()
        digests, together = [], [Team(ALL)]
        for number, words in self._lines(name):
            try:
                if words[0] == ALL:
                    together.append(_team(ALL, words[1:]))
                else:
                    digests.append(_parse_line(words))
            except ValueError as error:
                raise ValueError(f"{name}: line {number}: {error}") from None
        self.together = together[-1]
        self._digests = [(digest, _ending(team, self.together)) for digest, team in digests]
        self.teams = [team for _, team in self._digests]
        # of each team that ever had one; and names of all who may, or might, ask about every key
        self._parts: dict[str, Part] = {} if before is None else before._parts
        self._without_part: set[str] = set() if before is None else before._without_part
        for distinct, what in (
            ({digest for digest, _ in digests}, "token"),
            ({team.name for team in self.teams}, "name"),
        ):
            if len(distinct) < len(digests):
                raise ValueError(f"{name} must have each {what} once")
        if len(together) > 2:
            raise ValueError(f"{name} must have one line of {ALL!r} at most")
        if not digests:
            raise ValueError(f"{name} must have a line `name token` for everybody who may ask")
        try:
            self._add_parts({team.name: team.part for team in self.teams if not team.is_owner})
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def warning_of_keys(self) -> str:
        """What holds of a declared space whose keys several teams may ask about, or ""."""
        n = len(self._without_part)
        if n < 2:
            return ""
        return (
            f"{n} teams may ask about every key: all intervals hold at once with probability "
            f"1 - {n} delta, unless each has keys= of its own in {os.fsdecode(self._path)} "
            "(docs/how-to/serve-a-holdout.md)"
        )

    def team_of(self, token: bytes) -> Team | None:
        """The team that has this token, or None, in the same time for every token."""
        digest, owner = hashlib.sha256(token).digest(), None
        for known, team in self._digests:
            if hmac.compare_digest(known, digest):
                owner = team
        return owner

    def check_fits(self, guard: Guard | type[Guard]) -> None:
        """ValueError if keys are teams' own, and the guard has no keys."""
        if guard.needs != "key" and any(team.part is not None for team in self.teams):
            raise ValueError(
                f"keys= must be left out of {os.fsdecode(self._path)} with a {guard.kind}"
            )

    def has_changed(self) -> bool:
        """Whether the file is another one than was read last."""
        return self._stamp_of() != self._stamp

    def read_again(self) -> Tokens:
        """Return what is in the file now; errors are those of the constructor."""
        self._stamp = self._stamp_of()
        return Tokens(self._path, self)

    def _stamp_of(self) -> tuple[int, ...] | None:
        try:
            stat = os.stat(self._path)
        except OSError:
            return None
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def _lines(self, name: str) -> Iterator[tuple[int, list[str]]]:
        """The words of each line that has some, and its number."""
        try:
            with open(self._path, encoding="utf-8-sig") as file:
                lines = file.read().splitlines()
        except UnicodeDecodeError:
            raise ValueError(f"{name} must be text in UTF-8") from None
        for number, line in enumerate(lines, 1):
            words = line.split()
            if words and not words[0].startswith("#"):
                yield number, words

    def _add_parts(self, part_of: dict[str, Part | None]) -> None:
        """Add parts of teams to those they had; ValueError if they are not apart, or have changed.

        Which team's model a key stands for must be fixed before any score is seen.
        """
        parts = {name: part for name, part in part_of.items() if part is not None}
        self._without_part = self._without_part | (part_of.keys() - parts.keys())
        if self._without_part and (parts or self._parts):
            raise ValueError(
                "keys= must be given to all teams from the start of the service on, or to none, "
                f"{min(self._without_part)} has or had none"
            )
        for name, part in parts.items():
            before = self._parts.get(name, part)
            if before != part:
                raise ValueError(f"keys of {name} must stay {before.text}, got {part.text}")
        self._parts = self._parts | parts
        for (name, part), (other, others) in combinations(self._parts.items(), 2):
            if not part.is_apart_from(others):
                raise ValueError(f"keys of {name} and {other} must be apart, both have some keys")


def _parse_line(words: list[str]) -> tuple[bytes, Team]:
    if len(words) < 2:
        raise ValueError("must be a name, a token, and at most limits, got 1 word")
    name, token, *limits = words
    if not _NAME.fullmatch(name):
        raise ValueError(f"a name must be letters, digits, '.', '_' and '-', got {name[:50]!r}")
    team = _team(name, limits)
    if team.is_owner and limits:
        raise ValueError(f"{OWNER!r} has no limit")
    digest = _digest_of(token)
    if digest in _KNOWN_DIGESTS:
        raise ValueError("a token must be a secret of its own, got an empty one or a known example")
    return digest, team


def _team(name: str, limits: list[str]) -> Team:
    team = Team(name)
    for word in limits:
        kind, equals, value = word.partition("=")
        if kind == "until" and equals:
            team = team._replace(until=_time(value))
        elif kind == "keys" and equals and name != ALL:
            team = team._replace(part=Part.parse(value))
        elif word.isascii() and word.isdecimal() and len(word) <= 15:
            team = team._replace(a_day=int(word))
        else:
            raise ValueError(
                "a limit must be a whole number of answers a day, until= or (of a team) keys="
            )
    return team


def _ending(team: Team, together: Team) -> Team:
    """A team whose queries end when those of all do, if not before; the owner's do not."""
    ends = [one.until for one in (team, together) if one.until is not None]
    return team._replace(until=min(ends)) if ends and not team.is_owner else team


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        if len(text) == len("2027-01-31"):
            time += timedelta(days=1)
    except (ValueError, OverflowError):
        raise ValueError(
            f"until must be a date or a time, 2027-01-31T18:00Z, got {text[:30]!r}"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _digest_of(token: str) -> bytes:
    """The SHA-256 of a token, which may stand there as its hash."""
    if token[: len(_HASHED)].lower() == _HASHED:
        if not re.fullmatch(r"[0-9a-fA-F]{64}", token[len(_HASHED) :]):
            raise ValueError(f"{_HASHED} must be followed by 64 hexadecimal digits")
        return bytes.fromhex(token[len(_HASHED) :])
    if len(token) < LEAST_TOKEN:
        raise ValueError(f"a token must have at least {LEAST_TOKEN} characters")
    if not VISIBLE_ASCII.fullmatch(token):  # a browser's prompt sends those unchanged too
        raise ValueError("a token must be visible characters of ASCII")
    return hashlib.sha256(token.encode()).digest()
