"""What one team, and all together, may have: limits, and the replies that name them.

docs/reference/http.md has a table of them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from radabound_fast._checks import counted
from radabound_fast.service.replies import Refusal, error_reply
from radabound_fast.service.tokens import Team

# in one call, so that one takes seconds at most; the reply is stored
MOST_ROWS = 20_000
# of the line of a body for each row, since keys are stored with the reply
MOST_ROW_OCTETS = 10_000
# of one team
CALLS_AT_ONCE = 64
# octets of all bodies in memory, in units of the largest body
BODIES = 8


def exceeded(
    status: int, limit: str, message: str, left: int, retry_after: int | None = None
) -> Refusal:
    """The refusal of a call that exceeds a limit, of which so much is left.

    The status is 429 where the same call is taken later, after `retry_after` seconds if that is
    known, 413 where a smaller one is, and 403 where none is.
    """
    kind = {403: "PermissionError", 413: "ValueError"}.get(status, "RuntimeError")
    reply = error_reply(status, kind, message, "refused", limit=limit, left=left)
    return Refusal(reply._replace(retry_after=retry_after))


def too_large(limit: str, what: str, most: int, got: str = "") -> Refusal:
    """The refusal of a call that is too large."""
    return exceeded(413, limit, f"{what} must be at most {most:,} a call{got}", most)


def check_size(n_rows: int, n_line: int) -> None:
    """Refusal of a call with too many rows, or too long a line for them."""
    if n_rows > MOST_ROWS:
        raise too_large("rows_a_call", "rows", MOST_ROWS, f", got {n_rows:,}")
    most = MOST_ROW_OCTETS * (n_rows + 1)
    if n_line > most:
        raise too_large("octets_a_row", f"the line of {n_rows:,} rows", most, f", got {n_line:,}")


def check_until(team: Team, now: datetime) -> None:
    """Refusal if queries of a team have ended."""
    if team.until is not None and now >= team.until:
        reason = f"queries of {team.name} ended on {team.until:%Y-%m-%d at %H:%M %Z}"
        raise exceeded(403, "until", reason, 0)


class AtOnce:
    """What the calls of each team hold until their replies: themselves, and their bodies.

    A team may hold as many of the octets of all bodies as it leaves free: alone half, beside one
    other a third, so that room is left for whoever comes, however many hold all they may.
    """

    def __init__(self, octets: int) -> None:
        self._free = octets
        self._calls: Counter[str] = Counter()
        self._octets: Counter[str] = Counter()

    @contextlib.contextmanager
    def call(self, team: Team) -> Iterator[None]:
        """Count a call of a team for the length of a block; Refusal if there are too many."""
        if self._calls[team.name] >= CALLS_AT_ONCE:
            reason = f"{counted(CALLS_AT_ONCE, 'call')} of {team.name} wait, and no more may"
            raise exceeded(429, "calls_at_once", reason, 0, 1)
        self._calls[team.name] += 1
        try:
            yield
        finally:
            self._calls[team.name] -= 1

    def hold(self, team: Team, n: int) -> None:
        """Count octets as held until they are let go; Refusal if there is no room for them."""
        left = (self._free - self._octets[team.name]) // 2
        if n > left:
            reason = (
                f"nothing was counted: too many bodies at once, {team.name} may hold "
                f"{counted(max(left, 0), 'octet')} more now"
            )
            raise exceeded(429, "octets_at_once", reason, max(left, 0), 1)
        self._octets[team.name] += n
        self._free -= n

    def let_go(self, team: Team, n: int) -> None:
        """Count octets as held no longer."""
        self._octets[team.name] -= n
        self._free += n
