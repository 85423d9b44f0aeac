/* The reference: bit by bit, from the definitions, with nothing of src/. */
#ifndef NATIVE_PLAIN_H
#define NATIVE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/* Word `word` of sign vector `vector`: docs/theory and SignMatrix state the formula. */
uint64_t plain_sign_word(uint64_t seed, int64_t vector, int64_t word);

/* n_rows x m losses, 0 or 1 or in units of 2^-24, and what follows from them. */
struct problem {
    int64_t m, l, n_rows;
    int64_t n_words, n_strips;
    int in_units;
    uint64_t seed;
    int32_t *losses;  /* [row][m] */
    uint64_t *packed; /* [row][n_words]; what is not 0 is 1 */
    int64_t *totals;  /* [row] */
    int64_t *counts;  /* [row][8 n_strips]: sum of the losses whose sign is +1 */
    uint64_t *lines;  /* [strip][n_words][8] */
    /* running, after each row, over vectors 0 .. l - 1 */
    int64_t *maxima, *minima; /* [row][l] */
    int64_t *plain, *half_range; /* [row]: sum of max(0, maximum), of maximum - minimum */
};

/* Losses of 0 and 1, rarer or more frequent from row to row; later rows are mostly copies of early
 * ones, which move no extreme; with in_units up to 2^24,
 * and the first of all between the two. */
struct problem plain_problem(int64_t m, int64_t l, int64_t n_rows, int in_units);

/* Bit i % 8 of byte i / 8 of each row, ceil(m / 8) bytes a row, `stride` bytes apart. */
void plain_bytes(const struct problem *problem, char *bytes, ptrdiff_t stride);

#endif
