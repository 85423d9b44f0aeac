"""What every trial of a fault is made of: a count that is kept, and processes to do harm to."""

from __future__ import annotations

import hashlib
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HANGS_AFTER = 180.0  # seconds: a machine that is busy is slow, and hangs not


@dataclass
class Count:
    """How often a fault was tried, what did not hold, and what was seen besides."""

    times: int = 0
    lost: list[str] = field(default_factory=list)
    note: str = ""

    def check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.lost.append(otherwise)

    def refused(
        self, call: Callable[[], Any], errors: type[Exception] | tuple[type[Exception], ...], *,
        saying: str = "", what: str,
    ) -> None:  # fmt: skip
        """Check that `call` raises one of `errors` with a message that has `saying` in it."""
        try:
            call()
        except errors as error:
            self.check(saying in str(error), f"{what}: {error!r} does not say {saying!r}")
        except Exception as error:
            self.lost.append(f"{what}: {error!r}")
        else:
            self.lost.append(f"{what}: not refused")


def guess_for(guard: Any, guess: float) -> dict[str, float]:
    """The keyword of `query` for a guard that needs a guess, and none for the others."""
    return {"guess": guess} if guard.needs == "guess" else {}


def guesses_for(guard: Any, guesses: Any) -> dict[str, Any]:
    """The keyword of `query_many` for a guard that needs guesses, and none for the others."""
    return {"guesses": guesses} if guard.needs == "guess" else {}


@dataclass(frozen=True)
class Fault:
    """A row of the table: `run(count, folder, times)` tries it that often, in an empty folder."""

    name: str
    must_hold: str
    run: Callable[[Count, Path, int], None]
    times: int
    quick_times: int


def fork(work: Callable[[], Any]) -> int:
    """The process id of a child that does `work` and ends at once, without Python's clean-up."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def in_child(work: Callable[[], Any], *, crash: bool = False) -> Any:
    """What `work` returns or raises in a child; `crash`: what it keeps open is not closed."""
    outcome = together([work], crash=crash)[0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def together(works: list[Callable[[], Any]], *, crash: bool = False) -> list[Any]:
    """What each of `works` returns, or the error that it raises, in children that start at once.

    A child that hangs is killed; its outcome is a TimeoutError.
    """
    go, set_off = os.pipe()
    children = []
    for work in works:
        reads, writes = os.pipe()
        children.append((fork(lambda w=work, to=writes: _report(w, go, set_off, to, crash)), reads))
        os.close(writes)
    os.close(go)
    os.close(set_off)
    return [_outcome_of(*child) for child in children]


def _report(work: Callable[[], Any], go: int, set_off: int, to: int, crash: bool) -> None:
    os.close(set_off)
    os.read(go, 1)  # returns when the last one that could write has closed it
    try:
        outcome = work()
    except Exception as error:
        outcome = error
    with open(to, "wb") as pipe:
        pickle.dump(outcome, pipe)
    if crash:
        os._exit(0)


def _outcome_of(child: int, reads: int) -> Any:
    answer = b""
    while select.select([reads], [], [], HANGS_AFTER)[0]:
        part = os.read(reads, 1 << 16)
        if not part:
            break
        answer += part
    else:
        os.kill(child, signal.SIGKILL)
        answer = pickle.dumps(TimeoutError("a child hangs"))
    os.close(reads)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if answer:
        return pickle.loads(answer)
    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    return RuntimeError(f"a child died of {how}, and reported nothing")


@contextmanager
def alive(work: Callable[[], Any]) -> Iterator[None]:
    """Keep what `work` returns in another process, which closes it at the end."""

    def keep() -> None:
        kept = work()
        os.write(ready, b"x")
        os.close(till)
        os.read(end, 1)
        del kept

    begun, ready = os.pipe()
    end, till = os.pipe()
    child = fork(keep)
    os.close(ready)
    os.close(end)
    os.read(begun, 1)
    try:
        yield
    finally:
        for descriptor in (begun, till):
            os.close(descriptor)
        os.waitpid(child, 0)


def wait_until(ready: Callable[[], bool]) -> bool:
    """Whether it is ready before it counts as hanging."""
    end = time.monotonic() + HANGS_AFTER
    while not ready():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder and the hash of its bytes.

    Never in a process that has a database open there: closing a file drops the process's locks.
    """
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
