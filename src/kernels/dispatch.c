/* The one place that lists the kernels and the packers, fastest first. */
#include "packing.h"
#include "signed_sums.h"
#include "sliced.h"

static const struct kernel *const kernels[] = {
#if defined(RB_AMX)
    &kernel_amx,
#endif
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

static const struct packer *const packers[] = {
#if defined(RB_X86_64)
    &packer_avx512,
    &packer_avx2,
#endif
#if defined(RB_ARM64)
    &packer_neon,
#endif
    &packer_portable,
};

enum { N_PACKERS = sizeof packers / sizeof *packers };

const struct packer *packer_row(int index)
{
    return index < N_PACKERS ? packers[index] : NULL;
}

/* sliced_*.c are written in the vectors of GCC and Clang; other compilers have the plain row. */
const struct sliced_kernel *sliced_row(const struct kernel *kernel)
{
#if defined(RB_X86_64) && defined(__GNUC__)
    if (kernel != &kernel_portable)
        return kernel != &kernel_avx2 && cpu_has_gfni() ? &sliced_avx512 : &sliced_avx2;
#endif
#if defined(RB_ARM64) && defined(__GNUC__)
    if (kernel == &kernel_neon)
        return &sliced_neon;
#endif
    (void)kernel;
    return &sliced_portable;
}
