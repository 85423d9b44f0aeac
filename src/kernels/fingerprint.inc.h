/* Keyed hashes of rows side by side, a lane each; two registers of rows at a time, since a round
 * waits for the one before.
 *
 * Whoever includes this has the type `lanes` of N_LANES words, TARGET, rotated(x, bits),
 * turned(block): N_LANES rows of as many words become words of as many rows, and ones_of(block),
 * the ones among the bits of each lane.
 */
#include <string.h>

#include "fingerprint.h"

#define EACH RB_INLINE TARGET
enum { N_ROWS = 2 * N_LANES };

struct sip {
    lanes v0, v1, v2, v3;
};

EACH void round_of(struct sip *s)
{
    s->v0 += s->v1, s->v2 += s->v3;
    s->v1 = rotated(s->v1, 13) ^ s->v0, s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v1, s->v0 += s->v3;
    s->v1 = rotated(s->v1, 17) ^ s->v2, s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 = rotated(s->v2, 32);
}

EACH void take_in(struct sip *s, lanes word)
{
    s->v3 ^= word;
    round_of(s);
    s->v0 ^= word;
}

EACH void finish(struct sip *s, uint64_t *hashes)
{
    const lanes none = {0};
    s->v2 ^= none + SIP_END;
    for (int i = 0; i < SIP_LAST_ROUNDS; i++)
        round_of(s);
    const lanes hashed = s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
    memcpy(hashes, &hashed, sizeof hashed);
}

/* And fetches what comes N_ROWS rows later. */
EACH void load_turned(const unsigned char *rows, ptrdiff_t stride, lanes *block)
{
    RB_UNROLL(8)
    for (int i = 0; i < N_LANES; i++, rows += stride) {
        __builtin_prefetch(rows + N_ROWS * stride);
        memcpy(&block[i], rows, sizeof *block);
    }
    turned(block);
}

/* The word `done` bytes from the beginning of each row, or the last one. */
EACH lanes one_word(const unsigned char *rows, ptrdiff_t stride, ptrdiff_t n_bytes, ptrdiff_t done)
{
    uint64_t words[N_LANES];
    RB_UNROLL(8)
    for (int i = 0; i < N_LANES; i++, rows += stride)
        words[i] = done + 8 <= n_bytes ? little_word(rows + done) : last_word(rows, n_bytes);
    lanes found;
    memcpy(&found, words, sizeof found);
    return found;
}

EACH void hash_block(const unsigned char *rows, ptrdiff_t stride, ptrdiff_t n_bytes,
                     const uint64_t key[2], uint64_t *hashes, int64_t *totals, int counts)
{
    const unsigned char *others = rows + N_LANES * stride;
    const lanes none = {0};
    struct sip s = {none + (key[0] ^ SIP_0), none + (key[1] ^ SIP_1), none + (key[0] ^ SIP_2),
                    none + (key[1] ^ SIP_3)};
    struct sip t = s;
    lanes s_ones = none, t_ones = none;
    ptrdiff_t done = 0;
    for (; done + 8 * N_LANES <= n_bytes; done += 8 * N_LANES) {
        lanes words[N_LANES], more[N_LANES];
        load_turned(rows + done, stride, words);
        load_turned(others + done, stride, more);
        if (counts) {
            s_ones += ones_of(words);
            t_ones += ones_of(more);
        }
        RB_UNROLL(8)
        for (int w = 0; w < N_LANES; w++) {
            take_in(&s, words[w]);
            take_in(&t, more[w]);
        }
    }
    for (; done <= n_bytes; done += 8) {
        const uint64_t used = done + 8 <= n_bytes ? ~(uint64_t)0 : SIP_BYTES;
        lanes words[N_LANES] = {one_word(rows, stride, n_bytes, done)};
        lanes more[N_LANES] = {one_word(others, stride, n_bytes, done)};
        take_in(&s, words[0]);
        take_in(&t, more[0]);
        if (counts) {
            words[0] &= used, more[0] &= used;
            s_ones += ones_of(words);
            t_ones += ones_of(more);
        }
    }
    finish(&s, hashes);
    finish(&t, hashes + N_LANES);
    if (counts) {
        memcpy(totals, &s_ones, sizeof s_ones);
        memcpy(totals + N_LANES, &t_ones, sizeof t_ones);
    }
}

TARGET void FINGERPRINT_ROWS(const unsigned char *rows, ptrdiff_t stride, ptrdiff_t n_rows,
                             ptrdiff_t n_bytes, const uint64_t key[2], uint64_t *hashes,
                             int64_t *totals)
{
    if (n_rows < N_ROWS) {
        fingerprint_rows_portable(rows, stride, n_rows, n_bytes, key, hashes, totals);
        return;
    }
    for (ptrdiff_t row = 0; row < n_rows; row += N_ROWS) {
        const ptrdiff_t first = (ptrdiff_t)smaller(row, n_rows - N_ROWS); /* some twice */
        const unsigned char *block = rows + first * stride;
        if (totals)
            hash_block(block, stride, n_bytes, key, hashes + first, totals + first, 1);
        else
            hash_block(block, stride, n_bytes, key, hashes + first, NULL, 0);
    }
}
