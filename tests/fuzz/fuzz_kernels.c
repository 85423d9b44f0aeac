/* The functions of struct kernel: every row against plain loops over bits. */
#include <string.h>

#include "fuzz.h"

/* Sizes: nearly always small, for the number of cases; now and then past every stride and flush. */
static int64_t some_strips(void) { return one_in(300) ? up_to(60) : up_to(5); }
static int64_t some_words(void) { return one_in(300) ? up_to(400) : up_to(11); }

struct sign_tile random_tile(int64_t n_strips, int64_t n_words, int64_t strip_stride)
{
    const int64_t n_lines = (n_strips - 1) * strip_stride + n_words;
    uint64_t *lines = guarded(SIGNS, (size_t)n_lines * LINE_BYTES, LINE_BYTES);
    random_bits(lines, n_lines * LANES);
    return (struct sign_tile){lines, strip_stride, n_strips, n_words, NULL};
}

int64_t random_stride(int64_t width)
{
    switch (below(8)) {
    case 0: return 0;
    case 1: return -width;
    case 2: return -width - up_to(9);
    case 3: return width + up_to(9);
    default: return width;
    }
}

char *random_rows(enum slot slot, int64_t n_rows, int64_t width, int64_t stride, size_t size,
                  size_t alignment)
{
    const int64_t last = (n_rows > 0 ? n_rows - 1 : 0) * stride;
    const int64_t n_items = (n_rows > 0 ? width : 0) + (last < 0 ? -last : last);
    char *memory = guarded(slot, (size_t)n_items * size, alignment);
    return memory + (last < 0 ? -last : 0) * (int64_t)size;
}

/* What a counting function gets, and what it must make of it. */
struct counting {
    struct sign_tile tile;
    int64_t n_rows, row_stride, counts_stride;
    size_t counts_bytes;
    int64_t *start, *expected;
};

static void random_counting(struct counting *c)
{
    const int64_t n_strips = some_strips(), n_words = some_words();
    c->tile = random_tile(n_strips, n_words, n_words + (one_in(3) ? up_to(5) : 0));
    c->n_rows = one_in(12) ? 90 + up_to(60) : up_to(13) - 1;
    c->counts_stride = n_strips * LANES + (one_in(3) ? up_to(20) : 0);
    const int64_t n_counts =
        c->n_rows ? (c->n_rows - 1) * c->counts_stride + n_strips * LANES : 0;
    c->counts_bytes = (size_t)n_counts * sizeof(int64_t);
    c->start = GUARDED(int64_t, START, n_counts);
    c->expected = GUARDED(int64_t, EXPECTED, n_counts);
    for (int64_t i = 0; i < n_counts; i++)
        c->start[i] = c->expected[i] = below((int64_t)1 << 40);
}

/* Now and then without one, as where a kernel has none. */
static void give_workspace(struct counting *c, const struct kernel *kernel)
{
    const int none = kernel->workspace_bytes == 0 || one_in(4);
    c->tile.workspace = none ? NULL : guarded(WORKSPACE, (size_t)kernel->workspace_bytes, 64);
}

/* What lies between the rows' counts must stay as it is. */
static int64_t *fresh_counts(const struct counting *c)
{
    int64_t *counts = guarded(COUNTS, c->counts_bytes, sizeof(int64_t));
    memcpy(counts, c->start, c->counts_bytes);
    return counts;
}

static void add_ones(int64_t *count, uint64_t word)
{
    for (; word; word &= word - 1)
        ++*count;
}

void try_count_bits(void)
{
    struct counting c;
    random_counting(&c);
    const int64_t n_words = c.tile.n_words;
    c.row_stride = random_stride(n_words);
    uint64_t *rows = (uint64_t *)random_rows(ROWS, c.n_rows, n_words, c.row_stride, 8, 8);
    for (int64_t r = 0; r < c.n_rows; r++)
        random_bits(rows + r * c.row_stride, n_words);
    int64_t *wanted = GUARDED(int64_t, WANTED, c.n_rows);
    for (int64_t r = 0; r < c.n_rows; r++) {
        const uint64_t *row = rows + r * c.row_stride;
        wanted[r] = 12345;
        for (int64_t w = 0; w < n_words; w++) {
            add_ones(&wanted[r], row[w]);
            for (int64_t v = 0; v < c.tile.n_strips * LANES; v++) {
                const int64_t line = v / LANES * c.tile.strip_stride + w;
                add_ones(&c.expected[r * c.counts_stride + v],
                         c.tile.lines[line * LANES + v % LANES] & row[w]);
            }
        }
    }
    const int with_totals = one_in(2);
    int64_t *totals = NULL;
    for (int i = 0; kernel_row(i) != NULL; i++) {
        const struct kernel *kernel = kernel_row(i);
        if (!kernel->supported())
            continue;
        int64_t *counts = fresh_counts(&c);
        if (with_totals)
            totals = GUARDED(int64_t, TOTALS, c.n_rows);
        for (int64_t r = 0; with_totals && r < c.n_rows; r++)
            totals[r] = 12345;
        give_workspace(&c, kernel);
        running("count_bits", kernel->name);
        kernel->count_bits(&c.tile, rows, c.row_stride, c.n_rows, counts, c.counts_stride, totals);
        check_equal(counts, c.expected, c.counts_bytes, "counts");
        if (with_totals)
            check_equal(totals, wanted, (size_t)c.n_rows * sizeof(int64_t), "totals");
    }
}

/* Rows of which some, none or all move an extreme. */
void try_find_moves(void)
{
    struct counting c;
    random_counting(&c);
    const int64_t n_words = c.tile.n_words, n_lanes = c.tile.n_strips * LANES;
    const int first = one_in(2);
    c.row_stride = random_stride(n_words);
    uint64_t *rows = (uint64_t *)random_rows(ROWS, c.n_rows, n_words, c.row_stride, 8, 8);
    for (int64_t r = 0; r < c.n_rows; r++)
        random_bits(rows + r * c.row_stride, n_words);
    int64_t *maxima = GUARDED(int64_t, MAXIMA, n_lanes);
    int64_t *minima = GUARDED(int64_t, MINIMA, n_lanes);
    int64_t *wanted = GUARDED(int64_t, WANTED, c.n_rows);
    uint8_t *wanted_moved = GUARDED(uint8_t, EXPECTED, c.n_rows);
    const int64_t room = up_to(1 + n_words * WORD_BITS), before = one_in(3);
    for (int64_t v = 0; v < n_lanes; v++) {
        maxima[v] = room - below(3);
        minima[v] = below(3) - room;
    }
    for (int64_t r = 0; r < c.n_rows; r++) {
        const uint64_t *row = rows + r * c.row_stride;
        wanted[r] = 0;
        wanted_moved[r] = (uint8_t)before;
        for (int64_t w = 0; w < n_words; w++)
            add_ones(&wanted[r], row[w]);
        for (int64_t v = 0; v < n_lanes; v++) {
            int64_t count = 0;
            for (int64_t w = 0; w < n_words; w++)
                add_ones(&count, row[w] & c.tile.lines[(v / LANES * c.tile.strip_stride + w) *
                                                           LANES + v % LANES]);
            const int64_t sum = 2 * count - wanted[r];
            wanted_moved[r] |= sum > maxima[v] || sum < minima[v];
        }
    }
    for (int i = 0; kernel_row(i) != NULL; i++) {
        const struct kernel *kernel = kernel_row(i);
        if (!kernel->supported() || kernel->find_moves == NULL)
            continue;
        int64_t *totals = GUARDED(int64_t, TOTALS, c.n_rows);
        uint8_t *moved = GUARDED(uint8_t, OUT, c.n_rows);
        for (int64_t r = 0; r < c.n_rows; r++) {
            moved[r] = (uint8_t)before;
            totals[r] = first ? 12345 : wanted[r];
        }
        give_workspace(&c, kernel);
        running("find_moves", kernel->name);
        kernel->find_moves(&c.tile, rows, c.row_stride, c.n_rows, first, totals, maxima, minima,
                           moved);
        check_equal(totals, wanted, (size_t)c.n_rows * sizeof(int64_t), "totals");
        for (int64_t r = 0; r < c.n_rows; r++)
            check(!moved[r] == !wanted_moved[r], "the rows that move an extreme");
    }
}

/* Losses in units of 2^-24: any, the largest, or 0 and 1 alone. */
static void random_units(int32_t *units, int64_t n)
{
    const int64_t kind = below(4);
    for (int64_t i = 0; i < n; i++)
        units[i] = kind < 2    ? (int32_t)below((1 << 24) + 1)
                   : kind == 2 ? 1 << 24
                               : (int32_t)below(2) << 24;
}

void try_count_units(void)
{
    struct counting c;
    random_counting(&c);
    c.n_rows = c.n_rows < 5 ? c.n_rows : 5;
    c.counts_bytes = c.n_rows ? ((size_t)(c.n_rows - 1) * (size_t)c.counts_stride +
                                 (size_t)c.tile.n_strips * LANES) * sizeof(int64_t)
                              : 0;
    const int64_t width = c.tile.n_words * WORD_BITS;
    c.row_stride = random_stride(width);
    int32_t *rows = (int32_t *)random_rows(ROWS, c.n_rows, width, c.row_stride, 4, 4);
    for (int64_t r = 0; r < c.n_rows; r++)
        random_units(rows + r * c.row_stride, width);
    for (int64_t r = 0; r < c.n_rows; r++)
        for (int64_t v = 0; v < c.tile.n_strips * LANES; v++) {
            const uint64_t *lines = c.tile.lines + v / LANES * c.tile.strip_stride * LANES;
            int64_t count = 0;
            for (int64_t w = 0; w < c.tile.n_words; w++) {
                uint64_t sign = lines[w * LANES + v % LANES];
                for (int64_t i = w * WORD_BITS; sign; sign >>= 1, i++)
                    count += sign & 1 ? rows[r * c.row_stride + i] : 0;
            }
            c.expected[r * c.counts_stride + v] += count;
        }
    for (int i = 0; kernel_row(i) != NULL; i++) {
        const struct kernel *kernel = kernel_row(i);
        if (!kernel->supported())
            continue;
        int64_t *counts = fresh_counts(&c);
        give_workspace(&c, kernel);
        running("count_units", kernel->name);
        kernel->count_units(&c.tile, rows, c.row_stride, c.n_rows, counts, c.counts_stride);
        check_equal(counts, c.expected, c.counts_bytes, "counts");
    }
}

void try_raise_extremes(void)
{
    const int64_t n_strips = some_strips(), n = n_strips * LANES;
    const size_t bytes = (size_t)n * sizeof(int64_t);
    const int64_t scale = up_to((int64_t)1 << 60), total = below(scale);
    int64_t *counts = GUARDED(int64_t, COUNTS, n), *start = GUARDED(int64_t, START, 2 * n);
    int64_t *wanted = GUARDED(int64_t, WANTED, 2 * n);
    const int fresh = one_in(4), wide = one_in(3);
    int moved = 0;
    for (int64_t v = 0; v < n; v++) {
        counts[v] = below(total + 1);
        const int64_t sum = 2 * counts[v] - total;
        start[v] = fresh ? INT64_MIN : wide ? scale : sum + below(5) - 2;
        start[n + v] = fresh ? INT64_MAX : wide ? -scale : sum + below(5) - 2;
        wanted[v] = sum > start[v] ? sum : start[v];
        wanted[n + v] = sum < start[n + v] ? sum : start[n + v];
        moved |= wanted[v] != start[v] || wanted[n + v] != start[n + v];
    }
    for (int i = 0; kernel_row(i) != NULL; i++) {
        const struct kernel *kernel = kernel_row(i);
        if (!kernel->supported())
            continue;
        int64_t *maxima = GUARDED(int64_t, MAXIMA, n), *minima = GUARDED(int64_t, MINIMA, n);
        memcpy(maxima, start, bytes);
        memcpy(minima, start + n, bytes);
        running("raise_extremes", kernel->name);
        const int said = kernel->raise_extremes(counts, total, n_strips, maxima, minima);
        check(!said == !moved, "whether an extreme moved");
        check_equal(maxima, wanted, bytes, "maxima");
        check_equal(minima, wanted + n, bytes, "minima");
    }
}

void try_sum_units(void)
{
    const int64_t n_words = some_words() - one_in(20);
    int32_t *units = GUARDED(int32_t, ROWS, n_words * WORD_BITS);
    random_units(units, n_words * WORD_BITS);
    int64_t wanted = 0;
    for (int64_t i = 0; i < n_words * WORD_BITS; i++)
        wanted += units[i];
    for (int i = 0; kernel_row(i) != NULL; i++) {
        if (!kernel_row(i)->supported())
            continue;
        running("sum_units", kernel_row(i)->name);
        check(kernel_row(i)->sum_units(units, n_words) == wanted, "the sum");
    }
}

void try_fill_lines(void)
{
    const uint64_t base = random_word();
    const int64_t n_words = some_words() - one_in(20);
    const int64_t vector = up_to(((int64_t)1 << 23) - LANES) - 1;
    const int64_t word = up_to(((int64_t)1 << 40) - n_words) - 1;
    uint64_t *wanted = GUARDED(uint64_t, WANTED, n_words * LANES);
    for (int64_t w = 0; w < n_words; w++)
        for (int64_t lane = 0; lane < LANES; lane++) {
            const uint64_t counter = ((uint64_t)(vector + lane) << 40) + (uint64_t)(word + w) + 1;
            wanted[w * LANES + lane] = mix64(base + 0x9E3779B97F4A7C15u * counter);
        }
    for (int i = 0; kernel_row(i) != NULL; i++) {
        if (!kernel_row(i)->supported())
            continue;
        uint64_t *lines = guarded(SIGNS, (size_t)n_words * LINE_BYTES, LINE_BYTES);
        running("fill_lines", kernel_row(i)->name);
        kernel_row(i)->fill_lines(base, vector, word, n_words, lines);
        check_equal(lines, wanted, (size_t)n_words * LINE_BYTES, "lines");
    }
}
