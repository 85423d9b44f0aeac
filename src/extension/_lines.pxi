# Rows of numbers as lines of text, each number as Python prints it.
#
# A mean is one of few values, and so are its limits: what repr makes of a float is kept in a table
# and copied from there the next time.

cdef extern from *:  # Python.h
    char *PyOS_double_to_string(double, char, int, int, int *) except NULL
    const int Py_DTSF_ADD_DOT_0
    void PyMem_Free(void *)

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    enum { CELL_BITS = 12, CELL_BYTES = 31, NUMBER_BYTES = 20 };

    /* Of one float; the longest that repr makes, -2.2250738585072014e-308, has 24 characters. */
    struct cell {
        uint64_t bits;
        unsigned char n_bytes; /* 0: no float was here yet */
        char text[CELL_BYTES];
    };

    struct lines {
        const char *head; /* begins every line */
        ptrdiff_t head_bytes;
        const int64_t *numbers;
        const double *const *columns;
        int n_columns, missing;
        struct cell *cells; /* a table a column */
    };

    static struct cell *cell_of(const struct lines *lines, int column, ptrdiff_t row)
    {
        uint64_t bits;
        memcpy(&bits, lines->columns[column] + row, sizeof bits);
        uint64_t place = bits * 0x9e3779b97f4a7c15u >> (64 - CELL_BITS);
        struct cell *cell = lines->cells + ((ptrdiff_t)column << CELL_BITS) + place;
        if (cell->n_bytes && cell->bits == bits)
            return cell;
        cell->bits = bits;
        cell->n_bytes = 0; /* the caller's to fill */
        return cell;
    }

    static char *put_number(char *to, int64_t number)
    {
        char digits[NUMBER_BYTES], *first = digits + NUMBER_BYTES;
        uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
        do
            *--first = (char)('0' + left % 10);
        while (left /= 10);
        if (number < 0)
            *to++ = '-';
        size_t n = digits + NUMBER_BYTES - first;
        memcpy(to, first, n);
        return to + n;
    }

    /* Rows from `row` up to `n_rows`, or up to one with a float that has no cell yet: it is in the
     * column `missing`.  Returns the row after the last that was put, and moves *to. */
    static ptrdiff_t put_lines(struct lines *lines, ptrdiff_t row, ptrdiff_t n_rows, char **to)
    {
        for (; row < n_rows; row++) {
            char *at = *to;
            memcpy(at, lines->head, lines->head_bytes);
            at = put_number(at + lines->head_bytes, lines->numbers[row]);
            for (int column = 0; column < lines->n_columns; column++) {
                const struct cell *cell = cell_of(lines, column, row);
                if (!cell->n_bytes) {
                    lines->missing = column;
                    return row;
                }
                *at++ = ',';
                memcpy(at, cell->text, CELL_BYTES); /* all of it: a size known beforehand */
                at += cell->n_bytes;
            }
            *at++ = '\\n';
            *to = at;
        }
        return row;
    }
    """
    enum:
        CELL_BITS
        CELL_BYTES
        NUMBER_BYTES
    struct cell:
        unsigned char n_bytes
        char text[1]
    struct lines:
        const char *head
        ptrdiff_t head_bytes
        const int64_t *numbers
        const double *const *columns
        int n_columns, missing
        cell *cells
    cell *cell_of(const lines *, int column, ptrdiff_t row) nogil
    ptrdiff_t put_lines(lines *, ptrdiff_t row, ptrdiff_t n_rows, char **to) nogil


cdef int fill_cell(cell *empty, double number) except -1:
    cdef char *text = PyOS_double_to_string(number, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    cdef size_t n_bytes = strlen(text)
    memcpy(empty.text, text, n_bytes)
    empty.n_bytes = <unsigned char>n_bytes
    PyMem_Free(text)
    return 0


@cython.final
cdef class Lines:
    """Lines of a CSV file: a head, an integer and floats, as ``repr`` prints them.

    Parameters
    ----------
    n_columns : int
        How many floats a line has.

    Notes
    -----
    For one thread at a time.
    """

    cdef object _cells, _text
    cdef int _n_columns

    def __init__(self, int n_columns):
        self._n_columns = n_columns
        self._cells = bytearray(n_columns * sizeof(cell) << CELL_BITS)
        self._text = bytearray()

    def of(self, bytes head not None, const int64_t[::1] numbers, *columns):
        """The lines of some rows.

        Parameters
        ----------
        head : bytes
            What every line begins with.
        numbers : ndarray of int64, shape (n,)
        *columns : ndarray of float64, shape (n,)

        Returns
        -------
        memoryview
            Until the next call.
        """
        cdef lines made
        cdef ptrdiff_t n_rows = numbers.shape[0], row = 0
        cdef unsigned char[::1] cells = self._cells
        cdef const double[::1] column
        cdef cell *empty
        if len(columns) != self._n_columns:
            raise ValueError(f"columns must be {self._n_columns}, got {len(columns)}")
        if n_rows == 0:
            return memoryview(b"")
        held = []
        for given in columns:
            column = given
            if column.shape[0] != n_rows:
                raise ValueError("columns must be as long as numbers")
            held.append(column)
        cdef ptrdiff_t room = len(head) + NUMBER_BYTES + 2 + self._n_columns * (CELL_BYTES + 1)
        cdef unsigned char[::1] text
        if len(self._text) < n_rows * room:
            self._text = bytearray(n_rows * room)
        text = self._text
        cdef char *end = <char *>&text[0]
        cdef const double **pointers = <const double **>malloc(
            (self._n_columns + 1) * sizeof(double *)
        )
        try:
            if pointers == NULL:
                raise MemoryError
            for place in range(self._n_columns):
                column = held[place]
                pointers[place] = &column[0]
            made.head, made.head_bytes = head, len(head)
            made.numbers, made.columns, made.n_columns = &numbers[0], pointers, self._n_columns
            made.cells, made.missing = (<cell *>&cells[0] if self._n_columns else NULL), 0
            while True:
                with nogil:
                    row = put_lines(&made, row, n_rows, &end)
                if row == n_rows:
                    return memoryview(self._text)[:end - <char *>&text[0]]
                empty = cell_of(&made, made.missing, row)
                fill_cell(empty, pointers[made.missing][row])
        finally:
            free(pointers)
