# Columns of bools and numbers from whatever speaks the Arrow PyCapsule interface, without a copy
# and without pyarrow.  https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html

from cpython.pycapsule cimport PyCapsule_GetPointer

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
cdef class ArrowChunk:
    """One piece of a column of bools or numbers; the memory stays Arrow's.

    Attributes
    ----------
    n_values : int
    is_bits : bool
        Whether this is a bool column, one bit a value.
    first_bit : int
        Where in the first byte of `memory` a bool column starts, 0 to 7.
    """

    cdef ArrowArray array
    cdef cnp.dtype dtype
    cdef readonly bint is_bits

    def __dealloc__(self):
        if self.array.release != NULL:
            self.array.release(&self.array)

    @property
    def n_values(self):
        return self.array.length

    @property
    def first_bit(self):
        return self.array.offset % 8

    def first_null(self):
        """Index of the first missing value; -1: there is none."""
        cdef const unsigned char *valid = <const unsigned char *>self.array.buffers[0]
        cdef int64_t i
        if self.array.null_count != 0 and valid != NULL:
            for i in range(self.array.offset, self.array.offset + self.array.length):
                if not (valid[i // 8] >> (i % 8)) & 1:
                    return i - self.array.offset
        return -1

    def memory(self):
        """The values, read-only; of a bool column the bytes that hold the bits."""
        cdef int64_t first = self.array.offset
        cdef cnp.npy_intp n_items = self.array.length
        if self.is_bits:
            n_items = (first % 8 + n_items + 7) // 8
            first = first // 8
        if n_items == 0:
            return np.empty(0, self.dtype)  # there may be no buffer
        cdef char *start = <char *>self.array.buffers[1] + first * self.dtype.itemsize
        cdef cnp.ndarray values = cnp.PyArray_SimpleNewFromData(1, &n_items, self.dtype.num, start)
        cnp.set_array_base(values, self)
        values.flags.writeable = False
        return values


def arrow_chunks(column):
    """What the column's ``__arrow_c_array__`` or ``__arrow_c_stream__`` exports, as ArrowChunks.

    None if it is not a column of bools or numbers: strings, dictionaries, tables, nulls.

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


cdef ArrowChunk _take_chunk(ArrowArray *array, const char *format, cnp.dtype dtype):
    """Moves the array: from here on this object releases it, also if it is refused."""
    cdef ArrowChunk chunk = ArrowChunk.__new__(ArrowChunk)
    chunk.array = array[0]
    array.release = NULL
    chunk.dtype = dtype
    chunk.is_bits = format[0] == c"b"
    fault = _fault(&chunk.array)
    if fault is not None:
        raise ValueError(f"an Arrow array of numbers or bools {fault}")
    return chunk


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
