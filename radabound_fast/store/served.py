"""What a service answered, in the database of its guard: several calls are one transaction.

A call's answer, what it counted and how the guard stands after it are committed together.  So
whoever did not get the answer may ask for it again, by the key that it sent (`Log.find`), and
whatever dies meanwhile, nothing is counted twice and nothing that was released is forgotten.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from radabound_fast.store.description import Progress
from radabound_fast.store.sqlite import connect, explained

if TYPE_CHECKING:
    from radabound_fast.metrics import MeanLoss, Measure
    from radabound_fast.store.ledger import Ledger
    from radabound_fast.store.record import Asked, Query, SearchRecord

T = TypeVar("T")

# in both kinds of databases, from format version 2 on
TABLES = [
    "CREATE TABLE served (team TEXT NOT NULL, idempotency TEXT, digest BLOB NOT NULL, "
    "second INTEGER NOT NULL, n_answers INTEGER NOT NULL, reply TEXT NOT NULL, "
    "UNIQUE (team, idempotency))",
    "CREATE INDEX served_by_team ON served (team)",
    "CREATE TABLE served_by_day (team TEXT NOT NULL, day INTEGER NOT NULL, "
    "n_calls INTEGER NOT NULL, n_answers INTEGER NOT NULL, PRIMARY KEY (team, day)) WITHOUT ROWID",
]
# what SQLite's own table says of them, an index that it makes itself among them
SCHEMA = [("table", TABLES[0]), ("index", None), ("index", TABLES[1]), ("table", TABLES[2])]
VERSION = 2
SECONDS_A_DAY = 86400
# in which the log of SQLite is brought into the database, at most
_ROUNDS = 5
# of what a log may hold in one place
MOST_REPLY_BYTES = 2**26


class Served(NamedTuple):
    """A call that was answered."""

    team: str
    idempotency: str | None
    digest: bytes
    second: int  # since 1970
    n_answers: int
    reply: str


class Asker(NamedTuple):
    """How often somebody asked."""

    n_calls: int
    n_answers: int
    n_today: int  # answers


class Log:
    """The log in an open database, within a transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def find(self, team: str, idempotency: str) -> tuple[bytes, str] | None:
        """The digest of a call that was answered under this key, and the reply."""
        found = self._database.execute(
            "SELECT digest, reply FROM served WHERE team = ? AND idempotency = ?",
            (team, idempotency),
        ).fetchone()
        return None if found is None else (bytes(found[0]), str(found[1]))

    def n_answers(self, team: str, day: int) -> int:
        """How many answers a team got on a day, counted from 1970 on."""
        found = self._database.execute(
            "SELECT n_answers FROM served_by_day WHERE team = ? AND day = ?", (team, day)
        ).fetchone()
        return 0 if found is None else int(found[0])

    def add(self, calls: list[Served]) -> None:
        """Note calls, and count them."""
        self._database.executemany("INSERT INTO served VALUES (?, ?, ?, ?, ?, ?)", calls)
        n_calls: Counter[tuple[str, int]] = Counter()
        n_answers: Counter[tuple[str, int]] = Counter()
        for call in calls:
            whose = call.team, call.second // SECONDS_A_DAY
            n_calls[whose] += 1
            n_answers[whose] += call.n_answers
        self._database.executemany(
            "INSERT INTO served_by_day VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "n_calls = n_calls + excluded.n_calls, n_answers = n_answers + excluded.n_answers",
            [(*whose, n, n_answers[whose]) for whose, n in n_calls.items()],
        )

    def last(self, team: str | None = None) -> Generator[Served, None, None]:
        """Calls, of a team or of all, the last one first, read one by one."""
        where, values = ("", ()) if team is None else ("WHERE team = ?", (team,))
        with contextlib.closing(self._database.cursor()) as cursor:
            query = f"SELECT * FROM served {where} ORDER BY rowid DESC"
            yield from map(Served._make, cursor.execute(query, values))

    def askers(self, today: int) -> dict[str, Asker]:
        """Who asked, and how often."""
        rows = self._database.execute(
            "SELECT team, sum(n_calls), sum(n_answers), sum(n_answers * (day = ?)) "
            "FROM served_by_day GROUP BY team",
            (today,),
        )
        return {team: Asker(*counts) for team, *counts in rows}


class ServedLedger:
    """A `Ledger` with a log; the guard gets it in the place of the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._within = False
        self._news: Progress | None = None  # committed by others, and not yet told to the guard
        self._progress: Progress | None = None  # the guard's, not yet committed
        ledger.add_tables(TABLES, VERSION, MOST_REPLY_BYTES)
        self._log = Log(ledger._database)

    def together(self, work: Callable[[Log], T]) -> T:
        """`work`, in which the guard is asked and calls are noted: all is committed, or nothing.

        Raises what `work` does, or why nothing could be committed.
        """
        ledger = self._ledger
        self._news, self._progress, self._within = ledger.begin(), None, True
        try:
            try:
                done = work(self._log)
            except sqlite3.Error as error:
                raise explained(error, ledger.path) from None
            ledger.commit(self._progress)
            if self._news is not None:  # a guard that has halted does not ask
                ledger._seen = None
            return done
        except BaseException:
            ledger.rollback()
            raise
        finally:
            self._within = False

    def look(self, work: Callable[[Log], T]) -> T:
        """`work`, which only reads."""
        try:
            return work(self._log)
        except sqlite3.Error as error:
            raise explained(error, self._ledger.path) from None

    def tidy(self) -> None:
        """Bring SQLite's log into the database, in any thread, while others commit.

        Else a commit does now and then, and who waits for that one waits for all of it.
        """
        try:
            with contextlib.closing(connect(self._ledger.path, 0)) as database:
                for _ in range(_ROUNDS):  # the first takes long, and meanwhile more is committed
                    _, n_log, n_done = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    if n_log == n_done:  # and the next commit begins a new log
                        break
        except sqlite3.Error:
            pass  # a commit says what is wrong

    # ---- what a guard asks of its ledger ---------------------------------------------------

    def read(self) -> Progress | None:
        return None if self._within else self._ledger.read()

    def begin(self) -> Progress | None:
        if not self._within:
            return self._ledger.begin()
        news, self._news = self._news, None
        return news

    def commit(self, progress: Progress) -> None:
        if self._within:
            self._progress = progress
        else:
            self._ledger.commit(progress)

    def rollback(self) -> None:
        """Undo a change, of which nothing is in the file while several calls are together."""
        if not self._within:
            self._ledger.rollback()


class ServedRecord:
    """A `SearchRecord` with a log; the search gets it in the place of the record."""

    def __init__(self, record: SearchRecord) -> None:
        self._record = record
        self._database: sqlite3.Connection | None = None
        record.add_tables(TABLES, VERSION)

    def together(self, work: Callable[[Log], T]) -> T:
        """Run `work`; see `ServedLedger.together`."""

        def whole(database: sqlite3.Connection) -> T:
            self._database = database
            try:
                return work(Log(database))
            finally:
                self._database = None

        # it may be done again, as nothing but the file changes
        return self._record._do(whole, "IMMEDIATE")

    def look(self, work: Callable[[Log], T]) -> T:
        """Run `work`, which only reads."""
        return self._record._do(lambda database: work(Log(database)))

    def tidy(self) -> None:
        """Nothing: its log is gone when a transaction ends."""

    # ---- what a search asks of its record ----------------------------------------------------

    @property
    def path(self) -> str:
        return self._record.path

    @property
    def measure(self) -> MeanLoss | Measure:
        return self._record.measure

    def add(self, asked: dict[Query, Asked], check: Callable[[Query, Asked], None]) -> int:
        if self._database is None:
            return self._record.add(asked, check)
        return self._record.add_to(self._database, asked, check)

    def all(self, check: Callable[[Query, float], None]) -> dict[Query, Asked]:
        return self._record.all(check)

    def __len__(self) -> int:
        return len(self._record)
