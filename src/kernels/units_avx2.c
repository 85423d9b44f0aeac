/* Real-valued losses by AVX2: VPERMD looks up three samples of 8 vectors.  See units.inc.h. */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include "x86.h"

#define TARGET RB_TARGET("avx2")
#define EACH RB_INLINE TARGET
#define COUNT_UNITS count_units_avx2
#define UNROLL_STEPS RB_UNROLL_ALL

typedef __m256i reg;
enum { STEP = 3, REGS = 4, ROWS = 2 }; /* and so 15 of the 16 registers */

struct half {
    const int32_t *losses;
};

EACH void prepare(struct half *half, const int32_t *losses) { half->losses = losses; }

/* In the lanes of a constant mask, 0 elsewhere. */
#define IN_LANES(loss, mask) \
    _mm256_blend_epi32(_mm256_setzero_si256(), _mm256_set1_epi32(loss), mask)

EACH reg subset_sums(const struct half *half, int i, int n)
{
    const int32_t *losses = half->losses + i;
    const reg two = _mm256_add_epi32(IN_LANES(losses[0], 0xaa), IN_LANES(losses[1], 0xcc));
    return n < 3 ? two : _mm256_add_epi32(two, IN_LANES(losses[2], 0xf0));
}

EACH reg half_words(const uint64_t *even, const uint64_t *odd, int upper)
{
    const reg a = _mm256_load_si256((const reg *)even), b = _mm256_load_si256((const reg *)odd);
    return upper ? _mm256_blend_epi32(_mm256_srli_epi64(a, 32), b, 0xaa)
                 : _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa);
}

EACH reg zero(void) { return _mm256_setzero_si256(); }

EACH reg add_picked(reg counts, reg signs, reg sums)
{
    counts = _mm256_add_epi32(counts, _mm256_permutevar8x32_epi32(sums, signs));
    RB_KEEP_VECTOR(counts); /* put off, it would be spilled */
    return counts;
}

EACH reg shift(reg signs) { return _mm256_srli_epi32(signs, STEP); }

EACH void add_even(int64_t *counts, reg more)
{
    const reg even = _mm256_and_si256(more, _mm256_set1_epi64x(UINT32_MAX));
    _mm256_storeu_si256((reg *)counts, _mm256_add_epi64(_mm256_loadu_si256((reg *)counts), even));
}

EACH void add_odd(int64_t *counts, reg more) { add_even(counts, _mm256_srli_epi64(more, 32)); }

#include "units.inc.h"

/* A word's sum fits 32 bits; words are added up in 64. */
TARGET int64_t sum_units_avx2(const int32_t *units, ptrdiff_t n_words)
{
    int64_t lanes[REG_VECTORS];
    reg total = zero();
    for (ptrdiff_t w = 0; w < n_words; w++, units += WORD_BITS) {
        reg sum = zero();
        RB_UNROLL(8)
        for (int i = 0; i < WORD_BITS; i += 8)
            sum = _mm256_add_epi32(sum, _mm256_loadu_si256((const reg *)(units + i)));
        sum = _mm256_add_epi32(sum, _mm256_srli_epi64(sum, 32));
        total = _mm256_add_epi64(total, _mm256_and_si256(sum, _mm256_set1_epi64x(UINT32_MAX)));
    }
    _mm256_storeu_si256((reg *)lanes, total);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#endif
