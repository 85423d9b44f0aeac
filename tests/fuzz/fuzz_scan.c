/* scan.h: rows through every kernel, packer and block against a state machine of plain loops. */
#include <string.h>

#include "fuzz.h"
#include "scan/scan.h"
#include "kernels/sliced.h"

/* The budget, in units of one loss, and how it depends on the largest total seen. */
struct price {
    int64_t budget, per_total;
    int watched; /* whether larger totals are priced anew */
    int64_t n_rows;                   /* answered, that the ranges hold for; then nothing is free */
    struct free_range declared, real; /* in units of one loss */
};

struct scan_case {
    struct sign_store store;
    const uint64_t *lines; /* of the store, also if it generates them */
    struct loss_rows rows;
    int64_t n_rows;
    struct guard_state start;
    struct price price;
    int is_real;
    int64_t *totals, *trace; /* what must come out */
    struct guard_state end;
    int64_t stop, bad_sample;
    enum verdict verdict;
};

static void set_price(struct guard_state *state, const struct price *price, int64_t largest)
{
    const int64_t one = (int64_t)1 << state->unit_shift;
    state->budget = price->budget == INT64_MAX
                        ? INT64_MAX
                        : price->budget * one + largest * price->per_total;
    state->priced = price->watched ? largest : INT64_MAX;
    const struct free_range nothing = {-1, INT64_MAX >> UNIT_SHIFT};
    const int is_free = state->n_rows < price->n_rows;
    const struct free_range declared = is_free ? price->declared : nothing;
    const struct free_range real = is_free ? price->real : nothing;
    state->priced_rows = is_free ? price->n_rows : INT64_MAX;
    state->declared = (struct free_range){declared.low * one, declared.high * one};
    state->real = (struct free_range){real.low * one, real.high * one};
}

/* Does what a verdict asks for, as _core.pxi does; false if it asks for nothing. */
static int meet(enum verdict verdict, struct guard_state *state, const struct price *price, int64_t row,
                int64_t *totals, int64_t *trace)
{
    if (verdict == NEEDS_PRICE) {
        set_price(state, price, state->wanted == INT64_MAX ? 0 : state->wanted);
        return 1;
    }
    if (verdict != NEEDS_UNITS)
        return 0;
    const int64_t largest = state->priced == INT64_MAX ? 0 : state->priced << UNIT_SHIFT;
    rescale_state(state);
    set_price(state, price, largest);
    for (int64_t r = 0; r < row; r++) {
        totals[r] <<= UNIT_SHIFT;
        trace[r] <<= UNIT_SHIFT;
    }
    return 1;
}

/* ---- plain loops ------------------------------------------------------------------------- */

static int64_t complexity_of(const struct guard_state *state)
{
    int64_t sum = 0;
    for (int64_t v = 0; v < state->n_vectors; v++)
        sum += state->half_range        ? state->maxima[v] - state->minima[v]
               : state->maxima[v] > 0 ? state->maxima[v]
                                        : 0;
    return sum;
}

/* A row's losses, 0 and 1 or in units; the number read is short if one is not allowed. */
static int64_t read_losses(const struct scan_case *c, int64_t row, int in_units, int32_t *losses)
{
    const int64_t m = c->store.n_samples;
    uint64_t *words = GUARDED(uint64_t, PACKED, c->store.n_words);
    if (in_units)
        return naive_units_row(&c->rows.source, row, losses);
    if (c->rows.packed) {
        const char *bytes = c->rows.packed + row * c->rows.packed_stride;
        for (int64_t i = 0; i < 8 * c->rows.packed_bytes; i++) {
            const int bit = (unsigned char)bytes[i / 8] >> i % 8 & 1;
            if (i >= m && bit)
                return m + 1;
            losses[i] = bit;
        }
        return m;
    }
    const int64_t read = naive_pack_row(&c->rows.source, row, words);
    for (int64_t i = 0; i < m; i++)
        losses[i] = (int32_t)(words[i / 64] >> i % 64 & 1);
    return read;
}

static int64_t sum_of(const struct scan_case *c, int64_t vector, const int32_t *losses)
{
    const uint64_t *words = c->lines + vector / LANES * c->store.n_words * LANES + vector % LANES;
    int64_t sum = 0;
    for (int64_t i = 0; i < c->store.n_samples; i++)
        sum += words[i / 64 * LANES] >> i % 64 & 1 ? losses[i] : -losses[i];
    return sum;
}

static void take_in(const struct scan_case *c, struct guard_state *state, const int32_t *losses,
                    int shift)
{
    for (int64_t v = 0; v < state->n_vectors; v++) {
        const int64_t sum = sum_of(c, v, losses) * ((int64_t)1 << shift);
        if (!state->started || sum > state->maxima[v])
            state->maxima[v] = sum;
        if (!state->started || sum < state->minima[v])
            state->minima[v] = sum;
    }
    for (int64_t v = state->n_vectors; !state->started && v < state->n_strips * LANES; v++)
        state->maxima[v] = state->minima[v] = 0; /* nobody reads them */
    state->started = 1;
    state->complexity = complexity_of(state);
}

static void find_wanted(struct scan_case *c)
{
    struct guard_state *state = &c->end;
    const int64_t m = c->store.n_samples, n_lanes = c->store.n_strips * LANES;
    int32_t *losses = GUARDED(int32_t, OUT, c->store.n_words * WORD_BITS);
    c->totals = GUARDED(int64_t, WANTED, c->n_rows);
    c->trace = GUARDED(int64_t, WANTED_TRACE, c->n_rows);
    *state = c->start;
    state->maxima = GUARDED(int64_t, EXPECTED, 2 * n_lanes);
    state->minima = state->maxima + n_lanes;
    memcpy(state->maxima, c->start.maxima, (size_t)(2 * n_lanes) * sizeof(int64_t));
    c->bad_sample = -1;
    c->verdict = ANSWERED;
    for (c->stop = 0; c->stop < c->n_rows; c->stop++) {
        int in_units = 0;
        int64_t total = 0, read = read_losses(c, c->stop, 0, losses);
        if (read != m && c->is_real) {
            in_units = 1;
            read = read_losses(c, c->stop, 1, losses);
        }
        if (read != m) {
            c->bad_sample = read;
            c->verdict = UNREADABLE;
            return;
        }
        if (in_units && !state->unit_shift)
            meet(NEEDS_UNITS, state, &c->price, c->stop, c->totals, c->trace);
        const int shift = in_units ? 0 : state->unit_shift;
        for (int64_t i = 0; i < m; i++)
            total += (int64_t)losses[i] << shift;
        state->wanted = total > state->priced ? total : state->priced;
        if (total > state->priced || state->n_rows >= state->priced_rows)
            meet(NEEDS_PRICE, state, &c->price, c->stop, c->totals, c->trace);
        take_in(c, state, losses, shift);
        const struct free_range *range = c->is_real ? &state->real : &state->declared;
        if (state->complexity > state->budget && range->low < total && total < range->high) {
            c->verdict = WITHHELD;
            return;
        }
        state->n_rows++;
        c->totals[c->stop] = total;
        c->trace[c->stop] = state->complexity;
    }
}

/* ---- random cases ------------------------------------------------------------------------ */

static void random_store(struct scan_case *c, int64_t n_samples, int64_t n_vectors, int stored)
{
    struct sign_store *store = &c->store;
    *store = (struct sign_store){.base = random_word(),
                                 .first_vector = up_to(1000) - 1,
                                 .first_word = up_to(1000) - 1,
                                 .n_vectors = n_vectors,
                                 .n_strips = (n_vectors + LANES - 1) / LANES,
                                 .n_words = (n_samples + 63) / 64,
                                 .n_samples = n_samples};
    c->lines = random_tile(store->n_strips, store->n_words, store->n_words).lines;
    if (stored)
        store->lines = c->lines;
    for (int64_t s = 0; !stored && s < store->n_strips; s++)
        fill_lines_portable(store->base, store->first_vector + s * LANES, store->first_word,
                            store->n_words, (uint64_t *)c->lines + s * store->n_words * LANES);
}

/* Bits: whole words, or as few bytes as hold them, in any place. */
static void random_packed(struct scan_case *c)
{
    const int64_t m = c->store.n_samples;
    const int words = one_in(2);
    const size_t size = words ? 8 : 1;
    const int64_t width = words ? c->store.n_words : (m + 7) / 8;
    const int64_t stride = random_stride(width);
    char *rows = random_rows(ROWS, c->n_rows, width, stride, size, size);
    c->rows = (struct loss_rows){.packed = rows,
                            .packed_stride = stride * (int64_t)size,
                            .packed_bytes = width * (int64_t)size};
    uint64_t *row = GUARDED(uint64_t, PACKED, c->store.n_words);
    for (int64_t r = 0; r < c->n_rows; r++) {
        random_bits(row, c->store.n_words);
        if (m % 64 && !one_in(40 * c->n_rows))
            row[c->store.n_words - 1] &= ~(~(uint64_t)0 << m % 64);
        memcpy(rows + r * c->rows.packed_stride, row, (size_t)c->rows.packed_bytes);
    }
}

static void random_start(struct scan_case *c, int64_t n_rows)
{
    const int64_t n_lanes = c->store.n_strips * LANES, m = c->store.n_samples;
    c->start = (struct guard_state){.maxima = GUARDED(int64_t, START, 2 * n_lanes),
                              .n_vectors = c->store.n_vectors,
                              .n_strips = c->store.n_strips,
                              .half_range = one_in(2),
                              .still = one_in(2)};
    c->start.minima = c->start.maxima + n_lanes;
    int32_t *losses = GUARDED(int32_t, OUT, m);
    for (int64_t seen = n_rows ? up_to(5) : 0; seen > 0; seen--) {
        for (int64_t i = 0; i < m; i++)
            losses[i] = (int32_t)below(2);
        take_in(c, &c->start, losses, 0);
    }
    c->start.n_rows = n_rows;
}

/* Free of charge first, to know what the rows come to; then a budget that ends at one of them. */
static void random_price(struct scan_case *c)
{
    c->price = (struct price){INT64_MAX, 0, one_in(3), 0, {0, 0}, {0, 0}};
    set_price(&c->start, &c->price, 0);
    find_wanted(c);
    if (c->stop == 0 || one_in(3))
        return;
    c->price.budget = (c->trace[below(c->stop)] >> c->end.unit_shift) - below(2);
    c->price.per_total = c->price.watched ? below(3) - 1 : 0;
    if (one_in(3)) {
        struct free_range *const ranges[] = {&c->price.declared, &c->price.real};
        c->price.n_rows = c->start.n_rows + up_to(c->n_rows);
        for (int i = 0; i < 2; i++) {
            ranges[i]->low = below(c->store.n_samples);
            ranges[i]->high = ranges[i]->low + below(c->store.n_samples);
        }
    }
    set_price(&c->start, &c->price, 0);
    find_wanted(c);
}

/* ---- every way through ------------------------------------------------------------------- */

static void random_chunk(const struct scan_case *c, const struct kernel *kernel,
                         struct chunk *chunk)
{
    const int64_t capacity = up_to(c->n_rows < CHUNK_ROWS ? c->n_rows + 1 : CHUNK_ROWS);
    const int64_t words = 8 * capacity * TILE_WORDS;
    const int64_t units = 4 * (capacity < UNIT_TILE_ROWS ? capacity : UNIT_TILE_ROWS) * 64 * UNIT_TILE_WORDS;
    *chunk = (struct chunk){
        .counts = GUARDED(int64_t, COUNTS, capacity * c->store.n_strips * LANES),
        .totals = GUARDED(int64_t, TOTALS, capacity),
        .workspace = kernel->workspace_bytes == 0 || one_in(4)
                         ? NULL
                         : guarded(WORKSPACE, (size_t)kernel->workspace_bytes, 64),
        .tile = guarded(TILE, (size_t)(words > units ? words : units), 64),
        .capacity = capacity};
}

static void give_slices(const struct scan_case *c, struct sliced_memory *slices)
{
    const int64_t n = slices->kernel->block_rows;
    const int in_place = rows_in_place(&c->rows, c->store.n_words);
    slices->scratch = sliced_scratch_new(slices->plan);
    check(slices->scratch != NULL, "memory for a scratch");
    slices->growth = GUARDED(int64_t, GROWTH, n);
    slices->totals = GUARDED(int64_t, BLOCK_TOTALS, n);
    slices->before = GUARDED(int64_t, BEFORE, 2 * c->store.n_strips * LANES);
    slices->packed = in_place ? NULL : GUARDED(uint64_t, PACKED, n * c->store.n_words);
}

static void scan_once(struct scan_case *c, const struct kernel *kernel,
                      const struct sliced_memory *slices)
{
    const size_t half = (size_t)(c->store.n_strips * LANES);
    const size_t bytes = (size_t)c->store.n_vectors * sizeof(int64_t);
    struct guard_state state = c->start;
    struct chunk chunk;
    int64_t *totals = GUARDED(int64_t, OUT, c->n_rows), *trace = GUARDED(int64_t, TRACE, c->n_rows);
    state.maxima = GUARDED(int64_t, MAXIMA, 2 * half);
    state.minima = state.maxima + half;
    memcpy(state.maxima, c->start.maxima, 2 * half * sizeof(int64_t));
    random_chunk(c, kernel, &chunk);
    int64_t row = 0;
    enum verdict verdict = ANSWERED;
    running(slices ? "scan in blocks" : "scan", kernel->name);
    do { /* a few rows at a time, as between two looks at Ctrl-C */
        const int64_t end = row + up_to(c->n_rows - row);
        row = scan_rows(kernel, &c->store, &c->rows, row, slices ? c->n_rows : end, &state, &chunk,
                        slices, totals, trace, &verdict);
    } while ((verdict == ANSWERED || meet(verdict, &state, &c->price, row, totals, trace)) &&
             row < c->n_rows);
    check(verdict == c->verdict && row == c->stop, "where it stopped and why");
    if (verdict == UNREADABLE && !c->rows.packed)
        check(chunk.bad_sample == c->bad_sample, "the sample that is no loss");
    check_equal(totals, c->totals, (size_t)row * sizeof(int64_t), "totals");
    check_equal(trace, c->trace, (size_t)row * sizeof(int64_t), "complexities");
    check(state.n_rows == c->end.n_rows && state.started == c->end.started &&
              state.unit_shift == c->end.unit_shift && state.complexity == c->end.complexity &&
              state.budget == c->end.budget && state.priced == c->end.priced,
          "the state");
    if (state.started) {
        check_equal(state.maxima, c->end.maxima, bytes, "maxima");
        check_equal(state.minima, c->end.minima, bytes, "minima");
    }
}

static void scan_every_way(struct scan_case *c, int in_blocks)
{
    for (int i = 0; kernel_row(i) != NULL; i++)
        for (int p = 0; packer_row(p) != NULL && (p == 0 || !c->rows.packed); p++) {
            const struct kernel *kernel = kernel_row(i);
            struct sliced_memory slices = {.kernel = sliced_row(kernel)};
            if (!kernel->supported() || !(c->rows.packed || packer_row(p)->supported()))
                continue;
            c->rows.packer = packer_row(p);
            if (!in_blocks) {
                scan_once(c, kernel, NULL);
                continue;
            }
            slices.plan = sliced_plan_new(slices.kernel, c->lines, c->store.n_samples,
                                          c->store.n_vectors);
            check(slices.plan != NULL, "memory for a plan");
            give_slices(c, &slices);
            scan_once(c, kernel, &slices);
            sliced_scratch_free(slices.scratch);
            sliced_plan_free((struct sliced_plan *)slices.plan);
        }
}

void try_scan(void)
{
    struct scan_case c = {.n_rows = up_to(40)};
    const int large = one_in(100);
    random_store(&c, up_to(large ? 9000 : 700), up_to(large ? 100 : 40), one_in(2));
    if (one_in(2)) {
        random_packed(&c);
    } else {
        random_source(&c.rows.source, c.store.n_samples, c.n_rows, one_in(2));
        c.is_real = c.rows.source.kind >= VALUE_F16 && !c.rows.source.labels &&
                    !c.rows.source.label_bits;
    }
    random_start(&c, one_in(2) ? up_to(2000) : 0);
    random_price(&c);
    scan_every_way(&c, 0);
}

void try_blocks(void)
{
    struct scan_case c = {.n_rows = up_to(9) * 128 + up_to(128)};
    random_store(&c, up_to(150), up_to(40), 1);
    if (one_in(2)) {
        random_packed(&c);
    } else {
        random_source(&c.rows.source, c.store.n_samples, c.n_rows, 0);
        c.is_real = c.rows.source.kind >= VALUE_F16 && !c.rows.source.labels &&
                    !c.rows.source.label_bits;
    }
    random_start(&c, 400 + up_to(400));
    random_price(&c);
    scan_every_way(&c, 1);
}
