"""Paths and folders: one name a file, new files whole or not at all, whatever breaks in."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import re
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from radabound_fast._kernels.support import broken_into
from radabound_fast.store.schema import Damaged

if sys.platform != "win32":
    import fcntl

# what a path may be, everywhere
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

T = TypeVar("T")

BUSY_SECONDS = 60.0

# what ends a process, and would leave a part file
_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
# what a probe of a full disk writes: as much as SQLite's index of the log takes, and a log's start
_PROBE_BYTES = 2**16


def real_path(path: Path) -> str:
    """Return a path absolute and without symbolic links, the name beside which SQLite's log is."""
    return os.path.realpath(os.fsdecode(path))


def identity_of(status: os.stat_result) -> tuple[int, int]:
    """Return what identifies a file whatever its name: device and inode."""
    return status.st_dev, status.st_ino


def check_one_name(status: os.stat_result, name: str) -> None:
    """Raise unless a file has one name: SQLite would have a log beside each."""
    if not stat.S_ISREG(status.st_mode):
        raise Damaged(f"{name} is not a regular file")
    if status.st_nlink > 1:
        raise RuntimeError(
            f"{name} is one of {status.st_nlink} names of one file (hard links), and who used "
            "another would not see its answers: remove the others, or mount the folder"
        )


def check_mounted_with_folder(path: str, name: str) -> None:
    """Raise if a file itself is mounted, as containers mount one: its log is not."""
    point = re.sub(rb"[\\ \t\n]", lambda match: b"\\%03o" % match[0][0], os.fsencode(path))
    # not by st_dev, which files and folders of one overlay may differ in
    try:
        # in one call: Ctrl-C between an open() here and its `with` would leave it to the collector
        mounts = pathlib.Path("/proc/self/mountinfo").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return
    if any(line.split(b" ")[4] == point for line in mounts):
        raise RuntimeError(
            f"{name} is mounted without its folder, and who used it elsewhere would not see "
            "its answers: mount the folder"
        )


def in_turn(folder: str, work: Callable[[], T]) -> T:
    """Return what `work` does, while nobody else in `in_turn` is at work in the folder.

    A function and no context manager: an interrupt between that and its block would leave the
    folder locked.  Within another turn of this very thread it is a RuntimeError.
    """
    if not os.path.isdir(folder):  # before an error names a file that nobody asked for
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    if sys.platform == "win32":  # where what is open cannot be removed, nor renamed over
        return work()
    descriptor = os.open(folder, os.O_RDONLY)
    mine = *identity_of(os.fstat(descriptor)), os.getpid(), threading.get_ident()
    if mine in _turns:
        os.close(descriptor)
        raise broken_into(f"an open in {folder}")
    try:
        _turns.add(mine)
        give_up = time.monotonic() + BUSY_SECONDS
        while not _locked(descriptor):
            if time.monotonic() > give_up:
                raise TimeoutError(f"{folder} was locked for {BUSY_SECONDS:g} seconds")
            time.sleep(0.001)
        done = work()
    finally:
        try:
            # a child that was forked meanwhile has the descriptor too
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            _turns.discard(mine)
            os.close(descriptor)
    return done


# who has the turn of a folder, or waits for it: its device and inode, the process, the thread
_turns: set[tuple[int, int, int, int]] = set()


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sync_folder(folder: str) -> None:
    """Wait until what was renamed in a folder is on the disk."""
    if sys.platform == "win32":  # which cannot open a folder, and journals its renames
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def undisturbed(*, patient: bool = True) -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is done, so that it leaves nothing half done.

    Unless it is patient, a second one is not held back.  Python handles signals in the main
    thread; in another one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, Any] = {}

    def heard(number: int, _: Any) -> None:
        if came and not patient:
            deliver(number)
        else:
            came.append(number)

    def deliver(number: int) -> None:
        if callable(handlers[number]):
            handlers[number](number, None)
        else:
            signal.signal(number, handlers[number])
            signal.raise_signal(number)

    try:
        for number in _ENDING:
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):
                handlers[number] = handler
                signal.signal(number, heard)
        yield
    finally:
        for number, handler in reversed(handlers.items()):  # SIGINT last: it may raise from here on
            signal.signal(number, handler)
        for number in came:
            deliver(number)


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Let errors of the operating system name the file that the user named, not a part of it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def why_not_written(folder: str) -> OSError | None:
    """Return the operating system's reason why nothing can be written here; None if it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file)
    except OSError as error:
        return error
    return None
