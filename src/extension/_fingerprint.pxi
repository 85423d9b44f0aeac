# Which row it is: a keyed hash that tells rows apart, and nothing else to whoever lacks the key.

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t rotated(uint64_t x, int bits)
    {
        return x << bits | x >> (64 - bits);
    }

    static inline void sip_rounds(uint64_t v[4], int n)
    {
        for (int i = 0; i < n; i++) {
            v[0] += v[1], v[2] += v[3];
            v[1] = rotated(v[1], 13) ^ v[0], v[3] = rotated(v[3], 16) ^ v[2];
            v[0] = rotated(v[0], 32);
            v[2] += v[1], v[0] += v[3];
            v[1] = rotated(v[1], 17) ^ v[2], v[3] = rotated(v[3], 21) ^ v[0];
            v[2] = rotated(v[2], 32);
        }
    }

    /* Eight bytes or fewer, the lowest first; eight are one load where words lie so too. */
    static inline uint64_t little_word(const unsigned char *b, ptrdiff_t n)
    {
        uint64_t word = 0;
        if (n >= 8)
            return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16
                | (uint64_t)b[3] << 24 | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40
                | (uint64_t)b[6] << 48 | (uint64_t)b[7] << 56;
        for (ptrdiff_t i = 0; i < n; i++)
            word |= (uint64_t)b[i] << 8 * i;
        return word;
    }

    /* SipHash-1-3 of n bytes (Aumasson and Bernstein, 2012), as Python hashes strings. */
    static uint64_t sip_hash(const unsigned char *bytes, ptrdiff_t n, const uint64_t key[2])
    {
        uint64_t v[4] = {
            key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
            key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u,
        };
        for (ptrdiff_t done = 0;; done += 8) {
            ptrdiff_t left = n - done;
            uint64_t word = little_word(bytes + done, left);
            if (left < 8)
                word |= (uint64_t)n << 56;
            v[3] ^= word;
            sip_rounds(v, 1);
            v[0] ^= word;
            if (left < 8)
                break;
        }
        v[2] ^= 0xff;
        sip_rounds(v, 3);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
    }
    """
    uint64_t sip_hash(const unsigned char *bytes, ptrdiff_t n, const uint64_t *key) noexcept nogil


def fingerprints(cnp.ndarray rows, ptrdiff_t n_bytes, bytes key not None):
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
    cdef uint64_t words[2]
    cdef ptrdiff_t row, n_rows = cnp.PyArray_DIM(rows, 0)
    cdef cnp.ndarray hashes = np.empty(n_rows, np.uint64)
    cdef uint64_t *hashed = <uint64_t *>cnp.PyArray_DATA(hashes)
    cdef const unsigned char *first = <const unsigned char *>cnp.PyArray_DATA(rows)
    cdef ptrdiff_t stride = cnp.PyArray_STRIDE(rows, 0)
    if (len(key) != 16 or cnp.PyArray_NDIM(rows) != 2 or n_bytes < 0
            or n_rows and cnp.PyArray_STRIDE(rows, 1) != cnp.PyArray_ITEMSIZE(rows)
            or cnp.PyArray_DIM(rows, 1) * cnp.PyArray_ITEMSIZE(rows) < n_bytes):
        raise ValueError("rows must be contiguous rows of n_bytes or more, and key 16 bytes")
    words[0] = int.from_bytes(key[:8], "little")
    words[1] = int.from_bytes(key[8:], "little")
    with nogil:
        for row in range(n_rows):
            hashed[row] = sip_hash(first + row * stride, n_bytes, words)
    return hashes
