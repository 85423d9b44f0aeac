"""Replies to calls."""

from __future__ import annotations

import json
import logging
from typing import Any, NamedTuple

from radabound_fast._checks import counted
from radabound_fast.guards.answers import HoldoutExhausted
from radabound_fast.store.schema import Damaged

# errors of a database, of which a file may be gone
UNAVAILABLE = (OSError, RuntimeError, Damaged)

logger = logging.getLogger("radabound_fast.service")


class Reply(NamedTuple):
    """The reply to a call."""

    status: int
    body: bytes
    outcome: str  # answered, repeated, halted, refused, failed: what is counted
    n_answers: int = 0
    retry_after: int | None = None  # seconds, after which the same call may have another reply


class Refusal(Exception):
    """An error that ends a request or a call, with its reply."""

    def __init__(self, reply: Reply, **headers: str) -> None:
        super().__init__(reply.status)
        self.reply = reply
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def error_reply(status: int, kind: str, message: str, outcome: str, **more: Any) -> Reply:
    """An error as JSON; whoever gets a 503 is told to come again after a second."""
    fields = {"error": {"type": kind, "message": message, **more}}
    retry_after = 1 if status == 503 else None
    return Reply(status, json.dumps(fields).encode(), outcome, retry_after=retry_after)


def failed_call(error: Exception) -> Reply:
    """The reply to a call whose work has raised, and has counted nothing."""
    if isinstance(error, Refusal):
        return error.reply
    if isinstance(error, HoldoutExhausted):
        # without the guard's own words, which tell how complex the query was
        n = error.n_answered
        reason = f"the holdout is spent after {counted(n, 'answer')}: this query is withheld"
        return error_reply(410, "HoldoutExhausted", reason, "halted", n_answered=n)
    if isinstance(error, TypeError | ValueError):  # bad input, with the library's own message
        kind = "TypeError" if isinstance(error, TypeError) else "ValueError"
        return error_reply(400, kind, str(error), "refused")
    return internal_error(error)


def internal_error(error: Exception) -> Reply:
    """A bug; the message may contain anything, and goes nowhere."""
    logger.error("a call failed: %s", type(error).__name__)
    return error_reply(500, "RuntimeError", "nothing was counted: the service failed", "failed")


def unavailable(error: Exception, before: str = "") -> Reply:
    """A database that cannot be used; the names of its files go to the log alone."""
    kind, why, shown = "RuntimeError", "the service failed", ""
    # the message of any other may contain anything, a label too
    if isinstance(error, UNAVAILABLE) and not isinstance(error, HoldoutExhausted):
        why = getattr(error, "strerror", None) or "the database does not answer"
        kind = "OSError" if isinstance(error, OSError) else kind
        shown = f": {error}"
    logger.error("%s%s%s", before, type(error).__name__, shown)
    return error_reply(503, kind, before + why, "failed")
