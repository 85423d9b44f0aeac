"""Where an open database is: its file, SQLite's log beside it, and the index of that log.

A commit is in the log first.  Who opens the file must find the same log beside it, or answers are
lost.
"""

from __future__ import annotations

import errno
import os
import sys
import time
import weakref
from typing import Any

from radabound_fast._kernels.support import are_files
from radabound_fast.store.folder import (
    Path,
    check_mounted_with_folder,
    check_one_name,
    identity_of,
    naming,
    real_path,
)

if sys.platform != "win32":
    import fcntl

# the log, its index, and the log of a mode in which no database of ours is
LOG, INDEX, JOURNAL = "-wal", "-shm", "-journal"

# how long whoever closes a database may take from its first file to its last
CLOSING_SECONDS = 2.0
# the bytes on which SQLite holds a lock while a database is open
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510


class Place:
    """The files of a database that this process opens, from before that until it is closed.

    `path` is absolute and has no symbolic links; `identity` is device and inode of the file,
    whatever its name.

    Errors are OSError if the file cannot be read and written, and ValueError if it is no regular
    file or has the log of another mode beside it.  RuntimeError: it was open in the parent when
    this process was forked, or whoever opened it next would not see what is committed here, since
    it has several names, is mounted without its folder, or is open while a file beside it is gone.
    """

    def __init__(self, path: Path) -> None:
        self.path, name = real_path(path), os.fsdecode(path)
        self._files: list[tuple[bytes, int, int, int]] = []  # as `are_files` takes them
        self._owner: weakref.ref[object] | None = None
        # before SQLite opens it, and never with open(): closing any descriptor of the file
        # would drop the locks that this process holds on it
        with naming(name):
            status = os.stat(self.path)
        check_one_name(status, name)
        check_mounted_with_folder(self.path, name)
        self.identity = identity_of(status)
        if self.identity in _open_at_fork:
            raise RuntimeError(
                f"{name} was open when this process was forked, and SQLite's locks do "
                'not survive that: start workers with "spawn", or open it after the fork only'
            )
        # SQLite would open it for reading
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        self._check_others(name)
        self._check_beside(name)

    def _check_others(self, name: str) -> None:
        """Raise if SQLite would make a second log for a file that is open in this process."""
        for other in self.others():
            try:
                if other.path == self.path:
                    other.check()
                elif not os.path.exists(log := self.path + LOG) or (
                    not os.path.samefile(log, other.path + LOG)
                ):
                    raise RuntimeError(
                        f"{name} is open in this process as {other.path}, and the log of that is "
                        "not beside it: close that first"
                    )
            except (RuntimeError, FileNotFoundError):
                if other.is_open:  # else it was closed just now
                    raise

    def _check_beside(self, name: str) -> None:
        """Raise if the log or its index is gone while somebody needs it, or is of another mode."""
        give_up = time.monotonic() + CLOSING_SECONDS
        # SQLite makes the log before the index, and deletes the index before the log
        while missing := [end for end in (LOG, INDEX) if not os.path.lexists(self.path + end)]:
            if not self.others() and not _is_open_elsewhere(self.path):
                break
            if time.monotonic() > give_up:
                raise RuntimeError(
                    f"{name}{missing[0]} is gone, and another process has the database open, with "
                    "answers that may be nowhere else: close it there first"
                )
            time.sleep(0.001)
        if missing == [LOG]:
            raise RuntimeError(
                f"{name}{LOG} is gone, and {name}{INDEX} shows that it was not put away: its "
                f"answers may be nowhere else; put it back, or delete {name}{INDEX} to do "
                "without them"
            )
        if os.path.lexists(self.path + JOURNAL):
            raise ValueError(
                f"{name}{JOURNAL} would be taken for a log of {name}, which has none of this kind"
            )

    def others(self) -> list[Place]:
        """Return the places of this process that are open on the same file, whatever its name."""
        places = [reference() for reference in _places.valuerefs()]
        return [
            other
            for other in places
            if other is not None and other.is_open and other.identity == self.identity
        ]

    def open(self, owner: object, closer: weakref.finalize[..., Any]) -> None:
        """Count as open from now on, until the owner is freed or `closer` is called."""
        self._owner, self._closer = weakref.ref(owner), closer
        _places[id(self)] = self

    @property
    def is_open(self) -> bool:
        """Whether it counts as open."""
        return self._owner is not None and self._owner() is not None and self._closer.alive

    def remember(self) -> None:
        """Note which files `check` has to find again, once SQLite has opened the log."""
        for file in (self.path, self.path + LOG, self.path + INDEX):
            status = os.stat(file)
            check_one_name(status, file)
            self._files.append(_marks(file, status))

    def check(self) -> None:
        """Raise RuntimeError if whoever opens it next would not see what is committed here."""
        if self._files and are_files(self._files):
            return
        for then in self._files:
            file = os.fsdecode(then[0])
            try:
                status = os.stat(file)
            except FileNotFoundError:
                raise RuntimeError(
                    f"{file} is gone, which an open guard needs: close this guard, which puts what "
                    f"it counted into {self.path} if that is there still, and open it again"
                ) from None
            now = _marks(file, status)
            if now != then:
                if now[:3] == then[:3]:
                    check_one_name(status, file)
                raise RuntimeError(f"{file} is another file than when {self.path} was opened")

    @property
    def was_moved(self) -> bool:
        """Whether the file is no longer where it was opened."""
        return not os.path.exists(self.path) or identity_of(os.stat(self.path)) != self.identity

    def leave_to_parent(self) -> None:
        """In a forked child: nobody opens this file here any more."""
        _open_at_fork.add(self.identity)


def _marks(file: str, status: os.stat_result) -> tuple[bytes, int, int, int]:
    """Return the name, and st_ino, st_dev and st_nlink modulo 2**64."""
    inode, device, n_links = (number % 2**64 for number in status[1:4])
    return os.fsencode(file), inode, device, n_links


_places: weakref.WeakValueDictionary[int, Place] = weakref.WeakValueDictionary()
_open_at_fork: set[tuple[int, int]] = set()


def _is_open_elsewhere(path: str) -> bool:
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
