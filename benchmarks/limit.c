/* The register-only limits: what counting the ones of signs AND losses takes without a load or a
 * store, in 512-bit cells.  A cell is one 64-byte line of signs against one word of losses, the unit
 * of work of the kernels in src/.
 *
 * Each class of CPU has loops of its own, and its limit is the fastest of them:
 *
 *     AND, POPCNT, ADD     as wide as the class counts: a word, 128 bits of NEON, 512 of AVX-512
 *     Harley-Seal tree     AVX2 has no vector popcount: 15 carry-save adders for each look-up
 *
 * Eight words or registers are in flight, so that latency does not count.  The empty asm statements
 * keep the compiler from computing anything once and for all; the loops over the eight are unrolled,
 * so that arrays are registers.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { IN_FLIGHT = 8 };

static int always(void) { return 1; }

#if defined(__x86_64__)
__attribute__((target("popcnt")))
#endif
static uint64_t words(int64_t n_cells)
{
    enum { AT_ONCE = 4 }; /* sixteen registers in all */
    uint64_t losses = 0x0123456789abcdef, signs[AT_ONCE], counts[AT_ONCE] = {0};
    for (int i = 0; i < AT_ONCE; i++)
        signs[i] = 0x9e3779b97f4a7c15 * (uint64_t)(i + 1);
    for (int64_t cell = 0; cell < n_cells; cell++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) { /* the eight words of a line */
            asm volatile("" : "+r"(losses));
            counts[i % AT_ONCE] += (uint64_t)__builtin_popcountll(losses & signs[i % AT_ONCE]);
        }
    }
    return counts[0] + counts[1] + counts[2] + counts[3];
}

#if defined(__x86_64__)
#include <immintrin.h>

static int has_vector_popcount(void) { return __builtin_cpu_supports("avx512vpopcntdq"); }
static int has_avx2(void) { return __builtin_cpu_supports("avx2"); }

__attribute__((target("avx512f,avx512vpopcntdq")))
static uint64_t vector_popcount(int64_t n_cells)
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

#define AVX2 __attribute__((target("avx2")))
#define EACH static inline AVX2 __attribute__((always_inline))

EACH __m256i full_add(__m256i *sum, __m256i a, __m256i b)
{
    __m256i u = _mm256_xor_si256(a, b);
    __m256i carry = _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(*sum, u));
    *sum = _mm256_xor_si256(*sum, u);
    return carry;
}

/* A line of four words: the losses change from line to line as those of a kernel do. */
EACH __m256i line(__m256i *losses, __m256i signs)
{
    asm volatile("" : "+x"(*losses));
    return _mm256_and_si256(*losses, signs);
}

EACH __m256i two_lines(__m256i *sums, __m256i *losses, __m256i signs)
{
    __m256i a = line(losses, signs);
    return full_add(&sums[0], a, line(losses, signs));
}

EACH __m256i four_lines(__m256i *sums, __m256i *losses, __m256i signs)
{
    __m256i a = two_lines(sums, losses, signs);
    return full_add(&sums[1], a, two_lines(sums, losses, signs));
}

EACH __m256i eight_lines(__m256i *sums, __m256i *losses, __m256i signs)
{
    __m256i a = four_lines(sums, losses, signs);
    return full_add(&sums[2], a, four_lines(sums, losses, signs));
}

EACH __m256i sixteen_lines(__m256i *sums, __m256i *losses, __m256i signs)
{
    __m256i a = eight_lines(sums, losses, signs);
    return full_add(&sums[3], a, eight_lines(sums, losses, signs));
}

AVX2 static uint64_t harley_seal(int64_t n_cells)
{
    const __m256i ones = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i losses = _mm256_set1_epi64x(0x0123456789abcdef), signs = _mm256_set1_epi64x(-0x1234567);
    __m256i sums[4] = {signs, signs, signs, signs}, count = _mm256_setzero_si256();
    for (int64_t cell = 0; cell < n_cells; cell += 8) { /* sixteen lines of half a cell */
        const __m256i bits = sixteen_lines(sums, &losses, signs);
        const __m256i low = _mm256_shuffle_epi8(ones, _mm256_and_si256(bits, nibble));
        const __m256i high =
            _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(bits, 4), nibble));
        count = _mm256_add_epi64(
            count, _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256()));
    }
    count = _mm256_xor_si256(count, _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]),
                                                     _mm256_xor_si256(sums[2], sums[3])));
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, count);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}
#elif defined(__aarch64__)
#include <arm_neon.h>

static uint64_t neon_cnt(int64_t n_cells)
{
    uint8x16_t signs[IN_FLIGHT], counts[IN_FLIGHT], losses = vdupq_n_u8(0x5b);
    uint64_t sum = 0;
#pragma GCC unroll 8
    for (int i = 0; i < IN_FLIGHT; i++) {
        signs[i] = vdupq_n_u8((uint8_t)(0x15 * (i + 1)));
        counts[i] = vdupq_n_u8(0);
    }
    for (int64_t cell = 0; cell < n_cells; cell += 2) { /* four registers to a cell */
        asm volatile("" : "+w"(losses));
#pragma GCC unroll 8
        for (int i = 0; i < IN_FLIGHT; i++)
            counts[i] = vaddq_u8(counts[i], vcntq_u8(vandq_u8(losses, signs[i])));
    }
    for (int i = 0; i < IN_FLIGHT; i++)
        sum += vaddlvq_u8(counts[i]);
    return sum;
}
#endif

/* The loops that a class of CPU may choose from. */
static const struct {
    const char *class, *name;
    int (*supported)(void);
    uint64_t (*run)(int64_t n_cells);
} loops[] = {
#if defined(__x86_64__)
    {"amx", "AVX-512 VPOPCNTQ", has_vector_popcount, vector_popcount},
    {"avx512", "AVX-512 VPOPCNTQ", has_vector_popcount, vector_popcount},
    {"avx2", "64-bit POPCNT", always, words},
    {"avx2", "AVX2 Harley-Seal tree", has_avx2, harley_seal},
#elif defined(__aarch64__)
    {"neon", "NEON CNT", always, neon_cnt},
#endif
    {"portable", "64-bit popcount", always, words},
};

enum { N_LOOPS = sizeof loops / sizeof *loops };

/* Whether this is a loop of that class which runs here. */
int loop_is_for(int loop, const char *class)
{
    return strcmp(loops[loop].class, class) == 0 && loops[loop].supported();
}

int n_loops(void) { return N_LOOPS; }
const char *loop_name(int loop) { return loops[loop].name; }
uint64_t run_loop(int loop, int64_t n_cells) { return loops[loop].run(n_cells); }
