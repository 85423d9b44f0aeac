"""Rows of a pool that are read again when a step needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import read_as
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.pool.judging import Judge

Blocks = Callable[[], Iterable[Any]]  # array_likes or PackedLosses, the same ones each time

BLOCK_BYTES = 32 << 20  # of predictions that become losses at a time


class Part:
    """The rows of losses of one call of `ModelPool.add`, made anew each time they are read."""

    def __init__(self, judge: Judge, blocks: Blocks) -> None:
        self._judge, self._blocks = judge, blocks

    def __iter__(self) -> Iterator[NDArray[Any]]:
        first = 0
        for block in self._blocks():
            for piece in _pieces(block):
                try:
                    with read_as(y_pred="Y_pred"):
                        rows = self._judge.losses(piece)
                except (TypeError, ValueError) as error:
                    if first:
                        error.args = (f"{error} (counting rows from row {first:,} on)",)
                    raise
                yield rows
                first += len(rows)


def _pieces(block: Any) -> Iterator[Any]:
    """A block itself, or where it is an array, parts of it."""
    array = block.words if isinstance(block, PackedLosses) else block
    if not isinstance(array, np.ndarray) or array.ndim < 2 or len(array) == 0:
        yield block
        return
    step = max(1, BLOCK_BYTES * len(array) // max(array.nbytes, 1))
    for start in range(0, len(array), step):
        yield block[start : start + step]


def is_mapped(array: Any) -> bool:
    """Whether an array lies in a memory map."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
