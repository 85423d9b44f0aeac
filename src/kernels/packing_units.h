/* Units of one row, 64 values a step, as in packing_bits.h; included once per float KIND.  Besides
 *
 *     vector_KIND, lanes_KIND, load_KIND
 *     units_of_KIND   stores the units of one register; returns `seen`, with those outside [0, 1]
 *     seen_values     what it takes and returns, 0 at first
 *     any_outside     not 0 if a value was
 */

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

#undef KIND
