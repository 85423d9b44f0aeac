"""What was asked of a `DeclaredSearch`, in a database that processes share.

A record, and no budget: no guarantee rests on it, so that it need not be the only copy, nor be
open all the time.  Each operation opens the file, makes one transaction and closes it: what is
kept meanwhile is a path, which may be pickled, sent and forked.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pathlib
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from radabound_fast._checks import check_choice
from radabound_fast._values import as_tuple
from radabound_fast.store._folder import sync_folder

# Which query: the code of its key, and the rerun.
Query = tuple[Hashable, int]
# What is kept of it, and nothing that its losses could be made from: their sum in units of
# 2**-shift, shift (0: they were declared 0 or 1), nats, fingerprint.
Asked = tuple[int, int, float, int]

_APPLICATION_ID = 0x52414453  # "RADS", in the header of the file
_VERSION = 1
_TABLES = [
    "CREATE TABLE search (description TEXT NOT NULL)",
    "CREATE TABLE asked (code TEXT NOT NULL, rerun INTEGER NOT NULL, total INTEGER NOT NULL, "
    "shift INTEGER NOT NULL, nats REAL NOT NULL, fingerprint INTEGER NOT NULL, "
    "UNIQUE (code, rerun))",
]
_COLUMNS = "total, shift, nats, fingerprint"
_BUSY_SECONDS = 60
_SYNCHRONOUS = {"power": "FULL", "process": "OFF"}
_OFFSET = 2**63  # a fingerprint as the signed integers that SQLite has

# a child of os.fork must not inherit a connection: SQLite would think the parent's locks its own
_at_work = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_at_work.acquire, after_in_parent=_at_work.release, after_in_child=_at_work.release
    )


class SearchRecord:
    """The database at a path; see `create_record`.

    Parameters
    ----------
    path : path
        Of a database that `create_record` made.
    durability : {"power", "process"}
        "power": every commit waits for the disk.  "process": none does, and a power cut may cost
        the record.

    Raises
    ------
    FileNotFoundError, OSError
        There is no such file, or it cannot be read and written.
    ValueError
        It is something else, of another format, or damaged.
    """

    def __init__(self, path: str, durability: str = "power") -> None:
        self._synchronous = _SYNCHRONOUS[check_choice(_SYNCHRONOUS, durability=durability)]
        self.path = os.path.realpath(path)
        if not os.path.exists(self.path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        with self._transaction() as database:
            self.description = self._check(database)

    def _check(self, database: sqlite3.Connection) -> dict[str, Any]:
        for pragma, wanted in (("application_id", _APPLICATION_ID), ("user_version", _VERSION)):
            (found,) = database.execute(f"PRAGMA {pragma}").fetchone()
            if found != wanted:
                raise ValueError(f"{self.path} is not the record of a search, or of a later format")
        tables = database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        if [sql for (sql,) in tables.fetchmany(3)] != _TABLES:
            raise ValueError(f"{self.path} is damaged: its tables are not as a search makes them")
        ((text,),) = database.execute("SELECT description FROM search").fetchmany(2)
        description = json.loads(text)
        if not isinstance(description, dict) or {
            name: type(value) for name, value in description.items() if name != "holdout"
        } != {"parameters": dict, "secret": str}:
            raise ValueError(f"{self.path} is damaged: its description is not as it was written")
        return description

    @contextlib.contextmanager
    def _transaction(self, kind: str = "") -> Iterator[sqlite3.Connection]:
        """All or nothing; IMMEDIATE: and nobody else writes in between."""
        with _at_work:
            try:
                with contextlib.closing(_connect(self.path)) as database:
                    database.execute("PRAGMA trusted_schema = OFF")
                    database.execute(f"PRAGMA synchronous = {self._synchronous}")
                    database.execute(f"BEGIN {kind}")
                    yield database
                    database.execute("COMMIT")
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                fault = TimeoutError if busy else OSError
                raise fault(f"{self.path} cannot be read and written: {error}") from None
            except (sqlite3.Error, json.JSONDecodeError, UnicodeDecodeError) as error:
                raise ValueError(f"{self.path} is damaged: {error}") from None

    def add(self, asked: dict[Query, Asked], check: Callable[[Query, Asked], None]) -> int:
        """Add queries, and return how many there are then.

        Of each that was there before, `check` is told how it was asked; if it raises, nothing is
        added.
        """
        rows = []
        with self._transaction("IMMEDIATE") as database:
            for query, (total, shift, nats, fingerprint) in asked.items():
                code, rerun = json.dumps(query[0]), query[1]
                found = database.execute(
                    f"SELECT {_COLUMNS} FROM asked WHERE code = ? AND rerun = ?", (code, rerun)
                ).fetchone()
                if found is None:
                    rows.append((code, rerun, total, shift, nats, fingerprint - _OFFSET))
                else:
                    check(query, (*found[:3], found[3] + _OFFSET))
            database.executemany("INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?)", rows)
            return self._count(database)

    def all(self) -> dict[Query, Asked]:
        """Every query so far, in the order in which they were first asked."""
        with self._transaction() as database:
            rows = database.execute(f"SELECT code, rerun, {_COLUMNS} FROM asked ORDER BY rowid")
            return {
                (as_tuple(json.loads(code)), rerun): (total, shift, nats, fingerprint + _OFFSET)
                for code, rerun, total, shift, nats, fingerprint in rows
            }

    def __len__(self) -> int:
        with self._transaction() as database:
            return self._count(database)

    def _count(self, database: sqlite3.Connection) -> int:
        # no row is ever deleted
        (count,) = database.execute("SELECT coalesce(max(rowid), 0) FROM asked").fetchone()
        return int(count)


def create_record(path: str, description: dict[str, Any]) -> None:
    """Make the database of a new search, whole or not at all.

    Parameters
    ----------
    path : path
        Where nothing is yet.
    description : dict
        JSON values.

    Raises
    ------
    FileExistsError
        Something is there: of several processes that create it at once, one succeeds.
    OSError
        It cannot be written.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    text = json.dumps(description, allow_nan=False, sort_keys=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}.", suffix=".tmp", dir=folder) as scratch:
        part = os.path.join(scratch, name)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with contextlib.closing(_connect(part)) as database:
                database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {_VERSION}")
                for table in _TABLES:
                    database.execute(table)
                database.execute("INSERT INTO search VALUES (?)", (text,))
        except sqlite3.Error as error:
            raise OSError(f"{os.fspath(path)} cannot be written: {error}") from None
        # unlike a rename, a link never takes the place of what is there
        os.link(part, target)
    sync_folder(folder)


def _connect(path: str) -> sqlite3.Connection:
    """A connection to a file that exists, which commits when it is told to."""
    return sqlite3.connect(
        f"{pathlib.Path(path).as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
    )
