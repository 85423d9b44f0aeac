# Memory of struct guard_state, its state as an array, and what the rows of one call come to.

cdef cnp.ndarray new_state(guard_state *state, SignStore signs):
    """Memory for a state that has seen no row and lets every row pass."""
    cdef int64_t n_lanes = signs.n_lanes()
    cdef cnp.ndarray memory = _aligned_int64(2 * n_lanes)  # maxima, then minima
    state.maxima = <int64_t *>cnp.PyArray_DATA(memory)
    state.minima = state.maxima + n_lanes
    state.n_vectors = store_of(signs).n_vectors
    state.n_strips = store_of(signs).n_strips
    state.budget = state.priced = state.priced_rows = INT64_MAX
    return memory


cdef void copy_state(guard_state *state, const guard_state *other) noexcept nogil:
    cdef int64_t *maxima = state.maxima
    cdef int64_t *minima = state.minima
    memcpy(maxima, other.maxima, 2 * other.n_strips * LANES * sizeof(int64_t))
    state[0] = other[0]
    state.maxima = maxima
    state.minima = minima


cdef int64_t largest_of(const guard_state *state) noexcept nogil:
    """The largest sum of a row so far, if the gate depends on it; else 0."""
    return 0 if state.priced == INT64_MAX else state.priced


cdef class _StateMemory:
    """A struct guard_state and the memory behind it."""

    cdef guard_state state
    cdef cnp.ndarray _memory

    def __cinit__(self, SignStore signs not None):
        self._memory = new_state(&self.state, signs)


# ---- a state as an array ------------------------------------------------------------------

cdef enum:
    N_COUNTERS = 5

# more than anybody asks, and few enough to be counted on from
cdef int64_t MOST_ROWS = 1 << 53


def n_numbers(n_vectors):
    """How many numbers `lay_out` makes of the state of a guard with so many vectors."""
    return N_COUNTERS + 2 * n_vectors


def lay_out(maxima, minima, *, n_rows, unit_shift, largest, halted=False, started=True):
    """The state of a guard as an array: what databases hold, and what `adopt` takes.

    Another layout is another format: other versions in store/schema.py.

    Parameters
    ----------
    maxima, minima : ndarray of int64, shape (n_vectors,)
        The extremes of the signed sums, in units of 2**-unit_shift; anything before the first row.
    n_rows : int
        Rows answered.
    unit_shift : {0, 24}
    largest : int
        The largest sum of a row, or 0 for a guard whose gate does not depend on it.
    halted : bool
        Whether a row was withheld.
    started : bool
        Whether there are extremes yet: a row was seen.

    Returns
    -------
    ndarray of int64, shape (5 + 2 n_vectors,)
        ``n_rows, unit_shift, largest, halted, started``, then the maxima, then the minima.
    """
    cdef cnp.ndarray highs = np.ascontiguousarray(maxima, np.int64)
    cdef cnp.ndarray lows = np.ascontiguousarray(minima, np.int64)
    if highs.ndim != 1 or lows.ndim != 1 or len(highs) != len(lows):
        raise ValueError("maxima and minima must be of one dimension and of equal length")
    return laid_out(n_rows, unit_shift, largest, halted, started, len(highs),
                    <const int64_t *>cnp.PyArray_DATA(highs),
                    <const int64_t *>cnp.PyArray_DATA(lows))


cdef cnp.ndarray laid_out(int64_t n_rows, int64_t unit_shift, int64_t largest, bint halted,
                          bint started, int64_t n_vectors, const int64_t *maxima,
                          const int64_t *minima):
    cdef cnp.npy_intp n = N_COUNTERS + 2 * n_vectors
    cdef cnp.ndarray found = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT64)
    cdef int64_t *numbers = <int64_t *>cnp.PyArray_DATA(found)
    numbers[0], numbers[1], numbers[2] = n_rows, unit_shift, largest
    numbers[3], numbers[4] = halted, started
    memcpy(numbers + N_COUNTERS, maxima, n_vectors * sizeof(int64_t))
    memcpy(numbers + N_COUNTERS + n_vectors, minima, n_vectors * sizeof(int64_t))
    return found


@cython.final
cdef class _Layout(_StateMemory):
    """What `lay_out` wrote, read and checked."""

    cdef int64_t largest
    cdef bint halted

    @staticmethod
    cdef _Layout of(SignStore signs, bint half_range, progress):
        cdef _Layout self = _Layout(signs)
        cdef int64_t n_rows, unit_shift, started, halted
        n, n_lanes = self.state.n_vectors, signs.n_lanes()
        if progress.shape != (n_numbers(n),):
            raise ValueError(f"the state must have {n_numbers(n)} numbers, got {progress.size}")
        n_rows, unit_shift, self.largest, halted, started = progress[:N_COUNTERS].tolist()
        if (not 0 <= n_rows <= MOST_ROWS or unit_shift not in (0, _UNIT_SHIFT)
                or unit_shift and not units_fit(store_of(signs))
                or halted not in (0, 1) or started not in (0, 1) or n_rows > 0 and not started):
            raise ValueError("the state has counters that no guard has")
        maxima, minima = progress[N_COUNTERS:-n], progress[-n:]
        most = store_of(signs).n_samples << unit_shift
        if not (0 <= self.largest <= most and -most <= minima.min() and maxima.max() <= most
                and (minima <= maxima).all() and (started or not progress[N_COUNTERS:].any())):
            raise ValueError("the state has extremes that no losses lead to")
        # lanes past n_vectors are never read: any value will do
        for place, values in ((0, maxima), (n_lanes, minima)):
            self._memory[place:place + n] = values
            self._memory[place + n:place + n_lanes] = values[n - 1]
        self.halted = halted
        self.state.started = started
        self.state.n_rows = n_rows
        self.state.unit_shift = unit_shift
        self.state.half_range = half_range
        merge_state(&self.state, &self.state)  # which computes the complexity
        return self


# ---- rows --------------------------------------------------------------------------------

@cython.final
cdef class _Segment(_StateMemory):
    """Some rows on one thread, judged without a budget from a copy of the owner's extremes."""

    cdef _Scratch scratch
    cdef ptrdiff_t first, last
    cdef verdict verdict
    cdef object at_work  # a lock: taken from when it is to be judged until it is

    @staticmethod
    cdef _Segment of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                     ptrdiff_t n_rows, _SlicedPlan plan):
        cdef _Segment self = _Segment(signs)
        self.scratch = _Scratch.of(kernel, signs, rows, n_rows, plan)
        self.at_work = allocate_lock()
        self.at_work.acquire()
        return self

    cdef int wait(self) except -1:
        """Until it is judged, or Ctrl-C."""
        PyErr_CheckSignals()  # those that came before do not end the wait
        self.at_work.acquire()
        return 0


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
