# scan.h as Cython sees it, and the rows and scratch memory that it works on.

cdef extern from "kernels/sliced.h" nogil:
    struct sliced_plan:
        pass
    sliced_plan *sliced_plan_new(const sliced_kernel *, const uint64_t *signs, int64_t n_samples,
                                 int64_t n_vectors)
    void sliced_plan_free(sliced_plan *)
    void *sliced_scratch_new(const sliced_plan *)
    void sliced_scratch_free(void *)


cdef extern from "scan/scan.h" nogil:
    const int ROW_TILE_WORDS, TOO_LARGE
    const int _UNIT_SHIFT "UNIT_SHIFT"
    const int TILE_WORDS, CHUNK_ROWS, UNIT_TILE_ROWS

    struct sign_store:
        const uint64_t *lines
        uint64_t base
        int64_t first_vector, first_word
        int64_t n_vectors, n_strips, n_words, n_samples

    struct loss_rows:
        const char *packed
        ptrdiff_t packed_stride, packed_bytes
        source source
        const packer *packer

    struct chunk_of_rows "chunk":
        int64_t *counts
        int64_t *totals
        void *workspace
        void *tile
        ptrdiff_t capacity
        ptrdiff_t n_rows
        int64_t bad_sample

    struct free_range:
        int64_t low, high

    enum verdict:
        ANSWERED, WITHHELD, NEEDS_UNITS, NEEDS_PRICE, UNREADABLE

    struct guard_state:
        int64_t *maxima
        int64_t *minima
        int64_t n_vectors, n_strips, n_rows, complexity
        int64_t budget, priced, priced_rows, wanted
        free_range declared, real
        int started, half_range, unit_shift

    void count_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                    ptrdiff_t n_rows, int in_units, chunk_of_rows *)
    int may_be_real(const loss_rows *)
    int units_fit(const sign_store *)
    void count_any_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                        ptrdiff_t n_rows, chunk_of_rows *)
    struct sliced_memory:
        const sliced_kernel *kernel
        const sliced_plan *plan
        void *scratch
        int64_t *growth
        int64_t *totals
        int64_t *before
        uint64_t *packed

    int sliced_pays(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t block_rows,
                   ptrdiff_t n_rows)
    int rows_in_place(const loss_rows *, ptrdiff_t n_words)
    ptrdiff_t scan_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                        ptrdiff_t last, guard_state *, chunk_of_rows *, const sliced_memory *,
                        int64_t *totals_out, int64_t *trace_out, verdict *)
    ptrdiff_t judge_rows(const kernel *, guard_state *, chunk_of_rows *, ptrdiff_t from_row,
                         int64_t *totals_out, int64_t *trace_out, verdict *)
    bint pass_row(const kernel *, const sign_store *, const loss_rows *, guard_state *, chunk_of_rows *,
                  int64_t *total)
    void rescale_state(guard_state *)
    void merge_state(guard_state *, const guard_state *)


cdef void packed_row(loss_rows *rows, const void *words, ptrdiff_t n_words) noexcept nogil:
    rows.packed = <const char *>words
    rows.packed_stride = rows.packed_bytes = 8 * n_words


cdef void *on_a_line(void *memory) noexcept nogil:
    """Where its first whole cache line begins: what straddles two takes longer."""
    return <void *>((<size_t>memory + LINE_BYTES - 1) & ~<size_t>(LINE_BYTES - 1))


@cython.final
cdef class _Scratch:
    """Memory for one thread's chunk of rows: at most 1 MB, unless one row needs more."""

    cdef chunk_of_rows chunk
    cdef sliced_memory *slices  # NULL: rows go one by one
    cdef _SlicedMemory _blocks
    cdef void *_memory

    @staticmethod
    cdef _Scratch of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                     ptrdiff_t n_rows, _SlicedPlan plan):
        cdef _Scratch self = _Scratch.__new__(_Scratch)
        cdef int64_t n_lanes = signs.n_lanes()
        cdef ptrdiff_t workspace = kernel.workspace_bytes if n_rows > 1 else 0
        cdef ptrdiff_t tile = 0
        if not rows_in_place(rows, store_of(signs).n_words):
            tile = 8 * max(min(CHUNK_ROWS, n_rows) * TILE_WORDS,
                           min(UNIT_TILE_ROWS, n_rows) * ROW_TILE_WORDS)
        cdef ptrdiff_t fits = ((1 << 20) - workspace - tile) // (8 * (n_lanes + 1))
        cdef ptrdiff_t capacity = max(1, min(min(CHUNK_ROWS, n_rows), fits))
        self._memory = malloc(workspace + tile + capacity * (n_lanes + 1) * 8 + LINE_BYTES)
        if self._memory == NULL:
            raise MemoryError
        self.chunk.workspace = on_a_line(self._memory) if workspace > 0 else NULL
        self.chunk.tile = <char *>on_a_line(self._memory) + workspace
        self.chunk.totals = <int64_t *>(<char *>self.chunk.tile + tile)
        self.chunk.counts = self.chunk.totals + capacity
        self.chunk.capacity = capacity
        self.slices = NULL
        if plan is not None:
            self._blocks = _SlicedMemory(plan)
            self.slices = &self._blocks.slices
        return self

    def __dealloc__(self):
        free(self._memory)


@cython.final
cdef class _SlicedPlan:
    """The index tables of the signs for bit-sliced blocks: read-only, shared by threads."""

    cdef const sliced_kernel *kernel
    cdef sliced_plan *plan
    cdef int64_t n_lanes
    cdef int64_t copied_words  # of a row that has to be copied; 0: rows are read in place

    def __dealloc__(self):
        sliced_plan_free(self.plan)


cdef _SlicedPlan plan_sliced(const kernel *kernel, const sliced_kernel *sliced, SignStore signs,
                             const loss_rows *rows, ptrdiff_t n_rows):
    """A plan if so many rows go through faster as blocks; else None."""
    cdef const sign_store *store = store_of(signs)
    cdef _SlicedPlan plan
    if not sliced_pays(kernel, store, rows, sliced.block_rows, n_rows):
        return None
    plan = _SlicedPlan.__new__(_SlicedPlan)
    plan.kernel = sliced
    plan.n_lanes = signs.n_lanes()
    plan.copied_words = 0 if rows_in_place(rows, store.n_words) else store.n_words
    with nogil:
        plan.plan = sliced_plan_new(sliced, store.lines, store.n_samples, store.n_vectors)
    if plan.plan == NULL:
        raise MemoryError
    return plan


@cython.final
cdef class _SlicedMemory:
    """One thread's memory for blocks."""

    cdef sliced_memory slices
    cdef _SlicedPlan plan
    cdef void *_memory

    def __cinit__(self, _SlicedPlan plan):
        cdef ptrdiff_t n = plan.kernel.block_rows
        self.plan = plan
        self.slices.kernel = plan.kernel
        self.slices.plan = plan.plan
        self.slices.scratch = sliced_scratch_new(plan.plan)
        self._memory = malloc((2 * n + 2 * plan.n_lanes + n * plan.copied_words) * 8)
        if self.slices.scratch == NULL or self._memory == NULL:
            raise MemoryError
        self.slices.growth = <int64_t *>self._memory
        self.slices.totals = self.slices.growth + n
        self.slices.before = self.slices.totals + n
        self.slices.packed = <uint64_t *>(self.slices.before + 2 * plan.n_lanes)

    def __dealloc__(self):
        sliced_scratch_free(self.slices.scratch)
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


cdef void _packed_rows(loss_rows *rows, cnp.ndarray words) noexcept:
    cdef int ndim = cnp.PyArray_NDIM(words)
    rows.packed = <const char *>cnp.PyArray_DATA(words)
    rows.packed_bytes = cnp.PyArray_DIM(words, ndim - 1) * cnp.PyArray_ITEMSIZE(words)
    rows.packed_stride = rows.packed_bytes if ndim == 1 else cnp.PyArray_STRIDE(words, 0)


cdef bint _is_readable(object values, int ndim, int64_t n_samples):
    """Whether `values` is an array that the packers read: shape and dtype, not contents."""
    return (_is_array(values) and cnp.PyArray_NDIM(<cnp.ndarray>values) == ndim
            and cnp.PyArray_DIM(<cnp.ndarray>values, ndim - 1) == n_samples
            and value_kind_of(<cnp.ndarray>values) >= 0)


cdef int _source_rows(loss_rows *rows, cnp.ndarray values, object labels) except -1:
    rows.packed = NULL
    rows.packer = _packer
    return fill_source(values, labels, &rows.source)


cdef raise_too_large(const sign_store *signs):
    raise ValueError("real-valued losses need n_vectors * n_samples < 2**38, got "
                     f"{signs.n_vectors} * {signs.n_samples}")


cdef raise_unreadable(loss_rows *rows, const sign_store *signs, ptrdiff_t row, int64_t sample):
    if sample == TOO_LARGE:
        raise_too_large(signs)
    if rows.packed != NULL:
        raise ValueError("packed losses must have no bit set past n_samples, "
                         f"got one in row {row}")
    raise_bad_value(&rows.source, row, sample)
