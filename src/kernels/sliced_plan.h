/* What a plan holds: between sliced_plan.c, which makes it, and the kernels, which read it. */
#ifndef RADABOUND_SLICED_PLAN_H
#define RADABOUND_SLICED_PLAN_H

#include "sliced.h"

/* Samples are taken tile by tile, vectors group by group.  For every group of every tile
 * `classes` goes on with
 *
 *     the number of levels;
 *     for each of the 2^levels classes, four by four, each four in the order 1, 0, 2, 3:
 *         the number of chunks, and the chunks: 8 line numbers each, times line_words.
 *
 * Line 0 is all zeros and fills up the last chunk of a class; sample i of the tile is line 1 + i.
 * Bit k of a class is the sign of its samples in the k-th vector of the group.  Bits beyond the
 * group's vectors only part a class that is too large to count.
 */
struct sliced_plan {
    int64_t n_samples, n_vectors, n_groups, n_tiles;
    int64_t n_words;    /* of a row */
    int64_t tile_words; /* of a tile; the last tile may have fewer */
    int line_words;     /* of a line: block_rows / 64 */
    int most_levels;    /* of any group of any tile */
    size_t n_indices;   /* in `classes` */
    size_t capacity;
    uint16_t *classes;
};

enum {
    SLICED_MOST_VECTORS = 8, /* in a group */
    SLICED_COUNT_PLANES = 9, /* bits that count four classes: at most 511 samples */
};

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

/* Bits of the numbers in a node of the fold; a node of level 2 holds four classes. */
static inline int sliced_planes(int level) { return SLICED_COUNT_PLANES + level - 2; }

/* Lines of a node, level + 1 numbers, and of one on each level below it. */
static inline int64_t sliced_node_lines(int level)
{
    return (int64_t)(level + 1) * (level + 2) / 2 * sliced_planes(level);
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
