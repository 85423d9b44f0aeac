"""What a database holds: tables that show its kind and format, JSON texts, and checksums.

Format 1 is a database as it is made.  The first service that opens it adds the tables of its log:
format 2.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Description = dict[str, Any]  # what never changes of a guard or a search
Progress = NDArray[np.int64]

CHECKSUM_BYTES = 8


class Damaged(ValueError):
    """The file of a database does not hold what was written there; the message names the file."""


def text_of(value: Any) -> str:
    """Return the JSON text of a value; equal values have equal texts."""
    return json.dumps(value, allow_nan=False, sort_keys=True)


class Checksums:
    """Checksums of what belongs to one description, of which `text` is the JSON.

    A row of another database does not pass for one of this.  They find accidents; whoever can write
    the file can compute them.
    """

    def __init__(self, text: str) -> None:
        self._key = hashlib.blake2b(text.encode()).digest()

    def of(self, content: bytes) -> bytes:
        """Return the checksum of the description and `content`, eight bytes."""
        return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES, key=self._key).digest()


class Schema(NamedTuple):
    """What SQLite's header and its table of tables say of one kind of database."""

    application_id: int  # in the header of the file
    owner: str  # whose database it is, as errors name it
    head: str  # the table with the description
    rows: str  # the table of which no row is ever deleted, or the same if there is none
    tables: tuple[str, ...]  # the statements that make the tables of format 1


GUARD = Schema(
    0x52414441,  # "RADA"
    "a guard",
    "guard",
    "guard",
    ("CREATE TABLE guard (description TEXT NOT NULL, state BLOB NOT NULL)",),
)
SEARCH = Schema(
    0x52414453,  # "RADS"
    "a search",
    "search",
    "query",
    (
        "CREATE TABLE search (description TEXT NOT NULL, checksum BLOB NOT NULL)",
        "CREATE TABLE query (code TEXT NOT NULL, rerun INTEGER NOT NULL, summary TEXT NOT NULL, "
        "nats REAL NOT NULL, fingerprint INTEGER NOT NULL, checksum BLOB NOT NULL, "
        "UNIQUE (code, rerun))",
    ),
)
EVENTS = Schema(
    0x52414445,  # "RADE"
    "a guard that keeps its events",
    "guard",
    "event",
    (
        "CREATE TABLE guard (description TEXT NOT NULL, checksum BLOB NOT NULL)",
        "CREATE TABLE event (event TEXT NOT NULL, content BLOB NOT NULL, "
        "event_checksum BLOB NOT NULL, content_checksum BLOB NOT NULL)",
    ),
)
LOG_TABLES = (
    "CREATE TABLE served (team TEXT NOT NULL, idempotency TEXT, digest BLOB NOT NULL, "
    "second INTEGER NOT NULL, n_answers INTEGER NOT NULL, reply TEXT NOT NULL, "
    "UNIQUE (team, idempotency))",
    "CREATE INDEX served_by_team ON served (team)",
    "CREATE TABLE served_by_day (team TEXT NOT NULL, day INTEGER NOT NULL, "
    "n_calls INTEGER NOT NULL, n_answers INTEGER NOT NULL, PRIMARY KEY (team, day)) WITHOUT ROWID",
    "CREATE TABLE served_best (team TEXT PRIMARY KEY, rank REAL NOT NULL, "
    "second INTEGER NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID",
)
WITHOUT_LOG, WITH_LOG = 1, 2


def create_tables(database: sqlite3.Connection, schema: Schema) -> None:
    """Make the tables of format 1 in a new database."""
    database.execute(f"PRAGMA application_id = {schema.application_id}")
    database.execute(f"PRAGMA user_version = {WITHOUT_LOG}")
    for table in schema.tables:
        database.execute(table)


def add_log_tables(database: sqlite3.Connection) -> None:
    """Make the tables of a service's log, unless they are there; within a transaction."""
    if database.execute("PRAGMA user_version").fetchone()[0] != WITH_LOG:
        for table in LOG_TABLES:
            database.execute(table)
        database.execute(f"PRAGMA user_version = {WITH_LOG}")


def check_tables(rows_of: Callable[[str], list[Any]], schema: Schema, name: str) -> None:
    """Raise ValueError unless a database is of this kind, and of a format that is known here.

    `rows_of` returns what a statement finds in the database, which errors call `name`.
    """
    if rows_of("PRAGMA application_id") != [(schema.application_id,)]:
        raise Damaged(f"{name} is not the database of {schema.owner}")
    ((version,),) = rows_of("PRAGMA user_version")
    if version not in (WITHOUT_LOG, WITH_LOG):
        raise Damaged(
            f"{name} has format version {version}, this program reads {WITHOUT_LOG} and {WITH_LOG}"
        )
    expected = [*schema.tables, *(LOG_TABLES if version == WITH_LOG else ())]
    stored = rows_of("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    if stored != [(sql,) for sql in expected]:
        raise Damaged(f"{name} is damaged: its tables are not those of {schema.owner}")
