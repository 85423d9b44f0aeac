/* Whole blocks of rows through the bit-sliced kernel, with the verdict of judge_rows. */
#include <string.h>

#include "scan.h"
#include "kernels/sliced.h"

enum {
    SHORT_WORDS = 128, /* up to 8192 samples: a block of rows packed here takes 512 KB at most */
    LONG_VECTORS = 32, /* of longer rows at least this many pay */
    /* the first rows move extremes all the time, which is slow in a block */
    ROWS_BEFORE = 512,
};

ptrdiff_t block_rows(const struct sliced_memory *slices) { return slices->kernel->block_rows; }

int sliced_pays(const struct kernel *kernel, const struct sign_store *signs,
               const struct loss_rows *rows, ptrdiff_t block_rows, ptrdiff_t n_rows)
{
    const int is_short = signs->n_words <= SHORT_WORDS;
    return signs->lines && n_rows >= 4 * block_rows &&
           (is_short || rows_in_place(rows, signs->n_words)) &&
           signs->n_vectors >= kernel->block_vectors &&
           (is_short || signs->n_vectors >= LONG_VECTORS);
}

/* The block's rows as words: where they are, or copied.  NULL: a row is not of 0 and 1 alone. */
static const uint64_t *block_words(const struct sign_store *signs, const struct loss_rows *rows,
                                   ptrdiff_t first, const struct sliced_memory *slices,
                                   ptrdiff_t *stride)
{
    const ptrdiff_t n_words = signs->n_words;
    const int whole_words = rows_in_place(rows, n_words);
    *stride = whole_words ? rows->packed_stride / 8 : n_words;
    uint64_t *words = whole_words ? (uint64_t *)(rows->packed + first * rows->packed_stride)
                                  : slices->packed;
    for (ptrdiff_t r = 0; r < block_rows(slices); r++) {
        uint64_t *row = words + r * *stride;
        const int64_t read = whole_words
                                 ? check_last_word(row[n_words - 1], signs->n_samples)
                                 : read_words(rows, first + r, 0, signs->n_samples, row);
        if (read != signs->n_samples)
            return NULL;
    }
    return words;
}

/* Whether every row of the block is answered, given what each adds to the complexity. */
static int all_answered(const struct guard_state *state, int may_be_real,
                        const struct sliced_memory *slices)
{
    int64_t complexity = state->complexity;
    for (ptrdiff_t r = 0; r < block_rows(slices); r++) {
        complexity += slices->growth[r];
        if (slices->totals[r] > state->priced ||
            !passes(state, may_be_real, complexity, slices->totals[r]))
            return 0;
    }
    return 1;
}

int judge_sliced(const struct sign_store *signs, const struct loss_rows *rows, ptrdiff_t first,
                struct guard_state *state, const struct sliced_memory *slices, int64_t *totals_out,
                int64_t *trace_out)
{
    const ptrdiff_t n = block_rows(slices);
    const size_t extremes_bytes = (size_t)(2 * state->n_strips * LANES) * sizeof(int64_t);
    ptrdiff_t stride;
    if (state->unit_shift || state->n_rows < ROWS_BEFORE || state->n_rows + n > state->priced_rows)
        return 0;
    const uint64_t *words = block_words(signs, rows, first, slices, &stride);
    if (words == NULL)
        return 0;
    memcpy(slices->before, state->maxima, extremes_bytes); /* the minima follow the maxima */
    slices->kernel->scan(slices->plan, slices->scratch, words, stride, (int)n, state->maxima,
                         state->minima, state->half_range, slices->growth, slices->totals);
    if (!all_answered(state, may_be_real(rows), slices)) {
        memcpy(state->maxima, slices->before, extremes_bytes);
        return 0;
    }
    for (ptrdiff_t r = 0; r < n; r++) {
        state->complexity += slices->growth[r];
        if (totals_out)
            totals_out[r] = slices->totals[r];
        if (trace_out)
            trace_out[r] = state->complexity;
    }
    state->n_rows += n;
    return 1;
}
