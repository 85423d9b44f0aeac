#include "counts.h"

#include <string.h>

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
