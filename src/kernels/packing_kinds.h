/* Every KIND of one vector packer: included once, after what packing_kind.h takes.  HALF_PRECISION:
 * f16 is one of them; else halves are left to the portable packer. */
#define KIND u8
#include "packing_kind.h"
#define KIND u16
#include "packing_kind.h"
#define KIND u32
#include "packing_kind.h"
#define KIND u64
#include "packing_kind.h"
#define KIND f32
#define REAL_KIND
#include "packing_kind.h"
#define KIND f64
#define REAL_KIND
#include "packing_kind.h"
#ifdef HALF_PRECISION
#define KIND f16
#define REAL_KIND
#include "packing_kind.h"
#else
#define pack_f16 pack_row_portable
#define units_f16 units_row_portable
#endif

static int64_t pack_row(const struct source *s, ptrdiff_t row, uint64_t *words)
{
    static pack_row_fn *const of_kind[N_VALUE_KINDS] = {
        [VALUE_U8] = pack_u8,   [VALUE_U16] = pack_u16, [VALUE_U32] = pack_u32,
        [VALUE_U64] = pack_u64, [VALUE_F16] = pack_f16, [VALUE_F32] = pack_f32,
        [VALUE_F64] = pack_f64,
    };
    return of_kind[s->kind](s, row, words);
}

static int64_t units_row(const struct source *s, ptrdiff_t row, int32_t *units)
{
    if (s->kind == VALUE_F16)
        return units_f16(s, row, units);
    return s->kind == VALUE_F32 ? units_f32(s, row, units) : units_f64(s, row, units);
}
