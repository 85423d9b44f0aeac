/* scan.h: rows through every instruction set, one way or another, against plain loops. */
#include <pthread.h>
#include <string.h>

#include "harness.h"
#include "scan/scan.h"

/* The gate in units of one loss; a larger total or number of rows asks for it again. */
struct price {
    int64_t budget, per_total;
    int watched; /* whether larger totals are priced anew */
    int64_t n_rows;                   /* answered, that the ranges hold for; then nothing is free */
    struct free_range declared, real;
};

struct scan_case {
    struct sign_store store;
    struct sign_tile signs; /* the same, also if the store generates them */
    struct loss_rows rows;
    int64_t n_rows;
    struct guard_state start;
    struct price price;
    int64_t *totals, *trace; /* what must come out */
    struct guard_state end;
    int64_t stop, bad_sample;
    enum verdict verdict;
};

static void set_price(struct guard_state *state, const struct price *price, int64_t largest)
{
    const int64_t one = (int64_t)1 << state->unit_shift;
    const struct free_range nothing = {-1, INT64_MAX >> UNIT_SHIFT};
    const int is_free = state->n_rows < price->n_rows;
    const struct free_range declared = is_free ? price->declared : nothing;
    const struct free_range real = is_free ? price->real : nothing;
    state->budget = price->budget == INT64_MAX
                        ? INT64_MAX
                        : price->budget * one + largest * price->per_total;
    state->priced = price->watched ? largest : INT64_MAX;
    state->priced_rows = is_free ? price->n_rows : INT64_MAX;
    state->declared = (struct free_range){declared.low * one, declared.high * one};
    state->real = (struct free_range){real.low * one, real.high * one};
}

/* Does what a verdict asks for, as guard.pyx does; false if it asks for nothing. */
static int meet(enum verdict verdict, struct guard_state *state, const struct price *price,
                int64_t row, int64_t *totals, int64_t *trace)
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

/* A row's losses, 0 and 1 or in units; the number read is short if one is not allowed. */
static int64_t read_losses(const struct scan_case *c, int64_t row, int in_units, int32_t *losses)
{
    const int64_t m = c->store.n_samples;
    uint64_t *words = GUARDED(uint64_t, PACKED, c->store.n_words);
    if (in_units)
        return plain_units_row(&c->rows.source, row, losses);
    if (c->rows.packed) {
        const char *bytes = c->rows.packed + row * c->rows.packed_stride;
        memcpy(words, bytes, 8 * (size_t)c->store.n_words);
        plain_losses(words, c->store.n_words * WORD_BITS, losses);
        return plain_total(losses + m, c->store.n_words * WORD_BITS - m) ? m + 1 : m;
    }
    const int64_t read = plain_pack_row(&c->rows.source, row, words);
    plain_losses(words, m, losses);
    return read;
}

static void find_wanted(struct scan_case *c)
{
    struct guard_state *state = &c->end;
    const int64_t m = c->store.n_samples, n_lanes = c->store.n_strips * LANES;
    int32_t *losses = GUARDED(int32_t, ONE_ROW, c->store.n_words * WORD_BITS);
    c->totals = GUARDED(int64_t, WANTED, c->n_rows);
    c->trace = GUARDED(int64_t, WANTED_TRACE, c->n_rows);
    *state = c->start;
    state->maxima = GUARDED(int64_t, EXPECTED, 2 * n_lanes);
    state->minima = state->maxima + n_lanes;
    memcpy(state->maxima, c->start.maxima, (size_t)(2 * n_lanes) * sizeof(int64_t));
    const struct extremes extremes = extremes_of(state);
    c->bad_sample = -1;
    c->verdict = ANSWERED;
    for (c->stop = 0; c->stop < c->n_rows; c->stop++) {
        int in_units = 0;
        int64_t read = read_losses(c, c->stop, 0, losses);
        if (read != m && c->rows.may_be_real) {
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
        const int64_t total = plain_total(losses, m) << shift;
        state->wanted = total > state->priced ? total : state->priced;
        if (total > state->priced || state->n_rows >= state->priced_rows)
            meet(NEEDS_PRICE, state, &c->price, c->stop, c->totals, c->trace);
        state->complexity += plain_widen(&c->signs, losses, m, shift, state->started, &extremes);
        state->started = 1;
        const struct free_range *range = c->rows.may_be_real ? &state->real : &state->declared;
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
    c->signs = random_tile(store->n_strips, store->n_words, store->n_words);
    if (stored)
        store->lines = c->signs.lines;
    for (int64_t s = 0; !stored && s < store->n_strips; s++)
        fill_lines_portable(store->base, store->first_vector + s * LANES, store->first_word,
                            store->n_words,
                            (uint64_t *)c->signs.lines + s * store->n_words * LANES);
}

/* Words, where kernels can read them or at any address. */
static void random_packed(struct scan_case *c)
{
    const int64_t m = c->store.n_samples, n_words = c->store.n_words;
    const size_t size = one_in(2) ? 8 : 1;
    const int64_t width = 8 * n_words / (int64_t)size, stride = random_stride(width);
    char *rows = random_rows(ROWS, c->n_rows, width, stride, size, size);
    packed_as_rows(&c->rows, rows, (ptrdiff_t)(stride * (int64_t)size));
    uint64_t *row = GUARDED(uint64_t, PACKED, n_words);
    for (int64_t r = 0; r < c->n_rows; r++) {
        random_bits(row, n_words);
        if (m % 64 && !one_in(40 * c->n_rows))
            row[n_words - 1] &= ~(~(uint64_t)0 << m % 64);
        memcpy(rows + r * c->rows.packed_stride, row, 8 * (size_t)n_words);
    }
}

static void random_losses(struct scan_case *c, int real)
{
    if (one_in(2)) {
        random_packed(c);
        return;
    }
    random_source(&c->rows.source, c->store.n_samples, c->n_rows, real);
    values_as_rows(&c->rows, NULL);
}

/* A state of a few rows; it may say that there were more. */
static void random_start(struct scan_case *c, int64_t n_rows)
{
    const int64_t n_lanes = c->store.n_strips * LANES, m = c->store.n_samples;
    c->start = (struct guard_state){.maxima = GUARDED(int64_t, START, 2 * n_lanes),
                                    .n_vectors = c->store.n_vectors,
                                    .n_strips = c->store.n_strips,
                                    .half_range = one_in(2)};
    c->start.minima = c->start.maxima + n_lanes;
    const struct extremes extremes = extremes_of(&c->start);
    int32_t *losses = GUARDED(int32_t, ONE_ROW, m);
    for (int64_t seen = n_rows ? up_to(30) : 0; seen > 0; seen--) {
        for (int64_t i = 0; i < m; i++)
            losses[i] = (int32_t)below(2);
        c->start.complexity +=
            plain_widen(&c->signs, losses, m, 0, c->start.started, &extremes);
        c->start.started = 1;
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

/* What one thread works with, in the present set of slots. */
struct memory {
    struct work work;
    struct guard_state state;
    struct chunk chunk;
    struct sliced_memory sliced;
    struct loss_rows rows;
    int64_t first, last;
    enum verdict verdict;
};

static void new_memory(const struct scan_case *c, const struct instruction_set *set,
                       const struct sliced_plan *plan, struct memory *memory)
{
    const int64_t n_lanes = c->store.n_strips * LANES, capacity = up_to(CHUNK_ROWS);
    const int64_t tile_rows = up_to(CHUNK_ROWS), unit_rows = smaller(tile_rows, UNIT_TILE_ROWS);
    const int64_t words = 8 * tile_rows * TILE_WORDS, units = 4 * unit_rows * 64 * UNIT_TILE_WORDS;
    const int has_workspace = set->kernel->workspace_bytes && !one_in(4);
    memory->rows = c->rows;
    memory->rows.packer = set->packer;
    memory->state = c->start;
    memory->state.maxima = GUARDED(int64_t, EXTREMES, 2 * n_lanes);
    memory->state.minima = memory->state.maxima + n_lanes;
    memcpy(memory->state.maxima, c->start.maxima, 2 * (size_t)n_lanes * sizeof(int64_t));
    memory->chunk = (struct chunk){
        .counts = GUARDED(int64_t, COUNTS, capacity * n_lanes),
        .totals = GUARDED(int64_t, TOTALS, capacity),
        .before = GUARDED(int64_t, BEFORE, 2 * n_lanes),
        .tile = guarded(TILE, (size_t)(words > units ? words : units), 64),
        .capacity = (ptrdiff_t)capacity,
        .tile_rows = (ptrdiff_t)tile_rows};
    if (has_workspace)
        memory->chunk.workspace = guarded(WORKSPACE, (size_t)set->kernel->workspace_bytes, 64);
    memory->work = (struct work){set->kernel,    &c->store, &memory->rows, &memory->state,
                                 &memory->chunk, NULL,      NULL,          NULL};
    if (plan == NULL)
        return;
    const int64_t n = set->sliced->block_rows;
    memory->sliced = (struct sliced_memory){
        set->sliced,
        plan,
        sliced_scratch_new(plan),
        GUARDED(int64_t, BLOCK_TOTALS, n),
        GUARDED(int64_t, GROWTH, n),
        c->rows.in_place ? NULL : GUARDED(uint64_t, PACKED, n * c->store.n_words)};
    check(memory->sliced.scratch != NULL, "memory for a scratch");
    memory->work.sliced = &memory->sliced;
}

static void same_extremes(const struct guard_state *got, const struct guard_state *wanted)
{
    const size_t bytes = (size_t)wanted->n_vectors * sizeof(int64_t);
    check(got->started == wanted->started && got->complexity == wanted->complexity,
          "the complexity");
    if (wanted->started) {
        check_equal(got->maxima, wanted->maxima, bytes, "maxima");
        check_equal(got->minima, wanted->minima, bytes, "minima");
    }
}

static void scan_once(struct scan_case *c, const struct instruction_set *set,
                      const struct sliced_plan *plan)
{
    struct memory memory = {.first = 0};
    new_memory(c, set, plan, &memory);
    struct guard_state *state = &memory.state;
    int64_t *totals = GUARDED(int64_t, OUT, c->n_rows), *trace = GUARDED(int64_t, TRACE, c->n_rows);
    memory.work.totals = totals;
    memory.work.trace = trace;
    ptrdiff_t row = 0;
    enum verdict verdict = ANSWERED;
    running(plan ? "scan in blocks" : "scan", set);
    do { /* a few rows at a time, as between two looks at Ctrl-C */
        const int64_t end = plan ? c->n_rows : row + up_to(c->n_rows - row);
        row = scan_rows(&memory.work, row, (ptrdiff_t)end, &verdict);
    } while ((verdict == ANSWERED || meet(verdict, state, &c->price, row, totals, trace)) &&
             row < c->n_rows);
    check(verdict == c->verdict && row == c->stop, "where it stopped and why");
    if (verdict == UNREADABLE && !c->rows.packed)
        check(memory.chunk.bad_sample == c->bad_sample, "the sample that is no loss");
    check_equal(totals, c->totals, (size_t)row * sizeof(int64_t), "totals");
    check_equal(trace, c->trace, (size_t)row * sizeof(int64_t), "complexities");
    check(state->n_rows == c->end.n_rows && state->unit_shift == c->end.unit_shift &&
              state->budget == c->end.budget && state->priced == c->end.priced,
          "the state");
    same_extremes(state, &c->end);
    sliced_scratch_free(memory.sliced.scratch);
}

static struct sliced_plan *new_plan(const struct scan_case *c, const struct instruction_set *set)
{
    struct sliced_plan *plan = sliced_plan_new(set->sliced, c->signs.lines, c->store.n_samples,
                                               c->store.n_vectors);
    check(plan != NULL, "memory for a plan");
    return plan;
}

void try_scan(void)
{
    struct scan_case c = {.n_rows = up_to(60)};
    const int large = one_in(100);
    random_store(&c, size_to(large ? 9000 : 700), size_to(large ? 100 : 40), one_in(2));
    random_losses(&c, one_in(2));
    random_start(&c, one_in(2) ? up_to(2000) : 0);
    random_price(&c);
    for (EACH_SET(set))
        scan_once(&c, set, NULL);
}

void try_blocks(void)
{
    struct scan_case c = {.n_rows = up_to(9) * 128 + up_to(128)};
    random_store(&c, size_to(150), size_to(40), 1);
    random_losses(&c, 0);
    random_start(&c, 400 + up_to(400));
    random_price(&c);
    for (EACH_SET(set)) {
        struct sliced_plan *plan = new_plan(&c, set);
        scan_once(&c, set, plan);
        sliced_plan_free(plan);
    }
}

/* ---- threads: as guard.pyx has them -------------------------------------------------- */

static void *scan_segment(void *argument)
{
    struct memory *memory = argument;
    scan_rows(&memory->work, (ptrdiff_t)memory->first, (ptrdiff_t)memory->last, &memory->verdict);
    return NULL;
}

/* Signs, plan, rows and the array of totals are shared; each thread has all else of its own. */
static void scan_in_threads(const struct scan_case *c, const struct instruction_set *set,
                            const struct sliced_plan *plan)
{
    struct memory segments[N_THREADS] = {{.first = 0}};
    pthread_t threads[N_THREADS];
    int64_t *totals = GUARDED(int64_t, OUT, c->n_rows);
    for (int i = 0; i < N_THREADS; i++) {
        use_slots(1 + i);
        new_memory(c, set, plan, &segments[i]);
        segments[i].first = i * c->n_rows / N_THREADS;
        segments[i].last = (i + 1) * c->n_rows / N_THREADS;
        segments[i].work.totals = totals;
    }
    use_slots(0);
    running(plan ? "blocks, threads" : "threads", set);
    for (int i = 0; i < N_THREADS; i++)
        check(pthread_create(&threads[i], NULL, scan_segment, &segments[i]) == 0, "a new thread");
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; i++) {
        check(segments[i].verdict == ANSWERED, "that all rows are answered");
        if (i > 0)
            merge_state(&segments[0].state, &segments[i].state);
        sliced_scratch_free(segments[i].sliced.scratch);
    }
    check_equal(totals, c->totals, (size_t)c->n_rows * sizeof(int64_t), "totals");
    same_extremes(&segments[0].state, &c->end);
}

void try_threads(void)
{
    const int in_blocks = one_in(2);
    struct scan_case c = {.n_rows = 2000 + up_to(3000), .price = {.budget = INT64_MAX}};
    random_store(&c, size_to(200), size_to(40), in_blocks || one_in(2));
    random_losses(&c, 0);
    random_start(&c, 600);
    set_price(&c.start, &c.price, 0);
    find_wanted(&c);
    for (EACH_SET(set)) {
        struct sliced_plan *plan = in_blocks ? new_plan(&c, set) : NULL;
        if (c.verdict == ANSWERED && c.end.unit_shift == 0)
            scan_in_threads(&c, set, plan);
        sliced_plan_free(plan);
    }
}
