/* struct packer: every kind of value, at odd addresses, in any stride and either byte order, with
 * each of the ways that labels come in, and a value that is not allowed anywhere in the row. */
#include "kernels/packing.h"

#include <math.h>

#include "check.h"

enum { ROW = 2 }; /* the row asked for: two row strides from the first */

static const char *const kind_names[N_VALUE_KINDS] = {"u8",  "u16", "u32", "u64",
                                                      "f16", "f32", "f64"};
static const int kind_sizes[N_VALUE_KINDS] = {1, 2, 4, 8, 2, 4, 8};

static int is_real(enum value_kind kind) { return kind >= VALUE_F16; }

/* How a row lies in memory. */
static const struct placing {
    int gap;      /* bytes between values; -1: the row runs backwards */
    int past;     /* bytes past a line */
    int swapped;
} placings[] = {{0, 0, 0}, {0, 1, 0}, {0, 7, 1}, {1, 0, 0}, {3, 5, 1}, {-1, 3, 0}};

enum { N_PLACINGS = sizeof placings / sizeof *placings };

/* ---- values as bytes, and back -------------------------------------------------------------- */

static double from_half(uint64_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31)
        v = fraction ? NAN : INFINITY;
    return bits >> 15 ? -v : v;
}

/* For numbers that a half holds exactly. */
static uint64_t to_half(double v)
{
    const uint64_t sign = signbit(v) ? 0x8000 : 0;
    int exponent;
    const double part = frexp(fabs(v), &exponent); /* of [1/2, 1) */
    if (isnan(v) || isinf(v))
        return sign | (isnan(v) ? 0x7e00 : 0x7c00);
    if (fabs(v) < 0x1p-14)
        return sign | (uint64_t)(fabs(v) * 0x1p24);
    return sign | (uint64_t)(exponent + 14) << 10 | (uint64_t)((2 * part - 1) * 1024);
}

static uint64_t bits_of(enum value_kind kind, double v)
{
    uint64_t bits = 0;
    const float single = (float)v;
    if (kind == VALUE_F16)
        return to_half(v);
    if (kind == VALUE_F32)
        memcpy(&bits, &single, sizeof single); /* little-endian machines only */
    else if (kind == VALUE_F64)
        memcpy(&bits, &v, sizeof v);
    else
        bits = (uint64_t)(int64_t)v;
    return bits;
}

static double value_of(enum value_kind kind, uint64_t bits)
{
    float single;
    double v;
    memcpy(&single, &bits, sizeof single);
    memcpy(&v, &bits, sizeof v);
    return kind == VALUE_F16 ? from_half(bits) : kind == VALUE_F32 ? (double)single : v;
}

static void put(char *place, int size, int swapped, uint64_t bits)
{
    for (int byte = 0; byte < size; byte++)
        place[swapped ? size - 1 - byte : byte] = (char)(bits >> 8 * byte);
}

/* m values, as the row ROW of a source. */
static struct source source_of(enum value_kind kind, const uint64_t *bits, int64_t m,
                               const struct placing *placing)
{
    const int size = kind_sizes[kind];
    const ptrdiff_t step = size + (placing->gap > 0 ? placing->gap : 0);
    char *row = memory(step * (m - 1) + size, placing->past);
    struct source s = {.kind = kind, .n_samples = m, .swapped = placing->swapped};
    s.stride = placing->gap < 0 ? -step : step;
    s.row_stride = 13;
    s.values = row + (placing->gap < 0 ? step * (m - 1) : 0);
    for (int64_t i = 0; i < m; i++)
        put((char *)s.values + i * s.stride, size, placing->swapped, bits[i]);
    s.values = (const char *)((uintptr_t)s.values - ROW * (uintptr_t)s.row_stride);
    return s;
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Losses; two classes against label bits; or labels of a range. */
enum rule { LOSSES, TWO_CLASSES, A_RANGE, N_RULES };

static const char *const rule_names[] = {"losses", "two classes", "a range"};

struct classes {
    int first, last;
};

static void set_classes(struct source *s, struct classes classes)
{
    if (is_real(s->kind)) {
        s->first.real = classes.first;
        s->last.real = classes.last;
    } else {
        s->first.integer = (uint64_t)(int64_t)classes.first;
        s->last.integer = (uint64_t)(int64_t)classes.last;
    }
}

/* Values outside both classes and range, some of them only just. */
static uint64_t bad_value(enum value_kind kind, enum rule rule, struct classes classes)
{
    const double bad[] = {classes.first - 1, classes.last + 1, 0.5,      -0.25,
                          INFINITY,          -INFINITY,        NAN};
    const int64_t n = is_real(kind) ? 7 : 2;
    if (rule == TWO_CLASSES && random_below(2))
        return bits_of(kind, classes.first + 1); /* between the two */
    return bits_of(kind, bad[random_below(n)]);
}

static void test_row(const struct packer *packer, enum value_kind kind, enum rule rule, int64_t m,
                     const struct placing *placing)
{
    static const struct classes of_rule[] = {{0, 1}, {-3, 60}, {-3, 60}};
    const struct classes classes = of_rule[rule];
    const int64_t n_words = (m + 63) / 64;
    uint64_t *bits = NEW(uint64_t, m), *labels = NEW(uint64_t, n_words);
    uint64_t *expected = NEW(uint64_t, n_words), *words = NEW(uint64_t, n_words);
    char *label_values = memory(m * kind_sizes[kind], 1);
    for (int64_t i = 0; i < m; i++) {
        const int any = rule == A_RANGE;
        const int range = classes.last - classes.first + 1;
        int value = random_below(2) ? classes.last : classes.first, label = classes.first;
        if (any)
            value = classes.first + (int)random_below(range);
        if (rule != LOSSES)
            label = random_below(2) ? value : any ? classes.first + (int)random_below(range)
                                                  : classes.last;
        bits[i] = bits_of(kind, value);
        if (is_real(kind) && value == 0 && random_below(2))
            bits[i] = bits_of(kind, -0.0);
        labels[i / 64] |= (uint64_t)(label != classes.first) << i % 64;
        put(label_values + i * kind_sizes[kind], kind_sizes[kind], 0, bits_of(kind, label));
        expected[i / 64] |= (uint64_t)(value != label) << i % 64;
    }
    struct source s = source_of(kind, bits, m, placing);
    set_classes(&s, classes);
    s.label_bits = rule == TWO_CLASSES ? labels : NULL;
    s.labels = rule == A_RANGE ? label_values : NULL;
    same_number("pack_row", packer->pack_row(&s, ROW, words), m);
    same_words("words", words, expected, n_words);

    const int64_t places[] = {0, m / 2, m - 1, random_below(m)};
    for (int k = 0; k < 4; k++) {
        const uint64_t good = bits[places[k]];
        bits[places[k]] = bad_value(kind, rule, classes);
        struct source spoilt = source_of(kind, bits, m, placing);
        s.values = spoilt.values;
        same_number("pack_row of a bad value", packer->pack_row(&s, ROW, words), places[k]);
        bits[places[k]] = good;
    }
    forget();
}

/* ---- units ---------------------------------------------------------------------------------- */

/* 0 and 1 and their neighbours, multiples of 2^-24, ties between two of them, tiny ones, any. */
static uint64_t some_loss(enum value_kind kind)
{
    const double k = (double)random_below(1 << 24);
    const double losses[] = {0, -0.0, 1, 1 - 0x1p-11, 1 - 0x1p-24, 1 - 0x1p-53, 0x1p-24, 0x1p-25,
                             0x1p-149, 0x1p-1074, k * 0x1p-24, (2 * k + 1) * 0x1p-26,
                             (k + 0.5) * 0x1p-24, (double)(random_bits() >> 11) * 0x1p-53};
    if (kind == VALUE_F16)
        return random_below(0x3c01); /* the bits of 0 .. 1 */
    return bits_of(kind, losses[random_below(14)]);
}

static uint64_t some_no_loss(enum value_kind kind)
{
    /* the first below 0, the first above 1 */
    const double below[] = {-0x1p-24, -0x1p-149, -0x1p-1074};
    const double above[] = {1 + 0x1p-10, 1 + 0x1p-23, 1 + 0x1p-52};
    const double values[] = {below[kind - VALUE_F16], above[kind - VALUE_F16], -1, 2, 3e4, -3e4,
                             INFINITY, -INFINITY, NAN};
    return bits_of(kind, values[random_below(9)]);
}

static void test_units(const struct packer *packer, enum value_kind kind, int64_t m,
                       const struct placing *placing)
{
    const int64_t n_units = (m + 63) / 64 * 64;
    uint64_t *bits = NEW(uint64_t, m);
    int32_t *units = NEW(int32_t, n_units), *expected = NEW(int32_t, n_units);
    memset(units, -1, (size_t)n_units * sizeof *units);
    for (int64_t i = 0; i < m; i++) {
        bits[i] = some_loss(kind);
        expected[i] = (int32_t)nearbyint(value_of(kind, bits[i]) * 0x1p24); /* ties to even */
    }
    struct source s = source_of(kind, bits, m, placing);
    same_number("units_row", packer->units_row(&s, ROW, units), m);
    same_units("units", units, expected, n_units);

    const int64_t places[] = {0, m / 2, m - 1, random_below(m)};
    for (int k = 0; k < 4; k++) {
        const uint64_t good = bits[places[k]];
        bits[places[k]] = some_no_loss(kind);
        s = source_of(kind, bits, m, placing);
        same_number("units_row of a bad value", packer->units_row(&s, ROW, units), places[k]);
        bits[places[k]] = good;
    }
    forget();
}

void test_packer(const struct packer *packer)
{
    for (int kind = 0; kind < N_VALUE_KINDS; kind++)
        for (int i = 0; i < COUNT_OF_M; i++)
            for (int p = 0; p < N_PLACINGS; p++)
                for (int rule = 0; rule < N_RULES + is_real(kind); rule++) {
                    checking("%s packer, %s, m = %d, placing %d, %s", packer->name,
                             kind_names[kind], (int)some_m[i], p,
                             rule < N_RULES ? rule_names[rule] : "units");
                    if (rule < N_RULES)
                        test_row(packer, kind, rule, some_m[i], &placings[p]);
                    else
                        test_units(packer, kind, some_m[i], &placings[p]);
                }
}
