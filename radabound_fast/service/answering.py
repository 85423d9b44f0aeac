"""The one thread that asks the guard: calls that wait are answered and committed together.

No reply leaves before the transaction that counts it is committed.  The reply is in that
transaction under the key that came with the call, so that the call comes to the same whether it
is sent once or until it is heard: before the commit nothing has happened, after it the log
answers.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from radabound_fast import Holdout, HoldoutExhausted
from radabound_fast._checks import counted
from radabound_fast.mechanisms import DeclaredSearch
from radabound_fast.service.reading import Reader
from radabound_fast.service.tokens import Team
from radabound_fast.service.wire import MANY, ONE, unpacked
from radabound_fast.store._served import Log, Served, served

# calls in one transaction
MOST_TOGETHER = 64
# in one call, so that its reply is of a size to keep
MOST_ROWS = 100_000
SECONDS_A_DAY = 86400

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
    done : callable
        Gets the `Reply`, in the thread of the guard.
    """

    def __init__(
        self,
        team: Team,
        body: bytes,
        many: bool,
        idempotency: str | None,
        done: Callable[[Reply], None],
    ) -> None:
        self.team, self.body, self.many = team, body, many
        self.idempotency, self.done = idempotency, done
        self.fault: Reply | None = None
        self.n_rows = 0
        self.ask: Callable[[], dict[str, Any]] = dict

    @property
    def digest(self) -> bytes:
        """Tells calls apart."""
        return hashlib.blake2b(
            self.body, digest_size=16, key=b"many" if self.many else b""
        ).digest()


class Answering:
    """The guard's thread.

    Parameters
    ----------
    holdout : Holdout
        Opened from a database; it belongs to this from now on.
    """

    def __init__(self, holdout: Holdout) -> None:
        self.holdout = holdout
        self._reader = Reader(holdout)
        self._is_search = isinstance(holdout.guard, DeclaredSearch)
        self._store = served(holdout.guard)
        self._stale = False  # whether what the guard knows was not committed
        self._waiting: queue.SimpleQueue[Call | Callable[[], None] | None] = queue.SimpleQueue()
        self.n_commits, self.commit_seconds = 0, 0.0
        self._thread = threading.Thread(target=self._run, name="guard", daemon=True)
        self._thread.start()

    # ---- from other threads ------------------------------------------------------------------

    def submit(self, call: Call) -> None:
        """Have a call answered."""
        self._waiting.put(call)

    def look(
        self, work: Callable[[Log], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        """`work`, which only reads, between two transactions; `done` gets what came of it."""

        def run() -> None:
            try:
                found = self._store.look(work)
            except BaseException as error:
                done(None, error)
            else:
                done(found, None)

        self._waiting.put(run)

    def close(self) -> None:
        """Answer what waits, and let go of the database."""
        self._waiting.put(None)
        self._thread.join()

    # ---- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            calls, looks = [], []
            for one in self._next():
                if one is None:
                    goes_on = False
                elif isinstance(one, Call):
                    calls.append(one)
                else:
                    looks.append(one)
            if calls:
                for call, reply in zip(calls, self._answered(calls), strict=True):
                    _tell(call.done, reply)
            for look in looks:
                _tell(look)
        self.holdout.close()

    def _next(self) -> Iterable[Call | Callable[[], None] | None]:
        """What waits, in order; it waits for the first."""
        yield self._waiting.get()
        for _ in range(MOST_TOGETHER - 1):
            try:
                yield self._waiting.get_nowait()
            except queue.Empty:
                return

    def _answered(self, calls: list[Call]) -> list[Reply]:
        for call in calls:
            self._prepare(call)
        began = time.perf_counter()
        try:
            if self._stale:
                self.holdout.halted  # noqa: B018 reads the database
            self._stale = True
            replies = self._store.together(
                lambda log: [call.fault or self._answer(call, log) for call in calls]
            )
            self._stale = False
        except Exception as error:
            logger.error("nothing was counted: %s: %s", type(error).__name__, error)
            message = f"nothing was counted: {error}" if isinstance(error, OSError) else (
                "nothing was counted: the service failed"
            )  # fmt: skip
            return [
                call.fault or fault(503, type(error).__name__, message, "failed") for call in calls
            ]
        self.n_commits += 1
        self.commit_seconds += time.perf_counter() - began
        return replies

    def _prepare(self, call: Call) -> None:
        """Read the predictions before the database is locked."""
        try:
            head, octets = unpacked(call.body, call.many)
            rows = self._reader.rows(head["form"], octets, 2 if call.many else 1)
            call.n_rows = len(rows) if call.many else 1
            if call.n_rows > MOST_ROWS:
                raise ValueError(f"rows must be at most {MOST_ROWS:,} a call, got {call.n_rows:,}")
            call.ask = self._asking(call, head, rows)
        except (TypeError, ValueError, ModuleNotFoundError) as error:
            call.fault = refused(error)
        except Exception as error:
            call.fault = _failed(error)

    def _asking(self, call: Call, head: dict[str, Any], rows: Any) -> Callable[[], dict[str, Any]]:
        guess, key, rerun = (head.get(name) for name in (MANY if call.many else ONE))
        guard = self.holdout.guard
        named: dict[str, Any] = {}
        if self._is_search:
            if key is None:
                name = "keys" if call.many else "key"
                raise TypeError(f"{name} must be given: the guard is a DeclaredSearch")
            named["keys" if call.many else "key"] = key
            if rerun is not None:
                named["reruns" if call.many else "rerun"] = rerun
        else:
            self.holdout._check_no_keys(key)
            if rerun is not None:
                raise TypeError("only a DeclaredSearch has reruns")
            named["guesses" if call.many else "guess"] = guess
        if self.holdout._truth is not None:
            ask = self.holdout.query_many if call.many else self.holdout.query
        else:
            ask = guard.query_many_packed if call.many else guard.query_packed
        told = self._told_many if call.many else self._told
        return lambda: told(ask(rows, **named), named)

    def _told(self, answer: Any, named: dict[str, Any]) -> dict[str, Any]:
        """What leaves of an answer: not R~, nor delta'."""
        names = ["value", "low", "high", "half_width"]
        names += [name for name in ("gain", "gain_low", "gain_high") if hasattr(answer, name)]
        told = {name: _number(getattr(answer, name)) for name in names}
        told |= {"number": answer.n_queries}
        if self._is_search:
            told |= {"key": named["key"], "rerun": answer.rerun}
        return told

    def _told_many(self, answers: Any, named: dict[str, Any]) -> dict[str, Any]:
        names = ["values", "lows", "highs", "half_widths"]
        if self._is_search and self.holdout.guard._terms.measure.is_paired:
            names += ["gains", "gain_lows", "gain_highs"]
        told: dict[str, Any] = {
            name: [_number(one) for one in getattr(answers, name).tolist()] for name in names
        }
        told |= {"numbers": answers.numbers.tolist(), "halted": bool(answers.halted)}
        told |= {"n_queries": answers.n_queries}
        if self._is_search:
            told |= {"keys": named["keys"], "reruns": answers.reruns.tolist()}
        return told

    def _answer(self, call: Call, log: Log) -> Reply:
        """In the transaction."""
        second, team = int(time.time()), call.team
        if call.idempotency is not None:
            found = log.find(team.name, call.idempotency)
            if found is not None:
                if found[0] != call.digest:
                    reason = "this Idempotency-Key came before, with another body"
                    return fault(422, "ValueError", reason, "refused")
                return Reply(200, found[1].encode(), "repeated")
        if team.a_day is not None:
            left = team.a_day - log.n_answers(team.name, second // SECONDS_A_DAY)
            if call.n_rows > left:
                reason = (
                    f"{team.name} has {counted(max(left, 0), 'answer')} left of {team.a_day:,} "
                    f"today (UTC), and asks for {call.n_rows:,}"
                )
                return fault(429, "RuntimeError", reason, "refused")
        try:
            told = call.ask()
        except HoldoutExhausted as halt:
            return _exhausted(halt.n_queries)
        except (TypeError, ValueError) as error:
            return refused(error)
        except (OSError, sqlite3.Error):
            raise  # of all that are in the transaction
        except Exception as error:  # which has counted nothing
            return _failed(error)
        n_answers = len(told["values"]) if call.many else 1
        reply = json.dumps(told, allow_nan=False)
        log.add(Served(team.name, second, n_answers, reply), call.idempotency, call.digest)
        return Reply(200, reply.encode(), "answered", n_answers)


def fault(status: int, kind: str, message: str, outcome: str, **more: Any) -> Reply:
    """An error as JSON."""
    told = {"error": {"type": kind, "message": message, **more}}
    return Reply(status, json.dumps(told).encode(), outcome)


def refused(error: Exception) -> Reply:
    """Bad input: the library's own sentence."""
    kind = "TypeError" if isinstance(error, TypeError) else "ValueError"
    return fault(400, kind, str(error), "refused")


def _failed(error: Exception) -> Reply:
    """A fault of ours, of one call alone."""
    logger.error("a call failed: %s", type(error).__name__)
    return fault(500, "RuntimeError", "nothing was counted: the service failed", "failed")


def _tell(done: Callable[..., None], *values: Any) -> None:
    """Whatever becomes of who waits, the thread goes on."""
    try:
        done(*values)
    except Exception as error:
        logger.error("nobody takes a reply: %s", type(error).__name__)


def _exhausted(n_queries: int) -> Reply:
    # not the library's sentence, which tells R~
    reason = f"the holdout is spent after {counted(n_queries, 'answer')}: this query is withheld"
    return fault(410, "HoldoutExhausted", reason, "halted", n_queries=n_queries)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) and not math.isnan(value) else None
