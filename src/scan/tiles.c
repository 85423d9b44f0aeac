#include "tiles.h"

#include <string.h>

/* The values from a word's first sample on, as a source of their own. */
static void source_from(const struct loss_rows *rows, ptrdiff_t word, int64_t n_samples,
                        struct source *part)
{
    *part = rows->source;
    part->values += word * WORD_BITS * part->stride;
    if (part->labels)
        part->labels += word * WORD_BITS * value_bytes(part->kind);
    if (part->label_bits)
        part->label_bits += word;
    part->n_samples = n_samples;
}

int64_t read_words(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word, int64_t n_samples,
                   uint64_t *out)
{
    if (!rows->packed) {
        struct source part;
        const int is_whole = n_samples == rows->source.n_samples;
        if (!is_whole)
            source_from(rows, word, n_samples, &part);
        return rows->packer->pack_row(is_whole ? &rows->source : &part, row, out);
    }
    const ptrdiff_t n_words = (ptrdiff_t)((n_samples + WORD_BITS - 1) / WORD_BITS);
    memcpy(out, rows->packed + row * rows->packed_stride + word * 8, (size_t)n_words * 8);
    return check_last_word(out[n_words - 1], n_samples);
}

ptrdiff_t fill_tile(const struct kernel *kernel, const struct loss_rows *rows, ptrdiff_t first,
                    ptrdiff_t n_rows, const struct row_tile *tile, struct chunk *chunk)
{
    struct source part;
    if (chunk->in_units)
        source_from(rows, tile->word, tile->n_samples, &part);
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
    const ptrdiff_t stride = (ptrdiff_t)signs->n_strips * LANES;
    ptrdiff_t most = in_units ? UNIT_TILE_ROWS : CHUNK_ROWS;
    if (!rows->in_place)
        most = (ptrdiff_t)smaller(most, chunk->tile_rows);
    n_rows = (ptrdiff_t)smaller(n_rows, smaller(chunk->capacity, most));
    chunk->in_units = in_units;
    chunk->may_be_real = rows->may_be_real;
    chunk->bad_sample = -1;
    memset(chunk->totals, 0, (size_t)n_rows * sizeof *chunk->totals);

    for (ptrdiff_t word = 0; word < signs->n_words && n_rows > 0;) {
        const struct row_tile tile = read_tile(kernel, signs, rows, first, n_rows, word, chunk);
        n_rows = tile.n_rows;
        if (word == 0) /* of the rows that can be read: often the first one cannot */
            memset(chunk->counts, 0, (size_t)(n_rows * stride) * sizeof *chunk->counts);
        ptrdiff_t strip = 0;
        do { /* once where there are no strips, for the totals */
            const ptrdiff_t n_strips = (ptrdiff_t)smaller(TILE_STRIPS, signs->n_strips - strip);
            const struct sign_tile part =
                sign_tile(kernel, signs, strip, n_strips, word, tile.n_words, lines,
                          chunk->workspace);
            int64_t *counts = chunk->counts + strip * LANES;
            const struct packed_rows bits = {tile.rows, tile.stride, n_rows};
            if (in_units)
                kernel->count_units(&part, tile.rows, tile.stride, n_rows, counts, stride);
            else
                kernel->count_bits(&part, &bits, counts, stride, strip ? NULL : chunk->totals);
            strip += TILE_STRIPS;
        } while (strip < signs->n_strips);
        word += tile.n_words;
    }
    chunk->n_rows = n_rows;
}

void count_any_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows,
                    struct chunk *chunk)
{
    count_rows(kernel, signs, rows, first, n_rows, 0, chunk);
    if (chunk->n_rows > 0 || !rows->may_be_real)
        return;
    if (units_fit(signs))
        count_rows(kernel, signs, rows, first, n_rows, 1, chunk);
    else
        chunk->bad_sample = TOO_LARGE;
}

int units_fit(const struct sign_store *signs)
{
    return signs->n_vectors <= ((((int64_t)1 << 38) - 1) / signs->n_samples);
}
