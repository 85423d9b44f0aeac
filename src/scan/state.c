#include "state.h"

static void find_complexity(struct guard_state *state)
{
    const struct extremes extremes = extremes_of(state);
    state->complexity = complexity_of(&extremes);
}

static void start(struct guard_state *state)
{
    for (int64_t v = 0; v < state->n_strips * LANES; v++) {
        state->maxima[v] = INT64_MIN;
        state->minima[v] = INT64_MAX;
    }
    state->started = 1;
}

void rescale_state(struct guard_state *state)
{
    state->unit_shift = UNIT_SHIFT;
    if (!state->started)
        return;
    for (int64_t v = 0; v < state->n_strips * LANES; v++) {
        state->maxima[v] *= (int64_t)1 << UNIT_SHIFT;
        state->minima[v] *= (int64_t)1 << UNIT_SHIFT;
    }
    find_complexity(state);
}

void merge_state(struct guard_state *state, const struct guard_state *other)
{
    if (!other->started)
        return;
    if (!state->started)
        start(state);
    for (int64_t v = 0; v < state->n_strips * LANES; v++) {
        if (other->maxima[v] > state->maxima[v])
            state->maxima[v] = other->maxima[v];
        if (other->minima[v] < state->minima[v])
            state->minima[v] = other->minima[v];
    }
    find_complexity(state);
}

ptrdiff_t judge_merged(struct guard_state *state, const int64_t *totals, ptrdiff_t n_rows,
                       int may_be_real, enum verdict *verdict)
{
    for (ptrdiff_t r = 0; r < n_rows; r++) {
        if (needs_price(state, totals[r])) {
            *verdict = price_needed(state, totals[r]);
            return r;
        }
        *verdict = WITHHELD;
        if (!passes(state, may_be_real, state->complexity, totals[r]))
            return r;
        state->n_rows++;
    }
    *verdict = ANSWERED;
    return n_rows;
}

static void bring_to_units(struct chunk *chunk, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < chunk->n_rows * stride; i++)
        chunk->counts[i] <<= UNIT_SHIFT;
    for (ptrdiff_t r = 0; r < chunk->n_rows; r++)
        chunk->totals[r] <<= UNIT_SHIFT;
    chunk->in_units = 1;
}

ptrdiff_t judge_rows(const struct kernel *kernel, struct guard_state *state, struct chunk *chunk,
                     int64_t *totals_out, int64_t *trace_out, enum verdict *verdict)
{
    const ptrdiff_t stride = (ptrdiff_t)state->n_strips * LANES;
    *verdict = NEEDS_UNITS;
    if (chunk->in_units && !state->unit_shift)
        return 0;
    if (state->unit_shift && !chunk->in_units)
        bring_to_units(chunk, stride);
    for (ptrdiff_t r = 0; r < chunk->n_rows; r++) {
        const int64_t total = chunk->totals[r];
        if (needs_price(state, total)) {
            *verdict = price_needed(state, total);
            return r;
        }
        if (!state->started)
            start(state);
        if (kernel->raise_extremes(chunk->counts + r * stride, total, (ptrdiff_t)state->n_strips,
                                   state->maxima, state->minima))
            find_complexity(state);
        *verdict = WITHHELD;
        if (!passes(state, chunk->may_be_real, state->complexity, total))
            return r;
        state->n_rows++;
        if (totals_out)
            totals_out[r] = total;
        if (trace_out)
            trace_out[r] = state->complexity;
    }
    *verdict = ANSWERED;
    return chunk->n_rows;
}
