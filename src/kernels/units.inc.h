/* Real-valued losses by look-up.  What a few samples add to a vector's count is one of the sums of
 * their subsets, the one that the vector's signs choose.  All these sums fill one register:
 *
 *     sums   = { 0, a, b, a+b, c, a+c, b+c, a+b+c }    (STEP = 3 samples: 8 lanes)
 *     count += sums[signs & 7],   signs >>= 3
 *
 * and the permutation heeds only the low STEP bits of an index, so that the packed signs are the
 * indices as they are.  A register of signs holds 32 samples: lane 2v those of vector v of one
 * strip, lane 2v + 1 those of vector v of the next, so that the halves of each 64-bit lane of the
 * counts are either strip's, in order.  Several registers share the sums, and rows the shifts.
 *
 * Included once by each units_<isa>.c, which defines
 *
 *     TARGET, EACH       attributes of a function, and of an inline one, that uses the instructions
 *     COUNT_UNITS        the name of the count_units_fn
 *     reg                a register of 2^STEP lanes of 32 bits
 *     REGS, ROWS         how many registers share the sums, how many rows the shifts; at most 4
 *     struct half        half a word of losses, as `prepare` makes it
 *     subset_sums        of losses i .. i + n - 1 of a half, n at most STEP
 *     half_words         the signs of samples 0..31 or 32..63 of a word, as above
 *     zero, add_picked, shift, add_even, add_odd
 *     UNROLL_STEPS       before the loop over half a word
 */
enum {
    REG_VECTORS = 1 << (STEP - 1), /* of either strip */
    PAIR_REGS = LANES / REG_VECTORS,
    WIDEN_WORDS = 3, /* 192 losses of up to 2^24 fit 32 bits; 256 do not */
};

/* Adds samples i .. i + n - 1 of each row.  n, n_rows and n_regs are constants at each call, here
 * and below, so that the sums stay in registers. */
EACH void add_samples(const struct half *halves, int i, int n, int n_rows, int n_regs,
                      reg signs[REGS], reg counts[ROWS][REGS])
{
    RB_UNROLL_ALL
    for (int r = 0; r < n_rows; r++) {
        const reg sums = subset_sums(&halves[r], i, n);
        RB_UNROLL_ALL
        for (int g = 0; g < n_regs; g++)
            counts[r][g] = add_picked(counts[r][g], signs[g], sums);
    }
    RB_UNROLL_ALL
    for (int g = 0; g < n_regs; g++)
        signs[g] = shift(signs[g]);
}

EACH void add_word(const uint64_t *const even[REGS], const uint64_t *const odd[REGS],
                   ptrdiff_t word, const int32_t *rows, ptrdiff_t row_stride, int n_rows,
                   int n_regs, reg counts[ROWS][REGS])
{
    RB_UNROLL(1)
    for (int upper = 0; upper < 2; upper++) {
        struct half halves[ROWS];
        reg signs[REGS];
        RB_UNROLL_ALL
        for (int r = 0; r < n_rows; r++)
            prepare(&halves[r], rows + r * row_stride + word * WORD_BITS + upper * HALF_WORD);
        RB_UNROLL_ALL
        for (int g = 0; g < n_regs; g++)
            signs[g] = half_words(even[g] + word * LANES, odd[g] + word * LANES, upper);
        int i = 0;
        UNROLL_STEPS
        for (; i + STEP <= HALF_WORD; i += STEP)
            add_samples(halves, i, STEP, n_rows, n_regs, signs, counts);
        if (HALF_WORD % STEP)
            add_samples(halves, i, HALF_WORD % STEP, n_rows, n_regs, signs, counts);
    }
}

/* The even strip of register g, and the first of its vectors. */
EACH ptrdiff_t strip_of(ptrdiff_t first, int g) { return first + 2 * (g / PAIR_REGS); }
EACH ptrdiff_t vector_of(int g) { return g % PAIR_REGS * REG_VECTORS; }

/* The strips from `first` on, as many as n_regs hold; the last odd one may be missing. */
EACH void count_strips(const struct sign_tile *signs, ptrdiff_t first, int n_regs,
                       const int32_t *rows, ptrdiff_t row_stride, int n_rows, int64_t *counts,
                       ptrdiff_t counts_stride)
{
    const uint64_t *even[REGS], *odd[REGS];
    RB_UNROLL_ALL
    for (int g = 0; g < n_regs; g++) {
        const ptrdiff_t strip = strip_of(first, g), stride = signs->strip_stride * LANES;
        even[g] = signs->lines + strip * stride + vector_of(g);
        odd[g] = even[g] + (strip + 1 < signs->n_strips) * stride;
    }
    for (ptrdiff_t start = 0; start < signs->n_words; start += WIDEN_WORDS) {
        reg sum[ROWS][REGS];
        RB_UNROLL_ALL
        for (int r = 0; r < n_rows; r++)
            RB_UNROLL_ALL
            for (int g = 0; g < n_regs; g++)
                sum[r][g] = zero();
        for (ptrdiff_t w = start; w < signs->n_words && w < start + WIDEN_WORDS; w++)
            add_word(even, odd, w, rows, row_stride, n_rows, n_regs, sum);
        RB_UNROLL_ALL
        for (int r = 0; r < n_rows; r++)
            RB_UNROLL_ALL
            for (int g = 0; g < n_regs; g++) {
                const ptrdiff_t strip = strip_of(first, g);
                int64_t *count = counts + r * counts_stride + strip * LANES + vector_of(g);
                add_even(count, sum[r][g]);
                if (strip + 1 < signs->n_strips)
                    add_odd(count + LANES, sum[r][g]);
            }
    }
}

EACH void count_rows(const struct sign_tile *signs, ptrdiff_t first, int n_regs,
                     const int32_t *rows, ptrdiff_t row_stride, ptrdiff_t n_rows,
                     int64_t *counts, ptrdiff_t counts_stride)
{
    ptrdiff_t r = 0;
    for (; r + ROWS <= n_rows; r += ROWS)
        count_strips(signs, first, n_regs, rows + r * row_stride, row_stride, ROWS,
                     counts + r * counts_stride, counts_stride);
    for (; ROWS > 1 && r < n_rows; r++)
        count_strips(signs, first, n_regs, rows + r * row_stride, row_stride, 1,
                     counts + r * counts_stride, counts_stride);
}

RB_ON_A_PAGE TARGET void COUNT_UNITS(const struct sign_tile *signs, const int32_t *rows,
                                     ptrdiff_t row_stride, ptrdiff_t n_rows, int64_t *counts,
                                     ptrdiff_t counts_stride)
{
    for (ptrdiff_t strip = 0; strip < signs->n_strips;) {
        const ptrdiff_t left = signs->n_strips - strip;
        if (REGS >= 4 * PAIR_REGS && left >= 7) {
            count_rows(signs, strip, 4 * PAIR_REGS, rows, row_stride, n_rows, counts,
                       counts_stride);
            strip += 8;
        } else if (left >= 3) {
            count_rows(signs, strip, 2 * PAIR_REGS, rows, row_stride, n_rows, counts,
                       counts_stride);
            strip += 4;
        } else {
            count_rows(signs, strip, PAIR_REGS, rows, row_stride, n_rows, counts, counts_stride);
            strip += 2;
        }
    }
}
