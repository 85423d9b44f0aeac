/* Bit-sliced blocks with AVX-512: 512 rows to a line.
 *
 * The full adder is two VPTERNLOG, where gcc 12 makes three operations (1.2 times the time).
 */
#include "cpu.h"

#if defined(RB_X86_64) && defined(RB_GNU)
#include "x86.h"
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(64), may_alias));
enum { LINE_WORDS = 8 };
#define TARGET RB_TARGET("avx512f,avx512bw")

#define TERNARY(a, b, c, table) \
    ((line)_mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), table))
#define PARITY(a, b, c) TERNARY(a, b, c, 0x96)
#define MAJORITY(a, b, c) TERNARY(a, b, c, 0xe8)
#define BORROW(a, b, c) TERNARY(a, b, c, 0x8e)

typedef double reals __attribute__((vector_size(64), may_alias));
#define REALS(value) ((reals)_mm512_set1_pd(value))
#define REALS_OF(integers) \
    ((reals)_mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)(integers))))
#define LARGER(a, b) ((reals)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define SMALLER(a, b) ((reals)_mm512_min_pd((__m512d)(a), (__m512d)(b)))

#define ZIP_LOW(a, b) ((line)_mm512_unpacklo_epi8((__m512i)(a), (__m512i)(b)))
#define ZIP_HIGH(a, b) ((line)_mm512_unpackhi_epi8((__m512i)(a), (__m512i)(b)))
#define LOAD_WORDS(rows, w, both) load_four(rows, w, both)

/* Two words of a row, or only the last one. */
RB_INLINE TARGET __m128i load(const uint64_t *words, int both)
{
    return both ? _mm_loadu_si128((const __m128i *)words)
                : _mm_loadl_epi64((const __m128i *)words);
}

RB_INLINE TARGET line load_four(const uint64_t *const *rows, int64_t w, int both)
{
    __m512i x = _mm512_castsi128_si512(load(rows[0] + w, both));
    x = _mm512_inserti32x4(x, load(rows[128] + w, both), 1);
    x = _mm512_inserti32x4(x, load(rows[256] + w, both), 2);
    return (line)_mm512_inserti32x4(x, load(rows[384] + w, both), 3);
}

#include "sliced.inc.h"

const struct sliced_kernel sliced_avx512 = {BLOCK_ROWS, scan, studentise, raise_maxima};
#endif
