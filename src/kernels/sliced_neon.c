/* Bit-sliced blocks with NEON: 128 rows to a line. */
#include "cpu.h"

#if defined(RB_ARM64) && defined(RB_GNU)
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(16), may_alias));
enum { LINE_WORDS = 2 };
#define TARGET
#include "sliced.inc.h"

const struct sliced_kernel sliced_neon = {BLOCK_ROWS, scan, cpu_has_neon, &sliced_portable};
#endif
