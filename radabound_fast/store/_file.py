"""A guard's state in one file: self-checking, replaced atomically, one owner at a time.

The file
--------
========================  ====================================================
8 bytes                   magic ``89 52 41 44 41 0d 0a 1a`` (``\\x89RADA\\r\\n\\x1a``)
uint32, little-endian     format version, 1
uint32                    length of the header in bytes
uint64                    length of the whole file in bytes
header                    JSON: ``{"arrays": {"progress": [n]}, "state": description}``
n int64, little-endian    the progress
32 bytes                  SHA-256 of everything before
========================  ====================================================

The checksum finds accidents, not forgers: whoever can write the file can write a new one.
The file holds the seed of the signs, so it is readable by its owner alone (mode 600).

The lock
--------
POSIX: `flock` on the file itself, so that neither another name of the file nor a deleted lock lets
a second owner in.  A save replaces the file by one that is locked before it is there.  Windows:
`msvcrt` on ``<path>.lock`` beside it, which cannot be deleted while it is held; a file that is
open could not be replaced there.  The operating system drops the lock when its holder dies, however
it dies.  Over a network it is as good as the server.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import struct
import sys
import tempfile
import weakref
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from radabound_fast.store._description import (
    MOST_BYTES,
    Description,
    Progress,
    check_description,
    parsed,
    text_of,
)
from radabound_fast.store._folder import (
    Path,
    check_mounted_with_folder,
    check_one_name,
    identity_of,
    in_turn,
    naming,
    part_prefix,
    put_new,
    real_path,
    sync_folder,
    undisturbed,
)

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_MAGIC = b"\x89RADA\r\n\x1a"
_VERSION = 1
_HEAD = struct.Struct("<8sIIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_PIECE_BYTES = 2**20  # read between two looks at Ctrl-C


class StateFile:
    """A saved state, and the right to go on from it: nobody else's while this lives.

    One that nobody refers to any more is released; a child made by ``os.fork`` does not inherit it.

    Parameters
    ----------
    path : path
        Of a file that `save_state` wrote.

    Attributes
    ----------
    path : str
        The same, absolute and with symbolic links resolved.
    description : dict
        As it was given to `save_state`.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    BlockingIOError
        A live guard owns it, here or in another process.
    RuntimeError
        The file has several names (hard links), or is mounted without its folder.
    ValueError
        It is not a saved guard, of a later version, cut short or altered.
    """

    description: Description

    def __init__(self, path: Path) -> None:
        self.path, name = real_path(path), os.fsdecode(path)
        with naming(name):
            check_one_name(os.stat(self.path), name)
            check_mounted_with_folder(self.path, name)
        self._close: weakref.finalize[..., StateFile] | None = None
        try:
            with naming(name), undisturbed():
                self._own(_owned(self.path))
                _held.add(self)
            with self._reading() as file:
                self.description, self._n_numbers = _check(file)
                self._start = file.tell()
        except _BUSY:
            raise BlockingIOError(
                f"{name} is in use: a live guard, in this process or another, owns it"
            ) from None
        except BaseException as error:
            self.release()
            if isinstance(error, ValueError):
                raise ValueError(f"{name} cannot be loaded: {error}") from None
            raise

    def stored(self, most: int) -> Progress:
        """The numbers of the state; ValueError if there are more than `most`."""
        if self._n_numbers > most:
            raise ValueError(
                f"{self.path} cannot be loaded: it has {self._n_numbers} numbers, and needs at "
                f"most {most}"
            )
        with self._reading() as file:
            file.seek(self._start)
            return _numbers(file, self._n_numbers)

    def replace(
        self,
        description: Description,
        progress: Progress,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Write another state in the place of this one; what is written is owned as this was.

        `then` is called when it is written, before Ctrl-C is heard again.

        Raises
        ------
        RuntimeError
            The file was moved away or replaced, or has another name, so that its old state would
            stay.
        OSError
            It cannot be written; the path holds the old state or the new, whole.
        """
        blob = to_bytes(description, progress)
        self._check_place()
        with naming(self.path), undisturbed():
            before, owner = self._close, _written(blob, self.path, os.replace)
            if owner is not None and before is not None:
                self._own(owner)
                before()
            sync_folder(os.path.dirname(self.path))
            then()

    def _check_place(self) -> None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise RuntimeError(
                f"{self.path} was moved away, and its old state with it: put it back"
            ) from None
        check_one_name(found, self.path)
        if sys.platform != "win32" and identity_of(found) != identity_of(os.fstat(self._owner)):
            raise RuntimeError(
                f"{self.path} is another file than the one that this guard was loaded from"
            )

    @property
    def gone(self) -> bool:
        """Whether the file was deleted: nobody can load it again."""
        if sys.platform == "win32":
            return not os.path.exists(self.path)
        return os.fstat(self._owner).st_nlink == 0

    @property
    def held(self) -> bool:
        """Whether this object still keeps others out."""
        return self._close is not None and self._close.alive

    def release(self) -> None:
        """Let the next owner in; releasing twice does nothing."""
        if self._close is not None:
            self._close()

    def _own(self, owner: int) -> None:
        self._owner, self._close = owner, weakref.finalize(self, os.close, owner)

    def _reading(self) -> BinaryIO:
        if sys.platform == "win32":
            return open(self.path, "rb")
        os.lseek(self._owner, 0, os.SEEK_SET)
        return open(self._owner, "rb", closefd=False)  # so that what is read is what is owned


def save_state(
    path: Path,
    description: Description,
    progress: Progress,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Write a state to a new file, whole or not at all, and on the disk when this returns.

    Parameters
    ----------
    path : path
        Where nothing is yet.
    description : dict
        Keys "kind" and "parameters", JSON values.
    progress : ndarray of int64, shape (n,)
    then : function, optional
        Called when it is written, before Ctrl-C is heard again.

    Raises
    ------
    ValueError
        Something is there: another guard's count would be lost.
    OSError
        The file cannot be written, and is not there then.
    """
    blob, target, name = to_bytes(description, progress), real_path(path), os.fsdecode(path)
    folder = os.path.dirname(target)

    def write() -> None:
        with naming(name), undisturbed():
            owner = _written(blob, target, put_new)
            try:
                sync_folder(folder)
            except BaseException:  # the guard lives on, so no copy may
                os.unlink(target)
                raise
            finally:
                if owner is not None:
                    os.close(owner)
            then()

    try:
        in_turn(folder, write)
    except FileExistsError:
        raise ValueError(
            f"{name} exists and this guard was not loaded from it: load it, or save to a new path"
        ) from None


# ---- the format ------------------------------------------------------------------------------


def to_bytes(description: Description, progress: Progress) -> bytes:
    """A state in the format of this module."""
    described = {"arrays": {"progress": list(progress.shape)}, "state": description}
    header, body = text_of(described).encode(), progress.astype("<i8").tobytes()
    total = _HEAD.size + len(header) + len(body) + _DIGEST_BYTES
    content = _HEAD.pack(_MAGIC, _VERSION, len(header), total) + header + body
    return content + hashlib.sha256(content).digest()


def from_bytes(blob: bytes) -> tuple[Description, Progress]:
    """The state that `to_bytes` wrote.

    Raises
    ------
    ValueError
        If `blob` is something else, of a later version, cut short or altered.
    """
    file = io.BytesIO(blob)
    description, n_numbers = _check(file)
    return description, _numbers(file, n_numbers)


def _check(file: BinaryIO) -> tuple[Description, int]:
    """The description, and how many numbers come next: the rest is read, and not kept."""
    head, n_bytes = file.read(_HEAD.size), file.seek(0, os.SEEK_END)
    if not head.startswith(_MAGIC):
        raise ValueError("not a saved guard: the first 8 bytes are not the magic")
    if len(head) < _HEAD.size:
        raise ValueError(f"truncated: {n_bytes} bytes, the head alone has {_HEAD.size}")
    _, version, header_bytes, total = _HEAD.unpack(head)
    if version != _VERSION:
        raise ValueError(f"format version {version}, this program reads {_VERSION}")
    if n_bytes != total or total < _HEAD.size + header_bytes + _DIGEST_BYTES:
        raise ValueError(f"truncated or altered: {n_bytes} bytes, should have {total}")
    file.seek(0)
    digest, left = hashlib.sha256(), total - _DIGEST_BYTES
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        digest.update(piece)
        left -= len(piece)
    if file.read() != digest.digest():
        raise ValueError("altered: the SHA-256 checksum does not match")
    # from here on only a forger can have been at work
    file.seek(_HEAD.size)
    described = parsed(file.read(min(header_bytes, MOST_BYTES + 1)).decode("ascii"))
    n_numbers, rest = divmod(total - _HEAD.size - header_bytes - _DIGEST_BYTES, 8)
    expected = {"arrays": {"progress": [n_numbers]}, "state": None}
    if (
        rest
        or not isinstance(described, dict)
        or text_of(described | {"state": None}) != text_of(expected)
    ):
        raise ValueError("altered: its header is not of what follows")
    return check_description(described["state"], "kind", "parameters"), n_numbers


def _numbers(file: BinaryIO, n_numbers: int) -> Progress:
    return np.frombuffer(file.read(8 * n_numbers), "<i8").astype(np.int64)


# ---- the disk --------------------------------------------------------------------------------


def _written(blob: bytes, target: str, put: Callable[[str, str], None]) -> int | None:
    """Have `put` bring a part file with these bytes to `target`; returns what owns it already.

    That is a descriptor, or None where no open file can be renamed.
    """
    folder, owner = os.path.dirname(target), None
    descriptor, part = tempfile.mkstemp(prefix=part_prefix(target), suffix=".tmp", dir=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        if sys.platform != "win32":
            owner = _owned(part)
        put(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        if owner is not None:
            os.close(owner)
        raise
    return owner


_held: weakref.WeakSet[StateFile] = weakref.WeakSet()


def _close_inherited() -> None:
    # flock belongs to the open file, which parent and child share: without this, a worker
    # that outlives the owner would keep the file locked
    for inherited in list(_held):
        inherited.release()


def _owned(path: str) -> int:
    """A descriptor that keeps others from the state at `path`; _BUSY if one keeps us from it."""
    name = f"{path}.lock" if sys.platform == "win32" else path
    descriptor = os.open(name, os.O_RDWR | (os.O_CREAT if sys.platform == "win32" else 0), 0o600)
    try:
        _lock_descriptor(descriptor)
        if identity_of(os.fstat(descriptor)) != identity_of(os.stat(name)):
            raise _BUSY  # by whoever has just replaced it
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


if sys.platform == "win32":
    _BUSY = PermissionError

    def _lock_descriptor(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    _BUSY = BlockingIOError
    os.register_at_fork(after_in_child=_close_inherited)

    def _lock_descriptor(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
