/* Bit-sliced blocks, AArch64: 128 rows to a line. */
#if defined(__GNUC__) && defined(__aarch64__)
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(16), may_alias));
#define LINE_WORDS 2
#define TARGET
#define KERNEL sliced_neon
#define NAME "neon"
#include "sliced.inc.h"
#endif
