/* What the tests share: comparing, random numbers, and memory that ends where it should. */
#ifndef NATIVE_CHECK_H
#define NATIVE_CHECK_H

#include <stddef.h>
#include <stdint.h>

enum { COUNT_OF_M = 11, COUNT_OF_L = 8 };

/* around a half, one, two words; a tile of the scan (4096 samples); the rest ragged */
extern const int64_t some_m[COUNT_OF_M];
/* around one strip of eight vectors, several, one more than a tile of them holds */
extern const int64_t some_l[COUNT_OF_L];

/* What is being checked from now on, for the message of a failure: "avx2 count_bits, m = 65". */
void checking(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One check; the program ends with status 1 where they differ, and says what and where. */
void same_number(const char *what, int64_t got, int64_t expected);
void same_numbers(const char *what, const int64_t *got, const int64_t *expected, ptrdiff_t n);
void same_words(const char *what, const uint64_t *got, const uint64_t *expected, ptrdiff_t n);
void same_units(const char *what, const int32_t *got, const int32_t *expected, ptrdiff_t n);

/* Checks passed since it was last asked. */
long checks_passed(void);

uint64_t random_bits(void);
int64_t random_below(int64_t n);

/* n bytes, `past` bytes after a 64-byte line, zeroed; the block ends with them, so that
 * AddressSanitizer sees who goes on reading.  forget() frees all that were given out. */
void *memory(ptrdiff_t n_bytes, int past);
void forget(void);

#define NEW(type, n) ((type *)memory((ptrdiff_t)sizeof(type) * (ptrdiff_t)(n), 0))

struct kernel;
struct packer;
void test_counts(const struct kernel *kernel);
void test_packer(const struct packer *packer);
void test_blocks(const struct kernel *kernel);
void test_scan(const struct kernel *kernel, const struct packer *packer);

#endif
