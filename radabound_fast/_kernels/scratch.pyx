# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, freethreading_compatible=True, auto_pickle=False, autotestdict=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""One thread's memory for the rows of a call, and the tables of the signs for blocks."""

cimport cython
cimport numpy as cnp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from radabound_fast._kernels.c_kernels cimport (
    LINE_BYTES, kernel, sliced_kernel, sliced_plan_free, sliced_plan_new, sliced_scratch_free,
    sliced_scratch_new,
)
from radabound_fast._kernels.c_scan cimport (
    CHUNK_ROWS, ROW_TILE_WORDS, TILE_WORDS, UNIT_TILE_ROWS, loss_rows, sign_store,
)
from radabound_fast._kernels.rows cimport SignStore, filled_lines, store_of

cnp.import_array()


@cython.final
cdef class Scratch:
    """One thread's memory for the rows of a call: at most 1 MB, unless one row needs more.

    `work` is complete but for the state, and for where totals and complexities are to go.
    """

    @staticmethod
    cdef Scratch of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                     ptrdiff_t n_rows, SlicedPlan plan):
        cdef Scratch self = Scratch.__new__(Scratch)
        cdef int64_t n_lanes = signs.n_lanes()
        cdef ptrdiff_t workspace = kernel.workspace_bytes if n_rows > 1 else 0
        cdef ptrdiff_t tile = 0
        self.chunk.tile_rows = min(CHUNK_ROWS, n_rows)
        if not rows.in_place:
            tile = 8 * max(self.chunk.tile_rows * TILE_WORDS,
                           min(UNIT_TILE_ROWS, n_rows) * ROW_TILE_WORDS)
        cdef ptrdiff_t fits = ((1 << 20) - workspace - tile) // (8 * (n_lanes + 1))
        cdef ptrdiff_t capacity = max(1, min(min(CHUNK_ROWS, n_rows), fits))
        self._memory = malloc(workspace + tile + (2 * n_lanes + capacity * (n_lanes + 1)) * 8
                              + LINE_BYTES)
        if self._memory == NULL:
            raise MemoryError
        self.chunk.workspace = on_a_line(self._memory) if workspace > 0 else NULL
        self.chunk.tile = <char *>on_a_line(self._memory) + workspace
        self.chunk.before = <int64_t *>(<char *>self.chunk.tile + tile)
        self.chunk.totals = self.chunk.before + 2 * n_lanes
        self.chunk.counts = self.chunk.totals + capacity
        self.chunk.capacity = capacity
        self.work.kernel = kernel
        self._signs = signs  # a thread may outlive the call, and the guard
        self.work.signs = store_of(signs)
        self.work.rows = rows
        self.work.chunk = &self.chunk
        if plan is not None:
            self._blocks = SlicedMemory(plan, 0 if rows.in_place else self.work.signs.n_words)
            self.work.sliced = &self._blocks.sliced
        return self

    def __dealloc__(self):
        free(self._memory)


@cython.final
cdef class SlicedPlan:
    """The index tables of the signs for bit-sliced blocks: read-only, shared by threads."""

    @staticmethod
    cdef SlicedPlan of(const kernel *kernel, const sliced_kernel *sliced, SignStore signs):
        cdef SlicedPlan self = SlicedPlan.__new__(SlicedPlan)
        cdef const sign_store *store = store_of(signs)
        cdef object buffer = None  # of signs that are not stored
        cdef const uint64_t *lines = store.lines
        if lines == NULL:
            buffer = filled_lines(kernel, store)
            lines = <const uint64_t *>cnp.PyArray_DATA(buffer)
        self.kernel = sliced
        with nogil:
            self.plan = sliced_plan_new(sliced, lines, store.n_samples, store.n_vectors)
        if self.plan == NULL:
            raise MemoryError
        return self

    def __dealloc__(self):
        sliced_plan_free(self.plan)


@cython.final
cdef class SlicedMemory:
    """One thread's memory for blocks; copied_words: of a row, or 0 where rows are read in place."""

    def __cinit__(self, SlicedPlan plan, int64_t copied_words):
        cdef ptrdiff_t n = plan.kernel.block_rows
        self.plan = plan
        self.sliced.kernel = plan.kernel
        self.sliced.plan = plan.plan
        self.sliced.scratch = sliced_scratch_new(plan.plan)
        self._memory = malloc((2 * n + n * copied_words) * 8)
        if self.sliced.scratch == NULL or self._memory == NULL:
            raise MemoryError
        self.sliced.totals = <int64_t *>self._memory
        self.sliced.growth = self.sliced.totals + n
        self.sliced.packed = <uint64_t *>(self.sliced.growth + n)

    def __dealloc__(self):
        sliced_scratch_free(self.sliced.scratch)
        free(self._memory)
