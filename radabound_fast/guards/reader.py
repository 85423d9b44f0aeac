"""What a mechanism reads of loss vectors: their means, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast import _kernel
from radabound_fast._kernel import UNIT_SHIFT
from radabound_fast.rows.packing import as_values, as_words

# samples at a time, so that the squares of their units add up below 2**63; whole bytes of bits
_CHUNK = 2**14

# one loss vector: packed bits if uint8, units if int32
Losses = NDArray[Any]


class LossReader:
    """Loss vectors, checked and averaged when this is made, and read where they lie.

    Parameters
    ----------
    losses : array_like
        One loss vector, or with `many` one per row; packed bits with `packed`.
    n_samples : int
        Losses a vector.

    Attributes
    ----------
    means : list of float
        One float64 division each, of an exact sum.
    declared : bool
        Whether the losses are 0 or 1 by their type.
    """

    def __init__(self, losses: Any, n_samples: int, *, many: bool, packed: bool) -> None:
        ndim = 2 if many else 1
        if packed:
            values = as_words(losses, n_samples, ndim=ndim)
        else:
            values = as_values(losses, n_samples=n_samples, ndim=ndim, name="losses")
        self._rows = values if many else values[np.newaxis]
        sums, shift = _kernel.sums_of_rows(self._rows, n_samples, packed=packed)
        self.means: list[float] = (sums / (n_samples << shift)).tolist()
        self._n_samples = n_samples
        self._packed = packed
        self.declared = packed or values.dtype.kind != "f"

    def losses(self, row: int) -> Losses:
        """A copy of one row."""
        values = self._rows[row]
        if self._packed:
            return np.frombuffer(values.tobytes(), np.uint8, count=-(-self._n_samples // 8))
        if values.dtype.kind == "f":
            return np.concatenate(list(_units_by_chunk(values)))
        return np.packbits(values != 0, bitorder="little")


def deviation_of_difference(losses: Losses, others: Losses, n_samples: int) -> float:
    """Standard deviation (divisor m) of the difference of two loss vectors.

    Exact up to one square root and one division.
    """
    total = squares = 0
    for start in range(0, n_samples, _CHUNK):
        stop = min(start + _CHUNK, n_samples)
        difference = _units(losses, start, stop) - _units(others, start, stop)
        total += int(difference.sum())
        squares += int((difference * difference).sum())
    return sqrt(n_samples * squares - total * total) / (n_samples << UNIT_SHIFT)


def _units_by_chunk(values: NDArray[Any]) -> Iterator[NDArray[np.int32]]:
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK].astype(np.float64)
        yield np.rint(np.ldexp(chunk, UNIT_SHIFT)).astype(np.int32)


def _units(losses: Losses, start: int, stop: int) -> NDArray[np.int64]:
    if losses.dtype == np.uint8:
        bits = np.unpackbits(losses[start // 8 : -(-stop // 8)], bitorder="little")
        return np.left_shift(bits[: stop - start], UNIT_SHIFT, dtype=np.int64)
    return losses[start:stop].astype(np.int64)
