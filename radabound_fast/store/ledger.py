"""A guard's state in a database that processes share: SQLite in WAL mode, one row."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import math
import os
import sqlite3
import sys
import threading
import time
import weakref
from typing import Any, Literal

import numpy as np

from radabound_fast._checks import check_choice
from radabound_fast._kernel import are_files, broken_into
from radabound_fast.store.description import (
    MOST_BYTES,
    Description,
    Progress,
    check_description,
    parsed,
    text_of,
)
from radabound_fast.store.folder import (
    BUSY_SECONDS,
    Path,
    check_mounted_with_folder,
    check_one_name,
    identity_of,
    in_turn,
    naming,
    real_path,
    undisturbed,
)
from radabound_fast.store.served import SCHEMA, VERSION
from radabound_fast.store.sqlite import MOST_STEPS, connect, explained, make_database

if sys.platform != "win32":
    import fcntl

_APPLICATION_ID = 0x52414441  # "RADA", in the header of the file
_VERSION = 1  # of the row, in the header too; that of a log beside it is `_served.VERSION`
_CHECKSUM_BYTES = 8
_LITTLE_ENDIAN = np.dtype("<i8")
_TABLE = "CREATE TABLE guard (description TEXT NOT NULL, state BLOB NOT NULL)"
_SCHEMAS: dict[int, list[tuple[str, str | None]]] = {
    _VERSION: [("table", _TABLE)],
    VERSION: [("table", _TABLE), *SCHEMA],
}
_PARTS = ("kind", "parameters", "holdout")

# what each durability makes of a commit
_SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}
Durability = Literal["power", "process"]

# how long SQLite itself waits for a lock before it says so: it would wait longer and longer, up to
# a tenth of a second at a time, and whoever asks without a pause would starve the others
_ASK_AGAIN_MS = 1
# how long whoever closes a database may take from its first file to its last
_CLOSING_SECONDS = 2.0

# the row is to fill one page, since a page is what a commit writes
_PAGE_BYTES = [2**power for power in range(10, 17)]
_BESIDE_THE_ROW = 128
# the log is written back into the database when it is so long: that takes two waits for the disk
_LOG_BYTES = 2**23
# of SQLite's machine, that checking a byte of the tables of a log takes at most
_STEPS_A_BYTE = 2
# what stands beside it: the log, its index, and a log of another mode, which none of ours has
_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
# the bytes on which SQLite holds a lock while a database is open
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510


def open_ledger(
    path: Path, durability: Durability = "power", new: tuple[Description, Progress] | None = None
) -> Ledger:
    """The ledger at `path`; where there is none, one that begins with `new`.

    Parameters
    ----------
    path, durability
        As for `Ledger`.
    new : tuple, optional
        The description, JSON values under the keys "kind", "parameters" and "holdout", and the
        state, int64 of shape (n,).  Of several processes that bring one, one is made.

    Raises
    ------
    FileNotFoundError, ValueError, OSError, RuntimeError
        As `Ledger` does.  Of a database that was not there before nothing is left.
    """
    target, name = real_path(path), os.fsdecode(path)

    def open_or_make() -> Ledger:
        if new is None or os.path.lexists(target):
            return Ledger(path, durability)
        # nobody else can open it before this turn ends
        with undisturbed():
            _create(target, name, *new)
            try:
                return Ledger(path, durability)
            except BaseException:
                for suffix in ("", _LOG, _INDEX):
                    with contextlib.suppress(OSError):
                        os.unlink(target + suffix)
                raise

    return in_turn(os.path.dirname(target), open_or_make)


def _create(target: str, name: str, description: Description, progress: Progress) -> None:
    """Make the database of a new guard, whole or not at all."""
    for suffix in (_LOG, _JOURNAL):
        if os.path.lexists(target + suffix):
            raise ValueError(
                f"{name}{suffix} is the log of a database that is gone, and would be taken for the "
                "new one's: put that back, or delete the log"
            )
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target + _INDEX)  # of a log that is gone; there is nothing else in it
    text = text_of(description)
    blob = _blob(_begun_with(text), progress)
    row_bytes = len(text) + len(blob) + _BESIDE_THE_ROW
    page_bytes = next((size for size in _PAGE_BYTES if size >= row_bytes), _PAGE_BYTES[-1])

    def fill(database: sqlite3.Connection) -> None:
        database.execute(f"PRAGMA page_size = {page_bytes}")
        database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {_VERSION}")
        database.execute(_TABLE)
        database.execute("INSERT INTO guard VALUES (?, ?)", (text, blob))
        # last: on a full disk what is in a log may never get into the file
        database.execute("PRAGMA journal_mode = WAL")

    make_database(target, name, fill)


class Ledger:
    """An open database: reads, replaces and guards the one state in it.

    Not safe for several threads at once: the guard's own lock is held around each call.  Made by
    `open_ledger`.

    Parameters
    ----------
    path : path
        Of a database.
    durability : {"power", "process"}
        Whether a commit survives a power cut (each waits for the disk), or only the death of
        processes, `kill -9` included.

    Attributes
    ----------
    path : str
        The same, absolute and with symbolic links resolved.
    description : dict
        As it was given to `open_ledger`; checked in form only.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is something else, of another format, cut short or altered.
    OSError
        It cannot be read and written.
    RuntimeError
        The process that this one was forked from had it open at the fork.  Or who opened it next
        would not see what is committed here: it has several names, is mounted without its folder,
        or is open while its log, or the index of that, is gone.
    """

    description: Description

    def __init__(self, path: Path, durability: Durability = "power") -> None:
        check_choice(_SYNCHRONOUS, durability=durability)
        self.durability = durability
        self.path, name = real_path(path), os.fsdecode(path)
        self._seen: bytes | None = None
        self._thread = 0  # that began the last transaction
        # paths, each with st_ino, st_dev and st_nlink, as os.stat has them side by side
        self._files: list[tuple[str, tuple[int, int, int]]] = []
        self._named: list[tuple[bytes, int, int, int]] = []  # the same, for `are_files`
        # before SQLite opens it, and never with open(): closing any descriptor of the file
        # would drop the locks that this process holds on it
        with naming(name):
            found = os.stat(self.path)
        check_one_name(found, name)
        check_mounted_with_folder(self.path, name)
        self._identity = identity_of(found)
        if self._identity in _of_parent:
            raise RuntimeError(
                f"{name} was open when this process was forked, and SQLite's locks do "
                'not survive that: start workers with "spawn", or open it after the fork only'
            )
        # SQLite would open it for reading
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        self._check_beside(name)
        try:
            self._database = connect(self.path, _ASK_AGAIN_MS)
        except sqlite3.Error as error:
            raise explained(error, self.path, name) from None
        self._close = weakref.finalize(self, _put_away, self._database, self.path, self._identity)
        self._cursor = self._database.cursor()  # to make one for each statement takes as long
        try:
            self._close.atexit = False
            _open_ledgers[id(self)] = self
            self._check_form(name)
        except BaseException:
            self._close()
            raise

    # ---- checks before anything is believed --------------------------------------------------

    def _check_beside(self, name: str) -> None:
        """Raise if SQLite would make a second log, or a second index of it."""
        for other in self._open_here():
            try:
                if other.path == self.path:
                    other._check_files()
                elif not os.path.exists(log := self.path + _LOG) or (
                    not os.path.samefile(log, other.path + _LOG)
                ):
                    raise RuntimeError(
                        f"{name} is open in this process as {other.path}, and the log of that is "
                        "not beside it: close that first"
                    )
            except (RuntimeError, FileNotFoundError):
                if other._close.alive:  # else it was closed just now
                    raise
        give_up = time.monotonic() + _CLOSING_SECONDS
        # SQLite makes the log before the index, and deletes the index before the log
        while missing := [end for end in (_LOG, _INDEX) if not os.path.lexists(self.path + end)]:
            if not self._open_here() and not _open_elsewhere(self.path):
                break
            if time.monotonic() > give_up:
                raise RuntimeError(
                    f"{name}{missing[0]} is gone, and another process has the database open, with "
                    "answers that may be nowhere else: close it there first"
                )
            time.sleep(0.001)
        if missing == [_LOG]:
            raise RuntimeError(
                f"{name}{_LOG} is gone, and {name}{_INDEX} shows that it was not put away: its "
                f"answers may be nowhere else; put it back, or delete {name}{_INDEX} to do "
                "without them"
            )
        if os.path.lexists(self.path + _JOURNAL):
            raise ValueError(
                f"{name}{_JOURNAL} would be taken for a log of {name}, which has none of this kind"
            )

    def _open_here(self) -> list[Ledger]:
        """Others of this process on the same file, whatever its name."""
        others = [reference() for reference in _open_ledgers.valuerefs()]
        return [
            other
            for other in others
            if other is not None and other._close.alive and other._identity == self._identity
        ]

    def _check_form(self, name: str) -> None:
        """Read the description, once all that SQLite will be asked of is as we make it."""
        database = self._database
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        # what SQLite is told when it asks whether a statement takes too many steps; it is no
        # function of Python, in which Ctrl-C would be taken for that answer
        self._too_many: list[bool] = []
        database.set_progress_handler(self._too_many.pop, MOST_STEPS)
        if self._value("PRAGMA application_id") != _APPLICATION_ID:
            raise ValueError(f"{name} is not a guard's database")
        version = self._value("PRAGMA user_version")
        if version not in _SCHEMAS:
            known = " and ".join(map(str, _SCHEMAS))
            raise ValueError(f"{name} has format version {version}, this program reads {known}")
        schema = self._rows("SELECT type, sql FROM sqlite_master LIMIT 9", most=9)
        if schema != _SCHEMAS[version]:
            raise ValueError(f"{name} is damaged: its tables are not as guards make them")
        rows = self._rows("SELECT typeof(description), typeof(state) FROM guard LIMIT 2")
        if rows != [("text", "blob")]:
            raise ValueError(f"{name} is damaged: it must hold one state, and holds {len(rows)}")
        text = self._value("SELECT description FROM guard")
        try:
            self.description = check_description(parsed(text), *_PARTS)
            self._begun = _begun_with(text)
        except ValueError as error:
            raise ValueError(f"{name} is damaged: {error}") from None

    def stored(self) -> Progress:
        """The state, once the whole file has been found sound; ValueError if it is not."""
        page_bytes, n_pages = self._value("PRAGMA page_size"), self._value("PRAGMA page_count")
        self._database.set_progress_handler(
            self._too_many.pop, MOST_STEPS + _STEPS_A_BYTE * n_pages * page_bytes
        )
        n_bytes = self._value("SELECT length(state) FROM guard")
        if self._value("PRAGMA integrity_check") != "ok":
            raise ValueError(f"{self.path} is damaged: SQLite's integrity check fails")
        self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, n_bytes + 2 * MOST_BYTES)
        self._rows(f"PRAGMA synchronous = {_SYNCHRONOUS[self.durability]}")
        self._rows("PRAGMA journal_mode = WAL")
        self._rows(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")
        progress = self.read()
        assert progress is not None  # nothing has been read before
        # reading has opened the log, and from now on nobody may remove it until this is closed
        for file in (self.path, self.path + _LOG, self.path + _INDEX):
            found = os.stat(file)
            check_one_name(found, file)
            self._files.append((file, found[1:4]))
            inode, device, n_links = (number % 2**64 for number in found[1:4])
            self._named.append((os.fsencode(file), inode, device, n_links))
        return progress

    def _check_files(self) -> None:
        """Raise if whoever opens the database next would not see what is committed here."""
        if self._named and are_files(self._named):
            return
        for file, then in self._files:
            try:
                found = os.stat(file)
            except FileNotFoundError:
                raise RuntimeError(
                    f"{file} is gone, which an open guard needs: close this guard, which puts what "
                    f"it counted into {self.path} if that is there still, and open it again"
                ) from None
            if found[1:4] != then:
                if found[1:3] == then[:2]:
                    check_one_name(found, file)
                raise RuntimeError(f"{file} is another file than when {self.path} was opened")

    # ---- transactions --------------------------------------------------------------------------

    def read(self) -> Progress | None:
        """The state, or None if it is what was read or committed here last.  Raises as `begin`."""
        self._check_files()
        return self._read()

    def _read(self) -> Progress | None:
        blob = self._value("SELECT state FROM guard")
        if blob == self._seen:
            return None
        progress = _numbers(self._begun, blob, self.path)
        self._seen = blob
        return progress

    def begin(self) -> Progress | None:
        """Shut everybody else out until `commit` or `rollback`; returns as `read`.

        Raises
        ------
        TimeoutError
            Somebody else has not finished within a minute.
        RuntimeError
            The file or its log was deleted, replaced or given another name, so that somebody would
            not find what is committed here.
        """
        if self._database.in_transaction:  # a rollback was interrupted
            self.rollback()
        self._check_files()
        self._thread = threading.get_ident()
        self._rows("BEGIN IMMEDIATE")
        return self._read()

    def commit(self, progress: Progress | None) -> None:
        """Replace the state; when this returns it is as durable as was asked for.

        None: it stays, and what else was written in this transaction is committed.
        """
        blob = None if progress is None else _blob(self._begun, progress)
        if blob is not None:
            self._rows("UPDATE guard SET state = ?", blob)
        self._rows("COMMIT")
        self._seen = blob or self._seen

    def rollback(self) -> None:
        """Leave the file as it was before `begin`, and read it again next time."""
        self._seen = None
        with contextlib.suppress(sqlite3.Error):
            self._database.rollback()

    def add_tables(self, tables: list[str], version: int, most_bytes: int) -> None:
        """Have these tables beside the state from now on, in each row of them so many bytes."""
        self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_bytes)
        self._check_files()
        self._rows("BEGIN IMMEDIATE")
        try:
            if self._value("PRAGMA user_version") != version:
                for table in tables:
                    self._rows(table)
                self._rows(f"PRAGMA user_version = {version}")
            self._rows("COMMIT")
        except BaseException:
            self.rollback()
            raise
        # all of its form is known, and to read many rows takes many steps
        self._database.set_progress_handler(None, 0)

    def close(self) -> None:
        """Let go of the file; closing twice does nothing."""
        self._close()

    def _rows(self, statement: str, *values: bytes, most: int = 2) -> list[Any]:
        """What a statement finds, so many rows at most.

        It waits for what others hold up for a while; Ctrl-C ends the wait.
        """
        give_up = math.inf
        while True:
            # SQLite counts on from one run of a statement to the next: a first call says nothing
            self._too_many[:] = (True, False)
            try:
                return self._cursor.execute(statement, values).fetchmany(most)
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
        return any(
            other is not self
            and other._thread == threading.get_ident()
            and other._database.in_transaction
            for other in self._open_here()
        )

    def _value(self, statement: str) -> Any:
        """What it finds in its one row of one column."""
        ((value,),) = self._rows(statement)
        return value


# ---- the file and the connection -------------------------------------------------------------


def _put_away(database: sqlite3.Connection, path: str, identity: tuple[int, int]) -> None:
    """Close it; SQLite would leave the log of a file that was moved where nobody finds it."""
    try:
        if not os.path.exists(path) or identity_of(os.stat(path)) != identity:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (sqlite3.Error, OSError):
        pass
    finally:
        database.close()


def _open_elsewhere(path: str) -> bool:
    """Whether another process has the database open, by whatever name.

    Only if this one has not: closing the file drops the locks that a process holds on it.
    """
    if sys.platform == "win32":  # where nothing that is open can be deleted or renamed
        return False
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
    except (BlockingIOError, PermissionError):
        return True
    finally:
        os.close(descriptor)
    return False


_open_ledgers: weakref.WeakValueDictionary[int, Ledger] = weakref.WeakValueDictionary()
_of_parent: set[tuple[int, int]] = set()


def _leave_to_parent() -> None:
    # SQLite forbids a child to use or even close a connection that it inherits: closing it would
    # delete the log of whoever opened the file after the parent.  Nor may the child open the file
    # anew: SQLite believes that the process still holds the parent's locks.
    for ledger in list(_open_ledgers.values()):
        if ledger._close.detach() is not None:
            _of_parent.add(ledger._identity)
            # one reference too many, or the end of the interpreter would close it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(ledger._database))


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_to_parent)


# ---- the row ---------------------------------------------------------------------------------


def _begun_with(text: str) -> hashlib.blake2b:
    """A checksum that begins with the description."""
    return hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_BYTES)


def _checksum(begun: hashlib.blake2b, numbers: bytes) -> bytes:
    digest = begun.copy()
    digest.update(numbers)
    return digest.digest()


def _blob(begun: hashlib.blake2b, progress: Progress) -> bytes:
    """The state as int64, little-endian, the last of them a checksum of all and the text."""
    numbers = progress.astype(_LITTLE_ENDIAN, copy=False).tobytes()
    return numbers + _checksum(begun, numbers)


def _numbers(begun: hashlib.blake2b, blob: bytes, name: str) -> Progress:
    numbers, checksum = blob[:-_CHECKSUM_BYTES], blob[-_CHECKSUM_BYTES:]
    if len(blob) % 8 or _checksum(begun, numbers) != checksum:
        raise ValueError(f"{name} is damaged: the state's checksum does not match")
    return np.frombuffer(numbers, _LITTLE_ENDIAN).astype(np.int64)
