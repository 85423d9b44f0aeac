#include "widen.h"

#include <string.h>

/* Some rows, and the two ways to take the first of them in. */
struct block {
    const struct work *work;
    int sliced;
    struct row_tile rows;
    int64_t *totals, *growth; /* of each, after it was taken in */
};

/* Rows whose total is above `most` change nothing. */
static void widen_tile(const struct block *block, ptrdiff_t n_rows, int64_t most)
{
    RB_ALIGNED(LINE_BYTES) uint64_t lines[TILE_STRIPS * TILE_WORDS * LANES];
    const struct work *work = block->work;
    const struct packed_rows rows = {block->rows.rows, block->rows.stride, n_rows};
    const struct extremes all = extremes_of(work->state);
    for (ptrdiff_t strip = 0; strip < work->signs->n_strips; strip += TILE_STRIPS) {
        const ptrdiff_t n = (ptrdiff_t)smaller(TILE_STRIPS, work->signs->n_strips - strip);
        const struct sign_tile part = sign_tile(work->kernel, work->signs, strip, n, 0,
                                                block->rows.n_words, lines,
                                                work->chunk->workspace);
        const struct extremes extremes = extremes_from(&all, strip * LANES);
        const struct widening to = {strip == 0, most, &extremes, block->totals, block->growth};
        work->kernel->widen_extremes(&part, &rows, &to);
    }
}

static void widen(const struct block *block, ptrdiff_t n_rows)
{
    const struct sliced_memory *sliced = block->work->sliced;
    const struct extremes extremes = extremes_of(block->work->state);
    if (n_rows == 0)
        return;
    if (block->sliced)
        sliced->kernel->scan(sliced->plan, sliced->scratch, block->rows.rows, block->rows.stride,
                             (int)n_rows, &extremes, block->totals, block->growth);
    else
        widen_tile(block, n_rows, INT64_MAX);
}

/* How many rows that were taken in pass the gate before one that does not. */
static ptrdiff_t n_passing(struct guard_state state, const struct block *block, int may_be_real)
{
    ptrdiff_t r = 0;
    for (; r < block->rows.n_rows; r++) {
        state.complexity += block->growth[r];
        if (needs_price(&state, block->totals[r]) ||
            !passes(&state, may_be_real, state.complexity, block->totals[r]))
            break;
        state.n_rows++;
    }
    return r;
}

/* Answers them, and returns how many. */
static ptrdiff_t answer(const struct block *block, ptrdiff_t first)
{
    const struct work *work = block->work;
    const ptrdiff_t n = n_passing(*work->state, block, work->rows->may_be_real);
    int64_t complexity = work->state->complexity;
    for (ptrdiff_t r = 0; r < n; r++) {
        complexity += block->growth[r];
        if (work->trace)
            work->trace[first + r] = complexity;
    }
    if (work->totals)
        memcpy(work->totals + first, block->totals, (size_t)n * sizeof *work->totals);
    work->state->complexity = complexity;
    work->state->n_rows += n;
    return n;
}

/* The extremes, each of 8 n_strips maxima and minima, which follow them. */
static size_t extremes_bytes(const struct guard_state *state)
{
    return (size_t)(2 * state->n_strips * LANES) * sizeof *state->maxima;
}

static void keep_extremes(const struct work *work)
{
    memcpy(work->chunk->before, work->state->maxima, extremes_bytes(work->state));
}

/* Judges rows that were taken in after the extremes were kept.  If one does not pass, these go back,
 * and the rows before it are taken in again: that is rare, and a copy is cheap. */
static ptrdiff_t judge(const struct block *block, ptrdiff_t first)
{
    const struct work *work = block->work;
    const ptrdiff_t n_answered = answer(block, first);
    if (n_answered < block->rows.n_rows) {
        memcpy(work->state->maxima, work->chunk->before, extremes_bytes(work->state));
        widen(block, n_answered);
    }
    return n_answered;
}

ptrdiff_t rows_at_once(const struct sign_store *signs, const struct loss_rows *rows)
{
    const struct source *source = &rows->source;
    if (rows->packed || !signs->lines || signs->n_strips * signs->n_words > NEAR_LINES)
        return 0;
    const int64_t size = value_bytes(source->kind), n_bytes = signs->n_samples * size;
    if (source->stride != size || (source->labels && n_bytes > FETCHED_AHEAD))
        return 0;
    return n_bytes < FETCHED_AHEAD / 2 ? (ptrdiff_t)(FETCHED_AHEAD / 2 / n_bytes) : 1;
}

ptrdiff_t judge_tile(const struct work *work, ptrdiff_t first, ptrdiff_t last, int *stopped)
{
    int64_t totals[CHUNK_ROWS], growth[CHUNK_ROWS];
    struct block block = {.work = work, .totals = totals, .growth = growth}, part = block;
    struct chunk read = *work->chunk;
    const ptrdiff_t most = work->rows->in_place ? CHUNK_ROWS : read.tile_rows;
    const ptrdiff_t n_rows = (ptrdiff_t)smaller(most, last - first);
    const ptrdiff_t few = rows_at_once(work->signs, work->rows), step = few ? few : n_rows;
    ptrdiff_t n_read = 0, n;
    read.in_units = 0;
    keep_extremes(work);
    do {
        n = (ptrdiff_t)smaller(step, n_rows - n_read);
        part.rows = read_tile(work->kernel, work->signs, work->rows, first + n_read, n, 0, &read);
        widen(&part, part.rows.n_rows);
        if (n_read == 0)
            block.rows = part.rows;
        n_read += part.rows.n_rows;
        read.tile = (uint64_t *)work->chunk->tile + n_read * block.rows.stride;
        part.totals = totals + n_read;
        part.growth = growth + n_read;
    } while (part.rows.n_rows == n && n_read < n_rows);
    block.rows.n_rows = n_read;
    const ptrdiff_t n_answered = judge(&block, first);
    *stopped = n_answered < n_rows;
    return n_answered;
}

struct row_tile read_block(const struct work *work, ptrdiff_t first, ptrdiff_t n_rows)
{
    const struct loss_rows *rows = work->rows;
    const ptrdiff_t n_words = (ptrdiff_t)work->signs->n_words;
    const int64_t n_samples = work->signs->n_samples;
    uint64_t *word = rows->in_place ? (uint64_t *)(rows->packed + first * rows->packed_stride)
                                    : work->sliced->packed;
    struct row_tile tile = {.rows = word,
                            .stride = rows->in_place ? rows->packed_stride / 8 : n_words,
                            .n_words = n_words,
                            .n_samples = n_samples};
    for (; tile.n_rows < n_rows; tile.n_rows++, word += tile.stride)
        if ((rows->in_place ? check_last_word(word[n_words - 1], n_samples)
                            : read_words(rows, first + tile.n_rows, 0, n_samples, word)) !=
            n_samples)
            break;
    return tile;
}

ptrdiff_t judge_block(const struct work *work, ptrdiff_t first, ptrdiff_t last, int *stopped)
{
    const ptrdiff_t n_rows = (ptrdiff_t)smaller(work->sliced->kernel->block_rows, last - first);
    const struct block block = {.work = work,
                                .sliced = 1,
                                .rows = read_block(work, first, n_rows),
                                .totals = work->sliced->totals,
                                .growth = work->sliced->growth};
    keep_extremes(work);
    widen(&block, block.rows.n_rows);
    const ptrdiff_t n_answered = judge(&block, first);
    *stopped = n_answered < n_rows;
    return n_answered;
}

int judge_row(const struct work *work, int64_t *total, enum verdict *verdict)
{
    int64_t growth;
    struct guard_state *state = work->state;
    struct block block = {.work = work, .totals = total, .growth = &growth};
    work->chunk->in_units = 0;
    if (!can_widen(state) || state->n_rows >= state->priced_rows)
        return 0;
    block.rows = read_tile(work->kernel, work->signs, work->rows, 0, 1, 0, work->chunk);
    if (block.rows.n_rows == 0)
        return 0;
    widen_tile(&block, 1, state->priced);
    if (*total > state->priced)
        return 0;
    state->complexity += growth;
    *verdict = passes(state, work->rows->may_be_real, state->complexity, *total) ? ANSWERED
                                                                                 : WITHHELD;
    state->n_rows += *verdict == ANSWERED;
    return 1;
}
