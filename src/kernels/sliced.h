/* Bit-sliced blocks: the running extremes of many rows at once, without a popcount instruction.
 * sliced.inc.h says how; this is the contract.
 *
 * A block is 1 .. block_rows packed loss vectors ("rows").  For sign vector j and row f
 *
 *     S_j(f) = sum_i sigma_ji f_i = 2 popcount(signs_j & f) - popcount(f);
 *
 * scan() widens [minima[j], maxima[j]] until it holds every S_j of the block, exactly.
 *
 * A plan is what depends on the signs alone: made for one kernel, never written again, good for
 * any number of blocks and threads.  It takes about n_samples * n_vectors / 3 bytes, and the time
 * of two to five blocks.  A scratch serves one thread at a time.  There is no other state.  The
 * caller has validated all arguments; only the two allocations can fail, by returning NULL.
 */
#ifndef RADABOUND_SLICED_H
#define RADABOUND_SLICED_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "extremes.h"

/* Extremes of studentised sums: what the bootstrap of a pool of models keeps.
 *
 *     T_j(f) = ((S_j(f) - offset_j) - mean_f * sign_sum_j) * scale_f,    in float64, in this order
 *
 * S_j(f) is the signed sum of a row, offset_j that of a baseline or 0, sign_sum_j the sum of sign
 * vector j.  With the mean and one over the spread of f's losses (less the baseline's) T_j has
 * variance 1.  Every kernel rounds alike: no product is contracted with a sum (-ffp-contract=off).
 * A row whose scale is 0 moves nothing, since the extremes start at 0. */
struct studentised {
    const double *offsets, *sign_sums; /* of each vector, in units of one loss */
    double *highest, *lowest;          /* of each vector; only widened */
    const double *means, *scales;      /* of each row */
};

/* The same from a row on. */
RB_INLINE struct studentised studentised_from(const struct studentised *all, int64_t row)
{
    struct studentised from = *all;
    from.means += row;
    from.scales += row;
    return from;
}

/* For each of n lanes, a multiple of 8, the largest studentised difference between one model and
 * n_others others, whose sums lie `stride` apart:
 *
 *     maxima[v] = max over g of ((sums[v] - others[g][v]) - means[g] * sign_sums[v]) * scales[g],
 *
 * and not less than it was. */
typedef void raise_maxima_fn(const double *sums, const double *others, ptrdiff_t stride,
                             ptrdiff_t n_others, const double *means, const double *scales,
                             const double *sign_sums, ptrdiff_t n, double *maxima);

struct sliced_plan;

struct sliced_kernel {
    int block_rows; /* a block of fewer rows takes as long as a full one */

    /* rows: n_rows rows of ceil(n_samples / 64) words, `stride` words apart; bits past n_samples
     *     are zero.
     * extremes: on entry true values of earlier rows, not sentinels.
     * totals: totals[i], i < n_rows, is set to popcount(row i).
     * growth: growth[i] is set to what row i, taken in order, adds to the complexity. */
    void (*scan)(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                 ptrdiff_t stride, int n_rows, const struct extremes *extremes, int64_t *totals,
                 int64_t *growth);

    /* The same rows into the extremes of their studentised sums, in each of n_into ways; for up to
     * SLICED_MOST_SAMPLES samples. */
    void (*studentise)(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                       ptrdiff_t stride, int n_rows, const struct studentised *into, int n_into);

    raise_maxima_fn *raise_maxima;
};

enum { SLICED_MOST_SAMPLES = 1 << 22, SLICED_MOST_INTO = 2 };

extern const struct sliced_kernel sliced_portable;
#if defined(RB_GNU)
extern const struct sliced_kernel sliced_avx2, sliced_avx512, sliced_neon;
#else /* those are written in the vectors of GCC and Clang */
#define sliced_avx2 sliced_portable
#define sliced_avx512 sliced_portable
#define sliced_neon sliced_portable
#endif

/* signs: word w of vectors 8s .. 8s+7 at signs[(s * n_words + w) * 8 + lane]. */
struct sliced_plan *sliced_plan_new(const struct sliced_kernel *kernel, const uint64_t *signs,
                                    int64_t n_samples, int64_t n_vectors);
size_t sliced_plan_bytes(const struct sliced_plan *plan);
void sliced_plan_free(struct sliced_plan *plan);

void *sliced_scratch_new(const struct sliced_plan *plan);
size_t sliced_scratch_bytes(const struct sliced_plan *plan);
void sliced_scratch_free(void *scratch);

#endif
