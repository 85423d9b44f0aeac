/* The one place that lists the kernels, fastest first. */
#include "signed_sums.h"

static const struct kernel *const kernels[] = {
#if defined(RB_X86_64)
    &kernel_avx512,
    &kernel_avx2,
#endif
#if defined(RB_ARM64)
    &kernel_neon,
#endif
    &kernel_portable,
};

enum { N_KERNELS = sizeof kernels / sizeof *kernels };

const struct kernel *kernel_row(int index)
{
    return index < N_KERNELS ? kernels[index] : NULL;
}

const struct kernel *fastest_kernel(void)
{
    int i = 0;
    while (!kernels[i]->supported())
        i++; /* the last row is always supported */
    return kernels[i];
}
