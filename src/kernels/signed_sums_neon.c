/* NEON: VCNT counts the ones of each byte; pairwise widening adds bring them to 64-bit lanes.
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * A strip is four registers of two vectors.  Bytes may be added up for 31 words before they
 * could overflow (31 * 8 < 256), so the widening is paid once in 31 words.
 *
 * Real-valued losses are added under a mask, sample by sample, four vectors to a register.
 */
#include "signed_sums.h"

#if defined(RB_ARM64)
#include <arm_neon.h>

enum {
    PAIR = 2,
    QUAD = 4,
    WIDEN_BITS = 31,
    WIDEN_UNITS = 3, /* 192 losses of up to 2^24 fit 32 bits; 256 do not */
};

static void count_pair(const uint64_t *lines, const uint64_t *row, ptrdiff_t n_words,
                       int64_t *counts)
{
    uint64x2_t sum = vreinterpretq_u64_s64(vld1q_s64(counts));
    for (ptrdiff_t w = 0; w < n_words;) {
        ptrdiff_t end = n_words - w < WIDEN_BITS ? n_words : w + WIDEN_BITS;
        uint8x16_t bytes = vdupq_n_u8(0);
        for (; w < end; w++) {
            uint64x2_t both = vandq_u64(vld1q_u64(lines + w * LANES), vdupq_n_u64(row[w]));
            bytes = vaddq_u8(bytes, vcntq_u8(vreinterpretq_u8_u64(both)));
        }
        sum = vaddq_u64(sum, vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(bytes))));
    }
    vst1q_s64(counts, vreinterpretq_s64_u64(sum));
}

static int64_t popcount(const uint64_t *words, ptrdiff_t n_words)
{
    uint64x2_t sum = vdupq_n_u64(0);
    ptrdiff_t w = 0;
    for (; w + PAIR <= n_words; w += PAIR) {
        const uint8x16_t bytes = vcntq_u8(vreinterpretq_u8_u64(vld1q_u64(words + w)));
        sum = vaddq_u64(sum, vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(bytes))));
    }
    return (int64_t)vaddvq_u64(sum) + popcount_portable(words + w, n_words - w);
}

static void count_bits(const struct sign_tile *signs, const uint64_t *rows, ptrdiff_t row_stride,
                       ptrdiff_t n_rows, int64_t *counts, ptrdiff_t counts_stride,
                       int64_t *totals)
{
    for (ptrdiff_t p = 0; p < signs->n_strips * LANES; p += PAIR) {
        const uint64_t *lines =
            signs->lines + p / LANES * signs->strip_stride * LANES + p % LANES;
        for (ptrdiff_t r = 0; r < n_rows; r++)
            count_pair(lines, rows + r * row_stride, signs->n_words,
                       counts + r * counts_stride + p);
    }
    for (ptrdiff_t r = 0; totals && r < n_rows; r++)
        totals[r] += popcount(rows + r * row_stride, signs->n_words);
}

/* Samples 0..31 or 32..63 of one word of four vectors. */
RB_INLINE uint32x4_t half_words(const uint64_t *line, int upper)
{
    const uint32x4_t a = vreinterpretq_u32_u64(vld1q_u64(line));
    const uint32x4_t b = vreinterpretq_u32_u64(vld1q_u64(line + PAIR));
    return upper ? vuzp2q_u32(a, b) : vuzp1q_u32(a, b);
}

static uint32x4_t add_half_word(uint32x4_t sum, uint32x4_t signs, const int32_t *losses)
{
    uint32x4_t bit = vdupq_n_u32(1);
    for (int i = 0; i < HALF_WORD; i++) {
        const uint32x4_t loss = vdupq_n_u32((uint32_t)losses[i]);
        sum = vaddq_u32(sum, vandq_u32(loss, vtstq_u32(signs, bit)));
        bit = vshlq_n_u32(bit, 1);
    }
    return sum;
}

static void count_quad(const uint64_t *lines, const int32_t *row, ptrdiff_t n_words,
                       int64_t *counts)
{
    uint64x2_t low = vreinterpretq_u64_s64(vld1q_s64(counts));
    uint64x2_t high = vreinterpretq_u64_s64(vld1q_s64(counts + PAIR));
    for (ptrdiff_t w = 0; w < n_words;) {
        ptrdiff_t end = n_words - w < WIDEN_UNITS ? n_words : w + WIDEN_UNITS;
        uint32x4_t sum = vdupq_n_u32(0);
        for (; w < end; w++)
            for (int upper = 0; upper < 2; upper++)
                sum = add_half_word(sum, half_words(lines + w * LANES, upper),
                                    row + w * WORD_BITS + upper * HALF_WORD);
        low = vaddw_u32(low, vget_low_u32(sum));
        high = vaddw_u32(high, vget_high_u32(sum));
    }
    vst1q_s64(counts, vreinterpretq_s64_u64(low));
    vst1q_s64(counts + PAIR, vreinterpretq_s64_u64(high));
}

static void count_units(const struct sign_tile *signs, const int32_t *rows, ptrdiff_t row_stride,
                        ptrdiff_t n_rows, int64_t *counts, ptrdiff_t counts_stride)
{
    for (ptrdiff_t q = 0; q < signs->n_strips * LANES; q += QUAD) {
        const uint64_t *lines =
            signs->lines + q / LANES * signs->strip_stride * LANES + q % LANES;
        for (ptrdiff_t r = 0; r < n_rows; r++)
            count_quad(lines, rows + r * row_stride, signs->n_words,
                       counts + r * counts_stride + q);
    }
}

static int raise_extremes(const int64_t *counts, int64_t total, ptrdiff_t n_strips,
                          int64_t *maxima, int64_t *minima)
{
    const int64x2_t all = vdupq_n_s64(total);
    uint64x2_t moved = vdupq_n_u64(0);
    for (ptrdiff_t v = 0; v < n_strips * LANES; v += PAIR) {
        const int64x2_t count = vld1q_s64(counts + v);
        const int64x2_t sum = vsubq_s64(vaddq_s64(count, count), all);
        const int64x2_t high = vld1q_s64(maxima + v), low = vld1q_s64(minima + v);
        const uint64x2_t raised = vcgtq_s64(sum, high), lowered = vcltq_s64(sum, low);
        vst1q_s64(maxima + v, vbslq_s64(raised, sum, high));
        vst1q_s64(minima + v, vbslq_s64(lowered, sum, low));
        moved = vorrq_u64(moved, vorrq_u64(raised, lowered));
    }
    return vmaxvq_u32(vreinterpretq_u32_u64(moved)) != 0;
}

static int64_t sum_units(const int32_t *units, ptrdiff_t n_words)
{
    int64x2_t sum = vdupq_n_s64(0);
    for (ptrdiff_t i = 0; i < n_words * WORD_BITS; i += QUAD)
        sum = vpadalq_s32(sum, vld1q_s32(units + i));
    return vaddvq_s64(sum);
}

static void widen_extremes(const struct sign_tile *signs, const uint64_t *rows,
                           ptrdiff_t row_stride, ptrdiff_t n_rows, int first, int64_t most,
                           const struct extremes *extremes, int64_t *totals, int64_t *growth)
{
    widen_by(count_bits, signs, rows, row_stride, n_rows, first, most, extremes, totals, growth);
}

const struct kernel kernel_neon = {
    "neon",         cpu_has_neon, count_bits,          count_units,
    raise_extremes, sum_units,    fill_lines_portable, widen_extremes,
    0, 16, 60,
};
#endif
