"""A self-check of the kernels, for ``radabound info``."""

from __future__ import annotations

import numpy as np

from radabound_fast import RademacherAverage, SignMatrix, _kernel, reference


def agrees_with_reference(kernel: str) -> bool:
    """Whether a kernel's signs and signed sums, one by one and in blocks, are the reference's."""
    chosen = _kernel.active_kernel()
    rng = np.random.default_rng(0)
    _kernel.choose_kernel(kernel)
    try:
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
    finally:
        _kernel.choose_kernel(chosen)
    return True
