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
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from radabound_fast._kernel import Descriptor
from radabound_fast.store.description import (
    MOST_BYTES,
    Description,
    Progress,
    check_description,
    parsed,
    text_of,
)
from radabound_fast.store.folder import (
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
    _owner: Descriptor

    def __init__(self, path: Path) -> None:
        self.path, name = real_path(path), os.fsdecode(path)
        with naming(name):
            check_one_name(os.stat(self.path), name)
            check_mounted_with_folder(self.path, name)
        try:
            with naming(name), undisturbed():
                self._owner = _owned(self.path)
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
            before, owner = self._owner, _written(blob, self.path, os.replace)
            if owner is not None:
                self._owner = owner
                before.close()
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
        owned = os.fstat(self._owner.number)
        if sys.platform != "win32" and identity_of(found) != identity_of(owned):
            raise RuntimeError(
                f"{self.path} is another file than the one that this guard was loaded from"
            )

    @property
    def gone(self) -> bool:
        """Whether the file was deleted: nobody can load it again."""
        if sys.platform == "win32":
            return not os.path.exists(self.path)
        return os.fstat(self._owner.number).st_nlink == 0

    @property
    def held(self) -> bool:
        """Whether this object still keeps others out."""
        return not self._owner.closed

    def release(self) -> None:
        """Let the next owner in; releasing twice does nothing."""
        if hasattr(self, "_owner"):  # another one may have kept this one out
            self._owner.close()

    def _reading(self) -> BinaryIO:
        if sys.platform == "win32":
            return open(self.path, "rb")
        os.lseek(self._owner.number, 0, os.SEEK_SET)
        # so that what is read is what is owned
        return open(self._owner.number, "rb", closefd=False)


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
                    owner.close()
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


def _written(blob: bytes, target: str, put: Callable[[str, str], None]) -> Descriptor | None:
    """Have `put` bring a part file with these bytes to `target`; returns what owns it already.

    That is None where no open file can be renamed.
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
            owner.close()
        raise
    return owner


def _owned(path: str) -> Descriptor:
    """A descriptor that keeps others from the state at `path`; _BUSY if one keeps us from it."""
    name = f"{path}.lock" if sys.platform == "win32" else path
    flags = os.O_RDWR | (os.O_CREAT if sys.platform == "win32" else 0)
    owner = Descriptor(os.open(name, flags, 0o600))
    try:
        _lock(owner.number)
        if identity_of(os.fstat(owner.number)) != identity_of(os.stat(name)):
            raise _BUSY  # by whoever has just replaced it
    except BaseException:
        owner.close()
        raise
    return owner


if sys.platform == "win32":
    _BUSY = PermissionError

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    _BUSY = BlockingIOError

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
