# The state of a guard: running extremes behind an integer gate, and the ledger that keeps them.

cdef long _n_forks = 0  # between the first import and this process: cheaper than os.getpid()


def _count_fork():
    global _n_forks
    _n_forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def n_forks():
    """How often this process's line has forked: what was made at another number is a copy."""
    return _n_forks


# what comes before maxima and minima in the array that a state is written as
cdef enum:
    N_COUNTERS = 5


cdef class _KeptState(_StateMemory):
    """What queries change, and how a change is kept whole or not at all.

    `price(largest_total, unit_shift, n_rows)` returns the gate of the next row after n_rows
    answers: (budget, priced, priced_rows, declared_low, declared_high, real_low, real_high) of
    `struct guard_state`, in units of 2^-unit_shift; without it every row passes.
    """

    cdef readonly SignStore signs
    cdef readonly bint halted
    cdef readonly bint retired
    cdef _QuickLock lock
    cdef long born
    cdef object price, ledger

    def __init__(self, SignStore signs, *, bint half_range=False, price=None):
        self.signs = signs
        self.lock = _QuickLock()
        self.born = _n_forks
        self.state.half_range = half_range
        self.price = price
        self._reprice(0, 0, 0)

    # ---- reading -------------------------------------------------------------------------

    @property
    def n_rows(self):
        return self.state.n_rows

    @property
    def started(self):
        return bool(self.state.started)

    @property
    def unit_shift(self):
        return self.state.unit_shift

    @property
    def budget(self):
        """The largest sum of extremes that passes, in the units of `unit_shift`."""
        return self.state.budget

    cdef bint _forked(self) noexcept nogil:
        """Whether this is a copy made by os.fork; its lock may never come free."""
        return self.born != _n_forks

    cdef bint _closed(self) noexcept nogil:
        """Whether no row may be judged: halted, or left to be gone on with elsewhere."""
        return self.halted or self.retired

    cdef double _sum_of_ones(self) noexcept:
        """What the losses of a row that errs everywhere sum up to: m, in the present units."""
        return <double>store_of(self.signs).n_samples * <double>(<int64_t>1 << self.state.unit_shift)

    cdef double _cells(self) noexcept:
        """What a sum of extremes is divided by: l m, or 2 l m for the half-range."""
        cdef int ranges = 2 if self.state.half_range else 1
        return ranges * <double>store_of(self.signs).n_vectors * self._sum_of_ones()

    @property
    def cells(self):
        return self._cells()

    @property
    def complexity(self):
        return <double>self.state.complexity / self._cells()

    def extremes(self):
        """Copies of (maxima, minima), int64 (n_vectors,), in the units of `unit_shift`."""
        n, n_lanes = self.state.n_vectors, self.state.n_strips * LANES
        with self.lock:
            memory = self._memory.copy()
        return memory[:n], memory[n_lanes:n_lanes + n]

    @property
    def largest(self):
        """The largest sum of a row so far, if the gate depends on it; else 0."""
        return 0 if self.state.priced == INT64_MAX else self.state.priced

    def retire(self, bint retired):
        """No row passes while this is set: the state is somebody else's.  Returns what it was."""
        with self.lock:
            before, self.retired = self.retired, retired
        return before

    # ---- the state as an array, and where it is kept ---------------------------------------

    def progress(self):
        """All that queries change, int64: what `resume` takes."""
        with self.lock:
            return self._progress()

    cdef cnp.ndarray _progress(self):
        n, n_lanes = self.state.n_vectors, self.state.n_strips * LANES
        counters = [self.state.n_rows, self.state.unit_shift, self.largest, self.halted,
                    self.state.started]
        return np.concatenate([np.array(counters, np.int64), self._memory[:n],
                               self._memory[n_lanes:n_lanes + n]])

    def resume(self, progress):
        """Goes on where `progress` was taken."""
        with self.lock:
            self._resume(progress)

    cdef int _resume(self, progress) except -1:
        cdef int64_t n_rows, unit_shift, largest, halted, started
        n, n_lanes = self.state.n_vectors, self.state.n_strips * LANES
        if progress.shape != (N_COUNTERS + 2 * n,):
            raise ValueError(f"the state must have {N_COUNTERS + 2 * n} numbers, got "
                             f"{progress.size}")
        n_rows, unit_shift, largest, halted, started = progress[:N_COUNTERS].tolist()
        if (n_rows < 0 or largest < 0 or unit_shift not in (0, _UNIT_SHIFT)
                or halted not in (0, 1) or started not in (0, 1)):
            raise ValueError("the state has counters that no guard has")
        # lanes past n_vectors are never read: any value will do
        lanes = [np.pad(values, (0, n_lanes - n), mode="edge")
                 for values in (progress[N_COUNTERS:-n], progress[-n:])]
        self._reprice(largest, unit_shift, n_rows)
        # up to here it may raise, Ctrl-C too, and then nothing has changed
        self._memory[:n_lanes], self._memory[n_lanes:] = lanes
        self.state.started = started
        self.state.n_rows = n_rows
        self.state.unit_shift = unit_shift
        self.halted = halted
        self.state.complexity = 0
        merge_state(&self.state, &self.state)  # which computes the complexity
        return 0

    def keep(self, ledger):
        """From now on each change is committed to `ledger` before its answer leaves."""
        with self.lock:
            self.ledger = ledger

    def refresh(self):
        """Takes over what others have committed since."""
        if self.ledger is None or self._forked():
            return
        with self.lock:
            if self.retired:
                return
            try:
                self._take(self.ledger.read())
            except BaseException:
                self.ledger.rollback()
                raise

    cdef int _take(self, progress) except -1:
        if progress is not None:
            self._resume(progress)
        return 0

    cdef bint _begin(self) except -1:
        """Starts a change that is kept whole or not at all; False: no row may be judged."""
        if self._closed():
            return False
        if self.ledger is not None:
            self._take(self.ledger.begin())
            if self.halted:
                self.ledger.rollback()
                return False
        return True

    cdef int _commit(self) except -1:
        if self.ledger is not None:
            self.ledger.commit(self._progress())
        return 0

    cdef int _undo(self, _StateMemory before) except -1:
        """Back to where a change began, which was not halted."""
        self.copy_from(before)
        self.halted = False
        if self.ledger is not None:
            self.ledger.rollback()
        return 0

    # ---- the gate ------------------------------------------------------------------------

    cdef int _to_units(self) except -1:
        if not units_fit(store_of(self.signs)):
            raise_too_large(store_of(self.signs))
        # the price first: it is Python, where Ctrl-C arrives, and then nothing has changed
        self._reprice(<int64_t>self.largest << _UNIT_SHIFT, _UNIT_SHIFT, self.state.n_rows)
        rescale_state(&self.state)
        return 0

    cdef int _reprice(self, int64_t largest, int unit_shift, int64_t n_rows) except -1:
        if self.price is not None:
            (self.state.budget, self.state.priced, self.state.priced_rows,
             self.state.declared.low, self.state.declared.high, self.state.real.low,
             self.state.real.high) = self.price(largest, unit_shift, n_rows)
        return 0

    cdef int _halt(self, int64_t priced) except -1:
        """After a row was withheld, before which the gate was priced for sums up to this.

        It goes back to that: priced for the withheld row it would tell its mean.
        """
        self.halted = True
        if priced != self.state.priced:
            self._reprice(priced, self.state.unit_shift, self.state.n_rows)
        return 0

    cdef int _meet(self, verdict need) except -1:
        """Does what a verdict other than ANSWERED and WITHHELD asks for."""
        if need == NEEDS_UNITS:
            return self._to_units()
        cdef int64_t largest = 0 if self.state.wanted == INT64_MAX else self.state.wanted
        return self._reprice(largest, self.state.unit_shift, self.state.n_rows)
