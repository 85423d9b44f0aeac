/* The register-only limit: AND, POPCNT and ADD on 512-bit cells, with no loads and no stores.
 *
 * A cell is one 64-byte line of signs against one word of losses, the unit of work of the kernels
 * in src/.  Eight cells are in flight, so that latency does not count.  The empty asm statements
 * keep the compiler from computing anything once and for all; the loops over the eight are
 * unrolled, so that arrays are registers.
 */
#include <stdint.h>

enum { IN_FLIGHT = 8 };

static uint64_t scalar_cells(int64_t n_cells);

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f,avx512vpopcntdq")))
static uint64_t vector_cells(int64_t n_cells)
{
    __m512i signs[IN_FLIGHT], counts[IN_FLIGHT];
    __m512i losses = _mm512_set1_epi64(0x0123456789abcdef);
#pragma GCC unroll 8
    for (int i = 0; i < IN_FLIGHT; i++) {
        signs[i] = _mm512_set1_epi64(0x9e3779b97f4a7c15 * (uint64_t)(i + 1));
        counts[i] = _mm512_setzero_si512();
    }
    for (int64_t cell = 0; cell < n_cells; cell += IN_FLIGHT) {
        asm volatile("" : "+v"(losses));
#pragma GCC unroll 8
        for (int i = 0; i < IN_FLIGHT; i++) {
            __m512i both = _mm512_and_si512(losses, signs[i]);
            counts[i] = _mm512_add_epi64(counts[i], _mm512_popcnt_epi64(both));
        }
    }
#pragma GCC unroll 8
    for (int i = 1; i < IN_FLIGHT; i++)
        counts[0] = _mm512_add_epi64(counts[0], counts[i]);
    return (uint64_t)_mm512_reduce_add_epi64(counts[0]);
}

static int has_vector_popcount(void) { return __builtin_cpu_supports("avx512vpopcntdq"); }

__attribute__((target("popcnt")))
#else
static uint64_t vector_cells(int64_t n_cells) { return scalar_cells(n_cells); }
static int has_vector_popcount(void) { return 0; }
#endif
static uint64_t scalar_cells(int64_t n_cells)
{
    uint64_t losses = 0x0123456789abcdef, signs[IN_FLIGHT], counts[IN_FLIGHT] = {0};
    for (int i = 0; i < IN_FLIGHT; i++)
        signs[i] = 0x9e3779b97f4a7c15 * (uint64_t)(i + 1);
    for (int64_t cell = 0; cell < n_cells; cell++) {
        asm volatile("" : "+r"(losses));
#pragma GCC unroll 8
        for (int i = 0; i < IN_FLIGHT; i++) /* the eight words of a line */
            counts[i] += (uint64_t)__builtin_popcountll(losses & signs[i]);
    }
    uint64_t sum = 0;
    for (int i = 0; i < IN_FLIGHT; i++)
        sum += counts[i];
    return sum;
}

const char *limit_name(void)
{
    return has_vector_popcount() ? "AVX-512 VPOPCNTQ" : "64-bit POPCNT";
}

uint64_t limit(int64_t n_cells)
{
    return has_vector_popcount() ? vector_cells(n_cells) : scalar_cells(n_cells);
}
