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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HANGS_AFTER = 60.0  # seconds


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
    """What `work` returns or raises in a child; `crash`: what it opened is not closed.

    Raises
    ------
    TimeoutError
        It hangs; it is killed.
    """

    def report() -> None:
        try:
            outcome = (work(), None)
        except Exception as error:
            outcome = (None, error)
        os.write(writes, pickle.dumps(outcome))
        if crash:
            os._exit(0)

    reads, writes = os.pipe()
    child = fork(report)
    os.close(writes)
    try:
        answer = b""
        while select.select([reads], [], [], HANGS_AFTER)[0]:
            part = os.read(reads, 1 << 16)
            if not part:
                break
            answer += part
        else:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError("a child hangs")
    finally:
        os.close(reads)
        os.waitpid(child, 0)
    value, error = pickle.loads(answer)
    if error is not None:
        raise error
    return value


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
