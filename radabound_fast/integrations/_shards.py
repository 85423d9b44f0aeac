"""Blocks of losses as exact integers that workers make, add up and merge, and a guard adopts.

Nothing here needs Dask.  Sums are in units of 2**-shift: one loss, or 2**-24 where real-valued
losses are among them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._answers import RadaBoundAnswers
from radabound_fast._kernel import UNIT_SHIFT
from radabound_fast.guard import RadaBound
from radabound_fast.packing import as_values, pack_losses
from radabound_fast.signs import SignMatrix


class Shard(NamedTuple):
    """Some samples of some loss vectors, as a worker keeps them."""

    losses: NDArray[Any]  # packed words if shift is 0, else values
    totals: NDArray[np.int64]  # sum of each row
    shift: int
    n_samples: int
    may_be_real: bool  # floats, which the guard's gate knows from bits even where they are packed


class Sums(NamedTuple):
    """Of whole rows: extremes of their signed sums per vector, and the sum of each."""

    maxima: NDArray[np.int64]
    minima: NDArray[np.int64]
    totals: NDArray[np.int64]
    shift: int
    may_be_real: bool


class Partial(NamedTuple):
    """Of one shard: signed sums, shape (k, n_vectors), or if it is whole their extremes."""

    sums: NDArray[np.int64]
    totals: NDArray[np.int64]
    shift: int
    may_be_real: bool


class NoLoss(Exception):
    """A value of a block that is no loss: the type of the error, its message in two, the row."""

    def of_row(self, first: int) -> Exception:
        """The error, where the block begins at that row of the whole array."""
        kind, before, row, after = self.args
        error: Exception = kind(f"{before}{first + row}{after}")
        return error


def prepare(losses: Any, start: int = 0) -> Shard:
    """Losses as bits if they are all 0 or 1; their samples begin at `start`.

    Raises NoLoss if one of them is none.
    """
    try:
        return _prepared(losses)
    except (TypeError, ValueError) as error:
        # `packing.place_of` writes it, whoever finds the value
        before, found, place = str(error).rpartition("at row ")
        row, _, sample = place.partition(", sample ")
        if not (found and row.isdecimal() and sample.isdecimal()):
            raise
        place = f", sample {start + int(sample)}"
        raise NoLoss(type(error), before + found, int(row), place) from None


def _prepared(losses: Any) -> Shard:
    values = as_values(losses, ndim=2)
    n_samples = values.shape[1]
    if values.dtype.kind == "f" and not ((values == 0) | (values == 1)).all():
        units = _kernel.rows_in_units(values)
        return Shard(values, units.sum(axis=1, dtype=np.int64), UNIT_SHIFT, n_samples, True)
    totals = np.count_nonzero(values, axis=1).astype(np.int64)
    return Shard(pack_losses(values), totals, 0, n_samples, values.dtype.kind == "f")


# seed, n_samples, n_vectors, and whether a worker keeps the signs in memory
Signs = tuple[int, int, int, bool]


@lru_cache(maxsize=2)
def _store(signs: Signs, start: int, stop: int) -> _kernel.SignStore:
    seed, n_samples, n_vectors, stored = signs
    kind: Literal["stored", "generated"] = "stored" if stored else "generated"
    whole = SignMatrix(n_samples, n_vectors, seed=seed, signs=kind)
    return (whole if stop - start == n_samples else whole[:, start:stop])._store


def partial_sums(rows: Shard, signs: Signs, start: int, whole: bool) -> Partial:
    """Signed sums under the part of the signs that belongs to the samples from `start` on."""
    store = _store(signs, start, start + rows.n_samples)
    # whole rows are only ever needed as extremes, which a block of them has at once
    step = max(1, len(rows.totals)) if whole else 1
    sums = []
    for row in range(0, len(rows.totals), step):
        extremes = _kernel.GuardCore(store)
        query = extremes.query_many if rows.shift else extremes.query_many_packed
        query(rows.losses[row : row + step])
        found = extremes.extremes() if whole else extremes.extremes()[:1]
        sums += [values << (rows.shift - extremes.unit_shift) for values in found]
    table = np.array(sums, np.int64).reshape(len(sums), store.n_vectors)
    return Partial(table, rows.totals, rows.shift, rows.may_be_real)


def add_up(parts: list[Partial]) -> Sums:
    """What the shards of a block come to together."""
    shift = max(part.shift for part in parts)
    sums = np.sum([part.sums << (shift - part.shift) for part in parts], axis=0)
    totals = np.sum([part.totals << (shift - part.shift) for part in parts], axis=0)
    may_be_real = any(part.may_be_real for part in parts)
    if not len(totals):
        return Sums(sums, sums, totals, shift, may_be_real)
    return Sums(sums.max(axis=0), sums.min(axis=0), totals, shift, may_be_real)


def adopted(guard: RadaBound, sums: Sums) -> RadaBoundAnswers | None:
    """The answers, if the guard took the block in; None: some row of it might not pass."""
    if not len(sums.totals):
        return guard._answered_nothing(halted=False)
    largest = int(sums.totals.max())
    n_rows, shift = len(sums.totals), sums.shift
    state = guard._core.adopt(
        _kernel.lay_out(sums.maxima, sums.minima, n_rows=n_rows, unit_shift=shift, largest=largest)
    )
    if state is None:
        return None
    n_queries, complexity = state
    values = sums.totals / (guard.n_samples << shift)
    return guard._answers((values, None, n_queries, False, complexity, not sums.may_be_real))


def join(parts: list[Shard]) -> tuple[NDArray[Any], bool]:
    """Whole rows from their shards, and whether they are packed."""
    if not any(part.may_be_real for part in parts):
        return np.concatenate([part.losses for part in parts], axis=1), True
    return np.concatenate([_values(part) for part in parts], axis=1), False


def _values(rows: Shard) -> NDArray[Any]:
    if rows.shift:
        return rows.losses
    octets = rows.losses.astype("<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=1, count=rows.n_samples, bitorder="little")
    return bits.astype(np.float16) if rows.may_be_real else bits
