"""A guard's state in one file: self-checking, replaced atomically, one owner at a time.

The file
--------
========================  ====================================================
8 bytes                   magic ``89 52 41 44 41 0d 0a 1a`` (``\\x89RADA\\r\\n\\x1a``)
uint32, little-endian     format version, 1
uint32                    length of the header in bytes
uint64                    length of the whole file in bytes
header                    JSON: ``{"arrays": {name: shape}, "state": {...}}``
arrays                    int64, little-endian, C order, sorted by name
32 bytes                  SHA-256 of everything before
========================  ====================================================

The checksum finds accidents, not forgers: whoever can write the file can write a new one.
The file holds the seed of the signs, so it is readable by its owner alone (mode 600).

The lock
--------
The lock is on ``<path>.lock``, a file beside the state: the state itself is replaced at each
save, and a lock on a file that has been replaced excludes nobody.  It stays there when it is
not held, because removing it would let two owners each lock their own copy.  The operating
system drops the lock when its holder dies, however it dies.  `flock` (POSIX) and `msvcrt`
(Windows) lock between processes and within one; over network file systems they are as good
as the server.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import struct
import sys
import tempfile
import weakref
from typing import Any, Self

import numpy as np

from radabound_fast.store._folder import sync_folder

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_MAGIC = b"\x89RADA\r\n\x1a"
_VERSION = 1
_HEAD = struct.Struct("<8sIIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size

State = dict[str, Any]


class Lock:
    """An exclusive lock on a path, held from construction until `release`.

    A lock that nobody refers to any more is released; a child made by ``os.fork`` does not
    inherit it.

    Parameters
    ----------
    path : path
        Of the state file, which need not exist; its folder must.

    Attributes
    ----------
    path : str
        The same, absolute and with symbolic links resolved.

    Raises
    ------
    BlockingIOError
        If another lock on the same file is held, here or in another process.
    OSError
        If the folder does not exist or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)
        descriptor = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock_descriptor(descriptor)
        except _BUSY:
            os.close(descriptor)
            raise BlockingIOError(
                f"{os.fspath(path)} is in use: a live guard, in this process or another, owns it"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        self._close = weakref.finalize(self, os.close, descriptor)
        _held.add(self)

    @property
    def held(self) -> bool:
        """Whether this object still keeps others out."""
        return self._close.alive

    def release(self) -> None:
        """Let the next owner in; releasing twice does nothing."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


_held: weakref.WeakSet[Lock] = weakref.WeakSet()


def _close_inherited() -> None:
    # flock belongs to the open file, which parent and child share: without this, a worker
    # that outlives the owner would keep the file locked
    for inherited in list(_held):
        inherited.release()


if sys.platform == "win32":
    _BUSY = PermissionError

    def _lock_descriptor(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    _BUSY = BlockingIOError
    os.register_at_fork(after_in_child=_close_inherited)

    def _lock_descriptor(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def to_bytes(state: State) -> bytes:
    """`state` in the format of this module.

    Parameters
    ----------
    state : dict
        Keys are strings; values are either int64 arrays or what JSON can hold.

    Raises
    ------
    TypeError
        If an array is not int64 or another value is not what JSON can hold.
    """
    arrays = {name: value for name, value in sorted(state.items()) if isinstance(value, np.ndarray)}
    for name, array in arrays.items():
        if array.dtype != np.int64:
            raise TypeError(f"state[{name!r}] must be int64, got {array.dtype}")
    described = {
        "arrays": {name: array.shape for name, array in arrays.items()},
        "state": {name: value for name, value in state.items() if name not in arrays},
    }
    header = json.dumps(described, allow_nan=False, sort_keys=True).encode()
    body = b"".join(array.astype("<i8").tobytes() for array in arrays.values())
    total = _HEAD.size + len(header) + len(body) + _DIGEST_BYTES
    content = _HEAD.pack(_MAGIC, _VERSION, len(header), total) + header + body
    return content + hashlib.sha256(content).digest()


def from_bytes(blob: bytes) -> State:
    """The state that `to_bytes` wrote.

    Raises
    ------
    ValueError
        If `blob` is something else, of a later version, cut short or altered.
    """
    if not blob.startswith(_MAGIC):
        raise ValueError("not a saved guard: the first 8 bytes are not the magic")
    if len(blob) < _HEAD.size:
        raise ValueError(f"truncated: {len(blob)} bytes, the head alone has {_HEAD.size}")
    _, version, header_bytes, total = _HEAD.unpack_from(blob)
    if version != _VERSION:
        raise ValueError(f"format version {version}, this program reads {_VERSION}")
    if len(blob) != total:
        raise ValueError(f"truncated or altered: {len(blob)} bytes, should have {total}")
    content, digest = blob[:-_DIGEST_BYTES], blob[-_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("altered: the SHA-256 checksum does not match")
    start = _HEAD.size + header_bytes
    try:
        described = json.loads(content[_HEAD.size : start])
        state: State = described["state"]
        for name, shape in described["arrays"].items():
            count = math.prod(shape)
            values = np.frombuffer(content, "<i8", count, start).astype(np.int64)
            state[name] = values.reshape(shape)
            start += 8 * count
    except (LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("altered: the checksum matches, the contents are not ours") from error
    return state


def save_state(path: str | os.PathLike[str], state: State, *, lock: Lock | None = None) -> None:
    """Write `state` to `path`, whole or not at all, and on the disk when this returns.

    Parameters
    ----------
    path : path
        A file that does not exist yet, or the one that `lock` is held on.
    state : dict
        JSON values and int64 arrays.
    lock : Lock, optional
        What `load_state` returned for this path; it stays held.

    Raises
    ------
    ValueError
        If `path` exists and `lock` is not held on it: another guard's count would be lost.
    BlockingIOError
        If a live guard owns `path`.
    OSError
        If the file cannot be written; the path then holds the old state or the new, whole.
    """
    blob = to_bytes(state)
    target = os.path.realpath(path)
    if lock is not None and lock.held and lock.path == target:
        _replace(target, blob)
        return
    if lock is not None and lock.held and not os.path.exists(target):
        raise ValueError(
            f"path must be {lock.path}, from which this guard was loaded and where its old state "
            f"would stay, got {os.fspath(path)}"
        )
    with Lock(path):
        if os.path.exists(target):
            raise ValueError(
                f"{os.fspath(path)} exists and this guard was not loaded from it: "
                "load it, or save to a new path"
            )
        try:
            _replace(target, blob)
        except BaseException:  # after the rename too: the guard lives on, so no copy may
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
            raise


def load_state(path: str | os.PathLike[str]) -> tuple[State, Lock]:
    """Read the state at `path` and become its owner.

    Returns
    -------
    state : dict
        What was saved, arrays as new int64 arrays.
    lock : Lock
        Held; keep it for as long as the state is used and pass it to `save_state`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    BlockingIOError
        If a live guard owns it.
    ValueError
        If it is not a saved guard, of a later version, cut short or altered.
    """
    if not os.path.exists(path):  # before a lock file is left beside nothing
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    owned = Lock(path)
    try:
        with open(owned.path, "rb") as file:
            return from_bytes(file.read()), owned
    except ValueError as error:
        owned.release()
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from None
    except BaseException:
        owned.release()
        raise


def _replace(target: str, blob: bytes) -> None:
    """The bytes of `target` become `blob` in one step that survives a power cut."""
    folder, name = os.path.split(target)
    descriptor, temporary = tempfile.mkstemp(prefix=f"{name}.", suffix=".tmp", dir=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)
