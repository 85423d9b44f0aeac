#include "scan.h"

enum {
    SHORT_WORDS = 128, /* up to 8192 samples: a block of rows packed here takes 512 KB at most */
    LONG_PERCENT = 10, /* so much more time a block of longer rows takes: sums are kept in between */
    WAIT_PERCENT = 25, /* and one of rows that would not wait for memory if they were counted at once */
    FAR_BYTES = 8000000, /* values of a call: more of them are taken to come from memory */
    ROWS_BEFORE = 512, /* which move extremes all the time, and that is slow in a block */
    MOST_PLANNED = 6 << 20, /* signs that are generated: their plan takes a third of a byte each */
};

/* The time of a block, over that of its rows one after the other. */
static int64_t block_percent(const struct kernel *kernel, const struct sign_store *signs)
{
    return kernel->block_percent + kernel->block_once / (signs->n_strips * LANES) +
           (signs->n_words > SHORT_WORDS ? LONG_PERCENT : 0);
}

/* How many rows are faster as a block, full or not, than one after the other; at most a block has,
 * or 0: none are. */
static ptrdiff_t least_block_of(const struct kernel *kernel, const struct sliced_kernel *sliced,
                                const struct sign_store *signs)
{
    const int64_t percent = block_percent(kernel, signs);
    return percent < 100 ? (ptrdiff_t)(sliced->block_rows * percent / 100) : 0;
}

ptrdiff_t least_block(const struct work *work)
{
    return work->sliced ? least_block_of(work->kernel, work->sliced->kernel, work->signs) : 0;
}

int sliced_pays(const struct kernel *kernel, const struct sliced_kernel *sliced,
                const struct sign_store *signs, const struct loss_rows *rows, ptrdiff_t n_rows)
{
    const ptrdiff_t least = least_block_of(kernel, sliced, signs);
    if (rows_at_once(signs, rows) && block_percent(kernel, signs) + WAIT_PERCENT >= 100 &&
        n_rows > FAR_BYTES / (signs->n_samples * value_bytes(rows->source.kind)))
        return 0;
    return least > 0 && n_rows >= least && (rows->in_place || signs->n_words <= SHORT_WORDS) &&
           (signs->lines || signs->n_samples <= MOST_PLANNED / signs->n_vectors);
}

ptrdiff_t scan_rows(const struct work *work, ptrdiff_t first, ptrdiff_t last,
                    enum verdict *verdict)
{
    const struct guard_state *state = work->state;
    const struct sliced_memory *sliced = work->sliced;
    const ptrdiff_t least = least_block(work);
    for (ptrdiff_t row = first; row < last;) {
        const int64_t n_before = sliced ? ROWS_BEFORE - state->n_rows : 0;
        ptrdiff_t n_counted = last - row; /* at most */
        int stopped;
        if (sliced && can_widen(state) && n_before <= 0 && last - row >= least) {
            row += judge_block(work, row, last, &stopped);
            if (!stopped)
                continue;
            n_counted = 1;
        } else if (work->signs->n_words <= TILE_WORDS && !state->unit_shift) {
            const ptrdiff_t end = n_before > 0 ? (ptrdiff_t)smaller(last, row + n_before) : last;
            row += state->started ? judge_tile(work, row, end, &stopped) : 0;
            if (state->started && !stopped)
                continue;
            n_counted = 1;
        }
        count_any_rows(work->kernel, work->signs, work->rows, row, n_counted, work->chunk);
        *verdict = UNREADABLE;
        if (work->chunk->n_rows == 0)
            return row;
        row += judge_rows(work->kernel, work->state, work->chunk,
                          work->totals ? work->totals + row : NULL,
                          work->trace ? work->trace + row : NULL, verdict);
        if (*verdict != ANSWERED)
            return row;
    }
    *verdict = ANSWERED;
    return last;
}
