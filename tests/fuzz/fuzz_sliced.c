/* sliced.h: every row's blocks against one row of losses after the other. */
#include <string.h>

#include "fuzz.h"
#include "kernels/sliced.h"
#include "kernels/sliced_plan.h"

struct block_case {
    int64_t n_samples, n_vectors, n_words, n_rows, row_stride;
    const uint64_t *lines, *rows;
    int half_range;
    int64_t *start;            /* maxima, then minima, of rows before these */
    int64_t *wanted, *growth; /* the same after them, and what each row added */
    int64_t *totals;
};

static int64_t ones_of(const struct block_case *c, const uint64_t *row)
{
    int64_t ones = 0;
    for (int64_t w = 0; w < c->n_words; w++)
        ones += popcount64(row[w]);
    return ones;
}

static int64_t sum_of(const struct block_case *c, int64_t vector, const uint64_t *row)
{
    int64_t sum = 0;
    for (int64_t w = 0; w < c->n_words; w++) {
        const int64_t line = vector / LANES * c->n_words + w;
        sum += 2 * popcount64(c->lines[line * LANES + vector % LANES] & row[w]);
    }
    return sum - ones_of(c, row);
}

/* Bits past the last sample are zero. */
static void random_row(const struct block_case *c, uint64_t *row)
{
    random_bits(row, c->n_words);
    if (c->n_samples % 64)
        row[c->n_words - 1] &= ~(~(uint64_t)0 << c->n_samples % 64);
}

/* GuardCore of a few earlier rows: at first sight everything moves, later hardly anything. */
static void random_start(struct block_case *c)
{
    const int64_t l = c->n_vectors;
    uint64_t *earlier = GUARDED(uint64_t, PACKED, c->n_words);
    c->start = GUARDED(int64_t, START, 2 * l);
    for (int64_t n = up_to(30), r = 0; r < n; r++) {
        random_row(c, earlier);
        for (int64_t v = 0; v < l; v++) {
            const int64_t sum = sum_of(c, v, earlier);
            if (r == 0 || sum > c->start[v])
                c->start[v] = sum;
            if (r == 0 || sum < c->start[l + v])
                c->start[l + v] = sum;
        }
    }
}

static int64_t positive(int64_t x) { return x > 0 ? x : 0; }

static void find_wanted(struct block_case *c)
{
    const int64_t l = c->n_vectors;
    c->wanted = GUARDED(int64_t, WANTED, 2 * l);
    c->growth = GUARDED(int64_t, EXPECTED, c->n_rows);
    c->totals = GUARDED(int64_t, TOTALS, c->n_rows);
    memcpy(c->wanted, c->start, (size_t)(2 * l) * sizeof(int64_t));
    for (int64_t r = 0; r < c->n_rows; r++) {
        c->growth[r] = 0;
        c->totals[r] = ones_of(c, c->rows + r * c->row_stride);
        for (int64_t v = 0; v < l; v++) {
            const int64_t sum = sum_of(c, v, c->rows + r * c->row_stride);
            int64_t *high = c->wanted + v, *low = c->wanted + l + v;
            const int64_t before = c->half_range ? *high - *low : positive(*high);
            *high = sum > *high ? sum : *high;
            *low = sum < *low ? sum : *low;
            c->growth[r] += (c->half_range ? *high - *low : positive(*high)) - before;
        }
    }
}

static void scan_in_blocks(const struct block_case *c, const struct sliced_kernel *kernel)
{
    const int64_t l = c->n_vectors;
    const size_t bytes = (size_t)l * sizeof(int64_t);
    int64_t *maxima = GUARDED(int64_t, MAXIMA, l), *minima = GUARDED(int64_t, MINIMA, l);
    memcpy(maxima, c->start, bytes);
    memcpy(minima, c->start + l, bytes);
    struct sliced_plan *plan = sliced_plan_new(kernel, c->lines, c->n_samples, l);
    check(plan != NULL, "memory for a plan");
    /* to the last byte of what sliced_scratch_new would take */
    void *scratch = guarded(SCRATCH, sliced_scratch_bytes(plan), 8 * (size_t)plan->line_words);
    for (int64_t r = 0; r < c->n_rows; r += kernel->block_rows) {
        const int64_t left = c->n_rows - r;
        const int n = (int)(left < kernel->block_rows ? left : kernel->block_rows);
        int64_t *growth = GUARDED(int64_t, GROWTH, n);
        running("sliced scan", kernel->name);
        int64_t *totals = GUARDED(int64_t, BLOCK_TOTALS, n);
        kernel->scan(plan, scratch, c->rows + r * c->row_stride, c->row_stride, n, maxima, minima,
                     c->half_range, growth, totals);
        check_equal(growth, c->growth + r, (size_t)n * sizeof(int64_t), "growth");
        check_equal(totals, c->totals + r, (size_t)n * sizeof(int64_t), "totals");
    }
    sliced_plan_free(plan);
    check_equal(maxima, c->wanted, bytes, "maxima");
    check_equal(minima, c->wanted + l, bytes, "minima");
}

void try_sliced(void)
{
    const int large = one_in(30); /* one tile of the plan is 6016 samples */
    struct block_case c = {.n_samples = large ? 5000 + below(9000) : up_to(700),
                           .n_vectors = up_to(40),
                           .half_range = one_in(2)};
    c.n_words = (c.n_samples + 63) / 64;
    c.n_rows = up_to(large ? 70 : 600);
    c.row_stride = random_stride(c.n_words);
    c.lines = random_tile((c.n_vectors + LANES - 1) / LANES, c.n_words, c.n_words).lines;
    uint64_t *rows = (uint64_t *)random_rows(ROWS, c.n_rows, c.n_words, c.row_stride, 8, 8);
    for (int64_t r = 0; r < c.n_rows; r++)
        random_row(&c, rows + r * c.row_stride);
    c.rows = rows;
    random_start(&c);
    find_wanted(&c);
    for (int i = 0; kernel_row(i) != NULL; i++)
        if (kernel_row(i)->supported())
            scan_in_blocks(&c, sliced_row(kernel_row(i)));
}
