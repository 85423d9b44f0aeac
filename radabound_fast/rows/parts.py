"""Rows in two parts: which rows are in a part, and what belongs to them of an array over all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import counted
from radabound_fast._kernels.rows import PackedLosses, pack_rows
from radabound_fast.rows.named import some_rows
from radabound_fast.rows.packing import as_array, checked_words


def draw_part(
    n_samples: int,
    share: float,
    seed: int,
    *,
    groups: NDArray[np.int64] | None = None,
    strata: NDArray[Any] | None = None,
) -> NDArray[np.bool_]:
    """Choose a share of the rows by a seeded permutation.

    Parameters
    ----------
    n_samples : int
    share : float
        In (0, 1]; at 1 all rows are chosen.
    seed : int
        The same seed chooses the same rows, with every version of NumPy.
    groups : ndarray of int64, shape (n_samples,), optional
        From 0; groups are chosen whole, as many as fit, and one at least.
    strata : ndarray of int, shape (n_samples,), optional
        Each value has its share of the chosen rows, within one row.

    Returns
    -------
    ndarray of bool, shape (n_samples,)

    Raises
    ------
    ValueError
        No row, or no group, would be left on one side.
    """
    if share == 1.0:
        return np.ones(n_samples, np.bool_)
    units = np.arange(n_samples) if groups is None else groups
    sizes = np.bincount(units)
    if len(sizes) < 2:
        what = "row" if groups is None else "group of rows"
        raise ValueError(f"judged must have at least 2 rows or groups to be split, got 1 {what}")
    # the raw stream is the part of NumPy's generators that never changes
    order = np.random.PCG64(seed).random_raw(len(sizes)).argsort(kind="stable")
    wanted = share * n_samples
    if strata is None:
        n_chosen = int(np.searchsorted(sizes[order].cumsum(), wanted + 0.5, "right"))
        chosen = order[: min(max(n_chosen, 1), len(sizes) - 1)]
    else:
        order = order[strata[order].argsort(kind="stable")]
        steps = np.floor(np.arange(n_samples + 1) * share + 0.5)
        chosen = order[np.diff(steps) > 0]
    is_chosen = np.zeros(len(sizes), np.bool_)
    is_chosen[chosen] = True
    return is_chosen[units]


class Part:
    """Some of the rows of a holdout.

    Parameters
    ----------
    rows : ndarray of bool, shape (n_samples,)
        Whether each row is one of them.
    name : str
        What errors call them.

    Attributes
    ----------
    rows : ndarray of bool, shape (n_samples,)
    n_rows : int
    """

    def __init__(self, rows: NDArray[np.bool_], name: str) -> None:
        self.rows, self.n_rows, self._name = rows, int(rows.sum()), name

    def take(self, values: Any, ndim: int, name: str) -> Any:
        """Return the values of these rows, given those of all rows, or of these alone.

        Parameters
        ----------
        values : array_like, shape (n_samples,) or (k, n_samples), may have one more axis; packed
        ndim : {1, 2}
            Whether the first axis, or the second, goes over the rows.
        name : str
            What messages call them.

        Raises
        ------
        ValueError
            Neither so many values as there are rows, nor as there are in this part.
        """
        if not self.is_of_all(values, ndim, name):
            return values
        if isinstance(values, PackedLosses):
            n_samples = len(self.rows)
            words = np.ascontiguousarray(checked_words(values, n_samples, ndim), "<u8")
            bits = np.unpackbits(words.view(np.uint8), axis=-1, count=n_samples, bitorder="little")
            return PackedLosses(pack_rows(bits[..., self.rows]), self.n_rows)
        named = some_rows(values, self.rows, ndim)
        if named is not None:
            return named
        array = as_array(values, name)
        if isinstance(values, (list, tuple)) and array.dtype.kind in "UO":  # of several types
            places = np.flatnonzero(self.rows).tolist()
            taken = [[row[place] for place in places] for row in ([values], values)[ndim - 1]]
            return taken if ndim == 2 else taken[0]
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
