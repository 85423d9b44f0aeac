/* Bit-sliced blocks in plain C: 64 rows to a line. */
#include <stdint.h>

typedef uint64_t line;
#define LINE_WORDS 1
#define TARGET
#define KERNEL sliced_portable
#define NAME "portable"
#include "sliced.inc.h"
