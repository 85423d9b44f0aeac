# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, freethreading_compatible=True, auto_pickle=False, autotestdict=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Exact confidence limits of gains: src/gains, for arrays."""

import numpy as np

from libc.math cimport isnan
from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int64_t
from libc.stdlib cimport free


cdef extern from "kernels/cpu.h":  # which refuses a build that cannot see nan
    pass


cdef extern from "gains/gains.h" nogil:
    struct gain_memory:
        int64_t *least
        size_t capacity
    double gain_limit(double n_plus, double n_minus, double m, double nats, gain_memory *)


def gain_limits(const double[:, ::1] cases not None, double m):
    """Lower limits of p - q of m rows, float64 (n,): see src/gains/gains.h.

    `cases`, float64 (n, 3), are the counts of +1 and of -1, and the nats, from ln 4 to 300, of
    each.
    """
    if cases.shape[1] != 3:
        raise ValueError(f"cases must have 3 columns, got {cases.shape[1]}")
    cdef ptrdiff_t n = cases.shape[0], i
    cdef bint is_full = True
    limits = np.empty(n)
    cdef double[::1] found = limits
    cdef gain_memory memory
    memory.least, memory.capacity = NULL, 0
    with nogil:
        for i in range(n):
            found[i] = gain_limit(cases[i, 0], cases[i, 1], m, cases[i, 2], &memory)
            if isnan(found[i]):
                is_full = False
                break
        free(memory.least)
    if not is_full:
        raise MemoryError
    return limits
