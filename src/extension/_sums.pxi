# The sums of rows under no signs: what mechanisms read.

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
