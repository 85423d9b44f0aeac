"""What was asked of a `DeclaredSearch`, in a database that processes share.

A record, and no budget: no guarantee rests on it, so that it need not be the only copy, nor be
open all the time.  Each operation opens the file, makes one transaction and closes it: what is
kept meanwhile is a path, which may be pickled, sent and forked.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from radabound_fast._checks import check_choice, faults_of
from radabound_fast._kernel import broken_into
from radabound_fast.metrics import measure_from
from radabound_fast.spaces.tokens import as_tuple
from radabound_fast.store.description import (
    Description,
    check_description,
    parsed,
    text_of,
)
from radabound_fast.store.folder import (
    BUSY_SECONDS,
    Path,
    check_mounted_with_folder,
    check_one_name,
    in_turn,
    naming,
    real_path,
    undisturbed,
)
from radabound_fast.store.ledger import Durability
from radabound_fast.store.served import SCHEMA, VERSION
from radabound_fast.store.sqlite import connect, explained, make_database

T = TypeVar("T")

# Which query: the code of its key, and the rerun.
Query = tuple[Hashable, int]
# What is kept of it, and nothing that its losses could be made from: some numbers that the measure
# makes values and limits of, then nats, and the fingerprint.
Asked = tuple[Any, ...]

_APPLICATION_ID = 0x52414453  # "RADS", in the header of the file
_VERSION = 1
_TABLES = [
    "CREATE TABLE search (description TEXT NOT NULL)",
    "CREATE TABLE asked (code TEXT NOT NULL, rerun INTEGER NOT NULL, kept TEXT NOT NULL, "
    "nats REAL NOT NULL, fingerprint INTEGER NOT NULL, UNIQUE (code, rerun))",
]
_COLUMNS = "kept, nats, fingerprint"
_PARTS = ("parameters", "holdout", "secret", "metric")
# a space may have long lists of values
_MOST_BYTES = 2**26
# how long SQLite itself waits for a lock before it says so, and Ctrl-C is looked at
_ASK_AGAIN_MS = 50
_SYNCHRONOUS = {"power": "FULL", "process": "OFF"}
_OFFSET = 2**63  # a fingerprint as the signed integers that SQLite has

# a child of os.fork must not inherit a connection: SQLite would think the parent's locks its own
_at_work = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_at_work.acquire, after_in_parent=_at_work.release, after_in_child=_at_work.release
    )
_in_work: set[str] = set()  # the files that whoever has it is in the middle of


class SearchRecord:
    """The database at a path; see `open_record`.

    Parameters
    ----------
    path : path
        Of a database.
    durability : {"power", "process"}
        "power": every commit waits for the disk.  "process": none does, and a power cut may cost
        the record.

    Raises
    ------
    FileNotFoundError, OSError
        There is no such file, or it cannot be read and written.
    ValueError
        It is something else, of another format, or damaged.
    RuntimeError
        It has several names, or is mounted without its folder: what is left of a transaction that
        was broken off is beside one name alone.
    """

    description: Description

    def __init__(self, path: Path, durability: Durability = "power") -> None:
        check_choice(_SYNCHRONOUS, durability=durability)
        self.path, self.durability = real_path(path), durability
        with naming(os.fsdecode(path)):
            os.stat(self.path)
        check_mounted_with_folder(self.path, os.fsdecode(path))
        self._checked: set[tuple[Query, float]] = set()
        self.description = self._do(self._check)
        with faults_of(os.fsdecode(path), "a search"):
            self.measure = measure_from(self.description)

    def _check(self, database: sqlite3.Connection) -> Description:
        application_id, version = (
            database.execute(f"PRAGMA {pragma}").fetchone()[0]
            for pragma in ("application_id", "user_version")
        )
        if application_id != _APPLICATION_ID or version not in (_VERSION, VERSION):
            raise ValueError(f"{self.path} is not the record of a search, or of another format")
        tables = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        log = [sql for _, sql in SCHEMA if sql is not None] if version == VERSION else []
        if [sql for (sql,) in tables.fetchmany(9)] != _TABLES + log:
            raise ValueError(f"{self.path} is damaged: its tables are not as a search makes them")
        rows = database.execute("SELECT description FROM search").fetchmany(2)
        if len(rows) != 1 or not isinstance(rows[0][0], str):
            raise ValueError(f"{self.path} is damaged: it must hold one description")
        try:
            return check_description(parsed(rows[0][0], _MOST_BYTES), *_PARTS)
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged: {error}") from None

    def _do(self, work: Callable[[sqlite3.Connection], T], kind: str = "") -> T:
        """`work`, all of it or nothing; IMMEDIATE: and nobody else writes in between.

        What others hold up is tried again for a while; Ctrl-C ends that.
        """
        give_up = math.inf
        while True:
            try:
                return self._try(work, kind)
            except TimeoutError:
                if time.monotonic() > give_up:
                    raise
                give_up = min(give_up, time.monotonic() + BUSY_SECONDS)

    def _try(self, work: Callable[[sqlite3.Connection], T], kind: str) -> T:
        with _at_work:
            outer = _in_work.copy()  # by calls of this very thread, which this one has broken into
            with naming(self.path):
                check_one_name(os.stat(self.path), self.path)
            try:
                _in_work.add(self.path)
                with contextlib.closing(connect(self.path, _ASK_AGAIN_MS)) as database:
                    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
                    database.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}")
                    database.execute(f"BEGIN {kind}")
                    done = work(database)
                    database.execute("COMMIT")
                    return done
            except (sqlite3.Error, UnicodeDecodeError) as error:
                reason = explained(error, self.path)
                if isinstance(reason, TimeoutError) and self.path in outer:
                    raise broken_into(self.path) from None
                raise reason from None
            finally:
                _in_work.intersection_update(outer)

    def add(self, asked: dict[Query, Asked], check: Callable[[Query, Asked], None]) -> int:
        """Add queries, and return how many there are then.

        Of each that was there before, `check` is told how it was asked; if it raises, nothing is
        added.
        """

        return self._do(lambda database: self.add_to(database, asked, check), "IMMEDIATE")

    def add_to(
        self,
        database: sqlite3.Connection,
        asked: dict[Query, Asked],
        check: Callable[[Query, Asked], None],
    ) -> int:
        """`add`, in a transaction that somebody else commits."""
        rows = []
        for query, (*kept, nats, fingerprint) in asked.items():
            code, rerun = text_of(query[0], _MOST_BYTES), query[1]
            found = database.execute(
                f"SELECT code, rerun, {_COLUMNS} FROM asked WHERE code = ? AND rerun = ?",
                (code, rerun),
            ).fetchone()
            if found is None:
                rows.append((code, rerun, text_of(kept), nats, fingerprint - _OFFSET))
            else:
                check(query, self._read(*found)[1])
        database.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?)", rows)
        return self._count(database)

    def add_tables(self, tables: list[str], version: int) -> None:
        """Have these tables beside the queries from now on."""

        def work(database: sqlite3.Connection) -> None:
            if database.execute("PRAGMA user_version").fetchone()[0] != version:
                for table in tables:
                    database.execute(table)
                database.execute(f"PRAGMA user_version = {version}")

        self._do(work, "IMMEDIATE")

    def all(self, check: Callable[[Query, float], None]) -> dict[Query, Asked]:
        """Every query so far, in the order in which they were first asked.

        `check` raises unless a query may cost so many nats; of each it is asked once.
        """

        def work(database: sqlite3.Connection) -> dict[Query, Asked]:
            rows = database.execute(f"SELECT code, rerun, {_COLUMNS} FROM asked ORDER BY rowid")
            return dict(self._read(*row) for row in rows)

        found = self._do(work)
        with faults_of(self.path, "the answers of a search"):
            for query, (*_, nats, _) in found.items():
                if (query, nats) not in self._checked:
                    check(query, nats)
                    self._checked.add((query, nats))
        return found

    def _read(self, code: Any, rerun: Any, *asked: Any) -> tuple[Query, Asked]:
        """A row, if a search can have written it: SQLite's columns may hold anything."""
        text, nats, fingerprint = asked
        if (
            type(code) is type(text) is str
            and type(nats) is float
            and type(rerun) is type(fingerprint) is int
            and rerun >= 1
            and 0.0 <= nats < math.inf
        ):
            with contextlib.suppress(ValueError, TypeError):
                query = as_tuple(parsed(code, _MOST_BYTES)), rerun
                hash(query)
                kept = tuple(parsed(text))
                if self.measure.can_be_kept(kept):
                    return query, (*kept, nats, fingerprint + _OFFSET)
        raise ValueError(f"{self.path} is damaged: it holds an answer that no search gives")

    def __len__(self) -> int:
        return self._do(self._count)

    @staticmethod
    def _count(database: sqlite3.Connection) -> int:
        # no row is ever deleted
        (count,) = database.execute("SELECT coalesce(max(rowid), 0) FROM asked").fetchone()
        return int(count)


def open_record(path: Path, durability: Durability, new: Description | None = None) -> SearchRecord:
    """The record at `path`; where there is none, one with this description.

    Parameters
    ----------
    path, durability
        As for `SearchRecord`.
    new : dict, optional
        JSON values under the keys "parameters", "holdout", "secret" and "metric".  Of several
        processes that bring one, one is made.

    Raises
    ------
    FileNotFoundError, ValueError, OSError, RuntimeError
        As `SearchRecord` does.
    """
    target, name = real_path(path), os.fsdecode(path)

    def make() -> None:
        if new is None or os.path.lexists(target):
            return
        if os.path.lexists(f"{target}-journal"):
            raise ValueError(
                f"{name}-journal is the log of a database that is gone, and would be taken for the "
                "new one's: put that back, or delete the log"
            )
        text = text_of(new, _MOST_BYTES)

        def fill(database: sqlite3.Connection) -> None:
            database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {_VERSION}")
            for table in _TABLES:
                database.execute(table)
            database.execute("INSERT INTO search VALUES (?)", (text,))

        with undisturbed():
            make_database(target, name, fill)

    in_turn(os.path.dirname(target), make)
    return SearchRecord(path, durability)
