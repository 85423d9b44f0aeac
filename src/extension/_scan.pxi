# scan.h as Cython sees it, and the rows and scratch memory that it works on.

cdef extern from "kernels/sliced.h" nogil:
    struct sliced_plan:
        pass
    sliced_plan *sliced_plan_new(const sliced_kernel *, const uint64_t *signs, int64_t n_samples,
                                 int64_t n_vectors)
    size_t sliced_plan_bytes(const sliced_plan *)
    void sliced_plan_free(sliced_plan *)
    void *sliced_scratch_new(const sliced_plan *)
    void sliced_scratch_free(void *)


cdef extern from "scan/scan.h" nogil:
    const int ROW_TILE_WORDS, TOO_LARGE
    const int _UNIT_SHIFT "UNIT_SHIFT"
    const int TILE_WORDS, CHUNK_ROWS, UNIT_TILE_ROWS

    struct loss_rows:
        const char *packed
        int in_place, may_be_real
        source source
    void packed_as_rows(loss_rows *, const void *packed, ptrdiff_t stride)
    void values_as_rows(loss_rows *, const packer *)

    struct sign_store:
        const uint64_t *lines
        uint64_t base
        int64_t first_vector, first_word
        int64_t n_vectors, n_strips, n_words, n_samples

    struct chunk_of_rows "chunk":
        int64_t *counts
        int64_t *totals
        int64_t *before
        void *workspace
        void *tile
        ptrdiff_t capacity, tile_rows
        ptrdiff_t n_rows
        int in_units
        int64_t bad_sample

    void count_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                    ptrdiff_t n_rows, int in_units, chunk_of_rows *)
    void count_any_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                        ptrdiff_t n_rows, chunk_of_rows *)
    int units_fit(const sign_store *)

    enum verdict:
        ANSWERED, WITHHELD, NEEDS_UNITS, NEEDS_PRICE, UNREADABLE

    struct free_range:
        int64_t low, high

    struct guard_state:
        int64_t *maxima
        int64_t *minima
        int64_t n_vectors, n_strips, n_rows, complexity
        int64_t budget, priced, priced_rows, wanted
        free_range declared, real
        int started, half_range, unit_shift

    void rescale_state(guard_state *)
    void merge_state(guard_state *, const guard_state *)
    ptrdiff_t judge_merged(guard_state *, const int64_t *totals, ptrdiff_t n_rows, int may_be_real,
                           verdict *)
    ptrdiff_t judge_rows(const kernel *, guard_state *, chunk_of_rows *, int64_t *totals_out,
                         int64_t *trace_out, verdict *)

    struct sliced_memory:
        const sliced_kernel *kernel
        const sliced_plan *plan
        void *scratch
        int64_t *totals
        int64_t *growth
        uint64_t *packed

    struct work_on_rows "work":
        const kernel *kernel
        const sign_store *signs
        const loss_rows *rows
        guard_state *state
        chunk_of_rows *chunk
        const sliced_memory *sliced
        int64_t *totals
        int64_t *trace

    bint judge_row(const work_on_rows *, int64_t *total, verdict *)
    int sliced_pays(const kernel *, const sliced_kernel *, const sign_store *, const loss_rows *,
                    ptrdiff_t n_rows)
    ptrdiff_t scan_rows(const work_on_rows *, ptrdiff_t first, ptrdiff_t last, verdict *)


cdef void *on_a_line(void *memory) noexcept nogil:
    """Where its first whole cache line begins: what straddles two takes longer."""
    return <void *>((<size_t>memory + LINE_BYTES - 1) & ~<size_t>(LINE_BYTES - 1))


@cython.final
cdef class _Scratch:
    """One thread's memory for the rows of a call: at most 1 MB, unless one row needs more.

    `work` is complete but for the state, and for where totals and complexities are to go.
    """

    cdef work_on_rows work
    cdef chunk_of_rows chunk
    cdef SignStore _signs
    cdef _SlicedMemory _blocks
    cdef void *_memory

    @staticmethod
    cdef _Scratch of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                     ptrdiff_t n_rows, _SlicedPlan plan):
        cdef _Scratch self = _Scratch.__new__(_Scratch)
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
            self._blocks = _SlicedMemory(plan, 0 if rows.in_place else self.work.signs.n_words)
            self.work.sliced = &self._blocks.sliced
        return self

    def __dealloc__(self):
        free(self._memory)


@cython.final
cdef class _SlicedPlan:
    """The index tables of the signs for bit-sliced blocks: read-only, shared by threads."""

    cdef const sliced_kernel *kernel
    cdef sliced_plan *plan

    @staticmethod
    cdef _SlicedPlan of(const kernel *kernel, const sliced_kernel *sliced, SignStore signs):
        cdef _SlicedPlan self = _SlicedPlan.__new__(_SlicedPlan)
        cdef const sign_store *store = store_of(signs)
        cdef object buffer = None  # of signs that are not stored
        cdef const uint64_t *lines = store.lines
        if lines == NULL:
            buffer = _filled_lines(kernel, store)
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
cdef class _SlicedMemory:
    """One thread's memory for blocks; copied_words: of a row, or 0 where rows are read in place."""

    cdef sliced_memory sliced
    cdef _SlicedPlan plan
    cdef void *_memory

    def __cinit__(self, _SlicedPlan plan, int64_t copied_words):
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


# ---- arrays as rows -----------------------------------------------------------------------

cdef object _memmap = np.memmap


cdef bint _is_array(object values):
    """Whether this is an ndarray and nothing more: a masked array is one too, and is more."""
    return cnp.PyArray_CheckExact(values) or type(values) is _memmap


cdef bint _is_packed(object words, int ndim, int64_t n_samples):
    """Whether `words` is an array of packed rows that can be read where it is."""
    if not _is_array(words):
        return False
    cdef cnp.ndarray array = <cnp.ndarray>words
    if cnp.PyArray_NDIM(array) != ndim or not cnp.PyArray_ISNOTSWAPPED(array):
        return False
    # by size: NumPy has two types of 64 bits, unsigned long and unsigned long long
    if not cnp.PyArray_ISUNSIGNED(array) or cnp.PyArray_ITEMSIZE(array) != 8:
        return False
    cdef int64_t n_words = (n_samples + 63) // 64
    return (cnp.PyArray_DIM(array, ndim - 1) == n_words
            and (n_words == 1 or cnp.PyArray_SIZE(array) == 0
                 or cnp.PyArray_STRIDE(array, ndim - 1) == 8))


cdef bint _is_readable(object values, int ndim, int64_t n_samples):
    """Whether `values` is an array that the packers read: shape and dtype, not contents."""
    return (_is_array(values) and cnp.PyArray_NDIM(<cnp.ndarray>values) == ndim
            and cnp.PyArray_DIM(<cnp.ndarray>values, ndim - 1) == n_samples
            and value_kind_of(<cnp.ndarray>values) >= 0)


cdef bint _lie_as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                       int ndim, int64_t n_samples, bint packed) except -1:
    """Describes rows where they lie; False if they must become an array, or another one, first."""
    cdef cnp.ndarray array
    if packed:
        if not _is_packed(values, ndim, n_samples):
            return False
        array = <cnp.ndarray>values
        packed_as_rows(rows, cnp.PyArray_DATA(array), 0 if ndim == 1 else cnp.PyArray_STRIDE(array, 0))
    else:
        if not _is_readable(values, ndim, n_samples):
            return False
        fill_source(<cnp.ndarray>values, labels, &rows.source)
        values_as_rows(rows, packer)
    return True


cdef object _as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                     int ndim, int64_t n_samples, bint packed):
    """Describes rows; returns the array that keeps them there.

    It is `values`, or what packing.py makes of them, which has the rules and the errors.
    """
    if not _lie_as_rows(rows, values, labels, packer, ndim, n_samples, packed):
        from radabound_fast.rows import packing
        values = (packing.as_words if packed else packing.as_values)(values, n_samples, ndim)
        if not _lie_as_rows(rows, values, labels, packer, ndim, n_samples, packed):
            raise TypeError(f"packing.py must make rows that can be read, got {type(values)}")
    return values


def bad_bit(n_samples, row):
    """The error for packed losses that do not end with zeros."""
    return ValueError(
        f"words must have no bit set past n_samples = {n_samples}, got one in row {row}")


cdef raise_too_large(const sign_store *signs):
    raise ValueError("real-valued losses need n_vectors * n_samples < 2**38, got "
                     f"{signs.n_vectors} * {signs.n_samples}")


cdef raise_unreadable(loss_rows *rows, const sign_store *signs, ptrdiff_t row, int64_t sample):
    if sample == TOO_LARGE:
        raise_too_large(signs)
    if rows.packed != NULL:
        raise bad_bit(signs.n_samples, row)
    raise_bad_value(&rows.source, row, sample)
