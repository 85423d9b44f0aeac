"""What `guard` takes from `rows`; strangers may cimport what __init__.pxd has."""

cimport cython
cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t

from radabound_fast._kernels.c_sources cimport (
    LINE_BYTES, chunk_of_rows, instruction_set, kernel, loss_rows, packer, sign_store,
    sliced_kernel, sliced_memory, sliced_plan, source, work_on_rows,
)

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


cdef inline void *on_a_line(void *memory) noexcept nogil:
    """The first whole cache line in `memory`: what straddles two lines takes longer."""
    return <void *>((<size_t>memory + LINE_BYTES - 1) & ~<size_t>(LINE_BYTES - 1))


@cython.final
cdef class SlicedPlan:
    cdef const sliced_kernel *kernel
    cdef sliced_plan *plan

    @staticmethod
    cdef SlicedPlan of(const instruction_set *set, SignStore signs)


@cython.final
cdef class Scratch:
    cdef work_on_rows work
    cdef chunk_of_rows chunk
    cdef sliced_memory sliced
    cdef SignStore _signs
    cdef SlicedPlan _plan
    cdef void *_memory

    @staticmethod
    cdef Scratch of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                    ptrdiff_t n_rows, SlicedPlan plan)


cdef class Worker:
    cdef Scratch scratch
    cdef ptrdiff_t first, last
    cdef loss_rows _rows
    cdef object _memory_of_rows
    cdef object _at_work  # a lock: taken from when the work begins until it is done

    cdef int prepare(self, const instruction_set *set, SignStore signs, const loss_rows *rows,
                     object memory, ptrdiff_t n_rows, SlicedPlan plan) except -1
    cdef void judge(self) noexcept nogil


cdef int run_workers(list workers) except -1
cdef bint lie_as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                      int ndim, int64_t n_samples, bint packed) except -1
cdef object as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                    int ndim, int64_t n_samples, bint packed)
cdef raise_too_large(const sign_store *signs)
cdef raise_unreadable(loss_rows *rows, const sign_store *signs, ptrdiff_t row, int64_t sample)
cdef cnp.ndarray aligned_int64(int64_t n)
