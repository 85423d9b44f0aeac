/* Bit-sliced blocks with NEON: 128 rows to a line. */
#include "cpu.h"

#if defined(RB_ARM64) && defined(RB_GNU)
#include <arm_neon.h>

typedef uint64_t line __attribute__((vector_size(16), may_alias));
enum { LINE_WORDS = 2 };
#define TARGET

typedef double reals __attribute__((vector_size(16), may_alias));
#define REALS(value) ((reals)vdupq_n_f64(value))
#define REALS_OF(integers) ((reals)vcvtq_f64_s64(vmovl_s32(vld1_s32(integers))))
#define LARGER(a, b) ((reals)vmaxq_f64((float64x2_t)(a), (float64x2_t)(b)))
#define SMALLER(a, b) ((reals)vminq_f64((float64x2_t)(a), (float64x2_t)(b)))

#define ZIP_LOW(a, b) ((line)vzip1q_u8((uint8x16_t)(a), (uint8x16_t)(b)))
#define ZIP_HIGH(a, b) ((line)vzip2q_u8((uint8x16_t)(a), (uint8x16_t)(b)))
#define LOAD_WORDS(rows, w, both) load((rows)[0] + (w), both)

/* Two words of a row, or only the last one. */
RB_INLINE line load(const uint64_t *words, int both)
{
    return (line)(both ? vld1q_u64(words) : vcombine_u64(vld1_u64(words), vdup_n_u64(0)));
}

#include "sliced.inc.h"

const struct sliced_kernel sliced_neon = {BLOCK_ROWS, scan, studentise, raise_maxima};
#endif
