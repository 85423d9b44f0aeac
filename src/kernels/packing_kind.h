/* Bits, and of a REAL kind units, of one row, 64 values a step; included once per KIND by
 * packing_kinds.h for the vector packers, which define
 *
 *     vector_KIND     one register;  lanes_KIND values a register
 *     load_KIND       a register from memory, unaligned
 *     each_KIND       a class in every lane
 *     differs_KIND    bit j set where lane j of one register is not lane j of the other
 *     outside_KIND    bit j set where lane j is not a whole number from `first` to `last`
 *     units_of_KIND   stores the units of one register; returns `seen`, with those outside [0, 1]
 *
 * and, for all of them, TARGET, PREFETCH, and for units
 *
 *     seen_values     what units_of_KIND takes and returns, 0 at first
 *     any_outside     not 0 if a value was outside
 *
 * The last word takes the row's last 64 values and shifts out those already seen: nothing beyond
 * the row is read, and bits past it are zero.  Shorter rows, and the index of a value that is not
 * allowed, are left to the portable packer.
 */

/* One word of values side by side; *bad gets bits if one of them is not allowed. */
RB_INLINE TARGET uint64_t OF(pack_word)(const char *value, const char *label, OF(vector) first,
                                        OF(vector) last, uint64_t *bad)
{
    enum { SIZE = OF(size), LANES = OF(lanes) };
    uint64_t bits = 0;
    RB_UNROLL(16)
    for (int j = 0; j < 64; j += LANES) {
        const OF(vector) x = OF(load)(value + j * SIZE);
        if (label) {
            bits |= OF(differs)(x, OF(load)(label + j * SIZE)) << j;
            *bad |= OF(outside)(x, first, last);
        } else {
            const uint64_t other = OF(differs)(x, first);
            bits |= other << j;
            *bad |= other & OF(differs)(x, last);
        }
    }
    return bits;
}

/* n_words words of values side by side; not 0 if one of them is not allowed.
 * From memory the hardware alone fetches too late: FETCHED_AHEAD made 0.7 of numpy.max's speed 0.95,
 * and a quarter of it 0.8.  Two words a step are fetched 1.1 times as fast as one (Zen 5), and four
 * no faster.
 * The classes come as numbers: around a call that passes registers GCC forgets VZEROUPPER, and the
 * next SSE instruction, wherever it is, takes 100 ns (Sapphire Rapids). */
TARGET static uint64_t OF(pack_words)(const char *value, const char *label, int64_t n_words,
                                      union class_value first_class,
                                      union class_value last_class, uint64_t *words)
{
    enum { SIZE = OF(size), STEP = 2, STEP_BYTES = 64 * SIZE * STEP };
    const OF(vector) first = OF(each)(first_class), last = OF(each)(last_class);
    uint64_t bad = 0;
    int64_t w = 0;
    for (; w + STEP <= n_words && !bad; w += STEP) {
        RB_UNROLL(16)
        for (int line = 0; line < STEP_BYTES; line += 64)
            PREFETCH((const char *)((uintptr_t)value + FETCHED_AHEAD + line));
        RB_UNROLL(2)
        for (int i = 0; i < STEP; i++) {
            words[w + i] = OF(pack_word)(value, label, first, last, &bad);
            value += 64 * SIZE;
            label = label ? label + 64 * SIZE : NULL;
        }
    }
    if (w < n_words && !bad)
        words[w] = OF(pack_word)(value, label, first, last, &bad);
    return bad;
}

TARGET static int64_t OF(pack)(const struct source *s, ptrdiff_t row, uint64_t *words)
{
    enum { SIZE = OF(size) };
    const int64_t n = s->n_samples, whole = n / 64, rest = n % 64;
    const int64_t run = s->stride == SIZE && !s->swapped ? whole : 1; /* words at a time */
    char copy[64 * SIZE];
    uint64_t bad = 0;
    if (n < 64)
        return pack_row_portable(s, row, words);
    for (int64_t w = 0; w < whole && !bad; w += run) {
        const char *value = side_by_side(s, row, 64 * w, 64, SIZE, copy);
        const char *label = s->labels ? s->labels + 64 * w * SIZE : NULL;
        bad = OF(pack_words)(value, label, run, s->first, s->last, words + w);
    }
    if (rest && !bad) {
        const char *value = side_by_side(s, row, n - 64, 64, SIZE, copy);
        const char *label = s->labels ? s->labels + (n - 64) * SIZE : NULL;
        bad = OF(pack_words)(value, label, 1, s->first, s->last, words + whole);
        words[whole] >>= 64 - rest;
    }
    if (bad)
        return pack_row_portable(s, row, words);
    if (s->label_bits)
        for (int64_t w = 0; w < (n + 63) / 64; w++)
            words[w] ^= s->label_bits[w];
    return n;
}

#ifdef REAL_KIND
/* 64 n_steps values side by side; not 0 if one of them is outside [0, 1].  As many again are
 * fetched ahead: they come while these are counted. */
TARGET static uint64_t OF(units_steps)(const char *value, int64_t n_steps, int32_t *units)
{
    enum { SIZE = OF(size), LANES = OF(lanes) };
    const uintptr_t ahead = 64 * SIZE * (uintptr_t)n_steps;
    uint64_t bad = 0;
    for (int64_t i = 0; i < n_steps && !bad; i++) {
        RB_UNROLL(8)
        for (int line = 0; line < 64 * SIZE; line += 64)
            PREFETCH((const char *)((uintptr_t)value + ahead + line));
        seen_values seen = {0};
        RB_UNROLL(16)
        for (int j = 0; j < 64; j += LANES)
            seen = OF(units_of)(OF(load)(value + j * SIZE), units + j, seen);
        bad = any_outside(seen);
        value += 64 * SIZE;
        units += 64;
    }
    return bad;
}

TARGET static int64_t OF(units)(const struct source *s, ptrdiff_t row, int32_t *units)
{
    enum { SIZE = OF(size) };
    const int64_t n = s->n_samples, whole = n / 64, rest = n % 64;
    const int64_t run = s->stride == SIZE && !s->swapped ? whole : 1; /* steps at a time */
    char copy[64 * SIZE];
    uint64_t bad = 0;
    if (n < 64)
        return units_row_portable(s, row, units);
    for (int64_t i = 0; i < whole && !bad; i += run)
        bad = OF(units_steps)(side_by_side(s, row, 64 * i, 64, SIZE, copy), run, units + 64 * i);
    if (rest && !bad)
        bad = OF(units_steps)(side_by_side(s, row, n - 64, 64, SIZE, copy), 1, units + n - 64);
    if (bad)
        return units_row_portable(s, row, units);
    for (int64_t i = n; i % 64; i++)
        units[i] = 0;
    return n;
}
#undef REAL_KIND
#endif

#undef KIND
