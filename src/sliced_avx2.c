/* Bit-sliced blocks, AVX2: 256 rows to a line. */
#if defined(__GNUC__) && defined(__x86_64__)
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(32), may_alias));
#define LINE_WORDS 4
#define TARGET __attribute__((target("avx2")))
#define KERNEL sliced_avx2
#define NAME "avx2"
#include "sliced.inc.h"
#endif
