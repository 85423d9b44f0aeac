"""StudentisedExtremes: signed sums over their standard deviations, their extremes per vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.rows import pack_rows, signed_sums_of_rows
from radabound_fast._kernels.studentised import StudentisedScan
from radabound_fast.rows.signs import SignMatrix

Floats = NDArray[np.float64]


class StudentisedExtremes:
    """Largest and smallest studentised signed sum of rows, for each sign vector.

    For a row of losses f with mean mu and a scale r, and sign vector sigma_j::

        T_j(f) = ((S_j(f) - S_j(b)) - mu * sum_i sigma_ji) * r,    S_j(f) = sum_i sigma_ji f_i

    b is a baseline, or nothing; then mu and r are those of the differences f - b.  With
    ``r = 1 / sqrt(sum_i (f_i - mu)^2)`` the law of T_j given the losses has variance 1.

    `highest` and `lowest`, float64 (n_vectors,), start at 0, as if a model without errors had been
    seen, whose sums are all 0.
    """

    def __init__(self, n_vectors: int, offsets: Floats) -> None:
        self._n_vectors, self._offsets = n_vectors, offsets
        self._highest, self._lowest = np.zeros_like(offsets), np.zeros_like(offsets)

    @property
    def highest(self) -> Floats:
        return self._highest[: self._n_vectors]

    @property
    def lowest(self) -> Floats:
        return self._lowest[: self._n_vectors]

    def copy(self) -> StudentisedExtremes:
        """Extremes of their own, the same for now."""
        other = StudentisedExtremes(self._n_vectors, self._offsets)
        other._highest[:], other._lowest[:] = self._highest, self._lowest
        return other

    def join(self, other: StudentisedExtremes) -> None:
        """Take in what other extremes, of the same signs, have seen."""
        np.maximum(self._highest, other._highest, out=self._highest)
        np.minimum(self._lowest, other._lowest, out=self._lowest)


class StudentisedSums:
    """Signs, and rows of losses through them into studentised extremes.

    Sums are exact integers (in units of 2**-24 for real-valued losses); what follows is float64, in
    the order in which `StudentisedExtremes` has it, on every kernel.
    """

    def __init__(self, signs: SignMatrix) -> None:
        self.signs = signs
        self._sign_sums = sums_of_signs(signs)
        self._scan = StudentisedScan(signs.store)

    def extremes(self, baseline: Floats | None = None) -> StudentisedExtremes:
        """Return extremes of no rows yet.

        `baseline` is a baseline's `signed_sums`, float64 (n_lanes,).
        """
        offsets = np.zeros_like(self._sign_sums) if baseline is None else baseline
        return StudentisedExtremes(self.signs.n_vectors, offsets)

    def update(
        self,
        rows: NDArray[Any],
        into: Sequence[tuple[StudentisedExtremes, Floats, Floats]],
        n_threads: int = 1,
    ) -> None:
        """Take rows of losses in; the sums are made once for one or two extremes.

        `rows` are packed losses, uint64 (k, n_words), or losses that are multiples of 2**-24 in [0,
        1], float32 (k, n_samples).  `into` has a tuple (extremes, means, scales) for each: mu and r
        of each row, float64 (k,); a scale of 0 leaves a row out.
        """
        ways = []
        for extremes, means, scales in into:
            both = extremes._highest, extremes._lowest  # of whole strips
            each = np.ascontiguousarray(means), np.ascontiguousarray(scales)
            ways.append((extremes._offsets, self._sign_sums, *both, *each))
        packed = rows.dtype == np.uint64
        self._scan.update(rows, ways, packed=packed, n_threads=n_threads)


def signed_sums(signs: SignMatrix, rows: NDArray[Any]) -> Floats:
    """S_j of rows in units of one loss: float64 of shape (k, n_lanes), exact below 2**53.

    n_lanes is n_vectors, rounded up to a multiple of 8; sums past n_vectors are 0.
    """
    packed = rows.dtype == np.uint64
    sums, _, shift = signed_sums_of_rows(signs.store, rows, packed=packed)
    exact = np.zeros((len(rows), -(-signs.n_vectors // 8) * 8))
    np.ldexp(sums, -shift, out=exact[:, : signs.n_vectors], dtype=np.float64)
    return exact


def sums_of_signs(signs: SignMatrix) -> Floats:
    """The sum of each sign vector: the signed sums of a row that errs everywhere."""
    (sums,) = signed_sums(signs, pack_rows(np.ones((1, signs.n_samples), np.bool_)))
    return np.asarray(sums)
