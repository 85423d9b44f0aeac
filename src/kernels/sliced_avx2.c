/* Bit-sliced blocks with AVX2: 256 rows to a line. */
#include "cpu.h"

#if defined(RB_X86_64) && defined(RB_GNU)
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(32), may_alias));
enum { LINE_WORDS = 4 };
#define TARGET RB_TARGET("avx2")
#include "sliced.inc.h"

const struct sliced_kernel sliced_avx2 = {BLOCK_ROWS, scan, cpu_has_avx2, &sliced_portable};
#endif
