/* Keyed hashes of rows side by side, a lane each; two registers of rows at a time, since a round
 * waits for the one before.
 *
 * Whoever includes this has the type `lanes` of N_LANES words, TARGET, rotated(x, bits),
 * turned(block): N_LANES rows of as many words become words of as many rows, and ones_of(block),
 * the ones among the bits of each lane.
 */
#include "fingerprint.h"
#include "sip.inc.h"

enum { N_ROWS = 2 * N_LANES };

/* And fetches what comes N_ROWS rows later. */
EACH void load_turned(const unsigned char *rows, ptrdiff_t stride, lanes *block)
{
    RB_UNROLL(8)
    for (int i = 0; i < N_LANES; i++, rows += stride) {
        RB_PREFETCH(rows + N_ROWS * stride, 3);
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
    struct sip s = begun(key), t = s;
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
