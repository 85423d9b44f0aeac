/* scan_rows: what is answered, where it halts and what state it leaves, whichever way the rows
 * come and the signs are kept. */
#include "scan/scan.h"

#include "check.h"
#include "plain.h"
#include "kernels/sliced.h"

/* Packed words where they lie, or at a word that starts no line; packed bytes at an odd address;
 * values of one byte; singles. */
enum form { WORDS, BYTES, VALUES, SINGLES, N_FORMS };

static const char *const form_names[] = {"words", "bytes", "values", "singles"};

static struct loss_rows rows_of(const struct problem *p, enum form form, const struct packer *packer)
{
    struct loss_rows rows = {.packer = packer};
    const int size = form == SINGLES ? 4 : 1;
    if (form == WORDS) {
        rows.packed_bytes = 8 * p->n_words;
        rows.packed_stride = rows.packed_bytes + 8;
        char *words = memory(p->n_rows * rows.packed_stride, 8);
        for (int64_t r = 0; r < p->n_rows; r++)
            memcpy(words + r * rows.packed_stride, p->packed + r * p->n_words,
                   (size_t)rows.packed_bytes);
        rows.packed = words;
    } else if (form == BYTES) {
        rows.packed_bytes = (ptrdiff_t)(p->m + 7) / 8;
        rows.packed_stride = rows.packed_bytes;
        char *bytes = memory(p->n_rows * rows.packed_stride, 1);
        plain_bytes(p, bytes, rows.packed_stride);
        rows.packed = bytes;
    } else {
        struct source *s = &rows.source;
        char *values = memory(p->n_rows * p->m * size, 1);
        s->kind = form == SINGLES ? VALUE_F32 : VALUE_U8;
        s->stride = size;
        s->row_stride = (ptrdiff_t)p->m * size;
        s->n_samples = p->m;
        if (form == SINGLES)
            s->last.real = 1.0;
        else
            s->last.integer = 1;
        for (int64_t i = 0; i < p->n_rows * p->m; i++) {
            const float single = (float)p->losses[i] * (p->in_units ? 0x1p-24f : 1.0f);
            if (form == SINGLES)
                memcpy(values + 4 * i, &single, sizeof single);
            else
                values[i] = (char)p->losses[i];
        }
        s->values = values;
    }
    return rows;
}

/* What a scan needs besides rows: as much as the longest row, or a chunk, takes. */
static struct chunk new_chunk(const struct kernel *kernel, const struct problem *p)
{
    const int64_t most = kernel->workspace_bytes > 0 ? 150 : 50; /* a chunk may end early */
    const int64_t capacity = p->n_rows < most ? p->n_rows : most;
    const int64_t tile_words = CHUNK_ROWS * TILE_WORDS + UNIT_TILE_ROWS * ROW_TILE_WORDS;
    return (struct chunk){.counts = NEW(int64_t, capacity * p->n_strips * LANES),
                          .totals = NEW(int64_t, capacity),
                          .workspace = memory(kernel->workspace_bytes, 0),
                          .tile = NEW(uint64_t, tile_words),
                          .capacity = (ptrdiff_t)capacity};
}

static struct sliced_memory new_slices(const struct problem *p, const struct kernel *kernel)
{
    struct sliced_memory s = {.kernel = sliced_row(kernel)};
    s.plan = sliced_plan_new(s.kernel, p->lines, p->m, p->l);
    s.scratch = s.plan ? sliced_scratch_new(s.plan) : NULL;
    same_number("plan and scratch", s.scratch != NULL, 1);
    s.growth = NEW(int64_t, block_rows(&s));
    s.totals = NEW(int64_t, block_rows(&s));
    s.before = NEW(int64_t, 2 * p->n_strips * LANES);
    s.packed = NEW(uint64_t, block_rows(&s) * p->n_words);
    return s;
}

/* A gate: n_free rows pass whatever they are, then those up to the budget. */
struct gate {
    int64_t budget;
    int n_free, half_range;
};

/* How one scan goes, against what must come of it. */
struct scan {
    const struct kernel *kernel;
    const struct problem *problem;
    struct loss_rows rows;
    struct sign_store signs;
    const struct sliced_memory *slices;
};

/* Scans as a guard does: prices and units when they are asked for. */
static void test_gate(const struct scan *scan, struct gate gate)
{
    const struct problem *p = scan->problem;
    const int64_t *complexity = gate.half_range ? p->half_range : p->plain;
    int64_t *totals = NEW(int64_t, p->n_rows), *trace = NEW(int64_t, p->n_rows);
    struct chunk chunk = new_chunk(scan->kernel, p);
    const struct free_range all = {0, 0}, nothing = {-1, INT64_MAX};
    struct guard_state state = {.n_vectors = p->l,
                          .n_strips = p->n_strips,
                          .budget = gate.budget,
                          .priced = p->totals[0] - 1, /* it has to ask for a price at once */
                          .priced_rows = gate.n_free ? gate.n_free : INT64_MAX,
                          .declared = gate.n_free ? all : nothing,
                          .real = gate.n_free ? all : nothing,
                          .half_range = gate.half_range};
    state.maxima = NEW(int64_t, 2 * p->n_strips * LANES);
    state.minima = state.maxima + p->n_strips * LANES;

    int64_t halt = 0;
    while (halt < p->n_rows && (complexity[halt] <= gate.budget || halt < gate.n_free))
        halt++;
    ptrdiff_t row = 0;
    enum verdict verdict = NEEDS_PRICE;
    while (verdict == NEEDS_PRICE || verdict == NEEDS_UNITS) {
        row = scan_rows(scan->kernel, &scan->signs, &scan->rows, row, (ptrdiff_t)p->n_rows, &state,
                        &chunk, scan->slices, totals, trace, &verdict);
        if (verdict == NEEDS_UNITS)
            rescale_state(&state);
        if (verdict == NEEDS_PRICE && state.n_rows == gate.n_free) {
            state.declared = state.real = nothing;
            state.priced_rows = INT64_MAX;
        }
        if (verdict == NEEDS_PRICE)
            state.priced = state.wanted + random_below(p->m);
    }
    same_number("verdict", verdict, halt < p->n_rows ? WITHHELD : ANSWERED);
    same_number("row", row, halt);
    same_number("n_rows", state.n_rows, halt);
    const int64_t seen = halt < p->n_rows ? halt : p->n_rows - 1;
    same_number("complexity", state.complexity, complexity[seen]);
    same_numbers("maxima", state.maxima, p->maxima + seen * p->l, p->l);
    same_numbers("minima", state.minima, p->minima + seen * p->l, p->l);
    same_numbers("totals", totals, p->totals, halt);
    same_numbers("trace", trace, complexity, halt);
}

static void test_gates(const struct scan *scan, int n_halts)
{
    const struct problem *p = scan->problem;
    const int64_t halts[] = {p->n_rows / 2, p->n_rows - 1, 0, 1, p->n_rows - 2};
    for (int half_range = 0; half_range < 2; half_range++) {
        const int64_t *complexity = half_range ? p->half_range : p->plain;
        for (int i = 0; i < n_halts; i++)
            for (int less = 0; less < 2; less++)
                test_gate(scan, (struct gate){complexity[halts[i]] - less, 0, half_range});
        const int last = (int)p->n_rows - 1;
        test_gate(scan, (struct gate){-1, last / 2, half_range});
        /* free rows, of them those after the last rise over the budget */
        test_gate(scan, (struct gate){complexity[last] - 1, last, half_range});
    }
}

/* A loss that is none, or a bit past the end, in the last row: nothing of the row is judged. */
static void test_unreadable(struct scan *scan, enum form form)
{
    const struct problem *p = scan->problem;
    const int64_t last = p->n_rows - 1;
    char *end = (char *)scan->rows.packed;
    if (form == VALUES) {
        ((char *)scan->rows.source.values)[p->n_rows * p->m - 1] = 2;
    } else if (p->m % 8) {
        end += last * scan->rows.packed_stride + p->m / 8;
        *end |= (char)0x80;
    } else {
        return;
    }
    struct chunk chunk = new_chunk(scan->kernel, p);
    struct guard_state state = {.n_vectors = p->l,
                          .n_strips = p->n_strips,
                          .budget = INT64_MAX,
                          .priced = INT64_MAX,
                          .priced_rows = INT64_MAX};
    state.maxima = NEW(int64_t, 2 * p->n_strips * LANES);
    state.minima = state.maxima + p->n_strips * LANES;
    enum verdict verdict;
    const ptrdiff_t row =
        scan_rows(scan->kernel, &scan->signs, &scan->rows, 0, (ptrdiff_t)p->n_rows, &state, &chunk,
                  scan->slices, NULL, NULL, &verdict);
    same_number("row", row, last);
    same_number("verdict of a row that is none", verdict, UNREADABLE);
    if (form == VALUES)
        same_number("bad sample", chunk.bad_sample, p->m - 1);
    same_number("n_rows", state.n_rows, last);
}

static void test_shape(const struct kernel *kernel, const struct packer *packer, int64_t m,
                       int64_t l, int64_t n_rows, int real_valued, int in_blocks)
{
    checking("%s, m = %d, l = %d", kernel->name, (int)m, (int)l);
    const struct problem p = plain_problem(m, l, n_rows, real_valued);
    for (enum form form = real_valued ? SINGLES : WORDS; form < N_FORMS; form++)
        for (int stored = in_blocks; stored < 2; stored++) {
            checking("%s scan, %s %s, m = %d, l = %d, %s signs%s", kernel->name,
                     real_valued ? "real-valued" : "binary", form_names[form], (int)m, (int)l,
                     stored ? "stored" : "generated", in_blocks ? ", blocks" : "");
            struct sliced_memory slices = {0};
            struct scan scan = {.kernel = kernel,
                                .problem = &p,
                                .rows = rows_of(&p, form, packer),
                                .signs = {.lines = stored ? p.lines : NULL,
                                          .base = mix64(p.seed + SIGN_GOLDEN),
                                          .n_vectors = l,
                                          .n_strips = p.n_strips,
                                          .n_words = p.n_words,
                                          .n_samples = m}};
            if (in_blocks) {
                slices = new_slices(&p, kernel);
                scan.slices = &slices;
            }
            test_gates(&scan, m > 200 ? 1 : form == WORDS ? 5 : 2); /* what is slow, less often */
            if (form != SINGLES)
                test_unreadable(&scan, form);
            sliced_scratch_free(slices.scratch);
            sliced_plan_free((struct sliced_plan *)slices.plan);
        }
    forget();
}

void test_scan(const struct kernel *kernel, const struct packer *packer)
{
    for (int i = 0; i < COUNT_OF_M; i++)
        for (int j = 0; j < COUNT_OF_L; j++) {
            const int64_t m = some_m[i], l = some_l[j];
            if (m > 200 && j % 3 > 0)
                continue; /* of the slow ones l = 1, 9, 64 will do */
            test_shape(kernel, packer, m, l, m > 200 ? 10 : j % 3 ? 30 : 140, 0, 0);
            test_shape(kernel, packer, m, l, 6, 1, 0);
        }
    /* blocks begin after 512 rows; the last rows are too few for one */
    const int64_t n_rows = 512 + 2 * sliced_row(kernel)->block_rows + 5;
    test_shape(kernel, packer, 65, 33, n_rows, 0, 1);
    test_shape(kernel, packer, 200, 16, n_rows, 0, 1);
}
