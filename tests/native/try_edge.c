/* radabound_edge.h: rows through a guard whose storage is torn, damaged, forged or out of order,
 * against plain loops. */
#include <stddef.h>
#include <string.h>

#include "edge/radabound_edge.h"
#include "harness.h"

enum { N_VECTORS = RADABOUND_EDGE_VECTORS, N_ROWS = 6 };

/* ---- the rule, plainly ----------------------------------------------------------------------- */

static int sign_of(uint64_t seed, int vector, int64_t sample)
{
    const uint64_t base = mix64(seed + SIGN_GOLDEN);
    return mix64(sign_counter(base, vector, sample / 64)) >> sample % 64 & 1 ? 1 : -1;
}

static int64_t plain_complexity(const struct radabound_edge_state *state)
{
    int64_t sum = 0;
    for (int v = 0; v < N_VECTORS; v++)
        sum += positive((int64_t)state->maxima[v] - (state->half_range ? state->minima[v] : 0));
    return sum;
}

static int64_t floor_of(int64_t x, int n_bits)
{
    const int64_t unit = (int64_t)1 << n_bits;
    return x / unit - (x % unit < 0);
}

/* The budget of the piece that a count lies in; products wrap where a state is forged. */
static int64_t plain_budget(const struct radabound_edge_state *state)
{
    int i = 0, n_bits = 0;
    while (i + 1 < RADABOUND_EDGE_PIECES && state->budget[i + 1].first <= state->largest)
        i++;
    const struct radabound_edge_piece *piece = &state->budget[i];
    const uint32_t end =
        i + 1 < RADABOUND_EDGE_PIECES ? state->budget[i + 1].first : state->n_samples + 1;
    while ((uint64_t)1 << n_bits <= (uint32_t)(end - piece->first - 1))
        n_bits++;
    int64_t sum = 0;
    for (int j = 3; j-- > 0;) {
        const uint64_t slope = (uint64_t)sum + (uint64_t)(int64_t)piece->slopes[j];
        sum = floor_of((int64_t)(slope * (uint32_t)(state->largest - piece->first)), n_bits);
    }
    sum = floor_of((int64_t)((uint64_t)sum + (uint64_t)piece->base), 16);
    return sum < 0 ? -1 : sum;
}

static int64_t plain_below(const struct radabound_edge_state *state)
{
    const uint64_t k = (uint64_t)state->n_answered + 1;
    int64_t below = 0;
    for (int j = 0; j < RADABOUND_EDGE_STAGES; j++)
        if (k >= (uint64_t)1 << j)
            below = state->below[j];
    return k <= state->n_flat && state->below_flat > below ? state->below_flat : below;
}

/* What the state is after a row; its count. */
static uint32_t plain_judge(struct radabound_edge_state *state, const uint8_t *row)
{
    int64_t total = 0;
    for (int64_t i = 0; i < state->n_samples; i++)
        total += row[i];
    for (int v = 0; v < N_VECTORS; v++) {
        int32_t sum = 0;
        for (int64_t i = 0; i < state->n_samples; i++)
            sum += row[i] ? sign_of(state->seed, v, i) : 0;
        if (state->n_answered == 0 || sum > state->maxima[v])
            state->maxima[v] = sum;
        if (state->n_answered == 0 || sum < state->minima[v])
            state->minima[v] = sum;
    }
    struct radabound_edge_state priced = *state;
    if (total > state->largest)
        priced.largest = (uint32_t)total;
    const int64_t below = plain_below(state);
    const int passes = total < below || state->n_samples - total < below ||
                       plain_complexity(state) <= plain_budget(&priced);
    if (passes && state->n_answered < UINT32_MAX - 1) {
        state->n_answered++;
        state->largest = priced.largest;
    } else {
        state->halted = 1;
    }
    return (uint32_t)total;
}

static void seal(struct radabound_edge_state *state)
{
    uint8_t bytes[sizeof *state];
    uint64_t sum = 0;
    memcpy(state->format, "radedge1", 8);
    memcpy(bytes, state, sizeof *state);
    for (size_t i = 16; i < sizeof *state; i += 8) {
        uint64_t word = 0;
        for (size_t j = 0; j < 8; j++) /* little-endian, whatever the machine */
            word |= (uint64_t)bytes[i + j] << 8 * j;
        sum = mix64(sum ^ word);
    }
    state->checksum = sum;
}

static int is_whole(const struct radabound_edge_state *state)
{
    struct radabound_edge_state sealed = *state;
    seal(&sealed);
    return memcmp(&sealed, state, sizeof sealed) == 0 && state->n_vectors == N_VECTORS &&
           state->n_samples > 0 && state->n_samples < (uint32_t)1 << 31 && state->halted <= 1 &&
           state->largest <= state->n_samples && state->n_answered < UINT32_MAX;
}

/* Whether one guard may have stored both: those of one age are the same. */
static int are_of_one(const struct radabound_edge_state *a, const struct radabound_edge_state *b)
{
    const size_t made_for = offsetof(struct radabound_edge_state, made_for);
    return memcmp(a->made_for, b->made_for,
                  offsetof(struct radabound_edge_state, half_range) - made_for) == 0 &&
           (a->n_answered + a->halted != b->n_answered + b->halted ||
            memcmp(a, b, sizeof *a) == 0);
}

/* ---- a storage that may fail ----------------------------------------------------------------- */

struct medium {
    struct radabound_edge_state *slots; /* two, guarded */
    int refuses;                        /* whether callbacks fail, having done nothing */
    int64_t power;                      /* bytes that are written before it is cut; -1: all */
};

static int read_slot(void *context, int slot, void *bytes)
{
    const struct medium *medium = (const struct medium *)context;
    check(slot == 0 || slot == 1, "a slot that is not there is read");
    if (!medium->refuses)
        memcpy(bytes, &medium->slots[slot], sizeof *medium->slots);
    return medium->refuses;
}

static int write_slot(void *context, int slot, const void *bytes)
{
    struct medium *medium = (struct medium *)context;
    check(slot == 0 || slot == 1, "a slot that is not there is written");
    if (medium->refuses)
        return 1;
    const size_t n = medium->power < 0 ? sizeof *medium->slots : (size_t)medium->power;
    char *to = (char *)&medium->slots[slot];
    if (medium->power >= 0) /* erased first, or half so */
        memset(to, 0xff, sizeof *medium->slots / (size_t)up_to(2));
    memcpy(to, bytes, n);
    return medium->power >= 0;
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void random_state(struct radabound_edge_state *state)
{
    memset(state, 0, sizeof *state);
    state->seed = random_word();
    state->n_vectors = N_VECTORS;
    state->n_samples = (uint32_t)size_to(300);
    state->half_range = (uint32_t)below(2);
    const int64_t most = 2 * N_VECTORS * (int64_t)state->n_samples;
    uint32_t first = 0;
    for (int i = 0; i < RADABOUND_EDGE_PIECES; i++) {
        struct radabound_edge_piece *piece = &state->budget[i];
        piece->first = first;
        piece->base = one_in(8) ? -1 : below(most / 3 + 1) << 16;
        for (int j = 0; j < 3; j++)
            piece->slopes[j] = one_in(2) ? 0 : (int32_t)(random_word() >> (32 + below(32)));
        first += (uint32_t)up_to(state->n_samples / 4 + 2);
        if (first > state->n_samples || one_in(8))
            first = state->n_samples + 1;
    }
    for (int i = 0; i < RADABOUND_EDGE_STAGES; i++)
        state->below[i] = (uint32_t)below(state->n_samples + 2) / (uint32_t)up_to(4);
    state->n_flat = (uint32_t)below(N_ROWS + 1);
    state->below_flat = (uint32_t)below(state->n_samples + 2);
    seal(state);
}

/* Random losses, by bytes of one loss each. */
static void random_row(uint8_t *row, int64_t n)
{
    const int64_t rare = up_to(8);
    const int some = one_in(2);
    for (int64_t i = 0; i < n; i++)
        row[i] = one_in(rare) ? (uint8_t)some : (uint8_t)!some;
}

/* Pushes the losses in pieces of random sizes, and asks for what is not allowed in between. */
static void push_row(struct radabound_edge *guard, const uint8_t *row, uint32_t n)
{
    for (uint32_t done = 0; done < n;) {
        const uint32_t piece = (uint32_t)up_to(n - done);
        const uint32_t n_bytes = (piece + 7) / 8;
        uint8_t *bits = GUARDED(uint8_t, ROWS, n_bytes);
        if (one_in(4)) {
            check(radabound_edge_push(guard, 2 + (uint32_t)random_word() / 2) ==
                      RADABOUND_EDGE_BAD_LOSS,
                  "a loss that is none");
            check(radabound_edge_push_bits(guard, bits, guard->state.n_samples - guard->n_pushed + 1) ==
                      RADABOUND_EDGE_TOO_MANY,
                  "more losses than are left");
        }
        if (piece == 1 && one_in(2)) {
            check(radabound_edge_push(guard, row[done]) == RADABOUND_EDGE_OK, "push");
            done++;
            continue;
        }
        memset(bits, 0, n_bytes);
        for (uint32_t i = 0; i < piece; i++)
            bits[i / 8] |= (uint8_t)(row[done + i] << i % 8);
        if (piece % 8 && one_in(4)) {
            bits[n_bytes - 1] |= 0x80;
            check(radabound_edge_push_bits(guard, bits, piece) == RADABOUND_EDGE_BAD_LOSS,
                  "a bit past the last loss");
            bits[n_bytes - 1] &= 0x7f;
        }
        check(radabound_edge_push_bits(guard, bits, piece) == RADABOUND_EDGE_OK, "push_bits");
        done += piece;
    }
}

/* Rows, resets, and writes that are cut: what was shown is what plain loops say, once each. */
static void try_rows(struct medium *medium)
{
    struct radabound_edge *guard = GUARDED(struct radabound_edge, OUT, 1);
    const struct radabound_edge_storage storage = {read_slot, write_slot, medium};
    uint8_t row[512];
    random_state(&medium->slots[0]);
    medium->slots[1] = medium->slots[0];
    check(radabound_edge_init(guard, &storage) == RADABOUND_EDGE_OK, "init");
    for (int r = 0; r < N_ROWS; r++) {
        const struct radabound_edge_state before = guard->state;
        struct radabound_edge_state after = before;
        uint32_t count = 7;
        random_row(row, before.n_samples);
        if (before.halted) {
            check(radabound_edge_push(guard, 0) == RADABOUND_EDGE_HALTED &&
                      radabound_edge_finish(guard, &count) == RADABOUND_EDGE_HALTED && count == 0,
                  "a guard that has halted");
        } else {
            if (one_in(4)) {
                const uint32_t part = (uint32_t)below(before.n_samples);
                push_row(guard, row, part);
                check(radabound_edge_finish(guard, &count) == RADABOUND_EDGE_TOO_FEW && count == 0,
                      "a row that was cut short");
                check_equal(&guard->state, &before, sizeof before, "its state");
            }
            push_row(guard, row, before.n_samples);
            const uint32_t wanted = plain_judge(&after, row);
            seal(&after);
            medium->power = one_in(3) ? below(sizeof before + 1) : -1;
            const enum radabound_edge_result result = radabound_edge_finish(guard, &count);
            const int cut = medium->power >= 0;
            medium->power = -1;
            check(result == (cut            ? RADABOUND_EDGE_STORAGE
                             : after.halted ? RADABOUND_EDGE_HALTED
                                            : RADABOUND_EDGE_OK),
                  "the verdict");
            check(count == (result == RADABOUND_EDGE_OK ? wanted : 0), "the count");
            check_equal(&guard->state, &after, sizeof after, "the state");
            check(radabound_edge_complexity(guard) == plain_complexity(&after), "the complexity");
            check(radabound_edge_budget(guard) == plain_budget(&after), "the budget");
            uint32_t left = guard->total | guard->halves[0] | guard->halves[1];
            for (int v = 0; v < N_VECTORS; v++)
                left |= guard->counts[v];
            check(left == 0, "nothing of a row is left");
            if (cut)
                check(radabound_edge_push(guard, 0) == RADABOUND_EDGE_NOT_READY, "not ready");
        }
        if (one_in(3) || !guard->ready) { /* a reset */
            memset(guard, 0x5a, sizeof *guard);
            check(radabound_edge_init(guard, &storage) == RADABOUND_EDGE_OK, "init again");
            check(memcmp(&guard->state, &before, sizeof before) == 0 ||
                      memcmp(&guard->state, &after, sizeof after) == 0,
                  "a row counts whole or not at all");
        }
    }
}

/* Slots that are damaged, forged or rubbish: the newer of those that are whole, or none. */
static void try_slots(struct medium *medium)
{
    struct radabound_edge *guard = GUARDED(struct radabound_edge, OUT, 1);
    const struct radabound_edge_storage storage = {read_slot, write_slot, medium};
    const struct radabound_edge_state *wanted = NULL;
    struct radabound_edge_state made;
    int others = 0, strangers = 0;
    random_state(&made);
    for (int slot = 0; slot < 2; slot++) {
        struct radabound_edge_state *state = &medium->slots[slot];
        *state = made;
        if (one_in(8)) /* another guard's, perhaps of the same seed */
            random_state(state);
        if (one_in(2))
            state->seed = made.seed;
        state->n_answered = one_in(2) ? (uint32_t)random_word() : (uint32_t)below(3);
        state->halted = (uint32_t)below(2);
        if (one_in(3)) /* forged: numbers that nobody would store */
            for (int64_t n = up_to(8); n > 0; n--)
                ((uint8_t *)state)[16 + below(sizeof *state - 16)] = (uint8_t)random_word();
        if (one_in(6)) /* where counters end */
            state->n_answered = UINT32_MAX - (uint32_t)below(4);
        if (one_in(6))
            state->n_samples = ((uint32_t)below(2) << 31) - (uint32_t)below(2);
        if (one_in(6))
            state->n_vectors = (uint32_t)random_word();
        if (!one_in(8))
            seal(state);
        if (one_in(4))
            ((uint8_t *)state)[below(sizeof *state)] ^= (uint8_t)(1 << below(8));
        if (one_in(8))
            random_bits((uint64_t *)state, sizeof *state / 8);
        strangers |= wanted != NULL && is_whole(state) && !are_of_one(state, wanted);
        if (is_whole(state) && (wanted == NULL || state->n_answered + state->halted >
                                                      wanted->n_answered + wanted->halted))
            wanted = state;
        others |= memcmp(state->format, "radedge1", 8) == 0 && state->n_vectors != N_VECTORS;
    }
    medium->refuses = one_in(8);
    memset(guard, 0, sizeof *guard);
    const enum radabound_edge_result result = radabound_edge_init(guard, &storage);
    check(result == (medium->refuses   ? RADABOUND_EDGE_STORAGE
                     : strangers       ? RADABOUND_EDGE_OTHER_STATE
                     : wanted != NULL  ? RADABOUND_EDGE_OK
                     : others          ? RADABOUND_EDGE_OTHER_STATE
                                       : RADABOUND_EDGE_NO_STATE),
          "which state is read");
    medium->refuses = 0;
    uint8_t bits[64] = {0};
    uint32_t count;
    if (result != RADABOUND_EDGE_OK) {
        check(radabound_edge_push(guard, 0) == RADABOUND_EDGE_NOT_READY &&
                  radabound_edge_finish(guard, &count) == RADABOUND_EDGE_NOT_READY,
              "no guard without a state");
        return;
    }
    check_equal(&guard->state, wanted, sizeof *wanted, "the state that is read");
    if (guard->state.n_samples > 512 || guard->state.halted)
        return;
    struct radabound_edge_state after = guard->state;
    uint8_t row[512] = {0};
    for (uint32_t i = 0; i < after.n_samples; i++) {
        row[i] = (uint8_t)below(2);
        bits[i / 8] |= (uint8_t)(row[i] << i % 8);
    }
    check(radabound_edge_push_bits(guard, bits, after.n_samples) == RADABOUND_EDGE_OK, "a row");
    plain_judge(&after, row);
    seal(&after);
    const struct radabound_edge_state before = *wanted;
    radabound_edge_finish(guard, &count);
    check_equal(&guard->state, &after, sizeof after, "the state after a row");
    int kept = 0, stored = 0;
    for (int slot = 0; slot < 2; slot++) {
        kept |= memcmp(&medium->slots[slot], &before, sizeof before) == 0;
        stored |= memcmp(&medium->slots[slot], &after, sizeof after) == 0;
    }
    check(kept && stored, "a row is written over the older slot");
}

void try_edge(void)
{
    struct medium medium = {GUARDED(struct radabound_edge_state, SCRATCH, 2), 0, -1};
    const struct instruction_set *last = NULL; /* plain C: the last row of the table */
    for (EACH_SET(set))
        last = set;
    running("radabound_edge", last);
    if (one_in(2))
        try_rows(&medium);
    else
        try_slots(&medium);
}
