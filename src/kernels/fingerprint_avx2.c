/* Keyed hashes with AVX2: eight rows side by side. */
#include "cpu.h"

#if defined(RB_X86_64) && defined(RB_GNU)
#include "x86.h"

typedef uint64_t lanes __attribute__((vector_size(32), may_alias));
enum { N_LANES = 4 };
#define TARGET RB_TARGET("avx2")
#define FINGERPRINT_ROWS fingerprint_rows_avx2

RB_INLINE TARGET lanes rotated(lanes x, int bits)
{
    if (bits == 32)
        return (lanes)_mm256_shuffle_epi32((__m256i)x, 0xb1);
    if (bits == 16) {
        const __m128i moved = _mm_setr_epi8(6, 7, 0, 1, 2, 3, 4, 5, 14, 15, 8, 9, 10, 11, 12, 13);
        return (lanes)_mm256_shuffle_epi8((__m256i)x, _mm256_broadcastsi128_si256(moved));
    }
    return x << bits | x >> (64 - bits);
}

/* 4 x 4 words. */
RB_INLINE TARGET void turned(lanes block[4])
{
    __m256i pairs[4];
    RB_UNROLL(8)
    for (int i = 0; i < 4; i += 2) {
        const __m256i a = (__m256i)block[i], b = (__m256i)block[i + 1];
        pairs[i] = _mm256_unpacklo_epi64(a, b), pairs[i + 1] = _mm256_unpackhi_epi64(a, b);
    }
    RB_UNROLL(8)
    for (int j = 0; j < 2; j++) {
        block[j] = (lanes)_mm256_permute2x128_si256(pairs[j], pairs[j + 2], 0x20);
        block[j + 2] = (lanes)_mm256_permute2x128_si256(pairs[j], pairs[j + 2], 0x31);
    }
}

/* Looked up by half bytes, whose counts fit a byte up to the end. */
RB_INLINE TARGET lanes ones_of(const lanes block[4])
{
    const __m256i low = _mm256_set1_epi8(15), table = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    __m256i bytes = _mm256_setzero_si256();
    RB_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const __m256i word = (__m256i)block[i];
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi64(word, 4), low);
        bytes = _mm256_add_epi8(bytes, _mm256_shuffle_epi8(table, _mm256_and_si256(word, low)));
        bytes = _mm256_add_epi8(bytes, _mm256_shuffle_epi8(table, upper));
    }
    return (lanes)_mm256_sad_epu8(bytes, _mm256_setzero_si256());
}

#include "fingerprint.inc.h"
#endif
