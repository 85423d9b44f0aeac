"""Files that were cut short, or of which a bit has flipped."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from trial import Count, Fault, in_child

from radabound_fast import RadaBound

N_SAMPLES = 200
PARAMETERS = {
    "n_samples": N_SAMPLES, "epsilon": 0.9, "delta": 0.1, "n_vectors": 8, "seed": 6
}  # fmt: skip
N_ANSWERS = 12

REFUSED_OR_SAME = (
    "an error that names the file, and every byte stays; or the very same guard, if nothing uses "
    "what is damaged"
)


def ask(guard: RadaBound) -> list[list[int]]:
    """The states after no answer, one answer, two answers..."""
    rng, states = np.random.default_rng(7), [guard._shared.progress().tolist()]
    for _ in range(N_ANSWERS):
        guard.query(rng.random(N_SAMPLES) < 0.3)
        states.append(guard._shared.progress().tolist())
    return states


def write_database(path: Path) -> None:
    with RadaBound.open(path, **PARAMETERS) as guard:
        ask(guard)


def flips(content: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    for bit in range(0, 8 * len(content), step):
        altered = bytearray(content)
        altered[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit}", bytes(altered)


def cuts(content: bytes, step: int) -> Iterator[tuple[str, bytes]]:
    for length in range(0, len(content), step):
        yield f"{length} bytes", content[:length]
    yield "a byte too many", content + b"\0"


def odd_step(n_cases: int, times: int) -> int:
    """The largest step that tries so many; odd, so that it meets every bit of a byte."""
    return max(1, n_cases // times - 1) | 1


def found_in(path: Path) -> Any:
    """The state and the parameters of the guard, or the error."""
    try:
        guard = RadaBound.open(path)
        return guard._shared.progress().tolist(), guard._parameters()
    except (ValueError, OSError) as error:
        return error


def damaged(
    count: Count, folder: Path, times: int,
    damage: Callable[[bytes, int], Iterator[tuple[str, bytes]]],
) -> None:  # fmt: skip
    path = folder / "guard"
    write_database(path)
    whole, expected = path.read_bytes(), found_in(path)
    n_cases, n_unharmed = sum(1 for _ in damage(whole, 1)), 0
    for what, content in damage(whole, odd_step(n_cases, times)):
        path.write_bytes(content)
        found = found_in(path)
        if isinstance(found, Exception):
            count.check(path.read_bytes() == content, f"{what}: refused, and the file has changed")
            count.check(path.name in str(found), f"{what}: the file is not named by {found!r}")
        else:
            count.check(found == expected, f"{what}: another state, or other parameters")
            n_unharmed += 1
        beside = sorted(set(os.listdir(folder)) - {"guard"})
        count.check(not beside, f"{what}: left behind {beside}")
        count.times += 1
    count.note = f"{len(whole):,} bytes; the very same guard came back {n_unharmed:,} times"


def cut_database(count: Count, folder: Path, times: int) -> None:
    damaged(count, folder, times, cuts)


def flip_database(count: Count, folder: Path, times: int) -> None:
    damaged(count, folder, times, flips)


# ---- a later format --------------------------------------------------------------------------


def later_format(count: Count, folder: Path, times: int) -> None:
    path = folder / "guard.db"
    for version in range(3, 3 + times):  # 2 is that of a database with a service's log
        write_database(path)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute(f"PRAGMA user_version = {version}")
        before, saying = path.read_bytes(), f"format version {version}"
        count.refused(lambda: RadaBound.open(path), ValueError, saying=saying, what=saying)
        count.check(path.read_bytes() == before, f"{saying}: the file has changed")
        path.unlink()
        count.times += 1


# ---- the log of a guard that crashed ---------------------------------------------------------


kept: list[RadaBound] = []


def keep(guard: RadaBound) -> RadaBound:
    """For ever, so that it is not closed when its process ends at once."""
    kept.append(guard)
    return guard


def damaged_log(count: Count, folder: Path, times: int) -> None:
    made, path = folder / "made.db", folder / "guard.db"
    log = path.with_name("guard.db-wal")
    in_child(lambda: RadaBound.open(made, **PARAMETERS).close())
    states = in_child(lambda: ask(keep(RadaBound.open(made))), crash=True)
    database, whole = made.read_bytes(), made.with_name("made.db-wal").read_bytes()
    n_older, n_refused = 0, 0
    n_each = max(1, times // 2)
    step = odd_step(8 * len(whole), n_each)
    for what, content in [*flips(whole, step), *cuts(whole, len(whole) // n_each)]:
        path.write_bytes(database)
        log.write_bytes(content)
        found = found_in(path)
        if isinstance(found, Exception):
            n_refused += 1
        else:
            count.check(found[0] in states, f"{what}: a state that never was")
            n_older += found[0] != states[-1]
        count.times += 1
    count.note = (
        f"{len(whole):,} bytes; an older state {n_older:,} times, refused {n_refused:,} times"
    )


FAULTS = [
    Fault("a database cut to any length", REFUSED_OR_SAME, cut_database, 2048, 50),
    Fault("any one bit of a database flipped", REFUSED_OR_SAME, flip_database, 16384, 150),
    Fault(
        "a database of a later format",
        "ValueError that names the version, and every byte stays",
        later_format,
        40,
        6,
    ),
    Fault(
        "the log of a guard that crashed cut or one bit of it flipped",
        "a state that the guard once had, **which may be an older one** (see below)",
        damaged_log,
        2000,
        60,
    ),
]
