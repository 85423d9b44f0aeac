/* What a plan holds: between sliced_plan.c, which makes it, and the kernels, which read it. */
#ifndef RADABOUND_SLICED_PLAN_H
#define RADABOUND_SLICED_PLAN_H

#include "sliced.h"

/* Samples are taken tile by tile, vectors group by group.  For every group of every tile
 * `classes` goes on with its 2^size classes, and for each
 *
 *     the number of chunks, and the chunks: 8 line numbers each, times line_words.
 *
 * Line 0 is all zeros and fills up the last chunk of a class; sample i of the tile is line 1 + i.
 * Bit k of a class is the sign of its samples in the k-th vector of the group.
 */
struct sliced_plan {
    int64_t n_samples, n_vectors, n_groups, n_tiles;
    int64_t n_words;    /* of a row */
    int64_t tile_words; /* of a tile; the last tile may have fewer */
    int64_t n_classes;  /* of all groups */
    int line_words;     /* of a line: block_rows / 64 */
    size_t n_indices;   /* in `classes` */
    size_t capacity;
    uint16_t *classes;
};

enum {
    SLICED_MOST_VECTORS = 8, /* in a group */
    SLICED_TILE_WORDS = 94,  /* 6016 samples: their lines, of 64 bytes, fit the second cache */
    SLICED_PLANES = 13,      /* bits that count them */
    SLICED_AHEAD = 32,       /* so many indices on, a kernel may look at four; zeros end the last */
};

RB_ASSERT_THAT(a_tile_can_be_counted, SLICED_TILE_WORDS * 64 < 1 << SLICED_PLANES);

/* 8 x 8 bits: bit j of byte i goes to bit i of byte j (Hacker's Delight, section 7-3). */
static inline uint64_t sliced_transpose_8x8(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aa;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000cccc;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0;
    return x ^ t ^ t << 28;
}

/* Bit k of byte[i] is bit i of word[k]. */
static inline void sliced_columns(const uint64_t word[8], uint8_t byte[64])
{
    for (int shift = 0; shift < 64; shift += 8) {
        uint64_t bytes = 0;
        for (int k = 0; k < 8; k++)
            bytes |= (word[k] >> shift & 0xff) << 8 * k;
        bytes = sliced_transpose_8x8(bytes);
        for (int i = 0; i < 8; i++)
            *byte++ = (uint8_t)(bytes >> 8 * i);
    }
}

/* Group g is the vectors from sliced_group(plan, g) up to sliced_group(plan, g + 1). */
static inline int64_t sliced_group(const struct sliced_plan *plan, int64_t g)
{
    return g * plan->n_vectors / plan->n_groups;
}

/* The classes of a group come in Gray code, all bits on first: one bit changes at a time. */
static inline int sliced_class(int i, int size) { return ~(i ^ i >> 1) & ((1 << size) - 1); }

/* The bit that changes after i classes, 1 <= i < 2^size; after all of them, the highest. */
static inline int sliced_changed(int i, int size)
{
    int bit = 0;
    while (bit < size - 1 && (i >> bit & 1) == 0)
        bit++;
    return bit;
}

/* Bits of a sum over all samples. */
static inline int sliced_sum_planes(const struct sliced_plan *plan)
{
    int planes = 0;
    for (int64_t n = plan->n_samples; n > 0; n /= 2)
        planes++;
    return planes;
}

#endif
