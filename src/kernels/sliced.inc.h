/* The bit-sliced kernel: one source, included by sliced_<isa>.c once per instruction set.
 *
 *     S_j = popcount(f) - 2 Z_j,    Z_j = sum of f_i over the samples with sigma_ji = -1
 *
 * A line holds one sample's losses of the whole block, a bit per row, so one instruction works on
 * as many rows as a register has bits.  A number per row is held bit-sliced: a line per binary
 * digit, its planes.  Addition is then the adder of the hardware books: two operations a digit
 * (three-input logic) or five, and nobody needs a popcount.
 *
 * 1. transpose()  turns rows into lines.
 * 2. count_class()  Vectors come in groups of t, about six, and samples whose t signs agree form a
 *    class.  Its count serves all t vectors, so that one adder per sample and group does the work
 *    of t times AND, POPCNT, ADD.  Which samples form which class is known before any row is seen
 *    (sliced_plan.h).  Lines enter the counter 8, 16 or 32 at once through a carry-save tree: one
 *    adder a line, and few carries that run up all the planes.
 * 3. count_group()  One counter runs through all 2^t classes, in an order in which one sign changes
 *    at a time.  Where that of vector j does, Z_j takes in what the counter gained since it last
 *    did: one subtraction a class.  In the end the counter is popcount(f).
 * 4. compare()  finds the rows whose S_j is outside [minimum, maximum].  They are rare once some
 *    hundred rows have been seen, so their sums are read out one by one, in order.
 *
 * More samples than a tile has are taken tile by tile, and the sums kept bit-sliced in between, so
 * that the lines being counted stay in the second cache.
 *
 * The limit is the rate of vector operations, and with AVX-512 on Zen 5 that of lines from the
 * second cache.  Measured at m = 4000, and slower: trees of 8 or 16 lines only (1.10, 1.03), planes
 * that wait for each pair of lines in turn (1.1 to 1.2 where an operation takes two cycles), counts
 * of four classes at a time that a tree adds up (1.1), classes of about 30 or 120 samples instead
 * of 60 (1.1).
 * No faster: adders unrolled for every width.
 *
 * The including file defines
 *
 *     line        uint64_t, or a GCC vector of uint64_t, of one register
 *     LINE_WORDS  how many uint64_t
 *     TARGET      the function attribute that permits its instructions
 *     PARITY, MAJORITY, BORROW  where the instruction set has something better
 *     ZIP_LOW, ZIP_HIGH, LOAD_WORDS  where it interleaves bytes: those of the lower, or upper, half
 *                 of each 16; LOAD_WORDS(rows, w, both): in each 16 bytes two words from w on, or
 *                 one, of a row; rows[0], rows[128] and so on
 */
#include <string.h>

#include "cpu.h"
#include "sliced_plan.h"

#define INLINE RB_INLINE TARGET
#define ZERO ((line){0})

#ifndef PARITY /* sum and carry of a + b + c; the borrow of a - b - c */
#define PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define MAJORITY(a, b, c) (((a) & (b)) | ((c) & ((a) ^ (b))))
#define BORROW(a, b, c) ((~(a) & (b)) | ((c) & ~((a) ^ (b))))
#endif

enum { BLOCK_ROWS = 64 * LINE_WORDS };

/* ---- rows to lines ----------------------------------------------------------------------- */

/* One round of a 64 x 64 transposition on eight lines: those `half` apart swap the high bits of the
 * upper for the low bits of the lower, `width` at a time. */
INLINE void swap_blocks(line *x, int half, int width)
{
    const uint64_t low = ~(uint64_t)0 / (((uint64_t)1 << width) + 1);
    RB_UNROLL(8)
    for (int k = 0; k < 8; k++)
        if ((k & half) == 0) {
            line swap = ((x[k] >> width) ^ x[k + half]) & low;
            x[k] ^= swap << width;
            x[k + half] ^= swap;
        }
}

#ifdef LOAD_WORDS
/* Bits are swapped within bytes only; whole bytes are interleaved, which takes one operation a line
 * and round where shifts take three.
 *
 *     gather   register j has 16 bytes of row 8i + j, and in further lanes of rows + 128, 256, 384;
 *              three rounds of swaps: byte b of register j has sample 8b + j of rows 8i .. 8i + 7.
 *     scatter  four rounds over i = 0 .. 15, each interleaving i with i + 8: the top bit of a
 *              register's number becomes the lowest of the byte's place, and in the end the whole
 *              number has moved there.  Sixteen finished lines.
 *
 * Rows that lie a multiple of 128 bytes apart share few sets of the first cache, where nothing
 * would stay for a second visit: then 64 bytes of each at a time.  Else 16 bytes, for `bits` is
 * small then, and the rows stay beside it (1.15 to 1.2 times as fast on Zen 5).  GF2P8AFFINEQB
 * instead of the swaps: 3 ns of the 76 of a row at (4000, 64), AVX-512. */
enum { COLUMNS = 4 }; /* of two words, at most */

INLINE void gather(line bits[8][16], int i, const uint64_t *const *rows, int64_t w, int both)
{
    line x[8];
    RB_UNROLL(8)
    for (int j = 0; j < 8; j++)
        x[j] = LOAD_WORDS(rows + 8 * i + j, w, both);
    swap_blocks(x, 4, 4);
    swap_blocks(x, 2, 2);
    swap_blocks(x, 1, 1);
    RB_UNROLL(8)
    for (int j = 0; j < 8; j++)
        bits[j][i] = x[j];
}

INLINE void interleave(line *out, const line *in)
{
    RB_UNROLL(8)
    for (int j = 0; j < 8; j++) {
        out[2 * j] = ZIP_LOW(in[j], in[j + 8]);
        out[2 * j + 1] = ZIP_HIGH(in[j], in[j + 8]);
    }
}

INLINE void scatter(line *lines, const line *bits, int n)
{
    line x[16], y[16];
    interleave(x, bits);
    interleave(y, x);
    interleave(x, y);
    interleave(y, x);
    RB_UNROLL(16)
    for (int b = 0; b < n; b++)
        lines[8 * b] = y[b];
}

/* `columns` is a constant at each call. */
INLINE void transpose_by(int columns, line *lines, const uint64_t *const *rows, int64_t start,
                         int64_t n_words)
{
    line bits[COLUMNS][8][16];
    for (int64_t w = start; w < start + n_words; w += 2 * columns) {
        const int n = (int)smaller(2 * columns, start + n_words - w);
        for (int i = 0; i < 16; i++) {
            for (int c = 0; c < n / 2; c++)
                gather(bits[c], i, rows, w + 2 * c, 1);
            if (n % 2)
                gather(bits[n / 2], i, rows, w + n - 1, 0);
        }
        for (int c = 0; c < n / 2; c++, lines += 128)
            for (int j = 0; j < 8; j++)
                scatter(lines + j, bits[c][j], 16);
        for (int j = 0; n % 2 && j < 8; j++)
            scatter(lines + j, bits[n / 2][j], 8);
    }
}

TARGET static void transpose(line *lines, const uint64_t *const *rows, int64_t start,
                             int64_t n_words)
{
    if ((rows[1] - rows[0]) % 16 == 0)
        transpose_by(COLUMNS, lines, rows, start, n_words);
    else
        transpose_by(1, lines, rows, start, n_words);
}
#else
/* Three of the six rounds, on eight lines `step` apart. */
INLINE void transpose_8(line *lines, int step)
{
    line x[8];
    RB_UNROLL(8)
    for (int k = 0; k < 8; k++)
        x[k] = lines[k * step];
    swap_blocks(x, 4, 4 * step);
    swap_blocks(x, 2, 2 * step);
    swap_blocks(x, 1, step);
    RB_UNROLL(8)
    for (int k = 0; k < 8; k++)
        lines[k * step] = x[k];
}

/* 64 samples at a time, in every word of a line at once: word q has rows 64 q .. 64 q + 63. */
TARGET static void transpose(line *lines, const uint64_t *const *rows, int64_t start,
                             int64_t n_words)
{
    for (int64_t w = start; w < start + n_words; w++, lines += 64) {
        uint64_t *words = (uint64_t *)lines;
        for (int q = 0; q < LINE_WORDS; q++)
            for (int r = 0; r < 64; r++)
                words[r * LINE_WORDS + q] = rows[64 * q + r][w];
        for (int r = 0; r < 8; r++)
            transpose_8(lines + r, 8);
        for (int r = 0; r < 64; r += 8)
            transpose_8(lines + r, 1);
    }
}
#endif

/* ---- lines to counts --------------------------------------------------------------------- */

struct counter {
    line plane[SLICED_PLANES];
};

/* Adds two bits to a plane; returns the carry. */
INLINE line add_two(line *plane, line a, line b)
{
    line carry = MAJORITY(*plane, a, b);
    *plane = PARITY(*plane, a, b);
    return carry;
}

/* An index is in units of 8 bytes, so that the address needs no shift. */
INLINE line at(const line *lines, uint16_t index)
{
    return *(const line *)((const char *)lines + 8 * (size_t)index);
}

/* With AVX-512 loads are scarce, a line is two of them: four indices come in one, and lines
 * half a class ahead are fetched from the second cache (1.05 times as fast on Zen 5). */
INLINE void load_4(line *x, const line *lines, const uint16_t *index)
{
    uint64_t four = 0, later = 0;
    if (LINE_WORDS == 8) {
        memcpy(&four, index, sizeof four);
        memcpy(&later, index + SLICED_AHEAD, sizeof later);
    }
    RB_UNROLL(4)
    for (int i = 0; i < 4 && LINE_WORDS == 8; i++)
        RB_PREFETCH((const char *)lines + 8 * (size_t)(uint16_t)(later >> 16 * i), 3);
    RB_UNROLL(4)
    for (int i = 0; i < 4; i++)
        x[i] = at(lines, LINE_WORDS == 8 ? (uint16_t)(four >> 16 * i) : index[i]);
}

/* The lines among themselves first, so that no plane is waited for: of eight lines each plane takes
 * in one pair. */
INLINE line add_8(struct counter *n, const line *lines, const uint16_t *index)
{
    line x[4], y[4];
    load_4(x, lines, index);
    load_4(y, lines, index + 4);
    line a = add_two(&x[0], x[1], x[2]);
    line b = add_two(&y[0], y[1], y[2]);
    line c = add_two(&x[0], x[3], y[0]);
    line d = add_two(&n->plane[0], x[0], y[3]);
    line e = add_two(&a, b, c);
    line f = add_two(&n->plane[1], a, d);
    return add_two(&n->plane[2], e, f);
}

INLINE line add_16(struct counter *n, const line *lines, const uint16_t *index)
{
    line a = add_8(n, lines, index);
    line b = add_8(n, lines, index + 8);
    return add_two(&n->plane[3], a, b);
}

INLINE line add_32(struct counter *n, const line *lines, const uint16_t *index)
{
    line a = add_16(n, lines, index);
    line b = add_16(n, lines, index + 16);
    return add_two(&n->plane[4], a, b);
}

/* Adds a bit to a plane; returns the carry. */
INLINE line add_one(line *plane, line a)
{
    line carry = *plane & a;
    *plane ^= a;
    return carry;
}

INLINE void add_carry(struct counter *n, int plane, line carry)
{
    RB_UNROLL(13)
    for (int p = plane; p < SLICED_PLANES; p++)
        carry = add_one(&n->plane[p], carry);
}

/* Adds one class to the counter; returns where the next class begins.  What is left of four chunks
 * comes first: its carry goes in with theirs, and only one runs up the planes. */
INLINE const uint16_t *count_class(struct counter *n, const line *lines, const uint16_t *classes)
{
    int n_chunks = *classes++;
    line carry = ZERO;
    if (n_chunks & 1) {
        carry = add_8(n, lines, classes);
        carry = add_one(&n->plane[3], carry);
        classes += 8;
    }
    if (n_chunks & 2) {
        line more = add_16(n, lines, classes);
        carry = add_two(&n->plane[4], carry, more);
        classes += 16;
    } else {
        carry = add_one(&n->plane[4], carry);
    }
    if (n_chunks < 4)
        add_carry(n, 5, carry);
    for (; n_chunks >= 4; n_chunks -= 4, classes += 32) {
        line more = add_32(n, lines, classes);
        add_carry(n, 6, add_two(&n->plane[5], carry, more));
        carry = ZERO;
    }
    return classes;
}

/* ---- what comes next -------------------------------------------------------------------------- */

/* The rows that are transposed next, on their way into the second cache while these are counted: a
 * few with every class, since many at once would be waited for.  One past the last block
 * they are memory that may not be there, which a prefetch may touch. */
struct next_rows {
    const uint64_t *row;
    ptrdiff_t stride;
    int64_t n_words, n_steps, due; /* each step makes BLOCK_ROWS / n_steps rows due */
};

INLINE void fetch_some(struct next_rows *next)
{
    for (next->due += BLOCK_ROWS; next->due >= next->n_steps; next->due -= next->n_steps) {
        for (int64_t w = 0; w < next->n_words; w += 8)
            RB_PREFETCH(next->row + w, 2);
        next->row += next->stride;
    }
}

/* ---- counts to sums ---------------------------------------------------------------------- */

/* number = counter - number; the digit of a difference is that of the sum. */
INLINE void subtract_from(const struct counter *n, line *number)
{
    line borrow = ZERO;
    RB_UNROLL(13)
    for (int p = 0; p < SLICED_PLANES; p++) {
        line x = n->plane[p], y = number[p];
        number[p] = PARITY(x, y, borrow);
        borrow = BORROW(x, y, borrow);
    }
}

/* The counter passes the classes in an order in which one bit changes at a time: bit k after each
 * odd multiple of 2^k classes, and as if the highest one changed after the last.  Number k is what
 * the counter gained between the changes of bit k, every other time: with c' at one and c at the
 * next it goes from z to c' - z and to c - (c' - z) = z + (c - c').  All of them begin with bit k
 * on, so that it counts the samples with the bit off; number `size` counts all. */
TARGET static const uint16_t *count_group(const line *lines, const uint16_t *classes, int size,
                                   line *number, struct next_rows *next)
{
    struct counter n = {{ZERO}};
    memset(number, 0, (size_t)size * SLICED_PLANES * sizeof *number);
    for (int i = 1; i <= 1 << size; i++) {
        fetch_some(next);
        classes = count_class(&n, lines, classes);
        const int bit = sliced_changed(i, size);
        subtract_from(&n, number + bit * SLICED_PLANES);
    }
    RB_UNROLL(13)
    for (int p = 0; p < SLICED_PLANES; p++)
        number[size * SLICED_PLANES + p] = n.plane[p];
    return classes;
}

/* kept += part, or kept = part for the first tile: numbers of these planes, one after the other. */
TARGET static void add_tile(line *kept, int planes, const line *part, int n_numbers, int first)
{
    for (int k = 0; k < n_numbers; k++, kept += planes, part += SLICED_PLANES) {
        line carry = ZERO;
        for (int p = 0; p < planes; p++) {
            line x = first ? ZERO : kept[p], y = p < SLICED_PLANES ? part[p] : ZERO;
            kept[p] = PARITY(x, y, carry);
            carry = MAJORITY(x, y, carry);
        }
    }
}

/* ---- sums to extremes -------------------------------------------------------------------- */

struct block {
    line present; /* the rows that are there */
    const struct extremes *extremes;
    int64_t *growth;
};

INLINE line first_rows(int n_rows)
{
    line present;
    uint64_t *word = (uint64_t *)&present;
    for (int q = 0; q < LINE_WORDS; q++, n_rows -= 64)
        word[q] = n_rows >= 64 ? ~(uint64_t)0 : n_rows > 0 ? ((uint64_t)1 << n_rows) - 1 : 0;
    return present;
}

/* Digit p of a number, for every row. */
INLINE line spread(int64_t number, int p) { return ZERO - ((uint64_t)number >> p & 1); }

/* One row's number, in two's complement. */
static inline int64_t number_of(const line *number, int sign_plane, int row)
{
    const uint64_t *word = (const uint64_t *)number + row / 64;
    int64_t value = 0;
    for (int p = sign_plane; p >= 0; p--) {
        int64_t bit = word[p * LINE_WORDS] >> row % 64 & 1;
        value = 2 * value + (p == sign_plane ? -bit : bit);
    }
    return value;
}

/* All rows' numbers, none below 0: as many at a time as a line has words. */
TARGET static void read_numbers(const line *number, int planes, int n_rows, int64_t *values)
{
    line place;
    for (int i = 0; i < LINE_WORDS; i++)
        ((uint64_t *)&place)[i] = (uint64_t)i;
    for (int row = 0; row < n_rows; row += LINE_WORDS) {
        const uint64_t *word = (const uint64_t *)number + row / 64;
        const line shift = place + (uint64_t)(row % 64);
        line value = ZERO;
        for (int p = planes - 1; p >= 0; p--)
            value = value + value + ((ZERO + word[p * LINE_WORDS]) >> shift & 1);
        memcpy(values + row, &value, (size_t)smaller(LINE_WORDS, n_rows - row) * sizeof *values);
    }
}

/* S = total - 2 less in two's complement, and on the way two comparisons with constants:
 * S + ~maximum carries over iff S > maximum, S + ~minimum + 1 iff S >= minimum.  At the sign plane
 * a 1 weighs less than a 0, so both operands are flipped. */
TARGET static void compare(const struct block *block, const line *total, const line *less,
                           int planes, int64_t vector)
{
    const int64_t maximum = block->extremes->maxima[vector];
    const int64_t minimum = block->extremes->minima[vector];
    line sum[64], twice = ZERO, borrow = ZERO, above = ZERO, not_below = ~ZERO;
    for (int p = 0; p < planes; p++) {
        sum[p] = PARITY(total[p], twice, borrow);
        borrow = BORROW(total[p], twice, borrow);
        twice = less[p];
        above = MAJORITY(sum[p], spread(~maximum, p), above);
        not_below = MAJORITY(sum[p], spread(~minimum, p), not_below);
    }
    sum[planes] = twice ^ borrow;
    above = MAJORITY(~sum[planes], spread(maximum, planes), above);
    not_below = MAJORITY(~sum[planes], spread(minimum, planes), not_below);

    const line found = (above | ~not_below) & block->present;
    const uint64_t *word = (const uint64_t *)&found;
    for (int q = 0; q < LINE_WORDS; q++) {
        uint64_t rows = word[q];
        for (int row = 64 * q; rows != 0; row++, rows >>= 1)
            if (rows & 1)
                block->growth[row] +=
                    widen_to(number_of(sum, planes, row), block->extremes, vector);
    }
}

/* ---- sums to studentised extremes --------------------------------------------------------- */

/* Numbers that come one after the other, as the transposition of their planes leaves them: eight
 * planes are eight registers of bits, and after three rounds of swaps each byte of a register has
 * eight digits of one row.  So they come doubled in 32 bits, in an order of rows that find_order
 * reads off the rows' own numbers. */
enum { DIGIT_BYTES = 3 };

TARGET static void read_twice(const line *number, int planes, int32_t *values)
{
    line x[DIGIT_BYTES][8];
    const uint8_t *byte[DIGIT_BYTES];
    const int n_bytes = planes / 8 + 1; /* of planes + 1 digits */
    for (int g = 0; g < n_bytes; g++) {
        RB_UNROLL(8)
        for (int k = 0; k < 8; k++) {
            const int p = 8 * g + k - 1; /* the lowest digit of a number that is doubled is 0 */
            x[g][k] = p >= 0 && p < planes ? number[p] : ZERO;
        }
        swap_blocks(x[g], 4, 4);
        swap_blocks(x[g], 2, 2);
        swap_blocks(x[g], 1, 1);
        byte[g] = (const uint8_t *)x[g];
    }
    if (n_bytes == 1)
        for (int i = 0; i < BLOCK_ROWS; i++)
            values[i] = byte[0][i];
    else if (n_bytes == 2)
        for (int i = 0; i < BLOCK_ROWS; i++)
            values[i] = byte[0][i] | byte[1][i] << 8;
    else
        for (int i = 0; i < BLOCK_ROWS; i++)
            values[i] = byte[0][i] | byte[1][i] << 8 | byte[2][i] << 16;
}

TARGET static void find_order(int32_t *order)
{
    line number[9]; /* digits of up to 512 rows */
    uint64_t *word = (uint64_t *)number;
    for (int p = 0; p < 9; p++)
        for (int q = 0; q < LINE_WORDS; q++, word++) {
            *word = 0;
            for (int r = 0; r < 64; r++)
                *word |= (uint64_t)((64 * q + r) >> p & 1) << r;
        }
    read_twice(number, 9, order);
    for (int i = 0; i < BLOCK_ROWS; i++)
        order[i] /= 2;
}

#ifndef REALS /* as many reals as a line has words */
typedef double reals;
#define REALS(value) (value)
#define REALS_OF(integers) ((double)*(integers))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#endif

/* The rows of a block in the order of read_twice; those that are missing have scale 0. */
struct standard {
    int32_t totals[BLOCK_ROWS];
    RB_ALIGNED(64) double means[BLOCK_ROWS], scales[BLOCK_ROWS];
};

static void fill_standard(struct standard *standard, const struct studentised *into,
                          const int64_t *totals, int n_rows, const int32_t *order)
{
    for (int i = 0; i < BLOCK_ROWS; i++) {
        const int row = order[i], present = row < n_rows;
        standard->totals[i] = present ? (int32_t)totals[row] : 0;
        standard->means[i] = present ? into->means[row] : 0;
        standard->scales[i] = present ? into->scales[row] : 0;
    }
}

INLINE void widen_studentised(const struct studentised *into, const struct standard *standard,
                              const int32_t *twice_less, int64_t vector)
{
    const reals offset = REALS(into->offsets[vector]), sign_sum = REALS(into->sign_sums[vector]);
    reals high = REALS(0.0), low = REALS(0.0);
    for (int i = 0; i < BLOCK_ROWS; i += LINE_WORDS) {
        int32_t sum[LINE_WORDS];
        RB_UNROLL(8)
        for (int lane = 0; lane < LINE_WORDS; lane++)
            sum[lane] = standard->totals[i + lane] - twice_less[i + lane];
        const reals mean = *(const reals *)(standard->means + i);
        const reals scale = *(const reals *)(standard->scales + i);
        const reals expected = mean * sign_sum;
        const reals studentised = (REALS_OF(sum) - offset - expected) * scale;
        high = LARGER(high, studentised);
        low = SMALLER(low, studentised);
    }
    double highest = into->highest[vector], lowest = into->lowest[vector];
    for (int lane = 0; lane < LINE_WORDS; lane++) {
        const double h = ((const double *)&high)[lane], l = ((const double *)&low)[lane];
        highest = h > highest ? h : highest;
        lowest = l < lowest ? l : lowest;
    }
    into->highest[vector] = highest;
    into->lowest[vector] = lowest;
}

/* As many lanes at a time as there are registers to spare: the others' sums come from the second cache
 * in the order in which they lie. */
TARGET static void raise_maxima(const double *sums, const double *others, ptrdiff_t stride,
                                ptrdiff_t n_others, const double *means, const double *scales,
                                const double *sign_sums, ptrdiff_t n, double *maxima)
{
    enum { REGS = 8 / LINE_WORDS };
    for (ptrdiff_t v = 0; v < n; v += 8) {
        reals ours[REGS], signs[REGS], most[REGS];
        RB_UNROLL(8)
        for (int i = 0; i < REGS; i++) {
            memcpy(&ours[i], sums + v + i * LINE_WORDS, sizeof(reals));
            memcpy(&signs[i], sign_sums + v + i * LINE_WORDS, sizeof(reals));
            memcpy(&most[i], maxima + v + i * LINE_WORDS, sizeof(reals));
        }
        for (ptrdiff_t g = 0; g < n_others; g++) {
            const reals mean = REALS(means[g]), scale = REALS(scales[g]);
            RB_UNROLL(8)
            for (int i = 0; i < REGS; i++) {
                reals theirs;
                memcpy(&theirs, others + g * stride + v + i * LINE_WORDS, sizeof(reals));
                const reals expected = mean * signs[i];
                const reals studentised = (ours[i] - theirs - expected) * scale;
                most[i] = LARGER(most[i], studentised);
            }
        }
        memcpy(maxima + v, most, 8 * sizeof *maxima);
    }
}

/* ---- the block --------------------------------------------------------------------------- */

/* What is done with the finished sums: one of the two. */
struct purpose {
    const struct block *block;
    const struct studentised *into;
    int n_into;
    const int32_t *order;
};

/* One tile after the other, and in the last one group after the other: popcount(f) and less, the sums
 * over samples with sign -1, of its vectors. */
INLINE void count_block(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                        ptrdiff_t stride, int n_rows, int64_t *totals,
                        const struct purpose *purpose)
{
    const int planes = sliced_sum_planes(plan);
    line *const lines = scratch;
    line *const numbers = lines + 1 + 64 * plan->tile_words;
    line *const kept = numbers + (SLICED_MOST_VECTORS + 1) * SLICED_PLANES;
    const uint16_t *classes = plan->classes;
    struct standard standard[SLICED_MOST_INTO];
    int32_t twice_less[BLOCK_ROWS];
    const uint64_t *row[BLOCK_ROWS]; /* those that are missing repeat the last */
    for (int i = 0; i < BLOCK_ROWS; i++)
        row[i] = rows + (i < n_rows ? i : n_rows - 1) * stride;
    lines[0] = ZERO;

    for (int64_t start = 0; start < plan->n_words; start += plan->tile_words) {
        const int first = start == 0, last = plan->n_words - start <= plan->tile_words;
        struct next_rows next = {rows + (last ? BLOCK_ROWS * stride : start + plan->tile_words),
                                 stride, plan->tile_words, plan->n_classes, 0};
        transpose(lines + 1, row, start, last ? plan->n_words - start : plan->tile_words);
        for (int64_t g = 0; g < plan->n_groups; g++) {
            const int64_t vector = sliced_group(plan, g);
            const int size = (int)(sliced_group(plan, g + 1) - vector);
            const line *sums = numbers;
            int apart = SLICED_PLANES;
            classes = count_group(lines, classes, size, numbers, &next);
            if (plan->n_tiles > 1) {
                sums = kept + (vector + g) * planes;
                apart = planes;
                add_tile(kept + (vector + g) * planes, planes, numbers, size + 1, first);
            }
            if (!last)
                continue;
            if (g == 0) {
                read_numbers(sums + size * apart, planes, n_rows, totals);
                for (int i = 0; i < purpose->n_into; i++)
                    fill_standard(&standard[i], &purpose->into[i], totals, n_rows, purpose->order);
            }
            for (int k = 0; k < size; k++) {
                if (purpose->block) {
                    compare(purpose->block, sums + size * apart, sums + k * apart, planes,
                            vector + k);
                    continue;
                }
                read_twice(sums + k * apart, planes, twice_less);
                for (int i = 0; i < purpose->n_into; i++)
                    widen_studentised(&purpose->into[i], &standard[i], twice_less, vector + k);
            }
        }
    }
}

TARGET static void scan(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                        ptrdiff_t stride, int n_rows, const struct extremes *extremes,
                        int64_t *totals, int64_t *growth)
{
    const struct block block = {first_rows(n_rows), extremes, growth};
    const struct purpose purpose = {&block, NULL, 0, NULL};
    memset(growth, 0, (size_t)n_rows * sizeof *growth);
    count_block(plan, scratch, rows, stride, n_rows, totals, &purpose);
}

TARGET static void studentise(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                              ptrdiff_t stride, int n_rows, const struct studentised *into,
                              int n_into)
{
    int64_t totals[BLOCK_ROWS];
    int32_t order[BLOCK_ROWS];
    find_order(order);
    const struct purpose purpose = {NULL, into, n_into, order};
    count_block(plan, scratch, rows, stride, n_rows, totals, &purpose);
}
