/* A guard without Python: answers the mean of each row of losses until its budget is spent.
 *
 *     guard_stream STATE < losses
 *
 * A row is n_samples losses of 0 or 1, ceil(n_samples / 8) bytes, the lowest bit first, bits past
 * the end zero; rows follow one another.  A row is read, and its signs are made, tile by tile:
 * the memory does not depend on n_samples.  No malloc; floating point only to print.
 *
 * STATE is made by new_state.py: parameters, budget, seed, extremes.  It is written, to one of two
 * slots in turn, before an answer is printed, so a power cut loses at most an answer nobody saw.
 * Exit status: 0 end of the losses, 3 halted, now or before; 1 anything else, and then the row in
 * hand has not been judged, or its answer not been shown.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/signed_sums.h"

enum {
    N_VECTORS = 32,
    N_STRIPS = (N_VECTORS + LANES - 1) / LANES,
    N_STAGES = 16, /* after which nothing is free */
    TILE_WORDS = 16, /* 1024 losses, whose signs take 4 KB */
    END_OF_LOSSES = -1,
    BROKEN = -2, /* the losses end within a row, or a bit past the end is set */
};

struct state {
    char format[8];
    uint64_t checksum; /* of all that follows */
    uint64_t seed;
    int64_t n_vectors, n_samples;
    int64_t budget; /* the largest complexity that is answered */
    int64_t half_range;
    /* answered whatever the complexity, before so many answers: totals of at most low, and from
     * n_samples - low on */
    int64_t ends[N_STAGES], lows[N_STAGES];
    int64_t n_answered, halted;
    int64_t maxima[N_STRIPS * LANES], minima[N_STRIPS * LANES];
};

static struct state state, slot;
static int64_t counts[N_STRIPS * LANES];
static uint64_t losses[TILE_WORDS];
static RB_ALIGNED(LINE_BYTES) uint64_t lines[N_STRIPS * TILE_WORDS * LANES];

#if defined(RB_ARM64)
static const struct kernel *const kernel = &kernel_neon;
#else
static const struct kernel *const kernel = &kernel_portable;
#endif

/* ---- the guard --------------------------------------------------------------------------- */

/* n bytes of the stream; fewer at its end.  The only place that knows where losses come from. */
static size_t read_losses(uint8_t *bytes, size_t n)
{
    size_t done = 0;
    for (ssize_t got = 1; done < n && got > 0; done += got > 0 ? (size_t)got : 0)
        got = read(STDIN_FILENO, bytes + done, n - done);
    return done;
}

/* Losses of some samples into words; not 0 if bits past the last sample are. */
static int read_words(int64_t n_samples, ptrdiff_t n_words, size_t *n_read)
{
    uint8_t bytes[sizeof losses];
    const size_t n_bytes = (size_t)(n_samples + 7) / 8;
    *n_read = read_losses(bytes, n_bytes);
    memset(losses, 0, sizeof losses);
    for (size_t i = 0; i < *n_read; i++)
        losses[i / 8] |= (uint64_t)bytes[i] << 8 * (i % 8);
    return *n_read < n_bytes ||
           (n_samples % WORD_BITS && losses[n_words - 1] >> n_samples % WORD_BITS);
}

/* Counts the next row under every sign vector; returns its total. */
static int64_t count_row(void)
{
    const uint64_t base = mix64(state.seed + SIGN_GOLDEN);
    const int64_t tile_samples = TILE_WORDS * WORD_BITS;
    int64_t total = 0;
    memset(counts, 0, sizeof counts);
    for (int64_t sample = 0; sample < state.n_samples; sample += tile_samples) {
        const int64_t left = state.n_samples - sample;
        const int64_t n = left < tile_samples ? left : tile_samples;
        const ptrdiff_t n_words = (ptrdiff_t)((n + WORD_BITS - 1) / WORD_BITS);
        const struct sign_tile tile = {lines, n_words, N_STRIPS, n_words, NULL};
        size_t n_read;
        if (read_words(n, n_words, &n_read))
            return sample == 0 && n_read == 0 ? END_OF_LOSSES : BROKEN;
        for (int strip = 0; strip < N_STRIPS; strip++)
            kernel->fill_lines(base, strip * LANES, sample / WORD_BITS, n_words,
                               lines + strip * n_words * LANES);
        kernel->count_bits(&tile, losses, n_words, 1, counts, N_STRIPS * LANES, &total);
    }
    return total;
}

static int64_t complexity(void)
{
    int64_t sum = 0;
    for (int v = 0; v < N_VECTORS; v++) {
        const int64_t high = state.maxima[v];
        sum += state.half_range ? high - state.minima[v] : high > 0 ? high : 0;
    }
    return sum;
}

/* Takes the row that was counted into the extremes, and says whether its mean is answered. */
static int judge_row(int64_t total)
{
    for (int v = 0; state.n_answered == 0 && v < N_STRIPS * LANES; v++) {
        state.maxima[v] = INT64_MIN;
        state.minima[v] = INT64_MAX;
    }
    kernel->raise_extremes(counts, total, N_STRIPS, state.maxima, state.minima);
    int stage = 0;
    while (stage < N_STAGES && state.n_answered >= state.ends[stage])
        stage++;
    const int64_t low = stage < N_STAGES ? state.lows[stage] : -1;
    state.halted = complexity() > state.budget && total > low && total < state.n_samples - low;
    state.n_answered += !state.halted;
    return !state.halted;
}

/* ---- its state --------------------------------------------------------------------------- */

static uint64_t checksum_of(const struct state *s)
{
    uint64_t words[sizeof *s / 8], sum = 0;
    memcpy(words, s, sizeof *s);
    for (size_t i = 2; i < sizeof *s / 8; i++)
        sum = mix64(sum ^ words[i]);
    return sum;
}

/* The newer of the two slots that is whole. */
static int load_state(int file)
{
    int found = 0;
    for (int i = 0; i < 2; i++)
        if (pread(file, &slot, sizeof slot, i * (off_t)sizeof slot) == sizeof slot &&
            memcmp(slot.format, "radabnd1", 8) == 0 && slot.n_vectors == N_VECTORS &&
            slot.checksum == checksum_of(&slot) &&
            (!found || slot.n_answered + slot.halted > state.n_answered + state.halted)) {
            state = slot;
            found = 1;
        }
    return found;
}

static int store_state(int file)
{
    const off_t place = (state.n_answered + state.halted) % 2 * (off_t)sizeof state;
    state.checksum = checksum_of(&state);
    return pwrite(file, &state, sizeof state, place) == sizeof state && fsync(file) == 0;
}

int main(int n_arguments, char **arguments)
{
    static char line[128];
    const int file = n_arguments == 2 ? open(arguments[1], O_RDWR) : -1;
    setvbuf(stdout, line, _IOLBF, sizeof line);
    if (file < 0 || lockf(file, F_TLOCK, 0) != 0 || !load_state(file)) {
        fputs("usage: guard_stream STATE < losses; STATE is not whole, or in use\n", stderr);
        return 1;
    }
    while (!state.halted) {
        const int64_t total = count_row();
        if (total == END_OF_LOSSES)
            return 0;
        const int answered = total >= 0 && judge_row(total);
        if (total == BROKEN || !store_state(file)) {
            fputs("a row is not whole, or the state could not be written\n", stderr);
            return 1;
        }
        if (answered && printf("%" PRId64 ": mean %.6f (%" PRId64 " of %" PRId64
                               "), complexity %" PRId64 " of %" PRId64 "\n",
                               state.n_answered, (double)total / (double)state.n_samples, total,
                               state.n_samples, complexity(), state.budget) < 0)
            return 1;
    }
    printf("halted after %" PRId64 " answers, complexity %" PRId64 " of %" PRId64 "\n",
           state.n_answered, complexity(), state.budget);
    return 3;
}
