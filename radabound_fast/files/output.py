"""Files that are written beside their place, and appear there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Any


def check_target(path: str | bytes | os.PathLike[Any]) -> None:
    """What could keep a file from being written is told before the work that makes it.

    ValueError: its folder does not exist, or it is a folder or a symbolic link.
    """
    name = os.fsdecode(path)
    folder = os.path.dirname(name) or "."
    if not os.path.isdir(folder):
        raise ValueError(f"{name}: its folder does not exist")
    if os.path.isdir(name):
        raise ValueError(f"{name} is a folder")
    if os.path.islink(name) and _is_file_or_nothing(name):
        raise ValueError(f"{name} is a symbolic link: name the file that it points to")
    if _is_file_or_nothing(name) and not os.access(folder, os.W_OK):
        raise ValueError(f"{name}: its folder cannot be written")


@contextlib.contextmanager
def whole_file(path: str | bytes | os.PathLike[Any]) -> Iterator[str]:
    """The name of a new file to write to; it takes its place at `path` when the block is done.

    Its name cannot be guessed, so that nobody puts a link there before.  Whatever ends the block
    otherwise (an error, Ctrl-C) removes it.  Devices and pipes, /dev/stdout, are written directly.

    Errors are those of `check_target`, and OSError of the system, with `path` as its file; ENOSPC
    if the disk is full.
    """
    name = os.fsdecode(path)
    check_target(name)
    if not _is_file_or_nothing(name):
        yield name
        return
    folder, base = os.path.split(name)
    part = os.path.join(folder, f".{base[:100]}.{secrets.token_hex(8)}.part")
    try:
        # with the permissions of any new file, and never through a link
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with contextlib.suppress(FileNotFoundError):  # or with those of the one that it replaces
            os.chmod(part, stat.S_IMODE(os.stat(name).st_mode))
        yield part
        os.replace(part, name)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.errno and error.filename in (None, part):
            raise OSError(error.errno, os.strerror(error.errno), name) from error
        raise


def write_figure(path: str | bytes | os.PathLike[Any], figure: Any) -> None:
    """A matplotlib figure as PNG."""
    with whole_file(path) as name:
        figure.savefig(name, format="png")


def _is_file_or_nothing(name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name).st_mode)
    except FileNotFoundError:
        return True
