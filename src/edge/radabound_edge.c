#include "radabound_edge.h"

#include <stddef.h>

#include "kernels/sign_stream.h"

#define BYTE_BITS 8u
#define HALF_BITS 32u
#define WORD_BITS 64u
#define WORD_BYTES 8
#define HEAD_BYTES 16 /* what the checksum does not cover */
#define MADE_BYTES ((int)offsetof(struct radabound_edge_state, half_range)) /* no row changes */
#define N_SLOTS 2
#define FRACTION_BITS 16u
#define SIGN_BIT ((uint64_t)1 << 63)

RB_ASSERT_THAT(a_state_has_no_padding,
               sizeof(struct radabound_edge_state) == 752 + 8 * RADABOUND_EDGE_VECTORS);

/* ---- signed counts ----------------------------------------------------------------------- */

/* Ones in two halves of a word: sideways addition, in registers of 32 bits. */
static uint32_t count_ones(uint32_t a, uint32_t b)
{
    a -= (a >> 1) & 0x55555555u;
    b -= (b >> 1) & 0x55555555u;
    a = (a & 0x33333333u) + ((a >> 2) & 0x33333333u);
    a += (b & 0x33333333u) + ((b >> 2) & 0x33333333u); /* at most 8 in each four bits */
    a = (a & 0x0f0f0f0fu) + ((a >> 4) & 0x0f0f0f0fu);
    return (a * 0x01010101u) >> 24;
}

/* Counts the word in hand under every sign vector. */
static void count_word(struct radabound_edge *guard)
{
    const uint32_t low = guard->halves[0];
    const uint32_t high = guard->halves[1];
    const uint32_t word = (guard->n_pushed - 1u) / WORD_BITS;
    uint64_t counter = sign_counter(guard->base, 0, (int64_t)word);
    for (int v = 0; v < RADABOUND_EDGE_VECTORS; v++) {
        const uint64_t signs = mix64(counter);
        guard->counts[v] +=
            count_ones((uint32_t)signs & low, (uint32_t)(signs >> HALF_BITS) & high);
        counter += SIGN_GOLDEN * SIGN_VECTOR_STEP;
    }
    guard->total += count_ones(low, high);
    guard->halves[0] = 0;
    guard->halves[1] = 0;
}

static void start_row(struct radabound_edge *guard)
{
    guard->n_pushed = 0;
    guard->total = 0;
    guard->halves[0] = 0;
    guard->halves[1] = 0;
    for (int v = 0; v < RADABOUND_EDGE_VECTORS; v++)
        guard->counts[v] = 0;
}

/* ---- the rule ---------------------------------------------------------------------------- */

int radabound_edge_halted(const struct radabound_edge *guard)
{
    return (guard->ready != 0u) && (guard->state.halted != 0u);
}

int64_t radabound_edge_complexity(const struct radabound_edge *guard)
{
    const struct radabound_edge_state *state = &guard->state;
    int64_t sum = 0;
    for (int v = 0; v < RADABOUND_EDGE_VECTORS; v++) {
        const int64_t high = state->maxima[v];
        const int64_t low = state->half_range != 0u ? state->minima[v] : 0;
        sum += high > low ? high - low : 0;
    }
    return sum;
}

/* floor(x / 2^n) of a number in two's complement: to shift a negative one is up to the compiler. */
static uint64_t shifted(uint64_t x, uint32_t n)
{
    return ((x + SIGN_BIT) >> n) - (SIGN_BIT >> n);
}

/* What the complexity may come up to if that is the largest count. */
static int64_t budget_at(const struct radabound_edge_state *state, uint32_t largest)
{
    const struct radabound_edge_piece *piece = &state->budget[0];
    uint32_t end = state->n_samples + 1u;
    for (int i = 1; i < RADABOUND_EDGE_PIECES; i++) {
        if (state->budget[i].first > largest) {
            end = state->budget[i].first;
            break;
        }
        piece = &state->budget[i];
    }
    uint32_t n_bits = 0; /* of the places in the piece */
    for (uint32_t last = end - piece->first - 1u; last != 0u; last >>= 1)
        n_bits++;
    const uint32_t place = largest - piece->first;
    uint64_t sum = 0; /* whatever was forged, it wraps */
    for (int i = 2; i >= 0; i--)
        sum = shifted((sum + (uint64_t)(int64_t)piece->slopes[i]) * place, n_bits);
    sum = shifted(sum + (uint64_t)piece->base, FRACTION_BITS);
    return sum < SIGN_BIT ? (int64_t)sum : -1;
}

int64_t radabound_edge_budget(const struct radabound_edge *guard)
{
    return budget_at(&guard->state, guard->state.largest);
}

/* Whether a row of the total needs no signs. */
static int is_free(const struct radabound_edge_state *state, uint32_t total)
{
    int stage = 0;
    for (uint32_t k = state->n_answered + 1u; k > 1u; k >>= 1)
        stage++;
    uint32_t below = state->below[stage];
    if ((state->n_answered < state->n_flat) && (below < state->below_flat))
        below = state->below_flat;
    return (total < below) || (state->n_samples - total < below);
}

/* Takes the row that was counted into the state. */
static void judge_row(struct radabound_edge *guard)
{
    struct radabound_edge_state *state = &guard->state;
    const uint32_t total = guard->total;
    for (int v = 0; v < RADABOUND_EDGE_VECTORS; v++) {
        const uint32_t plus = guard->counts[v];
        const uint32_t minus = total - plus;
        const int32_t sum = (int32_t)plus - (int32_t)minus;
        if ((state->n_answered == 0u) || (sum > state->maxima[v]))
            state->maxima[v] = sum;
        if ((state->n_answered == 0u) || (sum < state->minima[v]))
            state->minima[v] = sum;
    }
    const uint32_t largest = total > state->largest ? total : state->largest;
    const int64_t budget = budget_at(state, largest);
    if ((state->n_answered < UINT32_MAX - 1u) &&
        (is_free(state, total) || (radabound_edge_complexity(guard) <= budget))) {
        state->n_answered++;
        state->largest = largest;
    } else {
        state->halted = 1; /* largest stays as it was: it would tell the withheld count */
    }
}

/* ---- the state --------------------------------------------------------------------------- */

/* Of what lies between the head and an end, in whole words. */
static uint64_t sum_to(const struct radabound_edge_state *state, int end)
{
    const uint8_t *bytes = (const uint8_t *)state;
    uint64_t sum = 0;
    for (int i = HEAD_BYTES; i < end; i += WORD_BYTES) {
        uint64_t word = 0;
        for (int j = WORD_BYTES - 1; j >= 0; j--)
            word = (word << BYTE_BITS) | bytes[i + j];
        sum = mix64(sum ^ word);
    }
    return sum;
}

static uint64_t checksum_of(const struct radabound_edge_state *state)
{
    return sum_to(state, RADABOUND_EDGE_STATE_BYTES);
}

/* Grows with every row that is stored. */
static uint32_t age_of(const struct radabound_edge_state *state)
{
    return state->n_answered + state->halted;
}

/* The state of a slot, if it is whole and for us. */
static enum radabound_edge_result read_slot(struct radabound_edge *guard, int slot)
{
    static const uint8_t format[8] = {'r', 'a', 'd', 'e', 'd', 'g', 'e', '1'};
    struct radabound_edge_state *state = &guard->state;
    state->checksum = 0; /* or what was here before would pass for a slot that was not read */
    if (guard->storage->read(guard->storage->context, slot, state) != 0)
        return RADABOUND_EDGE_STORAGE;
    for (int i = 0; i < 8; i++)
        if (state->format[i] != format[i])
            return RADABOUND_EDGE_NO_STATE;
    /* before the checksum: a state for more vectors is longer than what was read */
    if (state->n_vectors != (uint32_t)RADABOUND_EDGE_VECTORS)
        return RADABOUND_EDGE_OTHER_STATE;
    if ((state->checksum != checksum_of(state)) || (state->halted > 1u) ||
        (state->n_samples == 0u) || (state->n_samples > (uint32_t)INT32_MAX) ||
        (state->largest > state->n_samples) || (state->n_answered == UINT32_MAX))
        return RADABOUND_EDGE_NO_STATE;
    return RADABOUND_EDGE_OK;
}

enum radabound_edge_result radabound_edge_init(struct radabound_edge *guard,
                                               const struct radabound_edge_storage *storage)
{
    uint32_t age = 0;
    uint64_t made = 0;
    uint64_t checksum = 0;
    int newest = -1;
    guard->storage = storage;
    guard->ready = 0;
    enum radabound_edge_result worst = RADABOUND_EDGE_NO_STATE;
    for (int slot = 0; slot < N_SLOTS; slot++) {
        const enum radabound_edge_result result = read_slot(guard, slot);
        if (result == RADABOUND_EDGE_STORAGE) /* an older state would forget an answer */
            return result;
        if (result == RADABOUND_EDGE_OTHER_STATE)
            worst = result;
        if (result == RADABOUND_EDGE_OK) {
            const uint32_t age_here = age_of(&guard->state);
            const uint64_t made_here = sum_to(&guard->state, MADE_BYTES);
            /* two guards, or two copies of one that went apart: whose answers are forgotten? */
            if ((newest >= 0) && ((made_here != made) ||
                                  ((age_here == age) && (guard->state.checksum != checksum))))
                return RADABOUND_EDGE_OTHER_STATE;
            if ((newest < 0) || (age_here > age)) {
                newest = slot;
                age = age_here;
                made = made_here;
                checksum = guard->state.checksum;
            }
        }
    }
    if (newest < 0)
        return worst;
    if (read_slot(guard, newest) != RADABOUND_EDGE_OK) /* it was whole a moment ago */
        return RADABOUND_EDGE_STORAGE;
    guard->base = mix64(guard->state.seed + SIGN_GOLDEN);
    guard->ready = 1u + (uint32_t)newest;
    start_row(guard);
    return RADABOUND_EDGE_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

static enum radabound_edge_result is_open(const struct radabound_edge *guard)
{
    if (guard->ready == 0u)
        return RADABOUND_EDGE_NOT_READY;
    return guard->state.halted != 0u ? RADABOUND_EDGE_HALTED : RADABOUND_EDGE_OK;
}

/* The next n losses, which lie in one half of a word; above them are those after them, or 0. */
static void take(struct radabound_edge *guard, uint32_t bits, uint32_t n)
{
    const uint32_t place = guard->n_pushed % WORD_BITS;
    guard->halves[place / HALF_BITS] |= bits << (place % HALF_BITS);
    guard->n_pushed += n;
    if (guard->n_pushed % WORD_BITS == 0u)
        count_word(guard);
}

enum radabound_edge_result radabound_edge_push_bits(struct radabound_edge *guard,
                                                    const uint8_t *bits, uint32_t n_losses)
{
    const enum radabound_edge_result result = is_open(guard);
    if (result != RADABOUND_EDGE_OK)
        return result;
    if (n_losses > guard->state.n_samples - guard->n_pushed)
        return RADABOUND_EDGE_TOO_MANY;
    const uint32_t rest = n_losses % BYTE_BITS;
    if ((rest != 0u) && ((uint32_t)bits[n_losses / BYTE_BITS] >> rest != 0u))
        return RADABOUND_EDGE_BAD_LOSS;
    uint32_t most = BYTE_BITS;
    if (guard->n_pushed % BYTE_BITS != 0u)
        most = 1; /* whole bytes would lie across halves */
    for (uint32_t i = 0; i < n_losses; i += most) {
        const uint32_t n = n_losses - i < most ? n_losses - i : most;
        take(guard, (uint32_t)bits[i / BYTE_BITS] >> (i % BYTE_BITS), n);
    }
    return RADABOUND_EDGE_OK;
}

enum radabound_edge_result radabound_edge_push(struct radabound_edge *guard, uint32_t loss)
{
    const uint8_t bits = (uint8_t)(loss <= 1u ? loss : 2u); /* a 2 is a bit past the last loss */
    return radabound_edge_push_bits(guard, &bits, 1);
}

enum radabound_edge_result radabound_edge_finish(struct radabound_edge *guard, uint32_t *count)
{
    enum radabound_edge_result result = is_open(guard);
    *count = 0;
    if (result != RADABOUND_EDGE_OK)
        return result;
    if (guard->n_pushed < guard->state.n_samples) {
        result = RADABOUND_EDGE_TOO_FEW;
    } else {
        if (guard->n_pushed % WORD_BITS != 0u)
            count_word(guard);
        judge_row(guard);
        guard->state.checksum = checksum_of(&guard->state);
        const uint32_t slot = guard->ready % (uint32_t)N_SLOTS; /* not the one that it is in */
        guard->ready = 0;
        if (guard->storage->write(guard->storage->context, (int)slot, &guard->state) == 0) {
            guard->ready = 1u + slot;
            result = is_open(guard);
        } else {
            result = RADABOUND_EDGE_STORAGE;
        }
        if (result == RADABOUND_EDGE_OK)
            *count = guard->total;
    }
    start_row(guard);
    return result;
}
