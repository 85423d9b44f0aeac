"""SignMatrix: l random sign vectors of length m, a function of the seed."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice, check_n_samples, check_n_vectors, check_seed
from radabound_fast._kernels.rows import SignStore
from radabound_fast.rows.packing import bits_of

WORD_BITS = 64

# sums of extremes are int64, and a half-range sums two of them per vector
MAX_CELLS = 2**62


class SignMatrix:
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
        """The signs of one vector as bits, uint64 of shape (ceil(n_samples / 64),).

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
