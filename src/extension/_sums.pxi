# The sums of rows: under no signs what mechanisms read, and under signs what workers count.

def sums_of_rows(cnp.ndarray rows, int64_t n_samples, *, bint packed):
    """Exact sums of rows of losses, every one of which is checked.

    Parameters
    ----------
    rows : ndarray, shape (k, n_samples), or packed (k, n_words) or (k, n_bytes)
        As `as_values` and `as_words` return them.

    Returns
    -------
    sums : ndarray of int64, shape (k,)
        In units of 2**-unit_shift.
    unit_shift : {0, 24}
        24 if a row has losses other than 0 and 1.

    Raises
    ------
    ValueError
        A value is no loss, a bit stands past n_samples, or so many real-valued losses do not fit.
    """
    cdef sign_store no_signs
    cdef loss_rows losses
    cdef chunk_of_rows chunk
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(rows, 0), row = 0
    cdef cnp.ndarray sums = np.empty(n_rows, np.int64)
    cdef int unit_shift = 0
    rows = _as_rows(&losses, rows, None, _chosen.packer, 2, n_samples, packed)
    no_signs.lines = NULL
    no_signs.first_vector = no_signs.first_word = 0
    no_signs.base = 0
    no_signs.n_strips = 0
    no_signs.n_vectors = 1  # for which the sums have room
    no_signs.n_samples = n_samples
    no_signs.n_words = (n_samples + WORD_BITS - 1) // WORD_BITS
    cdef ptrdiff_t n_tile = max(min(CHUNK_ROWS, n_rows) * TILE_WORDS,
                                min(UNIT_TILE_ROWS, n_rows) * ROW_TILE_WORDS)
    cdef cnp.ndarray tile = _aligned_int64(0 if losses.in_place else n_tile)
    chunk.tile = cnp.PyArray_DATA(tile)
    chunk.tile_rows = min(CHUNK_ROWS, n_rows)
    chunk.workspace = NULL
    chunk.counts = <int64_t *>cnp.PyArray_DATA(sums)  # of which there are none
    chunk.capacity = n_rows
    while row < n_rows:
        chunk.totals = <int64_t *>cnp.PyArray_DATA(sums) + row
        with nogil:
            count_any_rows(_chosen.kernel, &no_signs, &losses, row, n_rows - row, &chunk)
        if chunk.n_rows == 0:
            raise_unreadable(&losses, &no_signs, row, chunk.bad_sample)
        if chunk.in_units and not unit_shift:
            unit_shift = _UNIT_SHIFT
            sums[:row] <<= _UNIT_SHIFT
        elif unit_shift and not chunk.in_units:
            sums[row:row + chunk.n_rows] <<= _UNIT_SHIFT
        row += chunk.n_rows
        PyErr_CheckSignals()
    return sums, unit_shift


# ---- under signs: what workers count for a guard elsewhere ------------------------------------

def extremes_of_rows(SignStore signs not None, rows, *, bint packed):
    """Extremes of the signed sums of rows of losses, and the sum of each row.

    Parameters
    ----------
    rows : array_like, shape (k, n_samples), or with `packed` uint64 (k, n_words)

    Returns
    -------
    extremes : ndarray of int64, shape (2, n_vectors)
        Maxima, then minima; 0 if there are no rows.
    totals : ndarray of int64, shape (k,)
    unit_shift : {0, 24}
        All of it is in units of 2**-unit_shift.

    Raises
    ------
    TypeError, ValueError
        As `GuardCore.query_many`.
    """
    cdef loss_rows losses
    cdef GuardCore core = GuardCore(signs)
    cdef object values = _as_rows(&losses, rows, None, core.set.packer, 2,
                                  store_of(signs).n_samples, packed)
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0)
    cdef _Run run = _Run(n_rows, False)
    core._judge_many(&losses, values, n_rows, run, 1)
    extremes = np.array(core.extremes()) if n_rows else np.zeros((2, signs.n_vectors), np.int64)
    return extremes, run.totals_array, core.unit_shift


def signed_sums_of_rows(SignStore signs not None, rows, *, bint packed):
    """Signed sums of rows of losses, and the sum of each row.

    As `extremes_of_rows`, but for the first that it returns:

    Returns
    -------
    sums : ndarray of int64, or where they fit of int32, shape (k, n_vectors)
    """
    cdef loss_rows losses
    cdef const sign_store *store = store_of(signs)
    cdef object values = _as_rows(&losses, rows, None, _chosen.packer, 2, store.n_samples, packed)
    cdef ptrdiff_t n_rows = cnp.PyArray_DIM(values, 0), row = 0
    cdef int unit_shift = 0, shift
    cdef bint narrow = store.n_samples < 1 << 31
    cdef _Scratch scratch = _Scratch.of(_chosen.kernel, signs, &losses, n_rows, None)
    cdef chunk_of_rows *chunk = &scratch.chunk
    cdef cnp.ndarray totals = np.empty(n_rows, np.int64)
    cdef cnp.ndarray sums = np.empty((n_rows, store.n_vectors), np.int32 if narrow else np.int64)
    cdef int64_t *total = <int64_t *>cnp.PyArray_DATA(totals)
    while row < n_rows:
        with nogil:
            count_any_rows(_chosen.kernel, store, &losses, row, n_rows - row, chunk)
        if chunk.n_rows == 0:
            raise_unreadable(&losses, store, row, chunk.bad_sample)
        if chunk.in_units and not unit_shift:
            unit_shift, narrow = _UNIT_SHIFT, False
            sums = sums.astype(np.int64)
            sums[:row] <<= _UNIT_SHIFT
            totals[:row] <<= _UNIT_SHIFT
        shift = 0 if chunk.in_units else unit_shift
        with nogil:
            if narrow:
                sign_counts(chunk, store, shift, <int32_t *>cnp.PyArray_DATA(sums), row)
            else:
                sign_counts(chunk, store, shift, <int64_t *>cnp.PyArray_DATA(sums), row)
            memcpy(total + row, chunk.totals, chunk.n_rows * sizeof(int64_t))
        if shift:
            totals[row:row + chunk.n_rows] <<= shift
        row += chunk.n_rows
        PyErr_CheckSignals()
    return sums, totals, unit_shift


cdef fused signed_sum:
    int32_t
    int64_t


cdef void sign_counts(const chunk_of_rows *chunk, const sign_store *store, int shift,
                      signed_sum *sums, ptrdiff_t first) noexcept nogil:
    """S_j = 2 c_j - total of the chunk's rows, into rows of n_vectors from `first` on."""
    cdef const int64_t *counts = chunk.counts
    cdef ptrdiff_t row, vector, n_vectors = store.n_vectors
    cdef int64_t total
    sums += first * n_vectors
    for row in range(chunk.n_rows):
        total = chunk.totals[row]
        for vector in range(n_vectors):
            sums[vector] = <signed_sum>((2 * counts[vector] - total) << shift)
        sums += n_vectors
        counts += store.n_strips * LANES
