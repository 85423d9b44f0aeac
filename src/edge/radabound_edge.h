/* A guard of a holdout for machines without an operating system.
 *
 * It is given the losses of one model after another, 0 or 1 for each of n_samples examples, and
 * answers how many there were, until the holdout is spent; then it withholds that row and all
 * later ones.  It decides as `RadaBound` in Python does, integer for integer.
 *
 *     radabound edge new-state guard.state --n-samples 4000 --epsilon 0.05 --delta 0.1
 *
 * makes its state, on the desktop: what may be spent, and under which signs.  Then
 *
 *     static struct radabound_edge guard;
 *     result = radabound_edge_init(&guard, &storage);
 *     for each model:
 *         radabound_edge_push(&guard, loss);  n_samples times, or push_bits with many at once
 *         result = radabound_edge_finish(&guard, &count);
 *
 * An answer is in the storage before it is shown, so a power cut loses at most a row that nobody
 * saw the answer of.  C99 and C++11; nothing is allocated, nothing is a float, no library is
 * called, and all memory is the caller's: functions on different guards may run at once.
 * Pointers must not be NULL.
 */
#ifndef RADABOUND_EDGE_H
#define RADABOUND_EDGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sign vectors: those of the state, and the same in every file that includes this. */
#ifndef RADABOUND_EDGE_VECTORS
#define RADABOUND_EDGE_VECTORS 32
#endif

enum radabound_edge_result {
    RADABOUND_EDGE_OK = 0,
    /* init */
    RADABOUND_EDGE_NO_STATE = 1,    /* neither slot holds a whole state */
    RADABOUND_EDGE_OTHER_STATE = 2, /* for another number of vectors, or slots of two guards */
    /* init, finish */
    RADABOUND_EDGE_STORAGE = 3, /* a callback failed; no answer is shown, and init must be called */
    /* push, push_bits, finish */
    RADABOUND_EDGE_NOT_READY = 4, /* memory is zero yet, or the last init or write has failed */
    RADABOUND_EDGE_HALTED = 5,    /* the holdout is spent: withheld, and all after it; for good */
    /* push, push_bits: nothing was taken in, the row goes on */
    RADABOUND_EDGE_BAD_LOSS = 6, /* not 0 or 1, or a bit past the last loss is set */
    RADABOUND_EDGE_TOO_MANY = 7, /* more than are left of the row; init drops one too long */
    /* finish */
    RADABOUND_EDGE_TOO_FEW = 8 /* the row was cut short: it is dropped, as if it had never been */
};

enum { RADABOUND_EDGE_PIECES = 22, RADABOUND_EDGE_STAGES = 32 };

/* A part of the budget, as a function of the largest count so far: a cubic, fitted on the desktop,
 * that is right at every count. */
struct radabound_edge_piece {
    int64_t base; /* in units of 2^-16, as the slopes are */
    int32_t slopes[3];
    uint32_t first; /* count; past the last piece, n_samples + 1 */
};

/* What is stored, byte for byte: little-endian, without padding.  To be read, not to be changed. */
struct radabound_edge_state {
    uint8_t format[8];
    uint64_t checksum;    /* of all that follows */
    uint8_t made_for[40]; /* epsilon, delta and bound, for the desktop */
    uint64_t seed;
    /* rows are answered up to this complexity */
    struct radabound_edge_piece budget[RADABOUND_EDGE_PIECES];
    /* and whatever the complexity, as the k-th row: counts under below[log2 k], or as near
     * n_samples; among the first n_flat rows, also those under below_flat */
    uint32_t below[RADABOUND_EDGE_STAGES];
    uint32_t n_flat;
    uint32_t below_flat;
    uint32_t n_vectors;
    uint32_t n_samples; /* below 2^31 */
    uint32_t half_range;
    uint32_t n_answered;
    uint32_t halted;
    uint32_t largest; /* count of an answered row so far; of a withheld one it tells nothing */
    /* of the signed sums of all rows so far; nothing before the first */
    int32_t maxima[RADABOUND_EDGE_VECTORS];
    int32_t minima[RADABOUND_EDGE_VECTORS];
};

enum { RADABOUND_EDGE_STATE_BYTES = sizeof(struct radabound_edge_state) };

/* Two slots, 0 and 1, of RADABOUND_EDGE_STATE_BYTES each: pages of flash, an EEPROM, a file.  Each
 * function moves a whole slot and returns 0 if it could.  `write` returns once the bytes would
 * outlive a power cut.  Cut short, it may leave anything in its own slot, and nothing in the other:
 * what is erased together must not hold both.  A slot must be read as it was written.  Where flash
 * cannot read what a cut write has left, `read` fills in anything and returns 0: one that fails
 * makes `init` say STORAGE each time. */
struct radabound_edge_storage {
    int (*read)(void *context, int slot, void *bytes);
    int (*write)(void *context, int slot, const void *bytes);
    void *context;
};

/* A guard; everything in it is private but the numbers of its state. */
struct radabound_edge {
    struct radabound_edge_state state;
    uint64_t base; /* of the sign stream */
    const struct radabound_edge_storage *storage;
    uint32_t ready; /* 1 + the slot that the state is in; 0: not ready */
    /* of the row in hand */
    uint32_t n_pushed;
    uint32_t total;
    uint32_t halves[2]; /* of its last word of 64 losses */
    uint32_t counts[RADABOUND_EDGE_VECTORS];
};

/* Reads the newer of the slots that are whole, and drops the row in hand if there is one.
 * `storage` must outlive the guard.  OK also for a guard that has halted.  Anything but OK leaves
 * no guard: only init may be called then. */
enum radabound_edge_result radabound_edge_init(struct radabound_edge *guard,
                                               const struct radabound_edge_storage *storage);

/* The next loss of the row. */
enum radabound_edge_result radabound_edge_push(struct radabound_edge *guard, uint32_t loss);

/* The next losses: loss i is bit i % 8 of byte i / 8, and bits past the last one are 0. */
enum radabound_edge_result radabound_edge_push_bits(struct radabound_edge *guard,
                                                    const uint8_t *bits, uint32_t n_losses);

/* Ends the row and judges it.  OK: *count says how many of its losses are 1, and the state is
 * stored; otherwise *count is 0.  Of a row that is withheld nothing is left but its extremes. */
enum radabound_edge_result radabound_edge_finish(struct radabound_edge *guard, uint32_t *count);

/* Whether a row has been withheld; from then on for good.  0 while the guard is not ready. */
int radabound_edge_halted(const struct radabound_edge *guard);

/* Of a guard that is ready the complexity of all rows so far, a withheld one included, and what it
 * may come up to at the largest count that was answered; both over n_vectors n_samples, or twice
 * that with half_range, are what Python shows. */
int64_t radabound_edge_complexity(const struct radabound_edge *guard);
int64_t radabound_edge_budget(const struct radabound_edge *guard);

#ifdef __cplusplus
}
#endif

#endif
