/* Bit-sliced blocks in plain C: a line is a word. */
#include <stdint.h>

typedef uint64_t line;
enum { LINE_WORDS = 1 };
#define TARGET
#include "sliced.inc.h"

const struct sliced_kernel sliced_portable = {BLOCK_ROWS, scan, studentise, raise_maxima};
