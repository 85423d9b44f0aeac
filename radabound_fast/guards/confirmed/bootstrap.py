"""The nats at which limits of all finalists of a batch hold at once by a bootstrap: asymptotic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds.bootstrap import two_sided_level, vectors_needed
from radabound_fast.rows.moments import moments_of, moments_of_gains
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedExtremes, StudentisedSums, signed_sums

Array = NDArray[Any]
Nats = list[float | None]  # one a claim; None: the bootstrap does not speak for it


class Bootstrap:
    """Rademacher signs for the finalists of one batch, and the nats that they give claims.

    `rows` are the finalists' losses, as `rows.moments` has them; `delta` is the error of all claims
    of one kind together.
    """

    def __init__(self, rows: Array, n_samples: int, delta: float, seed: int) -> None:
        self._rows, self._n_samples, self._delta = rows, n_samples, delta
        signs = SignMatrix(n_samples, vectors_needed(delta), seed=seed, signs="generated")
        self._sums = StudentisedSums(signs)

    def of_values(self) -> Nats:
        """Nats for limits of the mean losses."""
        return self._nats([self._claims(self._rows, None)])

    def of_gains(self, baseline: Array) -> Nats:
        """Nats for limits of the gains over a baseline, given its row of losses."""
        return self._nats([self._claims(self._rows, baseline)])

    def of_pairs(self) -> Nats:
        """Nats for limits of the gains over each other, in order of `itertools.combinations`."""
        rows = self._rows
        return self._nats([self._claims(rows[n:], row) for n, row in enumerate(rows[:-1], 1)])

    def _claims(
        self, rows: Array, base: Array | None
    ) -> tuple[StudentisedExtremes, NDArray[np.bool_]]:
        """The extremes of claims on rows, and for which of them the bootstrap speaks."""
        m, of_base = self._n_samples, None
        if base is None:
            moments = moments_of(rows, m)
            means = moments.means
        else:
            moments = moments_of_gains(rows, base, m)
            means = -moments.means  # T is of a row's loss less the base's
            of_base = signed_sums(self._sums.signs, base[np.newaxis])[0]
        extremes = self._sums.extremes(of_base)
        self._sums.update(rows, [(extremes, means, moments.scales_of_enough(m))])
        return extremes, moments.enough(m)

    def _nats(self, claims: list[tuple[StudentisedExtremes, NDArray[np.bool_]]]) -> Nats:
        """``ln(2/a)``, a the level of the claims that the bootstrap speaks for."""
        enough = np.concatenate([np.empty(0, np.bool_), *(mask for _, mask in claims)])
        if not enough.any():
            return [None] * len(enough)
        extremes = claims[0][0].copy()
        for other, _ in claims[1:]:
            extremes.join(other)
        share = self._delta * float(enough.mean())  # the others have theirs by Bonferroni
        nats = math.log(2.0 / two_sided_level(extremes, share, int(enough.sum())))
        return [nats if is_enough else None for is_enough in enough.tolist()]
