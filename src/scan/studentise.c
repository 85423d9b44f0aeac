#include "scan.h"

/* Rows of bits in a block; returns how many there are before one that cannot be read so. */
static ptrdiff_t studentise_block(const struct work *work, ptrdiff_t first, ptrdiff_t last,
                                  const struct studentised *into, int n_into)
{
    const struct sliced_memory *sliced = work->sliced;
    const ptrdiff_t n_rows = (ptrdiff_t)smaller(sliced->kernel->block_rows, last - first);
    const struct row_tile rows = read_block(work, first, n_rows);
    struct studentised from[SLICED_MOST_INTO];
    for (int i = 0; i < n_into; i++)
        from[i] = studentised_from(&into[i], first);
    if (rows.n_rows > 0)
        sliced->kernel->studentise(sliced->plan, sliced->scratch, rows.rows, rows.stride,
                                   (int)rows.n_rows, from, n_into);
    return rows.n_rows;
}

/* One row that was counted, in units of 1 / per_loss. */
static void widen_by_counts(const int64_t *counts, int64_t total, double per_loss,
                            ptrdiff_t n_strips, const struct studentised *into, ptrdiff_t row)
{
    const double mean = into->means[row], scale = into->scales[row];
    for (ptrdiff_t v = 0; v < n_strips * LANES; v++) {
        const double sum = (double)(2 * counts[v] - total) / per_loss;
        const double expected = mean * into->sign_sums[v];
        const double studentised = (sum - into->offsets[v] - expected) * scale;
        if (studentised > into->highest[v])
            into->highest[v] = studentised;
        if (studentised < into->lowest[v])
            into->lowest[v] = studentised;
    }
}

ptrdiff_t studentise_rows(const struct work *work, ptrdiff_t first, ptrdiff_t last,
                          const struct studentised *into, int n_into)
{
    const struct chunk *chunk = work->chunk;
    const ptrdiff_t n_strips = (ptrdiff_t)work->signs->n_strips;
    ptrdiff_t row = first;
    while (row < last) {
        if (work->sliced && last - row >= least_block(work)) {
            const ptrdiff_t n_taken = studentise_block(work, row, last, into, n_into);
            row += n_taken;
            if (n_taken > 0)
                continue;
        }
        count_any_rows(work->kernel, work->signs, work->rows, row, last - row, work->chunk);
        if (chunk->n_rows == 0)
            return row;
        const double per_loss = chunk->in_units ? (double)(1 << UNIT_SHIFT) : 1.0;
        for (ptrdiff_t r = 0; r < chunk->n_rows; r++)
            for (int i = 0; i < n_into; i++)
                widen_by_counts(chunk->counts + r * n_strips * LANES, chunk->totals[r], per_loss,
                                n_strips, &into[i], row + r);
        row += chunk->n_rows;
    }
    return last;
}
