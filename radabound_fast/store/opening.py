"""Databases opened, made where there is none (by one of all who open it at once), and copied."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import sqlite3
from typing import TypeAlias, TypeVar

from radabound_fast.store.events import EventRecord
from radabound_fast.store.folder import Path, in_turn, naming, real_path, undisturbed
from radabound_fast.store.ledger import Durability, Ledger, blob_of
from radabound_fast.store.place import INDEX, JOURNAL, LOG
from radabound_fast.store.record import Record, SearchRecord
from radabound_fast.store.schema import (
    EVENTS,
    GUARD,
    SEARCH,
    Checksums,
    Damaged,
    Description,
    Progress,
    create_tables,
    text_of,
)
from radabound_fast.store.sqlite import explained, make_database

Database: TypeAlias = Ledger | SearchRecord | EventRecord

RecordT = TypeVar("RecordT", bound=Record)

# the row is to fill one page, since a page is what a commit writes
_PAGE_BYTES = [2**power for power in range(10, 17)]
_BESIDE_THE_ROW = 128


def open_ledger(
    path: Path, durability: Durability = "power", new: tuple[Description, Progress] | None = None
) -> Ledger:
    """Open the ledger at `path`; where there is none, make one that begins with `new`.

    That is the description, JSON values under the keys "kind", "parameters" and "holdout", and the
    state, int64 of shape (n,).  Of several processes that bring one, one is made.  Errors are those
    of `Ledger`; of a database that was not there before they leave nothing.
    """
    target, name = real_path(path), os.fsdecode(path)

    def open_or_make() -> Ledger:
        if new is None or os.path.lexists(target):
            return Ledger(path, durability)
        # nobody else can open it before this turn ends
        with undisturbed():
            _make_ledger(target, name, *new)
            try:
                return Ledger(path, durability)
            except BaseException:
                for suffix in ("", LOG, INDEX):
                    with contextlib.suppress(OSError):
                        os.unlink(target + suffix)
                raise

    return in_turn(os.path.dirname(target), open_or_make)


def _make_ledger(target: str, name: str, description: Description, progress: Progress) -> None:
    check_no_log(target, name, LOG, JOURNAL)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target + INDEX)  # of a log that is gone; there is nothing else in it
    text = text_of(description)
    blob = blob_of(progress, Checksums(text))
    row_bytes = len(text) + len(blob) + _BESIDE_THE_ROW
    page_bytes = next((size for size in _PAGE_BYTES if size >= row_bytes), _PAGE_BYTES[-1])

    def fill(database: sqlite3.Connection) -> None:
        database.execute(f"PRAGMA page_size = {page_bytes}")
        create_tables(database, GUARD)
        database.execute("INSERT INTO guard VALUES (?, ?)", (text, blob))
        # last: on a full disk what is in a log may never get into the file
        database.execute("PRAGMA journal_mode = WAL")

    make_database(target, name, fill)


def open_record(
    kind: type[RecordT], path: Path, durability: Durability, new: Description | None = None
) -> RecordT:
    """Open the record at `path`; where there is none, make one with this description.

    That is JSON values, the parameters and what else the guard's `open` compares.  Of several
    processes that bring one, one is made.  Errors are those of `Record`.
    """
    target, name = real_path(path), os.fsdecode(path)

    def make() -> None:
        if new is None or os.path.lexists(target):
            return
        check_no_log(target, name, JOURNAL)
        text = text_of(new)
        checksum = Checksums(text).of(b"")

        def fill(database: sqlite3.Connection) -> None:
            create_tables(database, kind.schema)
            database.execute(f"INSERT INTO {kind.schema.head} VALUES (?, ?)", (text, checksum))

        with undisturbed():
            make_database(target, name, fill)

    in_turn(os.path.dirname(target), make)
    return kind(path, durability)


def open_any(path: Path) -> Database:
    """Open the database of a guard or a search that is there, of whatever kind it is."""
    target, name = real_path(path), os.fsdecode(path)
    with naming(name):
        os.stat(target)
    # without a lock or a look at the log: what is read here never changes
    uri = f"{pathlib.Path(target).as_uri()}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
            ((number,),) = database.execute("PRAGMA application_id").fetchall()
    except sqlite3.Error as error:
        raise explained(error, target, name) from None
    if number == SEARCH.application_id:
        return open_record(SearchRecord, path, "power")
    if number == EVENTS.application_id:
        return open_record(EventRecord, path, "power")
    return open_ledger(path)


def back_up(path: Path, copy: Path) -> str:
    """Copy a database, as it is at one moment, to a new file; return the kind of its guard.

    Whoever else has it open goes on answering.  All of the copy was read and checked before it is
    there under its name.  Errors are FileExistsError if something is at `copy`, which stays as it
    is, OSError or RuntimeError if the database cannot be opened where it is or the copy cannot be
    written, and ValueError if it is something else, of another format, or damaged.
    """
    target, name = real_path(copy), os.fsdecode(copy)

    def fill(part: sqlite3.Connection) -> None:
        source.look(lambda database: database.backup(part))

    def check(part: str) -> None:
        try:
            with contextlib.closing(open_any(part)) as database:
                database.check_whole()
        except Damaged as error:  # it is what the original is
            raise Damaged(str(error).replace(part, os.fsdecode(path))) from None

    def make() -> None:
        if os.path.lexists(target):  # before it is said what stands beside it
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        check_no_log(target, name, LOG, INDEX, JOURNAL)
        with undisturbed():
            make_database(target, name, fill, check)

    with contextlib.closing(open_any(path)) as source:
        in_turn(os.path.dirname(target), make)
        return str(source.description["kind"])


def check_no_log(target: str, name: str, *suffixes: str) -> None:
    """Raise ValueError if SQLite would take another database's log for that of a new one."""
    for suffix in suffixes:
        if os.path.lexists(target + suffix):
            raise ValueError(
                f"{name}{suffix} is the log of a database that is gone, and would be taken for the "
                "new one's: put that back, or delete the log"
            )
