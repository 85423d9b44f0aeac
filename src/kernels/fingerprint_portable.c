/* Keyed hashes in plain C: two rows side by side, since one waits for itself. */
#include "fingerprint.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

RB_INLINE uint64_t rotated(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

RB_INLINE void round_of(struct sip *s)
{
    s->v0 += s->v1, s->v2 += s->v3;
    s->v1 = rotated(s->v1, 13) ^ s->v0, s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v1, s->v0 += s->v3;
    s->v1 = rotated(s->v1, 17) ^ s->v2, s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 = rotated(s->v2, 32);
}

RB_INLINE void take_in(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    round_of(s);
    s->v0 ^= word;
}

RB_INLINE void finish(struct sip *s, uint64_t last, uint64_t *hash)
{
    take_in(s, last);
    s->v2 ^= SIP_END;
    for (int i = 0; i < SIP_LAST_ROUNDS; i++)
        round_of(s);
    *hash = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

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
    struct sip s = {key[0] ^ SIP_0, key[1] ^ SIP_1, key[0] ^ SIP_2, key[1] ^ SIP_3}, t = s;
    for (ptrdiff_t done = 0; done + 8 <= n_bytes; done += 8) {
        take_in(&s, little_word(one + done));
        if (two)
            take_in(&t, little_word(two + done));
    }
    finish(&s, last_word(one, n_bytes), &hashes[0]);
    if (two)
        finish(&t, last_word(two, n_bytes), &hashes[1]);
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
