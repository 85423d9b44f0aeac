"""Databases that are open for the length of one transaction: `Record`, and a search's queries.

Each operation opens the file, makes one transaction and closes it: what a guard has meanwhile is a
path, which may be pickled, sent and forked.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, TypeVar

from radabound_fast._checks import check_choice
from radabound_fast._kernels.support import broken_into
from radabound_fast.store.folder import (
    BUSY_SECONDS,
    Path,
    check_mounted_with_folder,
    check_one_name,
    naming,
    real_path,
)
from radabound_fast.store.ledger import Durability
from radabound_fast.store.schema import (
    SEARCH,
    Checksums,
    Damaged,
    Description,
    Schema,
    check_tables,
    text_of,
)
from radabound_fast.store.sqlite import check_integrity, connect, explained

T = TypeVar("T")

# The code of a key, and the rerun.
Query = tuple[Hashable, int]
# What is stored of a query, from which its losses cannot be made: the numbers from which the metric
# makes a value and limits, then nats, and the fingerprint.
Entry = tuple[Any, ...]

_COLUMNS = "code, rerun, summary, nats, fingerprint, checksum"
_FIND = f"SELECT {_COLUMNS} FROM query WHERE code = ? AND rerun = ?"
# how long SQLite itself waits for a lock before it says so, and Ctrl-C is looked at
_ASK_AGAIN_MS = 50
_SYNCHRONOUS = {"power": "FULL", "process": "OFF"}
# errors of letting go of a lock: in a COMMIT that comes last, when the journal is gone
_AFTER_COMMIT = (sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_RDLOCK)
_OFFSET = 2**63  # a fingerprint as the signed integers that SQLite has

# a child of os.fork must not inherit a connection: SQLite would think the parent's locks its own
_at_work = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_at_work.acquire, after_in_parent=_at_work.release, after_in_child=_at_work.release
    )
_in_work: set[str] = set()  # the files that whoever has it is in the middle of


class Record:
    """A database that is open for the length of one transaction; made by `open_record`.

    `path` is absolute and has no symbolic links.  With `durability` "power" every commit waits for
    the disk, with "process" none does, and a power cut may cost the record.  Errors are OSError if
    the file cannot be read and written, ValueError if it is something else or damaged, and
    RuntimeError if it has several names, or is mounted without its folder: what is left of a
    transaction that was broken off is beside one name alone.
    """

    schema: ClassVar[Schema]
    description: Description

    def __init__(self, path: Path, durability: Durability = "power") -> None:
        check_choice(_SYNCHRONOUS, durability=durability)
        self.path, self.durability = real_path(path), durability
        # the thread that is in `transact`, and its connection
        self._transaction: tuple[int, sqlite3.Connection] | None = None
        # what a file that was put in the place of this one has not: its checksum, and its rows
        self._checksum_seen, self._n_rows_seen = b"", 0
        with naming(os.fsdecode(path)):
            os.stat(self.path)
        check_mounted_with_folder(self.path, os.fsdecode(path))
        text = self._do(self._read_text)
        self._checksums, self.description = Checksums(text), json.loads(text)
        self._checksum_seen = self._checksums.of(b"")

    def _read_text(self, database: sqlite3.Connection) -> str:
        """Return the text of the description, if the database is of this kind."""
        check_tables(_asking(database), self.schema, self.path)
        rows = database.execute(f"SELECT description, checksum FROM {self.schema.head}").fetchall()
        if len(rows) != 1:
            raise Damaged(f"{self.path} is damaged: it must hold one description")
        ((text, checksum),) = rows
        if Checksums(str(text)).of(b"") != checksum:
            raise Damaged(f"{self.path} is damaged: the description's checksum does not match")
        return str(text)

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` does, in one transaction with the queries that the guard adds.

        It may be called again, if others are in the way; nothing but the file changes then.
        """

        def whole(database: sqlite3.Connection) -> T:
            self._transaction = threading.get_ident(), database
            try:
                return work(database)
            finally:
                self._transaction = None

        return self._do(whole, "IMMEDIATE")

    def look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` finds, which only reads."""
        return self._do(work)

    def check_whole(self) -> None:
        """Read all of the file; ValueError if it is damaged anywhere."""
        self._do(lambda database: check_integrity(_asking(database), self.path))

    def checkpoint(self) -> None:
        """Do nothing: SQLite's log is gone when a transaction ends."""

    def close(self) -> None:
        """Do nothing: the file is closed when a transaction ends."""

    def _do(self, work: Callable[[sqlite3.Connection], T], kind: str = "") -> T:
        """Do all of `work` or nothing; IMMEDIATE: and nobody else writes in between.

        What others hold up is tried again for a while; Ctrl-C ends that.
        """
        if self._transaction is not None and self._transaction[0] == threading.get_ident():
            return work(self._transaction[1])
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
                    database.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}")
                    database.execute(f"BEGIN {kind}")
                    self._check_same(database)
                    done = work(database)
                    n_rows = self._count(database)
                    _commit(database)
                    self._n_rows_seen = n_rows
                    return done
            except (sqlite3.Error, UnicodeDecodeError) as error:
                reason = explained(error, self.path)
                if isinstance(reason, TimeoutError) and self.path in outer:
                    raise broken_into(self.path) from None
                raise reason from None
            finally:
                _in_work.intersection_update(outer)

    def _check_same(self, database: sqlite3.Connection) -> None:
        """Raise RuntimeError if another file, or an older one, is in the place of this one."""
        if not self._checksum_seen:
            return
        checksums = database.execute(f"SELECT checksum FROM {self.schema.head}").fetchall()
        if checksums != [(self._checksum_seen,)] or self._count(database) < self._n_rows_seen:
            raise RuntimeError(
                f"{self.path} is another file than when it was opened, or an older copy of it, "
                "and would give its numbers twice: put the file back, or open this one anew"
            )

    def _count(self, database: sqlite3.Connection) -> int:
        # no row is ever deleted
        ask = f"SELECT coalesce(max(rowid), 0) FROM {self.schema.rows}"
        return int(database.execute(ask).fetchone()[0])


class SearchRecord(Record):
    """The queries of a `DeclaredSearch`; its intervals do not rest on them."""

    schema = SEARCH

    def add(
        self, queries: list[Query], entries: list[Entry]
    ) -> tuple[int, list[int] | None, dict[int, Entry]]:
        """Add queries, and return how many there are then, and how many there were after each.

        None if all of them are new.  Nothing is added if some are there, or come earlier, with
        another entry, which is returned for each such row.
        """

        def work(database: sqlite3.Connection) -> tuple[int, list[int] | None, dict[int, Entry]]:
            n, rows, numbers = self._count(database), [], []
            known: dict[Query, Entry] = {}
            odd: dict[int, Entry] = {}
            for place, (query, entry) in enumerate(zip(queries, entries, strict=True)):
                if query not in known:
                    row = self._row(query, entry)
                    stored = database.execute(_FIND, row[:2]).fetchone()
                    known[query] = entry if stored is None else self._entry(stored)[1]
                    rows += [row] if stored is None else []
                if known[query] != entry:
                    odd[place] = known[query]
                numbers.append(n + len(rows))
            if odd:
                return n, numbers, odd
            database.executemany("INSERT INTO query VALUES (?, ?, ?, ?, ?, ?)", rows)
            return n + len(rows), numbers if len(rows) < len(queries) else None, odd

        return self._do(work, "IMMEDIATE")

    def check_whole(self) -> None:
        super().check_whole()
        self.after(0)

    def first_free_rerun(self, code: Hashable) -> int:
        """Return the first rerun of a key that was not queried yet, from 1."""
        ask = "SELECT rerun FROM query WHERE code = ?"
        rows = self._do(lambda database: database.execute(ask, (text_of(code),)).fetchall())
        reruns = {rerun for (rerun,) in rows}
        return next(number for number in itertools.count(1) if number not in reruns)

    def after(self, n: int, at_most: int = -1) -> dict[Query, Entry]:
        """Return the queries after the first n, in the order in which they were first made.

        All of them, or `at_most` from 0 on.
        """
        ask = f"SELECT {_COLUMNS} FROM query WHERE rowid > ? ORDER BY rowid LIMIT ?"
        rows = self._do(lambda database: database.execute(ask, (n, at_most)).fetchall())
        return dict(map(self._entry, rows))  # while others write

    def those(self, queries: list[Query]) -> dict[Query, Entry]:
        """Return some queries, which are there."""
        named = [(text_of(code), rerun) for code, rerun in queries]
        rows = self._do(lambda database: [database.execute(_FIND, one).fetchone() for one in named])
        return dict(map(self._entry, rows))

    def __len__(self) -> int:
        return self._do(self._count)

    def _row(self, query: Query, entry: Entry) -> tuple[Any, ...]:
        (code, rerun), (*summary, nats, fingerprint) = query, entry
        row = text_of(code), rerun, text_of(summary), float(nats), fingerprint - _OFFSET
        return *row, self._checksum(row)

    def _entry(self, row: tuple[Any, ...]) -> tuple[Query, Entry]:
        """Return what `_row` made a row of; ValueError if the row is damaged."""
        if self._checksum(row[:-1]) != row[-1]:
            raise Damaged(f"{self.path} is damaged: the checksum of a query does not match")
        code, rerun, summary, nats, fingerprint, _ = row
        query = _hashable(json.loads(code)), rerun
        return query, (*json.loads(summary), nats, fingerprint + _OFFSET)

    def _checksum(self, row: tuple[Any, ...]) -> bytes:
        return self._checksums.of(repr(row).encode())


def _asking(database: sqlite3.Connection) -> Callable[[str], list[Any]]:
    """Return the function that returns the rows of a statement."""
    return lambda sql: database.execute(sql).fetchall()


def _commit(database: sqlite3.Connection) -> None:
    """Commit; where only the locks could not be let go of, it is done, and closing drops them."""
    try:
        database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode not in _AFTER_COMMIT:
            raise


def _hashable(code: Any) -> Any:
    """Return JSON with its lists as tuples, as the codes of keys are."""
    return tuple(map(_hashable, code)) if isinstance(code, list) else code
