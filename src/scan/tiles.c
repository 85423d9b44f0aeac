#include "tiles.h"

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
