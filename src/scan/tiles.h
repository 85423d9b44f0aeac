/* Rows of losses, and the signs, tile by tile: what is worked on at once stays in the cache.
 *
 * The words of size, from the smallest:
 *
 *     sample, vector   one of n_samples losses of a row; one of n_vectors rows of signs
 *     line             a word (64 samples) of 8 vectors, 64 bytes; bit-sliced: a sample of a block
 *     strip            8 vectors: their lines one after the other
 *     square           rows by strips whose sums a kernel keeps in registers
 *     tile             rows, or strips, by words: what is in the cache while it is counted
 *     chunk            up to CHUNK_ROWS rows that are counted, or widen the extremes, in one go
 *     block            rows of one bit-sliced go: as many as a register has bits
 *     segment          rows that one thread judges before they are merged in order
 *     slab             rows between two looks at Ctrl-C
 */
#ifndef RADABOUND_TILES_H
#define RADABOUND_TILES_H

#include "kernels/packing.h"
#include "kernels/signed_sums.h"

enum {
    UNIT_SHIFT = 24,
    TILE_WORDS = 64,     /* 4096 samples: four strips of signs fill 16 KB of the first cache */
    NEAR_LINES = 4 * TILE_WORDS, /* of signs, those 16 KB */
    TILE_STRIPS = 8,     /* eight share the sums that real-valued losses are looked up in */
    CHUNK_ROWS = 512,    /* rows that share a sign tile */
    UNIT_TILE_WORDS = 6, /* a tile of real-valued rows, 32 times as wide, is small enough for the */
    UNIT_TILE_ROWS = 8,  /* values of the next one to be fetched while it is counted */
    ROW_TILE_WORDS = UNIT_TILE_WORDS * WORD_BITS / 2, /* a tile of one row in units; in bits fewer */
};

RB_ASSERT_THAT(a_workspace_has_room_for_a_tile, (int)TILE_WORDS <= (int)WORKSPACE_WORDS);
RB_ASSERT_THAT(a_row_of_bits_fits_too, TILE_WORDS <= ROW_TILE_WORDS);

/* Rows to judge: packed already, or values to be packed on the way. */
struct loss_rows {
    const char *packed;      /* words, at any address; NULL: pack `source` */
    ptrdiff_t packed_stride; /* bytes from row to row */
    int in_place;            /* whether all the words are aligned, and kernels read them there */
    int may_be_real;         /* whether values may be other than 0 and 1: floats, no predictions */
    struct source source;
    const struct packer *packer;
};

RB_INLINE void packed_as_rows(struct loss_rows *rows, const void *packed, ptrdiff_t stride)
{
    rows->packed = packed;
    rows->packed_stride = stride;
    rows->in_place = ((uintptr_t)packed | (uintptr_t)stride) % 8 == 0;
    rows->may_be_real = 0;
}

/* Of rows->source, which is there. */
RB_INLINE void values_as_rows(struct loss_rows *rows, const struct packer *packer)
{
    const struct source *source = &rows->source;
    rows->packed = NULL;
    rows->in_place = 0;
    rows->may_be_real = source->kind >= VALUE_F16 && !source->labels && !source->label_bits;
    rows->packer = packer;
}

/* One row's words from `word` on, of n_samples samples, into out.  Returns n_samples, or the
 * first sample that is not 0 or 1, or past the end. */
int64_t read_words(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word, int64_t n_samples,
                   uint64_t *out);

/* n_samples, or n_samples + 1 if a bit stands past them in the last of their words. */
RB_INLINE int64_t check_last_word(uint64_t last, int64_t n_samples)
{
    const int used = (int)(n_samples % WORD_BITS);
    return used && last >> used ? n_samples + 1 : n_samples;
}

/* ---- the signs ----------------------------------------------------------------------------- */

struct sign_store {
    const uint64_t *lines; /* [strip][n_words][lane]; NULL: generated tile by tile */
    uint64_t base;
    int64_t first_vector, first_word;
    int64_t n_vectors, n_strips, n_words, n_samples;
};

/* What some rows are worked on with, and what they were counted to; the memory is the caller's. */
struct chunk {
    int64_t *counts; /* capacity x 8 n_strips */
    int64_t *totals; /* capacity: the sum of each row's losses */
    int64_t *before; /* 2 x 8 n_strips: extremes to go back to */
    void *workspace; /* of the kernel, or NULL */
    void *tile;      /* tile_rows x TILE_WORDS words, or as many rows in units, at most UNIT_TILE_ROWS,
                      * x 64 UNIT_TILE_WORDS int32; unused for rows in place */
    ptrdiff_t capacity, tile_rows;
    ptrdiff_t n_rows; /* counted */
    int in_units;
    int may_be_real;    /* of the rows */
    int64_t bad_sample; /* in the row after the n_rows good ones; -1: none; or TOO_LARGE */
};

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

/* ---- tiles of rows -------------------------------------------------------------------------- */

/* Some rows' losses at some words: where they lie, or read into a chunk's tile. */
struct row_tile {
    const void *rows; /* uint64 words, or int32 units */
    ptrdiff_t stride; /* of those, from row to row */
    ptrdiff_t n_rows; /* that can be read; chunk->bad_sample is in the one after them */
    ptrdiff_t word, n_words;
    int64_t n_samples;
};

/* Of rows in place: how many there are before one with a bit past its samples. */
RB_INLINE ptrdiff_t whole_rows(const struct row_tile *tile, ptrdiff_t n_rows)
{
    if (tile->n_samples % WORD_BITS == 0)
        return n_rows;
    const uint64_t *last = (const uint64_t *)tile->rows + tile->n_words - 1;
    for (ptrdiff_t r = 0; r < n_rows; r++)
        if (check_last_word(last[r * tile->stride], tile->n_samples) != tile->n_samples)
            return r;
    return n_rows;
}

/* Reads the rows from `first` on into chunk->tile; returns how many there are before one that
 * cannot be read. */
ptrdiff_t fill_tile(const struct kernel *kernel, const struct loss_rows *rows, ptrdiff_t first,
                    ptrdiff_t n_rows, const struct row_tile *tile, struct chunk *chunk);

/* The rows from `first` on at the words from `word` on, in units if the chunk is; then their totals
 * are added up. */
RB_INLINE struct row_tile read_tile(const struct kernel *kernel, const struct sign_store *signs,
                                    const struct loss_rows *rows, ptrdiff_t first,
                                    ptrdiff_t n_rows, ptrdiff_t word, struct chunk *chunk)
{
    struct row_tile tile = {.word = word};
    tile.n_words =
        (ptrdiff_t)smaller(chunk->in_units ? UNIT_TILE_WORDS : TILE_WORDS, signs->n_words - word);
    tile.n_samples =
        smaller(tile.n_words * WORD_BITS, signs->n_samples - (int64_t)word * WORD_BITS);
    if (rows->in_place) {
        tile.rows = (const uint64_t *)(rows->packed + first * rows->packed_stride) + word;
        tile.stride = rows->packed_stride / 8;
        tile.n_rows = whole_rows(&tile, n_rows);
    } else {
        tile.rows = chunk->tile;
        tile.stride = tile.n_words * (chunk->in_units ? WORD_BITS : 1);
        tile.n_rows = fill_tile(kernel, rows, first, n_rows, &tile, chunk);
    }
    return tile;
}

/* ---- signed counts: pure, tile by tile over the samples ------------------------------------- */

enum { TOO_LARGE = -2 }; /* real-valued rows whose sums of extremes might not fit int64 */

/* Counts up to `n_rows` rows from `first` on, fewer if one of them cannot be read this way:
 * a value that is not 0 or 1, or with in_units one outside [0, 1].  With no strips it only adds
 * them up. */
void count_rows(const struct kernel *kernel, const struct sign_store *signs,
                const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows, int in_units,
                struct chunk *chunk);

/* The same, in whichever of the two ways the first row can be read. */
void count_any_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows,
                    struct chunk *chunk);

/* Whether sums of extremes in units of 2^-24 fit int64: fewer than 2^38 signs. */
int units_fit(const struct sign_store *signs);

#endif
