"""The nats at which limits of all finalists of a batch hold at once by a bootstrap: asymptotic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast.bounds.bootstrap import two_sided_level, vectors_needed
from radabound_fast.rows.moments import moments_of, moments_of_gains
from radabound_fast.rows.signs import SignMatrix
from radabound_fast.rows.studentised import StudentisedSums, signed_sums

Array = NDArray[Any]
Nats = list[float | None]  # one a claim; None: the bootstrap does not speak for it


class Bootstrap:
    """Rademacher signs for the finalists of one batch, and the nats that they give claims.

    Rows are losses, as `rows.moments` has them; delta is the error of all claims of one kind.
    """

    def __init__(self, n_samples: int, delta: float, seed: int) -> None:
        self._n_samples, self._delta = n_samples, delta
        signs = SignMatrix(n_samples, vectors_needed(delta), seed=seed, signs="generated")
        self._sums = StudentisedSums(signs)

    def nats(self, claims: list[tuple[Array, Array | None]]) -> Nats:
        """``ln(2/a)``, a the level of the claims that the bootstrap speaks for.

        They are on the mean losses of rows, or on their gains over a base row.
        """
        m, every, parts = self._n_samples, self._sums.extremes(), [np.empty(0, np.bool_)]
        for rows, base in claims:
            if base is None:
                moments, of_base = moments_of(rows, m), None
                means = moments.means
            else:
                moments = moments_of_gains(rows, base, m)
                means = -moments.means  # T is of a row's loss less the base's
                of_base = signed_sums(self._sums.signs, base[np.newaxis])[0]
            extremes = self._sums.extremes(of_base)
            self._sums.update(rows, [(extremes, means, moments.scales_of_enough(m))])
            every.join(extremes)
            parts.append(moments.enough(m))
        enough = np.concatenate(parts)
        if not enough.any():
            return [None] * len(enough)
        share = self._delta * float(enough.mean())  # the others have theirs by Bonferroni
        nats = math.log(2.0 / two_sided_level(every, share, int(enough.sum())))
        return [nats if is_enough else None for is_enough in enough.tolist()]
