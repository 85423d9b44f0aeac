/* The harness of kernels.c: random cases, guarded memory, and plain loops to compare with.
 *
 * Every buffer that the code under test gets lies flush against a page that may not be touched,
 * before its first byte or after its last.  A vector load past the end faults there even where
 * AddressSanitizer does not instrument it; the side without a page is poisoned for ASan.
 *
 * A case is a function of (seed, number) alone, so that one that failed can be run again by itself.
 */
#ifndef RADABOUND_HARNESS_H
#define RADABOUND_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/dispatch.h"

/* ---- random numbers ---------------------------------------------------------------------- */

void start_case(uint64_t seed, uint64_t number);
uint64_t random_word(void);
int64_t below(int64_t n);   /* 0 .. n - 1 */
int64_t up_to(int64_t n);   /* 1 .. n, as often below 8 as above n / 8 */
int64_t size_to(int64_t n); /* the same, but often around a multiple of a word or a strip */
int one_in(int64_t n);

/* Words of one density: random, sparse, dense, all zeros or all ones. */
void random_bits(uint64_t *words, int64_t n_words);

/* ---- guarded memory ---------------------------------------------------------------------- */

/* One live buffer each; what is asked for again is given up. */
enum slot {
    SIGNS, ROWS, COUNTS, START, EXPECTED, EXTREMES, OUT, WANTED, LABELS, TOTALS, TILE, GROWTH,
    BLOCK_TOTALS, BEFORE, PACKED, SCRATCH, TRACE, WANTED_TRACE, ONE_ROW, WORKSPACE,
    N_SLOTS,
};

/* Each thread's memory is a set of slots of its own, asked for before it starts. */
enum { N_THREADS = 4 };
void use_slots(int set); /* 0 .. N_THREADS */

/* Bytes at an address that is a multiple of `alignment`, filled with rubbish.  With alignment 1
 * any address will come. */
void *guarded(enum slot slot, size_t bytes, size_t alignment);

#define GUARDED(type, slot, n) ((type *)guarded(slot, (size_t)(n) * sizeof(type), _Alignof(type)))

/* ---- verdicts ---------------------------------------------------------------------------- */

/* Notes what runs now, and counts it: a function of a row of the table. */
void running(const char *function, const struct instruction_set *set);

/* Ends the process with a report, unless `same`. */
void check(int same, const char *what);
void check_equal(const void *got, const void *wanted, size_t bytes, const char *what);

void print_case(void);
void print_counts(void);

/* The rows of the table that run here, one after the other; NULL past the last. */
const struct instruction_set *next_set(const struct instruction_set *set);
#define EACH_SET(set) const struct instruction_set *set = NULL; (set = next_set(set)) != NULL;

/* ---- what is tried ----------------------------------------------------------------------- */

void try_count_bits(void);
void try_widen_extremes(void);
void try_count_units(void);
void try_raise_extremes(void);
void try_sum_units(void);
void try_fill_lines(void);
void try_fingerprint_rows(void);
void try_pack_row(void);
void try_units_row(void);
void try_sliced(void);
void try_studentise(void);
void try_raise_maxima(void);
void try_scan(void);
void try_blocks(void);
void try_threads(void);
void try_edge(void);

/* ---- random signs and rows ----------------------------------------------------------------- */

/* Lines of `n_strips` strips, 64-byte aligned, to the last line of the last strip exactly. */
struct sign_tile random_tile(int64_t n_strips, int64_t n_words, int64_t strip_stride);

/* From one row to the next of `width` items: side by side, apart, the same, or backwards. */
int64_t random_stride(int64_t width);

/* Where row 0 starts in a buffer of `n_rows` such rows of `size`-byte items. */
char *random_rows(enum slot slot, int64_t n_rows, int64_t width, int64_t stride, size_t size,
                  size_t alignment);

/* Rows of bits, those past n_samples zero. */
uint64_t *random_words(int64_t n_rows, int64_t n_samples, int64_t row_stride);

/* Random rows of losses, or of predictions beside labels; `real`: values in [0, 1] of a float
 * kind, none of them a class.  About a quarter hold a value that is not allowed. */
void random_source(struct source *source, int64_t n_samples, int64_t n_rows, int real);

/* ---- the oracle: plain loops --------------------------------------------------------------- */

/* packing.h value by value: a pack_row_fn and a units_row_fn. */
int64_t plain_pack_row(const struct source *source, ptrdiff_t row, uint64_t *words);
int64_t plain_units_row(const struct source *source, ptrdiff_t row, int32_t *units);

/* Losses of 0 and 1 from bits. */
void plain_losses(const uint64_t *words, int64_t n_samples, int32_t *losses);
int64_t plain_total(const int32_t *losses, int64_t n_samples);

/* The sum of the losses where a vector's sign is +1. */
int64_t plain_count(const struct sign_tile *signs, int64_t vector, const int32_t *losses,
                    int64_t n_samples);

/* Takes a row of losses times 2^shift in, or with `started` 0 begins with it; returns how much
 * larger the complexity is then. */
int64_t plain_widen(const struct sign_tile *signs, const int32_t *losses, int64_t n_samples,
                    int shift, int started, const struct extremes *extremes);

#endif
