"""What `guard` and `studentised` take from `scratch`."""

cimport cython
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t

from radabound_fast._kernels.c_kernels cimport LINE_BYTES, kernel, sliced_kernel, sliced_plan
from radabound_fast._kernels.c_scan cimport (
    chunk_of_rows, loss_rows, sliced_memory, work_on_rows,
)
from radabound_fast._kernels.rows cimport SignStore


cdef inline void *on_a_line(void *memory) noexcept nogil:
    """The first whole cache line in `memory`: what straddles two lines takes longer."""
    return <void *>((<size_t>memory + LINE_BYTES - 1) & ~<size_t>(LINE_BYTES - 1))


@cython.final
cdef class SlicedPlan:
    cdef const sliced_kernel *kernel
    cdef sliced_plan *plan

    @staticmethod
    cdef SlicedPlan of(const kernel *kernel, const sliced_kernel *sliced, SignStore signs)


@cython.final
cdef class SlicedMemory:
    cdef sliced_memory sliced
    cdef SlicedPlan plan
    cdef void *_memory


@cython.final
cdef class Scratch:
    cdef work_on_rows work
    cdef chunk_of_rows chunk
    cdef SignStore _signs
    cdef SlicedMemory _blocks
    cdef void *_memory

    @staticmethod
    cdef Scratch of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                    ptrdiff_t n_rows, SlicedPlan plan)
