"""Rows in two parts: which rows are in a part, and what belongs to them of an array over all."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast.rows.named import some_rows
from radabound_fast.rows.packing import as_array, bits_of, checked_words


def draw_part(
    n_samples: int,
    share: float,
    seed: int,
    *,
    groups: NDArray[np.int64] | None = None,
    strata: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """Choose a share of the rows by a seeded permutation, bool (n_samples,).

    The same seed chooses the same rows, with every version of NumPy.  The share is in (0, 1]; at 1
    all rows are chosen.  With `groups`, int64 (n_samples,), all of 0 to a largest one, groups are
    chosen whole, and the share is of their number.  With `strata`, int (n_samples,), not beside
    groups, each value has its share of the chosen rows, within one row.

    Both parts have a row, or a group, at least; a single one, which cannot be split, is a
    ValueError. Sizes of groups decide nothing: a part that was filled up to a number of rows would
    end where a large group comes, and be no sample of groups.
    """
    if share == 1.0:
        return np.ones(n_samples, np.bool_)
    units = np.arange(n_samples) if groups is None else groups
    n_units = int(units.max()) + 1
    if n_units < 2:
        what = "row" if groups is None else "group of rows"
        raise ValueError(f"judged must have at least 2 rows or groups to be split, got 1 {what}")
    # the raw stream is the part of NumPy's generators that never changes
    order = np.random.PCG64(seed).random_raw(n_units).argsort(kind="stable")
    n_chosen = size_of_part(n_units, share)
    if strata is not None:
        order = order[strata[order].argsort(kind="stable")]
        steps = (np.arange(n_units + 1) * n_chosen + n_units // 2) // n_units
        order = order[np.diff(steps) > 0]
    is_chosen = np.zeros(n_units, np.bool_)
    is_chosen[order[:n_chosen]] = True
    return is_chosen[units]


def size_of_part(n_units: int, share: float) -> int:
    """Return how many rows, or groups, `draw_part` chooses: the nearest number, halves up."""
    if share == 1.0:
        return n_units
    return max(1, min(math.floor(share * n_units + 0.5), n_units - 1))


def text_of_rows(rows: NDArray[np.bool_]) -> str:
    """Return which rows are chosen as text, a bit a row, which `rows_of_text` reads."""
    return base64.b64encode(np.packbits(rows).tobytes()).decode()


def rows_of_text(text: str, n_samples: int) -> NDArray[np.bool_]:
    """Return the rows that `text_of_rows` wrote, shape (n_samples,)."""
    octets = np.frombuffer(base64.b64decode(text), np.uint8)
    return np.unpackbits(octets, count=n_samples).astype(np.bool_)


class Part:
    """Some of the `n_rows` rows of a holdout: those where `rows`, bool (n_samples,), is True.

    Errors call them by `name`.
    """

    def __init__(self, rows: NDArray[np.bool_], name: str) -> None:
        self.rows, self.n_rows, self._name = rows, int(rows.sum()), name

    def take(self, values: Any, ndim: int, name: str) -> Any:
        """Return the values of these rows, given those of all rows, or of these alone.

        `values`, or packed losses, have shape (n_samples,) or (k, n_samples), as `ndim` says, and
        may have one more axis; messages call them `name`.  ValueError: neither so many as there are
        rows, nor as there are in this part.
        """
        if not self.is_of_all(values, ndim, name):
            return values
        if isinstance(values, PackedLosses):
            n_samples = len(self.rows)
            bits = bits_of(checked_words(values, n_samples, ndim), n_samples)
            return PackedLosses(pack_rows(bits[..., self.rows]), self.n_rows)
        named = some_rows(values, self.rows, ndim)
        if named is not None:
            return named
        array = as_array(values, name)
        if isinstance(values, (list, tuple)) and array.dtype.kind in "UO":  # of several types
            places = np.flatnonzero(self.rows).tolist()
            chosen = [[row[place] for place in places] for row in ([values], values)[ndim - 1]]
            return chosen if ndim == 2 else chosen[0]
        return np.compress(self.rows, array, ndim - 1)

    def is_of_all(self, values: Any, ndim: int, name: str) -> bool:
        """Whether values are of all rows; ValueError unless they are, or of this part's."""
        if isinstance(values, PackedLosses):
            n_values = values.n_samples
        else:
            shape = as_array(values, name).shape
            if len(shape) < ndim:
                raise ValueError(
                    f"{name} must have {counted(ndim, 'dimension')}, got shape {shape}"
                )
            n_values = shape[ndim - 1]
        if n_values not in (len(self.rows), self.n_rows):
            raise ValueError(
                f"{name} must be of all {len(self.rows)} rows, or of the {self.n_rows} "
                f"{self._name} rows, got {n_values}"
            )
        return n_values == len(self.rows)
