"""Target: `Task.reduce`, sums of partials, their bytes, and `RadaBound.take`.

Rows that are cut, counted, added up and taken in are answered as `reference.py` says; what is
refused changes nothing; damaged bytes are a ValueError.
"""

import hashlib
import itertools

import numpy as np
from damage import damaged
from draw import REFUSALS, Draw, array_like, in_units, plain_rows, shape_of
from query_fuzz import Twin, packed_like, plain_bits

from radabound_fast import DeclaredSearch, HoldoutExhausted, PackedLosses, RadaBound
from radabound_fast.rows.partial import Partial

N_DIGEST = 32


def counted(draw, task, rows, packed):
    """Of the rows as they are, or of an array that is cut into words, added up in any order."""
    word, m = 1 if packed else 64, task.n_samples

    def reduce(part, start=0):
        if not packed:
            return task.reduce(part, start=start)
        n = min(64 * np.shape(part)[-1], m - start) if np.ndim(part) == 2 else m
        return task.reduce(PackedLosses(part, n), start=start)

    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or draw.one_in(3):
        return reduce(rows)
    starts = [start for start in range(0, rows.shape[1], word) if start == 0 or draw.one_in(2)]
    parts = [
        reduce(rows[:, start:stop], start=64 * start // word)
        for start, stop in itertools.pairwise([*starts, rows.shape[1]])
    ]
    draw.seeded().shuffle(parts)
    return sum(parts) if parts else reduce(rows)


def fuzz_one(data):
    draw = Draw(data)
    if draw.one_in(3):
        its_bytes_were_changed(draw)
        return
    twin = Twin(draw)
    m = twin.guard.n_samples
    for _ in range(draw.integer(1, 4)):
        packed = draw.one_in(2)
        if packed:
            shape = (draw.integer(0, 5), m)
            rows = packed_like(draw, draw.seeded().random(shape) < 0.3)
            plain = plain_bits(rows, m, 2)
        else:
            rows = array_like(draw, shape_of(draw, m, 2))
            plain = plain_rows(rows, 2, m)
        take(draw, twin, rows, packed, plain)
        twin.compare()


def take(draw, twin, rows, packed, plain):
    m = twin.guard.n_samples
    all_good = plain is not None and None not in plain
    try:
        partial = counted(draw, twin.guard.task(), rows, packed)
        partial = Partial.from_bytes(partial.to_bytes())
        answers = twin.guard.take(
            [partial], fetch=lambda i: PackedLosses(rows, m) if packed else rows
        )
    except HoldoutExhausted:
        assert twin.halted
        return
    except REFUSALS as error:
        assert not all_good, f"good rows were refused: {error}"
        return
    assert all_good and not twin.halted
    means = twin.judge(in_units(plain))
    assert answers.values.tolist() == means and answers.halted == twin.halted
    assert answers.complexity == twin.complexity and answers.n_answered == twin.n_answered


def its_bytes_were_changed(draw):
    guard = RadaBound(130, epsilon=0.9, delta=0.5, bound="mclt", n_vectors=3, seed=1)
    losses = draw.seeded().random((draw.integer(0, 5), 130)) < 0.3
    width = draw.choice([130, 64])
    task, keys = guard.task(), {}
    if draw.one_in(2):
        search = DeclaredSearch(130, draw.choice([99, 2**70]), delta=0.5)
        task, keys = search.task(), {"keys": range(len(losses))}
    elif draw.one_in(2):
        keys = {"ids": range(len(losses))}
    whole = task.reduce(losses[:, :width] * draw.choice([1, 0.5]), **keys).to_bytes()
    blob = damaged(draw, whole, [task.reduce(losses[:, 64:], start=64, **keys).to_bytes()])
    if blob != whole and blob[-N_DIGEST:] == hashlib.sha256(blob[:-N_DIGEST]).digest():
        return  # what it was damaged to is whole
    try:
        partial = Partial.from_bytes(blob)
    except ValueError:
        assert blob != whole
        return
    assert Partial.from_bytes(partial.to_bytes()).to_bytes() == partial.to_bytes()
    assert np.abs(partial.sums).max(initial=0) <= 130 << 24
