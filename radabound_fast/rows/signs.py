"""SignMatrix, l random sign vectors of length m; RademacherAverage, losses under such signs."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice, check_n_samples, check_n_vectors, check_seed
from radabound_fast._kernels.guard import GuardCore
from radabound_fast._kernels.rows import PackedLosses, SignStore
from radabound_fast._kernels.support import sealed
from radabound_fast._ownership import Owned, SetOnce
from radabound_fast.rows.packing import as_values, bits_of, checked_words

WORD_BITS = 64

# sums of extremes are int64, and a half-range sums two of them per vector
MAX_CELLS = 2**62


class SignMatrix(SetOnce):
    """The sign vectors sigma_1 .. sigma_l: independent fair signs, fixed by the seed.

    Bit b of word w of vector j is the sign of sample 64 w + b, 1 meaning +1:
    ``word(j, w) = mix64(base + G (j 2**40 + w + 1))`` with ``base = mix64(seed + G)``,
    SplitMix64's output function ``mix64`` and ``G = 0x9E3779B97F4A7C15``, all modulo 2**64.
    The stream depends on neither m nor l, and is a promise: a seed gives the same signs in
    every version and on every machine.

    Parameters
    ----------
    n_samples : int
        m, the length of a sign vector; 1 to 2**40.
    n_vectors : int, default 32
        l, how many there are; 1 to 2**23.
    seed : int, optional
        0 to 2**64 - 1.  None draws one from the operating system.  Whoever chooses the queries
        must not know it.
    signs : {"stored", "generated"}, default "stored"
        Whether the signs are kept in memory, ``n_vectors * n_samples / 8`` bytes, or made anew,
        tile by tile, whenever they are needed.  The results are equal.

    Attributes
    ----------
    n_samples, n_vectors, seed : int
        As passed; the seed may be drawn.
    shape : tuple of int
        (n_vectors, n_samples).
    nbytes : int
        Bytes that the signs take in memory; 0 if they are generated.

    Raises
    ------
    TypeError, ValueError
        An argument is of the wrong type or out of its range; the message says which and why.
    MemoryError
        The signs are to be stored and take more than the machine's memory; nothing has been
        allocated.

    Examples
    --------
    >>> signs = SignMatrix(n_samples=100, n_vectors=4, seed=7)
    >>> np.asarray(signs).shape
    (4, 100)
    """

    _set_once = frozenset({"store", "n_samples", "n_vectors", "seed", "shape", "nbytes"})

    def __init__(
        self,
        n_samples: int,
        n_vectors: int = 32,
        *,
        seed: int | None = None,
        signs: Literal["stored", "generated"] = "stored",
    ) -> None:
        n_samples = check_n_samples(n_samples)
        n_vectors = check_n_vectors(n_vectors)
        if n_samples * n_vectors >= MAX_CELLS:
            raise ValueError(
                f"n_vectors * n_samples must be less than 2**62, got {n_vectors} * {n_samples}"
            )
        check_choice(("stored", "generated"), signs=signs)
        seed = check_seed(seed)
        if signs == "stored":
            check_memory(n_samples, n_vectors)
        self.store = SignStore(seed, n_samples, n_vectors, stored=signs == "stored")
        self.n_samples, self.n_vectors, self.seed = n_samples, n_vectors, seed
        self.shape, self.nbytes = (n_vectors, n_samples), self.store.nbytes

    def words(self, vector: int) -> NDArray[np.uint64]:
        """The signs of a `vector`, from 0, as bits, uint64 of shape (ceil(n_samples / 64),).

        Bits past n_samples are the stream's.
        """
        if not 0 <= vector < self.n_vectors:
            raise IndexError(f"vector must be in [0, {self.n_vectors}), got {vector}")
        return self.store.words(vector)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """int8 of +1 and -1, shape (n_vectors, n_samples)."""
        if copy is False:
            raise ValueError("copy must not be False: the signs are kept as bits")
        out = np.empty(self.shape, np.int8)
        for j in range(self.n_vectors):
            out[j] = bits_of(self.words(j), self.n_samples)
        out *= 2
        out -= 1
        return out if dtype is None else out.astype(dtype)

    def __repr__(self) -> str:
        # the seed decides what the guard hides, so it stays out of logs
        return f"SignMatrix(n_samples={self.n_samples}, n_vectors={self.n_vectors})"


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
        """Take in `losses` in [0, 1] of any dtype, shape (n_samples,) or (k, n_samples).

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
        """Take in what `other` saw under the same signs; an empty one changes nothing."""
        if not isinstance(other, RademacherAverage):
            raise TypeError(f"other must be a RademacherAverage, got {type(other).__name__}")
        if (self.signs.seed, self.signs.shape) != (other.signs.seed, other.signs.shape):
            raise ValueError(f"other must have the same signs, got {other.signs!r} of another seed")
        self._done(self._core.adopt(other._core.progress()))

    def __repr__(self) -> str:
        return f"RademacherAverage({self.signs!r}, n_queries={self.n_queries})"


def check_memory(n_samples: int, n_vectors: int) -> None:
    """Refuse signs that cannot fit, before a system that promises memory it lacks says yes."""
    if not hasattr(os, "sysconf"):  # Windows promises only what it has
        return
    needed = n_vectors * n_samples // 8
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > physical:
        raise MemoryError(
            f"stored signs for n_samples = {n_samples} and n_vectors = {n_vectors} take "
            f"{needed / 2**30:.1f} GiB, and this machine has {physical / 2**30:.1f}: "
            'signs="generated" takes none'
        )
