"""A guard's state, and rows of losses through it: the one place that judges them.

Nothing here knows a bound: the budget is an integer that the guard puts in.  scan/scan.h pictures
one query from Python to the kernel and back; scan/tiles.h has the words of size.
"""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memcpy

from radabound_fast._kernels.c_sources cimport (
    _UNIT_SHIFT, ANSWERED, LANES, NEEDS_PRICE, NEEDS_UNITS, ROW_TILE_WORDS, TILE_WORDS, UNREADABLE,
    WITHHELD, chunk_of_rows, count_any_rows, guard_state, instruction_set, judge_merged, judge_row,
    judge_rows, loss_rows, merge_state, rescale_state, scan_rows, sign_store, sliced_pays,
    sliced_plan_bytes, units_fit, verdict, work_on_rows,
)
from radabound_fast._kernels.rows cimport (
    LabelRows, PackedLosses, Scratch, SignStore, SlicedPlan, Worker, aligned_int64, as_rows,
    chosen, lie_as_rows, on_a_line, raise_too_large, raise_unreadable, run_workers, store_of,
)
from radabound_fast._kernels.support cimport SharedState, forget_locals, handled_exception

cnp.import_array()

# ---- what a guard answers ------------------------------------------------------------------------

# what an answer tells everybody: not the complexity, which says more of the labels
METRICS = ("value", "low", "high", "half_width", "gain", "gain_low", "gain_high")


@cython.no_gc  # nothing that a rule leads to keeps answers, so that there is no cycle
@cython.freelist(64)
cdef class Answer:
    """What every guard answers to one query: a mean loss, and an interval for the truth.

    Attributes
    ----------
    value : float
        The answer, in units of loss.
    low, high : float
        The truth lies between them, as far as the guard's ``guarantee`` says; in [0, 1].  nan
        where no interval is known.
    half_width : float
        How far the truth may be from `value`: ``value +- half_width`` covers [low, high].
    number : int
        The answer's number: how many answers the guard has given, this one included.

    Notes
    -----
    ``float(answer)`` is its value.  ``answer.to_dict()`` is a dict of all its fields, in a fixed
    order: ``pandas.DataFrame([answer.to_dict() for answer in answers])`` has one row an answer.
    ``answer.as_metrics()`` is a dict of floats for a tracker of experiments.
    """

    # RadaBoundAnswer's own: only a base class has a free list, for objects of its very size
    cdef double _value, _complexity
    cdef int64_t _number
    cdef bint _declared  # whether the losses are 0 or 1 by their type, and not by chance
    # HaltingRule; or its limits, once they were read: low, high, half_width, delta_prime
    cdef object _rule

    fields = ("value", "low", "high", "half_width", "number")

    cdef tuple _limits(self):
        """Low, high, half_width, delta_prime."""
        if type(self._rule) is tuple:
            return self._rule
        rule = self._rule
        low, high = rule.interval(self._value, self._number, self._declared)
        half_width = rule.half_width(self._value, low, high)
        self._rule = low, high, half_width, rule.delta_prime(self._complexity)
        return self._rule

    @property
    def value(self):
        return self._value

    @property
    def number(self):
        return self._number

    @property
    def low(self):
        return self._limits()[0]

    @property
    def high(self):
        return self._limits()[1]

    @property
    def half_width(self):
        return self._limits()[2]

    def __float__(self):
        return self.value

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return repr(self.to_dict()) == repr(other.to_dict())  # where a nan is like any other

    def __hash__(self):
        return hash((self.value, self.number))

    def to_dict(self):
        """All fields by name, as a new dict."""
        return {name: getattr(self, name) for name in self.fields}

    def as_metrics(self, prefix="holdout_"):
        """What a tracker of experiments logs: floats by name, and nothing that the answer withholds.

        ``holdout_value``, ``holdout_low``, ``holdout_high`` and ``holdout_half_width``, or another
        `prefix`, and of a search with a baseline the gain and its limits.
        """
        values = self.to_dict()
        return {f"{prefix}{name}": float(values[name]) for name in METRICS if name in values}

    def __repr__(self):
        values = self.to_dict()
        del values["half_width"]  # low and high show it
        shown = [f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
                 for name, value in values.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


@cython.final
@cython.no_gc
cdef class RadaBoundAnswer(Answer):
    """A mean that the holdout could still afford; what is not `value` is computed when it is read.

    Attributes beyond those of `Answer`, whose `half_width` is epsilon, or less where the bound
    knows more:

    Attributes
    ----------
    complexity : float
        Monte-Carlo Rademacher complexity of all queries so far, in units of loss.  nan in an
        answer of `query_many` without ``trace=True``.
    delta_prime : float
        What the guard's tail bound gives at that complexity, clipped at 1.  nan where the bound
        has no tail.
    """

    fields = (*Answer.fields, "complexity", "delta_prime")

    @property
    def complexity(self):
        return self._complexity

    @property
    def delta_prime(self):
        return self._limits()[3]

    def __reduce__(self):
        return make_answer, (self._value, self._complexity, self._number, self._limits())


def make_answer(double value, double complexity, int64_t number, rule):
    """A RadaBoundAnswer to declared losses; `rule` is a HaltingRule, or the tuple of its limits."""
    return _make_answer(value, complexity, number, True, rule)


cdef RadaBoundAnswer _make_answer(double value, double complexity, int64_t number,
                                  bint declared, object rule):
    cdef RadaBoundAnswer answer = RadaBoundAnswer.__new__(RadaBoundAnswer)
    answer._value = value
    answer._complexity = complexity
    answer._number = number
    answer._declared = declared
    answer._rule = rule
    return answer


# ---- memory of struct guard_state ----------------------------------------------------------------

cdef cnp.ndarray new_state(guard_state *state, SignStore signs):
    """Memory for a state that has seen no row and lets every row pass."""
    cdef int64_t n_lanes = signs.n_lanes()
    cdef cnp.ndarray memory = aligned_int64(2 * n_lanes)  # maxima, then minima
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


# ---- a state as an array -------------------------------------------------------------------------

cdef enum:
    N_COUNTERS = 5

# more rows than any guard judges, and few enough to be counted on from
cdef int64_t MOST_ROWS = 1 << 53


def n_numbers(n_vectors):
    """How many numbers `lay_out` makes of the state of a guard with so many vectors."""
    return N_COUNTERS + 2 * n_vectors


def lay_out(maxima, minima, *, n_rows, unit_shift, largest, halted=False, started=True):
    """The state of a guard as an array: what databases hold, and what `adopt` takes.

    Another layout is another format: other versions in store/schema.py.  It is int64, shape (5 + 2
    n_vectors,): ``n_rows, unit_shift, largest, halted, started``, then the maxima, then the minima.

    `maxima` and `minima`, int64 (n_vectors,), are the extremes of the signed sums, in units of
    2**-unit_shift; anything before the first row, and `started` says whether there was one.
    `largest` is the largest sum of a row, or 0 for a guard whose gate does not depend on it;
    `halted`: a row was withheld.
    """
    counters = (n_rows, unit_shift, largest, halted, started)
    maxima, minima = np.asarray(maxima), np.asarray(minima)
    if maxima.ndim != 1 or maxima.shape != minima.shape:
        raise ValueError("maxima and minima must be of one dimension and of equal length")
    return np.concatenate([np.array(part, np.int64) for part in (counters, maxima, minima)])


@cython.final
cdef class _Layout(_StateMemory):
    """A state that `lay_out` wrote, read and checked."""

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


# ---- what the rows of one call come to -----------------------------------------------------------

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


@cython.final
cdef class _Segment(Worker):
    """Some rows, judged without a budget from a copy of the owner's extremes."""

    cdef _StateMemory memory
    cdef verdict verdict
    cdef _Run run

    cdef int begin(self, const guard_state *state, ptrdiff_t first, ptrdiff_t last) except -1:
        copy_state(&self.memory.state, state)
        self.memory.state.budget = self.memory.state.priced = INT64_MAX
        self.memory.state.priced_rows = INT64_MAX
        self.scratch.work.state = &self.memory.state
        self.scratch.work.totals = self.run.totals
        self.first, self.last = first, last
        return 0

    cdef void judge(self) noexcept nogil:
        scan_rows(&self.scratch.work, self.first, self.last, &self.verdict)


# ---- the judge -----------------------------------------------------------------------------------

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
    these signs of a query, and `weighting.whole` is what one sums up to that errs everywhere.

    Sums are computed before a transaction begins: extremes only grow, so what others have committed
    meanwhile is merged in.
    """

    cdef readonly SignStore signs
    cdef guard_state state
    cdef cnp.ndarray _memory
    cdef const instruction_set *set
    cdef SlicedPlan plan  # kept from the second large call on
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
        self.set = chosen
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
        """The sum of the losses of a row that errs everywhere: m, in the present units."""
        return self.whole * <double>(<int64_t>1 << self.state.unit_shift)

    cdef double _cells(self) noexcept:
        """The divisor of a sum of extremes: l m, or 2 l m for the half-range."""
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
        """Bytes of the tables kept for large calls, see `_plan_for`; 0 before the second call."""
        with self.lock:
            return 0 if self.plan is None else sliced_plan_bytes(self.plan.plan)

    def free_tables(self):
        """Gives that memory back, as a race of blocks against single rows needs."""
        with self.lock:
            self.plan = None
            self.had_large_call = False

    def extremes(self):
        """Copies of (maxima, minima), int64 (n_vectors,), in the units of `unit_shift`."""
        progress = self.progress()
        n = self.state.n_vectors
        return progress[N_COUNTERS:-n], progress[-n:]

    # ---- the state, written, read and copied ---------------------------------------------------

    cdef object _written(self):
        """As `lay_out`, which takes longer."""
        cdef const guard_state *state = &self.state
        cdef cnp.npy_intp n = N_COUNTERS + 2 * state.n_vectors
        cdef cnp.ndarray progress = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT64)
        cdef int64_t *numbers = <int64_t *>cnp.PyArray_DATA(progress)
        cdef size_t n_bytes = state.n_vectors * sizeof(int64_t)
        numbers[0], numbers[1], numbers[2] = state.n_rows, state.unit_shift, largest_of(state)
        numbers[3], numbers[4] = self.has_halted, state.started
        memcpy(numbers + N_COUNTERS, state.maxima, n_bytes)
        memcpy(numbers + N_COUNTERS + state.n_vectors, state.minima, n_bytes)
        return progress

    cdef int _read(self, progress) except -1:
        cdef _Layout there = _Layout.of(self.signs, self.state.half_range, progress)
        self._reprice(&there.state, there.largest, there.state.unit_shift)
        # up to here it may raise, Ctrl-C too, and then nothing has changed
        copy_state(&self.state, &there.state)
        self.has_halted = there.halted
        return 0

    cdef object _copied(self):
        cdef _StateMemory copied = _StateMemory(self.signs)
        copy_state(&copied.state, &self.state)
        return copied

    cdef int _put_back(self, before) except -1:
        copy_state(&self.state, &(<_StateMemory>before).state)
        self.has_halted = False  # as when any change begins
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
        self.has_halted = True
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

        `progress` has the extremes of these rows as `lay_out` writes them; `totals`, int64
        (n_rows,), the sum of each, in the same units and in order, or None where every row passes;
        `may_be_real`: the losses are other than 0 or 1 by their type.

        Returns (n_rows, complexity) with them, or None, and nothing has changed: some row might not
        pass here, where they are to be judged in order; or none may be judged any more.
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
        with self.lock:
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

    def query(self, values, labels=None, *, bint packed=False):
        """Judges one row of losses, packed or not, or of predictions against labels.

        Answer, or None: withheld, or no row may be judged.
        """
        answer = self.at_once(values, labels, packed)
        return self.counted(values, labels, packed) if answer is NotImplemented else answer

    cdef object at_once(self, object values, object labels, bint packed):
        """Judges a row of bits at once; NotImplemented: nothing has changed, see `counted`.

        It must be one tile, and not worth letting go of the GIL.  This runs no Python, whose frames
        an error would keep.
        """
        cdef loss_rows rows
        cdef int64_t tile[ROW_TILE_WORDS + LANES]
        cdef int64_t total
        cdef chunk_of_rows chunk
        cdef work_on_rows work
        cdef verdict verdict
        cdef const sign_store *signs = store_of(self.signs)
        if (self.weighting is not None or signs.n_words > TILE_WORDS
                or signs.n_words * signs.n_strips >= GIL_CELLS
                or not lie_as_rows(&rows, values, labels, self.set.packer, 1, signs.n_samples,
                                   packed)
                or self._forked()):
            return NotImplemented
        chunk.tile = on_a_line(tile)
        chunk.tile_rows = 1
        chunk.workspace = NULL
        work.kernel = self.set.kernel
        work.signs = signs
        work.rows = &rows
        work.state = &self.state
        work.chunk = &chunk
        self.lock.take()
        try:
            if (self.ledger is not None or self.before is not None or self._closed()
                    or not judge_row(&work, &total, &verdict)):
                return NotImplemented
            if verdict == WITHHELD:
                self.has_halted = True  # priced for the rows before it
                return None
            return self._answer(&rows, total)
        finally:
            self.lock.end()

    cdef object counted(self, object values, object labels, bint packed):
        """Judge one row of any kind.  Answer, or None: withheld, or no row may be judged."""
        cdef loss_rows rows
        cdef int64_t counts[STACK_LANES + LANES]
        cdef int64_t tile[ROW_TILE_WORDS + LANES]
        cdef int64_t total
        cdef chunk_of_rows chunk
        cdef Scratch scratch
        cdef const sign_store *signs = store_of(self.signs)
        cdef bint is_small = signs.n_words * signs.n_strips < GIL_CELLS
        if self.weighting is not None:
            values, labels, packed = self.weighting.rows(values, labels, packed, 1), None, False
        # the name keeps the array while its rows are read
        values = as_rows(&rows, values, labels, self.set.packer, 1, signs.n_samples, packed)
        chunk.tile = on_a_line(tile)
        chunk.tile_rows = 1
        chunk.workspace = NULL
        if signs.n_strips * LANES <= STACK_LANES:
            chunk.counts = <int64_t *>on_a_line(counts)
            chunk.totals = &total
            chunk.capacity = 1
        else:
            scratch = Scratch.of(self.set.kernel, self.signs, &rows, 1, None)
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
        self.lock.take()
        try:
            return self._answer(&rows, chunk.totals[0]) if self._judge(&chunk) else None
        finally:
            self.lock.end()

    cdef RadaBoundAnswer _answer(self, const loss_rows *rows, int64_t total):
        """To the last row, which was answered."""
        return _make_answer(<double>total / self._sum_of_ones(),
                            <double>self.state.complexity / self._cells(), self.state.n_rows,
                            not rows.may_be_real, self.rule)

    cdef bint _judge(self, chunk_of_rows *chunk) except -1:
        """Judge the chunk's one row, and commit what changes; False: it is not answered."""
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

    def query_many(self, values, labels=None, *, bint packed=False, bint trace=False, n_threads=1):
        """Judges rows, as `query` takes them, in order up to the first that is withheld.

        Returns (values, complexities, n_rows, halted, complexity, declared): means of the rows
        that passed, with `trace` the complexity after each, how the call left the state, and
        whether the losses are 0 or 1 by their type.  An error leaves it as it was.
        None: no row may be judged.
        """
        cdef loss_rows rows
        cdef _Run run
        cdef ptrdiff_t stop, n_rows
        if self.weighting is not None:
            values, labels, packed = self.weighting.rows(values, labels, packed, 2), None, False
        values = as_rows(&rows, values, labels, self.set.packer, 2,
                          store_of(self.signs).n_samples, packed)
        n_rows = cnp.PyArray_DIM(values, 0)
        run = _Run(n_rows, trace)
        if self._forked():
            return None
        self.lock.take()
        try:
            self._undo()
            if self._closed():
                return None
            self._remember()
            stop = self._judge_many(&rows, (values, labels), n_rows, run, n_threads)
            if stop < 0:
                return None
            self._commit()
            return (run.totals_array[:stop] / self._sum_of_ones(),
                    run.trace_array[:stop] / self._cells() if trace else None,
                    self.state.n_rows, self.has_halted, self.complexity, not rows.may_be_real)
        except BaseException:  # KeyboardInterrupt too: no value has left yet
            self._undo()
            raise
        finally:
            self.lock.end()

    cdef ptrdiff_t _judge_many(self, loss_rows *rows, object memory, ptrdiff_t n_rows, _Run run,
                               object n_threads) except -2:
        """The first row that did not pass, or n_rows; -1: none may be judged any more."""
        cdef SlicedPlan plan = self._plan_for(rows, n_rows)
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

    cdef SlicedPlan _plan_for(self, const loss_rows *rows, ptrdiff_t n_rows):
        """A plan if so many rows go through faster as blocks; else None.

        It takes the time of a few blocks, and twice the memory of the signs.  So the first large
        call makes one only if it has many blocks, and the second makes one to keep.
        """
        cdef SlicedPlan plan
        if not sliced_pays(self.set.kernel, self.set.sliced, store_of(self.signs), rows, n_rows):
            return None
        if self.plan is not None:
            return self.plan
        if not self.had_large_call and n_rows < PLAN_BLOCKS * self.set.sliced.block_rows:
            self.had_large_call = True
            return None
        plan = SlicedPlan.of(self.set, self.signs)
        if self.had_large_call:
            self.plan = plan
        self.had_large_call = True
        return plan

    cdef ptrdiff_t _join_scan(self, loss_rows *rows, ptrdiff_t n_rows, _Run run, SlicedPlan plan,
                              ptrdiff_t stop) except -2:
        """Begins the transaction, and lets what others committed during the scan come first.

        Where a row might not pass after theirs, the rows are judged again inside the
        transaction.  Returns as `_judge_many`.
        """
        cdef _StateMemory mine = self._copied()
        if self._join():
            if self.has_halted:
                return -1
            if stop < n_rows or not self._adopt_scan(mine, rows, 0, n_rows, run):
                stop = self._scan(rows, 0, n_rows, run, plan)
        return stop

    cdef ptrdiff_t _scan(self, loss_rows *rows, ptrdiff_t first, ptrdiff_t last, _Run run,
                         SlicedPlan plan) except -1:
        """Rows first..last on this thread; returns the first that did not pass, or last."""
        cdef Scratch scratch = Scratch.of(self.set.kernel, self.signs, rows, last - first, plan)
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
                                    _Run run, SlicedPlan plan, int n_threads) except -1:
        """Each thread judges a segment from the same start; they are merged in order.

        A segment in which a row might not pass, or with a trace the complexity grew, is done
        again on one thread from where it should have started.
        """
        cdef _Segment segment
        cdef ptrdiff_t row = 0, stop, length = self._segment_rows(rows, n_rows, plan, n_threads)
        cdef list segments = []
        for _ in range(n_threads):
            segment = _Segment()
            segment.memory, segment.run = _StateMemory(self.signs), run
            segment.prepare(self.set, self.signs, rows, memory, length, plan)
            segments.append(segment)
        while row < n_rows:
            for segment in segments:
                segment.begin(&self.state, row, min(n_rows, row + length))
                row = segment.last
            run_workers(segments)
            for segment in segments:
                if segment.verdict != ANSWERED or not self._adopt_scan(
                        segment.memory, rows, segment.first, segment.last, run):
                    stop = self._scan(rows, segment.first, segment.last, run, plan)
                    if stop < segment.last:
                        return stop
            PyErr_CheckSignals()
        return n_rows

    cdef ptrdiff_t _row_cells(self, loss_rows *rows, SlicedPlan plan):
        """The time of one row, in words times strips of packed rows: roughly, for sizing work.

        To pack a word takes as long as six strips, to look real-valued losses up eight times as
        long as to count bits; blocks halve it all.
        """
        cdef ptrdiff_t strips = self.state.n_strips
        if rows.packed == NULL:
            strips = 6 + (8 * strips if rows.may_be_real else strips)
        if plan is not None:
            strips = (strips + 1) // 2
        return store_of(self.signs).n_words * strips

    cdef ptrdiff_t _segment_rows(self, loss_rows *rows, ptrdiff_t n_rows, SlicedPlan plan,
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


# ---- the call that handles one row ---------------------------------------------------------------

cdef class SignedQueries:
    """Base class of guards that count signed sums: a Python frame around a query takes as long as
    half of it.

    A subclass sets `_core`, and `_rows` to the holdout's labels in the forms in which predictions
    came so far, or to None where it is asked about losses.  `_match` returns predictions and their
    labels as `GuardCore` takes them, `_refuse` raises why a row is not answered.  Where `_finishes`
    is set `_finish` makes of each answer the one that is returned.
    """

    cdef public GuardCore _core
    cdef public LabelRows _rows
    cdef public bint _finishes

    def query(self, y_pred):
        """Return the mean loss of one model, if it can still be vouched for.

        Parameters
        ----------
        y_pred : array_like, shape (n_samples,)
            Predicted classes, in the order of the holdout's rows.  A guard made on `Losses`, or on
            a number of rows, takes the losses instead, in [0, 1] and of any bool, integer or float
            dtype.  `PackedLosses` are losses of 0 and 1 for every guard: of a guard made on labels
            they say which predictions are wrong.

        Returns
        -------
        RadaBoundAnswer

        Raises
        ------
        HoldoutExhausted
            This query's answer is withheld, or an earlier one's was.
        TypeError, ValueError
            Not such an array; nothing has changed.
        RuntimeError
            In a process forked after the guard was made, once it was closed, or in the middle of
            another call on this very thread.
        """
        cdef GuardCore core = self._core
        cdef bint packed = type(y_pred) is PackedLosses
        answer = NotImplemented
        labels = None
        if core is not None:  # before what seals errors: it takes 5 ns
            if packed:
                if (<PackedLosses>y_pred).n_samples == store_of(core.signs).n_samples:
                    answer = core.at_once((<PackedLosses>y_pred).words, None, True)
            elif self._rows is None:
                answer = core.at_once(y_pred, None, False)
            else:
                labels = self._rows.find(y_pred, 1)
                if labels is not None:
                    answer = core.at_once(y_pred, labels, False)
            if answer is not NotImplemented and answer is not None and not self._finishes:
                return answer
        outer = handled_exception()
        try:
            if answer is NotImplemented:
                if packed:
                    values = self._words_of(y_pred)
                elif labels is None and self._rows is not None:
                    values, labels = self._match(y_pred, 1)
                else:
                    values = y_pred
                with cython.nonecheck(True):
                    answer = core.counted(values, labels, packed)
            if answer is None:
                return self._refuse()
            return self._finish(answer) if self._finishes else answer
        except BaseException as error:
            forget_locals(error, outer)
            raise


# ---- under signs: what workers count for a guard elsewhere ---------------------------------------

def extremes_of_rows(SignStore signs not None, rows, *, bint packed):
    """Extremes of the signed sums of rows of losses, and the sum of each row.

    `rows` are of shape (k, n_samples), or with `packed` uint64 (k, n_words).  Returns int64 (2,
    n_vectors), the maxima, then the minima, 0 if there are no rows; the sums of the rows, int64
    (k,); and unit_shift, 0 or 24: all of it is in units of 2**-unit_shift.  Errors are those of
    `GuardCore.query_many`.
    """
    cdef loss_rows losses
    cdef GuardCore core = GuardCore(signs)
    cdef object values = as_rows(&losses, rows, None, core.set.packer, 2,
                                  store_of(signs).n_samples, packed)
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0)
    cdef _Run run = _Run(n_rows, False)
    core._judge_many(&losses, values, n_rows, run, 1)
    extremes = np.array(core.extremes()) if n_rows else np.zeros((2, signs.n_vectors), np.int64)
    return extremes, run.totals_array, core.unit_shift
