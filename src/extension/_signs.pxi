# Sign vectors: a function of (seed, vector, word), stored in lines or generated tile by tile.

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
            self._memory = _filled_lines(_chosen.kernel, store)
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
            buffer = _aligned_int64(n_words * LANES)
            lines = <uint64_t *>cnp.PyArray_DATA(buffer)
            _chosen.kernel.fill_lines(store_of(self).base, store_of(self).first_vector + vector - lane,
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
        count_rows(_chosen.kernel, store_of(self), &rows, 0, 1, 0, &chunk)
        return total if chunk.n_rows == 1 else -1


cdef inline sign_store *store_of(SignStore signs) noexcept nogil:
    return <sign_store *>signs._store


cdef cnp.ndarray _filled_lines(const kernel *kernel, const sign_store *store):
    """All the lines, as they are stored."""
    cdef cnp.ndarray memory = _aligned_int64(store.n_strips * store.n_words * LANES)
    cdef uint64_t *lines = <uint64_t *>cnp.PyArray_DATA(memory)
    cdef int64_t strip
    with nogil:
        for strip in range(store.n_strips):
            kernel.fill_lines(store.base, store.first_vector + strip * LANES, store.first_word,
                              store.n_words, lines + strip * store.n_words * LANES)
    return memory


cdef cnp.ndarray _aligned_int64(int64_t n):
    """Zeroed int64 whose first element starts a 64-byte line, as the kernels load it."""
    cdef cnp.ndarray memory = np.zeros(n + LANES - 1, np.int64)
    cdef size_t past = <size_t>cnp.PyArray_DATA(memory) % LINE_BYTES
    cdef int64_t skip = (LINE_BYTES - past) // 8 if past else 0
    return memory[skip:skip + n]
