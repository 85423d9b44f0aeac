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
    struct gain_level:
        double m, nats, lost
    struct gain_memory:
        int64_t *least
        size_t capacity
    double gain_limit(const gain_level *, double n_plus, double n_minus, double p_low, double q_high,
                      gain_memory *)


def gain_limits(const double[:, ::1] cases not None, double m, double lost):
    """Lower limits of p - q: see src/gains/gains.h.

    Parameters
    ----------
    cases : ndarray of float64, shape (n, 5)
        Of each the counts of +1 and of -1, nats, and the limits of p and q.
    m, lost : float
        What all have in common.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    if cases.shape[1] != 5:
        raise ValueError(f"cases must have 5 columns, got {cases.shape[1]}")
    cdef ptrdiff_t n = cases.shape[0], i
    cdef bint is_full = True
    limits = np.empty(n)
    cdef double[::1] found = limits
    cdef gain_level level
    cdef gain_memory memory
    level.m, level.lost = m, lost
    memory.least, memory.capacity = NULL, 0
    with nogil:
        for i in range(n):
            level.nats = cases[i, 2]
            found[i] = gain_limit(&level, cases[i, 0], cases[i, 1], cases[i, 3], cases[i, 4], &memory)
            if isnan(found[i]):
                is_full = False
                break
        free(memory.least)
    if not is_full:
        raise MemoryError
    return limits
