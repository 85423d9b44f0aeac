#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int64_t some_m[COUNT_OF_M] = {1, 31, 63, 64, 65, 127, 512, 1000, 4095, 4096, 4097};
const int64_t some_l[COUNT_OF_L] = {1, 7, 8, 9, 17, 32, 64, 72};

enum { MOST_BLOCKS = 4096, LINE = 64 };

static char subject[200];
static long n_passed;
static void *blocks[MOST_BLOCKS];
static int n_blocks;

void checking(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(subject, sizeof subject, format, arguments);
    va_end(arguments);
}

static void fail(const char *what, ptrdiff_t index, int64_t got, int64_t expected)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s[%td] is %" PRId64 " (0x%" PRIx64 "), not %" PRId64 "\n", subject, what,
            index, got, (uint64_t)got, expected);
    exit(1);
}

#define SAME(name, type)                                                                           \
    void name(const char *what, const type *got, const type *expected, ptrdiff_t n)                \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++)                                                          \
            if (got[i] != expected[i])                                                             \
                fail(what, i, (int64_t)got[i], (int64_t)expected[i]);                              \
        n_passed++;                                                                                \
    }

SAME(same_numbers, int64_t)
SAME(same_words, uint64_t)
SAME(same_units, int32_t)

void same_number(const char *what, int64_t got, int64_t expected)
{
    same_numbers(what, &got, &expected, 1);
}

long checks_passed(void)
{
    const long n = n_passed;
    n_passed = 0;
    return n;
}

uint64_t random_bits(void)
{
    static uint64_t x = 1; /* xorshift64 */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x * 0x2545f4914f6cdd1du;
}

int64_t random_below(int64_t n) { return (int64_t)(random_bits() >> 2) % n; }

void *memory(ptrdiff_t n_bytes, int past)
{
    const size_t size = (size_t)n_bytes + (size_t)past;
    void *block;
    if (n_blocks == MOST_BLOCKS || posix_memalign(&block, LINE, size) != 0) {
        fprintf(stderr, "%s: no memory\n", subject);
        exit(2);
    }
    blocks[n_blocks++] = block;
    return (char *)memset(block, 0, size) + past;
}

void forget(void)
{
    while (n_blocks > 0)
        free(blocks[--n_blocks]);
}
