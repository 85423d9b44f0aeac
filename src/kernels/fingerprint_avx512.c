/* Keyed hashes with AVX-512, which rotates in one operation: sixteen rows side by side. */
#include "cpu.h"

#if defined(RB_X86_64) && defined(RB_GNU)
#include "x86.h"

typedef uint64_t lanes __attribute__((vector_size(64), may_alias));
enum { N_LANES = 8 };
#define TARGET RB_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")
#define FINGERPRINT_ROWS fingerprint_rows_avx512
#define rotated(x, bits) ((lanes)_mm512_rol_epi64((__m512i)(x), bits))

/* 8 x 8 words: pairs of words, then of 128 bits, then of 256. */
RB_INLINE TARGET void turned(lanes block[8])
{
    __m512i pairs[8], fours[8];
    RB_UNROLL(8)
    for (int i = 0; i < 8; i += 2) {
        const __m512i a = (__m512i)block[i], b = (__m512i)block[i + 1];
        pairs[i] = _mm512_unpacklo_epi64(a, b), pairs[i + 1] = _mm512_unpackhi_epi64(a, b);
    }
    RB_UNROLL(8)
    for (int i = 0; i < 8; i += 4)
        RB_UNROLL(8)
        for (int j = 0; j < 2; j++) { /* words j, j + 4 and j + 2, j + 6 of rows i to i + 3 */
            const __m512i a = pairs[i + j], b = pairs[i + j + 2];
            fours[i + j] = _mm512_shuffle_i64x2(a, b, 0x88);
            fours[i + j + 2] = _mm512_shuffle_i64x2(a, b, 0xdd);
        }
    RB_UNROLL(8)
    for (int j = 0; j < 4; j++) {
        block[j] = (lanes)_mm512_shuffle_i64x2(fours[j], fours[j + 4], 0x88);
        block[j + 4] = (lanes)_mm512_shuffle_i64x2(fours[j], fours[j + 4], 0xdd);
    }
}

RB_INLINE TARGET lanes ones_of(const lanes block[8])
{
    lanes ones = {0};
    RB_UNROLL(8)
    for (int i = 0; i < 8; i++)
        ones += (lanes)_mm512_popcnt_epi64((__m512i)block[i]);
    return ones;
}

#include "fingerprint.inc.h"
#endif
