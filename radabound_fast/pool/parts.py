"""Rows of a pool that can be read again: kept as losses, or made anew of what was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import read_as
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.pool.judging import Judge

Array = NDArray[Any]

BLOCK_BYTES = 32 << 20  # of predictions that become losses at a time


class Blocks:
    """Rows that can be read again and again, block by block: of a file, or made anew each time.

    Parameters
    ----------
    read : callable
        Without arguments; returns an iterator of blocks, each array_like of shape (k, n_samples)
        or `PackedLosses`, the same ones each time.
    """

    def __init__(self, read: Callable[[], Iterator[Any]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Any]:
        return self._read()


class File:
    """Rows of losses in a file, which is opened anew each time.

    Parameters
    ----------
    path : path
    n_samples : int
    """

    def __init__(self, path: Any, n_samples: int) -> None:
        self._path, self._n_samples = path, n_samples

    def __iter__(self) -> Iterator[Any]:
        from radabound_fast.files.reading import open_losses

        return iter(open_losses(self._path, n_samples=self._n_samples))


class Part:
    """The rows of one call of `ModelPool.add`, block by block, as often as wanted.

    Parameters
    ----------
    judge : Judge
    given : iterable of array_like or PackedLosses
        Predictions, or losses; read again each time unless they are kept.
    keep : bool
        Whether the losses are kept, and `given` is let go.
    """

    def __init__(self, judge: Judge, given: Iterable[Any], *, keep: bool) -> None:
        self._judge = judge
        self._given: Iterable[Any] = given
        self._kept: list[Array] | None = None
        if keep:
            self._kept = list(self._read())
            self._given = ()

    def __iter__(self) -> Iterator[Array]:
        return self._read() if self._kept is None else iter(self._kept)

    def _read(self) -> Iterator[Array]:
        first = 0
        for block in self._given:
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
