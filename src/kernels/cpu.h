/* What this compiler can be told and what this CPU and its operating system can run.  No policy. */
#ifndef RADABOUND_CPU_H
#define RADABOUND_CPU_H

#include <stdint.h>

/* Losses and predictions may be nan, and then are refused: comparisons must see it. */
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "radabound_fast cannot be built with -ffast-math, -Ofast or -ffinite-math-only"
#endif

#if defined(__x86_64__) || defined(_M_X64)
#define RB_X86_64 1
#endif
#if defined(__aarch64__) || defined(_M_ARM64)
#define RB_ARM64 1
#endif

/* GCC's extensions, which Clang has in the manner of MSVC too. */
#if defined(__GNUC__) || defined(__clang__)
#define RB_GNU 1
#endif

/* How to ask for tiles we know of one system. */
#if defined(RB_X86_64) && defined(__linux__) && \
    (defined(__clang__) ? __clang_major__ >= 12 : defined(__GNUC__) && __GNUC__ >= 11)
#define RB_AMX 1
#endif

/* The instruction set stands on the function, so that one set of flags builds every file.
 * MSVC itself needs no such mark: its intrinsics compile anywhere. */
#if defined(RB_X86_64) && defined(RB_GNU)
#define RB_TARGET(isa) __attribute__((target(isa)))
#else
#define RB_TARGET(isa)
#endif

#if defined(_MSC_VER)
#define RB_ALIGNED(bytes) __declspec(align(bytes))
#else
#define RB_ALIGNED(bytes) _Alignas(bytes)
#endif

#if defined(RB_GNU)
#define RB_INLINE static inline __attribute__((always_inline))
#define RB_UNROLL(n) RB_PRAGMA(GCC unroll n)
#define RB_PRAGMA(text) _Pragma(#text)
/* A loop of at most 16 turns that vanishes: only then are the arrays in it registers. */
#if defined(__clang__)
#define RB_UNROLL_ALL RB_PRAGMA(clang loop unroll(full))
#else
#define RB_UNROLL_ALL RB_UNROLL(16)
#endif
/* An integer, or a vector, is computed where it stands, after the last that was marked so: compilers
 * would put sums off until registers run out, or make vectors of integers. */
#define RB_KEEP_HERE(x) __asm__ volatile("" : "+r"(x))
#define RB_KEEP_VECTOR(x) __asm__ volatile("" : "+v"(x))
/* A long function, whose time would depend by 8 % on where the linker happens to put it. */
#define RB_ON_A_PAGE __attribute__((aligned(4096)))
/* On its way into the cache, 3: the first, 2: the second; there may be no memory at the address. */
#define RB_PREFETCH(address, cache) __builtin_prefetch(address, 0, cache)
#else
#if defined(_MSC_VER)
#define RB_INLINE static __forceinline
#else
#define RB_INLINE static inline
#endif
#define RB_UNROLL(n)
#define RB_UNROLL_ALL
#define RB_KEEP_HERE(x) ((void)0)
#define RB_KEEP_VECTOR(x) ((void)0)
#define RB_ON_A_PAGE
#define RB_PREFETCH(address, cache) ((void)0)
#endif

/* What must hold for this to compile; C11's own word is not known everywhere. */
#define RB_ASSERT_THAT(name, condition) typedef char name[(condition) ? 1 : -1]

/* The answer covers the registers that the OS saves. */
int cpu_has_all(void); /* what plain C takes: yes */
int cpu_has_avx2(void);   /* BMI1, POPCNT as well */
int cpu_has_avx512(void); /* F, BW, DQ, VL, VPOPCNTDQ */
int cpu_has_amx(void);    /* TILE, INT8, and of AVX-512 VBMI as well */
int cpu_has_neon(void);

/* Linux gives the registers of AMX to those processes alone that ask.  From the first call on this
 * one has: its signal frames may be 8 KB larger, and alternate stacks that are too small for that
 * are refused; if there is such a stack already, the answer is no. */
int may_use_tiles(void);

RB_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Ones in a word, without an instruction for it: Knuth's sideways addition. */
RB_INLINE int64_t popcount64(uint64_t word)
{
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int64_t)((word * 0x0101010101010101u) >> 56);
}

#endif
