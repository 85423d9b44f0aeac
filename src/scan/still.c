/* Rows of a still state, of which few move an extreme any more.
 *
 * The complexity changes only where an extreme moves.  So the kernel compares its sums with the
 * extremes while they are still in registers, all rows that move none are answered at once, and
 * the others are counted again and judged in their turn.
 */
#include <string.h>

#include "tiles.h"

int is_few(ptrdiff_t n_moved, ptrdiff_t n_rows) { return n_moved * 16 <= n_rows; }

int is_still(const struct kernel *kernel, const struct sign_store *signs,
               const struct guard_state *state)
{
    return kernel->find_moves && state->started && state->still && !state->unit_shift &&
           state->complexity <= state->budget && signs->n_words <= TILE_WORDS;
}

static void find_moves(const struct kernel *kernel, const struct sign_store *signs,
                       const struct row_tile *tile, ptrdiff_t n_rows, const struct guard_state *state,
                       void *workspace, int64_t *totals, uint8_t *moved)
{
    RB_ALIGNED(LINE_BYTES) uint64_t lines[TILE_STRIPS * TILE_WORDS * LANES];
    for (ptrdiff_t strip = 0; strip < signs->n_strips; strip += TILE_STRIPS) {
        const struct sign_tile part =
            sign_tile(kernel, signs, strip, smaller(TILE_STRIPS, signs->n_strips - strip), 0,
                      tile->n_words, lines, workspace);
        kernel->find_moves(&part, tile->rows, tile->stride, n_rows, strip == 0, totals,
                           state->maxima + strip * LANES, state->minima + strip * LANES, moved);
    }
}

int pass_row(const struct kernel *kernel, const struct sign_store *signs, const struct loss_rows *rows,
             struct guard_state *state, struct chunk *chunk, int64_t *total)
{
    uint8_t moved = 0;
    chunk->in_units = 0;
    if (!is_still(kernel, signs, state))
        return 0;
    const struct row_tile tile = row_tile(signs, rows, 0, 0, chunk);
    const int is_readable =
        rows_in_place(rows, signs->n_words)
            ? check_rows(&tile, 1) == 1
            : read_words(rows, 0, 0, tile.n_samples, chunk->tile) == tile.n_samples;
    if (!is_readable)
        return 0;
    find_moves(kernel, signs, &tile, 1, state, NULL, total, &moved);
    if (moved || *total > state->priced || state->n_rows >= state->priced_rows)
        return 0;
    state->n_rows++;
    return 1;
}

/* Answers rows that move no extreme: the complexity stays what it is. */
static void pass_still(struct guard_state *state, const int64_t *totals, ptrdiff_t n_rows,
                       int64_t *totals_out, int64_t *trace_out)
{
    state->n_rows += n_rows;
    if (totals_out)
        memcpy(totals_out, totals, (size_t)n_rows * sizeof *totals);
    for (ptrdiff_t r = 0; trace_out && r < n_rows; r++)
        trace_out[r] = state->complexity;
}

ptrdiff_t pass_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows,
                    struct guard_state *state, struct chunk *chunk, int64_t *totals_out,
                    int64_t *trace_out, enum verdict *verdict)
{
    int64_t totals[CHUNK_ROWS];
    uint8_t moved[CHUNK_ROWS] = {0};
    ptrdiff_t n_judged = 0;
    chunk->in_units = 0;
    n_rows = smaller(n_rows, CHUNK_ROWS);
    const struct row_tile tile = row_tile(signs, rows, first, 0, chunk);
    find_moves(kernel, signs, &tile, n_rows, state, chunk->workspace, totals, moved);
    const ptrdiff_t readable = check_rows(&tile, n_rows);
    for (ptrdiff_t r = 0; r < readable; r++) {
        const ptrdiff_t still = r;
        const int64_t priced = state->complexity > state->budget ? -1 : state->priced;
        const int64_t n_priced = state->priced_rows - state->n_rows;
        while (r < readable && !moved[r] && totals[r] <= priced && r - still < n_priced)
            r++;
        pass_still(state, totals + still, r - still, totals_out ? totals_out + still : NULL,
                   trace_out ? trace_out + still : NULL);
        if (r == readable)
            break;
        n_judged++;
        count_rows(kernel, signs, rows, first + r, 1, 0, chunk);
        judge_rows(kernel, state, chunk, 0, totals_out ? totals_out + r : NULL,
                   trace_out ? trace_out + r : NULL, verdict);
        if (*verdict != ANSWERED)
            return r;
    }
    state->still = is_few(n_judged, n_rows);
    *verdict = readable == n_rows ? ANSWERED : UNREADABLE;
    chunk->bad_sample = signs->n_samples; /* if any */
    return readable;
}
