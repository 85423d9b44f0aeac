/* The functions of struct kernel: every row of the table against the oracle. */
#include <string.h>

#include "harness.h"

/* Sizes: nearly always small, for the number of cases; now and then past every stride and flush. */
static int64_t some_strips(void) { return one_in(300) ? up_to(60) : up_to(5); }
static int64_t some_words(void) { return one_in(300) ? up_to(400) : up_to(11); }

/* What a counting function gets, and what it must make of it. */
struct counting {
    struct sign_tile tile;
    int64_t n_lanes, n_samples, n_rows, row_stride, counts_stride;
    size_t counts_bytes;
    int64_t *start, *expected, *totals;
    int32_t *losses; /* of one row */
};

static void random_counting(struct counting *c, int64_t most_rows)
{
    const int64_t n_strips = some_strips(), n_words = some_words();
    c->tile = random_tile(n_strips, n_words, n_words + (one_in(3) ? up_to(5) : 0));
    c->n_lanes = n_strips * LANES;
    c->n_samples = n_words * WORD_BITS;
    c->n_rows = one_in(12) ? 90 + up_to(60) : up_to(13) - 1;
    c->n_rows = c->n_rows < most_rows ? c->n_rows : most_rows;
    c->counts_stride = c->n_lanes + (one_in(3) ? up_to(20) : 0);
    const int64_t n_counts = c->n_rows ? (c->n_rows - 1) * c->counts_stride + c->n_lanes : 0;
    c->counts_bytes = (size_t)n_counts * sizeof(int64_t);
    c->start = GUARDED(int64_t, START, n_counts);
    c->expected = GUARDED(int64_t, EXPECTED, n_counts);
    c->totals = GUARDED(int64_t, WANTED, c->n_rows);
    c->losses = GUARDED(int32_t, ONE_ROW, c->n_samples);
    for (int64_t i = 0; i < n_counts; i++)
        c->start[i] = c->expected[i] = below((int64_t)1 << 40);
}

static void expect_counts(struct counting *c, int64_t row, const int32_t *losses)
{
    for (int64_t v = 0; v < c->n_lanes; v++)
        c->expected[row * c->counts_stride + v] +=
            plain_count(&c->tile, v, losses, c->n_samples);
    c->totals[row] = plain_total(losses, c->n_samples);
}

/* Now and then without one, as where a kernel has none. */
static void give_workspace(struct sign_tile *tile, const struct kernel *kernel)
{
    const int none = kernel->workspace_bytes == 0 || one_in(4);
    tile->workspace = none ? NULL : guarded(WORKSPACE, (size_t)kernel->workspace_bytes, 64);
}

/* What lies between the rows' counts must stay as it is. */
static int64_t *fresh_counts(const struct counting *c)
{
    int64_t *counts = guarded(COUNTS, c->counts_bytes, sizeof(int64_t));
    memcpy(counts, c->start, c->counts_bytes);
    return counts;
}

void try_count_bits(void)
{
    struct counting c;
    random_counting(&c, INT64_MAX);
    c.row_stride = random_stride(c.tile.n_words);
    const uint64_t *rows = random_words(c.n_rows, c.n_samples, c.row_stride);
    for (int64_t r = 0; r < c.n_rows; r++) {
        plain_losses(rows + r * c.row_stride, c.n_samples, c.losses);
        expect_counts(&c, r, c.losses);
    }
    const int with_totals = one_in(2);
    for (EACH_SET(set)) {
        int64_t *counts = fresh_counts(&c), *totals = NULL;
        if (with_totals)
            totals = GUARDED(int64_t, TOTALS, c.n_rows);
        for (int64_t r = 0; with_totals && r < c.n_rows; r++)
            totals[r] = r;
        give_workspace(&c.tile, set->kernel);
        running("count_bits", set);
        const struct packed_rows all = {rows, c.row_stride, c.n_rows};
        set->kernel->count_bits(&c.tile, &all, counts, c.counts_stride, totals);
        check_equal(counts, c.expected, c.counts_bytes, "counts");
        for (int64_t r = 0; with_totals && r < c.n_rows; r++)
            check(totals[r] == c.totals[r] + r, "totals");
    }
}

/* Rows of which some, none or all move an extreme, or are too large to. */
void try_widen_extremes(void)
{
    struct counting c;
    random_counting(&c, INT64_MAX);
    const int first = one_in(2);
    const size_t bytes = (size_t)c.n_rows * sizeof(int64_t);
    c.row_stride = random_stride(c.tile.n_words);
    const uint64_t *rows = random_words(c.n_rows, c.n_samples, c.row_stride);
    const int64_t most = one_in(3) ? below(c.n_samples) : INT64_MAX;
    const int64_t room = up_to(c.n_samples), middle = one_in(2) ? 0 : below(2 * room) - room;
    int64_t *maxima = GUARDED(int64_t, START, 2 * c.n_lanes), *minima = maxima + c.n_lanes;
    for (int64_t v = 0; v < c.n_lanes; v++) {
        maxima[v] = middle + room - below(3);
        minima[v] = middle + below(3) - room;
    }
    struct extremes wanted = {.n_vectors = c.n_lanes - below(LANES), .half_range = one_in(2)};
    wanted.maxima = GUARDED(int64_t, OUT, 2 * c.n_lanes);
    wanted.minima = wanted.maxima + c.n_lanes;
    memcpy(wanted.maxima, maxima, 2 * (size_t)c.n_lanes * sizeof(int64_t));
    int64_t *growth = GUARDED(int64_t, EXPECTED, c.n_rows);
    for (int64_t r = 0; r < c.n_rows; r++) {
        plain_losses(rows + r * c.row_stride, c.n_samples, c.losses);
        c.totals[r] = plain_total(c.losses, c.n_samples);
        growth[r] = first ? 0 : r;
        if (c.totals[r] <= most)
            growth[r] += plain_widen(&c.tile, c.losses, c.n_samples, 0, 1, &wanted);
    }
    for (EACH_SET(set)) {
        struct extremes got = wanted;
        got.maxima = GUARDED(int64_t, EXTREMES, 2 * c.n_lanes);
        got.minima = got.maxima + c.n_lanes;
        memcpy(got.maxima, maxima, 2 * (size_t)c.n_lanes * sizeof(int64_t));
        int64_t *totals = GUARDED(int64_t, TOTALS, c.n_rows);
        int64_t *grown = GUARDED(int64_t, GROWTH, c.n_rows);
        for (int64_t r = 0; !first && r < c.n_rows; r++) {
            totals[r] = c.totals[r];
            grown[r] = r;
        }
        give_workspace(&c.tile, set->kernel);
        running("widen_extremes", set);
        const struct packed_rows all = {rows, c.row_stride, c.n_rows};
        const struct widening to = {first, most, &got, totals, grown};
        set->kernel->widen_extremes(&c.tile, &all, &to);
        check_equal(totals, c.totals, bytes, "totals");
        check_equal(grown, growth, bytes, "growth");
        check_equal(got.maxima, wanted.maxima, (size_t)got.n_vectors * sizeof(int64_t), "maxima");
        check_equal(got.minima, wanted.minima, (size_t)got.n_vectors * sizeof(int64_t), "minima");
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
    random_counting(&c, 5);
    c.row_stride = random_stride(c.n_samples);
    int32_t *rows = (int32_t *)random_rows(ROWS, c.n_rows, c.n_samples, c.row_stride, 4, 4);
    for (int64_t r = 0; r < c.n_rows; r++)
        random_units(rows + r * c.row_stride, c.n_samples);
    for (int64_t r = 0; r < c.n_rows; r++)
        expect_counts(&c, r, rows + r * c.row_stride);
    for (EACH_SET(set)) {
        int64_t *counts = fresh_counts(&c);
        give_workspace(&c.tile, set->kernel);
        running("count_units", set);
        set->kernel->count_units(&c.tile, rows, c.row_stride, c.n_rows, counts, c.counts_stride);
        check_equal(counts, c.expected, c.counts_bytes, "counts");
    }
}

void try_raise_extremes(void)
{
    const int64_t n_strips = some_strips(), n = n_strips * LANES;
    const int64_t scale = up_to((int64_t)1 << 60), total = below(scale);
    const size_t bytes = 2 * (size_t)n * sizeof(int64_t);
    int64_t *counts = GUARDED(int64_t, COUNTS, n), *start = GUARDED(int64_t, START, 2 * n);
    int64_t *wanted = GUARDED(int64_t, WANTED, 2 * n);
    const int fresh = one_in(4), wide = one_in(3);
    for (int64_t v = 0; v < n; v++) {
        counts[v] = below(total + 1);
        const int64_t sum = 2 * counts[v] - total;
        start[v] = fresh ? INT64_MIN : wide ? scale : sum + below(5) - 2;
        start[n + v] = fresh ? INT64_MAX : wide ? -scale : sum + below(5) - 2;
        wanted[v] = sum > start[v] ? sum : start[v];
        wanted[n + v] = sum < start[n + v] ? sum : start[n + v];
    }
    for (EACH_SET(set)) {
        int64_t *maxima = GUARDED(int64_t, EXTREMES, 2 * n);
        memcpy(maxima, start, bytes);
        running("raise_extremes", set);
        const int said = set->kernel->raise_extremes(counts, total, n_strips, maxima, maxima + n);
        check(!said == !memcmp(wanted, start, bytes), "whether an extreme moved");
        check_equal(maxima, wanted, bytes, "extremes");
    }
}

void try_sum_units(void)
{
    const int64_t n_words = some_words() - one_in(20);
    int32_t *units = GUARDED(int32_t, ROWS, n_words * WORD_BITS);
    random_units(units, n_words * WORD_BITS);
    const int64_t wanted = plain_total(units, n_words * WORD_BITS);
    for (EACH_SET(set)) {
        running("sum_units", set);
        check(set->kernel->sum_units(units, n_words) == wanted, "the sum");
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
    for (EACH_SET(set)) {
        uint64_t *lines = guarded(SIGNS, (size_t)n_words * LINE_BYTES, LINE_BYTES);
        running("fill_lines", set);
        set->kernel->fill_lines(base, vector, word, n_words, lines);
        check_equal(lines, wanted, (size_t)n_words * LINE_BYTES, "lines");
    }
}

/* SipHash-1-3 as its paper has it, and the ones, a byte at a time. */
static uint64_t plain_sip_hash(const unsigned char *row, int64_t n, const uint64_t key[2],
                               int64_t *ones)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    *ones = 0;
    for (int64_t word = 0; word <= n / 8 + 3; word++) {
        uint64_t taken = 0;
        for (int64_t i = 8 * word; i < 8 * word + 8 && i < n; i++) {
            taken |= (uint64_t)row[i] << 8 * (i % 8);
            for (int bit = 0; bit < 8; bit++)
                *ones += row[i] >> bit & 1;
        }
        if (word == n / 8)
            taken |= (uint64_t)n << 56;
        if (word == n / 8 + 1)
            v[2] ^= 0xff;
        v[3] ^= taken;
        static const int rotations[2][2] = {{13, 16}, {17, 21}};
        for (int half = 0; half < 2; half++) {
            uint64_t *a = &v[2 * half], *c = &v[2 - 2 * half];
            *a += v[1], *c += v[3];
            v[1] = (v[1] << rotations[half][0] | v[1] >> (64 - rotations[half][0])) ^ *a;
            v[3] = (v[3] << rotations[half][1] | v[3] >> (64 - rotations[half][1])) ^ *c;
            *a = *a << 32 | *a >> 32;
        }
        v[0] ^= taken;
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void try_fingerprint_rows(void)
{
    const int64_t n_bytes = up_to(600) - 1, n_rows = up_to(40) - 1, gap = up_to(9) - 1;
    const int64_t stride = n_bytes + gap, counts = below(2);
    const uint64_t key[2] = {random_word(), random_word()};
    unsigned char *rows = GUARDED(unsigned char, ROWS, n_rows ? n_rows * stride - gap : 0);
    for (int64_t i = 0; i < (n_rows ? n_rows * stride - gap : 0); i++)
        rows[i] = (unsigned char)random_word();
    uint64_t *wanted = GUARDED(uint64_t, WANTED, 2 * n_rows);
    for (int64_t row = 0; row < n_rows; row++) {
        int64_t ones;
        wanted[row] = plain_sip_hash(rows + row * stride, n_bytes, key, &ones);
        wanted[n_rows + row] = (uint64_t)ones;
    }
    for (EACH_SET(set)) {
        uint64_t *found = GUARDED(uint64_t, SIGNS, (counts + 1) * n_rows);
        running("fingerprint_rows", set);
        set->fingerprint_rows(rows, stride, n_rows, n_bytes, key, found,
                              counts ? (int64_t *)found + n_rows : NULL);
        check_equal(found, wanted, (size_t)((counts + 1) * n_rows) * sizeof *found, "hashes");
    }
}
