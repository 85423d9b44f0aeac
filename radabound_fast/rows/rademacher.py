"""RademacherAverage: running extremes of the signed sums, and the estimates made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import PackedLosses
from radabound_fast._kernels.support import sealed
from radabound_fast._ownership import Owned
from radabound_fast.rows.packing import as_values, checked_words
from radabound_fast.rows.signs import SignMatrix


class RademacherAverage(Owned):
    """Monte-Carlo estimate of the Rademacher average of every loss vector seen so far.

    For each sign vector sigma_j it keeps the largest and the smallest signed sum
    ``S_j(f) = sum_i sigma_ji f(x_i)``, as exact integers.

    Parameters
    ----------
    signs : SignMatrix
        The sign vectors.

    Notes
    -----
    Real-valued losses are rounded to the nearest multiple of 2**-24 and summed as integers in
    that unit; from the first of them on, `maxima` and `minima` are in it.  They need
    ``n_vectors * n_samples < 2**38``.

    Examples
    --------
    >>> import numpy as np
    >>> average = RademacherAverage(SignMatrix(n_samples=1000, n_vectors=32, seed=0))
    >>> losses = np.random.default_rng(0).integers(0, 2, size=(20, 1000))
    >>> average.update(losses)
    >>> round(average.plain, 4), round(average.half_range, 4)
    (0.0277, 0.0283)
    """

    def __init__(self, signs: SignMatrix) -> None:
        super().__init__()
        if not isinstance(signs, SignMatrix):
            raise TypeError(f"signs must be a SignMatrix, got {type(signs).__name__}")
        self.signs = signs
        self._core = GuardCore(signs.store)

    @sealed
    def update(self, losses: Any) -> None:
        """Take in losses in [0, 1] of any dtype, shape (n_samples,) or (k, n_samples).

        `PackedLosses` are losses of 0 and 1.  Raises ValueError or TypeError, with nothing changed,
        if they are not such losses.
        """
        n_samples = self.signs.n_samples
        if isinstance(losses, PackedLosses):
            words = checked_words(losses, n_samples)
            self._done(self._core.query_many(np.atleast_2d(words), packed=True))
        else:
            values = as_values(losses, n_samples, None)
            self._done(self._core.query_many(np.atleast_2d(values)))

    def _done(self, result: object) -> None:
        if result is None:
            self._check_owner()

    @property
    def n_queries(self) -> int:
        """How many loss vectors were taken in."""
        return self._core.n_rows

    @property
    def maxima(self) -> NDArray[np.int64]:
        """Largest signed sum per vector, int64 of shape (n_vectors,); a copy.

        Raises ValueError before the first update: there is none yet.
        """
        return self._extremes()[0]

    @property
    def minima(self) -> NDArray[np.int64]:
        """Smallest signed sum per vector, as `maxima`."""
        return self._extremes()[1]

    def _extremes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if not self._core.started:
            raise ValueError("there are no extremes before the first update")
        return self._core.extremes()

    @property
    def plain(self) -> float:
        """``sum_j max(0, max_f S_j(f)) / (l m)``, the paper's estimate; 0.0 before any update.

        In units of loss.  It includes the zero function, as Algorithm 1's start at 0 does.
        """
        return int(np.maximum(self.maxima, 0).sum()) / self._cells if self._core.started else 0.0

    @property
    def half_range(self) -> float:
        """``sum_j (max_f S_j(f) - min_f S_j(f)) / (2 l m)``; 0.0 before any update.

        Its mean is the Rademacher average as well, and its standard deviation is smaller: a
        constant added to every loss does not move it.  docs/explanation/theory.md, "The half-range
        estimator".
        """
        if not self._core.started:
            return 0.0
        maxima, minima = self._core.extremes()
        return int((maxima - minima).sum()) / (2 * self._cells)

    @property
    def _cells(self) -> int:
        """l m, in the units of the extremes."""
        return self.signs.n_vectors * self.signs.n_samples << self._core.unit_shift

    def merge(self, other: RademacherAverage) -> None:
        """Take in what another average saw under the same signs; an empty one changes nothing."""
        if not isinstance(other, RademacherAverage):
            raise TypeError(f"other must be a RademacherAverage, got {type(other).__name__}")
        if (self.signs.seed, self.signs.shape) != (other.signs.seed, other.signs.shape):
            raise ValueError(f"other must have the same signs, got {other.signs!r} of another seed")
        self._done(self._core.adopt(other._core.progress()))

    def __repr__(self) -> str:
        return f"RademacherAverage({self.signs!r}, n_queries={self.n_queries})"
