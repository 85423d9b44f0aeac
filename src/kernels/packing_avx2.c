/* AVX2: a comparison fills lanes, and a MOVMSK gathers their top bits into an integer.
 *
 * float16 is the portable packer's: converting it takes F16C, which AVX2 does not promise.
 */
#include "packing.h"

#if defined(RB_X86_64)
#include "x86.h"

#define TARGET RB_TARGET("avx2")
#define EACH RB_INLINE TARGET
#define PREFETCH(address) _mm_prefetch(address, _MM_HINT_T0)

#define INTEGER(bits, set1)                                                                        \
    typedef __m256i vector_u##bits;                                                                \
    enum { lanes_u##bits = 256 / bits };                                                           \
    EACH __m256i load_u##bits(const char *p) { return _mm256_loadu_si256((const __m256i *)p); }    \
    EACH __m256i each_u##bits(union class_value c) { return set1((int##bits##_t)c.integer); }

INTEGER(8, _mm256_set1_epi8)
INTEGER(16, _mm256_set1_epi16)
INTEGER(32, _mm256_set1_epi32)
INTEGER(64, _mm256_set1_epi64x)

EACH uint64_t differs_u8(__m256i a, __m256i b)
{
    return (uint32_t)~_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b));
}

EACH uint64_t differs_u16(__m256i a, __m256i b)
{
    /* eight lanes of either half become eight bytes, twice */
    __m256i same = _mm256_cmpeq_epi16(a, b);
    uint32_t bytes = (uint32_t)~_mm256_movemask_epi8(_mm256_packs_epi16(same, same));
    return (bytes & 0xff) | (bytes >> 16 & 0xff) << 8;
}

EACH uint64_t differs_u32(__m256i a, __m256i b)
{
    __m256i same = _mm256_cmpeq_epi32(a, b);
    return (uint64_t)_mm256_movemask_ps(_mm256_castsi256_ps(same)) ^ 0xff;
}

EACH uint64_t differs_u64(__m256i a, __m256i b)
{
    __m256i same = _mm256_cmpeq_epi64(a, b);
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(same)) ^ 0xf;
}

/* Unsigned x - first <= last - first, where the smaller of both is the left one. */
#define OUTSIDE(bits)                                                                              \
    EACH uint64_t outside_u##bits(__m256i x, __m256i first, __m256i last)                          \
    {                                                                                              \
        __m256i from_first = _mm256_sub_epi##bits(x, first);                                       \
        __m256i span = _mm256_sub_epi##bits(last, first);                                          \
        return differs_u##bits(from_first, _mm256_min_epu##bits(from_first, span));                \
    }

OUTSIDE(8)
OUTSIDE(16)
OUTSIDE(32)

/* AVX2 has no minimum of 64-bit lanes, and no unsigned order but by turning the top bit. */
EACH uint64_t outside_u64(__m256i x, __m256i first, __m256i last)
{
    const __m256i top = _mm256_set1_epi64x(INT64_MIN);
    __m256i from_first = _mm256_xor_si256(_mm256_sub_epi64(x, first), top);
    __m256i span = _mm256_xor_si256(_mm256_sub_epi64(last, first), top);
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(from_first, span)));
}

#define TOWARDS_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

/* A whole number of the range is what clamping and rounding leave alone; nan equals nothing. */
#define REAL(bits, vector, type, suffix)                                                           \
    typedef vector vector_f##bits;                                                                 \
    enum { lanes_f##bits = 256 / bits };                                                           \
    EACH vector load_f##bits(const char *p) { return _mm256_loadu_##suffix((const type *)p); }     \
    EACH vector each_f##bits(union class_value c) { return _mm256_set1_##suffix((type)c.real); }   \
    EACH uint64_t differs_f##bits(vector a, vector b)                                              \
    {                                                                                              \
        return (uint64_t)_mm256_movemask_##suffix(_mm256_cmp_##suffix(a, b, _CMP_NEQ_UQ));         \
    }                                                                                              \
    EACH uint64_t outside_f##bits(vector x, vector first, vector last)                             \
    {                                                                                              \
        vector clamped = _mm256_min_##suffix(_mm256_max_##suffix(x, first), last);                 \
        return differs_f##bits(x, _mm256_round_##suffix(clamped, TOWARDS_ZERO));                   \
    }

REAL(32, __m256, float, ps)
REAL(64, __m256d, double, pd)

/* As in packing_avx512.c.  Of all values the largest bits are kept, unsigned, of 32 each; those of
 * doubles are compared as signed integers, so negative ones are caught by their sign. */
typedef __m256i seen_values;

EACH uint64_t any_outside(seen_values seen)
{
    const __m256i one = _mm256_castps_si256(_mm256_set1_ps(0x1p24f));
    const __m256i same = _mm256_cmpeq_epi32(_mm256_max_epu32(seen, one), one);
    return (uint64_t)~_mm256_movemask_epi8(same);
}

EACH seen_values units_of_f32(__m256 loss, int32_t *units, seen_values seen)
{
    const __m256 one = _mm256_set1_ps(0x1p24f);
    __m256 x = _mm256_add_ps(_mm256_mul_ps(loss, one), _mm256_setzero_ps());
    _mm256_storeu_si256((__m256i *)units, _mm256_cvtps_epi32(x));
    return _mm256_max_epu32(seen, _mm256_castps_si256(x));
}

EACH seen_values units_of_f64(__m256d loss, int32_t *units, seen_values seen)
{
    const __m256d one = _mm256_set1_pd(0x1p24);
    __m256d x = _mm256_add_pd(_mm256_mul_pd(loss, one), _mm256_setzero_pd());
    __m256i above = _mm256_cmpgt_epi64(_mm256_castpd_si256(x), _mm256_castpd_si256(one));
    _mm_storeu_si128((__m128i *)units, _mm256_cvtpd_epi32(x));
    __m256i signed_if_outside = _mm256_or_si256(_mm256_castpd_si256(x), above);
    return _mm256_max_epu32(seen, _mm256_srli_epi64(signed_if_outside, 32));
}

#include "packing_kinds.h"

const struct packer packer_avx2 = {pack_row, units_row};

#endif
