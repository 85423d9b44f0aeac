#include "scan.h"

#include <string.h>

#include "tiles.h"

/* ---- counting ---------------------------------------------------------------------------- */

/* The part of `source` that starts at a word's first sample, as a source of its own. */
static void part_of(const struct source *source, ptrdiff_t word, int64_t n_samples,
                    struct source *part)
{
    static const ptrdiff_t label_bytes[N_VALUE_KINDS] = {
        [VALUE_U8] = 1,  [VALUE_U16] = 2, [VALUE_U32] = 4, [VALUE_U64] = 8,
        [VALUE_F16] = 2, [VALUE_F32] = 4, [VALUE_F64] = 8,
    };
    *part = *source;
    part->values += word * WORD_BITS * source->stride;
    if (source->labels)
        part->labels += word * WORD_BITS * label_bytes[source->kind];
    if (source->label_bits)
        part->label_bits += word;
    part->n_samples = n_samples;
}

int rows_in_place(const struct loss_rows *rows, ptrdiff_t n_words)
{
    return rows->packed && (uintptr_t)rows->packed % 8 == 0 && rows->packed_stride % 8 == 0 &&
           rows->packed_bytes == 8 * n_words;
}

/* Packed bytes to words: whole ones, the rest of the last filled up with zeros. */
static void copy_packed(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word,
                        ptrdiff_t n_words, uint64_t *out)
{
    const ptrdiff_t n_bytes = smaller(n_words * 8, rows->packed_bytes - word * 8);
    out[n_words - 1] = 0;
    memcpy(out, rows->packed + row * rows->packed_stride + word * 8, (size_t)n_bytes);
}

int64_t read_words(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word, int64_t n_samples,
                   uint64_t *out)
{
    if (!rows->packed) {
        struct source part;
        part_of(&rows->source, word, n_samples, &part);
        return rows->packer->pack_row(&part, row, out);
    }
    const ptrdiff_t n_words = (ptrdiff_t)((n_samples + WORD_BITS - 1) / WORD_BITS);
    copy_packed(rows, row, word, n_words, out);
    return check_last_word(out[n_words - 1], n_samples);
}

/* Packs rows of one tile, or turns them into units and adds those up, until one cannot be read;
 * returns how many. */
static ptrdiff_t read_rows(const struct kernel *kernel, const struct loss_rows *rows, ptrdiff_t first,
                           ptrdiff_t n_rows, const struct row_tile *tile, struct chunk *chunk)
{
    struct source part;
    if (chunk->in_units)
        part_of(&rows->source, tile->word, tile->n_samples, &part);
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        int64_t read;
        if (chunk->in_units) {
            int32_t *units = (int32_t *)chunk->tile + r * tile->stride;
            read = rows->packer->units_row(&part, first + r, units);
            if (read == tile->n_samples)
                chunk->totals[r] += kernel->sum_units(units, tile->n_words);
        } else {
            read = read_words(rows, first + r, tile->word, tile->n_samples,
                              (uint64_t *)chunk->tile + r * tile->stride);
        }
        if (read != tile->n_samples) {
            chunk->bad_sample = tile->word * WORD_BITS + read;
            return r;
        }
    }
    return n_rows;
}

void count_rows(const struct kernel *kernel, const struct sign_store *signs,
                const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows, int in_units,
                struct chunk *chunk)
{
    RB_ALIGNED(LINE_BYTES) uint64_t lines[TILE_STRIPS * TILE_WORDS * LANES];
    const ptrdiff_t stride = signs->n_strips * LANES;
    const int in_place = rows_in_place(rows, signs->n_words);
    n_rows = smaller(n_rows, smaller(chunk->capacity, in_units ? UNIT_TILE_ROWS : CHUNK_ROWS));
    chunk->in_units = in_units;
    chunk->may_be_real = may_be_real(rows);
    chunk->bad_sample = -1;
    memset(chunk->totals, 0, (size_t)n_rows * sizeof *chunk->totals);

    for (ptrdiff_t word = 0; word < signs->n_words && n_rows > 0;) {
        const struct row_tile tile = row_tile(signs, rows, first, word, chunk);
        n_rows = in_place ? check_rows(&tile, n_rows)
                          : read_rows(kernel, rows, first, n_rows, &tile, chunk);
        if (word == 0) /* of the rows that can be read: often the first one cannot */
            memset(chunk->counts, 0, (size_t)(n_rows * stride) * sizeof *chunk->counts);
        ptrdiff_t strip = 0;
        do { /* once where there are no strips, for the totals */
            const ptrdiff_t n_strips = smaller(TILE_STRIPS, signs->n_strips - strip);
            const struct sign_tile part =
                sign_tile(kernel, signs, strip, n_strips, word, tile.n_words, lines,
                          chunk->workspace);
            int64_t *counts = chunk->counts + strip * LANES;
            if (in_units)
                kernel->count_units(&part, tile.rows, tile.stride, n_rows, counts, stride);
            else
                kernel->count_bits(&part, tile.rows, tile.stride, n_rows, counts, stride,
                                   strip == 0 ? chunk->totals : NULL);
            strip += TILE_STRIPS;
        } while (strip < signs->n_strips);
        word += tile.n_words;
    }
    chunk->n_rows = n_rows;
}

int may_be_real(const struct loss_rows *rows)
{
    const struct source *source = &rows->source;
    return !rows->packed && !source->labels && !source->label_bits && source->kind >= VALUE_F16;
}

int units_fit(const struct sign_store *signs)
{
    return signs->n_vectors <= ((((int64_t)1 << 38) - 1) / signs->n_samples);
}

void count_any_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows,
                    struct chunk *chunk)
{
    count_rows(kernel, signs, rows, first, n_rows, 0, chunk);
    if (chunk->n_rows > 0 || !may_be_real(rows))
        return;
    if (units_fit(signs))
        count_rows(kernel, signs, rows, first, n_rows, 1, chunk);
    else
        chunk->bad_sample = TOO_LARGE;
}

/* ---- judging ----------------------------------------------------------------------------- */

static int64_t complexity_of(const struct guard_state *state)
{
    int64_t sum = 0;
    for (int64_t v = 0; v < state->n_vectors; v++) {
        const int64_t high = state->maxima[v];
        sum += state->half_range ? high - state->minima[v] : high > 0 ? high : 0;
    }
    return sum;
}

static void start(struct guard_state *state)
{
    for (int64_t v = 0; v < state->n_strips * LANES; v++) {
        state->maxima[v] = INT64_MIN;
        state->minima[v] = INT64_MAX;
    }
    state->started = 1;
}

void rescale_state(struct guard_state *state)
{
    state->unit_shift = UNIT_SHIFT;
    if (!state->started)
        return;
    for (int64_t v = 0; v < state->n_strips * LANES; v++) {
        state->maxima[v] *= (int64_t)1 << UNIT_SHIFT;
        state->minima[v] *= (int64_t)1 << UNIT_SHIFT;
    }
    state->complexity = complexity_of(state);
}

void merge_state(struct guard_state *state, const struct guard_state *other)
{
    if (!other->started)
        return;
    if (!state->started)
        start(state);
    for (int64_t v = 0; v < state->n_strips * LANES; v++) {
        if (other->maxima[v] > state->maxima[v])
            state->maxima[v] = other->maxima[v];
        if (other->minima[v] < state->minima[v])
            state->minima[v] = other->minima[v];
    }
    state->complexity = complexity_of(state);
}

static void bring_to_units(struct chunk *chunk, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < chunk->n_rows * stride; i++)
        chunk->counts[i] <<= UNIT_SHIFT;
    for (ptrdiff_t r = 0; r < chunk->n_rows; r++)
        chunk->totals[r] <<= UNIT_SHIFT;
    chunk->in_units = 1;
}

int passes(const struct guard_state *state, int may_be_real, int64_t complexity, int64_t total)
{
    const struct free_range *range = may_be_real ? &state->real : &state->declared;
    return complexity <= state->budget || total <= range->low || total >= range->high;
}

ptrdiff_t judge_rows(const struct kernel *kernel, struct guard_state *state, struct chunk *chunk,
                     ptrdiff_t from, int64_t *totals_out, int64_t *trace_out,
                     enum verdict *verdict)
{
    const ptrdiff_t stride = state->n_strips * LANES;
    ptrdiff_t n_moved = 0;
    state->still = 1;
    *verdict = NEEDS_UNITS;
    if (chunk->in_units && !state->unit_shift)
        return from;
    if (state->unit_shift && !chunk->in_units)
        bring_to_units(chunk, stride);
    for (ptrdiff_t r = from; r < chunk->n_rows; r++) {
        const int64_t total = chunk->totals[r];
        *verdict = NEEDS_PRICE;
        state->wanted = total > state->priced ? total : state->priced;
        if (total > state->priced || state->n_rows >= state->priced_rows)
            return r;
        if (!state->started)
            start(state);
        if (kernel->raise_extremes(chunk->counts + r * stride, total, state->n_strips,
                                   state->maxima, state->minima)) {
            state->complexity = complexity_of(state);
            state->still = is_few(++n_moved, chunk->n_rows);
        }
        *verdict = WITHHELD;
        if (!passes(state, chunk->may_be_real, state->complexity, total))
            return r;
        state->n_rows++;
        if (totals_out)
            totals_out[r] = total;
        if (trace_out)
            trace_out[r] = state->complexity;
    }
    *verdict = ANSWERED;
    return chunk->n_rows;
}

ptrdiff_t scan_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t last, struct guard_state *state,
                    struct chunk *chunk, const struct sliced_memory *slices, int64_t *totals_out,
                    int64_t *trace_out, enum verdict *verdict)
{
    *verdict = ANSWERED;
    const int in_place = rows_in_place(rows, signs->n_words);
    ptrdiff_t by_rows = first; /* up to here rows go one by one */
    for (ptrdiff_t row = first; row < last;) {
        int64_t *totals = totals_out ? totals_out + row : NULL;
        int64_t *trace = trace_out ? trace_out + row : NULL;
        if (slices && row >= by_rows) {
            const ptrdiff_t end = row + block_rows(slices);
            if (end <= last &&
                judge_sliced(signs, rows, row, state, slices, totals, trace)) {
                row = end;
                continue;
            }
            by_rows = end;
        }
        if (in_place && is_still(kernel, signs, state)) {
            row += pass_rows(kernel, signs, rows, row, last - row, state, chunk, totals, trace,
                             verdict);
        } else {
            count_any_rows(kernel, signs, rows, row, last - row, chunk);
            *verdict = UNREADABLE;
            if (chunk->n_rows == 0)
                return row;
            row += judge_rows(kernel, state, chunk, 0, totals, trace, verdict);
        }
        if (*verdict != ANSWERED)
            return row;
    }
    return last;
}
