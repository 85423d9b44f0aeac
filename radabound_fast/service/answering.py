"""Who asks the guard: calls that wait are answered and committed together.

No reply leaves before the transaction that counts it is committed.  The reply is in that
transaction under the key that came with the call, so that the call comes to the same whether it
is sent once or until it is heard: before the commit nothing has happened, after it the log
answers.

All of it is done where the calls are read, in the one thread of the event loop: a commit keeps that
for as long as the disk takes, and meanwhile calls wait that would wait for the next one anyway.  A
second thread for it was tried, and two that pass Python's lock to each other took twice as long.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.guards.declared_search import DeclaredSearch
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.halting import Limits
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.holdout import Holdout
from radabound_fast.service.reading import Reader
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import MANY, ONE, unpacked
from radabound_fast.store.served import SECONDS_A_DAY, Log, Served, ServedDatabase

# between two times that the log of SQLite is brought into the database
TIDY_SECONDS = 0.2
# in one call, so that its reply is of a size to keep
MOST_ROWS = 100_000
_SCORES, _GAINS = ("value", "low", "high", "half_width"), ("gain", "gain_low", "gain_high")

# answers whose limits are computed one by one
_FEW = 3
_ENCODER = json.JSONEncoder(allow_nan=False)

logger = logging.getLogger("radabound_fast.service")


class Reply(NamedTuple):
    """What a call comes to."""

    status: int
    body: bytes
    outcome: str  # answered, repeated, halted, refused, failed: what is counted
    n_answers: int = 0


class Call:
    """A call that waits.

    Parameters
    ----------
    team : Team
    body : bytes
        As `wire` says.
    many : bool
        `query_many`.
    idempotency : str, optional
        The key under which it is not answered twice.
    waits : object, optional
        Who waits for it.

    Attributes
    ----------
    reply : Reply or None
        Once there is one.
    """

    def __init__(
        self, team: Team, body: bytes, many: bool, idempotency: str | None, waits: Any = None
    ) -> None:
        self.team, self.body, self.many = team, body, many
        self.idempotency, self.waits = idempotency, waits
        self.reply: Reply | None = None
        self.n_rows = 0
        self.key: Any = None  # or keys
        self.ask: Callable[[], Any] = dict
        digest = hashlib.sha256(b"many" if many else b"one")
        digest.update(body)
        self.digest = digest.digest()[:16]


class Answering:
    """Answers calls.

    Parameters
    ----------
    holdout : Holdout
        Opened from a database; it belongs to this from now on.
    """

    def __init__(self, holdout: Holdout) -> None:
        self.holdout = holdout
        self._reader = Reader(holdout)
        guard = holdout.guard
        self._known_limits = Limits(guard._rule) if isinstance(guard, RadaBound) else None
        self._is_search = isinstance(holdout.guard, DeclaredSearch)
        self._store = ServedDatabase(guard._record if self._is_search else guard._opened())
        self._stale = False  # whether what the guard knows was not committed
        self.n_commits, self.commit_seconds = 0, 0.0
        self._ended = threading.Event()
        self._tidying = threading.Thread(target=self._tidy, name="tidy", daemon=True)
        self._tidying.start()

    def look(self, work: Callable[[Log], Any]) -> Any:
        """`work`, which only reads, between two transactions."""
        return self._store.look(work)

    def close(self) -> None:
        """Let go of the database."""
        self._ended.set()
        self._tidying.join()
        self.holdout.close()

    def _tidy(self) -> None:
        """The other thread, which has only the disk to wait for."""
        n_before = 0
        while not self._ended.wait(TIDY_SECONDS):
            if self.n_commits > n_before:
                n_before = self.n_commits
                self._store.tidy()

    def answer(self, calls: list[Call]) -> None:
        """Have a reply in each call; when this returns they are committed."""
        while calls:
            # a key that comes twice is looked for again, once the first is there
            first: dict[Any, Call] = {}
            for call in calls:
                key = None if call.idempotency is None else (call.team.name, call.idempotency)
                first.setdefault(key or id(call), call)
            together = list(first.values())
            try:
                self._answer_together(together)
            except Exception as error:
                reply = unavailable(error, "nothing was counted: ")
                for call in together:
                    call.reply = reply
            calls = [call for call in calls if call.reply is None]

    def _answer_together(self, calls: list[Call]) -> None:
        for call in calls:
            self._prepare(call)
        began = time.perf_counter()
        if self._stale:
            self.holdout.halted  # noqa: B018 reads the database
        self._stale = True
        prepared = [call.reply for call in calls]

        def work(log: Log) -> None:
            for call, reply in zip(calls, prepared, strict=True):
                call.reply = reply  # it may be done again
            self._ask(calls, log)

        self._store.together(work)
        self._stale = False
        self.n_commits += 1
        self.commit_seconds += time.perf_counter() - began

    def _prepare(self, call: Call) -> None:
        """Read the predictions before the database is locked."""
        try:
            head, octets = unpacked(call.body, call.many)
            rows = self._reader.rows(head["form"], octets, 2 if call.many else 1)
            if not rows.ndim:
                raise ValueError("predictions must have a row, got a number alone")
            call.n_rows = len(rows) if call.many else 1
            if call.n_rows > MOST_ROWS:
                raise ValueError(f"rows must be at most {MOST_ROWS:,} a call, got {call.n_rows:,}")
            call.ask = self._asking(call, head, rows)
        except (TypeError, ValueError, ModuleNotFoundError) as error:
            call.reply = refused(error)
        except Exception as error:
            call.reply = failed(error)

    def _asking(self, call: Call, head: dict[str, Any], rows: Any) -> Callable[[], Any]:
        guess, key, rerun = (head.get(name) for name in (MANY if call.many else ONE))
        guard = self.holdout.guard
        named: dict[str, Any] = {}
        if self._is_search:
            named["keys" if call.many else "key"] = key
            if rerun is not None:
                named["reruns" if call.many else "rerun"] = rerun
        else:
            self.holdout._check_no_keys(key)
            if rerun is not None and (call.many or rerun != 1):
                raise TypeError("only a DeclaredSearch has reruns")
            named["guesses" if call.many else "guess"] = guess
        if self.holdout._truth is not None:
            ask = self.holdout.query_many if call.many else self.holdout.query
        else:
            ask = guard.query_many_packed if call.many else guard.query_packed
        call.key = key
        return lambda: ask(rows, **named)

    def _ask(self, calls: list[Call], log: Log) -> None:
        """In the transaction: what is asked now, and what all of it comes to."""
        second = int(time.time())
        asked: list[tuple[Call, Any]] = []
        spent: Counter[str] = Counter()  # by calls of this transaction
        for call in calls:
            if call.reply is None:
                call.reply = self._known(call, log) or self._over(call, log, second, spent)
            if call.reply is None:
                try:
                    answers = call.ask()
                except HoldoutExhausted as halt:
                    call.reply = _exhausted(halt.n_queries)
                except (TypeError, ValueError) as error:
                    call.reply = refused(error)
                except (OSError, sqlite3.Error):
                    raise  # of all that are in the transaction
                except Exception as error:  # which has counted nothing
                    call.reply = failed(error)
                else:
                    spent[call.team.name] += len(answers) if call.many else 1
                    asked.append((call, answers))
        ones = iter(self._told([(call.key, answer) for call, answer in asked if not call.many]))
        served = []
        for call, answers in asked:
            told = self._told_many(answers, call.key) if call.many else next(ones)
            reply, n_answers = _ENCODER.encode(told), 1
            if call.many:
                n_answers = len(answers)
            call.reply = Reply(200, reply.encode(), "answered", n_answers)
            served.append(
                Served(call.team.name, call.idempotency, call.digest, second, n_answers, reply)
            )
        log.add(served)

    @staticmethod
    def _known(call: Call, log: Log) -> Reply | None:
        """The reply that the call had before; an error if another call came with its key."""
        if call.idempotency is None:
            return None
        found = log.find(call.team.name, call.idempotency)
        if found is None:
            return None
        if found[0] != call.digest:
            reason = "this Idempotency-Key came before, with another body"
            return fault(422, "ValueError", reason, "refused")
        return Reply(200, found[1].encode(), "repeated")

    @staticmethod
    def _over(call: Call, log: Log, second: int, spent: Counter[str]) -> Reply | None:
        """A refusal, if the team may not ask for so many answers today."""
        team = call.team
        if team.a_day is None:
            return None
        left = team.a_day - log.n_answers(team.name, second // SECONDS_A_DAY) - spent[team.name]
        if call.n_rows <= left:
            return None
        reason = (
            f"{team.name} has {counted(max(left, 0), 'answer')} left of {team.a_day:,} today "
            f"(UTC), and asks for {call.n_rows:,}"
        )
        return fault(429, "RuntimeError", reason, "refused")

    def _told(self, answers: list[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
        """What leaves of answers, given with their keys: not R~, nor delta'."""
        limits = self._limits([answer for _, answer in answers])
        for (key, answer), (low, high, half_width) in zip(answers, limits, strict=True):
            told = {
                "value": _number(answer.value), "low": _number(low), "high": _number(high),
                "half_width": _number(half_width), "number": answer.n_queries,
            }  # fmt: skip
            if self._is_search:
                for name in _GAINS:
                    if hasattr(answer, name):
                        told[name] = getattr(answer, name)
                told |= {"key": key, "rerun": answer.rerun}
            yield told

    def _limits(self, answers: list[Any]) -> Iterator[tuple[float, float, float]]:
        """Low, high and half-width of each: of many at once they take little more than of one."""
        guard = self.holdout.guard
        values = np.array([answer.value for answer in answers])
        if len(answers) > _FEW and self._known_limits is not None and guard._units is None:
            numbers = np.array([answer.n_queries for answer in answers])
            lows, highs = self._known_limits.of(values, numbers, True)
            widths = guard._rule.half_width(values, lows, highs)
        elif len(answers) > _FEW and self._is_search:
            told = [answer._told for answer in answers]
            kept, nats = np.array([one[:-1] for one in told]), np.array([one[-1] for one in told])
            lows, highs = guard._terms.intervals(kept, nats)
            widths = np.asarray(guard._terms.half_width(values, lows, highs))
        else:
            return ((answer.low, answer.high, answer.half_width) for answer in answers)
        return zip(lows.tolist(), highs.tolist(), widths.tolist(), strict=True)

    def _told_many(self, answers: Any, keys: Any) -> dict[str, Any]:
        """The same of a block."""
        names: tuple[str, ...] = _SCORES
        if self._is_search and self.holdout.guard._terms.measure.is_paired:
            names += _GAINS
        told: dict[str, Any] = {
            f"{name}s": [_number(one) for one in getattr(answers, f"{name}s").tolist()]
            for name in names
        }
        told |= {"numbers": answers.numbers.tolist(), "halted": bool(answers.halted)}
        told |= {"n_queries": answers.n_queries}
        if self._is_search:
            told |= {"keys": keys, "reruns": answers.reruns.tolist()}
        return told


def fault(status: int, kind: str, message: str, outcome: str, **more: Any) -> Reply:
    """An error as JSON."""
    told = {"error": {"type": kind, "message": message, **more}}
    return Reply(status, json.dumps(told).encode(), outcome)


def refused(error: Exception) -> Reply:
    """Bad input: the library's own sentence."""
    kind = "TypeError" if isinstance(error, TypeError) else "ValueError"
    return fault(400, kind, str(error), "refused")


def unavailable(error: Exception, before: str = "") -> Reply:
    """The database cannot be used; names of its files are for the log alone."""
    why = "the service failed"
    if isinstance(error, OSError | RuntimeError) and not isinstance(error, HoldoutExhausted):
        logger.error("%s%s: %s", before, type(error).__name__, error)
        why = getattr(error, "strerror", None) or "the database does not answer"
    else:  # whose words may be anything
        logger.error("%s%s", before, type(error).__name__)
    return fault(503, type(error).__name__, before + why, "failed")


def failed(error: Exception) -> Reply:
    """A fault of ours, of one call alone; whose words may be anything."""
    logger.error("a call failed: %s", type(error).__name__)
    return fault(500, "RuntimeError", "nothing was counted: the service failed", "failed")


def _exhausted(n_queries: int) -> Reply:
    # not the library's sentence, which tells R~
    reason = f"the holdout is spent after {counted(n_queries, 'answer')}: this query is withheld"
    return fault(410, "HoldoutExhausted", reason, "halted", n_queries=n_queries)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
