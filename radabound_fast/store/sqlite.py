"""SQLite as both kinds of databases use it: connections, errors, and new files."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import sqlite3
import tempfile
from collections.abc import Callable
from typing import Any

from radabound_fast.store.folder import (
    BUSY_SECONDS,
    naming,
    sync_folder,
    why_not_written,
)
from radabound_fast.store.schema import Damaged

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
_ERRNO_OF = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
}
_BROKEN = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
)


def connect(path: str, wait_ms: int) -> sqlite3.Connection:
    """Connect to a file that exists, to wait so long for locks; only COMMIT commits."""
    connection = sqlite3.connect(
        f"{pathlib.Path(path).as_uri()}?mode=rw",
        uri=True,
        timeout=wait_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA cell_size_check = ON")  # of a damaged page, when it is read
    return connection


def explained(error: Exception, path: str, name: str | None = None) -> Exception:
    """Return SQLite's error as one of Python's own, with the name of the file."""
    name = name or path
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extension
    damaged = f"{name} is damaged or not a database of a guard or a search"
    if code in _BUSY:
        return TimeoutError(f"{name} was busy for {BUSY_SECONDS:g} seconds; nothing was counted")
    if code == 0 and isinstance(error, (sqlite3.OperationalError, UnicodeDecodeError)):
        # without the text, which Python's error quotes: it may have the seed in it
        return Damaged(f"{damaged}: it holds text that is not UTF-8")
    if code in _BROKEN or not isinstance(error, sqlite3.OperationalError):
        return Damaged(f"{damaged}: {' '.join(str(error).split())}")
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY and _can_write(path):
        # without an extension: its header says that it is of a form that SQLite only reads
        return Damaged(f"{damaged}: its header is of a form that cannot be written")
    if code not in _ERRNO_OF:  # SQLite does not tell why it could not write
        reason = why_not_written(os.path.dirname(path))
        if reason is not None and reason.errno is not None:
            return OSError(reason.errno, os.strerror(reason.errno), name)
    known = _ERRNO_OF.get(code)
    return OSError(known or errno.EIO, os.strerror(known) if known else str(error), name)


def _can_write(path: str) -> bool:
    return os.access(path, os.W_OK) and why_not_written(os.path.dirname(path)) is None


def check_integrity(rows_of: Callable[[str], list[Any]], path: str) -> None:
    """Raise ValueError if SQLite's integrity check fails; `rows_of` as in `check_tables`."""
    if rows_of("PRAGMA integrity_check") != [("ok",)]:
        raise Damaged(f"{path} is damaged: SQLite's integrity check fails")


def make_database(
    target: str,
    name: str,
    fill: Callable[[sqlite3.Connection], None],
    check: Callable[[str], None] = lambda part: None,
) -> None:
    """Make a database at `target` by `fill`, whole or not at all; within `in_turn`.

    `check` may open the file and refuse it before it has its name.  FileExistsError if something is
    there, OSError if it cannot be written.
    """
    folder, prefix = os.path.dirname(target), f"{os.path.basename(target)[:60]}."  # not too long
    with (
        naming(name),
        tempfile.TemporaryDirectory(prefix=prefix, suffix=".tmp", dir=folder) as scratch,
    ):
        part = os.path.join(scratch, "part")
        os.close(os.open(part, os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with contextlib.closing(connect(part, 0)) as database:
                fill(database)
        except sqlite3.Error as error:
            raise explained(error, part, name) from None
        check(part)
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        # a link would show it with two names for a while, or for ever after a crash
        os.rename(part, target)
        sync_folder(folder)
