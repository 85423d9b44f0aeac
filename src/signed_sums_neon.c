/* NEON: VCNT counts the ones of each byte; pairwise widening adds bring them to 64-bit lanes.
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * A strip is four registers of two vectors.  Bytes may be added up for 31 words before they
 * could overflow (31 * 8 < 256), so the widening is paid once in 31 words.
 */
#include "signed_sums.h"

#if defined(RB_ARM64)
#include <arm_neon.h>

enum { PAIR = 2, WORDS_PER_WIDENING = 31 };

static void count_pair(const uint64_t *lines, const uint64_t *row, ptrdiff_t n_words,
                       int64_t *counts)
{
    uint64x2_t sum = vreinterpretq_u64_s64(vld1q_s64(counts));
    for (ptrdiff_t w = 0; w < n_words;) {
        ptrdiff_t end = n_words - w < WORDS_PER_WIDENING ? n_words : w + WORDS_PER_WIDENING;
        uint8x16_t bytes = vdupq_n_u8(0);
        for (; w < end; w++) {
            uint64x2_t both = vandq_u64(vld1q_u64(lines + w * LANES), vdupq_n_u64(row[w]));
            bytes = vaddq_u8(bytes, vcntq_u8(vreinterpretq_u8_u64(both)));
        }
        sum = vaddq_u64(sum, vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(bytes))));
    }
    vst1q_s64(counts, vreinterpretq_s64_u64(sum));
}

static void count_bits(const struct sign_tile *signs, const uint64_t *rows, ptrdiff_t row_stride,
                       ptrdiff_t n_rows, int64_t *counts, ptrdiff_t counts_stride)
{
    for (ptrdiff_t p = 0; p < signs->n_strips * LANES; p += PAIR) {
        const uint64_t *lines =
            signs->lines + p / LANES * signs->strip_stride * LANES + p % LANES;
        for (ptrdiff_t r = 0; r < n_rows; r++)
            count_pair(lines, rows + r * row_stride, signs->n_words,
                       counts + r * counts_stride + p);
    }
}

const struct kernel kernel_neon = {
    "neon",         cpu_has_neon,      count_bits,          count_units_portable,
    raise_extremes_portable, popcount_portable, fill_lines_portable,
};
#endif
