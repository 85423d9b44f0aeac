"""Guards on disk as a forger writes them: any contents, behind a right checksum.

Written without the library, from the formats that its modules describe.
"""

import contextlib
import functools
import gc
import hashlib
import json
import os
import sqlite3

import numpy as np

from radabound_fast import FixedSequence, GuessAndCheck, HoldoutExhausted, Ladder, RadaBound
from radabound_fast.experiments.thresholdout import Thresholdout

M = 70  # not a multiple of 8
LOSSES = np.random.default_rng(0).random((40, M)) < np.linspace(0.6, 0.1, 40)[:, np.newaxis]
GUESSES = np.clip(LOSSES.mean(1) + np.tile([0, 0.3], 20), 0, 1)
WAYS = ("file", "database")


def _radabound(losses=LOSSES, **parameters):
    given = {"epsilon": 0.9, "delta": 0.5, "bound": "mclt", "n_vectors": 9, "seed": 1}
    return RadaBound, given | parameters, losses


# kind, parameters, and what it was asked
GUARDS = {
    "fresh": _radabound(LOSSES[:0]),
    "used": _radabound(bound="bernstein"),
    "halted": _radabound(epsilon=0.2),
    "real": _radabound(LOSSES * 0.5, estimator="half-range"),
    "fixed": _radabound(bound="fixed-sequence", max_queries=30),
    "sequence": (FixedSequence, {"epsilon": 0.6, "delta": 0.5, "max_queries": 9}, LOSSES),
    "check": (GuessAndCheck, {"epsilon": 0.6, "delta": 0.5}, LOSSES),
    "flat check": (GuessAndCheck, {"epsilon": 0.6, "delta": 0.5, "low_error": False}, LOSSES),
    "fresh ladder": (Ladder, {"step": 0.1, "delta": 0.5}, LOSSES[:0]),
    "ladder": (Ladder, {"step": 0.1, "delta": 0.5}, LOSSES),
    "ladder of 60": (Ladder, {"step": 0.1, "delta": 0.5, "max_queries": 60}, LOSSES),
    "free ladder": (Ladder, {"delta": 0.5}, LOSSES),
    "free real ladder": (Ladder, {"delta": 0.5}, LOSSES * 0.5),
    "thresholdout": (
        Thresholdout,
        {"threshold": 0.1, "noise": 0.02, "budget": 9, "seed": 3},
        LOSSES,
    ),
}


@functools.cache
def contents(name):
    """Kind, description and numbers of a guard of `GUARDS`, as they are kept."""
    kind, parameters, losses = GUARDS[name]
    guard = kind(M, **parameters)
    if len(losses):
        guard.query_many(losses, guesses=GUESSES)
    state = guard._state()
    progress = state.pop("progress")
    return kind, state, progress


def as_json(value):
    return json.dumps(value, sort_keys=True)


def write(way, path, description, numbers):
    """`description` is text; `numbers` bytes."""
    if way == "file":
        n_numbers = len(numbers) // 8
        header = f'{{"arrays": {{"progress": [{n_numbers}]}}, "state": {description}}}'
        write_file(path, header.encode("utf-8"), numbers)
    else:
        write_database(path, description, numbers)


def write_file(path, header, numbers):
    total = 24 + len(header) + len(numbers) + 32
    content = b"\x89RADA\r\n\x1a\1\0\0\0" + len(header).to_bytes(4, "little")
    content += total.to_bytes(8, "little") + header + numbers
    with open(path, "wb") as file:
        file.write(content + hashlib.sha256(content).digest())


def blob_of(description, numbers):
    return numbers + hashlib.blake2b(description.encode() + numbers, digest_size=8).digest()


TABLE = "CREATE TABLE guard (description TEXT NOT NULL, state BLOB NOT NULL)"


def write_database(path, description, numbers, *statements, table=TABLE):
    """`table`, the row, then `statements`."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        for pragma in ("synchronous = OFF", "application_id = 0x52414441", "user_version = 1"):
            database.execute(f"PRAGMA {pragma}")
        database.execute(table)
        database.execute(
            "INSERT INTO guard VALUES (?, ?)", (description, blob_of(description, numbers))
        )
        for statement in statements:
            database.execute(statement)
        database.execute("PRAGMA journal_mode = WAL")


def description_for(way, description):
    return description | {"holdout": None} if way == "database" else description


def refused(kind, way, path):
    """Whether it is refused, in one line that names it; else it is a guard that works."""
    with open(path, "rb") as file:
        before = file.read()
    try:
        guard = kind.load(path) if way == "file" else kind.open(path)
    except (ValueError, OSError) as error:
        message = str(error)
        assert os.path.basename(path) in message, message
        assert "\n" not in message and len(message) < 1500, message
        assert error.__suppress_context__ or error.__context__ is None
        found = True
    else:
        works(guard)
        if way == "database":
            guard.close()
        del guard
        gc.collect(1)  # a refusal's traceback may hold it
        found = False
    with open(path, "rb") as file:
        assert file.read() == before or not found, "what was refused has changed"
    assert not [name for name in os.listdir(os.path.dirname(path)) if "guard-" in name]
    return found


def works(guard):
    for _ in range(2):
        with contextlib.suppress(HoldoutExhausted):
            guard.query(np.zeros(guard.n_samples), guess=0.0)
        with contextlib.suppress(HoldoutExhausted):
            guard.query_many(np.full((2, guard.n_samples), 0.5), guesses=[0.5, 0.6])
    for name in dir(guard):
        if not name.startswith("_") and not callable(getattr(type(guard), name, None)):
            getattr(guard, name)
    assert repr(guard) and guard.n_answered >= 0
    assert len(guard._shared._progress()) <= type(guard)._most_numbers(guard._parameters())
