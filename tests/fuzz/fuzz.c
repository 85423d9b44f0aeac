/* Random numbers, guarded memory and the book of what has run. */
#include "fuzz.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- random numbers ---------------------------------------------------------------------- */

static uint64_t the_seed, the_number, state;

void start_case(uint64_t seed, uint64_t number)
{
    the_seed = seed;
    the_number = number;
    state = mix64(mix64(seed + SIGN_GOLDEN) + number);
}

uint64_t random_word(void) { return mix64(state += SIGN_GOLDEN); }

int64_t below(int64_t n) { return (int64_t)(random_word() % (uint64_t)n); }

int64_t up_to(int64_t n)
{
    int bits = 0;
    while (n >> bits)
        bits++;
    const int64_t value = 1 + below((int64_t)1 << below(bits + 1));
    return value < n ? value : n;
}

int one_in(int64_t n) { return below(n) == 0; }

void random_bits(uint64_t *words, int64_t n_words)
{
    const int64_t density = below(8);
    for (int64_t w = 0; w < n_words; w++) {
        const uint64_t a = random_word(), b = random_word();
        words[w] = density < 4    ? a
                   : density == 4 ? a & b & random_word()
                   : density == 5 ? a | b | random_word()
                   : density == 6 ? 0
                                  : ~(uint64_t)0;
    }
}

/* ---- guarded memory ---------------------------------------------------------------------- */

enum { SLOT_BYTES = 16 << 20, REDZONE = 512 };

/* Pages that may be touched, and the live buffer. */
static struct {
    char *pages, *first, *last;
} slots[N_SLOTS];

static void map_slot(enum slot slot)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, SLOT_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + page, SLOT_BYTES, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(2);
    }
    slots[slot].pages = slots[slot].first = slots[slot].last = memory + page;
}

/* ASan's view of the bytes beside the live buffer, as far as they lie in the slot's pages. */
static void set_redzones(enum slot slot, int poisoned)
{
    char *const start = slots[slot].pages, *const end = start + SLOT_BYTES;
    char *const first = slots[slot].first, *const last = slots[slot].last;
    char *const before = first - start < REDZONE ? start : first - REDZONE;
    char *const after = end - last < REDZONE ? end : last + REDZONE;
    if (poisoned) {
        ASAN_POISON_MEMORY_REGION(before, (size_t)(first - before));
        ASAN_POISON_MEMORY_REGION(last, (size_t)(after - last));
    } else {
        ASAN_UNPOISON_MEMORY_REGION(before, (size_t)(after - before));
    }
}

void *guarded(enum slot slot, size_t bytes, size_t alignment)
{
    if (bytes > SLOT_BYTES - 64) {
        fprintf(stderr, "a case needs %zu bytes in slot %d\n", bytes, (int)slot);
        exit(2);
    }
    if (slots[slot].pages == NULL)
        map_slot(slot);
    set_redzones(slot, 0);
    char *first = slots[slot].pages;
    if (one_in(2))
        first += (SLOT_BYTES - bytes) / alignment * alignment;
    else if (alignment == 1)
        first += below(3) ? 0 : below(16);
    slots[slot].first = first;
    slots[slot].last = first + bytes;
    memset(first, 0xa5, bytes);
    set_redzones(slot, 1);
    return first;
}

/* ---- verdicts ---------------------------------------------------------------------------- */

static struct {
    const char *function, *row;
    uint64_t executions;
} book[64], *now = book;

void running(const char *function, const char *row)
{
    for (now = book; now->function != NULL; now++)
        if (strcmp(now->function, function) == 0 && strcmp(now->row, row) == 0)
            break;
    now->function = function;
    now->row = row;
    now->executions++;
}

void print_case(void)
{
    fprintf(stderr, "%s of row %s: again with --seed %llu --first %llu --executions 1\n",
            now->function ? now->function : "nothing", now->row ? now->row : "none",
            (unsigned long long)the_seed, (unsigned long long)the_number);
}

void print_counts(void)
{
    for (now = book; now->function != NULL; now++)
        printf("%-14s %-10s %9llu executions, 0 differences\n", now->function, now->row,
               (unsigned long long)now->executions);
}

void check(int same, const char *what)
{
    if (same)
        return;
    printf("a difference: %s\n", what);
    fflush(stdout);
    print_case();
    exit(1);
}

void check_equal(const void *got, const void *wanted, size_t bytes, const char *what)
{
    check(memcmp(got, wanted, bytes) == 0, what);
}
