/* NEON: VCNT counts the ones of each byte; pairwise widening adds bring them to 64-bit lanes.
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * A strip is four registers of two vectors.  Bytes may be added up for 31 words before they
 * could overflow (31 * 8 < 256), so the widening is paid once in 31 words.
 * AND, CNT and ADD are twelve operations a word and strip, the loads and the loop eight.  A
 * Harley-Seal tree, six operations a register, would take twice as many.
 *
 * Real-valued losses are added under a mask, sample by sample, four vectors to a register.
 */
#include "signed_sums.h"

#if defined(RB_ARM64)
#include <arm_neon.h>

enum {
    PAIR = 2,
    PAIRS = LANES / PAIR,
    QUAD = 4,
    WIDEN_BITS = 31,
    WIDEN_UNITS = 3, /* 192 losses of up to 2^24 fit 32 bits; 256 do not */
};

/* One strip against one row, added to its counts. */
RB_INLINE void count_strip(const uint64_t *lines, const uint64_t *row, ptrdiff_t n_words,
                           uint64x2_t sum[PAIRS])
{
    for (ptrdiff_t w = 0; w < n_words;) {
        const ptrdiff_t end = n_words - w < WIDEN_BITS ? n_words : w + WIDEN_BITS;
        uint8x16_t bytes[PAIRS] = {vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0), vdupq_n_u8(0)};
        for (; w < end; w++, lines += LANES) {
            const uint64x2_t word = vdupq_n_u64(row[w]);
            RB_UNROLL(4)
            for (int p = 0; p < PAIRS; p++) {
                const uint64x2_t both = vandq_u64(vld1q_u64(lines + p * PAIR), word);
                bytes[p] = vaddq_u8(bytes[p], vcntq_u8(vreinterpretq_u8_u64(both)));
            }
        }
        RB_UNROLL(4)
        for (int p = 0; p < PAIRS; p++)
            sum[p] = vpadalq_u32(sum[p], vpaddlq_u16(vpaddlq_u8(bytes[p])));
    }
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

static void count_bits(const struct sign_tile *signs, const struct packed_rows *rows,
                       int64_t *counts, ptrdiff_t counts_stride, int64_t *totals)
{
    for (ptrdiff_t s = 0; s < signs->n_strips; s++) {
        const uint64_t *lines = signs->lines + s * signs->strip_stride * LANES;
        for (ptrdiff_t r = 0; r < rows->n_rows; r++) {
            uint64_t *count = (uint64_t *)(counts + r * counts_stride + s * LANES);
            uint64x2_t sum[PAIRS];
            for (int p = 0; p < PAIRS; p++)
                sum[p] = vld1q_u64(count + p * PAIR);
            count_strip(lines, rows->words + r * rows->stride, signs->n_words, sum);
            for (int p = 0; p < PAIRS; p++)
                vst1q_u64(count + p * PAIR, sum[p]);
        }
    }
    for (ptrdiff_t r = 0; totals && r < rows->n_rows; r++)
        totals[r] += popcount(rows->words + r * rows->stride, signs->n_words);
}

static void widen_extremes(const struct sign_tile *signs, const struct packed_rows *rows,
                           const struct widening *to)
{
    for (ptrdiff_t r = 0; to->first && r < rows->n_rows; r++) {
        to->totals[r] = popcount(rows->words + r * rows->stride, signs->n_words);
        to->growth[r] = 0;
    }
    for (ptrdiff_t s = 0; s < signs->n_strips; s++) {
        const uint64_t *lines = signs->lines + s * signs->strip_stride * LANES;
        const struct extremes part = extremes_from(to->extremes, s * LANES);
        for (ptrdiff_t r = 0; r < rows->n_rows; r++) {
            const int64x2_t total = vdupq_n_s64(to->totals[r]);
            uint64x2_t count[PAIRS] = {vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0),
                                       vdupq_n_u64(0)};
            uint64x2_t beyond = vdupq_n_u64(0);
            int64_t sums[LANES];
            count_strip(lines, rows->words + r * rows->stride, signs->n_words, count);
            for (int p = 0; p < PAIRS; p++) {
                const int64x2_t twice = vreinterpretq_s64_u64(vaddq_u64(count[p], count[p]));
                const int64x2_t sum = vsubq_s64(twice, total);
                const int64x2_t high = vld1q_s64(part.maxima + p * PAIR);
                const int64x2_t low = vld1q_s64(part.minima + p * PAIR);
                beyond = vorrq_u64(beyond, vorrq_u64(vcgtq_s64(sum, high), vcltq_s64(sum, low)));
                vst1q_s64(sums + p * PAIR, sum);
            }
            if (vmaxvq_u32(vreinterpretq_u32_u64(beyond)) != 0 && to->totals[r] <= to->most)
                for (int lane = 0; lane < LANES; lane++) /* rare once a few queries have been seen */
                    to->growth[r] += widen_to(sums[lane], &part, lane);
        }
    }
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

const struct kernel kernel_neon = {
    "neon",         cpu_has_neon, count_bits,          count_units,
    raise_extremes, sum_units,    fill_lines_portable, widen_extremes,
    0, 35, 400,
};
#endif
