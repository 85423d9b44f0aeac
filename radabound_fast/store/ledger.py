"""The state of a guard in a database that processes share: SQLite in WAL mode, one row."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from radabound_fast._checks import check_choice
from radabound_fast._kernels.support import broken_into
from radabound_fast.store.folder import BUSY_SECONDS, Path
from radabound_fast.store.place import Place
from radabound_fast.store.schema import (
    CHECKSUM_BYTES,
    GUARD,
    Checksums,
    Damaged,
    Description,
    Progress,
    check_tables,
)
from radabound_fast.store.sqlite import check_integrity, connect, explained

T = TypeVar("T")
Durability = Literal["power", "process"]

# SQLite's word for how long a commit waits
_SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}
_LITTLE_ENDIAN = np.dtype("<i8")

# how long SQLite itself waits for a lock before it says so: it would wait longer and longer, up to
# a tenth of a second at a time, and whoever asks without a pause would starve the others
_ASK_AGAIN_MS = 1
# the log is written back into the database when it is so long: that takes two waits for the disk
_LOG_BYTES = 2**23
# in which `checkpoint` brings the log into the database, at most
_CHECKPOINT_ROUNDS = 5


@dataclass
class _Transaction:
    """What a guard's calls within `Ledger.transact` leave to its end."""

    news: Progress | None = None  # committed by others, and not yet returned to the guard
    progress: Progress | None = None  # the guard's, not yet written


class Ledger:
    """An open database: reads, replaces and guards the one state in it.

    Not safe for several threads at once: the guard's own lock is held around each call.  Made by
    `open_ledger`; `path` is absolute and has no symbolic links.  With `durability` "power" a commit
    survives a power cut (each waits for the disk), with "process" only the death of processes,
    `kill -9` included.  Errors are those of `Place`, and ValueError if the file is something else,
    of another format, cut short or altered.
    """

    description: Description

    def __init__(self, path: Path, durability: Durability = "power") -> None:
        check_choice(_SYNCHRONOUS, durability=durability)
        self.durability = durability
        self._place = Place(path)
        self.path, name = self._place.path, os.fsdecode(path)
        self._seen: bytes | None = None
        self._thread = 0  # that began the last transaction
        self._transaction: _Transaction | None = None
        try:
            self._database = connect(self.path, _ASK_AGAIN_MS)
        except sqlite3.Error as error:
            raise explained(error, self.path, name) from None
        self._close = weakref.finalize(self, _put_away, self._database, self._place)
        self._cursor = self._database.cursor()  # to make one for each statement takes as long
        try:
            self._close.atexit = False
            self._place.open(self, self._close)
            _open_ledgers[id(self)] = self
            self._rows("BEGIN")  # one view of all of it: a service may add its tables meanwhile
            check_tables(self._rows, GUARD, name)
            rows = self._rows("SELECT description, state FROM guard")
            if len(rows) != 1:
                raise Damaged(f"{name} is damaged: it must hold one state, and holds {len(rows)}")
            ((text, blob),) = rows
            self._checksums = Checksums(str(text))
            progress_from(blob, self._checksums, name)  # whose checksum is that of the text too
            self.description = json.loads(text)
            self._rows("COMMIT")
        except BaseException:
            self._close()
            raise

    def stored(self) -> Progress:
        """Return the state, once the whole file was checked; ValueError if it is damaged."""
        check_integrity(self._rows, self.path)
        self._rows(f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}")
        self._rows("PRAGMA journal_mode = WAL")
        self._rows(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // self._value('PRAGMA page_size')}")
        progress = self.read()
        assert progress is not None  # nothing has been read before
        # reading has opened the log, and from now on nobody may remove it until this is closed
        self._place.remember()
        return progress

    def check_whole(self) -> None:
        """Read all of the file; ValueError if it is damaged anywhere."""
        self.stored()

    def read(self) -> Progress | None:
        """Return the state; None if it is what was last read or committed here.

        RuntimeError if the file or its log was deleted, replaced or given another name, so that
        somebody would not find what is committed here.
        """
        if self._transaction is not None:
            return None
        self._place.check()
        return self._read()

    def begin(self) -> Progress | None:
        """Shut everybody else out until `commit` or `rollback`; return the same as `read`.

        TimeoutError if somebody else has not finished within a minute, RuntimeError as in `read`.
        """
        if self._transaction is None:
            return self._begin()
        news, self._transaction.news = self._transaction.news, None
        return news

    def commit(self, progress: Progress) -> None:
        """Replace the state; when this returns it is as durable as was asked for.

        Within `transact` that is so at its end.
        """
        if self._transaction is None:
            self._commit(progress)
        else:
            self._transaction.progress = progress

    def rollback(self) -> None:
        """Leave the file as it was before `begin`, and read it again next time.

        Within `transact` nothing was written yet.
        """
        if self._transaction is None:
            self._rollback()

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` does, in one transaction with all that the guard commits meanwhile.

        If it raises, nothing of it is committed; the guard then takes over the stored state when it
        looks next.  Errors are those of `begin`, and OSError if nothing could be committed.
        """
        if self._transaction is not None:
            raise broken_into(self.path)
        transaction = _Transaction()
        try:
            transaction.news = self._begin()
            self._transaction = transaction
            done = self.look(work)
            self._commit(transaction.progress)
            if transaction.news is not None:  # a guard that has halted does not begin
                self._seen = None
            return done
        except BaseException:
            self._rollback()
            raise
        finally:
            self._transaction = None

    def look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what `work` finds, which only reads."""
        try:
            return work(self._database)
        except sqlite3.Error as error:
            raise explained(error, self.path) from None

    def checkpoint(self) -> None:
        """Bring SQLite's log into the database, in any thread, while others commit.

        Otherwise a commit does so now and then, and whoever waits for that waits for all of it.
        """
        try:
            with contextlib.closing(connect(self.path, 0)) as database:
                # the first round takes long, and meanwhile more is committed
                for _ in range(_CHECKPOINT_ROUNDS):
                    _, n_log, n_done = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    if n_log == n_done:  # and the next commit begins a new log
                        break
        except sqlite3.Error:
            pass  # a commit says what is wrong

    def close(self) -> None:
        """Let go of the file; closing twice does nothing."""
        self._close()

    def _read(self) -> Progress | None:
        """The state, unless it is what was last seen."""
        blob = self._value("SELECT state FROM guard")
        if blob == self._seen:
            return None
        progress = progress_from(blob, self._checksums, self.path)
        self._seen = blob
        return progress

    def _begin(self) -> Progress | None:
        if self._database.in_transaction:  # a rollback was interrupted
            self._rollback()
        self._place.check()
        self._thread = threading.get_ident()
        self._rows("BEGIN IMMEDIATE")
        return self._read()

    def _commit(self, progress: Progress | None) -> None:
        """Commit the transaction; None: the state stays."""
        blob = None if progress is None else blob_of(progress, self._checksums)
        if blob not in (None, self._seen):  # which is what the file has
            self._rows("UPDATE guard SET state = ?", blob)
        self._rows("COMMIT")
        self._seen = blob or self._seen

    def _rollback(self) -> None:
        self._seen = None
        with contextlib.suppress(sqlite3.Error):
            self._database.rollback()

    def _rows(self, statement: str, *values: bytes) -> list[Any]:
        """Return what a statement finds.

        It waits for what others hold up for a while; Ctrl-C ends the wait.
        """
        give_up = math.inf
        while True:
            try:
                return self._cursor.execute(statement, values).fetchall()
            # SQLite's messages quote what they find, which need not be text
            except (sqlite3.Error, UnicodeDecodeError) as error:
                reason = explained(error, self.path)
            if not isinstance(reason, TimeoutError) or time.monotonic() > give_up:
                raise reason
            if self._is_within():
                raise broken_into(self.path)
            give_up = min(give_up, time.monotonic() + BUSY_SECONDS)

    def _is_within(self) -> bool:
        """Whether this very thread is in the transaction of another guard on the file."""
        others = [reference() for reference in _open_ledgers.valuerefs()]
        return any(
            other is not None
            and other is not self
            and other._place.identity == self._place.identity
            and other._thread == threading.get_ident()
            and other._close.alive
            and other._database.in_transaction
            for other in others
        )

    def _value(self, statement: str) -> Any:
        """Return what a statement finds in its one row of one column."""
        ((value,),) = self._rows(statement)
        return value


def _put_away(database: sqlite3.Connection, place: Place) -> None:
    """Close it; SQLite would leave the log of a file that was moved where nobody finds it."""
    try:
        if place.was_moved:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (sqlite3.Error, OSError):
        pass
    finally:
        database.close()


_open_ledgers: weakref.WeakValueDictionary[int, Ledger] = weakref.WeakValueDictionary()


def _leave_to_parent() -> None:
    # SQLite forbids a child to use or even close a connection that it inherits: closing it would
    # delete the log of whoever opened the file after the parent.  Nor may the child open the file
    # anew: SQLite believes that the process still holds the parent's locks.
    for ledger in list(_open_ledgers.values()):
        if ledger._close.detach() is not None:
            ledger._place.leave_to_parent()
            # one reference too many, or the end of the interpreter would close it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(ledger._database))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def blob_of(progress: Progress, checksums: Checksums) -> bytes:
    """Return the state as int64, little-endian, and a checksum of the description and these."""
    numbers = progress.astype(_LITTLE_ENDIAN, copy=False).tobytes()
    return numbers + checksums.of(numbers)


def progress_from(blob: Any, checksums: Checksums, name: str) -> Progress:
    """Return the state that `blob_of` wrote; ValueError if it wrote something else."""
    if isinstance(blob, bytes) and len(blob) % 8 == 0:
        numbers, checksum = blob[:-CHECKSUM_BYTES], blob[-CHECKSUM_BYTES:]
        if checksums.of(numbers) == checksum:
            return np.frombuffer(numbers, _LITTLE_ENDIAN).astype(np.int64)
    raise Damaged(f"{name} is damaged: the state's checksum does not match")
