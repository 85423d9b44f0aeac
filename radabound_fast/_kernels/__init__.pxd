"""What another Cython module may cimport: the signs, and exact counts of packed rows.

    from radabound_fast._kernels cimport SignStore

    cdef int64_t counts[...]                       # store.n_lanes of them
    total = store.count(words, counts)             # no GIL needed
    # S_j = 2 * counts[j] - total
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t


cdef extern from *:
    """
    struct sign_store;
    """
    struct hidden_store "sign_store":  # src/scan/tiles.h says what is in it
        pass


@cython.final
cdef class SignStore:
    cdef hidden_store *_store
    cdef readonly object seed
    cdef object _memory  # owns the stored lines

    # the counts' length: n_vectors rounded up to a multiple of eight
    cdef int64_t n_lanes(self) noexcept nogil
    # counts[j] = popcount(signs of vector j & words); returns popcount(words), or -1 if a bit is
    # set past the last sample.  words: ceil(n_samples / 64) of them, 8-byte aligned
    cdef int64_t count(self, const uint64_t *words, int64_t *counts) noexcept nogil
