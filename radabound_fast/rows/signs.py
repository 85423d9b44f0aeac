"""SignMatrix: l random sign vectors of length m, a function of the seed."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from radabound_fast._checks import check_choice, check_n_samples, check_n_vectors, check_seed
from radabound_fast._kernels.rows import SignStore

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
    >>> part = signs[1:3, 64:]        # vectors, samples
    >>> bool((np.asarray(part) == np.asarray(signs)[1:3, 64:]).all())
    True
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
        self._first_vector, self._first_word = 0, 0
        self.store = SignStore(seed, n_samples, n_vectors, stored=signs == "stored")

    @property
    def n_samples(self) -> int:
        """m, the length of a sign vector."""
        return self.store.n_samples

    @property
    def n_vectors(self) -> int:
        """l, how many sign vectors there are."""
        return self.store.n_vectors

    @property
    def seed(self) -> int:
        """The seed, given or drawn."""
        return self.store.seed

    @property
    def shape(self) -> tuple[int, int]:
        """(n_vectors, n_samples)."""
        return self.n_vectors, self.n_samples

    @property
    def _identity(self) -> tuple[int, ...]:
        """Equal for two objects exactly if their signs are the same part of the same stream."""
        return (self.seed, *self.shape, self._first_vector, self._first_word)

    @property
    def nbytes(self) -> int:
        """Bytes that the signs take in memory; 0 if they are generated."""
        return self.store.nbytes

    def __getitem__(self, key: tuple[slice, slice]) -> SignMatrix:
        """Some of the vectors and samples: ``signs[vectors, samples]``, two slices of step 1.

        The samples must start at a multiple of 64.  The part's signs equal those of the whole,
        so sums over parts add up to sums over the whole.
        """
        if not (isinstance(key, tuple) and len(key) == 2):
            raise TypeError(f"signs are sliced as signs[vectors, samples], got {key!r}")
        vectors = _bounds(key[0], self.n_vectors, "vectors")
        samples = _bounds(key[1], self.n_samples, "samples")
        if samples[0] % WORD_BITS:
            raise ValueError(f"samples must start at a multiple of 64, got {samples[0]}")
        part = SignMatrix.__new__(SignMatrix)
        part._first_vector = self._first_vector + vectors[0]
        part._first_word = self._first_word + samples[0] // WORD_BITS
        part.store = SignStore(
            self.seed,
            samples[1] - samples[0],
            vectors[1] - vectors[0],
            stored=self.store.stored,
            first_vector=part._first_vector,
            first_word=part._first_word,
        )
        return part

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
            bits = self.words(j).astype("<u8", copy=False).view(np.uint8)
            out[j] = np.unpackbits(bits, count=self.n_samples, bitorder="little")
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


def _bounds(part: Any, length: int, name: str) -> tuple[int, int]:
    if not isinstance(part, slice):
        raise TypeError(f"{name} must be a slice, got {part!r}")
    start, stop, step = part.indices(length)
    if step != 1 or stop <= start:
        raise ValueError(f"{name} must be a non-empty slice of step 1, got {part!r}")
    return start, stop
