"""What a declared search stores of its queries, and the binomial tails behind its limits."""

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLongMask
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from radabound_fast._kernels.support cimport QuickLock

cnp.import_array()

# ---- queries, a row of cells for each: query_table.h with memory and a lock ----------------------

cdef extern from "radabound_fast/_kernels/query_table.h" nogil:
    const int N_KEYS
    struct cells:
        uint64_t base
        void *cells
        int width
    struct query_table:
        cells *columns
        ptrdiff_t n_columns, n_rows
        uint32_t *slots
        ptrdiff_t n_slots
        int index_bits
    struct new_cells:
        const char *first
        ptrdiff_t stride
    uint64_t new_cell(const new_cells *, ptrdiff_t row)
    uint64_t cell_at(const cells *, ptrdiff_t row)
    int width_for(const cells *, const new_cells *, ptrdiff_t n_rows)
    void widen_cells(cells *, void *memory, int to, ptrdiff_t n_rows)
    void fill_slots(query_table *, uint32_t *slots, ptrdiff_t n_slots, int index_bits)
    ptrdiff_t add_rows(query_table *, const new_cells *, ptrdiff_t n_rows)
    void place_rows(const query_table *, const new_cells *, ptrdiff_t n_rows, ptrdiff_t n_before,
                    int64_t *places, int64_t *numbers)
    int is_odd(const query_table *, const new_cells *, ptrdiff_t new_row, ptrdiff_t row)
    void take_back_rows(query_table *, ptrdiff_t n_rows)

cdef enum:
    # an index and a bit of a tag fit a slot of 32 bits; more queries than any search has
    MOST_INDEX_BITS = 31


@cython.final
cdef class QueryTable:
    """The queries of a search: for each, which is a code and a rerun, n_values numbers of 64 bits.

    A call changes all or nothing, in one step, and may come from any thread.  `n_added` is how
    often a query was added, whether it was there before or not.
    """

    cdef readonly int64_t n_added
    cdef QuickLock _lock
    cdef query_table _table
    cdef ptrdiff_t _capacity
    cdef uint64_t *_row  # one to add
    cdef new_cells *_new  # rows to add; at first, that one
    cdef dict _names  # the codes that are no int in [0, 2**63): cells have -1, -2, ... for them

    def __cinit__(self, ptrdiff_t n_values):
        cdef ptrdiff_t n_columns = N_KEYS + n_values
        self._lock, self._names = QuickLock(), {}
        self._table.n_columns = n_columns
        self._table.columns = <cells *>PyMem_RawCalloc(n_columns, sizeof(cells))
        self._row = <uint64_t *>PyMem_RawCalloc(n_columns, sizeof(uint64_t))
        self._new = <new_cells *>PyMem_RawCalloc(n_columns, sizeof(new_cells))
        if self._table.columns == NULL or self._row == NULL or self._new == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef ptrdiff_t column
        if self._table.columns != NULL:
            for column in range(self._table.n_columns):
                PyMem_RawFree(self._table.columns[column].cells)
        PyMem_RawFree(self._table.columns)
        PyMem_RawFree(self._table.slots)
        PyMem_RawFree(self._row)
        PyMem_RawFree(self._new)

    def __len__(self):
        return self._table.n_rows

    def add(self, codes, reruns, list values not None):
        """Add queries, unless one is there, or comes earlier, with other values.

        `codes` are hashables, `reruns` int64 (k,), and `values` a list of n_values ndarrays (k,) of
        any 8-byte dtype.  Returns how many queries there are now; how many there were after each,
        int64 (k,), or None if all of them are new; and None, or rows because of which nothing was
        added, int64 (n_odd,), and the values that these queries have, int64 (n_values, n_odd).
        """
        return self._add(codes, False, reruns, values)

    cdef _add(self, codes, bint numbered, reruns, list values):
        """`add`; `numbered`: codes are as cells have them."""
        cdef query_table *table = &self._table
        cdef ptrdiff_t n_rows = len(codes), n_before, n_odd, n_queries
        cdef Py_ssize_t n_names
        cdef cnp.ndarray numbers = None, places
        cdef bint done = False
        odd = None
        self._lock.take()
        n_before, n_names = table.n_rows, len(self._names)
        try:
            columns = [codes if numbered else self._numbered(codes), reruns, *values]
            self._point_at(columns, n_rows)  # whose memory `columns` keeps
            if n_rows > 0:
                self._reserve(n_rows)
            n_odd = add_rows(table, self._new, n_rows)
            if table.n_rows < n_before + n_rows:
                numbers, places = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
                place_rows(table, self._new, n_rows, n_before,
                           <int64_t *>cnp.PyArray_DATA(places), <int64_t *>cnp.PyArray_DATA(numbers))
                odd = self._odd(places, n_odd) if n_odd else None
            n_queries = n_before if n_odd else table.n_rows
            answer = n_queries, numbers, odd  # for which there may be no memory
            done = n_odd == 0
            self.n_added += n_rows if done else 0
        finally:
            self._end(done, n_before, n_names)
        return answer

    def add_one(self, code, int64_t rerun, *values):
        """`add` of one query, whose values are ints and floats.

        Returns how many there are now, and None, or the values that this query has already, a list
        of ints, if they are others.
        """
        cdef query_table *table = &self._table
        cdef ptrdiff_t column, n_before, n_values = table.n_columns - N_KEYS
        cdef Py_ssize_t n_names
        cdef double real
        cdef bint done = False
        cdef int64_t place, number
        if len(values) != n_values:
            raise ValueError(f"values must be {n_values}, got {len(values)}")
        before = None
        self._lock.take()
        n_before, n_names = table.n_rows, len(self._names)
        try:
            self._row[0], self._row[1] = <uint64_t>self._number(code), <uint64_t>rerun
            for column, value in enumerate(values, N_KEYS):
                if isinstance(value, float):
                    real = value
                    memcpy(self._row + column, &real, sizeof(real))
                else:
                    self._row[column] = PyLong_AsUnsignedLongLongMask(value)
            for column in range(table.n_columns):
                self._new[column].first = <const char *>(self._row + column)
                self._new[column].stride = 0
            self._reserve(1)
            if add_rows(table, self._new, 1):
                place_rows(table, self._new, 1, n_before, &place, &number)
                before = [<int64_t>cell_at(&table.columns[N_KEYS + column], place)
                          for column in range(n_values)]
            answer = table.n_rows, before  # for which there may be no memory
            self.n_added += before is None
            done = True
        finally:
            self._end(done, n_before, n_names)
        return answer

    cdef int _end(self, bint done, ptrdiff_t n_before, Py_ssize_t n_names) except -1:
        """Ends a call; one that is not done has changed nothing."""
        if not done:
            take_back_rows(&self._table, n_before)
            while len(self._names) > n_names:
                self._names.popitem()
        self._lock.end()
        return 0

    cdef int _point_at(self, list columns, ptrdiff_t n_rows) except -1:
        cdef cnp.ndarray array
        cdef ptrdiff_t column, n_columns = self._table.n_columns
        if len(columns) != n_columns:
            raise ValueError(f"columns must be {n_columns}, got {len(columns)}")
        for column in range(n_columns):
            array = columns[column]
            if (cnp.PyArray_NDIM(array) != 1 or cnp.PyArray_DIM(array, 0) != n_rows
                    or cnp.PyArray_ITEMSIZE(array) != sizeof(uint64_t)):
                raise ValueError(f"columns must be {n_rows} numbers of 64 bits each")
            self._new[column].first = <const char *>cnp.PyArray_DATA(array)
            self._new[column].stride = cnp.PyArray_STRIDE(array, 0)
        return 0

    cdef int _reserve(self, ptrdiff_t n_new) except -1:
        """Room for the new rows; what is there stays as it is, whatever goes wrong."""
        cdef query_table *table = &self._table
        cdef ptrdiff_t n_rows = table.n_rows, capacity = self._capacity, column, n_slots
        cdef int width, bits = 0
        cdef uint32_t *slots
        cdef cells *cell
        cdef void *memory
        if n_rows + n_new > capacity:
            capacity = n_rows + n_new + n_rows // 8
        for column in range(table.n_columns):
            cell = &table.columns[column]
            if n_rows == 0:
                cell.base = new_cell(&self._new[column], 0)
            width = width_for(cell, &self._new[column], n_new)
            if width > cell.width or width > 0 and capacity > self._capacity:
                memory = PyMem_RawRealloc(cell.cells, capacity * width)
                if memory == NULL:
                    raise MemoryError
                widen_cells(cell, memory, width, n_rows)
        self._capacity = capacity
        if 4 * (n_rows + n_new) > 3 * table.n_slots:
            n_slots = max(4 * (n_rows + n_new) // 3 + 8, table.n_slots + table.n_slots // 2)
            while n_slots >> bits:
                bits += 1
            if bits > MOST_INDEX_BITS:
                raise OverflowError(f"a search keeps at most {3 << (MOST_INDEX_BITS - 2)} queries")
            slots = <uint32_t *>PyMem_RawCalloc(n_slots, sizeof(uint32_t))
            if slots == NULL:
                raise MemoryError
            PyMem_RawFree(table.slots)
            fill_slots(table, slots, n_slots, bits)
        return 0

    def columns(self):
        """Everything, in the order in which it was added.

        Codes are a list of hashables, or int64 (n,); reruns int64 (n,); values n_values of int64
        (n,).
        """
        names, numbers, reruns, *values = self._columns()
        if names:
            numbers = [number if number >= 0 else names[-1 - number] for number in numbers.tolist()]
        return numbers, reruns, values

    def copy(self):
        """Another one that has the same."""
        return table_of_columns(self.n_added, *self._columns())

    def __reduce__(self):
        return table_of_columns, (self.n_added, *self._columns())

    cdef tuple _columns(self):
        cdef query_table *table = &self._table
        cdef ptrdiff_t row, column
        cdef cnp.ndarray array
        cdef int64_t *out
        cdef list arrays = []
        self._lock.take()
        try:
            for column in range(table.n_columns):
                array = np.empty(table.n_rows, np.int64)
                out = <int64_t *>cnp.PyArray_DATA(array)
                for row in range(table.n_rows):
                    out[row] = <int64_t>cell_at(&table.columns[column], row)
                arrays.append(array)
            return (list(self._names), *arrays)
        finally:
            self._lock.end()

    cdef _odd(self, cnp.ndarray places, ptrdiff_t n_odd):
        """The odd ones of the new rows, and the values that their queries have."""
        cdef query_table *table = &self._table
        cdef ptrdiff_t n_values = table.n_columns - N_KEYS, row, value, n = 0
        cdef const int64_t *place = <const int64_t *>cnp.PyArray_DATA(places)
        cdef cnp.ndarray rows = np.empty(n_odd, np.int64)
        cdef cnp.ndarray values = np.empty((n_values, n_odd), np.int64)
        cdef int64_t *out = <int64_t *>cnp.PyArray_DATA(values)
        for row in range(cnp.PyArray_DIM(places, 0)):
            if is_odd(table, self._new, row, place[row]):
                (<int64_t *>cnp.PyArray_DATA(rows))[n] = row
                for value in range(n_values):
                    out[value * n_odd + n] = <int64_t>cell_at(&table.columns[N_KEYS + value],
                                                              place[row])
                n += 1
        return rows, values

    cdef _numbered(self, codes):
        """Codes as int64."""
        cdef ptrdiff_t row
        cdef int64_t *out
        cdef list listed
        if isinstance(codes, np.ndarray):
            if are_numbers(codes):
                return codes
            codes = codes.tolist()
        listed = codes if isinstance(codes, list) else list(codes)
        numbers = np.empty(len(listed), np.int64)
        out = <int64_t *>cnp.PyArray_DATA(numbers)
        for row in range(len(listed)):
            with cython.boundscheck(True):  # to hash a code may shorten the list
                out[row] = self._number(listed[row])
        return numbers

    cdef int64_t _number(self, code) except? -1:
        cdef int overflow = 0
        cdef int64_t number = -1
        if isinstance(code, np.integer):
            code = int(code)
        if isinstance(code, int):
            number = PyLong_AsLongLongAndOverflow(code, &overflow)
        if number >= 0:
            return number
        place = self._names.get(code)
        if place is None:
            place = self._names[code] = len(self._names)
        return -1 - place


cdef bint are_numbers(cnp.ndarray codes):
    """Whether codes are int64, and none stands for a name."""
    cdef ptrdiff_t row
    cdef new_cells cells
    if (cnp.PyArray_NDIM(codes) != 1 or cnp.PyArray_TYPE(codes) != cnp.NPY_INT64
            or not cnp.PyArray_ISNOTSWAPPED(codes)):
        return False
    cells.first = <const char *>cnp.PyArray_DATA(codes)
    cells.stride = cnp.PyArray_STRIDE(codes, 0)
    for row in range(cnp.PyArray_DIM(codes, 0)):
        if <int64_t>new_cell(&cells, row) < 0:
            return False
    return True


def table_of_columns(n_added, names, *columns):
    """A `QueryTable` as it was pickled, maybe where bytes have another order."""
    codes, reruns, *values = [np.asarray(column, np.int64) for column in columns]
    cdef QueryTable table = QueryTable(len(values))
    table._names = {name: place for place, name in enumerate(names)}
    table._add(codes, True, reruns, values)
    table.n_added = n_added
    return table


# ---- a binomial tail over its first term, which takes most of the time of an exact limit ---------

cdef extern from *:
    """
    #include <stddef.h>

    #define TAILS_AT_ONCE 128 /* which stay in the nearest cache */

    /* The continued fraction of Abramowitz and Stegun (1964), 26.5.9, from its end, for counts side
     * by side: a division waits for the one before it, but not for its neighbours.
     */
    static void few_tails(ptrdiff_t n, const double *__restrict c, const double *__restrict m,
                          const double *__restrict odds, int terms, double *__restrict t)
    {
        for (ptrdiff_t i = 0; i < n; i++)
            t[i] = c[i] + (terms - 1.0);
        for (int term = terms; term > 1; term--) {
            double j = term / 2;
            if (term % 2)
                for (ptrdiff_t i = 0; i < n; i++)
                    t[i] = (m[i] + j) * j * odds[i] / t[i] + (c[i] + (term - 2.0));
            else
                for (ptrdiff_t i = 0; i < n; i++)
                    t[i] = (c[i] + (j - 1.0)) * (c[i] + (j - 1.0 - m[i])) * odds[i] / t[i]
                        + (c[i] + (term - 2.0));
        }
        for (ptrdiff_t i = 0; i < n; i++)
            t[i] = c[i] / t[i];
    }

    static void tails_over_first(ptrdiff_t n, const double *c, const double *m, const double *odds,
                                 int terms, double *t)
    {
        for (ptrdiff_t i = 0; i < n; i += TAILS_AT_ONCE) {
            ptrdiff_t left = n - i;
            few_tails(left < TAILS_AT_ONCE ? left : TAILS_AT_ONCE, c + i, m + i, odds + i, terms,
                      t + i);
        }
    }
    """
    void tails_over_first(ptrdiff_t n, const double *c, const double *m, const double *odds,
                          int terms, double *t) noexcept nogil


def tail_over_first(c, m, odds, int terms):
    """``P(Bin(m, q) >= c) / P(Bin(m, q) = c)`` at odds q/(1-q) of at most c/(m-c); rounded up.

    `c`, `m` and `odds` are floats or float64 (n,), and so is the result; 0 < c < m, and m may be
    one number for all.  `terms` are those of the continued fraction: all its denominators are
    positive, and so 2 (mod 4) of them give too much (Result 16 of docs/explanation/theory.md); 2
    give the bound by a geometric series.
    """
    cdef double count, size, share, tail
    cdef cnp.ndarray counts, sizes, shares, tails
    cdef ptrdiff_t n
    if isinstance(odds, float):
        count, size, share = c, m, odds
        tails_over_first(1, &count, &size, &share, terms, &tail)
        return tail
    counts = np.ascontiguousarray(c, np.float64)
    shares = np.ascontiguousarray(odds, np.float64)
    if counts.ndim != 1 or c.shape != odds.shape:
        raise ValueError("c and odds must be of one dimension and of equal length")
    n = len(counts)
    sizes = np.ascontiguousarray(np.broadcast_to(m, (n,)), np.float64)
    tails = np.empty(n)
    tails_over_first(n, <const double *>cnp.PyArray_DATA(counts),
                     <const double *>cnp.PyArray_DATA(sizes),
                     <const double *>cnp.PyArray_DATA(shares), terms,
                     <double *>cnp.PyArray_DATA(tails))
    return tails
