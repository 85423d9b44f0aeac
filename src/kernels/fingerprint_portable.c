/* Keyed hashes in plain C: two rows side by side, since one waits for itself. */
#include "fingerprint.h"

typedef uint64_t lanes;
#define TARGET

RB_INLINE uint64_t rotated(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

#include "sip.inc.h"

#if defined(RB_ARM64) && defined(RB_GNU)
#define ONES(word) __builtin_popcountll(word) /* every one of these CPUs has an instruction */
#else
#define ONES(word) popcount64(word)
#endif

static int64_t ones_of(const unsigned char *row, ptrdiff_t n_bytes)
{
    int64_t total = ONES(last_word(row, n_bytes) & SIP_BYTES);
    for (ptrdiff_t done = 0; done + 8 <= n_bytes; done += 8)
        total += ONES(little_word(row + done));
    return total;
}

/* `two`: another row, or NULL. */
RB_INLINE void hash_side_by_side(const unsigned char *one, const unsigned char *two,
                                 ptrdiff_t n_bytes, const uint64_t key[2], uint64_t *hashes,
                                 int64_t *totals)
{
    struct sip s = begun(key), t = s;
    for (ptrdiff_t done = 0; done + 8 <= n_bytes; done += 8) {
        take_in(&s, little_word(one + done));
        if (two)
            take_in(&t, little_word(two + done));
    }
    take_in(&s, last_word(one, n_bytes));
    finish(&s, &hashes[0]);
    if (two) {
        take_in(&t, last_word(two, n_bytes));
        finish(&t, &hashes[1]);
    }
    if (totals) {
        totals[0] = ones_of(one, n_bytes);
        if (two)
            totals[1] = ones_of(two, n_bytes);
    }
}

void fingerprint_rows_portable(const unsigned char *rows, ptrdiff_t stride, ptrdiff_t n_rows,
                               ptrdiff_t n_bytes, const uint64_t key[2], uint64_t *hashes,
                               int64_t *totals)
{
    for (; n_rows >= 2; n_rows -= 2, rows += 2 * stride, hashes += 2) {
        hash_side_by_side(rows, rows + stride, n_bytes, key, hashes, totals);
        totals = totals ? totals + 2 : NULL;
    }
    if (n_rows == 1)
        hash_side_by_side(rows, NULL, n_bytes, key, hashes, totals);
}
