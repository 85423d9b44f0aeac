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
 * 3. count_four(), fold()  add the 2^t counts up to the t sums Z_j and to popcount(f).
 * 4. compare()  finds the rows whose S_j is outside [minimum, maximum].  They are rare once some
 *    hundred rows have been seen, so their sums are read out one by one, in order.
 *
 * More samples than a tile has are taken tile by tile, and the sums kept bit-sliced in between, so
 * that the lines being counted stay in the second cache.
 *
 * The limit is the rate of vector operations.  Measured at m = 4000, and slower: trees of 8 or 16
 * lines only (1.10, 1.03), a counter whose width is found at run time (1.06), classes of about 30
 * or 120 samples instead of 60 (1.1).  No faster: adders unrolled for every width.
 *
 * The including file defines
 *
 *     line        uint64_t, or a GCC vector of uint64_t, of one register
 *     LINE_WORDS  how many uint64_t
 *     TARGET      the function attribute that permits its instructions
 *     PARITY, MAJORITY  where the instruction set has something better
 *     ZIP_LOW, ZIP_HIGH, LOAD_WORDS  where it interleaves bytes: those of the lower, or upper, half
 *                 of each 16; LOAD_WORDS(rows, w, both): in each 16 bytes two words from w on, or
 *                 one, of a row; rows[0], rows[128] and so on
 */
#include <string.h>

#include "cpu.h"
#include "sliced_plan.h"

#define INLINE RB_INLINE TARGET
#define ZERO ((line){0})

#ifndef PARITY /* sum and carry of the full adder */
#define PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define MAJORITY(a, b, c) (((a) & (b)) | ((c) & ((a) ^ (b))))
#endif

#if defined(RB_GNU)
#define PREFETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define PREFETCH(address) ((void)0)
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
 * 64 bytes of each row at a time: rows a multiple of 512 bytes apart share few sets of the first
 * cache, where nothing would stay for a second visit.  GF2P8AFFINEQB instead of the swaps: 3 ns of
 * the 76 of a row at (4000, 64), AVX-512. */
enum { COLUMNS = 4 }; /* of two words */

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

TARGET static void transpose(line *lines, const uint64_t *const *rows, int64_t start,
                             int64_t n_words)
{
    line bits[COLUMNS][8][16];
    for (int64_t w = start; w < start + n_words; w += 2 * COLUMNS) {
        const int n = (int)smaller(2 * COLUMNS, start + n_words - w);
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
    line plane[SLICED_COUNT_PLANES];
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

INLINE line add_8(struct counter *n, const line *lines, const uint16_t *index)
{
    line x = at(lines, index[0]), y = at(lines, index[3]);
    line a = add_two(&x, at(lines, index[1]), at(lines, index[2]));
    line b = add_two(&y, at(lines, index[4]), at(lines, index[5]));
    line c = add_two(&x, y, at(lines, index[6]));
    line d = add_two(&n->plane[0], x, at(lines, index[7]));
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

INLINE void add_carry(struct counter *n, int plane, line carry)
{
    RB_UNROLL(9)
    for (int p = plane; p < SLICED_COUNT_PLANES; p++) {
        line next = n->plane[p] & carry;
        n->plane[p] ^= carry;
        carry = next;
    }
}

/* Adds one class to the counter; returns where the next class begins. */
INLINE const uint16_t *count_class(struct counter *n, const line *lines, const uint16_t *classes)
{
    int n_chunks = *classes++;
    for (; n_chunks >= 4; n_chunks -= 4, classes += 32)
        add_carry(n, 5, add_32(n, lines, classes));
    if (n_chunks & 2) {
        add_carry(n, 4, add_16(n, lines, classes));
        classes += 16;
    }
    if (n_chunks & 1) {
        add_carry(n, 3, add_8(n, lines, classes));
        classes += 8;
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
            PREFETCH(next->row + w);
        next->row += next->stride;
    }
}

/* ---- counts to sums ---------------------------------------------------------------------- */

/* The digit of a - b is that of a + b; the borrow is the majority of it, b and the last borrow. */
INLINE void subtract(line *difference, const line *a, const line *b, int planes)
{
    line borrow = ZERO;
    for (int p = 0; p < planes; p++) {
        line y = b[p], digit = PARITY(a[p], y, borrow);
        borrow = MAJORITY(digit, y, borrow);
        difference[p] = digit;
    }
}

/* The sum has one plane more than a and b. */
INLINE void add(line *sum, const line *a, const line *b, int planes)
{
    line carry = ZERO;
    for (int p = 0; p < planes; p++) {
        line x = a[p], y = b[p];
        sum[p] = PARITY(x, y, carry);
        carry = MAJORITY(x, y, carry);
    }
    sum[planes] = carry;
}

/* A node of level i stands for 2^i classes, which differ in their i lowest bits.  It is i + 1
 * numbers, `stride` lines apart: number k < i counts the classes with bit k = 0, number i all.
 *
 * Level 2: the counter runs through the classes in Gray order 01, 00, 10, 11 and is copied after
 * each: c1, c2, c3, c4.  Bit 0 is off in the two in the middle, bit 1 in the first two:
 *
 *     numbers  c3 - c1,  c2,  c4
 *
 * so one subtraction does what four additions would.  Copies 1 .. 4 go to places 0, 1, 3, 2. */
INLINE const uint16_t *count_four(const line *lines, const uint16_t *classes, line *node,
                                  int stride, struct next_rows *next)
{
    struct counter n = {{ZERO}};
    for (int i = 0; i < 4; i++) {
        fetch_some(next);
        line *copy = node + (i ^ i >> 1) * stride;
        classes = count_class(&n, lines, classes);
        RB_UNROLL(9)
        for (int p = 0; p < SLICED_COUNT_PLANES; p++)
            copy[p] = n.plane[p];
    }
    subtract(node, node + 3 * stride, node, SLICED_COUNT_PLANES);
    return classes;
}

/* Two halves, left with the highest bit off and right with it on, become one node in the place of
 * the left.  Numbers add up; the left half's total stays where it is, for it is the number of the
 * classes with the highest bit off.  Depth first, so that the halves are still in the first cache
 * when they are added. */
TARGET static const uint16_t *fold(const line *lines, const uint16_t *classes, int level,
                                   line *node, int stride, struct next_rows *next)
{
    if (level == 2)
        return count_four(lines, classes, node, stride, next);

    const int planes = sliced_planes(level - 1);
    const ptrdiff_t right = (level + 1) * stride;
    line *total = node + (level - 1) * stride;
    classes = fold(lines, classes, level - 1, node, stride, next);
    classes = fold(lines, classes, level - 1, node + right, stride, next);
    for (line *number = node; number < total; number += stride)
        add(number, number, number + right, planes);
    add(total + stride, total, total + right, planes);
    total[planes] = ZERO;
    return classes;
}

/* What a group comes to: Z_j of its k-th vector at less + k * stride, and popcount(f). */
struct sums {
    const line *less, *total;
    int stride;
};

/* kept += part, or kept = part for the first tile. */
INLINE void add_part(line *kept, int planes, const line *part, int part_planes, int first)
{
    line carry = ZERO;
    for (int p = 0; p < planes; p++) {
        line x = first ? ZERO : kept[p], y = p < part_planes ? part[p] : ZERO;
        kept[p] = PARITY(x, y, carry);
        carry = MAJORITY(x, y, carry);
    }
}

TARGET static struct sums add_tile(line *kept, int planes, struct sums tile, int tile_planes,
                                   int size, int first)
{
    for (int k = 0; k < size; k++)
        add_part(kept + k * planes, planes, tile.less + k * tile.stride, tile_planes, first);
    add_part(kept + size * planes, planes, tile.total, tile_planes, first);
    return (struct sums){kept, kept + size * planes, planes};
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

/* All rows' numbers, none below 0: eight digits of 64 rows at a time. */
TARGET static void read_numbers(const line *number, int planes, int n_rows, int64_t *values)
{
    memset(values, 0, (size_t)n_rows * sizeof *values);
    for (int row = 0; row < n_rows; row += 64)
        for (int plane = 0; plane < planes; plane += 8) {
            uint64_t word[8] = {0};
            uint8_t byte[64];
            for (int k = 0; k < 8 && plane + k < planes; k++)
                word[k] = ((const uint64_t *)number)[(plane + k) * LINE_WORDS + row / 64];
            sliced_columns(word, byte);
            for (int i = 0; i < 64 && row + i < n_rows; i++)
                values[row + i] |= (int64_t)byte[i] << plane;
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
        borrow = MAJORITY(sum[p], twice, borrow);
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

/* ---- the block --------------------------------------------------------------------------- */

TARGET static void scan(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                        ptrdiff_t stride, int n_rows, const struct extremes *extremes,
                        int64_t *totals, int64_t *growth)
{
    const int planes = sliced_sum_planes(plan), node_stride = sliced_planes(plan->most_levels);
    line *const lines = scratch;
    line *const node = lines + 1 + 64 * plan->tile_words;
    line *const kept = node + sliced_node_lines(plan->most_levels);
    const uint16_t *classes = plan->classes;
    const struct block block = {first_rows(n_rows), extremes, growth};
    const uint64_t *row[BLOCK_ROWS]; /* those that are missing repeat the last */
    for (int i = 0; i < BLOCK_ROWS; i++)
        row[i] = rows + (i < n_rows ? i : n_rows - 1) * stride;
    memset(growth, 0, (size_t)n_rows * sizeof *growth);
    lines[0] = ZERO;

    for (int64_t start = 0; start < plan->n_words; start += plan->tile_words) {
        const int first = start == 0, last = plan->n_words - start <= plan->tile_words;
        struct next_rows next = {rows + (last ? BLOCK_ROWS * stride : start + plan->tile_words),
                                 stride, plan->tile_words, plan->n_groups << plan->most_levels, 0};
        transpose(lines + 1, row, start, last ? plan->n_words - start : plan->tile_words);
        for (int64_t g = 0; g < plan->n_groups; g++) {
            const int64_t vector = sliced_group(plan, g);
            const int size = (int)(sliced_group(plan, g + 1) - vector), levels = *classes++;
            classes = fold(lines, classes, levels, node, node_stride, &next);
            struct sums sums = {node, node + levels * node_stride, node_stride};
            if (plan->n_tiles > 1)
                sums = add_tile(kept + (vector + g) * planes, planes, sums, sliced_planes(levels),
                                size, first);
            if (last && g == 0)
                read_numbers(sums.total, planes, n_rows, totals);
            for (int k = 0; last && k < size; k++)
                compare(&block, sums.total, sums.less + k * sums.stride, planes, vector + k);
        }
    }
}
