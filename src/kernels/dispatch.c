/* The one place that lists instruction sets: a set without a part of its own names whose it takes. */
#include "dispatch.h"

static const struct instruction_set sets[] = {
#if defined(RB_AMX)
    {&kernel_amx, &packer_avx512, &sliced_avx512, fingerprint_rows_avx512},
#endif
#if defined(RB_X86_64)
    {&kernel_avx512, &packer_avx512, &sliced_avx512, fingerprint_rows_avx512},
    {&kernel_avx2, &packer_avx2, &sliced_avx2, fingerprint_rows_avx2},
#endif
#if defined(RB_ARM64)
    {&kernel_neon, &packer_neon, &sliced_neon, fingerprint_rows_portable},
#endif
    {&kernel_portable, &packer_portable, &sliced_portable, fingerprint_rows_portable},
};

enum { N_SETS = sizeof sets / sizeof *sets };

const struct instruction_set *instruction_set_at(int index)
{
    return index < N_SETS ? &sets[index] : NULL;
}
