/* AVX-512 with VPOPCNTQ: one line, that is one word of eight vectors, per step.
 *
 *     count[lane] += popcount(line[lane] & word)
 *
 * The word of the losses is broadcast, so each lane counts for its own vector and nothing is
 * ever summed across lanes.  A square of four rows by four strips keeps sixteen sums in registers,
 * so that a line is loaded once for four rows and a broadcast serves four strips.  A step is AND,
 * VPOPCNT, ADD: three operations for the two vector ports.  The losses themselves are added up
 * beside them by the scalar POPCNT, whose port has nothing else to do.
 * No Harley-Seal tree: a carry-save adder costs two operations a line and saves two, so it pays
 * where popcount is emulated (AVX2), not where it is an instruction.
 */
#include "signed_sums.h"

#if defined(RB_X86_64)
#include "x86.h"

#define AVX512 RB_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,popcnt")

enum { STRIPS = 4, ROWS = 4 };

/* Where a square reads and writes: counts, or extremes. */
struct square {
    const uint64_t *lines, *rows;
    ptrdiff_t strip_stride, row_stride, n_words;
    int64_t *counts;
    ptrdiff_t counts_stride;
    int64_t *totals, *growth;
    const struct extremes *extremes; /* from the square's first vector on */
    int64_t most;
};

/* The numbers of strips and rows and the flags are constants at each call, here and below, so that
 * the sums stay in registers. */
RB_INLINE AVX512 void count_square(const struct square *at, int n_strips, int n_rows,
                                   __m512i sum[ROWS][STRIPS], int64_t *ones)
{
    for (ptrdiff_t w = 0; w < at->n_words; w++) {
        __m512i word[ROWS];
        RB_UNROLL(4)
        for (int r = 0; r < n_rows; r++) {
            const uint64_t *losses = at->rows + r * at->row_stride + w;
            word[r] = _mm512_set1_epi64((int64_t)*losses);
            if (ones) /* volatile: broadcast from memory, since from a register takes a vector port */
                ones[r] += _mm_popcnt_u64(*(const volatile uint64_t *)losses);
        }
        RB_UNROLL(4)
        for (int s = 0; s < n_strips; s++) {
            __m512i line = _mm512_load_si512(at->lines + (s * at->strip_stride + w) * LANES);
            RB_UNROLL(4)
            for (int r = 0; r < n_rows; r++) {
                __m512i both = _mm512_and_si512(line, word[r]);
                sum[r][s] = _mm512_add_epi64(sum[r][s], _mm512_popcnt_epi64(both));
            }
        }
    }
}

/* `beyond`, with lanes below 0 where a sum of row r is beyond an extreme: one mask at the end takes
 * less than one of each comparison. */
RB_INLINE AVX512 __m512i or_beyond(__m512i beyond, const struct square *at, int n_strips, int r,
                                   const __m512i *sum)
{
    const __m512i total = _mm512_set1_epi64(at->totals[r]);
    RB_UNROLL(4)
    for (int s = 0; s < n_strips; s++) {
        __m512i twice = _mm512_sub_epi64(_mm512_add_epi64(sum[s], sum[s]), total);
        const __m512i high = _mm512_loadu_si512(at->extremes->maxima + s * LANES);
        const __m512i low = _mm512_loadu_si512(at->extremes->minima + s * LANES);
        beyond = _mm512_ternarylogic_epi64(beyond, _mm512_sub_epi64(high, twice),
                                           _mm512_sub_epi64(twice, low), 0xfe);
    }
    return beyond;
}

/* Rare once a few queries have been seen, and so no part of the loop that keeps sums in
 * registers. */
AVX512 void widen_by_counts_avx512(const int64_t *counts, ptrdiff_t n_strips, ptrdiff_t n_rows,
                                   const struct widening *to)
{
    const struct extremes *extremes = to->extremes;
    for (ptrdiff_t r = 0; r < n_rows; r++, counts += STRIPS * LANES) {
        const __m512i total = _mm512_set1_epi64(to->totals[r]), zero = _mm512_setzero_si512();
        __m512i grown = zero;
        for (ptrdiff_t v = 0; v < n_strips * LANES && to->totals[r] <= to->most; v += LANES) {
            const int64_t n = extremes->n_vectors - v; /* of those that count */
            const __mmask8 counted = n >= LANES ? 0xff : (__mmask8)((1 << positive(n)) - 1);
            const __m512i count = _mm512_loadu_si512(counts + v);
            const __m512i sum = _mm512_sub_epi64(_mm512_add_epi64(count, count), total);
            __m512i high = _mm512_loadu_si512(extremes->maxima + v);
            const __m512i low = _mm512_loadu_si512(extremes->minima + v);
            __m512i higher = _mm512_max_epi64(high, sum);
            const __m512i lower = _mm512_min_epi64(low, sum);
            _mm512_storeu_si512(extremes->maxima + v, higher);
            _mm512_storeu_si512(extremes->minima + v, lower);
            if (extremes->half_range) {
                grown = _mm512_mask_sub_epi64(grown, counted, grown, _mm512_sub_epi64(lower, low));
            } else { /* of the maxima only what is above 0 */
                higher = _mm512_max_epi64(higher, zero);
                high = _mm512_max_epi64(high, zero);
            }
            grown = _mm512_mask_add_epi64(grown, counted, grown, _mm512_sub_epi64(higher, high));
        }
        to->growth[r] += _mm512_reduce_add_epi64(grown);
    }
}

/* One square, added to the counts or with `widen` compared with the extremes, and on to the rows
 * after it. */
RB_INLINE AVX512 void do_square(struct square *at, int n_strips, int n_rows, int first, int widen)
{
    __m512i sum[ROWS][STRIPS];
    int64_t ones[ROWS] = {0};
    __m512i beyond = _mm512_setzero_si512();
    RB_UNROLL(4)
    for (int r = 0; r < n_rows; r++)
        RB_UNROLL(4)
        for (int s = 0; s < n_strips; s++)
            sum[r][s] = widen ? _mm512_setzero_si512()
                              : _mm512_loadu_si512(at->counts + r * at->counts_stride + s * LANES);
    count_square(at, n_strips, n_rows, sum, first ? ones : NULL);
    RB_UNROLL(4)
    for (int r = 0; r < n_rows; r++) {
        if (first)
            at->totals[r] = widen ? ones[r] : at->totals[r] + ones[r];
        if (first && widen)
            at->growth[r] = 0;
        if (widen)
            beyond = or_beyond(beyond, at, n_strips, r, sum[r]);
        RB_UNROLL(4)
        for (int s = 0; s < n_strips && !widen; s++)
            _mm512_storeu_si512(at->counts + r * at->counts_stride + s * LANES, sum[r][s]);
    }
    if (widen && n_strips > 0 && _mm512_movepi64_mask(beyond)) {
        int64_t counts[ROWS][STRIPS * LANES];
        RB_UNROLL(4)
        for (int r = 0; r < n_rows; r++)
            RB_UNROLL(4)
            for (int s = 0; s < n_strips; s++)
                _mm512_storeu_si512(counts[r] + s * LANES, sum[r][s]);
        const struct widening here = {0, at->most, at->extremes, at->totals, at->growth};
        widen_by_counts_avx512(counts[0], n_strips, n_rows, &here);
    }
    at->rows += n_rows * at->row_stride;
    if (first || widen)
        at->totals += n_rows;
    if (widen)
        at->growth += n_rows;
    else
        at->counts += n_rows * at->counts_stride;
}

/* The next rows, on their way from memory while these are counted.  After the last ones there may
 * be no memory, which a prefetch may touch. */
RB_INLINE AVX512 void fetch_next(const struct square *at)
{
    for (int r = ROWS; r < 2 * ROWS; r++)
        for (ptrdiff_t w = 0; w < at->n_words; w += LANES)
            _mm_prefetch((const char *)(at->rows + r * at->row_stride + w), _MM_HINT_T0);
}

/* All rows on up to four strips. */
RB_INLINE AVX512 void do_strips(struct square at, int n_strips, ptrdiff_t n_rows, int first,
                                int widen)
{
    ptrdiff_t r = 0;
    for (; r + ROWS <= n_rows; r += ROWS) {
        if (first)
            fetch_next(&at);
        do_square(&at, n_strips, ROWS, first, widen);
    }
    for (; r < n_rows; r++)
        do_square(&at, n_strips, 1, first, widen);
}

RB_INLINE AVX512 void do_up_to_four(const struct square *at, ptrdiff_t n_strips, ptrdiff_t n_rows,
                                    int first, int widen)
{
    switch (n_strips) {
    case 0: /* the totals alone */
        do_strips(*at, 0, n_rows, first, widen);
        break;
    case 1:
        do_strips(*at, 1, n_rows, first, widen);
        break;
    case 2:
        do_strips(*at, 2, n_rows, first, widen);
        break;
    case 3:
        do_strips(*at, 3, n_rows, first, widen);
        break;
    default:
        do_strips(*at, STRIPS, n_rows, first, widen);
    }
}

AVX512 void count_bits_avx512(const struct sign_tile *signs, const struct packed_rows *rows,
                              int64_t *counts, ptrdiff_t counts_stride, int64_t *totals)
{
    struct square at = {.rows = rows->words, .strip_stride = signs->strip_stride,
                        .row_stride = rows->stride, .n_words = signs->n_words,
                        .counts_stride = counts_stride, .totals = totals};
    const ptrdiff_t n_rows = rows->n_rows;
    ptrdiff_t s = 0;
    do {
        at.lines = signs->lines + s * signs->strip_stride * LANES;
        at.counts = counts + s * LANES;
        if (s == 0 && totals)
            do_up_to_four(&at, signs->n_strips, n_rows, 1, 0);
        else
            do_up_to_four(&at, signs->n_strips - s, n_rows, 0, 0);
        s += STRIPS;
    } while (s < signs->n_strips);
}

AVX512 void widen_extremes_avx512(const struct sign_tile *signs, const struct packed_rows *rows,
                                  const struct widening *to)
{
    struct square at = {.rows = rows->words, .strip_stride = signs->strip_stride,
                        .row_stride = rows->stride, .n_words = signs->n_words,
                        .totals = to->totals, .growth = to->growth, .most = to->most};
    const ptrdiff_t n_rows = rows->n_rows;
    for (ptrdiff_t s = 0; s < signs->n_strips; s += STRIPS) {
        at.lines = signs->lines + s * signs->strip_stride * LANES;
        const struct extremes part = extremes_from(to->extremes, s * LANES);
        at.extremes = &part;
        if (s == 0 && to->first)
            do_up_to_four(&at, signs->n_strips, n_rows, 1, 1);
        else
            do_up_to_four(&at, signs->n_strips - s, n_rows, 0, 1);
    }
}

AVX512 int raise_extremes_avx512(const int64_t *counts, int64_t total, ptrdiff_t n_strips,
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

RB_INLINE AVX512 __m512i mix(__m512i z)
{
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 30));
    z = _mm512_mullo_epi64(z, _mm512_set1_epi64((int64_t)MIX_FIRST));
    z = _mm512_xor_si512(z, _mm512_srli_epi64(z, 27));
    z = _mm512_mullo_epi64(z, _mm512_set1_epi64((int64_t)MIX_SECOND));
    return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

AVX512 void fill_lines_avx512(uint64_t base, int64_t first_vector, int64_t first_word,
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
    "avx512",           cpu_has_avx512,     count_bits_avx512, count_units_avx512,
    raise_extremes_avx512, sum_units_avx512, fill_lines_avx512, widen_extremes_avx512,
    0, 48, 1400,
};
#endif
