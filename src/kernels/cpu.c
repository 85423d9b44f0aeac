#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "cpu.h"

#if defined(RB_AMX)
#include <sys/syscall.h>
#include <unistd.h>
#endif

int cpu_has_all(void) { return 1; }

#if defined(RB_X86_64)

#if defined(_MSC_VER)
#include <intrin.h>
static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    __cpuidex((int *)r, (int)leaf, (int)subleaf);
}
static uint64_t saved_registers(void) { return _xgetbv(0); }
#else
#include <cpuid.h>
static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t r[4])
{
    __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
}
static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((uint64_t)high << 32) | low;
}
#endif

enum { EAX, EBX, ECX, EDX };

static int bit(uint32_t word, int n) { return (int)((word >> n) & 1u); }

/* Register state that the OS must save: 2 SSE, 4 AVX, 0xe0 the AVX-512 masks and registers. */
static int os_saves(uint64_t state)
{
    uint32_t r[4];
    cpuid(1, 0, r);
    return bit(r[ECX], 27) /* OSXSAVE */ && (saved_registers() & state) == state;
}

static int extended_features(uint32_t r[4])
{
    cpuid(0, 0, r);
    if (r[EAX] < 7)
        return 0;
    cpuid(7, 0, r);
    return 1;
}

static int has_popcnt(void)
{
    uint32_t r[4];
    cpuid(1, 0, r);
    return bit(r[ECX], 23);
}

int cpu_has_avx2(void)
{
    uint32_t r[4];
    return extended_features(r) && bit(r[EBX], 5) && bit(r[EBX], 3) /* BMI1 */ &&
           has_popcnt() && os_saves(0x6);
}

int cpu_has_avx512(void)
{
    uint32_t r[4];
    return extended_features(r) && os_saves(0xe6) && bit(r[EBX], 16) /* F */ &&
           bit(r[EBX], 17) /* DQ */ && bit(r[EBX], 30) /* BW */ && bit(r[EBX], 31) /* VL */ &&
           bit(r[ECX], 14) /* VPOPCNTDQ */;
}

#if defined(RB_AMX)
enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };

int cpu_has_amx(void)
{
    uint32_t r[4];
    uint64_t given = 0;
    return cpu_has_avx512() && extended_features(r) && bit(r[ECX], 1) /* VBMI */ &&
           bit(r[EDX], 24) /* TILE */ && bit(r[EDX], 25) /* INT8 */ && os_saves(0x60000) &&
           syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &given) == 0 && given >> XTILEDATA & 1;
}

int may_use_tiles(void)
{
    static int answer = -1;
    int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
    if (known < 0) {
        known = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
        __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
    }
    return known;
}
#else
int cpu_has_amx(void) { return 0; }
#endif

int cpu_has_neon(void) { return 0; }

#else

int cpu_has_avx2(void) { return 0; }
int cpu_has_avx512(void) { return 0; }
int cpu_has_amx(void) { return 0; }

#if defined(RB_ARM64)
int cpu_has_neon(void) { return 1; } /* part of the base architecture */
#else
int cpu_has_neon(void) { return 0; }
#endif

#endif
