/* Tiles: what of the signs and of some rows is worked on at once, so that it stays in the cache. */
#ifndef RADABOUND_TILES_H
#define RADABOUND_TILES_H

#include "scan.h"

RB_INLINE ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* The lines of some strips and words: stored ones in place, others generated into `buffer`. */
RB_INLINE struct sign_tile sign_tile(const struct kernel *kernel, const struct sign_store *signs,
                                     ptrdiff_t strip, ptrdiff_t n_strips, ptrdiff_t word,
                                     ptrdiff_t n_words, uint64_t *buffer, void *workspace)
{
    struct sign_tile tile = {NULL, signs->n_words, n_strips, n_words, workspace};
    if (signs->lines) {
        tile.lines = signs->lines + (strip * signs->n_words + word) * LANES;
        return tile;
    }
    for (ptrdiff_t s = 0; s < n_strips; s++)
        kernel->fill_lines(signs->base, signs->first_vector + (strip + s) * LANES,
                           signs->first_word + word, n_words, buffer + s * n_words * LANES);
    tile.lines = buffer;
    tile.strip_stride = n_words;
    return tile;
}

/* Some rows' losses at some words: where they lie, or packed into a chunk's tile. */
struct row_tile {
    const void *rows; /* uint64 words, or int32 units */
    ptrdiff_t stride; /* of those, from row to row */
    ptrdiff_t word, n_words;
    int64_t n_samples;
};

RB_INLINE struct row_tile row_tile(const struct sign_store *signs, const struct loss_rows *rows,
                                   ptrdiff_t first, ptrdiff_t word, const struct chunk *chunk)
{
    struct row_tile tile = {.word = word};
    tile.n_words = smaller(chunk->in_units ? UNIT_TILE_WORDS : TILE_WORDS, signs->n_words - word);
    tile.n_samples =
        smaller(tile.n_words * WORD_BITS, signs->n_samples - (int64_t)word * WORD_BITS);
    if (rows_in_place(rows, signs->n_words)) {
        tile.rows = (const uint64_t *)(rows->packed + first * rows->packed_stride) + word;
        tile.stride = rows->packed_stride / 8;
    } else {
        tile.rows = chunk->tile;
        tile.stride = tile.n_words * (chunk->in_units ? WORD_BITS : 1);
    }
    return tile;
}

/* Rows that have no bit set past the samples, of rows in place; returns how many. */
RB_INLINE ptrdiff_t check_rows(const struct row_tile *tile, ptrdiff_t n_rows)
{
    if (tile->n_samples % WORD_BITS == 0)
        return n_rows;
    const uint64_t *last = (const uint64_t *)tile->rows + tile->n_words - 1;
    for (ptrdiff_t r = 0; r < n_rows; r++)
        if (check_last_word(last[r * tile->stride], tile->n_samples) != tile->n_samples)
            return r;
    return n_rows;
}

#endif
