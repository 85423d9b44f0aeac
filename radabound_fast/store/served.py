"""The log of a service, in its guard's database: answer and count are committed together, so that
whoever did not get the answer may send the call again, with its key (`Log.find`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from radabound_fast.store.folder import why_not_written
from radabound_fast.store.schema import add_log_tables

if TYPE_CHECKING:
    from radabound_fast.store.ledger import Ledger
    from radabound_fast.store.record import Record

T = TypeVar("T")

SECONDS_A_DAY = 86400


class Served(NamedTuple):
    """A call that was answered."""

    team: str
    idempotency: str | None
    digest: bytes
    second: int  # since 1970
    n_answers: int
    reply: str


class Best(NamedTuple):
    """The best answer of a team; less is better for `rank`."""

    team: str
    rank: float
    second: int  # since 1970
    answer: str


class Asker(NamedTuple):
    """How many calls a team made, and how many answers it got."""

    n_calls: int
    n_answers: int
    n_today: int  # answers


class Log:
    """The tables of the log in an open database, within a transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def find(self, team: str, idempotency: str) -> tuple[bytes, str] | None:
        """Return the digest of a call that was answered under this key, and the reply."""
        row = self._database.execute(
            "SELECT digest, reply FROM served WHERE team = ? AND idempotency = ?",
            (team, idempotency),
        ).fetchone()
        return None if row is None else (bytes(row[0]), str(row[1]))

    def n_answers(self, team: str, day: int) -> int:
        """Return how many answers a team got on a day, counted from 1970 on."""
        return self._sum("team = ? AND day = ?", team, day)

    def n_answers_of_all(self, day: int, but: str) -> int:
        """Return how many answers all teams but one got on a day."""
        return self._sum("day = ? AND team != ?", day, but)

    def _sum(self, where: str, *values: str | int) -> int:
        query = f"SELECT sum(n_answers) FROM served_by_day WHERE {where}"
        return int(self._database.execute(query, values).fetchone()[0] or 0)

    def add(self, calls: list[Served], best: list[Best]) -> None:
        """Store calls, and count them; of each team the best answer, unless it has a better one."""
        self._database.executemany("INSERT INTO served VALUES (?, ?, ?, ?, ?, ?)", calls)
        self._database.executemany(
            "INSERT INTO served_by_day VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "n_calls = n_calls + excluded.n_calls, n_answers = n_answers + excluded.n_answers",
            [(call.team, call.second // SECONDS_A_DAY, 1, call.n_answers) for call in calls],
        )
        self._database.executemany(
            "INSERT INTO served_best VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET rank = "
            "excluded.rank, second = excluded.second, answer = excluded.answer "
            "WHERE excluded.rank < rank",
            best,
        )

    def best(self, team: str | None = None) -> Best | None:
        """Return the best answer of a team, or of all; None before the first."""
        where, values = ("", ()) if team is None else ("WHERE team = ?", (team,))
        query = f"SELECT * FROM served_best {where} ORDER BY rank, second LIMIT 1"
        row = self._database.execute(query, values).fetchone()
        return None if row is None else Best._make(row)

    def last(self, team: str | None = None) -> Generator[Served, None, None]:
        """Yield calls, of a team or of all, the last one first."""
        where, values = ("", ()) if team is None else ("WHERE team = ?", (team,))
        with contextlib.closing(self._database.cursor()) as cursor:
            query = f"SELECT * FROM served {where} ORDER BY rowid DESC"
            yield from map(Served._make, cursor.execute(query, values))

    def after(self, team: str, row: int, n_answers: int) -> list[tuple[int, str]]:
        """Return the rows and replies of a team's calls after a row, until they have so many."""
        query = "SELECT rowid, reply, n_answers FROM served WHERE team = ? AND rowid > ? ORDER BY 1"
        calls: list[tuple[int, str]] = []
        with contextlib.closing(self._database.cursor()) as cursor:
            for number, reply, n in cursor.execute(query, (team, row)):
                calls.append((number, reply))
                n_answers -= n
                if n_answers <= 0:
                    break
        return calls

    def askers(self, today: int) -> dict[str, Asker]:
        """Return the teams, and how many calls each made."""
        rows = self._database.execute(
            "SELECT team, sum(n_calls), sum(n_answers), sum(n_answers * (day = ?)) "
            "FROM served_by_day GROUP BY team",
            (today,),
        )
        return {team: Asker(*counts) for team, *counts in rows}


class ServedDatabase:
    """The database of a guard or a search, with a log beside it, which is added if it has none."""

    def __init__(self, database: Ledger | Record) -> None:
        database.transact(add_log_tables)
        self._database = database

    def together(self, work: Callable[[Log], T]) -> T:
        """Return what `work` does, in which the guard is queried and calls are added.

        All of it is committed, or nothing; `work` may be called again, if others are in the way.
        Raises what `work` does, or why nothing could be committed.
        """
        return self._database.transact(lambda database: work(Log(database)))

    def look(self, work: Callable[[Log], T]) -> T:
        """Return what `work` finds, which only reads."""
        return self._database.look(lambda database: work(Log(database)))

    def why_not_written(self) -> OSError | None:
        """Return the reason why nothing can be written beside the database; None if it can."""
        return why_not_written(os.path.dirname(self._database.path))

    def tidy(self) -> None:
        """Bring SQLite's log into the database, in any thread, while others commit."""
        self._database.checkpoint()
