/* Rows of losses, in order, through the running extremes, up to the row that must be withheld.
 *
 * count_rows    is pure: the counts c_j of a few rows at once, tile by tile over the samples
 * judge_rows    is the state machine: extremes, complexity, and the halting test, in integers
 *
 * Units.  Sums are in units of one loss until the first real-valued row, then in units of
 * 2^-24 (unit_shift = 24).  Nothing here knows a probability: the caller prices the budget.
 */
#ifndef RADABOUND_SCAN_H
#define RADABOUND_SCAN_H

#include "kernels/packing.h"
#include "kernels/signed_sums.h"

enum {
    UNIT_SHIFT = 24,
    TILE_WORDS = 64,  /* 4096 samples: four strips of signs fill 16 KB of the first cache */
    TILE_STRIPS = 8,  /* eight share the sums that real-valued losses are looked up in */
    CHUNK_ROWS = 512, /* rows that share a sign tile */
    UNIT_TILE_WORDS = 6,   /* a tile of real-valued rows, 32 times as wide, is small enough for the */
    UNIT_TILE_ROWS = 8,    /* values of the next one to be fetched while it is counted */
    TOO_LARGE = -2,   /* real-valued rows whose sums of extremes might not fit int64 */
    ROW_TILE_WORDS = UNIT_TILE_WORDS * WORD_BITS / 2, /* a tile of one row in units; more than in bits */
};

struct sign_store {
    const uint64_t *lines; /* [strip][n_words][lane]; NULL: generated tile by tile */
    uint64_t base;
    int64_t first_vector, first_word;
    int64_t n_vectors, n_strips, n_words, n_samples;
};

/* Rows to judge: packed already, or values to be packed on the way. */
struct loss_rows {
    const char *packed; /* NULL: pack `source`.  Bit i of a row is bit i % 8 of its byte i / 8 */
    ptrdiff_t packed_stride; /* bytes from row to row */
    ptrdiff_t packed_bytes;  /* bytes a row: 8 n_words, or ceil(n_samples / 8) */
    struct source source;
    const struct packer *packer;
};

/* What count_rows found; the memory is the caller's. */
struct chunk {
    int64_t *counts;  /* capacity x 8 n_strips */
    int64_t *totals;  /* capacity: the sum of each row's losses */
    void *workspace;  /* of the kernel, or NULL */
    void *tile;       /* CHUNK_ROWS x TILE_WORDS words, or UNIT_TILE_ROWS x 64 UNIT_TILE_WORDS int32 */
    ptrdiff_t capacity;
    ptrdiff_t n_rows;
    int in_units;
    int may_be_real;    /* as the function below says of the rows */
    int64_t bad_sample; /* in the row after the n_rows good ones; -1: none; or TOO_LARGE */
};

/* Whether packed rows are whole aligned words, which the kernels can read where they are. */
int rows_in_place(const struct loss_rows *rows, ptrdiff_t n_words);

/* One row's words from `word` on, of n_samples samples, into out.  Returns n_samples, or the
 * first sample that is not 0 or 1, or past the end. */
int64_t read_words(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word, int64_t n_samples,
                   uint64_t *out);

/* n_samples, or n_samples + 1 if a bit stands past them in the last of their words. */
RB_INLINE int64_t check_last_word(uint64_t last, int64_t n_samples)
{
    const int used = (int)(n_samples % WORD_BITS);
    return used && last >> used ? n_samples + 1 : n_samples;
}

/* Counts up to `n_rows` rows from `first` on, fewer if one of them cannot be read this way: a value
 * that is not 0 or 1, or with in_units one outside [0, 1].  With no strips it only adds them up. */
void count_rows(const struct kernel *kernel, const struct sign_store *signs,
                const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows, int in_units,
                struct chunk *chunk);

/* Whether the values may be other than 0 and 1: floats that are no predictions. */
int may_be_real(const struct loss_rows *rows);

/* Whether sums of extremes in units of 2^-24 fit int64: fewer than 2^38 signs. */
int units_fit(const struct sign_store *signs);

/* The same, in whichever of the two ways the first row can be read. */
void count_any_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows,
                    struct chunk *chunk);

/* Totals that are answered whatever the complexity: the union part of the bound. */
struct free_range {
    int64_t low, high;
};

enum verdict { ANSWERED, WITHHELD, NEEDS_UNITS, NEEDS_PRICE, UNREADABLE };

/* The state of a guard.  A row is answered while
 *
 *     complexity <= budget,   or   total <= low,   or   total >= high   of its kind of row.
 *
 * complexity is sum_j max(0, maxima_j), or sum_j (maxima_j - minima_j) for the half-range.  All
 * this is the gate; it holds for totals up to `priced`, and for the rows before the one that
 * `priced_rows` were answered before.  A row beyond either stops with NEEDS_PRICE. */
struct guard_state {
    int64_t *maxima, *minima; /* 8 n_strips lanes each, the minima after the maxima */
    int64_t n_vectors, n_strips;
    int64_t n_rows; /* answered */
    int64_t complexity;
    int started; /* whether there are extremes yet */
    int64_t budget, priced, priced_rows;
    int64_t wanted; /* the largest total that the price must hold for, after NEEDS_PRICE */
    struct free_range declared, real; /* of bits, labels and integers; of floats */
    int half_range;
    int unit_shift; /* 0 or UNIT_SHIFT */
    int still;    /* whether few of the last rows moved an extreme; no result depends on it */
};

/* Whether a row passes the gate at this complexity. */
int passes(const struct guard_state *state, int may_be_real, int64_t complexity, int64_t total);

/* From units of one loss to units of 2^-24.  The caller prices the budget anew. */
void rescale_state(struct guard_state *state);

/* Takes the other's extremes in, in the same units. */
void merge_state(struct guard_state *state, const struct guard_state *other);

/* Judges the chunk's rows from `from` on; returns how many rows are answered in all, and says in
 * `verdict` why it stopped.  totals_out and trace_out (each row's complexity) may be NULL. */
ptrdiff_t judge_rows(const struct kernel *kernel, struct guard_state *state, struct chunk *chunk,
                     ptrdiff_t from, int64_t *totals_out, int64_t *trace_out,
                     enum verdict *verdict);

/* Rows that move an extreme are counted twice (still.c): worth it if they are so few. */
int is_few(ptrdiff_t n_moved, ptrdiff_t n_rows);

/* Whether few rows move an extreme, so that the complexity stays what it is, and passes. */
int is_still(const struct kernel *kernel, const struct sign_store *signs,
               const struct guard_state *state);

/* Answers the first row if that moves no extreme of a still state; else nothing has changed. */
int pass_row(const struct kernel *kernel, const struct sign_store *signs, const struct loss_rows *rows,
             struct guard_state *state, struct chunk *chunk, int64_t *total);

/* Counts and judges up to CHUNK_ROWS rows in place, of a still state: those that move an extreme
 * one by one, all others at once.  Returns and says as scan_rows, from `first` on. */
ptrdiff_t pass_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t n_rows,
                    struct guard_state *state, struct chunk *chunk, int64_t *totals_out,
                    int64_t *trace_out, enum verdict *verdict);

/* What bit-sliced blocks work with (blocks.c).  The plan is shared, the rest is one thread's. */
struct sliced_memory {
    const struct sliced_kernel *kernel;
    const struct sliced_plan *plan;
    void *scratch;
    int64_t *growth;  /* block_rows */
    int64_t *totals;  /* block_rows */
    int64_t *before;  /* 2 x 8 n_strips: the extremes, to go back to */
    uint64_t *packed; /* block_rows x n_words, unless rows are read in place */
};

ptrdiff_t block_rows(const struct sliced_memory *slices);

/* Whether rows go through faster as blocks: enough of them, vectors, and room for the packed. */
int sliced_pays(const struct kernel *kernel, const struct sign_store *signs,
               const struct loss_rows *rows, ptrdiff_t block_rows, ptrdiff_t n_rows);

/* Judges a whole block from `first` on.  False: some row of it halts, needs something or cannot
 * be read; then nothing has changed. */
int judge_sliced(const struct sign_store *signs, const struct loss_rows *rows, ptrdiff_t first,
                struct guard_state *state, const struct sliced_memory *slices, int64_t *totals_out,
                int64_t *trace_out);

/* Counts and judges the rows from `first` on; returns the row at which it stopped: `last`, or
 * the one that `verdict` speaks of.  UNREADABLE: chunk->bad_sample of it is not a loss.
 * `slices` may be NULL; the result does not depend on it. */
ptrdiff_t scan_rows(const struct kernel *kernel, const struct sign_store *signs,
                    const struct loss_rows *rows, ptrdiff_t first, ptrdiff_t last, struct guard_state *state,
                    struct chunk *chunk, const struct sliced_memory *slices, int64_t *totals_out,
                    int64_t *trace_out, enum verdict *verdict);

#endif
