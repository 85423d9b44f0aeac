/* AVX-512 with VPOPCNTQ: one line, that is one word of eight vectors, per step.
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * The word of the losses is broadcast, so each lane counts for its own vector and nothing is
 * ever summed across lanes.  Four rows by four strips keep sixteen sums in registers, so that a
 * line is loaded once for four rows and a broadcast serves four strips.  A step is AND, VPOPCNT,
 * ADD: three operations for the two vector ports.
 * No Harley-Seal tree: a carry-save adder costs two operations a line and saves two, so it pays
 * where popcount is emulated (AVX2), not where it is an instruction.
 */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include <immintrin.h>

#define AVX512 RB_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq")

enum { STRIPS = 4, ROWS = 4 };

/* `n_rows` and `n_strips` are constants at each call, so that the sums stay in registers. */
RB_INLINE AVX512 void count_square(const uint64_t *lines, ptrdiff_t strip_stride, int n_strips,
                                   const uint64_t *rows, ptrdiff_t row_stride, int n_rows,
                                   ptrdiff_t n_words, int64_t *counts, ptrdiff_t counts_stride)
{
    __m512i sum[ROWS][STRIPS], word[ROWS];
    RB_UNROLL(4)
    for (int r = 0; r < n_rows; r++)
        RB_UNROLL(4)
        for (int s = 0; s < n_strips; s++)
            sum[r][s] = _mm512_loadu_si512(counts + r * counts_stride + s * LANES);
    for (ptrdiff_t w = 0; w < n_words; w++) {
        RB_UNROLL(4)
        for (int r = 0; r < n_rows; r++)
            word[r] = _mm512_set1_epi64((int64_t)rows[r * row_stride + w]);
        RB_UNROLL(4)
        for (int s = 0; s < n_strips; s++) {
            __m512i line = _mm512_load_si512(lines + (s * strip_stride + w) * LANES);
            RB_UNROLL(4)
            for (int r = 0; r < n_rows; r++) {
                __m512i both = _mm512_and_si512(line, word[r]);
                sum[r][s] = _mm512_add_epi64(sum[r][s], _mm512_popcnt_epi64(both));
            }
        }
    }
    RB_UNROLL(4)
    for (int r = 0; r < n_rows; r++)
        RB_UNROLL(4)
        for (int s = 0; s < n_strips; s++)
            _mm512_storeu_si512(counts + r * counts_stride + s * LANES, sum[r][s]);
}

/* All rows on up to four strips, a constant number at each call. */
RB_INLINE AVX512 void count_strips(const uint64_t *lines, ptrdiff_t strip_stride, int n_strips,
                                   const uint64_t *rows, ptrdiff_t row_stride, ptrdiff_t n_rows,
                                   ptrdiff_t n_words, int64_t *counts, ptrdiff_t counts_stride)
{
    ptrdiff_t r = 0;
    for (; r + ROWS <= n_rows; r += ROWS)
        count_square(lines, strip_stride, n_strips, rows + r * row_stride, row_stride, ROWS,
                     n_words, counts + r * counts_stride, counts_stride);
    for (; r < n_rows; r++)
        count_square(lines, strip_stride, n_strips, rows + r * row_stride, row_stride, 1, n_words,
                     counts + r * counts_stride, counts_stride);
}

AVX512 static void count_bits(const struct sign_tile *signs, const uint64_t *rows,
                              ptrdiff_t row_stride, ptrdiff_t n_rows, int64_t *counts,
                              ptrdiff_t counts_stride)
{
    const ptrdiff_t n_words = signs->n_words, stride = signs->strip_stride;
    for (ptrdiff_t s = 0; s < signs->n_strips; s += STRIPS) {
        const uint64_t *lines = signs->lines + s * stride * LANES;
        int64_t *count = counts + s * LANES;
        switch (signs->n_strips - s) {
        case 1:
            count_strips(lines, stride, 1, rows, row_stride, n_rows, n_words, count,
                         counts_stride);
            break;
        case 2:
            count_strips(lines, stride, 2, rows, row_stride, n_rows, n_words, count,
                         counts_stride);
            break;
        case 3:
            count_strips(lines, stride, 3, rows, row_stride, n_rows, n_words, count,
                         counts_stride);
            break;
        default:
            count_strips(lines, stride, 4, rows, row_stride, n_rows, n_words, count,
                         counts_stride);
        }
    }
}

AVX512 static int raise_extremes(const int64_t *counts, int64_t total, ptrdiff_t n_strips,
                                 int64_t *maxima, int64_t *minima)
{
    const __m512i all = _mm512_set1_epi64(total);
    unsigned moved = 0;
    for (ptrdiff_t v = 0; v < n_strips * LANES; v += LANES) {
        __m512i count = _mm512_loadu_si512(counts + v);
        __m512i sum = _mm512_sub_epi64(_mm512_add_epi64(count, count), all);
        __m512i high = _mm512_loadu_si512(maxima + v), low = _mm512_loadu_si512(minima + v);
        __mmask8 raised = _mm512_cmpgt_epi64_mask(sum, high);
        __mmask8 lowered = _mm512_cmplt_epi64_mask(sum, low);
        if (raised | lowered) { /* rare once a few queries have been seen */
            _mm512_mask_storeu_epi64(maxima + v, raised, sum);
            _mm512_mask_storeu_epi64(minima + v, lowered, sum);
            moved = 1;
        }
    }
    return (int)moved;
}

AVX512 static int64_t popcount(const uint64_t *words, ptrdiff_t n_words)
{
    __m512i sum = _mm512_setzero_si512();
    ptrdiff_t w = 0;
    for (; w + LANES <= n_words; w += LANES)
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_loadu_si512(words + w)));
    if (w < n_words) { /* the last 1..7 words under a mask: lanes that are off are not read */
        __mmask8 left = (__mmask8)((1u << (n_words - w)) - 1u);
        sum = _mm512_add_epi64(
            sum, _mm512_popcnt_epi64(_mm512_maskz_loadu_epi64(left, words + w)));
    }
    return _mm512_reduce_add_epi64(sum);
}

RB_INLINE AVX512 __m512i mix(__m512i z)
{
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 30));
    z = _mm512_mullo_epi64(z, _mm512_set1_epi64((int64_t)0xBF58476D1CE4E5B9u));
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 27));
    z = _mm512_mullo_epi64(z, _mm512_set1_epi64((int64_t)0x94D049BB133111EBu));
    return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

AVX512 static void fill_lines(uint64_t base, int64_t first_vector, int64_t first_word,
                              ptrdiff_t n_words, uint64_t *lines)
{
    uint64_t first[LANES];
    for (int lane = 0; lane < LANES; lane++)
        first[lane] = sign_counter(base, first_vector + lane, first_word);
    __m512i counter = _mm512_loadu_si512(first);
    const __m512i step = _mm512_set1_epi64((int64_t)SIGN_GOLDEN);
    for (ptrdiff_t w = 0; w < n_words; w++) {
        _mm512_store_si512(lines + w * LANES, mix(counter));
        counter = _mm512_add_epi64(counter, step);
    }
}

const struct kernel kernel_avx512 = {
    "avx512",       cpu_has_avx512, count_bits,       count_units_avx512,
    raise_extremes, popcount,       sum_units_avx512, fill_lines,
};
#endif
