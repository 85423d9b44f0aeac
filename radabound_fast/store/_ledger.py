"""A guard's state in a database that processes share: SQLite in WAL mode, one row."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import math
import os
import pathlib
import sqlite3
import sys
import tempfile
import time
import weakref
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice
from radabound_fast.store._folder import sync_folder

Progress = NDArray[np.int64]

_APPLICATION_ID = 0x52414441  # "RADA", in the header of the file
_VERSION = 1  # of the row, in the header too
_CHECKSUM_BYTES = 8

# what each durability makes of a commit
_SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}
Durability = Literal["power", "process"]

_BUSY_SECONDS = 60
# how long SQLite itself waits for a lock before it says so: it would wait longer and longer, up to
# a tenth of a second at a time, and whoever asks without a pause would starve the others
_ASK_AGAIN_MS = 1

# the row is to fill one page, since a page is what a commit writes
_PAGE_BYTES = [2**power for power in range(10, 17)]
_BESIDE_THE_ROW = 128
# the log is written back into the database when it is so long: that takes two waits for the disk
_LOG_BYTES = 2**23
_ERRNO_OF = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
# 0: text that is not UTF-8; ERROR: a schema that is not ours
_BROKEN = (
    0,
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
)


def create_database(
    path: str | os.PathLike[str], description: dict[str, Any], progress: Progress
) -> None:
    """Make the database of a new guard, whole or not at all.

    Parameters
    ----------
    path : path
        Where nothing is yet; readable by its owner alone, since it holds the seed.
    description : dict
        What never changes: JSON values.
    progress : ndarray of int64, shape (n,)
        Where the guard begins.

    Raises
    ------
    FileExistsError
        Something is there: of several processes that create it at once, one succeeds.
    OSError
        It cannot be written.
    ValueError
        The log of another database is there.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):  # before an error names a file that nobody asked for
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    # in this order: a database that somebody else has just made is there before its log
    if os.path.exists(f"{target}-wal") and not os.path.exists(target):
        raise ValueError(
            f"{os.fspath(path)}-wal is the log of a database that is gone, and would be taken for "
            "the new one's: put that back, or delete the log"
        )
    text = json.dumps(description, allow_nan=False, sort_keys=True)
    blob = _blob(text, progress)
    row_bytes = len(text.encode()) + len(blob) + _BESIDE_THE_ROW
    page_bytes = next((size for size in _PAGE_BYTES if size >= row_bytes), _PAGE_BYTES[-1])
    with tempfile.TemporaryDirectory(prefix=f"{name}.", suffix=".tmp", dir=folder) as scratch:
        temporary = os.path.join(scratch, name)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with contextlib.closing(_connect(temporary)) as database:
                database.execute(f"PRAGMA page_size = {page_bytes}")
                database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {_VERSION}")
                database.execute(
                    "CREATE TABLE guard (description TEXT NOT NULL, state BLOB NOT NULL)"
                )
                database.execute("INSERT INTO guard VALUES (?, ?)", (text, blob))
                # last: on a full disk what is in a log may never get into the file
                database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise _explained(error, path) from None
        # unlike a rename, a link never takes the place of what is there
        os.link(temporary, target)
    sync_folder(folder)


class Ledger:
    """An open database: reads, replaces and guards the one state in it.

    Not safe for several threads at once: the guard's own lock is held around each call.

    Parameters
    ----------
    path : path
        Of a database that `create_database` made.
    durability : {"power", "process"}
        Whether a commit survives a power cut (each waits for the disk), or only the death of
        processes, `kill -9` included.

    Attributes
    ----------
    description : dict
        As it was given to `create_database`.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is something else, of a later format, cut short or altered.
    OSError
        It cannot be read and written.
    RuntimeError
        The process that this one was forked from had it open at the fork.
    """

    description: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str], durability: Durability = "power") -> None:
        check_choice(_SYNCHRONOUS, durability=durability)
        self.path = os.path.realpath(path)
        self._seen: bytes | None = None
        # before SQLite opens it, and never with open(): closing any descriptor of the file
        # would drop the locks that this process holds on it
        self._identity = _identity_of(self.path, path)
        if self._identity in _of_parent:
            raise RuntimeError(
                f"{os.fspath(path)} was open when this process was forked, and SQLite's locks do "
                'not survive that: start workers with "spawn", or open it after the fork only'
            )
        # SQLite would open it for reading
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        try:
            self._database = _connect(self.path)
        except sqlite3.Error as error:
            raise _explained(error, path) from None
        self._close = weakref.finalize(self, self._database.close)
        self._close.atexit = False
        _open_ledgers.add(self)
        try:
            self._text = self._check(path)
            self._database.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
            self._database.execute("PRAGMA journal_mode = WAL")
            log_pages = _LOG_BYTES // self._database.execute("PRAGMA page_size").fetchone()[0]
            self._database.execute(f"PRAGMA wal_autocheckpoint = {log_pages}")
            # a read opens the log, and from now on nobody may remove it until this is closed
            self._database.execute("SELECT 1 FROM guard").fetchone()
            self._beside = self._identities_beside()
            self._database.execute(f"PRAGMA busy_timeout = {_ASK_AGAIN_MS}")
        except BaseException as error:
            self._close()
            # SQLite's messages quote what they find, which need not be text
            if isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
                raise _explained(error, path) from None
            raise
        self.description = json.loads(self._text)

    def _check(self, path: str | os.PathLike[str]) -> str:
        """The description, once the whole file has been found sound."""

        def pragma(name: str) -> Any:
            return self._database.execute(f"PRAGMA {name}").fetchone()[0]

        name = os.fspath(path)
        if pragma("application_id") != _APPLICATION_ID:
            raise ValueError(f"{name} is not a guard's database")
        version = pragma("user_version")
        if version > _VERSION:
            raise ValueError(f"{name} has format version {version}, this program reads {_VERSION}")
        if pragma("integrity_check") != "ok":
            raise ValueError(f"{name} is damaged: SQLite's integrity check fails")
        rows = self._database.execute("SELECT description, state FROM guard").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], str) or not isinstance(rows[0][1], bytes):
            raise ValueError(f"{name} is damaged: it must hold one state, and holds {len(rows)}")
        text: str = rows[0][0]
        _numbers(text, rows[0][1], name)
        return text

    def read(self) -> Progress | None:
        """The state, or None if it is what was read or committed here last."""
        (blob,) = self._wait_for("SELECT state FROM guard").fetchone()
        if blob == self._seen:
            return None
        progress = _numbers(self._text, blob, self.path)
        self._seen = blob
        return progress

    def begin(self) -> Progress | None:
        """Shut everybody else out until `commit` or `rollback`; returns as `read`.

        Raises
        ------
        TimeoutError
            Somebody else has not finished within a minute.
        FileNotFoundError, RuntimeError
            The file or its log was deleted or replaced, so that nobody would find what is
            committed here.
        """
        if self._database.in_transaction:  # a rollback was interrupted
            self.rollback()
        if _identity_of(self.path) != self._identity or self._identities_beside() != self._beside:
            raise RuntimeError(f"{self.path} or its log is another file than when it was opened")
        self._wait_for("BEGIN IMMEDIATE")
        return self.read()

    def _wait_for(self, statement: str) -> sqlite3.Cursor:
        """Execute what others may hold up for a while; Ctrl-C ends the wait."""
        give_up = math.inf
        while True:
            try:
                return self._database.execute(statement)
            except sqlite3.Error as error:
                explained = _explained(error, self.path)
            if not isinstance(explained, TimeoutError) or time.monotonic() > give_up:
                raise explained
            give_up = min(give_up, time.monotonic() + _BUSY_SECONDS)

    def _identities_beside(self) -> list[tuple[int, int]]:
        return [_identity_of(f"{self.path}{suffix}") for suffix in ("-wal", "-shm")]

    def commit(self, progress: Progress) -> None:
        """Replace the state; when this returns it is as durable as was asked for."""
        blob = _blob(self._text, progress)
        try:
            self._database.execute("UPDATE guard SET state = ?", (blob,))
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            raise _explained(error, self.path) from None
        self._seen = blob

    def rollback(self) -> None:
        """Leave the file as it was before `begin`, and read it again next time."""
        self._seen = None
        with contextlib.suppress(sqlite3.Error):
            self._database.rollback()

    def close(self) -> None:
        """Let go of the file; closing twice does nothing."""
        self._close()


# ---- the file and the connection -------------------------------------------------------------


def _connect(path: str) -> sqlite3.Connection:
    """A connection to a file that exists, which commits when it is told to."""
    return sqlite3.connect(
        f"{pathlib.Path(path).as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _identity_of(path: str, name: str | os.PathLike[str] | None = None) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        shown = os.fspath(path if name is None else name)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown) from None
    return found.st_dev, found.st_ino


def _explained(error: Exception, path: str | os.PathLike[str]) -> Exception:
    """SQLite's error as one of Python's own, with the name of the file."""
    name = os.fspath(path)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extension
    if code == sqlite3.SQLITE_BUSY:
        return TimeoutError(f"{name} was busy for {_BUSY_SECONDS} seconds; nothing was counted")
    if code in _BROKEN or not isinstance(error, sqlite3.OperationalError):
        return ValueError(f"{name} is damaged or not a guard's database: {error}")
    return OSError(_ERRNO_OF.get(code, errno.EIO), str(error), name)


_open_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()
_of_parent: set[tuple[int, int]] = set()


def _leave_to_parent() -> None:
    # SQLite forbids a child to use or even close a connection that it inherits: closing it would
    # delete the log of whoever opened the file after the parent.  Nor may the child open the file
    # anew: SQLite believes that the process still holds the parent's locks.
    for ledger in list(_open_ledgers):
        if ledger._close.detach() is not None:
            _of_parent.add(ledger._identity)
            # one reference too many, or the end of the interpreter would close it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(ledger._database))


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_to_parent)


# ---- the row ---------------------------------------------------------------------------------


def _checksum(text: str, numbers: bytes) -> bytes:
    digest = hashlib.blake2b(text.encode(), digest_size=_CHECKSUM_BYTES)
    digest.update(numbers)
    return digest.digest()


def _blob(text: str, progress: Progress) -> bytes:
    """The state as int64, little-endian, the last of them a checksum of all and the text."""
    numbers = progress.astype("<i8").tobytes()
    return numbers + _checksum(text, numbers)


def _numbers(text: str, blob: bytes, name: str) -> Progress:
    numbers, checksum = blob[:-_CHECKSUM_BYTES], blob[-_CHECKSUM_BYTES:]
    if len(blob) % 8 or _checksum(text, numbers) != checksum:
        raise ValueError(f"{name} is damaged: the state's checksum does not match")
    return np.frombuffer(numbers, "<i8").astype(np.int64)
