/* The contract of the kernels: bit layout and function types.
 *
 * Losses.  Sample i is bit i % 64 of word i / 64; bits past the last sample are zero.
 *
 * Signs.  Vertical: word w of eight vectors side by side in one 64-byte line,
 *
 *     lines[strip][w][lane]  holds word w of vector 8 strip + lane,
 *
 * so that one register works on eight vectors at once and each lane keeps its own vector's
 * count: no horizontal sums.  Bit 1 means +1.  The last strip is filled up with further vectors
 * of the stream, whose counts nobody reads.
 *
 * Sums.  A loss adds where its sign bit is set and subtracts where it is not, hence
 *
 *     S_j(f) = sum_i sigma_ji f(x_i) = 2 c_j - total,
 *     c_j    = sum of f over the set bits of sign vector j,   total = sum of f.
 *
 * The kernels compute c_j; real-valued losses come as integers in units of 2^-24.
 */
#ifndef RADABOUND_SIGNED_SUMS_H
#define RADABOUND_SIGNED_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "extremes.h"
#include "sign_stream.h"

enum {
    LANES = 8,
    WORD_BITS = 64,
    HALF_WORD = 32,
    LINE_BYTES = 64,
    WORKSPACE_WORDS = 64, /* of a sign_tile, at most, are unpacked into a workspace */
};

/* Part of the signs: n_strips strips, their first lines strip_stride lines apart, n_words each. */
struct sign_tile {
    const uint64_t *lines; /* 64-byte aligned */
    ptrdiff_t strip_stride;
    ptrdiff_t n_strips;
    ptrdiff_t n_words;
    void *workspace; /* workspace_bytes of the kernel, aligned as well; NULL: it does without */
};

/* Packed losses, n_words words a row, `stride` words from row to row. */
struct packed_rows {
    const uint64_t *words;
    ptrdiff_t stride, n_rows;
};

/* counts[r][8 strip + lane] += popcount(signs & row r), counts_stride apart; totals[r] +=
 * popcount(row r), unless totals is NULL, also under no strips. */
typedef void count_bits_fn(const struct sign_tile *signs, const struct packed_rows *rows,
                           int64_t *counts, ptrdiff_t counts_stride, int64_t *totals);

/* The same for losses in units of 2^-24: 64 n_words int32 in [0, 2^24] a row, row_stride apart. */
typedef void count_units_fn(const struct sign_tile *signs, const int32_t *rows,
                            ptrdiff_t row_stride, ptrdiff_t n_rows, int64_t *counts,
                            ptrdiff_t counts_stride);

/* maxima[v] = max(maxima[v], 2 counts[v] - total), minima likewise, for 8 n_strips lanes.
 * Returns whether any of them moved. */
typedef int raise_extremes_fn(const int64_t *counts, int64_t total, ptrdiff_t n_strips,
                              int64_t *maxima, int64_t *minima);

/* What becomes of rows that widen extremes, true ones of earlier rows. */
struct widening {
    int first;    /* these are the first strips: before, totals[r] is set to popcount(row r), growth to 0 */
    int64_t most; /* a row whose total is above it changes nothing */
    const struct extremes *extremes; /* of these strips */
    int64_t *totals, *growth;        /* growth[r] += what row r, after those before it, adds to the
                                      * complexity */
};

/* Takes whole rows in, in order, without their counts going through memory: widens the extremes
 * until they hold each 2 c_j - totals[r]. */
typedef void widen_extremes_fn(const struct sign_tile *signs, const struct packed_rows *rows,
                               const struct widening *to);

/* Sum of 64 n_words losses in units of 2^-24. */
typedef int64_t sum_units_fn(const int32_t *units, ptrdiff_t n_words);

/* lines[w][lane] = word first_word + w of vector first_vector + lane of the stream (sign_stream.h). */
typedef void fill_lines_fn(uint64_t base, int64_t first_vector, int64_t first_word,
                           ptrdiff_t n_words, uint64_t *lines);

struct kernel {
    const char *name;
    int (*supported)(void);
    count_bits_fn *count_bits;
    count_units_fn *count_units;
    raise_extremes_fn *raise_extremes;
    sum_units_fn *sum_units;
    fill_lines_fn *fill_lines;
    widen_extremes_fn *widen_extremes;
    ptrdiff_t workspace_bytes; /* to unpack signs into; 0: needs none */
    /* a full bit-sliced block takes percent + once / l of its rows' time here, l lanes of vectors */
    int block_percent, block_once;
};

extern const struct kernel kernel_portable;
#if defined(RB_X86_64)
extern const struct kernel kernel_avx2, kernel_avx512;
count_units_fn count_units_avx2, count_units_avx512;
sum_units_fn sum_units_avx2, sum_units_avx512;
count_bits_fn count_bits_avx512;
raise_extremes_fn raise_extremes_avx512;
fill_lines_fn fill_lines_avx512;
widen_extremes_fn widen_extremes_avx512;
void widen_by_counts_avx512(const int64_t *counts, ptrdiff_t n_strips, ptrdiff_t n_rows,
                            const struct widening *to); /* of rows 32 counts apart, in order */
#endif
#if defined(RB_AMX)
extern const struct kernel kernel_amx;
#endif
#if defined(RB_ARM64)
extern const struct kernel kernel_neon;
#endif

count_bits_fn count_bits_portable;
count_units_fn count_units_portable;
raise_extremes_fn raise_extremes_portable;
int64_t popcount_portable(const uint64_t *words, ptrdiff_t n_words); /* ones in them */
sum_units_fn sum_units_portable;
void widen_by(count_bits_fn *count_bits, const struct sign_tile *signs,
              const struct packed_rows *rows, const struct widening *to);
fill_lines_fn fill_lines_portable;

#endif
