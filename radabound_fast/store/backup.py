"""A copy of a database that others may be using, by SQLite's own backup interface."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3

from radabound_fast.store.description import Damaged
from radabound_fast.store.folder import Path, in_turn, real_path, undisturbed
from radabound_fast.store.opening import check_no_log, open_any
from radabound_fast.store.place import INDEX, JOURNAL, LOG
from radabound_fast.store.sqlite import make_database


def back_up(path: Path, copy: Path) -> str:
    """Copy a database, as it is at one moment, to a new file; return the kind of its guard.

    Whoever else has it open goes on answering.  All of the copy was read and checked before it is
    there under its name.

    Raises
    ------
    FileExistsError
        Something is at `copy`; it stays as it is.
    FileNotFoundError, OSError, RuntimeError
        The database cannot be opened where it is, or the copy cannot be written.
    ValueError
        The database is something else, of another format, or damaged.
    """
    target, name = real_path(copy), os.fsdecode(copy)

    def fill(part: sqlite3.Connection) -> None:
        source.look(lambda database: database.backup(part))

    def check(part: str) -> None:
        try:
            with contextlib.closing(open_any(part)) as made:
                made.check_whole()
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
