"""Rows that a `DeclaredSearch` judges: what is stored of them, and hashes that tell them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import (
    UNIT_SHIFT,
    PackedLosses,
    fingerprints,
    fingerprints_and_sums,
    pack_rows,
    rows_in_units,
    sums_of_rows,
)
from radabound_fast.rows.packing import as_array, as_values, bits_of, checked_words

# real-valued losses become units of 2**-24 a block of so many values at a time
_BLOCK_VALUES = 2**20


class Rows:
    """Rows of predictions or losses: what is stored of them, and hashes that tell them apart.

    `stored` has the form of the measure, shape (k, n_stored); `fingerprints` are keyed hashes of
    the rows, uint64: 0 where they were counted elsewhere without; None where none are compared.
    """

    def __init__(self, stored: NDArray[Any], hashes: Any, of: str = "predictions") -> None:
        self.stored, self.fingerprints, self.of = stored, hashes, of

    def __len__(self) -> int:
        return len(self.stored)

    @property
    def columns(self) -> list[NDArray[Any]]:
        """What is stored, a column each."""
        return list(self.stored.T)

    def stored_of(self, row: int) -> list[Any]:
        """What is stored of a row."""
        stored: list[Any] = self.stored[row].tolist()
        return stored

    def agrees(self, row: int, before: tuple[Any, ...], secret: bytes) -> bool:
        """Whether the row may be that of an earlier query, of which this is stored."""
        fingerprint = self._fingerprint_as(row, before, secret)
        if 0 not in (fingerprint, before[-1]):
            return bool(fingerprint == before[-1])
        # one was counted elsewhere, and the counts are all that there is to compare
        own, other = self.stored_of(row), list(before[:-2])
        if self.of == "losses":
            own, other = ([total << (UNIT_SHIFT - shift)] for total, shift in (own, other))
        return own == other

    def _fingerprint_as(self, row: int, before: tuple[Any, ...], secret: bytes) -> int | None:
        """The row's hash, of losses as binary or real as those of the earlier query.

        None: they cannot be the same.  0: nobody knows.
        """
        if self.of == "losses" and before[1] != self.stored_of(row)[1]:
            return 0
        return int(self.fingerprints[row])


class LossRows(Rows):
    """Rows of losses: their sums, and in units of which power of 2."""

    def __init__(
        self, values: NDArray[Any], n_samples: int, binary: bool, secret: bytes | None
    ) -> None:
        self.shift = 0 if binary else UNIT_SHIFT
        self._values = values if values.ndim == 2 else values[np.newaxis]
        self._n_samples, hashes = n_samples, None
        if binary and secret is not None:
            little = self._values.astype("<u8", copy=False)
            hashes, sums = fingerprints_and_sums(little, n_samples, secret)
        else:
            # floats that happen to be 0 and 1 are summed as such
            sums, shift = sums_of_rows(self._values, n_samples, packed=binary)
            sums <<= self.shift - shift
            if secret is not None:
                hashes = self._of_units(self._values, secret)
        super().__init__(sums[:, np.newaxis], hashes, "losses")

    @property
    def columns(self) -> list[NDArray[Any]]:
        return [self.stored[:, 0], np.broadcast_to(np.int64(self.shift), len(self.stored))]

    def stored_of(self, row: int) -> list[Any]:
        return [self.stored.item(row, 0), self.shift]

    @classmethod
    def read(cls, losses: Any, n_samples: int, ndim: int, secret: bytes | None) -> LossRows:
        """Rows of losses, checked; without a secret they have no fingerprints."""
        if isinstance(losses, PackedLosses):
            return cls(checked_words(losses, n_samples, ndim), n_samples, True, secret)
        array = as_array(losses, "losses")
        values = as_values(array, n_samples, ndim)
        if array.dtype.kind in "biu" or array.dtype.kind == "O" and _are_whole(array):
            return cls(pack_rows(values), n_samples, True, secret)
        return cls(values, n_samples, False, secret)

    def _fingerprint_as(self, row: int, before: tuple[Any, ...], secret: bytes) -> int | None:
        shift = before[1]
        if shift == self.shift:
            return int(self.fingerprints[row])
        values = self._values[row]
        if shift:
            bits = bits_of(values, self._n_samples)
            return int(self._of_units(bits[np.newaxis].astype(np.float64), secret)[0])
        if not ((values == 0) | (values == 1)).all():
            return None
        packed = pack_rows(values)[np.newaxis].astype("<u8", copy=False)
        return int(fingerprints(packed, -(-self._n_samples // 8), secret)[0])

    def _of_units(self, values: NDArray[Any], secret: bytes) -> NDArray[np.uint64]:
        hashes = np.empty(len(values), np.uint64)
        step = max(1, _BLOCK_VALUES // self._n_samples)
        for start in range(0, len(values), step):
            block = slice(start, start + step)
            units = rows_in_units(values[block]).astype("<i4", copy=False)
            hashes[block] = fingerprints(units, 4 * self._n_samples, secret)
        return hashes


def _are_whole(array: NDArray[np.object_]) -> bool:
    whole = (bool, int, np.bool_, np.integer)
    return all(isinstance(value, whole) for value in array.ravel().tolist())
