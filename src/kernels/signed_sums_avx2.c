/* AVX2 has no popcount instruction: bytes are looked up nibble by nibble (Mula, 2008).
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * A strip is two registers of four vectors.  Three lines at a time go through a full adder,
 *
 *     a + b + c  =  (a ^ b ^ c)  +  2 majority(a, b, c),
 *
 * and their carries up a tree of 16 lines (Harley and Seal), so that one look-up is paid where
 * sixteen would be.  VPSADBW then adds the bytes of each 64-bit lane: that is each vector's own
 * sum, and nothing is summed across lanes.  AND and adder make six operations a line, for the
 * three vector ports.
 */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include "x86.h"

#define AVX2 RB_TARGET("avx2")

enum { HALF = 4 };

RB_INLINE AVX2 __m256i popcount_lanes(__m256i v)
{
    const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                          2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_shuffle_epi8(ones, _mm256_and_si256(v, nibble));
    __m256i high =
        _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
    return _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
}

/* What the lines so far sum up to, but for the carries that have left the tree. */
struct tree {
    const uint64_t *lines, *row;
    __m256i ones, twos, fours, eights;
};

/* *sum becomes the weight-1 bits of *sum + a + b, the weight-2 bits are returned. */
RB_INLINE AVX2 __m256i full_add(__m256i *sum, __m256i a, __m256i b)
{
    __m256i u = _mm256_xor_si256(a, b);
    __m256i carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(*sum, u));
    *sum = _mm256_xor_si256(*sum, u);
    return carry;
}

RB_INLINE AVX2 __m256i line(const struct tree *t, ptrdiff_t w)
{
    return _mm256_and_si256(_mm256_load_si256((const __m256i *)(t->lines + w * LANES)),
                            _mm256_set1_epi64x((int64_t)t->row[w]));
}

RB_INLINE AVX2 __m256i two_lines(struct tree *t, ptrdiff_t w)
{
    return full_add(&t->ones, line(t, w), line(t, w + 1));
}

RB_INLINE AVX2 __m256i four_lines(struct tree *t, ptrdiff_t w)
{
    __m256i a = two_lines(t, w);
    return full_add(&t->twos, a, two_lines(t, w + 2));
}

RB_INLINE AVX2 __m256i eight_lines(struct tree *t, ptrdiff_t w)
{
    __m256i a = four_lines(t, w);
    return full_add(&t->fours, a, four_lines(t, w + 4));
}

RB_INLINE AVX2 __m256i sixteen_lines(struct tree *t, ptrdiff_t w)
{
    __m256i a = eight_lines(t, w);
    return full_add(&t->eights, a, eight_lines(t, w + 8));
}

RB_INLINE AVX2 __m256i add_weighted(__m256i sum, __m256i bits, int log_weight)
{
    return _mm256_add_epi64(sum, _mm256_slli_epi64(popcount_lanes(bits), log_weight));
}

/* Four vectors of one strip against one row, added to their counts. */
AVX2 static __m256i count_half_strip(const uint64_t *lines, const uint64_t *row,
                                     ptrdiff_t n_words, __m256i sum)
{
    const __m256i zero = _mm256_setzero_si256();
    struct tree tree = {lines, row, zero, zero, zero, zero};
    ptrdiff_t w = 0;
    for (; w + 16 <= n_words; w += 16)
        sum = add_weighted(sum, sixteen_lines(&tree, w), 4);
    if (n_words & 8) {
        sum = add_weighted(sum, eight_lines(&tree, w), 3);
        w += 8;
    }
    if (n_words & 4) {
        sum = add_weighted(sum, four_lines(&tree, w), 2);
        w += 4;
    }
    if (n_words & 2) {
        sum = add_weighted(sum, two_lines(&tree, w), 1);
        w += 2;
    }
    if (n_words & 1)
        sum = add_weighted(sum, line(&tree, w), 0);
    sum = add_weighted(sum, tree.eights, 3);
    sum = add_weighted(sum, tree.fours, 2);
    sum = add_weighted(sum, tree.twos, 1);
    return add_weighted(sum, tree.ones, 0);
}

/* Half strip h of some strips. */
static const uint64_t *half_strip(const struct sign_tile *signs, ptrdiff_t h)
{
    return signs->lines + h / 2 * signs->strip_stride * LANES + h % 2 * HALF;
}

AVX2 static int64_t popcount(const uint64_t *words, ptrdiff_t n_words)
{
    __m256i sum = _mm256_setzero_si256();
    int64_t lanes[HALF];
    ptrdiff_t w = 0;
    for (; w + HALF <= n_words; w += HALF)
        sum = add_weighted(sum, _mm256_loadu_si256((const __m256i *)(words + w)), 0);
    _mm256_storeu_si256((__m256i *)lanes, sum);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + popcount_portable(words + w, n_words - w);
}

AVX2 static void count_bits(const struct sign_tile *signs, const uint64_t *rows,
                            ptrdiff_t row_stride, ptrdiff_t n_rows, int64_t *counts,
                            ptrdiff_t counts_stride, int64_t *totals)
{
    for (ptrdiff_t h = 0; h < 2 * signs->n_strips; h++) {
        const uint64_t *lines = half_strip(signs, h);
        for (ptrdiff_t r = 0; r < n_rows; r++) {
            __m256i *sum = (__m256i *)(counts + r * counts_stride + h * HALF);
            _mm256_storeu_si256(sum, count_half_strip(lines, rows + r * row_stride, signs->n_words,
                                                      _mm256_loadu_si256(sum)));
        }
    }
    for (ptrdiff_t r = 0; totals && r < n_rows; r++)
        totals[r] += popcount(rows + r * row_stride, signs->n_words);
}

AVX2 static void widen_extremes(const struct sign_tile *signs, const uint64_t *rows,
                                ptrdiff_t row_stride, ptrdiff_t n_rows, int first, int64_t most,
                                const struct extremes *extremes, int64_t *totals, int64_t *growth)
{
    for (ptrdiff_t r = 0; first && r < n_rows; r++) {
        totals[r] = popcount(rows + r * row_stride, signs->n_words);
        growth[r] = 0;
    }
    for (ptrdiff_t h = 0; h < 2 * signs->n_strips; h++) {
        const uint64_t *lines = half_strip(signs, h);
        const struct extremes half = extremes_from(extremes, h * HALF);
        for (ptrdiff_t r = 0; r < n_rows; r++) {
            const __m256i count = count_half_strip(lines, rows + r * row_stride, signs->n_words,
                                                   _mm256_setzero_si256());
            const __m256i sum = _mm256_sub_epi64(_mm256_add_epi64(count, count),
                                                 _mm256_set1_epi64x(totals[r]));
            const __m256i high = _mm256_loadu_si256((const __m256i *)half.maxima);
            const __m256i low = _mm256_loadu_si256((const __m256i *)half.minima);
            const __m256i beyond =
                _mm256_or_si256(_mm256_cmpgt_epi64(sum, high), _mm256_cmpgt_epi64(low, sum));
            if (!_mm256_testz_si256(beyond, beyond) && totals[r] <= most) {
                int64_t sums[HALF]; /* rare once a few queries have been seen */
                _mm256_storeu_si256((__m256i *)sums, sum);
                for (int lane = 0; lane < HALF; lane++)
                    growth[r] += widen_to(sums[lane], &half, lane);
            }
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
    0, 22, 330,
};
#endif
