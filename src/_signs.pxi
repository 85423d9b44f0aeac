# Sign vectors: a function of (seed, vector, word), stored in lines or generated tile by tile.

cdef class SignStore:
    """Words of the sign stream for some vectors and samples, laid out for the kernels.

    The arguments have been checked by `radabound_fast.SignMatrix`.
    """

    def __cinit__(self, seed, int64_t n_samples, int64_t n_vectors, *, bint stored=True,
                  int64_t first_vector=0, int64_t first_word=0):
        self.seed = seed
        self.store.base = mix64(<uint64_t>seed + SIGN_GOLDEN)
        self.store.first_vector = first_vector
        self.store.first_word = first_word
        self.store.n_vectors = n_vectors
        self.store.n_strips = (n_vectors + LANES - 1) // LANES
        self.store.n_samples = n_samples
        self.store.n_words = (n_samples + WORD_BITS - 1) // WORD_BITS
        self.store.lines = NULL
        if not stored:
            return
        cdef int64_t strip, n_words = self.store.n_words
        self._memory = _aligned_int64(self.store.n_strips * n_words * LANES)
        cdef uint64_t *lines = <uint64_t *>cnp.PyArray_DATA(self._memory)
        with nogil:
            for strip in range(self.store.n_strips):
                _chosen.fill_lines(self.store.base, first_vector + strip * LANES, first_word,
                                   n_words, lines + strip * n_words * LANES)
        self.store.lines = lines

    @property
    def n_samples(self):
        return self.store.n_samples

    @property
    def n_vectors(self):
        return self.store.n_vectors

    @property
    def stored(self):
        return self.store.lines != NULL

    @property
    def nbytes(self):
        """Bytes that the stored signs take; 0 if they are generated."""
        return 0 if self._memory is None else self._memory.nbytes

    def words(self, int64_t vector):
        """The packed signs of one vector, uint64 of shape (ceil(n_samples / 64),)."""
        cdef cnp.ndarray out = np.empty(self.store.n_words, np.uint64)
        cdef uint64_t *word = <uint64_t *>cnp.PyArray_DATA(out)
        cdef uint64_t *lines
        cdef int64_t w, lane = vector % LANES, n_words = self.store.n_words
        cdef object buffer = None
        if self.store.lines != NULL:
            lines = <uint64_t *>self.store.lines + (vector - lane) * n_words
        else:
            buffer = _aligned_int64(n_words * LANES)
            lines = <uint64_t *>cnp.PyArray_DATA(buffer)
            _chosen.fill_lines(self.store.base, self.store.first_vector + vector - lane,
                               self.store.first_word, n_words, lines)
        for w in range(n_words):
            word[w] = lines[w * LANES + lane]
        return out

    cdef int64_t n_lanes(self) noexcept nogil:
        return self.store.n_strips * LANES

    cdef int64_t count(self, const uint64_t *words, int64_t *counts) noexcept nogil:
        cdef loss_rows rows
        cdef chunk_of_rows chunk
        cdef int64_t total
        packed_row(&rows, words, self.store.n_words)
        chunk.counts = counts
        chunk.totals = &total
        chunk.tile = NULL  # the words are read where they are
        chunk.capacity = 1
        count_rows(_chosen, &self.store, &rows, 0, 1, 0, &chunk)
        return total if chunk.n_rows == 1 else -1


cdef cnp.ndarray _aligned_int64(int64_t n):
    """Zeroed int64 whose first element starts a 64-byte line, as the kernels load it."""
    cdef cnp.ndarray memory = np.zeros(n + LANES - 1, np.int64)
    cdef size_t past = <size_t>cnp.PyArray_DATA(memory) % LINE_BYTES
    cdef int64_t skip = (LINE_BYTES - past) // 8 if past else 0
    return memory[skip:skip + n]
