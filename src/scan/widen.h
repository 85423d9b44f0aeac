/* Two short cuts for rows of bits: kernels that widen the extremes themselves, so that no count
 * goes through memory, and say how much each row adds to the complexity.
 *
 *     a tile of whole rows, of up to TILE_WORDS words
 *     a bit-sliced block: many rows, and vectors, without a popcount
 *
 * Both go on from true extremes of earlier rows, in units of one loss.
 */
#ifndef RADABOUND_WIDEN_H
#define RADABOUND_WIDEN_H

#include "kernels/sliced.h"
#include "state.h"

/* What bit-sliced blocks work with.  The plan is shared, the rest is one thread's. */
struct sliced_memory {
    const struct sliced_kernel *kernel;
    const struct sliced_plan *plan;
    void *scratch;
    int64_t *totals, *growth; /* block_rows each */
    uint64_t *packed;         /* block_rows x n_words, unless rows are read in place */
};

/* A call's rows, and what one thread judges them with. */
struct work {
    const struct kernel *kernel;
    const struct sign_store *signs;
    const struct loss_rows *rows;
    struct guard_state *state;
    struct chunk *chunk;
    const struct sliced_memory *sliced; /* NULL: no row goes in blocks */
    int64_t *totals, *trace; /* of each row that is answered, and the complexity then; or NULL */
};

/* Whether rows of bits may be taken in without being counted. */
RB_INLINE int can_widen(const struct guard_state *state)
{
    return state->started && !state->unit_shift;
}

/* Of values side by side: how many rows are packed before they are counted, so few that the next ones
 * are on their way from memory meanwhile; 0: that does not pay.  The signs are read again each time,
 * so they must be stored, and stay in the first cache, as must labels. */
ptrdiff_t rows_at_once(const struct sign_store *signs, const struct loss_rows *rows);

/* The rows from `first` on up to `last`, as many as a chunk has, or a block of them.  Returns how
 * many are answered; *stopped: the next one is not, or cannot be judged so, and has changed
 * nothing. */
ptrdiff_t judge_tile(const struct work *work, ptrdiff_t first, ptrdiff_t last, int *stopped);
ptrdiff_t judge_block(const struct work *work, ptrdiff_t first, ptrdiff_t last, int *stopped);

/* Whole rows as words for a block: where they are, or copied, as many as are of 0 and 1 alone. */
struct row_tile read_block(const struct work *work, ptrdiff_t first, ptrdiff_t n_rows);

/* Judges the first row, and says in `verdict` whether it is answered.  False: it cannot be judged
 * so, or needs a price; then nothing has changed. */
int judge_row(const struct work *work, int64_t *total, enum verdict *verdict);

#endif
