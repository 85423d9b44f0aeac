"""StudentisedExtremes: signed sums over their standard deviations, their extremes per vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.guard import signed_sums_of_rows
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast.rows.signs import SignMatrix

Floats = NDArray[np.float64]

_BLOCK_SUMS = 2**18  # sums that become floats at a time: they stay in the second cache


class StudentisedExtremes:
    """Largest and smallest studentised signed sum of the rows seen so far, for each sign vector.

    For a row of losses f with mean mu and a scale r, and sign vector sigma_j::

        T_j(f) = (S_j(f) - S_j(b) - mu * sum_i sigma_ji) * r,    S_j(f) = sum_i sigma_ji f_i

    b is a baseline, or nothing; then mu and r are those of the differences f - b.  With
    ``r = 1 / sqrt(sum_i (f_i - mu)^2)`` the law of T_j given the losses has variance 1.

    Parameters
    ----------
    signs : SignMatrix
    baseline : ndarray of float64, shape (n_vectors,), optional
        The baseline's signed sums, in units of one loss.

    Attributes
    ----------
    highest, lowest : ndarray of float64, shape (n_vectors,)
        They start at 0, as if a model without errors had been seen, whose sums are all 0.

    Notes
    -----
    Sums are exact integers (in units of 2**-24 for real-valued losses); what follows is float64,
    in the order in which it is written here.
    """

    def __init__(self, signs: SignMatrix, baseline: Floats | None = None) -> None:
        self.signs = signs
        self.sign_sums = sums_of_signs(signs)
        self.baseline = np.zeros(signs.n_vectors) if baseline is None else baseline
        self.highest = np.zeros(signs.n_vectors)
        self.lowest = np.zeros(signs.n_vectors)

    def update(self, rows: NDArray[Any], means: Floats, scales: Floats) -> None:
        """Take in rows of losses.

        Parameters
        ----------
        rows : ndarray, uint64 of shape (k, n_words) or float32 of shape (k, n_samples)
            Packed losses, or losses that are multiples of 2**-24 in [0, 1].
        means, scales : ndarray of float64, shape (k,)
            mu and r of each row; a scale of 0 leaves a row out.
        """
        step = max(1, _BLOCK_SUMS // self.signs.n_vectors)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            values = self.values(rows[part], means[part], scales[part])
            np.maximum(self.highest, values.max(axis=0), out=self.highest)
            np.minimum(self.lowest, values.min(axis=0), out=self.lowest)

    def values(self, rows: NDArray[Any], means: Floats, scales: Floats) -> Floats:
        """T_j of rows, float64 of shape (k, n_vectors); parameters as for `update`."""
        centred = signed_sums(self.signs, rows) - self.baseline
        centred -= means[:, np.newaxis] * self.sign_sums
        return np.asarray(centred * scales[:, np.newaxis], np.float64)


def signed_sums(signs: SignMatrix, rows: NDArray[Any]) -> Floats:
    """S_j of rows in units of one loss: float64 of shape (k, n_vectors), exact below 2**53."""
    packed = rows.dtype == np.uint64
    sums, _, shift = signed_sums_of_rows(signs.store, rows, packed=packed)
    exact: Floats = np.ldexp(sums.astype(np.float64), -shift)
    return exact


def sums_of_signs(signs: SignMatrix) -> Floats:
    """The sum of each sign vector: the signed sums of a row that errs everywhere."""
    ones = PackedLosses(_all_ones(signs.n_samples), signs.n_samples)
    (sums,) = signed_sums(signs, ones.words)
    return np.asarray(sums)


def _all_ones(n_samples: int) -> NDArray[np.uint64]:
    words = np.full((1, -(-n_samples // 64)), ~np.uint64(0))
    if n_samples % 64:
        words[0, -1] = np.uint64(2 ** (n_samples % 64) - 1)
    return words


def raise_maxima(
    maxima: Floats, sums: Floats, others: Floats, means: Floats, scales: Floats, sign_sums: Floats
) -> None:
    """Raise the maxima of one model's studentised differences by those from further models.

    Parameters
    ----------
    maxima : ndarray of float64, shape (n_vectors,)
        Changed in place.
    sums : ndarray of float64, shape (n_vectors,)
        The model's signed sums.
    others : ndarray of float64, shape (k, n_vectors)
        Those of the other models.
    means, scales : ndarray of float64, shape (k,)
        Of the differences, the model's loss less the other's; a scale of 0 leaves a model out.
    sign_sums : ndarray of float64, shape (n_vectors,)
    """
    if len(others):
        centred = sums - others - means[:, np.newaxis] * sign_sums
        np.maximum(maxima, (centred * scales[:, np.newaxis]).max(axis=0), out=maxima)
