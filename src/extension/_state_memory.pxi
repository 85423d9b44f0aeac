# GuardCore with memory of their own, and what the rows of one call come to.

cdef class _StateMemory:
    """A struct guard_state and the memory behind it."""

    cdef guard_state state
    cdef cnp.ndarray _memory  # maxima, then minima

    def __cinit__(self, SignStore signs not None, *args, **kwargs):
        cdef int64_t n_lanes = signs.n_lanes()
        self._memory = _aligned_int64(2 * n_lanes)
        self.state.maxima = <int64_t *>cnp.PyArray_DATA(self._memory)
        self.state.minima = self.state.maxima + n_lanes
        self.state.n_vectors = store_of(signs).n_vectors
        self.state.n_strips = store_of(signs).n_strips
        self.state.budget = self.state.priced = self.state.priced_rows = INT64_MAX

    cdef void copy_from(self, _StateMemory other) noexcept nogil:
        cdef int64_t *maxima = self.state.maxima
        cdef int64_t *minima = self.state.minima
        memcpy(maxima, other.state.maxima, 2 * self.state.n_strips * LANES * sizeof(int64_t))
        self.state = other.state
        self.state.maxima = maxima
        self.state.minima = minima


@cython.final
cdef class _Segment(_StateMemory):
    """Some rows on one thread, judged without a budget from a copy of the owner's extremes."""

    cdef _Scratch scratch
    cdef ptrdiff_t first, last
    cdef verdict verdict

    @staticmethod
    cdef _Segment of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                     ptrdiff_t n_rows, _SlicedPlan plan):
        cdef _Segment self = _Segment(signs)
        self.scratch = _Scratch.of(kernel, signs, rows, n_rows, plan)
        return self


@cython.final
cdef class _Run:
    """What the rows of one call came to: sums, and with a trace each row's complexity."""

    cdef cnp.ndarray totals_array, trace_array
    cdef int64_t *totals
    cdef int64_t *trace

    def __cinit__(self, ptrdiff_t n_rows, bint trace):
        self.totals_array = np.empty(n_rows, np.int64)
        self.totals = <int64_t *>cnp.PyArray_DATA(self.totals_array)
        self.trace = NULL
        if trace:
            self.trace_array = np.empty(n_rows, np.int64)
            self.trace = <int64_t *>cnp.PyArray_DATA(self.trace_array)

    cdef bring_to_units(self, ptrdiff_t n_rows):
        """The rows before the first real-valued one, in units of 2^-24 as well."""
        self.totals_array[:n_rows] <<= _UNIT_SHIFT
        if self.trace != NULL:
            self.trace_array[:n_rows] <<= _UNIT_SHIFT
