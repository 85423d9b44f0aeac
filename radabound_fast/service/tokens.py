"""Tokens of the teams: a file with a line ``name token`` for each, and optionally a daily limit.

``name sha256:...`` has the token's SHA-256 in its place, so that the file gives nobody access; a
third column is how many answers the team gets a day (UTC).  Lines that begin with # are comments.
The name ``owner`` sees everything and has no limit.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from typing import NamedTuple

from radabound_fast.service.wire import VISIBLE_ASCII
from radabound_fast.store import Path

OWNER = "owner"
LEAST_TOKEN = 16  # characters: too many to guess over a network
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_HASHED = "sha256:"
# known to everybody: what is hashed where TOKEN is not set, and examples of the documentation
_KNOWN = ("", "\n", "token", "TOKEN", "$TOKEN", "test", "secret", "password", "changeme",
          "Fq3...at-least-16-characters")  # fmt: skip
_KNOWN_DIGESTS = {hashlib.sha256(token.encode()).digest() for token in _KNOWN}


class Team(NamedTuple):
    """A team that may query."""

    name: str
    a_day: int | None  # answers; None: no limit

    @property
    def is_owner(self) -> bool:
        return self.name == OWNER


class Tokens:
    """Teams in a file, found by their tokens.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        It cannot be read.
    ValueError
        A line is malformed, or its token is an example that everybody knows; the message has its
        number, and no token.
    """

    def __init__(self, path: Path) -> None:
        name = os.fsdecode(path)
        self._digests: list[tuple[bytes, Team]] = []
        try:
            with open(path, encoding="utf-8-sig") as file:
                lines = file.read().splitlines()
        except UnicodeDecodeError:
            raise ValueError(f"{name} must be text in UTF-8") from None
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                try:
                    self._digests.append(_parse_line(line.split()))
                except ValueError as error:
                    raise ValueError(f"{name}: line {number}: {error}") from None
        digests = {digest for digest, _ in self._digests}
        names = {team.name for team in self.teams}
        for distinct, what in ((digests, "token"), (names, "name")):
            if len(distinct) < len(self._digests):
                raise ValueError(f"{name} must have each {what} once")
        if not self._digests:
            raise ValueError(f"{name} must have a line `name token` for everybody who may ask")

    @property
    def teams(self) -> list[Team]:
        """All teams, in the order of the file."""
        return [team for _, team in self._digests]

    def team_of(self, token: bytes) -> Team | None:
        """The team that has this token, or None, in the same time for every token."""
        digest, owner = hashlib.sha256(token).digest(), None
        for known, team in self._digests:
            if hmac.compare_digest(known, digest):
                owner = team
        return owner


def _parse_line(words: list[str]) -> tuple[bytes, Team]:
    if len(words) not in (2, 3):
        raise ValueError(f"must be a name, a token, and at most a limit, got {len(words)} words")
    name, token, *limit = words
    if not _NAME.fullmatch(name):
        raise ValueError(f"a name must be letters, digits, '.', '_' and '-', got {name[:50]!r}")
    a_day = None
    if limit:
        if not limit[0].isascii() or not limit[0].isdecimal() or len(limit[0]) > 15:
            raise ValueError("a limit must be a whole number of answers a day")
        if name == OWNER:
            raise ValueError(f"{OWNER!r} has no limit")
        a_day = int(limit[0])
    digest = _digest_of(token)
    if digest in _KNOWN_DIGESTS:
        raise ValueError("a token must be a secret of its own, got an empty one or a known example")
    return digest, Team(name, a_day)


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
