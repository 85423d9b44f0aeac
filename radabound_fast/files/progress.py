"""How far long work has come, on stderr: a bar in a terminal, and elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

Advance = Callable[[int], object]

SECONDS = 5.0  # between two lines


@contextlib.contextmanager
def progress(total: int | None, what: str, *, quiet: bool) -> Iterator[Advance]:
    """A function that is told how many more are done, of `total` or of nobody knows how many.

    It may be called from whatever thread.  `what` is counted, in the plural; `quiet` shows nothing.
    """
    if quiet:
        yield lambda n: None
        return
    lock = threading.Lock()
    bar = _bar(total, what) if sys.stderr.isatty() else None
    if bar is None:
        yield _Lines(total, what, lock).advance
        return

    def advance(n: int) -> None:
        with lock:
            bar.update(n)

    with bar:
        yield advance


def _bar(total: int | None, what: str) -> Any:
    """None without tqdm, which only extras install."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=f" {what}", leave=False)


class _Lines:
    """A line every few seconds: what is done soon says nothing."""

    def __init__(self, total: int | None, what: str, lock: threading.Lock) -> None:
        self._of = "" if total is None else f" of {total:,}"
        self._what, self._lock = what, lock
        self._done, self._began = 0, time.monotonic()
        self._next = self._began + SECONDS

    def advance(self, n: int) -> None:
        with self._lock:
            self._done += n
            now = time.monotonic()
            if now >= self._next:
                self._next = now + SECONDS
                line = f"{self._done:,}{self._of} {self._what}, {now - self._began:.0f} s"
                print(line, file=sys.stderr, flush=True)
