"""Dask: workers count blocks of losses, the owner of the guard takes them in, in order.

A block whose rows all pass is taken in by its extremes and totals alone (`rows.partial`).
Of any other the owner fetches the rows and judges them itself, so that the halting query, the
values and the state are those of `query_many` on the whole array, bit for bit.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_count
from radabound_fast._extras import needs
from radabound_fast._kernel import bad_bit, sealed
from radabound_fast.guards.answers import RadaBoundAnswers, hand_over
from radabound_fast.guards.exhausted import HoldoutExhausted
from radabound_fast.guards.radabound import RadaBound
from radabound_fast.holdout import Holdout
from radabound_fast.integrations._owner import check_answers, first_withheld
from radabound_fast.rows.packing import as_values, as_words, pack_losses
from radabound_fast.rows.partial import Partial, Task
from radabound_fast.rows.signs import WORD_BITS

with needs("dask"):
    from dask import delayed
    from dask.array import Array
    from dask.delayed import Delayed
    from dask.optimization import cull
    from distributed import Client, default_client


def query_many(
    guard: RadaBound | Holdout,
    losses: Any,
    *,
    client: Client | None = None,
    n_ahead: int | None = None,
) -> RadaBoundAnswers:
    """`RadaBound.query_many` for losses on a cluster, or `Holdout.query_many` for predictions.

    Parameters
    ----------
    guard : RadaBound or Holdout
        Stays in this process.  The guard of a `Holdout` must be a `RadaBound`.
    losses : dask.array.Array, shape (k, n_samples)
        Losses in [0, 1]; of a `Holdout` predictions.  A block is some rows, or with several chunks
        along the samples some rows of one shard: then every shard but the last holds a multiple of
        64 samples, and no machine but the owner, for a block that it judges, holds a whole row.
    client : distributed.Client, optional
        None: the default one.
    n_ahead : int, optional
        Blocks of rows in work at once: what a halt may waste, and what the cluster has to hold.
        None: four for each thread of the cluster.

    Returns
    -------
    RadaBoundAnswers
        Bit for bit what ``guard.query_many(losses.compute())`` gives, and the same state.  A
        guard that other processes share may halt between two blocks: `halted` is True then, with
        the answers before it.

    Raises
    ------
    HoldoutExhausted
        The guard had halted before this call, can answer no query, or withheld the very first
        answer: the message says what would work.
    TypeError, ValueError
        No such guard, wrong shape or chunks; or values that are no losses: the blocks before
        have been counted.

    Notes
    -----
    Whatever ends the call on the way, an error in a worker or Ctrl-C, has as its attribute
    ``answers`` the `Answers` that were counted before it.

    The workers are told the seed of the signs, and the labels of a `Holdout`:
    docs/explanation/trust.md says what they are trusted with.  A task that was lost with its
    worker is done again, so the losses must be a function of their graph; what many blocks depend
    on should be persisted.
    """
    return _joined(guard, iter_query_many(guard, losses, client=client, n_ahead=n_ahead))


def query_many_packed(
    guard: RadaBound, words: Any, *, client: Client | None = None, n_ahead: int | None = None
) -> RadaBoundAnswers:
    """`query_many` for packed losses: uint64, shape (k, ceil(n_samples / 64)).

    As `pack_losses` makes them; the chunks along the words are shards, of any size.
    """
    return _joined(guard, iter_query_many_packed(guard, words, client=client, n_ahead=n_ahead))


def iter_query_many(
    guard: RadaBound | Holdout,
    losses: Any,
    *,
    client: Client | None = None,
    n_ahead: int | None = None,
) -> Iterator[RadaBoundAnswers]:
    """`query_many`, the answers to one block of rows after the other.

    Parameters
    ----------
    guard, losses, client, n_ahead
        As for `query_many`.  No block is begun that is more than `n_ahead` after the one whose
        answers were asked for last.

    Yields
    ------
    RadaBoundAnswers
        Of each block.  A halt ends the stream with the answers before it and `halted`; so does
        another process's between two blocks.

    Raises
    ------
    HoldoutExhausted
        At once: the guard had halted before, or can answer no query.
    TypeError, ValueError
        As for `query_many`.
    """
    return _streamed(guard, losses, False, client, n_ahead)


def iter_query_many_packed(
    guard: RadaBound, words: Any, *, client: Client | None = None, n_ahead: int | None = None
) -> Iterator[RadaBoundAnswers]:
    """`iter_query_many` for packed losses; see `query_many_packed`."""
    return _streamed(guard, words, True, client, n_ahead)


def _joined(guard: Any, blocks: Iterator[RadaBoundAnswers]) -> RadaBoundAnswers:
    owner = _owner(guard)
    answered = [owner._answered_nothing(halted=False)]
    try:
        for answers in blocks:
            answered.append(answers)
    except BaseException as error:
        answers = RadaBoundAnswers.joined(answered)
        hand_over(error, answers, len(answers))
        raise
    answers = RadaBoundAnswers.joined(answered)
    if answers.halted and answers.n_queries == 0:
        raise first_withheld(owner, "guard")
    return answers


def _owner(guard: Any) -> RadaBound:
    owner = guard.guard if isinstance(guard, Holdout) else guard
    if not isinstance(owner, RadaBound):
        raise TypeError(
            f"guard must be a RadaBound, or a Holdout with one, got {type(owner).__name__}"
        )
    return owner


def _streamed(
    guard: Any, rows: Any, packed: bool, client: Client | None, n_ahead: int | None
) -> Iterator[RadaBoundAnswers]:
    owner = _owner(guard)
    if packed and isinstance(guard, Holdout):
        raise TypeError("guard must be a RadaBound for packed losses, got Holdout")
    shards = _shards(rows, owner.n_samples, packed)
    owner.query_many(np.empty((0, owner.n_samples), np.bool_))  # raises if it cannot
    check_answers(owner, "guard")
    client = default_client() if client is None else client
    if n_ahead is None:
        n_ahead = 4 * max(1, sum(client.nthreads().values()))
    batch = max(1, check_count(n_ahead=n_ahead) // 2)
    blocks = _submitted(client, guard.task(), rows, shards, packed, batch)
    return _answers(owner, client, blocks, n_ahead, batch)


def _answers(
    owner: RadaBound, client: Client, blocks: Iterator[Any], n_ahead: int, batch: int
) -> Iterator[RadaBoundAnswers]:
    ahead = deque(islice(blocks, n_ahead // batch * batch))
    n_rows, halted = 0, False
    while ahead and not halted:
        try:
            answers = _answered(owner, client, *ahead.popleft())
        except NoLoss as error:
            raise error.of_row(n_rows) from None
        n_rows, halted = n_rows + len(answers), answers.halted
        yield answers
        if len(ahead) + batch <= n_ahead:
            ahead.extend(islice(blocks, batch))


@sealed
def _answered(owner: RadaBound, client: Client, rows: list[Any], partial: Any) -> RadaBoundAnswers:
    """What is answered of a block, and whether the guard halts on it."""
    counted: Partial = partial.result()
    try:
        return owner.take(
            [counted], fetch=lambda _: client.submit(np.concatenate, rows, axis=1).result()
        )
    except HoldoutExhausted:  # another process has halted it since the block before
        return owner._answered_nothing(halted=True)


def _shards(rows: Any, n_samples: int, packed: bool) -> list[slice]:
    """The samples of each chunk, or an error that says which chunks there may be."""
    name = "words" if packed else "losses"
    width = -(-n_samples // WORD_BITS) if packed else n_samples
    if not isinstance(rows, Array):
        raise TypeError(f"{name} must be a dask array, got {type(rows).__name__}")
    if rows.ndim != 2 or rows.shape[1] != width:
        raise ValueError(f"{name} must have shape (k, {width}), got shape {rows.shape}")
    if packed and rows.dtype != np.uint64:
        raise TypeError(f"words must be uint64, got dtype {rows.dtype}")
    stops = np.cumsum(rows.chunks[1]).tolist()
    if packed:
        stops = [min(WORD_BITS * stop, n_samples) for stop in stops]
    if any(stop % WORD_BITS for stop in stops[:-1]):
        raise ValueError(
            f"losses must be cut along the samples at multiples of {WORD_BITS}, got chunks "
            f"{rows.chunks[1]}; losses.rechunk({{1: -1}}) makes whole rows"
        )
    return [slice(*ends) for ends in zip([0, *stops[:-1]], stops, strict=True)]


def _submitted(
    client: Client, task: Task, rows: Any, shards: list[slice], packed: bool, batch: int
) -> Iterator[tuple[list[Any], Any]]:
    """For each block of rows the futures of its shards and of its `Partial`.

    So many blocks are submitted at once: Dask begins them in any order, but a batch after those
    before it.  Futures that nobody holds any more are cancelled.
    """
    task = delayed(task, traverse=False)  # sent once, not with every block
    is_real = rows.dtype.kind not in "biu"
    # not to_delayed, whose optimised graph has lost the futures of persisted blocks
    graph, blocks = dict(rows.__dask_graph__()), rows.__dask_keys__()
    for first in range(0, len(blocks), batch):
        keys = [key for block in blocks[first : first + batch] for key in block]
        # else every batch would carry the graph of all blocks
        part, _ = cull(graph, keys)
        kept = [
            delayed(_kept)(task, Delayed(key, part), shard.start, packed, is_real)
            for key, shard in zip(keys, cycle(shards))
        ]
        counted = [
            delayed(_counted)(task, shard_rows, shard.start)
            for shard_rows, shard in zip(kept, cycle(shards))
        ]
        step = len(shards)
        firsts = range(0, len(kept), step)
        partials = counted
        if step > 1:
            partials = [delayed(sum)(counted[row : row + step]) for row in firsts]
        futures = client.compute([*kept, *partials])
        for row, future in zip(firsts, futures[len(kept) :], strict=True):
            yield futures[row : row + step], future


# ---- on a worker ---------------------------------------------------------------------------


def _kept(task: Task, block: Any, start: int, packed: bool, is_real: bool) -> NDArray[Any]:
    """Losses as a worker keeps them until their block is judged: bits, unless they are floats."""
    with _told_by_place(task, start):
        if packed:
            left = task.n_samples - start
            return as_words(block, min(left, WORD_BITS * np.shape(block)[1]), 2)
        if task.labels is not None:
            return task.pack(block, start=start)
        values = as_values(block, ndim=2)
        if is_real:
            return values if values.dtype.kind == "f" else values.astype(np.float64)
        return pack_losses(values)


def _counted(task: Task, rows: NDArray[Any], start: int) -> Partial:
    with _told_by_place(task, start):
        if rows.dtype.kind == "f":
            return task.reduce(rows, start=start)
        return task.reduce_packed(rows, start=start)


class NoLoss(Exception):
    """A value of a block that is no loss: the type of the error, its message in two, the row."""

    def of_row(self, first: int) -> Exception:
        """The error, where the block begins at that row of the whole array."""
        kind, before, row, after = self.args
        error: Exception = kind(f"{before}{first + row}{after}")
        return error


@contextlib.contextmanager
def _told_by_place(task: Task, start: int) -> Iterator[None]:
    """Raises NoLoss for an error about a value of a shard that begins at that sample."""
    try:
        yield
    except (TypeError, ValueError) as error:
        # `packing.place_of` writes it, whoever finds the value
        found = re.fullmatch(r"(.* at row )(\d+), sample (\d+)(.*)", str(error), re.DOTALL)
        if found:
            place = f", sample {start + int(found[3])}{found[4]}"
            raise NoLoss(type(error), found[1], int(found[2]), place) from None
        past = re.fullmatch(r".* bit set past .* in row (\d+)", str(error))
        if past:
            before = str(bad_bit(task.n_samples, 0)).removesuffix("0")
            raise NoLoss(type(error), before, int(past[1]), "") from None
        raise
