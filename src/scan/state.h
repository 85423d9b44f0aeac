/* A guard's state, and the one judge of a row: extremes, complexity, and the gate, in integers.
 *
 * Units.  Sums are in units of one loss until the first real-valued row, then in units of
 * 2^-24 (unit_shift = 24).  Nothing here knows a probability: the caller prices the gate.
 */
#ifndef RADABOUND_STATE_H
#define RADABOUND_STATE_H

#include "tiles.h"

enum verdict { ANSWERED, WITHHELD, NEEDS_UNITS, NEEDS_PRICE, UNREADABLE };

/* Totals that are answered whatever the complexity: the union part of the bound. */
struct free_range {
    int64_t low, high;
};

/* A row is answered while
 *
 *     complexity <= budget,   or   total <= low,   or   total >= high   of its kind of row.
 *
 * All this is the gate; it holds for totals up to `priced`, and for the rows before the one that
 * `priced_rows` were answered before.  A row beyond either stops with NEEDS_PRICE. */
struct guard_state {
    int64_t *maxima, *minima; /* 8 n_strips lanes each, the minima after the maxima */
    int64_t n_vectors, n_strips;
    int64_t n_rows;     /* answered */
    int64_t complexity; /* of the extremes */
    int started;        /* whether there are extremes yet */
    int64_t budget, priced, priced_rows;
    int64_t wanted; /* the largest total that the price must hold for, after NEEDS_PRICE */
    struct free_range declared, real; /* of bits, labels and integers; of floats */
    int half_range;
    int unit_shift; /* 0 or UNIT_SHIFT */
};

RB_INLINE struct extremes extremes_of(const struct guard_state *state)
{
    return (struct extremes){state->maxima, state->minima, state->n_vectors, state->half_range};
}

/* Whether the gate does not hold for the next row, of this total. */
RB_INLINE int needs_price(const struct guard_state *state, int64_t total)
{
    return total > state->priced || state->n_rows >= state->priced_rows;
}

/* The verdict on that row. */
RB_INLINE enum verdict price_needed(struct guard_state *state, int64_t total)
{
    state->wanted = total > state->priced ? total : state->priced;
    return NEEDS_PRICE;
}

/* Whether a row passes the gate at this complexity. */
RB_INLINE int passes(const struct guard_state *state, int may_be_real, int64_t complexity,
                     int64_t total)
{
    const struct free_range *range = may_be_real ? &state->real : &state->declared;
    return complexity <= state->budget || total <= range->low || total >= range->high;
}

/* From units of one loss to units of 2^-24.  The caller prices the gate anew. */
void rescale_state(struct guard_state *state);

/* Takes the other's extremes in, in the same units. */
void merge_state(struct guard_state *state, const struct guard_state *other);

/* Answers rows whose extremes were merged in already, by their totals; returns as judge_rows.  Each
 * is judged at the complexity of them all, which is no smaller than its own: one that passes would
 * have passed alone, and one that does not is to be judged in order. */
ptrdiff_t judge_merged(struct guard_state *state, const int64_t *totals, ptrdiff_t n_rows,
                       int may_be_real, enum verdict *verdict);

/* Judges the chunk's rows; returns how many are answered, and says in `verdict` why it stopped.
 * totals_out and trace_out (each row's complexity) may be NULL. */
ptrdiff_t judge_rows(const struct kernel *kernel, struct guard_state *state, struct chunk *chunk,
                     int64_t *totals_out, int64_t *trace_out, enum verdict *verdict);

#endif
