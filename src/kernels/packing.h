/* From values to bits: losses, or predictions against labels, of one row.
 *
 *     bit i  =  value i  is not  label i
 *
 * A 0-1 loss is a prediction of two classes, 0 and 1, whose label is always 0.  So there are two
 * rules, and a value that is of no class ends the row:
 *
 *     two classes:   label_bits has bit i set where label i is not `first`;  NULL: nowhere
 *     a range:       labels[i] is a whole number from `first` to `last`, as every value must be
 *
 * Which labels go by which rule, and what is done with other sets of classes, is decided in
 * labels.py.  Bits past the last sample come out zero.
 */
#ifndef RADABOUND_PACKING_H
#define RADABOUND_PACKING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

/* Integers of either sign, and bool, go by width: only equality and wrapped differences are
 * asked of them. */
enum value_kind {
    VALUE_U8,
    VALUE_U16,
    VALUE_U32,
    VALUE_U64,
    VALUE_F16,
    VALUE_F32,
    VALUE_F64,
    N_VALUE_KINDS
};

/* Bytes of a value; of one whose kind is known only now. */
enum {
    size_u8 = 1,
    size_u16 = 2,
    size_u32 = 4,
    size_u64 = 8,
    size_f16 = 2,
    size_f32 = 4,
    size_f64 = 8
};
RB_INLINE int value_bytes(enum value_kind kind)
{
    return kind >= VALUE_F16 ? size_f16 << (kind - VALUE_F16) : size_u8 << kind;
}

union class_value {
    uint64_t integer; /* modulo 2^64 */
    double real;      /* exact in the kind's own precision */
};

struct source {
    enum value_kind kind;
    const char *values;            /* of row 0; any alignment */
    ptrdiff_t row_stride, stride;  /* bytes; zero and negative too */
    int swapped;                   /* values are in the other byte order; labels never are */
    int is_signed;                 /* for messages: the packers do not care */
    int64_t n_samples;             /* at least 1 */
    union class_value first, last; /* the two classes, or the ends of the range */
    const uint64_t *label_bits;    /* two classes: one bit per sample */
    const char *labels;            /* a range: n_samples values of `kind` side by side */
};

/* Bits of one row into ceil(n_samples / 64) words.  Returns n_samples, or the index of the first
 * value that is of no class; what words holds then is undefined. */
typedef int64_t pack_row_fn(const struct source *source, ptrdiff_t row, uint64_t *words);

/* Values in [0, 1] of a float kind, as multiples of 2^-24, ties to even, into
 * 64 ceil(n_samples / 64) integers, zero past the last sample.  Returns n_samples, or the index of
 * the first value outside [0, 1] (nan is outside).  -0.0 is 0. */
typedef int64_t units_row_fn(const struct source *source, ptrdiff_t row, int32_t *units);

/* Bytes beyond the values being packed that are on their way from memory. */
enum { FETCHED_AHEAD = 8192 };

struct packer {
    pack_row_fn *pack_row;
    units_row_fn *units_row;
};

extern const struct packer packer_portable;
#if defined(RB_X86_64)
extern const struct packer packer_avx2, packer_avx512;
#endif
#if defined(RB_ARM64)
extern const struct packer packer_neon;
#endif

/* Also where the others end up when a row is bad: it alone looks for the index. */
pack_row_fn pack_row_portable;
units_row_fn units_row_portable;

/* In the template packing_kind.h: OF(pack) is pack_u8 while KIND is u8. */
#define OF(name) PASTE(name, KIND)
#define PASTE(name, kind) PASTE_NOW(name, kind)
#define PASTE_NOW(name, kind) name##_##kind

/* n values side by side in native byte order, from value `start` on: where they lie, or copied. */
RB_INLINE const char *side_by_side(const struct source *s, ptrdiff_t row, int64_t start, int n,
                                   size_t size, char *copy)
{
    const char *value = s->values + row * s->row_stride + start * s->stride;
    if (s->stride == (ptrdiff_t)size && !s->swapped)
        return value;
    for (int j = 0; j < n; j++, value += s->stride)
        for (size_t byte = 0; byte < size; byte++)
            copy[j * size + byte] = value[s->swapped ? size - 1 - byte : byte];
    return copy;
}

#endif
