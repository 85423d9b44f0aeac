# RadaBound's state, and rows of losses through it: the one place that judges them.

from cpython.exc cimport PyErr_CheckSignals

# a slab of rows is scanned between two looks at Ctrl-C: about a quarter of a second
cdef ptrdiff_t SLAB_CELLS = 1 << 28
# one thread more for about every millisecond of work, since to wake a core takes a fifth of that
cdef ptrdiff_t THREAD_CELLS = 1 << 21
cdef ptrdiff_t _thread_cells = THREAD_CELLS
# a segment is at most so many times as much, which is lost where a halt comes before it
cdef ptrdiff_t SEGMENT_TIMES = 16
# below this many words times strips, letting go of the GIL costs more than it gives
cdef ptrdiff_t GIL_CELLS = 1 << 13
cdef enum:
    STACK_LANES = 512
    PLAN_BLOCKS = 4  # are worth a plan that is not kept


def choose_thread_cells(cells=None):
    """Have a thread started for so much work; None: for what pays (a seam for tests)."""
    global _thread_cells
    _thread_cells = max(1, THREAD_CELLS if cells is None else cells)


@cython.final
cdef class GuardCore(SharedState):
    """Running maximum and minimum of the signed sums of rows, per vector, behind the gate.

    `price(largest_total, unit_shift, n_rows)` returns the gate of the next row after n_rows
    answers: (budget, priced, priced_rows, declared_low, declared_high, real_low, real_high) of
    `struct guard_state`, in units of 2^-unit_shift; without it every row passes.  `rule` is what
    the answers ask for their intervals.  `weighting.rows(values, labels, packed, ndim)` makes rows for
    these signs of what is asked, and `weighting.whole` is what one sums up to that errs everywhere.

    Sums are computed before a transaction begins: extremes only grow, so what others have committed
    meanwhile is merged in.
    """

    cdef readonly SignStore signs
    cdef guard_state state
    cdef cnp.ndarray _memory
    cdef const instruction_set *set
    cdef _SlicedPlan plan  # kept from the second large call on
    cdef bint had_large_call
    cdef object price, rule, weighting
    cdef double whole

    def __cinit__(self, SignStore signs not None, *, bint half_range=False, price=None, rule=None,
                  weighting=None):
        self.signs = signs
        self.weighting = weighting
        self.whole = store_of(signs).n_samples if weighting is None else weighting.whole
        self._memory = new_state(&self.state, signs)
        self.state.half_range = half_range
        self.set = _chosen
        self.price = price
        self.rule = rule
        self._reprice(&self.state, 0, 0)

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

    @property
    def largest(self):
        """The largest sum of a row so far, if the gate depends on it; else 0."""
        return largest_of(&self.state)

    cdef double _sum_of_ones(self) noexcept:
        """What the losses of a row that errs everywhere sum up to: m, in the present units."""
        return self.whole * <double>(<int64_t>1 << self.state.unit_shift)

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

    @property
    def table_bytes(self):
        """What is kept for large calls, see `_plan_for`; 0 before the second."""
        with self._lock:
            return 0 if self.plan is None else sliced_plan_bytes(self.plan.plan)

    def free_tables(self):
        """Gives that memory back: the next large calls make it anew."""
        with self._lock:
            self.plan = None
            self.had_large_call = False

    def extremes(self):
        """Copies of (maxima, minima), int64 (n_vectors,), in the units of `unit_shift`."""
        progress = self._progress()
        n = self.state.n_vectors
        return progress[N_COUNTERS:-n], progress[-n:]

    # ---- the state, written, read and copied ---------------------------------------------------

    cdef object _written(self):
        return laid_out(self.state.n_rows, self.state.unit_shift, largest_of(&self.state),
                        self._halted, self.state.started, self.state.n_vectors,
                        self.state.maxima, self.state.minima)

    cdef int _read(self, progress) except -1:
        cdef _Layout there = _Layout.of(self.signs, self.state.half_range, progress)
        self._reprice(&there.state, there.largest, there.state.unit_shift)
        # up to here it may raise, Ctrl-C too, and then nothing has changed
        copy_state(&self.state, &there.state)
        self._halted = there.halted
        return 0

    cdef object _copied(self):
        cdef _StateMemory copied = _StateMemory(self.signs)
        copy_state(&copied.state, &self.state)
        return copied

    cdef int _put_back(self, before) except -1:
        copy_state(&self.state, &(<_StateMemory>before).state)
        self._halted = False  # as when any change begins
        return 0

    # ---- the gate ------------------------------------------------------------------------

    cdef int _reprice(self, guard_state *state, int64_t largest, int unit_shift) except -1:
        """The gate of `state` for sums up to this, after so many rows as it has."""
        if self.price is not None:
            (state.budget, state.priced, state.priced_rows, state.declared.low,
             state.declared.high, state.real.low, state.real.high) = self.price(
                 largest, unit_shift, state.n_rows)
        return 0

    cdef int _to_units(self, guard_state *state) except -1:
        if not units_fit(store_of(self.signs)):
            raise_too_large(store_of(self.signs))
        # the price first: it is Python, where Ctrl-C arrives, and then nothing has changed
        self._reprice(state, largest_of(state) << _UNIT_SHIFT, _UNIT_SHIFT)
        rescale_state(state)
        return 0

    cdef int _halt(self, int64_t priced) except -1:
        """After a row was withheld, before which the gate was priced for sums up to this.

        It goes back to that: priced for the withheld row it would tell its mean.
        """
        self._halted = True
        self.plan = None
        if priced != self.state.priced:
            self._reprice(&self.state, priced, self.state.unit_shift)
        return 0

    cdef int _meet(self, guard_state *state, verdict need) except -1:
        """Does what a verdict other than ANSWERED and WITHHELD asks for."""
        if need == NEEDS_UNITS:
            return self._to_units(state)
        cdef int64_t largest = 0 if state.wanted == INT64_MAX else state.wanted
        return self._reprice(state, largest, state.unit_shift)

    # ---- rows counted elsewhere --------------------------------------------------------------

    def adopt(self, progress, totals=None, *, bint may_be_real=False):
        """Takes in rows that were counted elsewhere under the same signs, if they all pass.

        Parameters
        ----------
        progress : ndarray of int64
            As `lay_out` writes the extremes of these rows.
        totals : ndarray of int64, shape (n_rows,), optional
            The sum of each, in the same units and in order.  None: where every row passes.
        may_be_real : bool
            Whether the losses are other than 0 or 1 by their type.

        Returns
        -------
        (n_rows, complexity) with them, or None
            None, and nothing has changed: some row might not pass here, where they are to be
            judged in order; or none may be judged any more.
        """
        cdef _Layout theirs = _Layout.of(self.signs, self.state.half_range, progress)
        if totals is None:
            if self.price is not None:
                raise ValueError("totals must be given to a guard that has a gate")
        elif (totals.shape != (theirs.state.n_rows,) or totals.dtype != np.int64
                or totals.size and not 0 <= totals.min() <= totals.max() <= theirs.largest):
            raise ValueError("totals must be those of the rows that led to the state")
        if self._forked():
            return None
        with self._lock:
            try:
                if not self._begin():
                    return None
                if not self._adopt(theirs, totals, may_be_real, False):
                    self._leave()
                    return None
                self._commit()
            except BaseException:
                self._undo()
                raise
            return self.state.n_rows, self.complexity

    cdef bint _adopt(self, _StateMemory theirs, cnp.ndarray totals, bint may_be_real,
                     bint still) except -1:
        """Takes in rows that were counted elsewhere, if they all pass.

        False, and nothing has changed: one of them might not pass here; or, with `still`, one of
        them moves the complexity.  Without `totals` every row passes, as many as theirs has.
        """
        cdef _StateMemory both = self._copied()
        cdef const int64_t *total = NULL
        cdef ptrdiff_t row = 0, n_rows = 0
        cdef verdict verdict = ANSWERED
        if theirs.state.unit_shift > both.state.unit_shift:
            self._to_units(&both.state)
        elif theirs.state.unit_shift < both.state.unit_shift:
            rescale_state(&theirs.state)
            if totals is not None:
                totals = totals << _UNIT_SHIFT
        merge_state(&both.state, &theirs.state)
        if still and both.state.complexity != self.state.complexity:
            return False
        if totals is None:
            both.state.n_rows += theirs.state.n_rows
        else:
            totals = np.ascontiguousarray(totals)
            total = <const int64_t *>cnp.PyArray_DATA(totals)
            n_rows = cnp.PyArray_DIM(totals, 0)
        while row < n_rows:
            with nogil:
                row += judge_merged(&both.state, total + row, n_rows - row, may_be_real, &verdict)
            if verdict == WITHHELD:
                return False
            if verdict == NEEDS_PRICE:
                self._meet(&both.state, verdict)
        copy_state(&self.state, &both.state)
        return True

    # ---- one row -------------------------------------------------------------------------

    def query_packed(self, words):
        """Judges one packed row.  Answer, or None: withheld, or no row may be judged."""
        return self._query(words, None, True)

    def query(self, values, labels=None):
        """Judges one row of losses, or of predictions against labels; as `query_packed`."""
        return self._query(values, labels, False)

    cdef object _query(self, object values, object labels, bint packed):
        answer = self.at_once(values, labels, packed)
        return self.counted(values, labels, packed) if answer is NotImplemented else answer

    cdef object at_once(self, object values, object labels, bint packed):
        """As `_query`; NotImplemented: nothing has changed, and the row must be `counted` first.

        It runs no Python, whose frames an error would keep.
        """
        cdef loss_rows rows
        cdef int64_t tile[ROW_TILE_WORDS + LANES]
        cdef chunk_of_rows chunk
        cdef int64_t n_samples = store_of(self.signs).n_samples
        if self.weighting is not None or not self._is_quick():
            return NotImplemented
        if not _lie_as_rows(&rows, values, labels, self.set.packer, 1, n_samples, packed):
            return NotImplemented
        chunk.tile = on_a_line(tile)
        chunk.tile_rows = 1
        chunk.workspace = NULL
        return self._judge_at_once(&rows, &chunk)

    cdef bint _is_quick(self) noexcept:
        """Whether a row is one tile, and not worth dropping the GIL for."""
        cdef const sign_store *signs = store_of(self.signs)
        return signs.n_words <= TILE_WORDS and signs.n_words * signs.n_strips < GIL_CELLS

    cdef object counted(self, object values, object labels, bint packed):
        """As `_query`, for any row that there is."""
        cdef loss_rows rows
        cdef int64_t counts[STACK_LANES]
        cdef int64_t tile[ROW_TILE_WORDS + LANES]
        cdef int64_t total
        cdef chunk_of_rows chunk
        cdef _Scratch scratch
        cdef const sign_store *signs = store_of(self.signs)
        cdef bint is_small = signs.n_words * signs.n_strips < GIL_CELLS
        if self.weighting is not None:
            values, labels, packed = self.weighting.rows(values, labels, packed, 1), None, False
        # the name keeps the array while its rows are read
        values = _as_rows(&rows, values, labels, self.set.packer, 1, signs.n_samples, packed)
        chunk.tile = on_a_line(tile)
        chunk.tile_rows = 1
        chunk.workspace = NULL
        if signs.n_strips * LANES <= STACK_LANES:
            chunk.counts = counts
            chunk.totals = &total
            chunk.capacity = 1
        else:
            scratch = _Scratch.of(self.set.kernel, self.signs, &rows, 1, None)
            chunk = scratch.chunk
        if is_small:
            count_any_rows(self.set.kernel, signs, &rows, 0, 1, &chunk)
        else:
            with nogil:
                count_any_rows(self.set.kernel, signs, &rows, 0, 1, &chunk)
        if chunk.n_rows == 0:
            raise_unreadable(&rows, signs, 0, chunk.bad_sample)
        if self._forked():
            return None
        with self._lock:
            return self._answer(&rows, chunk.totals[0]) if self._judge(&chunk) else None

    cdef object _judge_at_once(self, const loss_rows *rows, chunk_of_rows *chunk):
        """As `query` of a row of bits; NotImplemented: it must be counted, nothing has changed."""
        cdef work_on_rows work
        cdef int64_t total
        cdef verdict verdict
        if self._forked():
            return NotImplemented
        work.kernel = self.set.kernel
        work.signs = store_of(self.signs)
        work.rows = rows
        work.state = &self.state
        work.chunk = chunk
        self._lock.take()
        try:
            if (self.ledger is not None or self.before is not None or self._closed()
                    or not judge_row(&work, &total, &verdict)):
                return NotImplemented
            if verdict == WITHHELD:
                self._halted = True  # priced for the rows before it
                return None
            return self._answer(rows, total)
        finally:
            self._lock.end()

    cdef RadaBoundAnswer _answer(self, const loss_rows *rows, int64_t total):
        """To the last row, which was answered."""
        return _make_answer(<double>total / self._sum_of_ones(),
                            <double>self.state.complexity / self._cells(), self.state.n_rows,
                            not rows.may_be_real, self.rule)

    cdef bint _judge(self, chunk_of_rows *chunk) except -1:
        """Whether the chunk's one row is answered; then, or if it halts, that is kept."""
        cdef verdict verdict
        cdef int64_t priced
        try:
            if not self._begin():
                return False
            priced = self.state.priced
            while True:
                judge_rows(self.set.kernel, &self.state, chunk, NULL, NULL, &verdict)
                if verdict == ANSWERED or verdict == WITHHELD:
                    break
                self._remember()  # what follows is Python, where Ctrl-C arrives
                self._meet(&self.state, verdict)
                if verdict == NEEDS_UNITS:
                    priced = self.state.priced
            if verdict == WITHHELD:
                self._halt(priced)
            self._commit()
            return verdict == ANSWERED
        except BaseException:
            self._undo()
            raise

    # ---- many rows -----------------------------------------------------------------------

    def query_many_packed(self, words, *, bint trace=False, n_threads=1):
        """Judges packed rows in order; returns as `query_many`."""
        return self._query_many(words, None, True, trace, n_threads)

    def query_many(self, values, labels=None, *, bint trace=False, n_threads=1):
        """Judges rows in order up to the first that is withheld.

        Returns (values, complexities, n_rows, halted, complexity, declared): means of the rows
        that passed, with `trace` the complexity after each, how the call left the state, and
        whether the losses are 0 or 1 by their type.  An error leaves it as it was.
        None: no row may be judged.
        """
        return self._query_many(values, labels, False, trace, n_threads)

    cdef object _query_many(self, object values, object labels, bint packed, bint trace,
                            object n_threads):
        cdef loss_rows rows
        cdef _Run run
        cdef ptrdiff_t stop, n_rows
        if self.weighting is not None:
            values, labels, packed = self.weighting.rows(values, labels, packed, 2), None, False
        values = _as_rows(&rows, values, labels, self.set.packer, 2,
                          store_of(self.signs).n_samples, packed)
        n_rows = cnp.PyArray_DIM(values, 0)
        run = _Run(n_rows, trace)
        if self._forked():
            return None
        with self._lock:
            try:
                self._undo()
                if self._closed():
                    return None
                self._remember()
                stop = self._judge_many(&rows, (values, labels), n_rows, run, n_threads)
                if stop < 0:
                    return None
                self._commit()
            except BaseException:  # KeyboardInterrupt too: no value has left yet
                self._undo()
                raise
            return (run.totals_array[:stop] / self._sum_of_ones(),
                    run.trace_array[:stop] / self._cells() if trace else None,
                    self.state.n_rows, self._halted, self.complexity, not rows.may_be_real)

    cdef ptrdiff_t _judge_many(self, loss_rows *rows, object memory, ptrdiff_t n_rows, _Run run,
                               object n_threads) except -2:
        """The first row that did not pass, or n_rows; -1: none may be judged any more."""
        cdef _SlicedPlan plan = self._plan_for(rows, n_rows)
        cdef ptrdiff_t cells = n_rows * self._row_cells(rows, plan)
        cdef int n_useful = min(n_threads, 1 + cells // _thread_cells)
        cdef ptrdiff_t stop
        if n_useful == 1:
            stop = self._scan(rows, 0, n_rows, run, plan)
        else:
            stop = self._scan_in_threads(rows, memory, n_rows, run, plan, n_useful)
        if self.ledger is not None:
            stop = self._join_scan(rows, n_rows, run, plan, stop)
        return stop

    cdef _SlicedPlan _plan_for(self, const loss_rows *rows, ptrdiff_t n_rows):
        """A plan if so many rows go through faster as blocks; else None.

        It takes the time of a few blocks, and twice the memory of the signs.  So the first large
        call makes one only if it has many blocks, and the second makes one to keep.
        """
        cdef const kernel *kernel = self.set.kernel
        cdef _SlicedPlan plan
        if not sliced_pays(kernel, self.set.sliced, store_of(self.signs), rows, n_rows):
            return None
        if self.plan is not None:
            return self.plan
        if not self.had_large_call and n_rows < PLAN_BLOCKS * self.set.sliced.block_rows:
            self.had_large_call = True
            return None
        plan = _SlicedPlan.of(kernel, self.set.sliced, self.signs)
        if self.had_large_call:
            self.plan = plan
        self.had_large_call = True
        return plan

    cdef ptrdiff_t _join_scan(self, loss_rows *rows, ptrdiff_t n_rows, _Run run, _SlicedPlan plan,
                              ptrdiff_t stop) except -2:
        """Begins the transaction, and lets what others committed during the scan come first.

        Where a row might not pass after theirs, the rows are judged again inside the
        transaction.  Returns as `_judge_many`.
        """
        cdef _StateMemory mine = self._copied()
        if self._join():
            if self._halted:
                return -1
            if stop < n_rows or not self._adopt_scan(mine, rows, 0, n_rows, run):
                stop = self._scan(rows, 0, n_rows, run, plan)
        return stop

    cdef ptrdiff_t _scan(self, loss_rows *rows, ptrdiff_t first, ptrdiff_t last, _Run run,
                         _SlicedPlan plan) except -1:
        """Rows first..last on this thread; returns the first that did not pass, or last."""
        cdef _Scratch scratch = _Scratch.of(self.set.kernel, self.signs, rows, last - first, plan)
        cdef ptrdiff_t slab = max(1, SLAB_CELLS // self._row_cells(rows, plan))
        cdef ptrdiff_t row = first, end, priced_row = -1
        cdef int64_t priced = 0  # the price before priced_row, which raised it
        cdef verdict verdict
        scratch.work.state = &self.state
        scratch.work.totals = run.totals
        scratch.work.trace = run.trace
        while row < last:
            end = min(last, row + slab)
            with nogil:
                row = scan_rows(&scratch.work, row, end, &verdict)
            if verdict == WITHHELD:
                self._halt(priced if row == priced_row else self.state.priced)
                return row
            if verdict == UNREADABLE:
                raise_unreadable(rows, store_of(self.signs), row, scratch.chunk.bad_sample)
            if verdict == NEEDS_PRICE:
                priced_row, priced = row, self.state.priced
            if verdict != ANSWERED:
                self._meet(&self.state, verdict)
                if verdict == NEEDS_UNITS:
                    run.bring_to_units(row)
            PyErr_CheckSignals()
        return last

    cdef ptrdiff_t _scan_in_threads(self, loss_rows *rows, object memory, ptrdiff_t n_rows,
                                    _Run run, _SlicedPlan plan, int n_threads) except -1:
        """Each thread judges a segment from the same start; they are merged in order.

        A segment in which a row might not pass, or with a trace the complexity grew, is done
        again on one thread from where it should have started.
        """
        cdef _Segment segment
        cdef ptrdiff_t row = 0, stop, length = self._segment_rows(rows, n_rows, plan, n_threads)
        segments = [_Segment.of(self.set.kernel, self.signs, rows, length, plan)
                    for _ in range(n_threads)]
        while row < n_rows:
            for segment in segments:
                segment.first, segment.last = row, min(n_rows, row + length)
                copy_state(&segment.state, &self.state)
                segment.state.budget = segment.state.priced = INT64_MAX
                segment.state.priced_rows = INT64_MAX
                row = segment.last
            task = _Task.of(rows, memory, run)
            # this thread works too, beside new ones: a new thread starts on an idle core, where
            # one that is woken often stays on the core of whoever woke it.  None of threading's: they
            # run Python, where a trace function or a destructor may wait for the lock that is held
            for segment in segments[1:]:
                start_new_thread(task, (segment,))
            task(segments[0])
            for segment in segments:
                segment.wait()
            for segment in segments:
                if segment.verdict != ANSWERED or not self._adopt_scan(
                        segment, rows, segment.first, segment.last, run):
                    stop = self._scan(rows, segment.first, segment.last, run, plan)
                    if stop < segment.last:
                        return stop
            PyErr_CheckSignals()
        return n_rows

    cdef ptrdiff_t _row_cells(self, loss_rows *rows, _SlicedPlan plan):
        """What a row takes, in words times strips of packed rows: roughly, for sizing work.

        To pack a word takes as long as six strips, to look real-valued losses up eight times as
        long as to count bits; blocks halve it all.
        """
        cdef ptrdiff_t strips = self.state.n_strips
        if rows.packed == NULL:
            strips = 6 + (8 * strips if rows.may_be_real else strips)
        if plan is not None:
            strips = (strips + 1) // 2
        return store_of(self.signs).n_words * strips

    cdef ptrdiff_t _segment_rows(self, loss_rows *rows, ptrdiff_t n_rows, _SlicedPlan plan,
                                 int n_threads):
        """Rows of a segment: whole blocks if any, as even as they go into rounds of threads."""
        cdef ptrdiff_t block = 1 if plan is None or rows.may_be_real else self.set.sliced.block_rows
        cdef ptrdiff_t most = max(1, SEGMENT_TIMES * _thread_cells // self._row_cells(rows, plan))
        cdef ptrdiff_t n_segments = n_threads * ((n_rows - 1) // (n_threads * most) + 1)
        return ((n_rows - 1) // (n_segments * block) + 1) * block

    cdef bint _adopt_scan(self, _StateMemory scanned, const loss_rows *rows, ptrdiff_t first,
                          ptrdiff_t last, _Run run) except -1:
        """`_adopt` for rows first..last of a scan, which leaves a trace."""
        if first == last:
            return True
        if (scanned.state.unit_shift != self.state.unit_shift  # their sums are in its units
                or not self._adopt(scanned, run.totals_array[first:last], rows.may_be_real,
                                   run.trace != NULL)):
            return False
        if run.trace != NULL:
            run.trace_array[first:last] = self.state.complexity
        return True
