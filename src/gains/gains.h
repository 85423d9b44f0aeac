/* The lower confidence limit of a gain: of p - q, where a row is +1, -1 or 0 with probabilities p, q
 * and 1 - p - q.  "Is B better than A?" in docs/explanation/theory.md has the theorem and the proofs.
 *
 * The counts (n+, n-) are ordered by the limit that the best bet in hindsight allows: of two points the
 * one that still refutes the larger gain is the larger.  The exact lower limit for this order is the
 * least gain D at which a point as large as the one observed has more than the allowed probability, for
 * some p and q of this gain, p not below and q not above limits of their own.
 */
#ifndef RADABOUND_GAINS_H
#define RADABOUND_GAINS_H

#include <stddef.h>
#include <stdint.h>

/* Memory that a limit needs: it grows as needed, and is the caller's to free. */
struct gain_memory {
    int64_t *least;
    size_t capacity;
};

/* The lower limit of p - q given n+ and n- of m rows, which fails with probability exp(-nats) at most;
 * rounded down.  nats is from ln 4 to 300.  Returns NAN if there is no memory. */
double gain_limit(double n_plus, double n_minus, double m, double nats, struct gain_memory *memory);

#endif
