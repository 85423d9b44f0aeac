/* NEON: a comparison fills lanes; lane j keeps the value 2^j of them, and a horizontal sum is the
 * mask that other instruction sets have an instruction for. */
#include "packing.h"

#if defined(RB_ARM64)
#include <arm_neon.h>

#define TARGET
#define EACH RB_INLINE
#if defined(RB_GNU)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#include <intrin.h>
#define PREFETCH(address) __prefetch(address)
#endif

static const uint8_t bit8[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
static const uint16_t bit16[8] = {1, 2, 4, 8, 16, 32, 64, 128};
static const uint32_t bit32[4] = {1, 2, 4, 8};
static const uint64_t bit64[2] = {1, 2};

EACH uint64_t mask8(uint8x16_t lanes)
{
    uint8x16_t bits = vandq_u8(lanes, vld1q_u8(bit8));
    return vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
EACH uint64_t mask16(uint16x8_t lanes) { return vaddvq_u16(vandq_u16(lanes, vld1q_u16(bit16))); }
EACH uint64_t mask32(uint32x4_t lanes) { return vaddvq_u32(vandq_u32(lanes, vld1q_u32(bit32))); }
EACH uint64_t mask64(uint64x2_t lanes) { return vaddvq_u64(vandq_u64(lanes, vld1q_u64(bit64))); }

/* memcpy, since the loads of NEON want values that are aligned. */
#define LOAD(kind, vector)                                                                         \
    EACH vector load_##kind(const char *p)                                                         \
    {                                                                                              \
        vector v;                                                                                  \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }

#define INTEGER(bits, lanes)                                                                       \
    typedef uint##bits##x##lanes##_t vector_u##bits;                                               \
    enum { lanes_u##bits = lanes };                                                                \
    LOAD(u##bits, vector_u##bits)                                                                  \
    EACH vector_u##bits each_u##bits(union class_value c)                                          \
    {                                                                                              \
        return vdupq_n_u##bits((uint##bits##_t)c.integer);                                         \
    }                                                                                              \
    EACH uint64_t differs_u##bits(vector_u##bits a, vector_u##bits b)                              \
    {                                                                                              \
        return mask##bits(vceqq_u##bits(a, b)) ^ (((uint64_t)1 << lanes) - 1);                     \
    }                                                                                              \
    EACH uint64_t outside_u##bits(vector_u##bits x, vector_u##bits first, vector_u##bits last)     \
    {                                                                                              \
        return mask##bits(vcgtq_u##bits(vsubq_u##bits(x, first), vsubq_u##bits(last, first)));     \
    }

INTEGER(8, 16)
INTEGER(16, 8)
INTEGER(32, 4)
INTEGER(64, 2)

/* A whole number of the range is what clamping and rounding leave alone; nan equals nothing. */
#define REAL(kind, bits, lanes, type)                                                              \
    typedef float##bits##x##lanes##_t vector_##kind;                                               \
    enum { lanes_##kind = lanes };                                                                 \
    EACH vector_##kind each_##kind(union class_value c) { return vdupq_n_f##bits((type)c.real); }  \
    EACH uint64_t differs_##kind(vector_##kind a, vector_##kind b)                                 \
    {                                                                                              \
        return mask##bits(vceqq_f##bits(a, b)) ^ (((uint64_t)1 << lanes) - 1);                     \
    }                                                                                              \
    EACH uint64_t outside_##kind(vector_##kind x, vector_##kind first, vector_##kind last)         \
    {                                                                                              \
        return differs_##kind(x, vrndq_f##bits(vminq_f##bits(vmaxq_f##bits(x, first), last)));     \
    }

REAL(f16, 32, 4, float)
REAL(f32, 32, 4, float)
REAL(f64, 64, 2, double)

LOAD(f32, float32x4_t)
LOAD(f64, float64x2_t)
LOAD(half, float16x4_t)
EACH float32x4_t load_f16(const char *p) { return vcvt_f32_f16(load_half(p)); }

typedef uint64_t seen_values;
EACH uint64_t any_outside(seen_values seen) { return seen; }

/* As in packing_avx512.c. */
EACH seen_values units_of_f32(float32x4_t loss, int32_t *units, seen_values seen)
{
    const float32x4_t one = vdupq_n_f32(0x1p24f);
    float32x4_t x = vaddq_f32(vmulq_f32(loss, one), vdupq_n_f32(0.0f));
    vst1q_s32(units, vcvtnq_s32_f32(x));
    return seen | vmaxvq_u32(vcgtq_u32(vreinterpretq_u32_f32(x), vreinterpretq_u32_f32(one)));
}

EACH seen_values units_of_f16(float32x4_t loss, int32_t *units, seen_values seen)
{
    return units_of_f32(loss, units, seen);
}

EACH seen_values units_of_f64(float64x2_t loss, int32_t *units, seen_values seen)
{
    const float64x2_t one = vdupq_n_f64(0x1p24);
    float64x2_t x = vaddq_f64(vmulq_f64(loss, one), vdupq_n_f64(0.0));
    vst1_s32(units, vmovn_s64(vcvtnq_s64_f64(x)));
    return seen | mask64(vcgtq_u64(vreinterpretq_u64_f64(x), vreinterpretq_u64_f64(one)));
}

#define HALF_PRECISION
#include "packing_kinds.h"

const struct packer packer_neon = {pack_row, units_row};

#endif
