"""What `guard` takes from `rows`; strangers may cimport what __init__.pxd has."""

cimport cython
cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t

from radabound_fast._kernels.c_kernels cimport instruction_set, kernel, packer, source
from radabound_fast._kernels.c_scan cimport loss_rows, sign_store

cdef const instruction_set *chosen  # which objects made from now on use


@cython.final
cdef class PackedLosses:
    cdef readonly cnp.ndarray words
    cdef readonly int64_t n_samples


@cython.final
cdef class LabelRow:
    cdef source rule  # what it says of values means nothing
    cdef cnp.ndarray _memory


@cython.final
cdef class LabelRows:
    cdef list _of_type
    cdef int64_t _n_samples

    cpdef find(self, values, int ndim)


cdef extern from *:
    struct hidden_store "sign_store":
        pass


@cython.final
cdef class SignStore:
    cdef hidden_store *_store
    cdef readonly object seed
    cdef object _memory  # owns the stored lines

    cdef int64_t n_lanes(self) noexcept nogil
    cdef int64_t count(self, const uint64_t *words, int64_t *counts) noexcept nogil


cdef inline sign_store *store_of(SignStore signs) noexcept nogil:
    return <sign_store *>signs._store


cdef bint lie_as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                      int ndim, int64_t n_samples, bint packed) except -1
cdef object as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                    int ndim, int64_t n_samples, bint packed)
cdef raise_too_large(const sign_store *signs)
cdef raise_unreadable(loss_rows *rows, const sign_store *signs, ptrdiff_t row, int64_t sample)
cdef cnp.ndarray filled_lines(const kernel *kernel, const sign_store *store)
cdef cnp.ndarray aligned_int64(int64_t n)
