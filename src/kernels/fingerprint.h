/* Which row it is: a keyed hash that tells rows apart, and nothing else to whoever lacks the key.
 *
 * SipHash-1-3 (Aumasson and Bernstein, 2012), as Python hashes strings: each word of a row goes
 * through a round that waits for the round before, so that rows are hashed side by side.
 */
#ifndef RADABOUND_FINGERPRINT_H
#define RADABOUND_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"

/* hashes[r] of n_bytes of each of n_rows rows, `stride` bytes apart, at any address, and unless it
 * is NULL totals[r], the ones among their bits: while they are at hand. */
typedef void fingerprint_rows_fn(const unsigned char *rows, ptrdiff_t stride, ptrdiff_t n_rows,
                                 ptrdiff_t n_bytes, const uint64_t key[2], uint64_t *hashes,
                                 int64_t *totals);

fingerprint_rows_fn fingerprint_rows_portable;
#if defined(RB_X86_64) && defined(RB_GNU)
fingerprint_rows_fn fingerprint_rows_avx2, fingerprint_rows_avx512;
#else
#define fingerprint_rows_avx2 fingerprint_rows_portable
#define fingerprint_rows_avx512 fingerprint_rows_portable
#endif

#define SIP_0 0x736f6d6570736575u
#define SIP_1 0x646f72616e646f6du
#define SIP_2 0x6c7967656e657261u
#define SIP_3 0x7465646279746573u
#define SIP_END 0xffu
#define SIP_BYTES 0x00ffffffffffffffu /* of the last word: the rest is the length */
enum { SIP_LAST_ROUNDS = 3 };

/* Eight bytes, the lowest first: one load where words lie so too. */
RB_INLINE uint64_t little_word(const unsigned char *b)
{
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24
        | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48
        | (uint64_t)b[7] << 56;
}

/* What is hashed last: the bytes of a row after its whole words, fewer than eight, and how many it
 * has in all. */
RB_INLINE uint64_t last_word(const unsigned char *row, ptrdiff_t n_bytes)
{
    const int rest = (int)(n_bytes % 8);
    uint64_t word = (uint64_t)n_bytes << 56;
    if (rest > 0 && n_bytes >= 8)
        word |= little_word(row + n_bytes - 8) >> 8 * (8 - rest);
    else
        for (int i = 0; i < rest; i++)
            word |= (uint64_t)row[i] << 8 * i;
    return word;
}

#endif
