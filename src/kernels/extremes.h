/* The running extremes of signed sums, and what a sum does to them. */
#ifndef RADABOUND_EXTREMES_H
#define RADABOUND_EXTREMES_H

#include <stdint.h>

#include "cpu.h"

/* Of some vectors.  Their complexity is sum_j max(0, maxima[j]), or with half_range
 * sum_j (maxima[j] - minima[j]), over the n_vectors; lanes past them are there to fill a strip. */
struct extremes {
    int64_t *maxima, *minima;
    int64_t n_vectors;
    int half_range;
};

/* Those from a vector on. */
RB_INLINE struct extremes extremes_from(const struct extremes *all, int64_t vector)
{
    return (struct extremes){all->maxima + vector, all->minima + vector, all->n_vectors - vector,
                             all->half_range};
}

RB_INLINE int64_t positive(int64_t x) { return x > 0 ? x : 0; }

RB_INLINE int64_t complexity_of(const struct extremes *extremes)
{
    int64_t sum = 0;
    for (int64_t v = 0; v < extremes->n_vectors; v++)
        sum += extremes->half_range ? extremes->maxima[v] - extremes->minima[v]
                                    : positive(extremes->maxima[v]);
    return sum;
}

/* Widens the extremes of one vector until they hold the sum; returns what its complexity gains. */
RB_INLINE int64_t widen_to(int64_t sum, const struct extremes *extremes, int64_t vector)
{
    int64_t *maximum = extremes->maxima + vector, *minimum = extremes->minima + vector;
    int64_t growth = 0;
    if (sum > *maximum) {
        growth += extremes->half_range ? sum - *maximum : positive(sum) - positive(*maximum);
        *maximum = sum;
    }
    if (sum < *minimum) {
        growth += extremes->half_range ? *minimum - sum : 0;
        *minimum = sum;
    }
    return vector < extremes->n_vectors ? growth : 0;
}

#endif
