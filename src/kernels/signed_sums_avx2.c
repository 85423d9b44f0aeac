/* AVX2 has no popcount, but every CPU that has it has POPCNT, on ports that vectors leave idle.  So
 * the lines, each a register of four vectors' words, are counted in two ways side by side,
 *
 *     count[lane] += popcount(line[lane] & word).
 *
 * Of 21 lines 16 go up a tree of full adders (Harley and Seal), and bytes of the one register
 * that leaves it are looked up nibble by nibble (Mula, 2008): 84 and 8 vector operations.  The other
 * five go lane by lane, three scalar operations each.
 *
 * Two full adders take 8 operations instead of 10 where bits of equal weight come and go in pairs,
 * as x and x ^ y (Demenkov, Kojevnikov, Kulikov and Yaroslavtsev, 2010).  With the carry c,
 *
 *     s + x + y = (s ^ x ^ y) + 2c,     c ^ (s ^ x ^ y) = (s ^ x) | (x ^ y),
 *                                                 c ^ s = (s ^ x) & ~(x ^ y).
 */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include "x86.h"

#define AVX2 RB_TARGET("avx2,popcnt,bmi")

enum {
    HALF = 4,
    TREE = 16,
    GROUP = TREE + 5,
    SMALL = 4 + 1, /* a smaller group, of which a tree takes fewer than 16 / 4 */
};

struct pair {
    __m256i x, parity; /* x ^ y */
};

/* What the lines in it sum up to, but for the carries that have left it. */
struct tree {
    __m256i ones, twos, fours, eights;
};

RB_INLINE AVX2 __m256i line(const uint64_t *lines, const uint64_t *row, int w)
{
    return _mm256_and_si256(_mm256_load_si256((const __m256i *)(lines + w * LANES)),
                            _mm256_set1_epi64x((int64_t)row[w]));
}

RB_INLINE AVX2 struct pair two_lines(const uint64_t *lines, const uint64_t *row, int w)
{
    const __m256i x = line(lines, row, w);
    return (struct pair){x, _mm256_xor_si256(x, line(lines, row, w + 1))};
}

/* *sum becomes the low bits of *sum + p, the carry is returned. */
RB_INLINE AVX2 __m256i add_pair(__m256i *sum, struct pair p)
{
    const __m256i u = _mm256_or_si256(_mm256_xor_si256(*sum, p.x), p.parity);
    *sum = _mm256_xor_si256(*sum, p.parity);
    return _mm256_xor_si256(u, *sum);
}

/* The same of *sum + p + q, with two carries. */
RB_INLINE AVX2 struct pair add_pairs(__m256i *sum, struct pair p, struct pair q)
{
    const __m256i u = _mm256_or_si256(_mm256_xor_si256(*sum, p.x), p.parity);
    const __m256i between = _mm256_xor_si256(*sum, p.parity);
    const __m256i v = _mm256_andnot_si256(q.parity, _mm256_xor_si256(between, q.x));
    *sum = _mm256_xor_si256(between, q.parity);
    return (struct pair){_mm256_xor_si256(u, between), _mm256_xor_si256(u, v)};
}

/* One line, lane by lane.  ANDN takes a word from memory and spares the mask, inverted, a copy. */
RB_INLINE AVX2 void add_lanes(int64_t counts[HALF], const uint64_t *lines, const uint64_t *row,
                              int w)
{
    uint64_t others = ~row[w];
    RB_UNROLL(4)
    for (int lane = 0; lane < HALF; lane++) {
        RB_KEEP_HERE(others);
        counts[lane] += _mm_popcnt_u64(lines[w * LANES + lane] & ~others);
        RB_KEEP_HERE(counts[lane]);
    }
}

/* Four lines into the tree, whose carries are returned; and one lane by lane. */
RB_INLINE AVX2 struct pair add_lines(struct tree *tree, int64_t counts[HALF],
                                     const uint64_t *lines, const uint64_t *row, int w, int other)
{
    const struct pair p = two_lines(lines, row, w), q = two_lines(lines, row, w + 2);
    add_lanes(counts, lines, row, other);
    return add_pairs(&tree->ones, p, q);
}

/* Returns what leaves the tree. */
RB_INLINE AVX2 __m256i add_group(struct tree *tree, int64_t counts[HALF], const uint64_t *lines,
                                 const uint64_t *row)
{
    struct pair p = add_lines(tree, counts, lines, row, 0, TREE);
    struct pair q = add_lines(tree, counts, lines, row, 4, TREE + 1);
    const struct pair fours = add_pairs(&tree->twos, p, q);
    add_lanes(counts, lines, row, TREE + 2);
    p = add_lines(tree, counts, lines, row, 8, TREE + 3);
    q = add_lines(tree, counts, lines, row, 12, TREE + 4);
    return add_pair(&tree->eights, add_pairs(&tree->fours, fours, add_pairs(&tree->twos, p, q)));
}

/* Nothing leaves a tree of fewer than 16 lines. */
RB_INLINE AVX2 void add_small(struct tree *tree, int64_t counts[HALF], const uint64_t *lines,
                              const uint64_t *row)
{
    const __m256i carry = add_pair(&tree->twos, add_lines(tree, counts, lines, row, 0, 4));
    tree->eights = _mm256_or_si256(tree->eights, _mm256_and_si256(tree->fours, carry));
    tree->fours = _mm256_xor_si256(tree->fours, carry);
}

RB_INLINE AVX2 __m256i popcount_bytes(__m256i v)
{
    const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                          2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_shuffle_epi8(ones, _mm256_and_si256(v, nibble));
    __m256i high =
        _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
    return _mm256_add_epi8(low, high);
}

/* 2 bytes + popcount_bytes(v) */
RB_INLINE AVX2 __m256i next_level(__m256i bytes, __m256i v)
{
    return _mm256_add_epi8(_mm256_add_epi8(bytes, bytes), popcount_bytes(v));
}

/* A row's words: groups, smaller ones, and what is left. */
struct parts {
    ptrdiff_t groups, smalls, singles;
};

static struct parts parts_of(ptrdiff_t n_words)
{
    const ptrdiff_t rest = n_words % GROUP, smalls = smaller(rest / SMALL, TREE / 4 - 1);
    return (struct parts){n_words / GROUP, smalls, rest - smalls * SMALL};
}

/* Four vectors of one strip against one row.  Bytes hold 8 (1 + 2 + 4 + 8) at most. */
RB_INLINE AVX2 __m256i count_half_strip(const uint64_t *lines, const uint64_t *row,
                                        struct parts parts)
{
    const __m256i zero = _mm256_setzero_si256();
    struct tree tree = {zero, zero, zero, zero};
    __m256i sixteens = zero, bytes;
    int64_t counts[HALF] = {0};
    for (; parts.smalls > 0; parts.smalls--, row += SMALL, lines += SMALL * LANES)
        add_small(&tree, counts, lines, row);
    for (; parts.singles > 0; parts.singles--, row++, lines += LANES)
        add_lanes(counts, lines, row, 0);
    for (; parts.groups > 0; parts.groups--, row += GROUP, lines += GROUP * LANES) {
        bytes = popcount_bytes(add_group(&tree, counts, lines, row));
        sixteens = _mm256_add_epi64(sixteens, _mm256_sad_epu8(bytes, zero));
    }
    bytes = popcount_bytes(tree.eights);
    bytes = next_level(bytes, tree.fours);
    bytes = next_level(bytes, tree.twos);
    bytes = next_level(bytes, tree.ones);
    const __m256i by_tree =
        _mm256_add_epi64(_mm256_slli_epi64(sixteens, 4), _mm256_sad_epu8(bytes, zero));
    return _mm256_add_epi64(by_tree,
                            _mm256_set_epi64x(counts[3], counts[2], counts[1], counts[0]));
}

/* Half strip h of some strips. */
static const uint64_t *half_strip(const struct sign_tile *signs, ptrdiff_t h)
{
    return signs->lines + h / 2 * signs->strip_stride * LANES + h % 2 * HALF;
}

AVX2 static int64_t popcount(const uint64_t *words, ptrdiff_t n_words)
{
    int64_t count = 0;
    RB_UNROLL(8)
    for (ptrdiff_t w = 0; w < n_words; w++)
        count += _mm_popcnt_u64(words[w]);
    return count;
}

AVX2 static void count_bits(const struct sign_tile *signs, const struct packed_rows *rows,
                            int64_t *counts, ptrdiff_t counts_stride, int64_t *totals)
{
    const struct parts parts = parts_of(signs->n_words);
    for (ptrdiff_t h = 0; h < 2 * signs->n_strips; h++) {
        const uint64_t *lines = half_strip(signs, h);
        for (ptrdiff_t r = 0; r < rows->n_rows; r++) {
            __m256i *sum = (__m256i *)(counts + r * counts_stride + h * HALF);
            const __m256i count = count_half_strip(lines, rows->words + r * rows->stride, parts);
            _mm256_storeu_si256(sum, _mm256_add_epi64(_mm256_loadu_si256(sum), count));
        }
    }
    for (ptrdiff_t r = 0; totals && r < rows->n_rows; r++)
        totals[r] += popcount(rows->words + r * rows->stride, signs->n_words);
}

/* Widens the extremes of half strip h; returns what their complexity gains. */
AVX2 static int64_t widen_half_strip(__m256i sum, const struct extremes *extremes, ptrdiff_t h)
{
    const struct extremes half = extremes_from(extremes, h * HALF);
    int64_t sums[HALF], growth = 0;
    _mm256_storeu_si256((__m256i *)sums, sum);
    for (int lane = 0; lane < HALF; lane++)
        growth += widen_to(sums[lane], &half, lane);
    return growth;
}

AVX2 static void widen_extremes(const struct sign_tile *signs, const struct packed_rows *rows,
                                const struct widening *to)
{
    const struct parts parts = parts_of(signs->n_words);
    const struct extremes *extremes = to->extremes;
    const ptrdiff_t n_rows = rows->n_rows, stride = rows->stride;
    const uint64_t *row = rows->words;
    int64_t *totals = to->totals;
    for (ptrdiff_t r = 0; r < n_rows; r++, row += stride) {
        if (to->first) {
            totals[r] = popcount(row, signs->n_words);
            to->growth[r] = 0;
        }
        const __m256i total = _mm256_set1_epi64x(totals[r]);
        for (ptrdiff_t h = 0; h < 2 * signs->n_strips; h++) {
            const __m256i count = count_half_strip(half_strip(signs, h), row, parts);
            const __m256i sum = _mm256_sub_epi64(_mm256_add_epi64(count, count), total);
            const __m256i high =
                _mm256_loadu_si256((const __m256i *)(extremes->maxima + h * HALF));
            const __m256i low =
                _mm256_loadu_si256((const __m256i *)(extremes->minima + h * HALF));
            const __m256i beyond =
                _mm256_or_si256(_mm256_cmpgt_epi64(sum, high), _mm256_cmpgt_epi64(low, sum));
            if (!_mm256_testz_si256(beyond, beyond) && totals[r] <= to->most)
                to->growth[r] += widen_half_strip(sum, extremes, h); /* rare after some queries */
        }
    }
}

AVX2 static int raise_extremes(const int64_t *counts, int64_t total, ptrdiff_t n_strips,
                               int64_t *maxima, int64_t *minima)
{
    const __m256i all = _mm256_set1_epi64x(total);
    int moved = 0;
    for (ptrdiff_t v = 0; v < n_strips * LANES; v += HALF) {
        __m256i count = _mm256_loadu_si256((const __m256i *)(counts + v));
        __m256i sum = _mm256_sub_epi64(_mm256_add_epi64(count, count), all);
        __m256i *high = (__m256i *)(maxima + v), *low = (__m256i *)(minima + v);
        __m256i raised = _mm256_cmpgt_epi64(sum, _mm256_loadu_si256(high));
        __m256i lowered = _mm256_cmpgt_epi64(_mm256_loadu_si256(low), sum);
        if (_mm256_movemask_epi8(_mm256_or_si256(raised, lowered))) {
            _mm256_maskstore_epi64((long long *)high, raised, sum);
            _mm256_maskstore_epi64((long long *)low, lowered, sum);
            moved = 1;
        }
    }
    return moved;
}

/* a b modulo 2^64 from 32-bit products, where b = 2^32 high + low. */
RB_INLINE AVX2 __m256i multiply(__m256i a, uint64_t b)
{
    const __m256i low = _mm256_set1_epi64x((int64_t)(b & UINT32_MAX));
    const __m256i high = _mm256_set1_epi64x((int64_t)(b >> 32));
    __m256i cross = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), low),
                                     _mm256_mul_epu32(a, high));
    return _mm256_add_epi64(_mm256_mul_epu32(a, low), _mm256_slli_epi64(cross, 32));
}

RB_INLINE AVX2 __m256i mix(__m256i z)
{
    z = multiply(_mm256_xor_si256(z, _mm256_srli_epi64(z, 30)), MIX_FIRST);
    z = multiply(_mm256_xor_si256(z, _mm256_srli_epi64(z, 27)), MIX_SECOND);
    return _mm256_xor_si256(z, _mm256_srli_epi64(z, 31));
}

AVX2 static void fill_lines(uint64_t base, int64_t first_vector, int64_t first_word,
                            ptrdiff_t n_words, uint64_t *lines)
{
    const __m256i step = _mm256_set1_epi64x((int64_t)SIGN_GOLDEN);
    for (int half = 0; half < LANES; half += HALF) {
        uint64_t first[HALF];
        for (int lane = 0; lane < HALF; lane++)
            first[lane] = sign_counter(base, first_vector + half + lane, first_word);
        __m256i counter = _mm256_loadu_si256((const __m256i *)first);
        for (ptrdiff_t w = 0; w < n_words; w++) {
            _mm256_store_si256((__m256i *)(lines + w * LANES + half), mix(counter));
            counter = _mm256_add_epi64(counter, step);
        }
    }
}

const struct kernel kernel_avx2 = {
    "avx2",         cpu_has_avx2,   count_bits, count_units_avx2,
    raise_extremes, sum_units_avx2, fill_lines, widen_extremes,
    0, 26, 430,
};
#endif
