# Which row it is: a keyed hash that tells rows apart, and nothing else to whoever lacks the key.

cdef extern from "scan/rows.h" nogil:
    int64_t check_last_word(uint64_t last, int64_t n_samples)


def fingerprints(cnp.ndarray rows not None, ptrdiff_t n_bytes, bytes key not None):
    """Keyed hashes of rows.

    Parameters
    ----------
    rows : ndarray of any number dtype, shape (n_rows, n)
        Each row contiguous.
    n_bytes : int
        How much of each row to look at.
    key : bytes
        16 of them: without it nobody can tell what a hash is of, with it a guess can be checked.

    Returns
    -------
    ndarray of uint64, shape (n_rows,)
    """
    return hashes_of(rows, n_bytes, key, NULL, 0)


def fingerprints_and_sums(cnp.ndarray words not None, int64_t n_samples, bytes key not None):
    """`fingerprints` of packed rows, and `sums_of_rows`: in one go through memory.

    Parameters
    ----------
    words : ndarray of <u8, shape (n_rows, ceil(n_samples / 64))
        Bits; each row contiguous.
    n_samples : int
    key : bytes
        As for `fingerprints`.

    Returns
    -------
    hashes : ndarray of uint64, shape (n_rows,)
    sums : ndarray of int64, shape (n_rows,)

    Raises
    ------
    ValueError
        A bit stands past n_samples, or the words are of another shape.
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
    cdef fingerprint_rows_fn *hash_rows = _chosen.fingerprint_rows
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
