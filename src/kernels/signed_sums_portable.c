/* Plain C11: the definition of correct. */
#include <string.h>

#include "signed_sums.h"

void count_bits_portable(const struct sign_tile *signs, const struct packed_rows *rows,
                         int64_t *counts, ptrdiff_t counts_stride, int64_t *totals)
{
    for (ptrdiff_t r = 0; r < rows->n_rows; r++) {
        const uint64_t *row = rows->words + r * rows->stride;
        for (ptrdiff_t s = 0; s < signs->n_strips; s++) {
            const uint64_t *line = signs->lines + s * signs->strip_stride * LANES;
            int64_t *count = counts + r * counts_stride + s * LANES;
            for (ptrdiff_t w = 0; w < signs->n_words; w++, line += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    count[lane] += popcount64(line[lane] & row[w]);
        }
        if (totals)
            totals[r] += popcount_portable(row, signs->n_words);
    }
}

void count_units_portable(const struct sign_tile *signs, const int32_t *rows, ptrdiff_t row_stride,
                          ptrdiff_t n_rows, int64_t *counts, ptrdiff_t counts_stride)
{
    for (ptrdiff_t r = 0; r < n_rows; r++)
        for (ptrdiff_t s = 0; s < signs->n_strips; s++) {
            const uint64_t *line = signs->lines + s * signs->strip_stride * LANES;
            int64_t *count = counts + r * counts_stride + s * LANES;
            for (ptrdiff_t i = 0; i < signs->n_words * WORD_BITS; i++)
                for (int lane = 0; lane < LANES; lane++) {
                    uint64_t sign = line[i / WORD_BITS * LANES + lane] >> (i % WORD_BITS) & 1;
                    count[lane] += rows[r * row_stride + i] & -(int32_t)sign;
                }
        }
}

int raise_extremes_portable(const int64_t *counts, int64_t total, ptrdiff_t n_strips,
                            int64_t *maxima, int64_t *minima)
{
    int moved = 0;
    for (ptrdiff_t v = 0; v < n_strips * LANES; v++) {
        int64_t sum = 2 * counts[v] - total;
        moved |= (sum > maxima[v]) | (sum < minima[v]);
        maxima[v] = sum > maxima[v] ? sum : maxima[v];
        minima[v] = sum < minima[v] ? sum : minima[v];
    }
    return moved;
}

int64_t popcount_portable(const uint64_t *words, ptrdiff_t n_words)
{
    int64_t total = 0;
    for (ptrdiff_t w = 0; w < n_words; w++)
        total += popcount64(words[w]);
    return total;
}

int64_t sum_units_portable(const int32_t *units, ptrdiff_t n_words)
{
    int64_t total = 0;
    for (ptrdiff_t i = 0; i < n_words * WORD_BITS; i++)
        total += units[i];
    return total;
}

void fill_lines_portable(uint64_t base, int64_t first_vector, int64_t first_word,
                         ptrdiff_t n_words, uint64_t *lines)
{
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t counter = sign_counter(base, first_vector + lane, first_word);
        for (ptrdiff_t w = 0; w < n_words; w++, counter += SIGN_GOLDEN)
            lines[w * LANES + lane] = mix64(counter);
    }
}

/* Strip by strip, a few rows at a time: their counts stay in the first cache. */
void widen_by(count_bits_fn *count_bits, const struct sign_tile *signs,
              const struct packed_rows *rows, const struct widening *to)
{
    enum { ROWS = 16 };
    if (to->first) {
        memset(to->totals, 0, (size_t)rows->n_rows * sizeof *to->totals);
        memset(to->growth, 0, (size_t)rows->n_rows * sizeof *to->growth);
    }
    for (ptrdiff_t s = 0; s < signs->n_strips; s++) {
        const struct sign_tile strip = {signs->lines + s * signs->strip_stride * LANES,
                                        signs->strip_stride, 1, signs->n_words, NULL};
        for (ptrdiff_t r = 0; r < rows->n_rows; r += ROWS) {
            const struct packed_rows few = {rows->words + r * rows->stride, rows->stride,
                                            (ptrdiff_t)smaller(ROWS, rows->n_rows - r)};
            int64_t counts[ROWS][LANES] = {{0}};
            count_bits(&strip, &few, counts[0], LANES, to->first && s == 0 ? to->totals + r : NULL);
            for (ptrdiff_t i = r; i < r + few.n_rows; i++)
                for (int lane = 0; lane < LANES && to->totals[i] <= to->most; lane++)
                    to->growth[i] += widen_to(2 * counts[i - r][lane] - to->totals[i], to->extremes,
                                              s * LANES + lane);
        }
    }
}

static void widen_extremes(const struct sign_tile *signs, const struct packed_rows *rows,
                           const struct widening *to)
{
    widen_by(count_bits_portable, signs, rows, to);
}

const struct kernel kernel_portable = {
    "portable",              cpu_has_all,        count_bits_portable, count_units_portable,
    raise_extremes_portable, sum_units_portable, fill_lines_portable, widen_extremes,
    0, 14, 160,
};
