"""Paths, folders, patterns, and URLs that fsspec opens; and what a suffix says of a file."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

from radabound_fast._extras import needs

_GZIP = b"\x1f\x8b"
ARRAYS = (".npy", ".npz", ".zarr")
TABLES = (".parquet", ".arrow", ".feather", ".ipc")
CSV = (".csv", ".csv.gz")
SUFFIXES = (*ARRAYS, *TABLES, *CSV)


def split_key(name: str) -> tuple[str, str | None]:
    """``FILE.npz:key`` in its two parts; the key is None where there is none."""
    at = name.lower().rfind(".npz:")
    return (name, None) if at < 0 else (name[: at + 4], name[at + 5 :])


def suffix_of(name: str) -> str:
    """The suffix that says what a file is; ValueError if it is none of ours."""
    lower = split_key(name)[0].lower().rstrip("/")
    if ".zarr/" in lower:
        return ".zarr"
    for suffix in SUFFIXES:
        if lower.endswith(suffix):
            return suffix
    raise ValueError(f"{name} must end in {', '.join(SUFFIXES)} or .npz:key")


def stem_of(name: str) -> str:
    """The name of a file without folder and suffix, or of an array in a group."""
    base, suffix = os.path.basename(split_key(name)[0].rstrip("/")), suffix_of(name)
    return base[: -len(suffix)] if base.lower().endswith(suffix) else base


def is_url(name: str) -> bool:
    """Whether fsspec has to open it."""
    return re.match(r"[a-z][a-z0-9+.-]+(?:::|://)", name, re.I) is not None


@contextlib.contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A file to read bytes from, at any place in it.

    ValueError: a URL that cannot be read; or the file is compressed with gzip, and is no .gz.
    OSError is of the system, for a path.  ModuleNotFoundError: fsspec, or what it needs for such a
    URL, is missing.
    """
    with contextlib.ExitStack() as stack:
        if is_url(name):
            file = stack.enter_context(_remote(name))
        else:
            file = stack.enter_context(open(name, "rb"))
        is_gzip = file.read(2) == _GZIP
        file.seek(0)
        if is_gzip and not name.lower().endswith(".gz"):
            raise ValueError(f"{name} is compressed with gzip: unpack it (gunzip)")
        yield cast(IO[bytes], stack.enter_context(gzip.open(file))) if is_gzip else file


@contextlib.contextmanager
def _remote(name: str) -> Iterator[Any]:
    with needs("files"):
        import fsspec
    with contextlib.ExitStack() as stack:
        with _explained(name):
            file = stack.enter_context(fsspec.open(name, "rb").open())
            if name.lower().startswith("http"):
                try:
                    file.seek(-1, os.SEEK_END)
                    file.read(1)
                    file.seek(0)
                except ValueError:  # a server that sends no part of a file: all of it, then
                    file = stack.enter_context(fsspec.open(f"simplecache::{name}", "rb").open())
        yield file


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say of which URL it is that a library of fsspec complains, in whatever class of its own."""
    try:
        yield
    except ImportError:
        raise  # which says what to install
    except Exception as error:
        reason = " ".join(str(error).split())[:150] or type(error).__name__
        raise ValueError(f"{name} cannot be read: {reason}") from error


def expanded(names: Iterable[str]) -> list[str]:
    """The files that paths, folders, patterns and URLs of either stand for, in order.

    The files of a folder or a pattern come in the order of their names, numbers in them by value:
    ``part-2`` before ``part-10``.  Files that do not end in one of `SUFFIXES` are left out, and
    names that begin with ``_`` or ``.``, as Spark's ``_SUCCESS``.  A folder or a pattern without
    such a file is a ValueError.
    """
    return [file for name in names for file in _files_of(name)]


def _files_of(name: str) -> list[str]:
    if name.lower().rstrip("/").endswith(".zarr"):
        return [name]
    if is_url(name):
        matches = _files_of_url(name)
    elif os.path.isdir(name):
        matches = glob.glob(os.path.join(glob.escape(name), "**"), recursive=True)
        matches = [file for file in matches if os.path.isfile(file)]
    elif glob.has_magic(name) and not os.path.exists(name):
        matches = glob.glob(name, recursive=True)
    else:
        return [name]
    if matches == [name]:
        return matches
    start = len(os.path.commonpath([os.path.dirname(file) for file in matches])) if matches else 0
    files = [
        file
        for file in matches
        if file.lower().endswith(SUFFIXES)
        and not any(part.startswith(("_", ".")) for part in file[start:].split("/"))
    ]
    if not files:
        raise ValueError(f"{name} must hold files that end in {', '.join(SUFFIXES)}, got none")
    # digits by their value: part-2 before part-10
    return sorted(files, key=lambda file: [
        (0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", file)
    ])  # fmt: skip


def _files_of_url(name: str) -> list[str]:
    with needs("files"):
        from fsspec.core import url_to_fs
    with _explained(name):
        system, path = url_to_fs(name)
        if glob.has_magic(path):
            matches = system.glob(path)
        elif not name.startswith("http") and system.isdir(path):
            matches = system.find(path)
        else:
            return [name]
    return [system.unstrip_protocol(each) for each in matches]
