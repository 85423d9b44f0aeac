/* Real-valued losses by AVX-512: VPERMD looks up four samples of 16 vectors.  See units.inc.h. */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include "x86.h"

#define TARGET RB_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")
#define EACH RB_INLINE TARGET
#define COUNT_UNITS count_units_avx512
#define UNROLL_STEPS RB_UNROLL(1) /* unrolled, GCC would put off the additions, and spill */

typedef __m512i reg;
enum { STEP = 4, REGS = 4, ROWS = 4 };

/* pairs: of every four losses the sums of the first two, { 0, a, b, a+b }.  Sixteen losses take
 * three vector operations; a broadcast from memory, to 16 lanes, takes none. */
struct half {
    const int32_t *losses;
    RB_ALIGNED(64) int32_t pairs[HALF_WORD];
};

EACH void prepare(struct half *half, const int32_t *losses)
{
    const reg first = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
    const reg second = _mm512_setr_epi32(1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13);
    half->losses = losses;
    RB_UNROLL(2)
    for (int i = 0; i < HALF_WORD; i += 16) {
        const reg loss = _mm512_loadu_si512(losses + i);
        const reg a = _mm512_maskz_permutexvar_epi32(0xaaaa, first, loss);
        const reg b = _mm512_maskz_permutexvar_epi32(0xcccc, second, loss);
        _mm512_store_si512(half->pairs + i, _mm512_add_epi32(a, b));
    }
}

EACH reg subset_sums(const struct half *half, int i, int n)
{
    (void)n; /* 32 is a multiple of STEP */
    reg sums = _mm512_broadcast_i32x4(_mm_load_si128((const __m128i *)(half->pairs + i)));
    sums = _mm512_mask_add_epi32(sums, 0xf0f0, sums, _mm512_set1_epi32(half->losses[i + 2]));
    return _mm512_mask_add_epi32(sums, 0xff00, sums, _mm512_set1_epi32(half->losses[i + 3]));
}

EACH reg half_words(const uint64_t *even, const uint64_t *odd, int upper)
{
    const reg a = _mm512_load_si512(even), b = _mm512_load_si512(odd);
    return upper ? _mm512_mask_shuffle_epi32(b, 0x5555, a, _MM_PERM_CDAB)
                 : _mm512_mask_shuffle_epi32(a, 0xaaaa, b, _MM_PERM_CDAB);
}

EACH reg zero(void) { return _mm512_setzero_si512(); }

EACH reg add_picked(reg counts, reg signs, reg sums)
{
    return _mm512_add_epi32(counts, _mm512_permutexvar_epi32(signs, sums));
}

EACH reg shift(reg signs) { return _mm512_srli_epi32(signs, STEP); }

EACH void add_even(int64_t *counts, reg more)
{
    const reg even = _mm512_and_si512(more, _mm512_set1_epi64(UINT32_MAX));
    _mm512_storeu_si512(counts, _mm512_add_epi64(_mm512_loadu_si512(counts), even));
}

EACH void add_odd(int64_t *counts, reg more) { add_even(counts, _mm512_srli_epi64(more, 32)); }

#include "units.inc.h"

/* A word's sum fits 32 bits; words are added up in 64. */
TARGET int64_t sum_units_avx512(const int32_t *units, ptrdiff_t n_words)
{
    reg total = zero();
    for (ptrdiff_t w = 0; w < n_words; w++, units += WORD_BITS) {
        reg sum = zero();
        RB_UNROLL(4)
        for (int i = 0; i < WORD_BITS; i += 16)
            sum = _mm512_add_epi32(sum, _mm512_loadu_si512(units + i));
        sum = _mm512_add_epi32(sum, _mm512_srli_epi64(sum, 32));
        total = _mm512_add_epi64(total, _mm512_and_si512(sum, _mm512_set1_epi64(UINT32_MAX)));
    }
    return _mm512_reduce_add_epi64(total);
}
#endif
