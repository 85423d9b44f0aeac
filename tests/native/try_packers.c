/* The functions of struct packer: every row against value by value. */
#include <math.h>
#include <string.h>

#include "harness.h"

static const int size_of[N_VALUE_KINDS] = {1, 2, 4, 8, 2, 4, 8};

static int is_real(enum value_kind kind) { return kind >= VALUE_F16; }

/* ---- values and their bytes -------------------------------------------------------------- */

static uint64_t mask_of(enum value_kind kind) { return ~(uint64_t)0 >> (64 - 8 * size_of[kind]); }

/* Where a value has its bits 8 byte .. 8 byte + 7: in this machine's order, or the other. */
static int place_of(enum value_kind kind, int byte, int swapped)
{
    const uint16_t one = 1;
    const int big_endian = *(const unsigned char *)&one == 0;
    return big_endian != !!swapped ? size_of[kind] - 1 - byte : byte;
}

static uint64_t bits_at(enum value_kind kind, const char *at, int swapped)
{
    uint64_t bits = 0;
    for (int byte = 0; byte < size_of[kind]; byte++)
        bits |= (uint64_t)(unsigned char)at[place_of(kind, byte, swapped)] << 8 * byte;
    return bits;
}

static void put_bits(enum value_kind kind, char *at, int swapped, uint64_t bits)
{
    for (int byte = 0; byte < size_of[kind]; byte++)
        at[place_of(kind, byte, swapped)] = (char)(bits >> 8 * byte);
}

static double real_of(enum value_kind kind, uint64_t bits)
{
    double f64;
    float f32;
    if (kind == VALUE_F64) {
        memcpy(&f64, &bits, sizeof f64);
        return f64;
    }
    if (kind == VALUE_F32) {
        const uint32_t half = (uint32_t)bits;
        memcpy(&f32, &half, sizeof f32);
        return f32;
    }
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

/* A value that the kind holds exactly; of float16, 0 or a normal one. */
static uint64_t bits_of_real(enum value_kind kind, double value)
{
    const float f32 = (float)value;
    uint32_t half;
    uint64_t bits;
    int exponent;
    if (kind == VALUE_F64) {
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (kind == VALUE_F32) {
        memcpy(&half, &f32, sizeof half);
        return half;
    }
    const double fraction = frexp(fabs(value), &exponent);
    bits = value == 0 ? 0 : (uint64_t)(exponent + 14) << 10 | (uint64_t)(fraction * 2048 - 1024);
    return bits | (uint64_t)(signbit(value) != 0) << 15;
}

static uint64_t bits_of_integer(enum value_kind kind, int64_t value)
{
    return is_real(kind) ? bits_of_real(kind, (double)value) : (uint64_t)value & mask_of(kind);
}

/* ---- random rows of values --------------------------------------------------------------- */

static void set_class(struct source *s, union class_value *class, uint64_t bits)
{
    if (is_real(s->kind))
        class->real = real_of(s->kind, bits);
    else
        class->integer = bits;
}

/* A loss in [0, 1]: any float, a multiple of 2^-24, or one halfway between two. */
static uint64_t random_loss(enum value_kind kind)
{
    const int64_t one = (int64_t)bits_of_real(kind, 1.0), way = below(4);
    if (way == 0 || kind == VALUE_F16)
        return (uint64_t)below(one + 1);
    if (way == 1)
        return bits_of_real(kind, (double)below((1 << 24) + 1) * 0x1p-24);
    if (way == 2)
        return bits_of_real(kind, (double)(2 * below(1 << 23) + 1) * 0x1p-25);
    return one_in(2) ? bits_of_integer(kind, below(2)) : bits_of_real(kind, -0.0);
}

/* The rules of packing.h that a source can stand for. */
struct classes {
    enum { TWO, A_RANGE, LOSSES } rule;
    int64_t n_classes;
    uint64_t bits[2]; /* the two, or the first and the last */
    int64_t first;
};

static uint64_t random_value(const struct source *s, const struct classes *classes)
{
    if (classes->rule == LOSSES)
        return random_loss(s->kind);
    if (classes->rule == TWO)
        return classes->bits[below(2)];
    return bits_of_integer(s->kind, classes->first + below(classes->n_classes));
}

static uint64_t random_finite(enum value_kind kind)
{
    uint64_t bits = random_word() & mask_of(kind);
    while (is_real(kind) && !isfinite(real_of(kind, bits)))
        bits = random_word() & mask_of(kind);
    return bits;
}

/* What the labels are: none, and then 0 and 1 are the classes; bits; or values. */
static void random_classes(struct source *s, struct classes *classes)
{
    const int64_t n = s->n_samples, n_words = (n + 63) / 64;
    classes->rule = one_in(3) ? A_RANGE : TWO;
    classes->bits[0] = bits_of_integer(s->kind, 0);
    classes->bits[1] = bits_of_integer(s->kind, 1);
    if (classes->rule == A_RANGE) {
        classes->n_classes = up_to(200);
        classes->first = below(2000) - 1000;
        classes->bits[0] = bits_of_integer(s->kind, classes->first);
        classes->bits[1] = bits_of_integer(s->kind, classes->first + classes->n_classes - 1);
        char *labels = guarded(LABELS, (size_t)n * (size_t)size_of[s->kind],
                               (size_t)size_of[s->kind]);
        for (int64_t i = 0; i < n; i++)
            put_bits(s->kind, labels + i * size_of[s->kind], 0, random_value(s, classes));
        s->labels = labels;
    } else if (one_in(2)) {
        if (one_in(2))
            classes->bits[0] = random_finite(s->kind);
        if (one_in(2))
            classes->bits[1] = random_finite(s->kind);
        uint64_t *bits = GUARDED(uint64_t, LABELS, n_words);
        random_bits(bits, n_words);
        if (n % 64)
            bits[n_words - 1] &= ~(~(uint64_t)0 << n % 64);
        s->label_bits = bits;
    }
    set_class(s, &s->first, classes->bits[0]);
    set_class(s, &s->last, classes->bits[1]);
}

void random_source(struct source *s, int64_t n_samples, int64_t n_rows, int real)
{
    struct classes classes = {.rule = LOSSES};
    *s = (struct source){.kind = (enum value_kind)(real ? VALUE_F16 + below(3)
                                                        : below(N_VALUE_KINDS)),
                         .swapped = one_in(3),
                         .n_samples = n_samples};
    if (real) {
        set_class(s, &s->first, bits_of_integer(s->kind, 0));
        set_class(s, &s->last, bits_of_integer(s->kind, 1));
    } else {
        random_classes(s, &classes);
    }
    const int64_t size = size_of[s->kind];
    s->stride = random_stride(size);
    const int64_t along = (n_samples - 1) * s->stride, width = (along < 0 ? -along : along) + size;
    s->row_stride = random_stride(width);
    const int64_t across = (n_rows - 1) * s->row_stride;
    char *memory = guarded(ROWS, (size_t)(width + (across < 0 ? -across : across)), 1);
    s->values = memory - (along < 0 ? along : 0) - (across < 0 ? across : 0);

    for (int64_t row = 0; row < n_rows; row++)
        for (int64_t i = 0; i < n_samples; i++)
            put_bits(s->kind, (char *)s->values + row * s->row_stride + i * s->stride, s->swapped,
                     random_value(s, &classes));
    for (int64_t bad = one_in(4) ? up_to(3) : 0; bad > 0; bad--)
        put_bits(s->kind,
                 (char *)s->values + below(n_rows) * s->row_stride + below(n_samples) * s->stride,
                 s->swapped, random_word() & mask_of(s->kind));
}

/* ---- value by value ---------------------------------------------------------------------- */

/* 1: differs from its label, 0: does not, -1: is of no class. */
static int compare(const struct source *s, uint64_t bits, uint64_t label)
{
    const uint64_t mask = mask_of(s->kind);
    const double v = is_real(s->kind) ? real_of(s->kind, bits) : 0;
    if (s->labels && is_real(s->kind))
        return s->first.real <= v && v <= s->last.real && v == floor(v)
                   ? v != real_of(s->kind, label)
                   : -1;
    if (s->labels)
        return ((bits - s->first.integer) & mask) <= ((s->last.integer - s->first.integer) & mask)
                   ? bits != label
                   : -1;
    if (is_real(s->kind))
        return v == s->first.real ? (int)label : v == s->last.real ? !label : -1;
    return bits == (s->first.integer & mask)  ? (int)label
           : bits == (s->last.integer & mask) ? !label
                                              : -1;
}

int64_t plain_pack_row(const struct source *s, ptrdiff_t row, uint64_t *words)
{
    memset(words, 0, (size_t)((s->n_samples + 63) / 64) * sizeof *words);
    for (int64_t i = 0; i < s->n_samples; i++) {
        const char *at = s->values + row * s->row_stride + i * s->stride;
        uint64_t label = s->labels ? bits_at(s->kind, s->labels + i * size_of[s->kind], 0)
                         : s->label_bits ? s->label_bits[i / 64] >> i % 64 & 1
                                         : 0;
        const int differs = compare(s, bits_at(s->kind, at, s->swapped), label);
        if (differs < 0)
            return i;
        words[i / 64] |= (uint64_t)differs << i % 64;
    }
    return s->n_samples;
}

int64_t plain_units_row(const struct source *s, ptrdiff_t row, int32_t *units)
{
    memset(units, 0, (size_t)((s->n_samples + 63) / 64 * 64) * sizeof *units);
    for (int64_t i = 0; i < s->n_samples; i++) {
        const char *at = s->values + row * s->row_stride + i * s->stride;
        const double loss = real_of(s->kind, bits_at(s->kind, at, s->swapped));
        if (!(loss >= 0 && loss <= 1))
            return i;
        units[i] = (int32_t)nearbyint(loss * 0x1p24);
    }
    return s->n_samples;
}

/* ---- the rows of the table --------------------------------------------------------------- */

static int64_t some_samples(void) { return one_in(300) ? size_to(20000) : size_to(700); }

void try_pack_row(void)
{
    struct source source;
    const int64_t n = some_samples(), n_rows = up_to(3), row = below(n_rows);
    const size_t n_words = (size_t)(n + 63) / 64;
    random_source(&source, n, n_rows, one_in(8));
    uint64_t *wanted = GUARDED(uint64_t, WANTED, n_words);
    const int64_t read = plain_pack_row(&source, row, wanted);
    for (EACH_SET(set)) {
        uint64_t *words = GUARDED(uint64_t, OUT, n_words);
        running("pack_row", set);
        check(set->packer->pack_row(&source, row, words) == read, "samples read");
        if (read == n)
            check_equal(words, wanted, n_words * sizeof *words, "words");
    }
}

void try_units_row(void)
{
    struct source source;
    const int64_t n = some_samples(), n_rows = up_to(3), row = below(n_rows);
    const size_t n_units = (size_t)(n + 63) / 64 * 64;
    random_source(&source, n, n_rows, 1);
    int32_t *wanted = GUARDED(int32_t, WANTED, n_units);
    const int64_t read = plain_units_row(&source, row, wanted);
    for (EACH_SET(set)) {
        int32_t *units = GUARDED(int32_t, OUT, n_units);
        running("units_row", set);
        check(set->packer->units_row(&source, row, units) == read, "samples read");
        if (read == n)
            check_equal(units, wanted, n_units * sizeof *units, "units");
    }
}
