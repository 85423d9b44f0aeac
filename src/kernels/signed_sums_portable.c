/* Plain C11: the definition of correct. */
#include "signed_sums.h"

void count_bits_portable(const struct sign_tile *signs, const uint64_t *rows, ptrdiff_t row_stride,
                         ptrdiff_t n_rows, int64_t *counts, ptrdiff_t counts_stride,
                         int64_t *totals)
{
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        const uint64_t *row = rows + r * row_stride;
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

static int always(void) { return 1; }

const struct kernel kernel_portable = {
    "portable",              always,             count_bits_portable, count_units_portable,
    raise_extremes_portable, sum_units_portable, fill_lines_portable, NULL,
    0, 16,
};
