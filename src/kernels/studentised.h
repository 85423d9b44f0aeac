/* Extremes of studentised sums: what the bootstrap of a pool of models keeps.
 *
 *     T_j(f) = ((S_j(f) - offset_j) - mean_f * sign_sum_j) * scale_f,    in float64, in this order
 *
 * S_j(f) is the signed sum of a row, offset_j that of a baseline or 0, sign_sum_j the sum of sign vector
 * j.  With the mean and one over the spread of f's losses (less the baseline's) T_j has variance 1.
 * Every kernel rounds alike: no product is contracted with a sum (-ffp-contract=off).
 */
#ifndef RADABOUND_STUDENTISED_H
#define RADABOUND_STUDENTISED_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"

/* A row whose scale is 0 moves nothing, since the extremes start at 0. */
struct studentised {
    const double *offsets, *sign_sums; /* of each vector, in units of one loss */
    double *highest, *lowest;          /* of each vector; only widened */
    const double *means, *scales;      /* of each row */
};

/* For each of n lanes, a multiple of 8, the largest studentised difference between one model and n_others
 * others, whose sums lie `stride` apart:
 *
 *     maxima[v] = max over g of ((sums[v] - others[g][v]) - means[g] * sign_sums[v]) * scales[g],
 *
 * and not less than it was. */
typedef void raise_maxima_fn(const double *sums, const double *others, ptrdiff_t stride,
                             ptrdiff_t n_others, const double *means, const double *scales,
                             const double *sign_sums, ptrdiff_t n, double *maxima);

/* The same from a row on. */
RB_INLINE struct studentised studentised_from(const struct studentised *all, int64_t row)
{
    struct studentised from = *all;
    from.means += row;
    from.scales += row;
    return from;
}

#endif
