/* Bit-sliced blocks with AVX2: 256 rows to a line. */
#include "cpu.h"

#if defined(RB_X86_64) && defined(RB_GNU)
#include "x86.h"
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(32), may_alias));
enum { LINE_WORDS = 4 };
#define TARGET RB_TARGET("avx2")

typedef double reals __attribute__((vector_size(32), may_alias));
#define REALS(value) ((reals)_mm256_set1_pd(value))
#define REALS_OF(integers) \
    ((reals)_mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(integers))))
#define LARGER(a, b) ((reals)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define SMALLER(a, b) ((reals)_mm256_min_pd((__m256d)(a), (__m256d)(b)))

#define ZIP_LOW(a, b) ((line)_mm256_unpacklo_epi8((__m256i)(a), (__m256i)(b)))
#define ZIP_HIGH(a, b) ((line)_mm256_unpackhi_epi8((__m256i)(a), (__m256i)(b)))
#define LOAD_WORDS(rows, w, both) \
    ((line)_mm256_set_m128i(load((rows)[128] + (w), both), load((rows)[0] + (w), both)))

/* Two words of a row, or only the last one. */
RB_INLINE TARGET __m128i load(const uint64_t *words, int both)
{
    return both ? _mm_loadu_si128((const __m128i *)words)
                : _mm_loadl_epi64((const __m128i *)words);
}

#include "sliced.inc.h"

const struct sliced_kernel sliced_avx2 = {BLOCK_ROWS, scan, studentise, raise_maxima};
#endif
