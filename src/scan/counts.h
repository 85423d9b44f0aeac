/* The signed counts of some rows: pure, tile by tile over the samples. */
#ifndef RADABOUND_COUNTS_H
#define RADABOUND_COUNTS_H

#include "tiles.h"

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
