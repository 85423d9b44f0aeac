/* sliced.h: every row's blocks against one row of losses after the other. */
#include <string.h>

#include "harness.h"
#include "kernels/sliced_plan.h"

struct block_case {
    struct sign_tile signs;
    int64_t n_samples, n_rows, row_stride;
    const uint64_t *rows;
    struct extremes start, wanted; /* before these rows, and after */
    int64_t *totals, *growth;
    int32_t *losses; /* of one row */
};

static struct extremes new_extremes(const struct block_case *c, enum slot slot, int64_t n_vectors)
{
    const int64_t n_lanes = c->signs.n_strips * LANES;
    struct extremes extremes = {.maxima = GUARDED(int64_t, slot, 2 * n_lanes),
                                .n_vectors = n_vectors};
    extremes.minima = extremes.maxima + n_lanes;
    return extremes;
}

static void copy(const struct block_case *c, struct extremes *to, const struct extremes *from)
{
    memcpy(to->maxima, from->maxima, 2 * (size_t)(c->signs.n_strips * LANES) * sizeof(int64_t));
    to->half_range = from->half_range;
}

/* Of a few earlier rows: at first sight everything moves, later hardly anything. */
static void random_start(struct block_case *c, int64_t n_vectors)
{
    c->start = new_extremes(c, START, n_vectors);
    c->start.half_range = one_in(2);
    for (int64_t n = up_to(30), r = 0; r < n; r++) {
        for (int64_t i = 0; i < c->n_samples; i++)
            c->losses[i] = (int32_t)below(2);
        plain_widen(&c->signs, c->losses, c->n_samples, 0, r > 0, &c->start);
    }
}

static void find_wanted(struct block_case *c)
{
    c->wanted = new_extremes(c, WANTED, c->start.n_vectors);
    c->growth = GUARDED(int64_t, EXPECTED, c->n_rows);
    c->totals = GUARDED(int64_t, TOTALS, c->n_rows);
    copy(c, &c->wanted, &c->start);
    for (int64_t r = 0; r < c->n_rows; r++) {
        plain_losses(c->rows + r * c->row_stride, c->n_samples, c->losses);
        c->totals[r] = plain_total(c->losses, c->n_samples);
        c->growth[r] = plain_widen(&c->signs, c->losses, c->n_samples, 0, 1, &c->wanted);
    }
}

static void scan_in_blocks(const struct block_case *c, const struct instruction_set *set)
{
    const struct sliced_kernel *kernel = set->sliced;
    const int64_t l = c->start.n_vectors;
    struct extremes got = new_extremes(c, EXTREMES, l);
    copy(c, &got, &c->start);
    struct sliced_plan *plan = sliced_plan_new(kernel, c->signs.lines, c->n_samples, l);
    check(plan != NULL, "memory for a plan");
    /* to the last byte of what sliced_scratch_new would take */
    void *scratch = guarded(SCRATCH, sliced_scratch_bytes(plan), 8 * (size_t)plan->line_words);
    for (int64_t r = 0; r < c->n_rows; r += kernel->block_rows) {
        const int64_t n = smaller(c->n_rows - r, kernel->block_rows);
        int64_t *growth = GUARDED(int64_t, GROWTH, n), *totals = GUARDED(int64_t, BLOCK_TOTALS, n);
        running("sliced scan", set);
        kernel->scan(plan, scratch, c->rows + r * c->row_stride, c->row_stride, (int)n, &got,
                     totals, growth);
        check_equal(totals, c->totals + r, (size_t)n * sizeof(int64_t), "totals");
        check_equal(growth, c->growth + r, (size_t)n * sizeof(int64_t), "growth");
    }
    sliced_plan_free(plan);
    check_equal(got.maxima, c->wanted.maxima, (size_t)l * sizeof(int64_t), "maxima");
    check_equal(got.minima, c->wanted.minima, (size_t)l * sizeof(int64_t), "minima");
}

void try_sliced(void)
{
    const int large = one_in(30); /* one tile of the plan is 6016 samples */
    const int64_t n_vectors = size_to(40), n_strips = (n_vectors + LANES - 1) / LANES;
    struct block_case c = {.n_samples = large ? 5000 + below(9000) : size_to(700),
                           .n_rows = size_to(large ? 70 : 600)};
    const int64_t n_words = (c.n_samples + WORD_BITS - 1) / WORD_BITS;
    c.row_stride = random_stride(n_words);
    c.signs = random_tile(n_strips, n_words, n_words);
    c.losses = GUARDED(int32_t, ONE_ROW, c.n_samples);
    c.rows = random_words(c.n_rows, c.n_samples, c.row_stride);
    random_start(&c, n_vectors);
    find_wanted(&c);
    for (EACH_SET(set))
        scan_in_blocks(&c, set);
}

/* struct studentised, in two ways at once: to the last bit, in the order of operations that it has. */
struct ways {
    struct studentised way[SLICED_MOST_INTO];
};

static double *random_reals(enum slot slot, int64_t n, int zeros)
{
    double *reals = GUARDED(double, slot, n);
    for (int64_t i = 0; i < n; i++)
        reals[i] = zeros && one_in(4) ? 0.0 : (double)(below(1 << 20) - (1 << 19)) / 997.0;
    return reals;
}

static void random_ways(const struct block_case *c, int64_t n_vectors, struct ways *ways)
{
    static const enum slot slots[SLICED_MOST_INTO][4] = {{START, EXPECTED, TOTALS, GROWTH},
                                                         {OUT, COUNTS, TRACE, WANTED_TRACE}};
    for (int i = 0; i < SLICED_MOST_INTO; i++) {
        ways->way[i].offsets = random_reals(slots[i][0], n_vectors, 1);
        ways->way[i].sign_sums = random_reals(slots[i][1], n_vectors, 1);
        ways->way[i].means = random_reals(slots[i][2], c->n_rows, 1);
        ways->way[i].scales = random_reals(slots[i][3], c->n_rows, 1);
    }
}

/* Equal numbers: 0 is -0, of which kernels keep either. */
static void check_equal_reals(double *got, double *wanted, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        got[i] += 0.0;
        wanted[i] += 0.0;
    }
    check_equal(got, wanted, (size_t)n * sizeof *got, what);
}

/* Extremes of both ways, one after the other: highest, then lowest of n_vectors each. */
static void set_extremes(struct ways *ways, double *extremes, int64_t n_vectors)
{
    memset(extremes, 0, (size_t)(2 * SLICED_MOST_INTO * n_vectors) * sizeof *extremes);
    for (int i = 0; i < SLICED_MOST_INTO; i++) {
        ways->way[i].highest = extremes + 2 * i * n_vectors;
        ways->way[i].lowest = ways->way[i].highest + n_vectors;
    }
}

static void studentise_plainly(const struct block_case *c, const struct ways *ways, int64_t l)
{
    for (int64_t r = 0; r < c->n_rows; r++) {
        plain_losses(c->rows + r * c->row_stride, c->n_samples, c->losses);
        const int64_t total = plain_total(c->losses, c->n_samples);
        for (int64_t v = 0; v < l; v++) {
            const int64_t count = plain_count(&c->signs, v, c->losses, c->n_samples);
            for (int i = 0; i < SLICED_MOST_INTO; i++) {
                const struct studentised *way = &ways->way[i];
                const double expected = way->means[r] * way->sign_sums[v];
                const double sum = (double)(2 * count - total) - way->offsets[v];
                const double studentised = (sum - expected) * way->scales[r];
                way->highest[v] = studentised > way->highest[v] ? studentised : way->highest[v];
                way->lowest[v] = studentised < way->lowest[v] ? studentised : way->lowest[v];
            }
        }
    }
}

void try_studentise(void)
{
    const int large = one_in(30);
    const int64_t n_vectors = size_to(40), n_strips = (n_vectors + LANES - 1) / LANES;
    struct block_case c = {.n_samples = large ? 5000 + below(9000) : size_to(700),
                           .n_rows = size_to(large ? 70 : 600)};
    const int64_t n_words = (c.n_samples + WORD_BITS - 1) / WORD_BITS;
    struct ways ways;
    c.row_stride = random_stride(n_words);
    c.signs = random_tile(n_strips, n_words, n_words);
    c.losses = GUARDED(int32_t, ONE_ROW, c.n_samples);
    c.rows = random_words(c.n_rows, c.n_samples, c.row_stride);
    random_ways(&c, n_vectors, &ways);
    const int64_t n = 2 * SLICED_MOST_INTO * n_vectors;
    double *wanted = GUARDED(double, WANTED, n);
    set_extremes(&ways, wanted, n_vectors);
    studentise_plainly(&c, &ways, n_vectors);
    for (EACH_SET(set)) {
        const struct sliced_kernel *kernel = set->sliced;
        double *got = GUARDED(double, EXTREMES, n);
        set_extremes(&ways, got, n_vectors);
        struct sliced_plan *plan =
            sliced_plan_new(kernel, c.signs.lines, c.n_samples, n_vectors);
        check(plan != NULL, "memory for a plan");
        void *scratch = guarded(SCRATCH, sliced_scratch_bytes(plan), 8 * (size_t)plan->line_words);
        running("sliced studentise", set);
        for (int64_t r = 0; r < c.n_rows; r += kernel->block_rows) {
            struct studentised from[SLICED_MOST_INTO];
            for (int i = 0; i < SLICED_MOST_INTO; i++)
                from[i] = studentised_from(&ways.way[i], r);
            kernel->studentise(plan, scratch, c.rows + r * c.row_stride, c.row_stride,
                               (int)smaller(c.n_rows - r, kernel->block_rows), from,
                               SLICED_MOST_INTO);
        }
        sliced_plan_free(plan);
        check_equal_reals(got, wanted, n, "studentised extremes");
    }
}

/* The largest differences, to the last bit. */
void try_raise_maxima(void)
{
    const int64_t n = LANES * size_to(40), k = up_to(20) - 1, stride = n + below(9);
    const double *sums = random_reals(START, n, 1), *sign_sums = random_reals(EXPECTED, n, 1);
    const double *means = random_reals(TOTALS, k, 1), *scales = random_reals(GROWTH, k, 1);
    const double *others = random_reals(OUT, k ? (k - 1) * stride + n : 0, 1);
    const double *start = random_reals(COUNTS, n, 1);
    double *wanted = GUARDED(double, WANTED, n);
    for (int64_t v = 0; v < n; v++) {
        wanted[v] = start[v];
        for (int64_t g = 0; g < k; g++) {
            const double expected = means[g] * sign_sums[v];
            const double one = (sums[v] - others[g * stride + v] - expected) * scales[g];
            wanted[v] = one > wanted[v] ? one : wanted[v];
        }
    }
    for (EACH_SET(set)) {
        double *got = GUARDED(double, EXTREMES, n);
        memcpy(got, start, (size_t)n * sizeof *got);
        running("raise_maxima", set);
        set->sliced->raise_maxima(sums, others, (ptrdiff_t)stride, (ptrdiff_t)k, means, scales,
                                  sign_sums, (ptrdiff_t)n, got);
        check_equal_reals(got, wanted, n, "maxima");
    }
}
