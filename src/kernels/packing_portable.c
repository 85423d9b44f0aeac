/* Value by value, in plain C11: the definition of correct. */
#include "packing.h"

/* Infinities and nans come out as numbers above 65504, which no class and no loss is. */
static float from_half(uint16_t half)
{
    const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    const uint32_t bits = (exponent + 112) << 23 | fraction << 13;
    const float tiny = (float)fraction * 0x1p-24f;
    float v;
    memcpy(&v, &bits, sizeof v);
    v = exponent ? v : tiny;
    return half >> 15 ? -v : v;
}

#define AS_IT_IS(v) (v)

/* Differences wrap, so that one comparison does for either sign. */
#define IN_INTEGERS(type, v, first, last) ((type)((v) - (first)) <= (type)((last) - (first)))
#define IN_REALS(type, v, first, last)                                                             \
    ((first) <= (v) && (v) <= (last) && (v) == (type)(int64_t)(v))

#define PACK_ROW(kind, type, stored, convert, field, in_range)                                     \
    static int64_t pack_##kind(const struct source *s, ptrdiff_t row, uint64_t *words)             \
    {                                                                                              \
        enum { SIZE = sizeof(stored) };                                                            \
        const type first = (type)s->first.field, last = (type)s->last.field;                       \
        char copy[64 * SIZE];                                                                      \
        for (int64_t i = 0; i < s->n_samples; i += 64) {                                           \
            const int n = s->n_samples - i < 64 ? (int)(s->n_samples - i) : 64;                    \
            const char *value = side_by_side(s, row, i, n, SIZE, copy);                            \
            uint64_t word = s->label_bits ? s->label_bits[i / 64] : 0;                             \
            for (int j = 0; j < n; j++) {                                                          \
                stored raw;                                                                        \
                memcpy(&raw, value + j * SIZE, SIZE);                                              \
                const type v = convert(raw);                                                       \
                int differs = v != first, allowed = !differs || v == last;                         \
                if (s->labels) {                                                                   \
                    memcpy(&raw, s->labels + (i + j) * SIZE, SIZE);                                \
                    differs = v != convert(raw);                                                   \
                    allowed = in_range(type, v, first, last);                                      \
                }                                                                                  \
                if (!allowed)                                                                      \
                    return i + j;                                                                  \
                word ^= (uint64_t)differs << j;                                                    \
            }                                                                                      \
            words[i / 64] = word;                                                                  \
        }                                                                                          \
        return s->n_samples;                                                                       \
    }

PACK_ROW(u8, uint8_t, uint8_t, AS_IT_IS, integer, IN_INTEGERS)
PACK_ROW(u16, uint16_t, uint16_t, AS_IT_IS, integer, IN_INTEGERS)
PACK_ROW(u32, uint32_t, uint32_t, AS_IT_IS, integer, IN_INTEGERS)
PACK_ROW(u64, uint64_t, uint64_t, AS_IT_IS, integer, IN_INTEGERS)
PACK_ROW(f16, float, uint16_t, from_half, real, IN_REALS)
PACK_ROW(f32, float, float, AS_IT_IS, real, IN_REALS)
PACK_ROW(f64, double, double, AS_IT_IS, real, IN_REALS)

int64_t pack_row_portable(const struct source *s, ptrdiff_t row, uint64_t *words)
{
    static pack_row_fn *const of_kind[N_VALUE_KINDS] = {
        [VALUE_U8] = pack_u8,   [VALUE_U16] = pack_u16, [VALUE_U32] = pack_u32,
        [VALUE_U64] = pack_u64, [VALUE_F16] = pack_f16, [VALUE_F32] = pack_f32,
        [VALUE_F64] = pack_f64,
    };
    return of_kind[s->kind](s, row, words);
}

/* Every float is exact as a double, 2^24 times it too, and so is what truncation leaves. */
static int32_t nearest_unit(double loss)
{
    const double units = loss * 0x1p24;
    const int32_t whole = (int32_t)units;
    const double rest = units - whole;
    return whole + ((rest > 0.5) | ((rest == 0.5) & whole));
}

#define UNITS_ROW(kind, stored, convert)                                                           \
    static int64_t units_##kind(const struct source *s, ptrdiff_t row, int32_t *units)             \
    {                                                                                              \
        enum { SIZE = sizeof(stored) };                                                            \
        char copy[64 * SIZE];                                                                      \
        for (int64_t i = 0; i < s->n_samples; i += 64) {                                           \
            const int n = s->n_samples - i < 64 ? (int)(s->n_samples - i) : 64;                    \
            const char *value = side_by_side(s, row, i, n, SIZE, copy);                            \
            for (int j = 0; j < n; j++) {                                                          \
                stored raw;                                                                        \
                memcpy(&raw, value + j * SIZE, SIZE);                                              \
                const double loss = convert(raw);                                                  \
                if (!(0.0 <= loss && loss <= 1.0))                                                 \
                    return i + j;                                                                  \
                units[i + j] = nearest_unit(loss);                                                 \
            }                                                                                      \
            for (int j = n; j < 64; j++)                                                           \
                units[i + j] = 0;                                                                  \
        }                                                                                          \
        return s->n_samples;                                                                       \
    }

UNITS_ROW(f16, uint16_t, from_half)
UNITS_ROW(f32, float, AS_IT_IS)
UNITS_ROW(f64, double, AS_IT_IS)

int64_t units_row_portable(const struct source *s, ptrdiff_t row, int32_t *units)
{
    if (s->kind == VALUE_F16)
        return units_f16(s, row, units);
    return s->kind == VALUE_F32 ? units_f32(s, row, units) : units_f64(s, row, units);
}

const struct packer packer_portable = {pack_row_portable, units_row_portable};
