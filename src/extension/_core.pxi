# Rows of losses through a guard's state: the one place that judges them.

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


def choose_thread_cells(cells=None):
    """Have a thread started for so much work; None: for what pays (a seam for tests)."""
    global _thread_cells
    _thread_cells = max(1, THREAD_CELLS if cells is None else cells)


@cython.final
cdef class GuardCore(_KeptState):
    """Running maximum and minimum of the signed sums of rows, per vector, behind the gate.

    With a ledger (`keep`) no answer leaves before the ledger has committed the state it leads
    to.  Sums are computed before the transaction: extremes only grow, so what others have
    committed meanwhile is merged in.
    """

    cdef const instruction_set *set
    cdef const sliced_kernel *sliced  # of the set, asked once
    cdef object tail
    cdef double epsilon

    def __init__(self, SignStore signs, *, bint half_range=False, double epsilon=0.0,
                 price=None, tail=None):
        super().__init__(signs, half_range=half_range, price=price)
        self.set = _chosen
        self.sliced = _chosen_sliced
        self.epsilon = epsilon
        self.tail = tail

    # ---- other rows' extremes ----------------------------------------------------------------

    def merge(self, GuardCore other):
        """Takes in the extremes of rows that another object saw under the same signs."""
        cdef _StateMemory theirs = _StateMemory(other.signs)
        with other.lock:
            theirs.copy_from(other)
        with self.lock:
            if theirs.state.unit_shift > self.state.unit_shift:
                self._to_units()
            elif theirs.state.unit_shift < self.state.unit_shift:
                rescale_state(&theirs.state)
            merge_state(&self.state, &theirs.state)
            self.state.n_rows += theirs.state.n_rows

    def adopt(self, GuardCore other, int64_t largest):
        """Takes in rows that all pass, counted elsewhere under the same signs.

        False, and nothing has changed, if some row might not pass: judge them here, in order.
        `largest` is the largest sum of a row, in the units of `other`.
        """
        cdef _StateMemory theirs = _StateMemory(other.signs)
        cdef _StateMemory before = _StateMemory(self.signs)
        cdef _StateMemory merged
        if self._forked():
            return False
        with other.lock:
            theirs.copy_from(other)
        with self.lock:
            before.copy_from(self)
            try:
                if not self._begin():
                    return False
                if theirs.state.unit_shift < self.state.unit_shift:
                    rescale_state(&theirs.state)
                    largest <<= _UNIT_SHIFT
                merged = self._merged(theirs, theirs.state.n_rows, largest)
                if merged is not None:
                    self.copy_from(merged)
                self._commit()
            except BaseException:
                self._undo(before)
                raise
            return merged is not None

    # ---- one row -------------------------------------------------------------------------

    cpdef query_packed(self, words):
        """Judges one packed row.  Answer, or None: withheld, or no row may be judged."""
        return self._query(words, None, True)

    cpdef query(self, values, labels=None):
        """Judges one row of losses, or of predictions against labels; as `query_packed`."""
        return self._query(values, labels, False)

    cdef object _query(self, object values, object labels, bint packed):
        cdef loss_rows rows
        cdef int64_t counts[STACK_LANES]
        cdef int64_t tile[ROW_TILE_WORDS + LANES]
        cdef int64_t total
        cdef chunk_of_rows chunk
        cdef _Scratch scratch
        cdef const sign_store *signs = store_of(self.signs)
        cdef bint is_small = signs.n_words * signs.n_strips < GIL_CELLS
        # the name keeps the array while its rows are read
        values = _as_rows(&rows, values, labels, self.set.packer, 1, signs.n_samples, packed)
        chunk.tile = on_a_line(tile)
        chunk.tile_rows = 1
        chunk.workspace = NULL
        if is_small and signs.n_words <= TILE_WORDS:
            answer = self._judge_at_once(&rows, &chunk)
            if answer is not NotImplemented:
                return answer
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
        with self.lock:
            return self._answer(chunk.totals[0]) if self._judge(&chunk) else None

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
        self.lock.take()
        try:
            if self.ledger is not None or self._closed() or not judge_row(&work, &total, &verdict):
                return NotImplemented
            if verdict == WITHHELD:
                self._halt(self.state.priced)
                return None
            return self._answer(total)
        finally:
            self.lock.end()

    cdef Answer _answer(self, int64_t total):
        """To the last row, which was answered."""
        return _make_answer(<double>total / self._sum_of_ones(), self.epsilon,
                            <double>self.state.complexity / self._cells(), self.state.n_rows,
                            self.tail)

    cdef bint _judge(self, chunk_of_rows *chunk) except -1:
        """Whether the chunk's one row is answered; then, or if it halts, that is kept."""
        cdef _StateMemory before = None
        cdef verdict verdict
        cdef int64_t priced
        if self.ledger is not None:
            before = _StateMemory(self.signs)
            before.copy_from(self)
        try:
            if not self._begin():
                return False
            priced = self.state.priced
            while True:
                judge_rows(self.set.kernel, &self.state, chunk, NULL, NULL, &verdict)
                if verdict == ANSWERED or verdict == WITHHELD:
                    break
                self._meet(verdict)
                if verdict == NEEDS_UNITS:
                    priced = self.state.priced
            if verdict == WITHHELD:
                self._halt(priced)
            self._commit()
            return verdict == ANSWERED
        except BaseException:
            if before is not None:
                self._undo(before)
            raise

    # ---- many rows -----------------------------------------------------------------------

    def query_many_packed(self, words, *, bint trace=False, n_threads=1):
        """Judges packed rows in order; returns as `query_many`."""
        return self._query_many(words, None, True, trace, n_threads)

    def query_many(self, values, labels=None, *, bint trace=False, n_threads=1):
        """Judges rows in order up to the first that is withheld.

        Returns (values, complexities, n_rows, halted, complexity): means of the rows that
        passed, with `trace` the complexity after each, and how the call left the state.  An
        error leaves it as it was.
        None: no row may be judged.
        """
        return self._query_many(values, labels, False, trace, n_threads)

    cdef object _query_many(self, object values, object labels, bint packed, bint trace,
                            object n_threads):
        cdef loss_rows rows
        cdef _StateMemory before = _StateMemory(self.signs)
        cdef _Run run
        cdef ptrdiff_t stop, n_rows
        values = _as_rows(&rows, values, labels, self.set.packer, 2,
                          store_of(self.signs).n_samples, packed)
        n_rows = cnp.PyArray_DIM(values, 0)
        run = _Run(n_rows, trace)
        if self._forked():
            return None
        with self.lock:
            if self._closed():
                return None
            before.copy_from(self)
            try:
                stop = self._judge_many(&rows, (values, labels), n_rows, run, n_threads)
                if stop < 0:
                    return None
            except BaseException:  # KeyboardInterrupt too: no value has left yet
                self._undo(before)
                raise
            return (run.totals_array[:stop] / self._sum_of_ones(),
                    run.trace_array[:stop] / self._cells() if trace else None,
                    self.state.n_rows, self.halted, self.complexity)

    cdef ptrdiff_t _judge_many(self, loss_rows *rows, object memory, ptrdiff_t n_rows, _Run run,
                               object n_threads) except -2:
        """The first row that did not pass, or n_rows; -1: none may be judged any more."""
        cdef _SlicedPlan plan = plan_sliced(self.set.kernel, self.sliced, self.signs, rows, n_rows)
        cdef ptrdiff_t cells = n_rows * self._row_cells(rows, plan)
        cdef int n_useful = min(n_threads, 1 + cells // _thread_cells)
        cdef ptrdiff_t stop
        if n_useful == 1:
            stop = self._scan(rows, 0, n_rows, run, plan)
        else:
            stop = self._scan_in_threads(rows, memory, n_rows, run, plan, n_useful)
        if self.ledger is not None:
            stop = self._commit_scan(rows, n_rows, run, plan, stop)
        return stop

    cdef ptrdiff_t _commit_scan(self, loss_rows *rows, ptrdiff_t n_rows, _Run run, _SlicedPlan plan,
                           ptrdiff_t stop) except -2:
        """Commits what the scan came to, together with what others committed meanwhile.

        Where a row might not pass after theirs, the rows are judged again inside the
        transaction.  Returns as `_judge_many`.
        """
        cdef _StateMemory mine = _StateMemory(self.signs)
        theirs = self.ledger.begin()
        if theirs is not None:
            mine.copy_from(self)
            self._resume(theirs)
            if self.halted:
                self.ledger.rollback()
                return -1
            if stop < n_rows or not self._adopt(mine, 0, n_rows, run):
                stop = self._scan(rows, 0, n_rows, run, plan)
        self._commit()
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
                self._meet(verdict)
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
        from threading import Thread

        cdef _Segment segment
        cdef ptrdiff_t row = 0, stop, length = self._segment_rows(rows, n_rows, plan, n_threads)
        segments = [_Segment.of(self.set.kernel, self.signs, rows, length, plan)
                    for _ in range(n_threads)]
        while row < n_rows:
            for segment in segments:
                segment.first, segment.last = row, min(n_rows, row + length)
                segment.copy_from(self)
                segment.state.budget = segment.state.priced = INT64_MAX
                segment.state.priced_rows = INT64_MAX
                segment.verdict = UNREADABLE  # as far as is known: a thread may end before its task
                row = segment.last
            task = _Task.of(rows, memory, run)
            # this thread works too, beside new ones: a new thread starts on an idle core, where
            # one that is woken often stays on the core of whoever woke it
            threads = [Thread(target=task, args=(segment,)) for segment in segments[1:]]
            for thread in threads:
                thread.start()
            task(segments[0])
            for thread in threads:
                thread.join()
            for segment in segments:
                if segment.verdict != ANSWERED or not self._adopt(
                        segment, segment.first, segment.last, run):
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
        cdef ptrdiff_t block = 1 if plan is None or rows.may_be_real else self.sliced.block_rows
        cdef ptrdiff_t most = max(1, SEGMENT_TIMES * _thread_cells // self._row_cells(rows, plan))
        cdef ptrdiff_t n_segments = n_threads * ((n_rows - 1) // (n_threads * most) + 1)
        return ((n_rows - 1) // (n_segments * block) + 1) * block

    cdef bint _adopt(self, _StateMemory other, ptrdiff_t first, ptrdiff_t last, _Run run) except -1:
        """Merges rows first..last, all judged to pass elsewhere; False if one might not here."""
        cdef int64_t complexity = self.state.complexity
        cdef cnp.ndarray totals = run.totals_array[first:last]
        cdef _StateMemory merged
        if first == last:
            return True
        merged = self._merged(other, last - first, totals.max())
        if merged is None or run.trace != NULL and merged.state.complexity != complexity:
            return False
        self.copy_from(merged)
        if run.trace != NULL:
            run.trace_array[first:last] = complexity
        return True

    cdef _StateMemory _merged(self, _StateMemory other, int64_t n_rows, int64_t largest):
        """Both together, with n_rows more rows; None if some row of the other might not pass.

        `largest` is the largest sum of a row of the other.
        """
        cdef _StateMemory merged
        if (self.state.unit_shift != other.state.unit_shift or largest > self.state.priced
                or self.state.n_rows + n_rows > self.state.priced_rows):
            return None
        merged = _StateMemory(self.signs)
        merged.copy_from(self)
        merge_state(&merged.state, &other.state)
        merged.state.n_rows += n_rows
        return merged if merged.state.complexity <= self.state.budget else None
