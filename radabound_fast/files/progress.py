"""How far long work has come, on stderr: a bar in a terminal, and elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

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
    lock, show = threading.Lock(), _lines(total, what)
    with contextlib.ExitStack() as stack:
        if sys.stderr.isatty():
            with contextlib.suppress(ImportError):  # tqdm, which only extras install
                from tqdm import tqdm

                show = stack.enter_context(tqdm(total=total, unit=f" {what}", leave=False)).update

        def advance(n: int) -> None:
            with lock:
                show(n)

        yield advance


def _lines(total: int | None, what: str) -> Advance:
    """A line every few seconds: what is done soon says nothing."""
    of = "" if total is None else f" of {total:,}"
    done, began = 0, time.monotonic()
    due = began + SECONDS

    def advance(n: int) -> None:
        nonlocal done, due
        done += n
        now = time.monotonic()
        if now >= due:
            due = now + SECONDS
            print(f"{done:,}{of} {what}, {now - began:.0f} s", file=sys.stderr, flush=True)

    return advance
