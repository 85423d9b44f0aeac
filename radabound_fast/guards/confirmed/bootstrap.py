"""The nats at which limits of all finalists of a batch hold at once by a bootstrap: asymptotic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds.bootstrap import two_sided_level, vectors_needed
from radabound_fast.rows.moments import Moments, moments_of, moments_of_gains
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedExtremes, StudentisedSums, signed_sums

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Nats = list[float | None]  # one a claim; None: the bootstrap does not speak for it


class Bootstrap:
    """Rademacher signs for the finalists of one batch, and the nats that they give claims.

    Parameters
    ----------
    rows : ndarray, shape (k, n_words) of uint64, or (k, n_samples) of float32
        Losses of the finalists, as `rows.moments` has them.
    n_samples : int
    delta : float
        The error of all claims of one kind together.
    seed : int
        Of the signs.
    """

    def __init__(self, rows: Array, n_samples: int, delta: float, seed: int) -> None:
        self._rows, self._n_samples, self._delta = rows, n_samples, delta
        self._signs = SignMatrix(n_samples, vectors_needed(delta), seed=seed, signs="generated")
        self._sums = StudentisedSums(self._signs)

    def of_values(self) -> Nats:
        """Nats for limits of the mean losses."""
        moments = moments_of(self._rows, self._n_samples)
        return self._nats([self._widened(None, self._rows, moments, moments.means)])

    def of_gains(self, baseline: Array) -> Nats:
        """Nats for limits of the gains over a baseline, given its row of losses."""
        return self._nats([self._against(baseline, self._rows)])

    def of_pairs(self) -> Nats:
        """Nats for limits of the gains over each other, in order of `itertools.combinations`."""
        rows = self._rows
        return self._nats([self._against(row, rows[n:]) for n, row in enumerate(rows[:-1], 1)])

    def _against(self, base: Array, rows: Array) -> tuple[StudentisedExtremes, Mask]:
        gains = moments_of_gains(rows, base, self._n_samples)
        # T is of a row's loss less the base's
        return self._widened(base, rows, gains, -gains.means)

    def _widened(
        self, base: Array | None, rows: Array, moments: Moments, means: Array
    ) -> tuple[StudentisedExtremes, Mask]:
        """The extremes of some claims, and for which of them the bootstrap speaks."""
        of_base = None if base is None else signed_sums(self._signs, base[np.newaxis])[0]
        extremes = self._sums.extremes(of_base)
        self._sums.update(rows, [(extremes, means, moments.scales_of_enough(self._n_samples))])
        return extremes, moments.enough(self._n_samples)

    def _nats(self, parts: list[tuple[StudentisedExtremes, Mask]]) -> Nats:
        """``ln(2/a)``, a the level of the claims that the bootstrap speaks for."""
        enough = np.concatenate([mask for _, mask in parts]) if parts else np.empty(0, np.bool_)
        if not enough.any():
            return [None] * len(enough)
        extremes = parts[0][0].copy()
        for other, _ in parts[1:]:
            extremes.join(other)
        share = self._delta * float(enough.mean())  # the others have theirs by Bonferroni
        nats = math.log(2.0 / two_sided_level(extremes, share, int(enough.sum())))
        return [nats if is_enough else None for is_enough in enough.tolist()]
