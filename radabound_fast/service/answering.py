"""Queries of the guard: calls that wait are answered and committed together.

No reply leaves before the transaction that counts it is committed.  The reply is in that
transaction under the key that came with the call, so that a call that is sent again has the
effect of one: before the commit nothing has happened, after it the log answers.

One thread at a time does it (see `turns`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from radabound_fast._checks import counted
from radabound_fast.guards.answers import Answers
from radabound_fast.service import limits
from radabound_fast.service.reading import Reader
from radabound_fast.service.replies import Reply, error_reply, failed_call, logger, unavailable
from radabound_fast.service.tokens import ALL, OWNER, Team
from radabound_fast.service.wire import GAINS, SCORES, answers_in, ranks_of, unpack_body
from radabound_fast.spaces.messages import quoted
from radabound_fast.store.schema import Damaged
from radabound_fast.store.served import SECONDS_A_DAY, Best, Log, Served

_T = TypeVar("_T")

# between two checkpoints of SQLite's write-ahead log
TIDY_SECONDS = 0.2
_ENCODER = json.JSONEncoder(allow_nan=False)


class Call:
    """A call that waits for its reply, to `query_many` or `query`.

    Its body is in the format of `wire`; under an idempotency key it is answered once.
    """

    def __init__(self, team: Team, body: bytes, many: bool, idempotency: str | None) -> None:
        self.team, self.body, self.many = team, body, many
        self.idempotency, self.arrived = idempotency, datetime.now(UTC)
        self.reply: Reply | None = None
        self.n_rows = 0
        self.key: Any = None  # or keys, of `query_many`
        self.run: Callable[[], Any] = dict

    @cached_property
    def digest(self) -> bytes:
        """What tells this call from others under its key."""
        digest = hashlib.sha256(b"many" if self.many else b"one")
        digest.update(self.body)
        return digest.digest()[:16]


class Answering:
    """Answers calls with one guard on labels, opened from a database.

    `on_commit` is called after each commit with the seconds that its transaction took; `together`
    has the limits of all teams together.
    """

    def __init__(
        self, guard: Any, on_commit: Callable[[float], None] = lambda seconds: None
    ) -> None:
        self.guard, self._on_commit = guard, on_commit
        self.together = Team(ALL)
        self._tells_scores = guard.tells == "scores"
        # those of a finalist or a candidate are stored, as classes: errors would show the labels
        as_predictions = guard.of_teams or not self._tells_scores
        self._reader = Reader(guard.holdout, as_predictions=as_predictions)
        # with three classes or more other predictions may err in the same rows, so that it tells
        # something of the labels whether a key that came before is refused (SECURITY.md)
        self._refusals_tell = guard.needs == "key" and len(guard.holdout.classes or ()) > 2
        self._refused: Counter[tuple[str, int]] = Counter()  # such rows, by team and day
        self._store = guard.share_transactions()
        self._stale = False  # whether the guard holds what was not committed
        self.n_commits = 0
        self._ended = threading.Event()
        self._tidying = threading.Thread(target=self._tidy, name="tidy", daemon=True)
        self._tidying.start()

    def read(self, work: Callable[[Log], _T]) -> _T:
        """Result of `work`, which only reads, between two transactions."""
        result: _T = self._store.look(self._counted(work))
        return result

    def _counted(self, work: Callable[[Log], _T]) -> Callable[[Log], _T]:
        """What does the work, after a competition has counted its scores."""

        def counted(log: Log) -> _T:
            if self.guard.of_teams:
                self.guard.recount(log)
            return work(log)

        return counted

    def can_write(self) -> bool:
        """Whether the disk of the database takes what is written, in any thread."""
        reason = self._store.why_not_written()
        if reason is not None:
            logger.error("nothing can be written: %s", reason)
        return reason is None

    def end(self) -> Any:
        """Confirm the finalists of a competition in one transaction, and return the report."""
        return self._store.together(lambda log: self.guard.end())

    def close(self) -> None:
        """Close the database."""
        self._ended.set()
        self._tidying.join()
        self.guard.close()

    def _tidy(self) -> None:
        """Checkpoint the write-ahead log now and then, in a thread that waits for the disk."""
        n_before = 0
        while not self._ended.wait(TIDY_SECONDS):
            if self.n_commits > n_before:
                n_before = self.n_commits
                self._store.tidy()

    def answer(self, calls: list[Call]) -> None:
        """Set the reply of each call; all are committed when this returns."""
        while calls:
            # the second call under a key finds the committed reply of the first
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
            self.guard.halted  # noqa: B018 reads the database
        self._stale = True
        prepared = [call.reply for call in calls]

        def work(log: Log) -> None:
            for call, reply in zip(calls, prepared, strict=True):
                call.reply = reply  # a transaction may be tried again
            self._answer_in(calls, log)

        self._store.together(self._counted(work))
        self._stale = False
        self.n_commits += 1
        self._on_commit(time.perf_counter() - began)

    def _prepare(self, call: Call) -> None:
        """Read the predictions before the database is locked."""
        try:
            head, octets = unpack_body(call.body, call.many)
            n_line = len(call.body) - len(octets)
            rows = self._reader.rows(head["form"], octets, 2 if call.many else 1)
            if not rows.ndim:
                raise ValueError("predictions must have a row, got a number alone")
            call.n_rows = len(rows) if call.many else 1
            call.key = head.get("keys" if call.many else "key")
            named = {name: one for name, one in head.items() if name != "form" and one is not None}
            if self.guard.of_teams:
                named["team"] = call.team.name
            query = self.guard.query_many if call.many else self.guard.query
            call.run = partial(query, rows, **named)
            limits.check_size(call.n_rows, n_line)
            self._check_part(call)
        except Exception as error:
            call.reply = failed_call(error)

    def _check_part(self, call: Call) -> None:
        """Refusal if a key is not in the part of the space that is the team's."""
        part, space = call.team.part, getattr(self.guard, "space", None)
        if part is None or space is None:
            return
        for key in call.key if call.many and call.key is not None else [call.key]:
            with contextlib.suppress(TypeError, ValueError):  # which the guard will say
                key = space.key_of(space.find(key)[0])
                if key not in part:
                    reason = f"keys of {call.team.name} are {part.text}, got {quoted(key)}"
                    raise limits.exceeded(403, "keys", reason, 0)

    def _answer_in(self, calls: list[Call], log: Log) -> None:
        """Query the guard within the transaction, set the replies, and log them."""
        second = int(time.time())
        answered: list[tuple[Call, Any]] = []
        spent: Counter[str] = Counter()  # by calls of this transaction
        for call in calls:
            if call.reply is not None:
                continue
            try:
                call.reply = self._repeated(call, log)
                if call.reply is None:
                    self._check_limits(call, log, second, spent)
                    answers = call.run()
                    answered.append((call, answers))
                    for name in call.team.counted_as:
                        spent[name] += len(answers) if call.many else 1
            except (OSError, sqlite3.Error, Damaged):
                raise  # of all that are in the transaction
            except Exception as error:
                call.reply = failed_call(error)
                if self._refusals_tell and hasattr(error, "answer"):
                    # the rows count as answers of today, until the service ends
                    for name in call.team.counted_as:
                        self._refused[name, second // SECONDS_A_DAY] += call.n_rows
        singles = self._single_fields([answer for call, answer in answered if not call.many])
        served: list[Served] = []
        best: list[Best] = []
        for call, answers in answered:
            if call.many:
                fields, n_answers = self._block_fields(answers), len(answers)
            else:
                fields, n_answers = next(singles), 1
            reply = _ENCODER.encode(fields)
            call.reply = Reply(200, reply.encode(), "answered", n_answers)
            if call.n_rows:  # nothing was asked, and whoever asks again gets the same
                served.append(
                    Served(call.team.name, call.idempotency, call.digest, second, n_answers, reply)
                )
                best += self._best_of(call.team, second, fields)
        log.add(served, best)

    def _best_of(self, team: Team, second: int, fields: dict[str, Any]) -> Iterator[Best]:
        """The best of the answers of a reply, if it has scores, by the limit that counts."""
        if not self._tells_scores:
            return
        answers = answers_in(fields)
        ranks = ranks_of(answers, greater_is_better=self.guard.holdout.greater_is_better)
        if ranks and min(ranks) < math.inf:
            place = ranks.index(min(ranks))
            best = {name: column[place] for name, column in answers.items()}
            yield Best(team.name, ranks[place], second, _ENCODER.encode(best))

    @staticmethod
    def _repeated(call: Call, log: Log) -> Reply | None:
        """The logged reply to the same call; an error if another call came under its key."""
        if call.idempotency is None:
            return None
        logged = log.find(call.team.name, call.idempotency)
        if logged is not None and logged[0] != call.digest:
            reason = "this Idempotency-Key came before, with another body"
            return error_reply(422, "ValueError", reason, "refused")
        return None if logged is None else Reply(200, logged[1].encode(), "repeated")

    def _check_limits(self, call: Call, log: Log, second: int, spent: Counter[str]) -> None:
        """Refusal if queries have ended, or the call exceeds the answers that are left today."""
        team, together, day = call.team, self.together, second // SECONDS_A_DAY
        if team.is_owner:
            return
        limits.check_until(team, call.arrived)
        for limit, whose, who, n_before in (
            ("answers_a_day", team, f"{team.name} has", partial(log.n_answers, team.name, day)),
            ("answers_a_day_of_all", together, "all teams together have",
             partial(log.n_answers_of_all, day, OWNER)),
        ):  # fmt: skip
            if whose.a_day is None:
                continue
            n_refused = self._refused[whose.name, day]
            left = max(whose.a_day - n_before() - n_refused - spent[whose.name], 0)
            if call.n_rows > left:
                reason = (
                    f"{who} {counted(left, 'answer')} left of {whose.a_day:,} today (UTC), and "
                    f"{team.name} asks for {call.n_rows:,}"
                )
                until_midnight = SECONDS_A_DAY - second % SECONDS_A_DAY
                raise limits.exceeded(429, limit, reason, left, until_midnight)

    def _single_fields(self, answers: list[Any]) -> Iterator[dict[str, Any]]:
        """Fields of the reply to each `query`."""
        if not self._tells_scores:
            return (answer.to_dict() for answer in answers)
        columns = self._columns(answers)
        rows = zip(*columns.values(), strict=True)
        return (dict(zip(columns, row, strict=True)) for row in rows)

    def _block_fields(self, answers: Any) -> dict[str, Any]:
        """Fields of the reply to `query_many`."""
        if not self._tells_scores:
            verdicts = [answer.to_dict() for answer in answers]
            halted, n_answered = self.guard.halted, self.guard.n_answered
            return {"verdicts": verdicts, "halted": halted, "n_answered": n_answered}
        columns = self._columns(answers)
        first = [name for name in (*SCORES, *GAINS, "number") if name in columns]
        fields: dict[str, Any] = {f"{name}s": columns.pop(name) for name in first}
        fields |= {"halted": bool(answers.halted), "n_answered": answers.n_answered}
        return fields | {f"{name}s": column for name, column in columns.items()}

    def _columns(self, answers: Sequence[Any]) -> dict[str, list[Any]]:
        """Fields of answers as lists by name: neither R~ nor delta'; null where there is none."""
        names = [*SCORES, "number"]
        if self.guard.needs == "key":
            names += [*(GAINS if self.guard.is_paired else ()), "key", "rerun"]
        columns: dict[str, Any] = {}
        if isinstance(answers, Answers):
            columns = {name: getattr(answers, f"{name}s") for name in names}
        elif answers:
            limits = zip(*self.guard.intervals_of(answers), strict=True)
            columns = dict(zip(SCORES[1:], limits, strict=True))
        for name in names:
            column = columns.get(name)
            if column is None:
                column = [getattr(answer, name) for answer in answers]
            columns[name] = column.tolist() if isinstance(column, np.ndarray) else column
            if name in (*SCORES, *GAINS):
                columns[name] = [_number(one) for one in columns[name]]
        return {name: columns[name] for name in names}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
