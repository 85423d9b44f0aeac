"""What arrays become before anything judges them: bits, units, signs, sums and fingerprints.

Nothing here knows a guard.  packing.py and labels.py turn whatever users have into ndarrays of the
right shape; fill_source takes such an array without a copy; the packers look at every value once,
and raise_bad_value says which one is not allowed.  Labels are never part of a message.
"""

from _thread import allocate_lock, start_new_thread

import numpy as np

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from radabound_fast._kernels.c_sources cimport (
    _UNIT_SHIFT, CHUNK_ROWS, LANES, LINE_BYTES, ROW_TILE_WORDS, SIGN_GOLDEN, TILE_WORDS, TOO_LARGE,
    UNIT_TILE_ROWS, VALUE_F16, WORD_BITS, check_last_word, chunk_of_rows, count_any_rows,
    count_rows, fingerprint_rows_fn, instruction_set, instruction_set_at, kernel, little_word,
    loss_rows, mix64, packed_as_rows, packer, side_by_side, sign_store, sliced_kernel,
    sliced_plan_free, sliced_plan_new, sliced_scratch_free, sliced_scratch_new, source,
    value_bytes, value_kind, values_as_rows,
)

cnp.import_array()

# real-valued losses are counted in units of 2**-UNIT_SHIFT
UNIT_SHIFT = _UNIT_SHIFT

# ---- instruction sets ----------------------------------------------------------------------------

def kernels():
    """Name and usability here of every kernel that was compiled in, fastest first."""
    rows = []
    cdef int i = 0
    while instruction_set_at(i) != NULL:
        kernel = instruction_set_at(i).kernel
        rows.append((kernel.name.decode(), bool(kernel.supported())))
        i += 1
    return rows


def active_kernel():
    """The kernel of objects that are made from now on."""
    return chosen.kernel.name.decode()


def choose_kernel(name=None):
    """Have objects made from now on use this kernel; None: the fastest (a seam for tests)."""
    global chosen
    chosen = _set_named(name)


cdef const instruction_set *_set_named(name) except NULL:
    """The instruction set of that kernel; None: the fastest that runs here."""
    cdef int i = 0
    while instruction_set_at(i) != NULL:
        kernel = instruction_set_at(i).kernel
        if name is None or kernel.name.decode() == name:
            if kernel.supported():
                return instruction_set_at(i)
            if name is not None:
                raise ValueError(f"kernel {name!r} needs instructions that this CPU lacks")
        i += 1
    raise ValueError(f"kernel must be one of {[row[0] for row in kernels()]}, got {name!r}")


# asked once: CPUID takes microseconds, and tens of them in a virtual machine
chosen = _set_named(None)


# ---- values of any number dtype into bits, where they lie ----------------------------------------

cdef extern from "kernels/packing.h" nogil:
    """
    /* 1 + the kind of each of numpy's types that the packers read, in either byte order, else 0. */
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

    static int kind_of_number(int type) /* -1 if no packer reads it */
    {
        return type < NPY_NTYPES_LEGACY ? kind_of_type[type] - 1 : -1;
    }
    """
    int kind_of_number(int numpy_type)
    const int N_NUMPY_TYPES


cpdef bint reads_dtype(cnp.dtype dtype) noexcept:
    """Whether the packers read values of this dtype as they are."""
    return kind_of_number(dtype.num) >= 0


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


cdef class LabelRow:
    """Labels as the packers want them beside predictions of one dtype.

    Either `bits`, for two classes: bit i set where label i is not `first`; or `values`, labels
    of this very dtype that are whole numbers from `first` to `last`.  Made by labels.Labels.
    """

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
    memory = aligned_int64((values.nbytes + 7) // 8).view(np.uint8)
    copy = memory[:values.nbytes].view(values.dtype)
    copy[:] = values.ravel()
    return copy


cdef class LabelRows:
    """The LabelRow of every dtype that predictions came in so far: repeated queries are cheap."""

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
    cdef int ndim = cnp.PyArray_NDIM(values), kind = kind_of_number(cnp.PyArray_TYPE(values))
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


def bad_prediction(value, place):
    """The error for a prediction that is no class; the same words for every kind of label."""
    if isinstance(value, np.floating):
        value = float(value)
    score = isinstance(value, float) and value % 1 > 0
    hint = ", which looks like a score" if score else ""
    return ValueError(f"y_pred must hold only known classes, got {value!r:.100} {place}{hint}")


cdef int raise_bad_value(const source *rows, ptrdiff_t row, int64_t sample) except -1:
    """The error for the value at which pack_row or units_row stopped."""
    cdef char copy[8]
    cdef int size = value_bytes(rows.kind)
    cdef bytes raw = side_by_side(rows, row, sample, 1, size, copy)[:size]
    letter = "f" if rows.kind >= VALUE_F16 else "i" if rows.is_signed else "u"
    value = np.frombuffer(raw, f"{letter}{size}").item()
    place = f"at row {row}, sample {sample}" if rows.row_stride else f"at sample {sample}"
    if rows.labels != NULL or rows.label_bits != NULL:
        raise bad_prediction(value, place)
    rule = "be 0 or 1 to be packed" if 0 <= value <= 1 else "be in [0, 1]"
    raise ValueError(f"losses must {rule}, got {value!r} {place}")


def pack_rows(cnp.ndarray values, labels=None, *, kernel=None):
    """Bits of losses that are 0 or 1, or of predictions that are not their labels.

    `values`, shape (n_samples,) or (n_rows, n_samples), are of a dtype that `reads_dtype`, in any
    strides and byte order; they are losses without `labels`, a LabelRow made for this dtype.
    `kernel` names whose instruction set to use; None: the chosen one's.  Returns uint64, shape
    (n_words,) or (n_rows, n_words).
    """
    return each_row(values, labels, kernel, False)


def rows_in_units(cnp.ndarray values, *, kernel=None):
    """Losses in [0, 1] of a float dtype as multiples of 2^-24, ties to even.

    Arguments as in `pack_rows`.  Returns int32, shape (64 n_words,) or (n_rows, 64 n_words), zero
    past the last sample.
    """
    return each_row(values, None, kernel, True)


cdef each_row(cnp.ndarray values, labels, kernel, bint in_units):
    """Rows packed, or in units."""
    cdef source rows
    cdef const packer *packer = (chosen if kernel is None else _set_named(kernel)).packer
    fill_source(values, labels, &rows)
    if in_units and rows.kind < VALUE_F16:
        raise TypeError(f"values must be of a float dtype, got {values.dtype}")
    cdef ptrdiff_t n_words = (rows.n_samples + 63) // 64, row = 0
    cdef ptrdiff_t width = 64 * n_words if in_units else n_words
    cdef int ndim = cnp.PyArray_NDIM(values)
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0) if ndim == 2 else 1
    cdef cnp.npy_intp[2] shape = [n_rows, width]
    cdef cnp.ndarray out = cnp.PyArray_SimpleNew(
        ndim, shape + 2 - ndim, cnp.NPY_INT32 if in_units else cnp.NPY_UINT64)
    cdef void *memory = cnp.PyArray_DATA(out)
    cdef int64_t read = rows.n_samples
    with nogil:
        while row < n_rows:
            if in_units:
                read = packer.units_row(&rows, row, <int32_t *>memory + row * width)
            else:
                read = packer.pack_row(&rows, row, <uint64_t *>memory + row * width)
            if read != rows.n_samples:
                break
            row += 1
    if read != rows.n_samples:
        raise_bad_value(&rows, row, read)
    return out


# ---- arrays as rows ------------------------------------------------------------------------------

cdef object _memmap = np.memmap


cdef bint lie_as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                      int ndim, int64_t n_samples, bint packed) except -1:
    """Describes rows where they lie; False if they must become an array, or another one, first.

    A masked array is an ndarray and more, and so is not read as it is.
    """
    if not (cnp.PyArray_CheckExact(values) or type(values) is _memmap):
        return False
    cdef cnp.ndarray array = <cnp.ndarray>values
    cdef int64_t n_words = (n_samples + WORD_BITS - 1) // WORD_BITS
    if (cnp.PyArray_NDIM(array) != ndim
            or cnp.PyArray_DIM(array, ndim - 1) != (n_words if packed else n_samples)):
        return False
    if packed:
        # by size: NumPy has two types of 64 bits, unsigned long and unsigned long long
        if (not cnp.PyArray_ISUNSIGNED(array) or cnp.PyArray_ITEMSIZE(array) != 8
                or not cnp.PyArray_ISNOTSWAPPED(array)
                or n_words > 1 and cnp.PyArray_SIZE(array) > 0
                and cnp.PyArray_STRIDE(array, ndim - 1) != 8):
            return False
        packed_as_rows(rows, cnp.PyArray_DATA(array), 0 if ndim == 1 else cnp.PyArray_STRIDE(array, 0))
    else:
        if kind_of_number(cnp.PyArray_TYPE(array)) < 0:
            return False
        fill_source(array, labels, &rows.source)
        values_as_rows(rows, packer)
    return True


cdef object as_rows(loss_rows *rows, object values, object labels, const packer *packer,
                    int ndim, int64_t n_samples, bint packed):
    """Describes rows; returns the array that keeps them there.

    It is `values`, or what packing.py makes of them, which has the rules and the errors.
    """
    if not lie_as_rows(rows, values, labels, packer, ndim, n_samples, packed):
        from radabound_fast.rows import packing
        values = (packing.as_words if packed else packing.as_values)(values, n_samples, ndim)
        if not lie_as_rows(rows, values, labels, packer, ndim, n_samples, packed):
            raise TypeError(f"packing.py must make rows that can be read, got {type(values)}")
    return values


def bad_bit(n_samples, row):
    """The error for packed losses that do not end with zeros."""
    return ValueError(
        f"words must have no bit set past n_samples = {n_samples}, got one in row {row}")


cdef raise_too_large(const sign_store *signs):
    raise ValueError("real-valued losses need n_vectors * n_samples < 2**38, got "
                     f"{signs.n_vectors} * {signs.n_samples}")


cdef raise_unreadable(loss_rows *rows, const sign_store *signs, ptrdiff_t row, int64_t sample):
    if sample == TOO_LARGE:
        raise_too_large(signs)
    if rows.packed != NULL:
        raise bad_bit(signs.n_samples, row)
    raise_bad_value(&rows.source, row, sample)


# ---- sign vectors: a function of (seed, vector, word), stored or generated tile by tile ----------

cdef class SignStore:
    """Words of the sign stream for some vectors and samples, laid out for the kernels.

    The arguments have been checked by `radabound_fast.SignMatrix`.
    """

    def __cinit__(self, seed, int64_t n_samples, int64_t n_vectors, *, bint stored=True,
                  int64_t first_vector=0, int64_t first_word=0):
        cdef sign_store *store = <sign_store *>calloc(1, sizeof(sign_store))
        if store == NULL:
            raise MemoryError
        self._store = <hidden_store *>store
        self.seed = seed
        store.base = mix64(<uint64_t>seed + SIGN_GOLDEN)
        store.first_vector = first_vector
        store.first_word = first_word
        store.n_vectors = n_vectors
        store.n_strips = (n_vectors + LANES - 1) // LANES
        store.n_samples = n_samples
        store.n_words = (n_samples + WORD_BITS - 1) // WORD_BITS
        if stored:
            self._memory = filled_lines(chosen.kernel, store)
            store.lines = <uint64_t *>cnp.PyArray_DATA(self._memory)

    def __dealloc__(self):
        free(self._store)

    @property
    def n_samples(self):
        return store_of(self).n_samples

    @property
    def n_vectors(self):
        return store_of(self).n_vectors

    @property
    def stored(self):
        return store_of(self).lines != NULL

    @property
    def nbytes(self):
        """Bytes that the stored signs take; 0 if they are generated."""
        return 0 if self._memory is None else self._memory.nbytes

    def words(self, int64_t vector):
        """The packed signs of one vector, uint64 of shape (ceil(n_samples / 64),)."""
        cdef cnp.ndarray out = np.empty(store_of(self).n_words, np.uint64)
        cdef uint64_t *word = <uint64_t *>cnp.PyArray_DATA(out)
        cdef uint64_t *lines
        cdef int64_t w, lane = vector % LANES, n_words = store_of(self).n_words
        cdef object buffer = None
        if store_of(self).lines != NULL:
            lines = <uint64_t *>store_of(self).lines + (vector - lane) * n_words
        else:
            buffer = aligned_int64(n_words * LANES)
            lines = <uint64_t *>cnp.PyArray_DATA(buffer)
            chosen.kernel.fill_lines(store_of(self).base, store_of(self).first_vector + vector - lane,
                               store_of(self).first_word, n_words, lines)
        for w in range(n_words):
            word[w] = lines[w * LANES + lane]
        return out

    cdef int64_t n_lanes(self) noexcept nogil:
        return store_of(self).n_strips * LANES

    cdef int64_t count(self, const uint64_t *words, int64_t *counts) noexcept nogil:
        cdef loss_rows rows
        cdef chunk_of_rows chunk
        cdef int64_t total
        packed_as_rows(&rows, words, 0)
        chunk.counts = counts
        chunk.totals = &total
        chunk.workspace = NULL
        chunk.tile = NULL  # the words are read where they are
        chunk.capacity = 1
        count_rows(chosen.kernel, store_of(self), &rows, 0, 1, 0, &chunk)
        return total if chunk.n_rows == 1 else -1


cdef cnp.ndarray filled_lines(const kernel *kernel, const sign_store *store):
    """All the lines, as they are stored."""
    cdef cnp.ndarray memory = aligned_int64(store.n_strips * store.n_words * LANES)
    cdef uint64_t *lines = <uint64_t *>cnp.PyArray_DATA(memory)
    cdef int64_t strip
    with nogil:
        for strip in range(store.n_strips):
            kernel.fill_lines(store.base, store.first_vector + strip * LANES, store.first_word,
                              store.n_words, lines + strip * store.n_words * LANES)
    return memory


cdef cnp.ndarray aligned_int64(int64_t n):
    """Zeroed int64 whose first element starts a 64-byte line, as the kernels load it."""
    cdef cnp.ndarray memory = np.zeros(n + LANES - 1, np.int64)
    cdef size_t past = <size_t>cnp.PyArray_DATA(memory) % LINE_BYTES
    cdef int64_t skip = (LINE_BYTES - past) // 8 if past else 0
    return memory[skip:skip + n]


# ---- one thread's memory for the rows of a call ---------------------------------------------------

cdef class SlicedPlan:
    """The index tables of the signs for bit-sliced blocks: read-only, shared by threads."""

    @staticmethod
    cdef SlicedPlan of(const instruction_set *set, SignStore signs):
        cdef SlicedPlan self = SlicedPlan.__new__(SlicedPlan)
        cdef const sign_store *store = store_of(signs)
        lines = signs._memory if signs._memory is not None else filled_lines(set.kernel, store)
        cdef const uint64_t *first = <const uint64_t *>cnp.PyArray_DATA(<cnp.ndarray>lines)
        self.kernel = set.sliced
        with nogil:
            self.plan = sliced_plan_new(set.sliced, first, store.n_samples, store.n_vectors)
        if self.plan == NULL:
            raise MemoryError
        return self

    def __dealloc__(self):
        sliced_plan_free(self.plan)


cdef class Scratch:
    """One thread's memory: at most 1 MB, unless one row, or a block, needs more.

    `work` is complete but for the state, and for where totals and complexities are to go.
    """

    @staticmethod
    cdef Scratch of(const kernel *kernel, SignStore signs, const loss_rows *rows,
                    ptrdiff_t n_rows, SlicedPlan plan):
        cdef Scratch self = Scratch.__new__(Scratch)
        cdef int64_t n_lanes = signs.n_lanes()
        cdef ptrdiff_t workspace = kernel.workspace_bytes if n_rows > 1 else 0
        cdef ptrdiff_t tile = 0, n_block = 0 if plan is None else plan.kernel.block_rows, block
        self.chunk.tile_rows = min(CHUNK_ROWS, n_rows)
        block = n_block * 2 * 8
        if not rows.in_place:
            tile = 8 * max(self.chunk.tile_rows * TILE_WORDS,
                           min(UNIT_TILE_ROWS, n_rows) * ROW_TILE_WORDS)
            block += n_block * store_of(signs).n_words * 8
        cdef ptrdiff_t fits = ((1 << 20) - workspace - tile) // (8 * (n_lanes + 1))
        cdef ptrdiff_t capacity = max(1, min(self.chunk.tile_rows, fits))
        self._memory = malloc(LINE_BYTES + workspace + tile + block
                              + (2 * n_lanes + capacity * (n_lanes + 1)) * 8)
        if self._memory == NULL:
            raise MemoryError
        self.chunk.workspace = on_a_line(self._memory) if workspace > 0 else NULL
        self.chunk.tile = <char *>on_a_line(self._memory) + workspace
        self.chunk.before = <int64_t *>(<char *>self.chunk.tile + tile)
        self.chunk.totals = self.chunk.before + 2 * n_lanes
        self.chunk.counts = self.chunk.totals + capacity
        self.chunk.capacity = capacity
        self.work.kernel = kernel
        self._signs, self._plan = signs, plan  # a thread may outlive the call, and the guard
        self.work.signs = store_of(signs)
        self.work.rows = rows
        self.work.chunk = &self.chunk
        if plan is not None:
            self.sliced.kernel = plan.kernel
            self.sliced.plan = plan.plan
            self.sliced.totals = self.chunk.counts + capacity * n_lanes
            self.sliced.growth = self.sliced.totals + n_block
            self.sliced.packed = <uint64_t *>(self.sliced.growth + n_block)
            self.sliced.scratch = sliced_scratch_new(plan.plan)
            if self.sliced.scratch == NULL:
                raise MemoryError
            self.work.sliced = &self.sliced
        return self

    def __dealloc__(self):
        sliced_scratch_free(self.sliced.scratch)
        free(self._memory)


cdef class Worker:
    """Some rows of a call on one thread.

    It keeps all that it reads: Ctrl-C ends the call while threads are at work, and whoever called
    may drop the guard then.
    """

    cdef int prepare(self, const instruction_set *set, SignStore signs, const loss_rows *rows,
                     object memory, ptrdiff_t n_rows, SlicedPlan plan) except -1:
        self._rows, self._memory_of_rows = rows[0], memory
        self.scratch = Scratch.of(set.kernel, signs, &self._rows, n_rows, plan)
        self._at_work = allocate_lock()
        self._at_work.acquire()
        return 0

    cdef void judge(self) noexcept nogil:
        """Rows first..last."""

    def __call__(self):
        with nogil:
            self.judge()
        self._at_work.release()


cdef int run_workers(list workers) except -1:
    """Each on a thread of its own, until they are done, or Ctrl-C.

    This thread works too, beside new ones: a new thread starts on an idle core, where one that is
    woken often stays on the core of whoever woke it.  None of threading's: they run Python, where a
    trace function or a destructor may wait for the lock that is held.
    """
    cdef Worker worker
    for worker in workers[1:]:
        start_new_thread(worker, ())
    workers[0]()
    for worker in workers:
        PyErr_CheckSignals()  # those that came before do not end the wait
        worker._at_work.acquire()
    return 0


# ---- sums of rows --------------------------------------------------------------------------------

def sums_of_rows(rows, int64_t n_samples, *, bint packed):
    """Exact sums of rows of losses, every one of which is checked.

    `rows`, (k, n_samples), or packed (k, n_words) or (k, n_bytes), are as `as_values` and
    `as_words` return them.  Returns the sums, int64 (k,), in units of 2**-unit_shift, and
    unit_shift: 24 if a row has losses other than 0 and 1, else 0.  ValueError: a value is no loss,
    a bit stands past n_samples, or so many real-valued losses do not fit.
    """
    cdef SignStore signs = SignStore(0, n_samples, 1, stored=False)  # for whose sums there is room
    store_of(signs).n_strips = 0
    return _sums(signs, rows, packed)[1:]


def signed_sums_of_rows(SignStore signs not None, rows, *, bint packed):
    """Signed sums of rows of losses, int64, or where they fit int32, (k, n_vectors).

    Returns them, and the sums of the rows and unit_shift, as `sums_of_rows`.
    """
    return _sums(signs, rows, packed)


cdef tuple _sums(SignStore signs, rows, bint packed):
    cdef loss_rows losses
    cdef const sign_store *store = store_of(signs)
    cdef object values = as_rows(&losses, rows, None, chosen.packer, 2, store.n_samples, packed)
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0), row = 0
    cdef int unit_shift = 0, shift
    cdef bint signed = store.n_strips > 0, narrow = store.n_samples < 1 << 31
    cdef Scratch scratch = Scratch.of(chosen.kernel, signs, &losses, n_rows, None)
    cdef chunk_of_rows *chunk = &scratch.chunk
    cdef cnp.ndarray totals = np.empty(n_rows, np.int64), sums = None
    cdef int64_t *total = <int64_t *>cnp.PyArray_DATA(totals)
    if signed:
        sums = np.empty((n_rows, store.n_vectors), np.int32 if narrow else np.int64)
    while row < n_rows:
        chunk.totals = total + row
        with nogil:
            count_any_rows(chosen.kernel, store, &losses, row, n_rows - row, chunk)
        if chunk.n_rows == 0:
            raise_unreadable(&losses, store, row, chunk.bad_sample)
        if chunk.in_units and not unit_shift:
            unit_shift, narrow = _UNIT_SHIFT, False
            totals[:row] <<= _UNIT_SHIFT
            if signed:
                sums = sums.astype(np.int64)
                sums[:row] <<= _UNIT_SHIFT
        shift = 0 if chunk.in_units else unit_shift
        if signed and narrow:
            sign_counts(chunk, store, shift, <int32_t *>cnp.PyArray_DATA(sums), row)
        elif signed:
            sign_counts(chunk, store, shift, <int64_t *>cnp.PyArray_DATA(sums), row)
        if shift:
            totals[row:row + chunk.n_rows] <<= shift
        row += chunk.n_rows
        PyErr_CheckSignals()
    return sums, totals, unit_shift


cdef fused signed_sum:
    int32_t
    int64_t


cdef void sign_counts(const chunk_of_rows *chunk, const sign_store *store, int shift,
                      signed_sum *sums, ptrdiff_t first):
    """S_j = 2 c_j - total of the chunk's rows, into rows of n_vectors from `first` on."""
    cdef const int64_t *counts = chunk.counts
    cdef ptrdiff_t row, vector, n_vectors = store.n_vectors
    cdef int64_t total
    sums += first * n_vectors
    with nogil:
        for row in range(chunk.n_rows):
            total = chunk.totals[row]
            for vector in range(n_vectors):
                sums[vector] = <signed_sum>((2 * counts[vector] - total) << shift)
            sums += n_vectors
            counts += store.n_strips * LANES


# ---- which row it is -----------------------------------------------------------------------------

def fingerprints(cnp.ndarray rows not None, ptrdiff_t n_bytes, bytes key not None):
    """Keyed hashes of rows, uint64 (n_rows,): of the first n_bytes of each.

    `rows`, (n_rows, n), are of any number dtype, and each is contiguous.  `key` are 16 bytes:
    without it nobody can tell what a hash is of, with it a guess can be checked.
    """
    return hashes_of(rows, n_bytes, key, NULL, 0)


def fingerprints_and_sums(cnp.ndarray words not None, int64_t n_samples, bytes key not None):
    """`fingerprints` of packed rows, and `sums_of_rows`, int64 (n_rows,): in one go through memory.

    `words`, <u8 (n_rows, ceil(n_samples / 64)), are bits; each row is contiguous.  ValueError: a
    bit stands past n_samples, or the words are of another shape.
    """
    if (cnp.PyArray_NDIM(words) != 2 or cnp.PyArray_ITEMSIZE(words) != 8 or n_samples < 1
            or cnp.PyArray_DIM(words, 1) != (n_samples + WORD_BITS - 1) // WORD_BITS):
        raise ValueError("words must be rows of n_samples bits")
    cdef cnp.ndarray sums = np.empty(cnp.PyArray_DIM(words, 0), np.int64)
    cdef ptrdiff_t n_bytes = (n_samples + 7) // 8
    hashes = hashes_of(words, n_bytes, key, <int64_t *>cnp.PyArray_DATA(sums), n_samples)
    return hashes, sums


cdef cnp.ndarray hashes_of(cnp.ndarray rows, ptrdiff_t n_bytes, bytes key, int64_t *totals,
                           int64_t n_samples):
    """Hashes; with `totals` the ones too, of rows that have none past n_samples."""
    cdef uint64_t words[2]
    cdef ptrdiff_t n_rows, stride, first = 0, stop, row = 0
    cdef cnp.ndarray hashes
    cdef uint64_t *hashed
    cdef const unsigned char *data = <const unsigned char *>cnp.PyArray_DATA(rows)
    cdef const unsigned char *last = data + n_samples // WORD_BITS * 8
    cdef bint ends_inside = totals != NULL and n_samples % WORD_BITS != 0
    cdef const unsigned char *secret = key
    cdef fingerprint_rows_fn *hash_rows = chosen.fingerprint_rows
    if (len(key) != 16 or cnp.PyArray_NDIM(rows) != 2 or n_bytes < 0
            or cnp.PyArray_DIM(rows, 0) and cnp.PyArray_DIM(rows, 1) > 1
            and cnp.PyArray_STRIDE(rows, 1) != cnp.PyArray_ITEMSIZE(rows)
            or cnp.PyArray_DIM(rows, 1) * cnp.PyArray_ITEMSIZE(rows) < n_bytes):
        raise ValueError("rows must be contiguous rows of n_bytes or more, and key 16 bytes")
    n_rows, stride = cnp.PyArray_DIM(rows, 0), cnp.PyArray_STRIDE(rows, 0)
    hashes = np.empty(n_rows, np.uint64)
    hashed = <uint64_t *>cnp.PyArray_DATA(hashes)
    words[0], words[1] = little_word(secret), little_word(secret + 8)
    while first < n_rows:
        stop = min(first + CHUNK_ROWS, n_rows)
        with nogil:
            hash_rows(data + first * stride, stride, stop - first, n_bytes, words, hashed + first,
                      NULL if totals == NULL else totals + first)
            row = first
            while ends_inside and row < stop:  # while they are in the cache
                if check_last_word(little_word(last + row * stride), n_samples) > n_samples:
                    break
                row += 1
        if ends_inside and row < stop:
            raise bad_bit(n_samples, row)
        PyErr_CheckSignals()
        first = stop
    return hashes


# ---- columns from whatever speaks the Arrow PyCapsule interface, without a copy or pyarrow -------
# https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html

cdef extern from *:
    """
    /* The Arrow C data and stream interfaces: a stable ABI, meant to be copied. */
    struct ArrowSchema {
        const char *format, *name, *metadata;
        int64_t flags, n_children;
        struct ArrowSchema **children, *dictionary;
        void (*release)(struct ArrowSchema *);
        void *private_data;
    };
    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children, *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    struct ArrowArrayStream {
        int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
        int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
        const char *(*get_last_error)(struct ArrowArrayStream *);
        void (*release)(struct ArrowArrayStream *);
        void *private_data;
    };
    """
    struct ArrowSchema:
        const char *format
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept
    struct ArrowArray:
        int64_t length, null_count, offset, n_buffers, n_children
        const void **buffers
        void (*release)(ArrowArray *) noexcept
    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept
        void (*release)(ArrowArrayStream *) noexcept

# Arrow's format strings, and what NumPy calls them; a bool is one bit
cdef dict _arrow_dtypes = {
    b"b": "u1", b"c": "i1", b"C": "u1", b"s": "i2", b"S": "u2", b"i": "i4", b"I": "u4",
    b"l": "i8", b"L": "u8", b"e": "f2", b"f": "f4", b"g": "f8",
}


@cython.final
cdef class _ArrowMemory:
    """An Arrow array, which is released with it."""

    cdef ArrowArray array

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)


def arrow_chunks(column):
    """What the column's ``__arrow_c_array__`` or ``__arrow_c_stream__`` exports, a tuple a chunk.

    The values, read-only and where they lie, of bools the bytes that hold their bits; of bools the
    place of the first in the first byte, else None; how many values there are; and the place of the
    first missing one, or -1.  None if it is no column of bools or numbers.

    Raises
    ------
    ValueError
        What it exports is released already, or breaks the rules of the interface; nothing of it
        has been read.
    """
    cdef ArrowSchema *schema
    cdef ArrowArray *array
    if hasattr(column, "__arrow_c_array__"):
        schema_capsule, array_capsule = column.__arrow_c_array__()
        schema = <ArrowSchema *>PyCapsule_GetPointer(schema_capsule, "arrow_schema")
        array = <ArrowArray *>PyCapsule_GetPointer(array_capsule, "arrow_array")
        dtype = _arrow_dtype(schema)
        if array.release == NULL:
            raise ValueError("an Arrow array must not be released already")
        return None if dtype is None else [_take_chunk(array, schema.format, dtype)]
    return _arrow_stream(column.__arrow_c_stream__())


cdef list _arrow_stream(object capsule):
    cdef ArrowArrayStream *stream
    cdef ArrowSchema schema
    cdef ArrowArray array
    stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release == NULL:
        raise ValueError("an Arrow stream must not be released already")
    if stream.get_schema == NULL or stream.get_next == NULL:
        raise ValueError("an Arrow stream must have its two functions, got a null pointer")
    if stream.get_schema(stream, &schema) != 0:
        raise ValueError("an Arrow stream must have a schema, got an error instead")
    try:
        dtype = _arrow_dtype(&schema)
        if dtype is None:
            return None
        chunks = []
        while True:
            if stream.get_next(stream, &array) != 0:
                raise ValueError(f"an Arrow stream broke off at chunk {len(chunks) + 1}")
            if array.release == NULL:
                return chunks
            chunks.append(_take_chunk(&array, schema.format, dtype))
    finally:
        if schema.release != NULL:
            schema.release(&schema)


cdef object _arrow_dtype(const ArrowSchema *schema):
    if schema.release == NULL:
        raise ValueError("an Arrow schema must not be released already")
    if schema.format == NULL:
        raise ValueError("an Arrow schema must have a format, got a null pointer")
    name = _arrow_dtypes.get(<bytes>schema.format) if schema.dictionary == NULL else None
    return name and np.dtype(name)


cdef tuple _take_chunk(ArrowArray *array, const char *format, cnp.dtype dtype):
    """Moves the array: from here on it is released with its values, or if it is refused."""
    cdef _ArrowMemory owner = _ArrowMemory.__new__(_ArrowMemory)
    owner.array = array[0]
    array.release = NULL
    fault = _fault(&owner.array)
    if fault is not None:
        raise ValueError(f"an Arrow array of numbers or bools {fault}")
    cdef bint is_bits = format[0] == c"b"
    cdef int64_t n_values = owner.array.length, first = owner.array.offset, null = -1, i
    cdef const unsigned char *valid = <const unsigned char *>owner.array.buffers[0]
    if owner.array.null_count != 0 and valid != NULL:
        for i in range(first, first + n_values):
            if not (valid[i // 8] >> (i % 8)) & 1:
                null = i - first
                break
    first_bit = first % 8 if is_bits else None
    if n_values == 0:
        return np.empty(0, dtype), first_bit, 0, null  # there may be no buffer
    cdef cnp.npy_intp n_items = (first % 8 + n_values + 7) // 8 if is_bits else n_values
    cdef int64_t skipped = first // 8 if is_bits else first * dtype.itemsize
    cdef cnp.ndarray values = cnp.PyArray_SimpleNewFromData(
        1, &n_items, dtype.num, <char *>owner.array.buffers[1] + skipped)
    cnp.set_array_base(values, owner)
    values.flags.writeable = False
    return values, first_bit, n_values, null


cdef object _fault(const ArrowArray *array):
    """What keeps a column of numbers or bools from being read; None: nothing."""
    if array.length < 0 or array.offset < 0 or array.length > (1 << 59) - array.offset:
        return ("must have a length and an offset of at least 0, and below 2**59 together, "
                f"got {array.length} and {array.offset}")
    if not -1 <= array.null_count <= array.length:
        return f"must have a number of nulls in [-1, {array.length}], got {array.null_count}"
    if array.n_buffers != 2 or array.n_children != 0:
        return f"must have 2 buffers and no children, got {array.n_buffers} and {array.n_children}"
    if array.buffers == NULL or array.length and array.buffers[1] == NULL:
        return "must have its values, got a null pointer"
    if array.null_count > 0 and array.buffers[0] == NULL:
        return f"must say which of its values are null, {array.null_count} in number, got a null pointer"
    return None
