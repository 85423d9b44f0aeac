"""A full disk, and a folder that cannot be written."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from trial import Count, Fault, contents, in_child

from radabound_fast import RadaBound

N_SAMPLES = 2000
PARAMETERS = {"judged": N_SAMPLES, "epsilon": 0.9, "delta": 0.1, "seed": 4}
NOBODY = 65534

# ---- a full disk -----------------------------------------------------------------------------

IN_A_TMPFS = 'mount -t tmpfs -o size=8m tmpfs "$0" && exec "$@"'


class Tmpfs:
    """A file system of a few megabytes, filled to the last pages."""

    how = "a tmpfs of 8 MB"

    def __init__(self, folder: Path) -> None:
        self.filler = folder / "filler"

    def fill(self, bytes_left: int) -> None:
        with open(self.filler, "wb", buffering=0) as file:
            for block in (1 << 16, 1 << 12):
                try:
                    while True:
                        file.write(bytes(block))
                except OSError as error:
                    assert error.errno == errno.ENOSPC
            file.truncate(max(0, file.tell() - bytes_left))

    def clear(self) -> None:
        self.filler.unlink()


class Limit:
    """Files that may not grow, where no tmpfs can be mounted."""

    how = "RLIMIT_FSIZE, since no tmpfs could be mounted"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, bytes_left: int) -> None:
        longest = max((path.stat().st_size for path in self.folder.iterdir()), default=0)
        self._limit(longest + bytes_left if bytes_left else 512)

    def clear(self) -> None:
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, n_bytes: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def full_disk(count: Count, folder: Path, times: int) -> None:
    """In a process of its own, whose mounts and limits nobody else sees."""
    inner = [sys.executable, __file__, str(folder), str(times)]
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", IN_A_TMPFS, str(folder)]
    for command in ([*unshare, *inner, "tmpfs"], [*inner, "limit"]):
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            continue
        if done.stdout:
            break
    if done.returncode or not done.stdout:
        count.lost.append(done.stderr)
        return
    found = json.loads(done.stdout)
    count.times, count.lost, count.note = found["times"], found["lost"], found["note"]


def fill_a_disk(count: Count, folder: Path, times: int, disk: Tmpfs | Limit) -> None:
    count.note = disk.how
    rng = np.random.default_rng(5)
    path, closed = folder / "guard.db", folder / "closed.db"
    RadaBound.open(closed, **PARAMETERS).close()
    guard, replay = (
        RadaBound.open(path, durability="process", **PARAMETERS),
        RadaBound(**PARAMETERS),
    )
    while count.times < times:
        # the log may be written back, or have to grow
        pages = random.choice([5, 8000])
        guard._record._database.execute(f"PRAGMA wal_autocheckpoint = {pages}")
        ask_until_it_fails(count, disk, guard, replay, rng)
        count.check(
            guard._shared.progress().tolist() == replay._shared.progress().tolist(),
            "a refused query counts",
        )
        one = rng.random(N_SAMPLES) < rng.random()
        answer, expected = guard.query(one), replay.query(one)
        count.check(repr(answer) == repr(expected), "it does not go on as if nothing had been")
        count.times += 1
        leaves_nothing(count, disk, folder, closed)
    disk.fill(0)
    guard.close()
    disk.clear()
    found = in_child(lambda: RadaBound.open(path)._shared.progress())
    count.check(
        found.tolist() == replay._shared.progress().tolist(), "what was reopened is not the same"
    )


def ask_until_it_fails(
    count: Count, disk: Tmpfs | Limit, guard: RadaBound, replay: RadaBound, rng: np.random.Generator
) -> None:
    disk.fill(random.randrange(1, 1 << 15))
    n_failed, n_asked = 0, 0
    while n_failed < 3 and n_asked < 500:
        n_asked += 1
        block = rng.random((5, N_SAMPLES)) < rng.random()
        many = n_asked % 2 == 0
        try:
            value = guard.query_many(block).values[-1] if many else guard.query(block[0]).value
        except OSError as error:
            n_failed += 1
            full = error.errno == errno.ENOSPC
            count.check(full or isinstance(disk, Limit), f"a query on a full disk: {error!r}")
        else:
            expected = replay.query_many(block).values[-1] if many else replay.query(block[0]).value
            count.check(value == expected, "another answer than without the fault")
    disk.clear()


def leaves_nothing(count: Count, disk: Tmpfs | Limit, folder: Path, closed: Path) -> None:
    """What fails on a full disk before a guard begins: making one, opening one."""
    before, closed_bytes = sorted(os.listdir(folder)), closed.read_bytes()
    calls: dict[str, Callable[[], Any]] = {
        "creating": lambda: RadaBound.open(folder / "new.db", **PARAMETERS),
        "opening": lambda: RadaBound.open(closed),
    }
    for what, call in calls.items():
        disk.fill(0)
        says_why(count, disk, what, call)
        disk.clear()
        if what == "opening":
            RadaBound.open(closed).close()  # and the empty log that it was left with
        # a little space: what is begun may not be done
        disk.fill(random.randrange(1 << 16))
        in_use = sorted(os.listdir(folder))
        if not says_why(count, disk, what, call, may_do=True) and what == "creating":
            count.check(sorted(os.listdir(folder)) == in_use, "a part of a new database is left")
        disk.clear()
        (folder / "new.db").unlink(missing_ok=True)
    count.check(closed.read_bytes() == closed_bytes, "a database that was not opened has changed")
    RadaBound.open(closed).close()  # and the empty log that it was left with
    left = sorted(os.listdir(folder))
    count.check(left == before, f"left behind: {sorted(set(left) - set(before))}")


def says_why(
    count: Count, disk: Tmpfs | Limit, what: str, call: Callable[[], Any], may_do: bool = False
) -> bool:
    """Whether it was done; if not, the error must be that the disk is full."""
    try:
        done = call()
    except OSError as error:
        full = error.errno == errno.ENOSPC and error.filename is not None
        count.check(full or isinstance(disk, Limit), f"{what}: {error!r}")
        count.check(".tmp" not in str(error), f"{what} names what nobody asked for: {error}")
        return False
    if done is not None:
        done.close()
    count.check(may_do, f"{what}: not refused")
    return True


# ---- a folder that cannot be written ---------------------------------------------------------


def read_only(count: Count, folder: Path, times: int) -> None:
    database, new = folder / "in" / "guard.db", folder / "in" / "new"
    folder.chmod(0o711)
    database.parent.mkdir()
    in_child(lambda: RadaBound.open(database, **PARAMETERS).close())
    if os.getuid() == 0:
        for path in (database.parent, database):
            os.chown(path, NOBODY, NOBODY)
    operations: dict[str, Callable[[], object]] = {
        "make a database": lambda: RadaBound.open(new, **PARAMETERS),
        "open a database": lambda: RadaBound.open(database),
        "open a database with its parameters": lambda: RadaBound.open(database, **PARAMETERS),
    }
    modes = [(0o555, 0o600), (0o555, 0o400), (0o555, 0o000), (0o755, 0o400), (0o755, 0o000)]
    before = contents(database.parent)
    while count.times < times:
        for folder_mode, file_mode in modes:
            for what, operation in operations.items():
                if folder_mode == 0o755 and "make" in what:
                    continue
                os.chmod(database, file_mode)
                os.chmod(database.parent, folder_mode)
                shown = f"{what}, folder {folder_mode:o}, file {file_mode:o}"
                count.refused(
                    lambda op=operation: in_child(lambda: as_nobody(op)), OSError, what=shown
                )
                os.chmod(database.parent, 0o755)
                os.chmod(database, 0o600)
                after = contents(database.parent)
                changed = sorted(set(after.items()) ^ set(before.items()))
                count.check(not changed, f"{shown}: files have changed: {changed}")
                count.times += 1


def as_nobody(operation: Callable[[], object]) -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    operation()


FAULTS = [
    Fault(
        "disk full while a guard is asked, made and opened",
        "OSError that says so (ENOSPC) and no answer; the count and the extremes are those of the "
        "answers; after space is made it goes on; of what was not there before nothing is left",
        full_disk,
        100,
        8,
    ),
    Fault(
        "a folder, or a database in it, that may not be written",
        "OSError on opening and making; no file changes or appears",
        read_only,
        100,
        13,
    ),
]

if __name__ == "__main__":
    inner_count = Count()
    kind = Tmpfs if sys.argv[3] == "tmpfs" else Limit
    fill_a_disk(inner_count, Path(sys.argv[1]), int(sys.argv[2]), kind(Path(sys.argv[1])))
    print(json.dumps(asdict(inner_count)))
