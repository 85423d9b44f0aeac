/* Rows into the extremes of their studentised sums, in whichever way they can be read. */
#ifndef RADABOUND_STUDENTISE_H
#define RADABOUND_STUDENTISE_H

#include "kernels/studentised.h"
#include "scan.h"

/* Takes rows first .. last - 1 in, in each of n_into ways, whose means and scales are those of row 0 on,
 * in units of one loss, and whose vectors are whole strips.  Of `work` neither state nor totals are
 * used.  Returns `last`, or the first row that cannot be read: work->chunk->bad_sample says why. */
ptrdiff_t studentise_rows(const struct work *work, ptrdiff_t first, ptrdiff_t last,
                          const struct studentised *into, int n_into);

#endif
