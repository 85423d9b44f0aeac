/* Bit-sliced blocks: the running extremes of many queries at once, without a popcount instruction.
 * How it works is told in sliced.inc.h; this is the contract.
 *
 * A block is 1 .. block_rows packed loss vectors ("rows").  For sign vector j and row f
 *
 *     S_j(f) = sum_i sigma_ji f_i = 2 popcount(signs_j & f) - popcount(f);
 *
 * scan() widens [minima[j], maxima[j]] to hold every S_j of the block, exactly.
 *
 * A plan is what depends on the signs alone: made for one kernel, never written again, good for any
 * number of blocks and threads.  A scratch serves one thread at a time.  There is no other state.
 * The caller has validated all arguments; only the two allocations can fail, by returning NULL.
 */
#ifndef RADABOUND_SLICED_H
#define RADABOUND_SLICED_H

#include <stddef.h>
#include <stdint.h>

struct sliced_plan {
    int64_t n_samples, n_vectors;
    int64_t n_words;     /* ceil(n_samples / 64): words of a row */
    int64_t tile_words;  /* words of a tile; the last tile may have fewer */
    int64_t n_tiles;     /* samples are taken tile by tile ... */
    int64_t n_groups;    /* ... and vectors group by group */
    int line_bytes;      /* one sample's losses for a whole block: block_rows / 8 */
    uint16_t *classes;   /* samples by class, tile after tile, group after group: sliced_plan.c */
    size_t classes_bytes;
};

struct sliced_kernel {
    const char *name;
    int block_rows; /* a block of fewer rows takes as long as a full one */

    /* rows: n_rows rows of n_words words, row i at rows + i * stride; bits past n_samples are zero.
     * maxima, minima: n_vectors each; on entry true values of earlier rows, not sentinels.
     * growth: growth[i] for i < n_rows is set to what row i, taken in order, adds to
     *     sum_j max(0, maxima[j]), or to sum_j (maxima[j] - minima[j]) if half_range. */
    void (*scan)(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                 ptrdiff_t stride, int n_rows, int64_t *maxima, int64_t *minima, int half_range,
                 int64_t *growth);
};

extern const struct sliced_kernel sliced_portable;
extern const struct sliced_kernel sliced_avx2;   /* x86-64 with AVX2 */
extern const struct sliced_kernel sliced_avx512; /* x86-64 with AVX-512 F, BW and GFNI */
extern const struct sliced_kernel sliced_neon;   /* AArch64 */

struct kernel;

/* The one that goes with a kernel of signed_sums.h; dispatch.c. */
const struct sliced_kernel *sliced_row(const struct kernel *kernel);

/* signs: word w of vectors 8s .. 8s+7 at signs[(s * n_words + w) * 8 + lane]. */
struct sliced_plan *sliced_plan_new(const struct sliced_kernel *kernel, const uint64_t *signs,
                                    int64_t n_samples, int64_t n_vectors);
void sliced_plan_free(struct sliced_plan *plan);

void *sliced_scratch_new(const struct sliced_plan *plan);
size_t sliced_scratch_bytes(const struct sliced_plan *plan);
void sliced_scratch_free(void *scratch);

/* Vectors of group g: from sliced_group(plan, g) up to sliced_group(plan, g + 1), at most 8. */
static inline int64_t sliced_group(const struct sliced_plan *plan, int64_t g)
{
    return g * plan->n_vectors / plan->n_groups;
}

/* Lines of a bit-sliced number up to n; never fewer than the counters of one class fill. */
static inline int sliced_planes(int64_t n)
{
    int planes = 0;
    for (; n > 0; n >>= 1)
        planes++;
    return planes > 5 ? planes : 5;
}

/* Samples of a tile. */
static inline int64_t sliced_tile_samples(const struct sliced_plan *plan)
{
    int64_t most = 64 * plan->tile_words;
    return most < plan->n_samples ? most : plan->n_samples;
}

enum {
    SLICED_GROUP = 8,         /* most vectors in a group: a class fits a byte */
    SLICED_NODE_NUMBERS = 45, /* numbers on the way down from a group to a class: 1 + 2 + .. + 9 */
};

#endif
