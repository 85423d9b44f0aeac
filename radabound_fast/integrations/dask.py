"""Dask: workers reduce blocks of losses to sums and extremes, the owner of the guard decides.

A block whose rows all stay within the budget is adopted by its extremes alone.  Of any other
block the owner fetches the rows and judges them itself, so that the halting query, the values
and the state are those of `RadaBound.query_many` on the whole array, bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np

from radabound_fast._answers import RadaBoundAnswers
from radabound_fast._checks import check_count
from radabound_fast._exhausted import HoldoutExhausted
from radabound_fast._extras import needs
from radabound_fast._kernel import sealed
from radabound_fast.guard import RadaBound
from radabound_fast.integrations._owner import check_answers, first_withheld, hand_over
from radabound_fast.integrations._shards import (
    NoLoss,
    Sums,
    add_up,
    adopted,
    join,
    partial_sums,
    prepare,
)
from radabound_fast.signs import WORD_BITS

with needs("dask"):
    from dask import delayed
    from dask.array import Array
    from dask.delayed import Delayed
    from dask.optimization import cull
    from distributed import Client, default_client


def query_many(
    guard: RadaBound, losses: Any, *, client: Client | None = None, n_ahead: int | None = None
) -> RadaBoundAnswers:
    """`RadaBound.query_many` for losses that lie on a cluster.

    Parameters
    ----------
    guard : RadaBound
        Stays in this process.
    losses : dask.array.Array, shape (k, n_samples)
        Losses in [0, 1].  A block is some rows, or with several chunks along the samples some
        rows of one shard: then every shard but the last holds a multiple of 64 samples, and the
        signs are made anew for each, so that no machine holds a whole row.
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
        No RadaBound, wrong shape or chunks; or values that are no losses: the blocks before
        have been counted.

    Notes
    -----
    Whatever ends the call on the way, an error in a worker or Ctrl-C, has as its attribute
    ``answers`` the `Answers` that were counted before it.

    The workers are told the seed of the signs, and are trusted with it: whoever knows it can
    choose losses that look less complex than they are.  A task that was lost with its worker is
    done again, so the losses must be a function of their graph; what many blocks depend on
    should be persisted.
    """
    if not isinstance(guard, RadaBound):
        raise TypeError(f"guard must be a RadaBound, got {type(guard).__name__}")
    shards = _shards(losses, guard.n_samples)
    before = guard.query_many(np.empty((0, guard.n_samples), np.bool_))  # raises if it cannot
    check_answers(guard, "guard")
    client = default_client() if client is None else client
    if n_ahead is None:
        n_ahead = 4 * max(1, sum(client.nthreads().values()))
    batch = max(1, check_count(n_ahead=n_ahead) // 2)
    blocks = _submitted(client, guard, losses, shards, batch)
    ahead = deque(islice(blocks, n_ahead // batch * batch))
    answered = [before]
    try:
        while ahead and not answered[-1].halted:
            answered.append(_answered(guard, client, *ahead.popleft()))
            if len(ahead) + batch <= n_ahead:
                ahead.extend(islice(blocks, batch))
    except BaseException as caught:
        answers = RadaBoundAnswers.joined(answered)
        error = caught.of_row(len(answers)) if isinstance(caught, NoLoss) else caught
        hand_over(error, answers, len(answers))
        if error is caught:
            raise
        raise error from None
    answers = RadaBoundAnswers.joined(answered)
    if answers.halted and answers.n_queries == 0:
        raise first_withheld(guard, "guard")
    return answers


def _shards(losses: Any, n_samples: int) -> list[slice]:
    """The samples of each chunk, or an error that says which chunks there may be."""
    if not isinstance(losses, Array):
        raise TypeError(f"losses must be a dask array, got {type(losses).__name__}")
    if losses.ndim != 2 or losses.shape[1] != n_samples:
        raise ValueError(f"losses must have shape (k, {n_samples}), got shape {losses.shape}")
    stops = np.cumsum(losses.chunks[1]).tolist()
    if any(stop % WORD_BITS for stop in stops[:-1]):
        raise ValueError(
            f"losses must be cut along the samples at multiples of {WORD_BITS}, got chunks "
            f"{losses.chunks[1]}; losses.rechunk({{1: -1}}) makes whole rows"
        )
    return [slice(*ends) for ends in zip([0, *stops[:-1]], stops, strict=True)]


def _submitted(
    client: Client, guard: RadaBound, losses: Any, shards: list[slice], batch: int
) -> Iterator[tuple[list[Any], Any]]:
    """For each block of rows the futures of its shards and of its `Sums`.

    So many blocks are submitted at once: Dask begins them in any order, but a batch after those
    before it.  Futures that nobody holds any more are cancelled.
    """
    whole = len(shards) == 1
    signs = guard.seed, guard.n_samples, guard.n_vectors, whole and guard._signs.nbytes > 0
    # not to_delayed, whose optimised graph has lost the futures of persisted blocks
    graph, blocks = dict(losses.__dask_graph__()), losses.__dask_keys__()
    for first in range(0, len(blocks), batch):
        keys = [key for block in blocks[first : first + batch] for key in block]
        # else every batch would carry the graph of all blocks
        part, _ = cull(graph, keys)
        rows = [
            delayed(prepare)(Delayed(key, part), shard.start)
            for key, shard in zip(keys, cycle(shards))
        ]
        sums = [
            delayed(partial_sums)(row, signs, shard.start, whole)
            for row, shard in zip(rows, cycle(shards))
        ]
        step = len(shards)
        firsts = range(0, len(rows), step)
        totals = [delayed(add_up)(sums[row : row + step]) for row in firsts]
        futures = client.compute([*rows, *totals])
        for row, future in zip(firsts, futures[len(rows) :], strict=True):
            yield futures[row : row + step], future


@sealed
def _answered(guard: RadaBound, client: Client, rows: list[Any], future: Any) -> RadaBoundAnswers:
    """What is answered of a block, and whether the guard halts on it."""
    sums: Sums = future.result()
    try:
        answers = adopted(guard, sums)
        if answers is not None:
            return answers
        losses, packed = client.submit(join, rows).result()
        return guard.query_many_packed(losses) if packed else guard.query_many(losses)
    except HoldoutExhausted:  # another process has halted it since the block before
        return guard._answered_nothing(halted=True)
