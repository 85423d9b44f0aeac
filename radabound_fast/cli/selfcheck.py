"""A self-check of the kernels, for ``radabound info``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from radabound_fast._kernels.rows import (
    LabelRow,
    active_kernel,
    choose_kernel,
    pack_rows,
    rows_in_units,
)
from radabound_fast.rows import reference
from radabound_fast.rows.rademacher import RademacherAverage
from radabound_fast.rows.signs import SignMatrix


def agrees_with_reference(kernel: str) -> bool:
    """Whether a kernel's signs and signed sums are the reference's, and it refuses nan."""
    chosen = active_kernel()
    choose_kernel(kernel)
    try:
        return _sums_are_right() and _nan_is_refused()
    finally:
        choose_kernel(chosen)


def _sums_are_right() -> bool:
    """One by one and in blocks."""
    rng = np.random.default_rng(0)
    # either side of a word, and of the strides of the widest kernel; a block of 600 queries
    for n_samples, n_vectors, n_queries in [(1, 1, 1), (65, 9, 3), (4097, 33, 600)]:
        losses = rng.integers(0, 2, (n_queries, n_samples), dtype=np.uint8)
        signs = reference.signs(7, n_vectors, n_samples)
        sums = reference.signed_sums(signs, losses)
        matrix = SignMatrix(n_samples, n_vectors, seed=7)
        first, every = RademacherAverage(matrix), RademacherAverage(matrix)
        first.update(losses[0])
        every.update(losses)
        if not (
            np.array_equal(matrix, signs)
            and np.array_equal(first.maxima, sums[0])
            and np.array_equal(every.maxima, sums.max(axis=0))
            and np.array_equal(every.minima, sums.min(axis=0))
        ):
            return False
    return True


def _nan_is_refused() -> bool:
    """Compare a loss as binary, as real-valued, and as a prediction of two classes or of five.

    What is built with ``-ffast-math`` may take it for a number.
    """
    m = 200  # whole words, and a rest
    for dtype, place in product((np.float16, np.float32, np.float64), (0, 63, 130, m - 1)):
        values = np.ones(m, dtype)
        values[place] = np.nan
        two = LabelRow(values.dtype, 0.0, 1.0, m, bits=np.zeros(4, np.uint64))
        five = LabelRow(values.dtype, 0.0, 4.0, m, values=np.zeros(m))
        readers: list[Callable[[], Any]] = [
            partial(pack_rows, values),
            partial(rows_in_units, values),
            partial(pack_rows, values, two),
            partial(pack_rows, values, five),
        ]
        for read in readers:
            try:
                read()
            except ValueError:
                continue
            return False
    return True
