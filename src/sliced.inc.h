/* The bit-sliced kernel.  Included once by each sliced_<isa>.c, which defines
 *
 *     line            an unsigned integer, or vector of uint64_t, of one register: a bit per row
 *     LINE_WORDS      its uint64_t
 *     TARGET          the function attribute that allows the instructions
 *     KERNEL          the name of the struct sliced_kernel
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sliced.h"

#ifdef _MSC_VER
#define INLINE static __forceinline
#else
#define INLINE TARGET static inline __attribute__((always_inline))
#endif

#define ZERO ((line){0})
#ifndef PARITY
#define PARITY(a, b, c) ((a) ^ (b) ^ (c))
#define MAJORITY(a, b, c) (((a) & (b)) | ((c) & ((a) ^ (b))))
#endif

/* Full adder: a + b + *sum in every bit position; leaves the sum, returns the carry. */
INLINE line add_bits(line *sum, line a, line b)
{
    line carry = MAJORITY(*sum, a, b);
    *sum = PARITY(*sum, a, b);
    return carry;
}

/* ---- transposition ---- */

#ifndef TRANSPOSE
INLINE void swap_blocks(line *block, int width, uint64_t mask)
{
    for (int i = 0; i < 64; i = ((i | width) + 1) & ~width) {
        line t = ((block[i] >> width) ^ block[i | width]) & mask;
        block[i] ^= t << width;
        block[i | width] ^= t;
    }
}

/* 64 samples: block[r] word q holds row 64 q + r; afterwards block[s] is the line of sample s. */
TARGET static void transpose_word(line *block)
{
    swap_blocks(block, 32, 0x00000000ffffffff);
    swap_blocks(block, 16, 0x0000ffff0000ffff);
    swap_blocks(block, 8, 0x00ff00ff00ff00ff);
    swap_blocks(block, 4, 0x0f0f0f0f0f0f0f0f);
    swap_blocks(block, 2, 0x3333333333333333);
    swap_blocks(block, 1, 0x5555555555555555);
}

/* Rows that are missing read as the last one; `present` keeps them out of the result. */
TARGET static void transpose(line *lines, const uint64_t *rows, ptrdiff_t stride, int n_rows,
                             int64_t n_words)
{
    for (int64_t w = 0; w < n_words; w++) {
        uint64_t *block = (uint64_t *)(lines + 64 * w);
        for (int q = 0; q < LINE_WORDS; q++)
            for (int r = 0; r < 64; r++) {
                int row = 64 * q + r < n_rows ? 64 * q + r : n_rows - 1;
                block[r * LINE_WORDS + q] = rows[row * stride + w];
            }
        transpose_word(lines + 64 * w);
    }
}
#endif

/* ---- counting and folding ---- */

struct tile {
    const line *lines; /* lines[0] is zero, lines[1 + i] sample i */
    int planes;        /* lines from one number to the next */
    int width;         /* bits that hold any class's count */
};

struct counter {
    line ones, twos, fours, eights, sixteens;
};

INLINE line at(const line *lines, uint16_t index)
{
    return *(const line *)((const char *)lines + 8 * (size_t)index);
}

INLINE line add_8(struct counter *n, const line *lines, const uint16_t *index)
{
    line a = add_bits(&n->ones, at(lines, index[0]), at(lines, index[1]));
    line b = add_bits(&n->ones, at(lines, index[2]), at(lines, index[3]));
    line c = add_bits(&n->ones, at(lines, index[4]), at(lines, index[5]));
    line d = add_bits(&n->ones, at(lines, index[6]), at(lines, index[7]));
    line e = add_bits(&n->twos, a, b);
    line f = add_bits(&n->twos, c, d);
    return add_bits(&n->fours, e, f);
}

INLINE line add_16(struct counter *n, const line *lines, const uint16_t *index)
{
    line a = add_8(n, lines, index);
    line b = add_8(n, lines, index + 8);
    return add_bits(&n->eights, a, b);
}

INLINE line add_32(struct counter *n, const line *lines, const uint16_t *index)
{
    line a = add_16(n, lines, index);
    line b = add_16(n, lines, index + 16);
    return add_bits(&n->sixteens, a, b);
}

/* One class: sets count, returns where the next class begins. */
INLINE const uint16_t *count_class(const struct tile *tile, const uint16_t *classes, line *count)
{
    struct counter n = {ZERO, ZERO, ZERO, ZERO, ZERO};
    const line *lines = tile->lines;
    int eighths = *classes++;
    for (int p = 5; p < tile->width; p++)
        count[p] = ZERO;
    if (eighths & 1) {
        n.eights = add_8(&n, lines, classes);
        classes += 8;
    }
    if (eighths & 2) {
        n.sixteens = add_16(&n, lines, classes);
        classes += 16;
    }
    for (; eighths >= 4; eighths -= 4) {
        line carry = add_32(&n, lines, classes);
        for (int p = 5; p < tile->width; p++) {
            line next = count[p] & carry;
            count[p] ^= carry;
            carry = next;
        }
        classes += 32;
    }
    count[0] = n.ones;
    count[1] = n.twos;
    count[2] = n.fours;
    count[3] = n.eights;
    count[4] = n.sixteens;
    return classes;
}

/* sum = a + b, all of `width` bits but the last carry, which goes to sum[width] if there is room. */
INLINE void add_numbers(line *sum, const line *a, const line *b, int width, int planes)
{
    line carry = a[0] & b[0];
    sum[0] = a[0] ^ b[0];
    for (int p = 1; p < width; p++) {
        line x = a[p];
        line next = MAJORITY(x, b[p], carry);
        sum[p] = PARITY(x, b[p], carry);
        carry = next;
    }
    if (width < planes)
        sum[width] = carry;
}

TARGET static const uint16_t *fold(const struct tile *tile, const uint16_t *classes, int level,
                                   line *node)
{
    if (level == 0)
        return count_class(tile, classes, node);

    int planes = tile->planes;
    int width = tile->width + level - 1 < planes ? tile->width + level - 1 : planes;
    line *right = node + (level + 1) * planes;
    line *total = node + (level - 1) * planes;
    classes = fold(tile, classes, level - 1, node);
    classes = fold(tile, classes, level - 1, right);
    for (line *slot = node; slot < total; slot += planes)
        add_numbers(slot, slot, slot + (right - node), width, planes);
    add_numbers(total + planes, total, total + (right - node), width, planes);
    if (width < planes)
        total[width] = ZERO;
    return classes;
}

/* ---- comparing ---- */

struct block {
    line present; /* rows that are there */
    int half_range;
    int64_t *growth;
};

static inline int64_t sum_of_row(const line *sums, int planes, int row)
{
    const uint64_t *word = (const uint64_t *)sums + row / 64;
    int64_t sum = 0;
    for (int p = planes; p >= 0; p--) {
        int64_t bit = word[p * LINE_WORDS] >> row % 64 & 1;
        sum = 2 * sum + (p == planes ? -bit : bit);
    }
    return sum;
}

static inline int64_t positive(int64_t x)
{
    return x > 0 ? x : 0;
}

static void record(const struct block *block, const line *sums, int planes, int row,
                   int64_t *maximum, int64_t *minimum)
{
    int64_t sum = sum_of_row(sums, planes, row);
    if (sum > *maximum) {
        block->growth[row] +=
            block->half_range ? sum - *maximum : positive(sum) - positive(*maximum);
        *maximum = sum;
    }
    if (sum < *minimum) {
        block->growth[row] += block->half_range ? *minimum - sum : 0;
        *minimum = sum;
    }
}

INLINE line bit_of(int64_t number, int p)
{
    return ZERO - ((uint64_t)number >> p & 1);
}

/* One vector: total is popcount(f), less the part of it where the sign is -1. */
TARGET static void compare(const struct block *block, const line *total, const line *less,
                           int planes, int64_t *maximum, int64_t *minimum)
{
    line sums[65], borrow = ZERO, above = ZERO, below = ZERO;
    sums[0] = total[0];
    for (int p = 0; p < planes; p++) {
        if (p > 0) {
            sums[p] = PARITY(total[p], less[p - 1], borrow);
            borrow = MAJORITY(~total[p], less[p - 1], borrow);
        }
        above = MAJORITY(~bit_of(*maximum, p), sums[p], above);
        below = MAJORITY(bit_of(*minimum, p), ~sums[p], below);
    }
    sums[planes] = less[planes - 1] ^ borrow;
    above = MAJORITY(bit_of(*maximum, planes), ~sums[planes], above);
    below = MAJORITY(~bit_of(*minimum, planes), sums[planes], below);

    line found = (above | below) & block->present;
    const uint64_t *word = (const uint64_t *)&found;
    for (int q = 0; q < LINE_WORDS; q++) {
        uint64_t rows = word[q];
        for (int row = 64 * q; rows; row++, rows >>= 1)
            if (rows & 1)
                record(block, sums, planes, row, maximum, minimum);
    }
}

static line first_bits(int n)
{
    line mask;
    uint64_t *word = (uint64_t *)&mask;
    for (int q = 0; q < LINE_WORDS; q++, n -= 64)
        word[q] = n >= 64 ? ~(uint64_t)0 : n > 0 ? ((uint64_t)1 << n) - 1 : 0;
    return mask;
}

/* sums += part, or sums = part for the first tile. */
TARGET static void add_tile(line *sums, int planes, const line *part, int part_planes, int first)
{
    line carry = ZERO;
    for (int p = 0; p < planes; p++) {
        line sum = first ? ZERO : sums[p];
        line bits = p < part_planes ? part[p] : ZERO;
        sums[p] = PARITY(sum, bits, carry);
        carry = MAJORITY(sum, bits, carry);
    }
}

TARGET static void scan(const struct sliced_plan *plan, void *scratch, const uint64_t *rows,
                        ptrdiff_t stride, int n_rows, int64_t *maxima, int64_t *minima,
                        int half_range, int64_t *growth)
{
    struct block block = {first_bits(n_rows), half_range, growth};
    struct tile tile = {scratch, sliced_planes(sliced_tile_samples(plan)), 0};
    line *lines = scratch;
    line *node = lines + 1 + 64 * plan->tile_words;
    line *kept = node + SLICED_NODE_NUMBERS * tile.planes;
    int planes = sliced_planes(plan->n_samples);
    const uint16_t *classes = plan->classes;
    lines[0] = ZERO;
    memset(growth, 0, n_rows * sizeof *growth);

    for (int64_t start = 0; start < plan->n_words; start += plan->tile_words) {
        int64_t left = plan->n_words - start;
        int last = left <= plan->tile_words;
        transpose(lines + 1, rows + start, stride, n_rows, last ? left : plan->tile_words);
        for (int64_t g = 0; g < plan->n_groups; g++) {
            int64_t vector = sliced_group(plan, g);
            int size = (int)(sliced_group(plan, g + 1) - vector);
            line *sums = node;
            tile.width = *classes++;
            classes = fold(&tile, classes, size, node);
            if (plan->n_tiles > 1) {
                sums = kept + (vector + g) * planes;
                for (int k = 0; k <= size; k++)
                    add_tile(sums + k * planes, planes, node + k * tile.planes, tile.planes,
                             start == 0);
            }
            for (int k = 0; last && k < size; k++)
                compare(&block, sums + size * planes, sums + k * planes, planes,
                        maxima + vector + k, minima + vector + k);
        }
    }
}

const struct sliced_kernel KERNEL = {NAME, 64 * LINE_WORDS, scan};
