/* AVX-512: a comparison leaves one bit per value in a mask register, which is the packing.
 *
 * 64 bytes a comparison, two comparisons a value: what it is not, and whether it is a class at
 * all.  The second is no more work than a test for "bad values somewhere", and stops at them.
 */
#include "packing.h"

#if defined(RB_X86_64)
#include "x86.h"

#define TARGET RB_TARGET("avx512f,avx512bw")
#define EACH RB_INLINE TARGET
#define PREFETCH(address) _mm_prefetch(address, _MM_HINT_T0)

#define INTEGER(bits)                                                                              \
    typedef __m512i vector_u##bits;                                                                \
    enum { lanes_u##bits = 512 / bits };                                                           \
    EACH __m512i load_u##bits(const char *p) { return _mm512_loadu_si512(p); }                     \
    EACH __m512i each_u##bits(union class_value c)                                                 \
    {                                                                                              \
        return _mm512_set1_epi##bits((int##bits##_t)c.integer);                                    \
    }                                                                                              \
    EACH uint64_t differs_u##bits(__m512i a, __m512i b)                                            \
    {                                                                                              \
        return _mm512_cmpneq_epi##bits##_mask(a, b);                                               \
    }                                                                                              \
    EACH uint64_t outside_u##bits(__m512i x, __m512i first, __m512i last)                          \
    {                                                                                              \
        return _mm512_cmpgt_epu##bits##_mask(_mm512_sub_epi##bits(x, first),                       \
                                             _mm512_sub_epi##bits(last, first));                   \
    }

INTEGER(8)
INTEGER(16)
INTEGER(32)
INTEGER(64)

/* A whole number of the range is what clamping and rounding leave alone; nan equals nothing. */
#define REAL(kind, vector, type, suffix)                                                           \
    typedef vector vector_##kind;                                                                  \
    enum { lanes_##kind = sizeof(vector) / sizeof(type) };                                         \
    EACH vector each_##kind(union class_value c) { return _mm512_set1_##suffix((type)c.real); }    \
    EACH uint64_t differs_##kind(vector a, vector b)                                               \
    {                                                                                              \
        return _mm512_cmp_##suffix##_mask(a, b, _CMP_NEQ_UQ);                                      \
    }                                                                                              \
    EACH uint64_t outside_##kind(vector x, vector first, vector last)                              \
    {                                                                                              \
        vector clamped = _mm512_min_##suffix(_mm512_max_##suffix(x, first), last);                 \
        return differs_##kind(x, _mm512_roundscale_##suffix(clamped, _MM_FROUND_TO_ZERO));         \
    }

REAL(f16, __m512, float, ps)
REAL(f32, __m512, float, ps)
REAL(f64, __m512d, double, pd)

EACH __m512 load_f16(const char *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
EACH __m512 load_f32(const char *p) { return _mm512_loadu_ps(p); }
EACH __m512d load_f64(const char *p) { return _mm512_loadu_pd(p); }

typedef uint64_t seen_values;
EACH uint64_t any_outside(seen_values seen) { return seen; }

/* Rounded 2^24 times the loss.  A loss is in [0, 1] if the bits of 2^24 times it are, unsigned, at
 * most those of 2^24: negative numbers and nans have larger ones.  Adding 0.0 makes -0.0 a 0.0. */
EACH seen_values units_of_f32(__m512 loss, int32_t *units, seen_values seen)
{
    const __m512 one = _mm512_set1_ps(0x1p24f);
    __m512 x = _mm512_fmadd_ps(loss, one, _mm512_setzero_ps());
    _mm512_storeu_si512(units, _mm512_cvtps_epi32(x));
    return seen | _mm512_cmpgt_epu32_mask(_mm512_castps_si512(x), _mm512_castps_si512(one));
}

EACH seen_values units_of_f16(__m512 loss, int32_t *units, seen_values seen)
{
    return units_of_f32(loss, units, seen);
}

EACH seen_values units_of_f64(__m512d loss, int32_t *units, seen_values seen)
{
    const __m512d one = _mm512_set1_pd(0x1p24);
    __m512d x = _mm512_fmadd_pd(loss, one, _mm512_setzero_pd());
    _mm256_storeu_si256((__m256i *)units, _mm512_cvtpd_epi32(x));
    return seen | _mm512_cmpgt_epu64_mask(_mm512_castpd_si512(x), _mm512_castpd_si512(one));
}

#define HALF_PRECISION
#include "packing_kinds.h"

const struct packer packer_avx512 = {pack_row, units_row};

#endif
