/* struct sliced_kernel: one block of rows after some others, of any length. */
#include <string.h>

#include "check.h"
#include "plain.h"
#include "kernels/signed_sums.h"
#include "kernels/sliced.h"

enum { ROWS_BEFORE = 3, GAP = 2 };

static void test_block(const struct sliced_kernel *kernel, const struct problem *p, int n_rows,
                       int half_range)
{
    const int64_t last = ROWS_BEFORE + n_rows - 1;
    const ptrdiff_t stride = p->n_words + GAP;
    uint64_t *rows = memory(n_rows * stride * 8, 8); /* words, but no line begins here */
    int64_t *maxima = NEW(int64_t, p->l), *minima = NEW(int64_t, p->l);
    int64_t *growth = NEW(int64_t, n_rows), *expected = NEW(int64_t, n_rows);
    const int64_t *complexity = half_range ? p->half_range : p->plain;
    for (int r = 0; r < n_rows; r++) {
        memcpy(rows + r * stride, p->packed + (ROWS_BEFORE + r) * p->n_words,
               (size_t)p->n_words * sizeof *rows);
        expected[r] = complexity[ROWS_BEFORE + r] - complexity[ROWS_BEFORE + r - 1];
    }
    memcpy(maxima, p->maxima + (ROWS_BEFORE - 1) * p->l, (size_t)p->l * sizeof *maxima);
    memcpy(minima, p->minima + (ROWS_BEFORE - 1) * p->l, (size_t)p->l * sizeof *minima);

    struct sliced_plan *plan = sliced_plan_new(kernel, p->lines, p->m, p->l);
    void *scratch = plan ? sliced_scratch_new(plan) : NULL;
    same_number("plan and scratch", scratch != NULL, 1);
    int64_t *totals = NEW(int64_t, n_rows);
    kernel->scan(plan, scratch, rows, stride, n_rows, maxima, minima, half_range, growth, totals);
    sliced_scratch_free(scratch);
    sliced_plan_free(plan);

    same_numbers("growth", growth, expected, n_rows);
    same_numbers("totals", totals, p->totals + ROWS_BEFORE, n_rows);
    same_numbers("maxima", maxima, p->maxima + last * p->l, p->l);
    same_numbers("minima", minima, p->minima + last * p->l, p->l);
}

static void test_shape(const struct sliced_kernel *kernel, int64_t m, int64_t l, int n_rows)
{
    checking("%s blocks, m = %d, l = %d, %d rows", kernel->name, (int)m, (int)l, n_rows);
    const struct problem p = plain_problem(m, l, ROWS_BEFORE + n_rows, 0);
    for (int half_range = 0; half_range < 2; half_range++)
        test_block(kernel, &p, n_rows, half_range);
    forget();
}

void test_blocks(const struct kernel *row)
{
    const struct sliced_kernel *kernel = sliced_row(row);
    for (int i = 0; i < COUNT_OF_M; i++)
        for (int j = 0; j < COUNT_OF_L; j++) {
            test_shape(kernel, some_m[i], some_l[j], 1 + (int)random_below(kernel->block_rows - 1));
            if (some_m[i] <= 1000)
                test_shape(kernel, some_m[i], some_l[j], kernel->block_rows);
        }
    test_shape(kernel, 4097, 33, kernel->block_rows);
    test_shape(kernel, 6017, 33, 33); /* two tiles of samples */
    test_shape(kernel, 12100, 9, 65 % kernel->block_rows); /* three */
}
