# Values of any number dtype into bits, where they lie.
#
# Who checks what: packing.py and labels.py turn whatever users have into ndarrays of the right
# shape; fill_source takes such an array without a copy; the packers look at every value once, and
# raise_bad_value says which one is not allowed.  Labels are never part of a message.

import sys

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "kernels/packing.h" nogil:
    """
    /* 1 + the kind of each of numpy's types that the packers read; 0 for all others. */
    static const signed char kind_of_type[NPY_NTYPES_LEGACY] = {
        [NPY_BOOL] = 1 + VALUE_U8,
        [NPY_BYTE] = 1 + VALUE_U8,
        [NPY_UBYTE] = 1 + VALUE_U8,
        [NPY_SHORT] = 1 + VALUE_U16,
        [NPY_USHORT] = 1 + VALUE_U16,
        [NPY_INT] = 1 + VALUE_U32,
        [NPY_UINT] = 1 + VALUE_U32,
        [NPY_LONG] = 1 + (NPY_SIZEOF_LONG == 4 ? VALUE_U32 : VALUE_U64),
        [NPY_ULONG] = 1 + (NPY_SIZEOF_LONG == 4 ? VALUE_U32 : VALUE_U64),
        [NPY_LONGLONG] = 1 + VALUE_U64,
        [NPY_ULONGLONG] = 1 + VALUE_U64,
        [NPY_HALF] = 1 + VALUE_F16,
        [NPY_FLOAT] = 1 + VALUE_F32,
        [NPY_DOUBLE] = 1 + VALUE_F64,
    };

    enum { N_NUMPY_TYPES = NPY_NTYPES_LEGACY };

    static int kind_of_number(int type)
    {
        return type < NPY_NTYPES_LEGACY ? kind_of_type[type] - 1 : -1;
    }
    """
    enum value_kind:
        VALUE_U8
        VALUE_F16
    union class_value:
        uint64_t integer
        double real
    struct source:
        value_kind kind
        const char *values
        ptrdiff_t row_stride, stride
        int swapped, is_signed
        int64_t n_samples
        class_value first, last
        const uint64_t *label_bits
        const char *labels
    struct packer:
        int64_t (*pack_row)(const source *, ptrdiff_t, uint64_t *) noexcept nogil
        int64_t (*units_row)(const source *, ptrdiff_t, int32_t *) noexcept nogil
    int value_bytes(value_kind)
    const char *side_by_side(const source *, ptrdiff_t row, int64_t start, int n, size_t size,
                             char *copy)
    int kind_of_number(int numpy_type)
    const int N_NUMPY_TYPES


cdef inline int value_kind_of(cnp.ndarray values) noexcept:
    """The kind of an array's dtype, in either byte order; -1 if no packer reads it."""
    return kind_of_number(cnp.PyArray_TYPE(values))


cpdef bint reads_dtype(cnp.dtype dtype) noexcept:
    """Whether the packers read values of this dtype as they are."""
    return kind_of_number(dtype.num) >= 0


@cython.final
cdef class PackedLosses:
    """Losses of 0 and 1 as bits, one or many rows: an eighth of the memory of bool.

    Made by `pack_losses`, or of words that were packed before.  A slice of several rows is one
    again, without a copy.

    Parameters
    ----------
    words : ndarray of uint64, shape (n_words,) or (k, n_words), n_words = ceil(n_samples / 64)
        Row i of the holdout is bit i % 64 of word i // 64, the lowest bit first; bits past
        n_samples are zero.  A memory map is not read before it is asked about.
    n_samples : int
        Losses a row.

    Attributes
    ----------
    words : ndarray of uint64
    n_samples : int

    Raises
    ------
    TypeError, ValueError
        Not such an array.
    """

    cdef readonly cnp.ndarray words
    cdef readonly int64_t n_samples

    def __cinit__(self, words, n_samples):
        from radabound_fast._checks import check_n_samples
        from radabound_fast.rows.packing import unchecked_words

        self.n_samples = check_n_samples(n_samples)
        self.words = unchecked_words(words, self.n_samples)

    @property
    def ndim(self):
        """1 for one row, 2 for several."""
        return self.words.ndim

    def __len__(self):
        """Rows, k; TypeError for a single one."""
        if self.words.ndim == 1:
            raise TypeError("one row of packed losses has no len()")
        return self.words.shape[0]

    def __getitem__(self, rows):
        if self.words.ndim == 1:
            raise TypeError("one row of packed losses has no rows to choose from")
        return PackedLosses(self.words[rows], self.n_samples)

    def __reduce__(self):
        return PackedLosses, (self.words, self.n_samples)

    def __repr__(self):
        k = "" if self.words.ndim == 1 else f"{self.words.shape[0]}, "
        return f"PackedLosses({k}n_samples={self.n_samples})"


@cython.final
cdef class LabelRow:
    """Labels as the packers want them beside predictions of one dtype.

    Either `bits`, for two classes: bit i set where label i is not `first`; or `values`, labels
    of this very dtype that are whole numbers from `first` to `last`.  Made by labels.Labels.
    """

    cdef source rule  # what it says of values means nothing
    cdef cnp.ndarray _memory

    def __cinit__(self, cnp.dtype dtype, first, last, int64_t n_samples, *, bits=None, values=None):
        cdef int kind = kind_of_number(dtype.num)
        if kind < 0:
            raise TypeError(f"dtype must be a number type that the packers read, got {dtype}")
        self.rule.kind = <value_kind>kind
        self.rule.is_signed = dtype.kind == c"i"
        self.rule.n_samples = n_samples
        if kind >= VALUE_F16:
            self.rule.first.real, self.rule.last.real = first, last
        else:
            self.rule.first.integer, self.rule.last.integer = first % 2**64, last % 2**64
        if values is None:
            self._memory = np.array(bits, np.uint64, ndmin=1, copy=True, order="C")
            self.rule.label_bits = <const uint64_t *>cnp.PyArray_DATA(self._memory)
            n_samples = (n_samples + 63) // 64
        else:
            self._memory = _aligned_copy(np.asarray(values, dtype.newbyteorder("=")))
            self.rule.labels = <const char *>cnp.PyArray_DATA(self._memory)
        if self._memory.size != n_samples:
            raise ValueError("a LabelRow must have n_samples labels")


cdef cnp.ndarray _aligned_copy(values):
    """One whose loads never straddle two lines of the cache, which took a fifth of the speed."""
    memory = _aligned_int64((values.nbytes + 7) // 8).view(np.uint8)
    copy = memory[:values.nbytes].view(values.dtype)
    copy[:] = values.ravel()
    return copy


@cython.final
cdef class LabelRows:
    """The LabelRow of every dtype that predictions came in so far: repeated queries are cheap."""

    cdef list _of_type
    cdef int64_t _n_samples

    def __cinit__(self, int64_t n_samples):
        self._of_type = [None] * N_NUMPY_TYPES
        self._n_samples = n_samples

    cpdef find(self, values, int ndim):
        """The row for these values, if they are an ndarray of the right shape and a known dtype."""
        if type(values) is not np.ndarray:
            return None
        cdef cnp.ndarray array = <cnp.ndarray>values
        cdef int number = cnp.PyArray_TYPE(array)
        if (cnp.PyArray_NDIM(array) != ndim or number >= N_NUMPY_TYPES
                or cnp.PyArray_DIM(array, ndim - 1) != self._n_samples):
            return None
        return self._of_type[number]

    def add(self, cnp.dtype dtype, LabelRow row not None):
        self._of_type[dtype.num] = row


cdef int fill_source(cnp.ndarray values, object labels, source *out) except -1:
    """Rows (n_samples,) or (n_rows, n_samples) as the packers read them.

    labels: a LabelRow for predictions, None for losses.  `out` borrows from both.
    """
    cdef int ndim = cnp.PyArray_NDIM(values), kind = value_kind_of(values)
    cdef bint is_signed = cnp.PyArray_ISINTEGER(values) and cnp.PyArray_ISSIGNED(values)
    if kind < 0 or not 1 <= ndim <= 2 or cnp.PyArray_DIM(values, ndim - 1) == 0:
        raise ValueError(f"values must be rows of numbers, got {values.dtype} of shape "
                         f"{np.shape(values)}")
    if labels is None:
        out.label_bits = NULL
        out.labels = NULL
        if kind >= VALUE_F16:
            out.first.real, out.last.real = 0.0, 1.0
        else:
            out.first.integer, out.last.integer = 0, 1
    else:
        out[0] = (<LabelRow?>labels).rule
        if <int>out.kind != kind or out.is_signed != is_signed:
            raise TypeError(f"values must be of the dtype of the labels, got {values.dtype}")
        if out.n_samples != cnp.PyArray_DIM(values, ndim - 1):
            raise ValueError(f"values must have {out.n_samples} samples a row, got shape "
                             f"{np.shape(values)}")
    out.kind = <value_kind>kind
    out.values = <const char *>cnp.PyArray_DATA(values)
    out.row_stride = cnp.PyArray_STRIDE(values, 0) if ndim == 2 else 0
    out.stride = cnp.PyArray_STRIDE(values, ndim - 1)
    out.swapped = not cnp.PyArray_ISNOTSWAPPED(values)
    out.is_signed = is_signed
    out.n_samples = cnp.PyArray_DIM(values, ndim - 1)
    return 0


cdef object value_at(const source *rows, ptrdiff_t row, int64_t sample):
    """One value as a Python number."""
    cdef char copy[8]
    cdef bint is_real = rows.kind >= VALUE_F16
    cdef int size = value_bytes(rows.kind)
    raw = PyBytes_FromStringAndSize(side_by_side(rows, row, sample, 1, size, copy), size)
    if is_real:
        return np.frombuffer(raw, f"f{size}").item()
    return int.from_bytes(raw, sys.byteorder, signed=rows.is_signed)


def bad_prediction(value, place):
    """The error for a prediction that is no class; the same words for every kind of label."""
    if isinstance(value, np.floating):
        value = float(value)
    score = isinstance(value, float) and value % 1 > 0
    hint = ", which looks like a score" if score else ""
    return ValueError(f"y_pred must hold only known classes, got {value!r:.100} {place}{hint}")


cdef int raise_bad_value(const source *rows, ptrdiff_t row, int64_t sample) except -1:
    """The error for the value at which pack_row or units_row stopped."""
    value = value_at(rows, row, sample)
    place = f"at row {row}, sample {sample}" if rows.row_stride else f"at sample {sample}"
    if rows.labels != NULL or rows.label_bits != NULL:
        raise bad_prediction(value, place)
    rule = "be 0 or 1 to be packed" if 0 <= value <= 1 else "be in [0, 1]"
    raise ValueError(f"losses must {rule}, got {value!r} {place}")


cdef const packer *_packer_of(kernel) except NULL:
    return (_chosen if kernel is None else _set_named(kernel)).packer


def pack_rows(cnp.ndarray values, labels=None, *, kernel=None):
    """Bits of losses that are 0 or 1, or of predictions that are not their labels.

    Parameters
    ----------
    values : ndarray, shape (n_samples,) or (n_rows, n_samples)
        Of a dtype that `reads_dtype`, in any strides and byte order.
    labels : LabelRow, optional
        Made for this dtype; None: `values` are losses.
    kernel : str, optional
        Whose instruction set to use; None: the chosen one's.

    Returns
    -------
    ndarray of uint64, shape (n_words,) or (n_rows, n_words)
    """
    cdef source rows
    cdef const packer *chosen = _packer_of(kernel)
    fill_source(values, labels, &rows)
    cdef ptrdiff_t n_words = (rows.n_samples + 63) // 64, row = 0
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0) if cnp.PyArray_NDIM(values) == 2 else 1
    cdef cnp.ndarray out = np.empty((n_rows, n_words), np.uint64)
    cdef uint64_t *words = <uint64_t *>cnp.PyArray_DATA(out)
    cdef int64_t read = rows.n_samples
    with nogil:
        while row < n_rows:
            read = chosen.pack_row(&rows, row, words + row * n_words)
            if read != rows.n_samples:
                break
            row += 1
    if read != rows.n_samples:
        raise_bad_value(&rows, row, read)
    return out if cnp.PyArray_NDIM(values) == 2 else out[0]


def rows_in_units(cnp.ndarray values, *, kernel=None):
    """Losses in [0, 1] of a float dtype as multiples of 2^-24, ties to even.

    Parameters as in `pack_rows`.  Returns int32, shape (64 n_words,) or (n_rows, 64 n_words),
    zero past the last sample.
    """
    cdef source rows
    cdef const packer *chosen = _packer_of(kernel)
    fill_source(values, None, &rows)
    if rows.kind < VALUE_F16:
        raise TypeError(f"values must be of a float dtype, got {values.dtype}")
    cdef ptrdiff_t width = (rows.n_samples + 63) // 64 * 64, row = 0
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0) if cnp.PyArray_NDIM(values) == 2 else 1
    cdef cnp.ndarray out = np.empty((n_rows, width), np.int32)
    cdef int32_t *units = <int32_t *>cnp.PyArray_DATA(out)
    cdef int64_t read = rows.n_samples
    with nogil:
        while row < n_rows:
            read = chosen.units_row(&rows, row, units + row * width)
            if read != rows.n_samples:
                break
            row += 1
    if read != rows.n_samples:
        raise_bad_value(&rows, row, read)
    return out if cnp.PyArray_NDIM(values) == 2 else out[0]


include "_arrow.pxi"
