/* Bit-sliced blocks, AVX-512: 512 rows to a line. */
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(64), may_alias));
#define LINE_WORDS 8
#define TARGET __attribute__((target("avx512f,avx512bw,gfni")))
#define KERNEL sliced_avx512
#define NAME "avx512"
#ifndef NO_TERN
#define PARITY(a, b, c) (line)_mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), 0x96)
#define MAJORITY(a, b, c) (line)_mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), 0xe8)
#endif
#include "sliced.inc.h"
#endif
