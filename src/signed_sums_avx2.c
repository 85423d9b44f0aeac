/* AVX2 has no popcount instruction: bytes are looked up nibble by nibble (Mula, 2008).
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * A strip is two registers of four vectors.  Three lines at a time go through a full adder,
 *
 *     a + b + c  =  (a ^ b ^ c)  +  2 majority(a, b, c),
 *
 * and so on up a tree of 16 lines (Harley and Seal), so that one look-up is paid where sixteen
 * would be.  VPSADBW then adds the bytes of each 64-bit lane: that is each vector's own sum, and
 * nothing is summed across lanes.
 */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include <immintrin.h>

#define AVX2 RB_TARGET("avx2")

enum { HALF = 4, TREE = 16 };

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

/* *sum becomes the weight-1 bits of *sum + a + b, the weight-2 bits are returned. */
RB_INLINE AVX2 __m256i full_add(__m256i *sum, __m256i a, __m256i b)
{
    __m256i u = _mm256_xor_si256(*sum, a);
    __m256i carry = _mm256_or_si256(_mm256_and_si256(*sum, a), _mm256_and_si256(u, b));
    *sum = _mm256_xor_si256(u, b);
    return carry;
}

RB_INLINE AVX2 __m256i masked_line(const uint64_t *lines, const uint64_t *row, ptrdiff_t w)
{
    return _mm256_and_si256(_mm256_load_si256((const __m256i *)(lines + w * LANES)),
                            _mm256_set1_epi64x((int64_t)row[w]));
}

/* Four vectors of one strip against one row. */
AVX2 static void count_half_strip(const uint64_t *lines, const uint64_t *row, ptrdiff_t n_words,
                                  int64_t *counts)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i ones = zero, twos = zero, fours = zero, eights = zero, sixteens = zero;
    ptrdiff_t w = 0;
    for (; w + TREE <= n_words; w += TREE) {
        __m256i eight[2];
        RB_UNROLL(2)
        for (int e = 0; e < 2; e++) {
            __m256i four[2];
            RB_UNROLL(2)
            for (int f = 0; f < 2; f++) {
                const ptrdiff_t at = w + 8 * e + 4 * f;
                __m256i a = full_add(&ones, masked_line(lines, row, at),
                                     masked_line(lines, row, at + 1));
                __m256i b = full_add(&ones, masked_line(lines, row, at + 2),
                                     masked_line(lines, row, at + 3));
                four[f] = full_add(&twos, a, b);
            }
            eight[e] = full_add(&fours, four[0], four[1]);
        }
        sixteens =
            _mm256_add_epi64(sixteens, popcount_lanes(full_add(&eights, eight[0], eight[1])));
    }
    __m256i sum = _mm256_slli_epi64(sixteens, 4);
    sum = _mm256_add_epi64(sum, _mm256_slli_epi64(popcount_lanes(eights), 3));
    sum = _mm256_add_epi64(sum, _mm256_slli_epi64(popcount_lanes(fours), 2));
    sum = _mm256_add_epi64(sum, _mm256_slli_epi64(popcount_lanes(twos), 1));
    sum = _mm256_add_epi64(sum, popcount_lanes(ones));
    for (; w < n_words; w++)
        sum = _mm256_add_epi64(sum, popcount_lanes(masked_line(lines, row, w)));
    __m256i *count = (__m256i *)counts;
    _mm256_storeu_si256(count, _mm256_add_epi64(_mm256_loadu_si256(count), sum));
}

AVX2 static void count_bits(const struct sign_tile *signs, const uint64_t *rows,
                            ptrdiff_t row_stride, ptrdiff_t n_rows, int64_t *counts,
                            ptrdiff_t counts_stride)
{
    for (ptrdiff_t h = 0; h < 2 * signs->n_strips; h++) {
        const uint64_t *lines =
            signs->lines + h / 2 * signs->strip_stride * LANES + h % 2 * HALF;
        for (ptrdiff_t r = 0; r < n_rows; r++)
            count_half_strip(lines, rows + r * row_stride, signs->n_words,
                             counts + r * counts_stride + h * HALF);
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

const struct kernel kernel_avx2 = {
    "avx2",         cpu_has_avx2,      count_bits,          count_units_avx2,
    raise_extremes, popcount_portable, fill_lines_portable,
};
#endif
