/* struct kernel, function by function: any strides, rows at any word, canaries in the gaps. */
#include <string.h>

#include "check.h"
#include "plain.h"
#include "kernels/signed_sums.h"

enum {
    FEW_ROWS = 5,    /* one more than a kernel takes together that does without a workspace, */
    MANY_ROWS = 133, /* several squares of one that needs it, and some rows more */
};

static int64_t rows_for(const struct kernel *kernel)
{
    return kernel->workspace_bytes > 0 ? MANY_ROWS : FEW_ROWS;
}

/* A problem's signs and rows with gaps, and counts to add to; the gaps must stay as they are. */
struct layout {
    struct sign_tile signs;
    ptrdiff_t row_stride, counts_stride, n_counts;
    int64_t *counts, *expected;
};

static struct layout lay_out(const struct kernel *kernel, const struct problem *p, ptrdiff_t gap)
{
    struct layout x = {.signs = {.strip_stride = p->n_words + gap,
                                 .n_strips = p->n_strips,
                                 .n_words = p->n_words,
                                 .workspace = memory(kernel->workspace_bytes, 0)},
                       .row_stride = p->n_words + gap,
                       .counts_stride = p->n_strips * LANES + gap};
    uint64_t *lines = NEW(uint64_t, p->n_strips * x.signs.strip_stride * LANES);
    for (ptrdiff_t s = 0; s < p->n_strips; s++)
        memcpy(lines + s * x.signs.strip_stride * LANES, p->lines + s * p->n_words * LANES,
               (size_t)(p->n_words * LANES) * sizeof *lines);
    x.signs.lines = lines;
    x.n_counts = p->n_rows * x.counts_stride;
    x.counts = memory(x.n_counts * 8, 8 * (gap != 0));
    x.expected = NEW(int64_t, x.n_counts);
    for (ptrdiff_t i = 0; i < x.n_counts; i++)
        x.expected[i] = x.counts[i] = (int64_t)(random_bits() >> 4);
    for (ptrdiff_t r = 0; r < p->n_rows; r++)
        for (ptrdiff_t v = 0; v < p->n_strips * LANES; v++)
            x.expected[r * x.counts_stride + v] += p->counts[r * p->n_strips * LANES + v];
    return x;
}

static void test_bits(const struct kernel *kernel, const struct problem *p, ptrdiff_t gap)
{
    struct layout x = lay_out(kernel, p, gap);
    uint64_t *rows = memory(p->n_rows * x.row_stride * 8, gap ? 8 : 0);
    for (ptrdiff_t r = 0; r < p->n_rows; r++)
        memcpy(rows + r * x.row_stride, p->packed + r * p->n_words, (size_t)p->n_words * 8);
    int64_t *totals = gap ? NEW(int64_t, p->n_rows) : NULL;
    kernel->count_bits(&x.signs, rows, x.row_stride, p->n_rows, x.counts, x.counts_stride, totals);
    same_numbers("count_bits", x.counts, x.expected, x.n_counts);
    if (totals)
        same_numbers("totals", totals, p->totals, p->n_rows);
}

static void test_units(const struct kernel *kernel, const struct problem *p, ptrdiff_t gap)
{
    struct layout x = lay_out(kernel, p, gap);
    const ptrdiff_t stride = p->n_words * WORD_BITS + gap;
    int32_t *rows = memory(p->n_rows * stride * 4, gap ? 4 : 0);
    for (ptrdiff_t r = 0; r < p->n_rows; r++)
        memcpy(rows + r * stride, p->losses + r * p->m, (size_t)p->m * sizeof *rows);
    kernel->count_units(&x.signs, rows, stride, p->n_rows, x.counts, x.counts_stride);
    same_numbers("count_units", x.counts, x.expected, x.n_counts);
    for (ptrdiff_t r = 0; r < p->n_rows; r++)
        same_number("sum_units", kernel->sum_units(rows + r * stride, p->n_words), p->totals[r]);
}

/* The extremes of all rows but one, here and there a little further out. */
static void test_moves(const struct kernel *kernel, const struct problem *p, ptrdiff_t gap)
{
    const ptrdiff_t n = p->n_strips * LANES;
    const struct layout x = lay_out(kernel, p, gap);
    uint64_t *rows = memory(p->n_rows * x.row_stride * 8, gap ? 8 : 0);
    int64_t *maxima = memory(n * 8, 8), *minima = memory(n * 8, 8), totals[MANY_ROWS] = {0};
    uint8_t moved[MANY_ROWS] = {0};
    for (ptrdiff_t r = 0; r < p->n_rows; r++)
        memcpy(rows + r * x.row_stride, p->packed + r * p->n_words, (size_t)p->n_words * 8);
    for (ptrdiff_t v = 0; v < n; v++) {
        maxima[v] = -p->m;
        minima[v] = p->m;
        for (ptrdiff_t r = 1; r < p->n_rows; r++) {
            const int64_t sum = 2 * p->counts[r * n + v] - p->totals[r];
            maxima[v] = sum > maxima[v] ? sum : maxima[v];
            minima[v] = sum < minima[v] ? sum : minima[v];
        }
        maxima[v] += random_below(2) - (random_below(2 * n) == 0);
        minima[v] -= random_below(2) - (random_below(2 * n) == 0);
    }
    kernel->find_moves(&x.signs, rows, x.row_stride, p->n_rows, 1, totals, maxima, minima, moved);
    same_numbers("totals", totals, p->totals, p->n_rows);
    for (ptrdiff_t r = 0; r < p->n_rows; r++) {
        int expected = 0;
        for (ptrdiff_t v = 0; v < n; v++) {
            const int64_t sum = 2 * p->counts[r * n + v] - p->totals[r];
            expected |= sum > maxima[v] || sum < minima[v];
        }
        same_number("find_moves", moved[r], expected);
    }
}

static void test_extremes(const struct kernel *kernel, const struct problem *p)
{
    const ptrdiff_t n = p->n_strips * LANES;
    int64_t *counts = memory(n * 8, 8), *maxima = memory(n * 8, 8), *minima = memory(n * 8, 8);
    int64_t *highest = NEW(int64_t, n), *lowest = NEW(int64_t, n);
    for (int repeat = 0; repeat < 20; repeat++) {
        const int64_t total = (int64_t)(random_bits() >> (2 + repeat)); /* to 2^62 and less */
        int moved = 0;
        for (ptrdiff_t v = 0; v < n; v++) {
            counts[v] = random_below(total + 1);
            const int64_t sum = 2 * counts[v] - total, far = random_below(total + 1);
            /* below, at and above the sum, so that about every other time nothing moves */
            highest[v] = maxima[v] = repeat % 2 ? sum + far * (far % 3 > 0) : -far;
            lowest[v] = minima[v] = repeat % 4 ? sum - far * (far % 2) : far - total;
            moved |= sum > highest[v] || sum < lowest[v];
            highest[v] = sum > highest[v] ? sum : highest[v];
            lowest[v] = sum < lowest[v] ? sum : lowest[v];
        }
        same_number("raise_extremes",
                    kernel->raise_extremes(counts, total, p->n_strips, maxima, minima) != 0,
                    moved);
        same_numbers("maxima", maxima, highest, n);
        same_numbers("minima", minima, lowest, n);
    }
}

/* Every sign +1 and every loss as large as can be: whatever is added up in few bits is full. */
static void test_fullest(const struct kernel *kernel, ptrdiff_t n_words, ptrdiff_t n_strips)
{
    const ptrdiff_t n = n_strips * LANES, n_losses = n_words * WORD_BITS, n_rows = rows_for(kernel);
    const int32_t largest = 1 << 24;
    uint64_t *lines = NEW(uint64_t, n_words * n), *rows = NEW(uint64_t, n_rows * n_words);
    int32_t *units = NEW(int32_t, n_rows * n_losses);
    const struct sign_tile signs = {lines, n_words, n_strips, n_words,
                                    memory(kernel->workspace_bytes, 0)};
    memset(lines, 0xff, (size_t)(n_words * n) * sizeof *lines);
    memset(rows, 0xff, (size_t)(n_rows * n_words) * sizeof *rows);
    for (ptrdiff_t i = 0; i < n_rows * n_losses; i++)
        units[i] = largest;
    for (int in_units = 0; in_units < 2; in_units++) {
        int64_t *counts = NEW(int64_t, n_rows * n), *expected = NEW(int64_t, n_rows * n);
        for (ptrdiff_t i = 0; i < n_rows * n; i++)
            expected[i] = in_units ? n_losses * (int64_t)largest : n_losses;
        if (in_units)
            kernel->count_units(&signs, units, n_losses, n_rows, counts, n);
        else
            kernel->count_bits(&signs, rows, n_words, n_rows, counts, n, NULL);
        same_numbers(in_units ? "largest units" : "all ones", counts, expected, n_rows * n);
    }
    same_number("sum_units", kernel->sum_units(units, n_words), n_losses * (int64_t)largest);
    forget();
}

static void test_signs(const struct kernel *kernel)
{
    static const struct {
        uint64_t seed;
        int64_t vector, word;
        uint64_t value;
    } known[] = {
        {0, 0, 0, 0xa706dd2f4d197e6f},
        {0, 0, 1, 0xb382a305f4414f5e},
        {0, 1, 0, 0x249a9fa92118613f},
        {1, 0, 0, 0x5e41ab087439611e},
        {42, 31, 62, 0x5bc92f8a45b36776},
        {UINT64_MAX, 1023, 1 << 20, 0xa88f8c94e93394e2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint64_t *lines = NEW(uint64_t, LANES), expected[LANES];
        kernel->fill_lines(mix64(known[i].seed + SIGN_GOLDEN), known[i].vector, known[i].word, 1,
                           lines);
        same_words("known sign word", lines, &known[i].value, 1);
        for (int lane = 0; lane < LANES; lane++)
            expected[lane] =
                plain_sign_word(known[i].seed, known[i].vector + lane, known[i].word);
        same_words("fill_lines", lines, expected, LANES);
    }
    forget();
}

void test_counts(const struct kernel *kernel)
{
    checking("%s, known signs", kernel->name);
    test_signs(kernel);
    for (int i = 0; i < COUNT_OF_M; i++)
        for (int j = 0; j < COUNT_OF_L; j++) {
            const int64_t m = some_m[i], l = some_l[j];
            checking("%s, m = %d, l = %d", kernel->name, (int)m, (int)l);
            const struct problem bits = plain_problem(m, l, rows_for(kernel), 0);
            uint64_t *lines = NEW(uint64_t, bits.n_words * LANES);
            for (ptrdiff_t s = 0; s < bits.n_strips; s++) {
                kernel->fill_lines(mix64(bits.seed + SIGN_GOLDEN), s * LANES, 0, bits.n_words,
                                   lines);
                same_words("fill_lines", lines, bits.lines + s * bits.n_words * LANES,
                           bits.n_words * LANES);
            }
            test_bits(kernel, &bits, 0);
            test_bits(kernel, &bits, 3);
            if (kernel->find_moves) {
                test_moves(kernel, &bits, 0);
                test_moves(kernel, &bits, 3);
            }
            test_extremes(kernel, &bits);
            forget();
            const struct problem units = plain_problem(m, l, rows_for(kernel), 1);
            test_units(kernel, &units, 0);
            test_units(kernel, &units, 3);
            forget();
            test_fullest(kernel, bits.n_words, bits.n_strips);
        }
}
