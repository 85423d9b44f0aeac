/* Random numbers, guarded memory, the oracle, and the book of what has run. */
#include "harness.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32) && !defined(__wasm__)
#define GUARD_PAGES 1
#include <sys/mman.h>
#include <unistd.h>
#endif

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

int64_t size_to(int64_t n)
{
    static const int steps[] = {LANES, WORD_BITS, 8 * WORD_BITS};
    const int step = steps[below(3)];
    const int64_t size = up_to(n / step + 1) * step + below(3) - 1;
    return one_in(2) ? up_to(n) : size < n ? size : n;
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
static struct slot_memory {
    char *pages, *first, *last;
} sets[1 + N_THREADS][N_SLOTS], *slots = sets[0];

void use_slots(int set) { slots = sets[set]; }

#if defined(GUARD_PAGES)
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
#else /* where it is not known how: whole cache lines, and nothing that may not be touched */
static void map_slot(enum slot slot)
{
    char *memory = malloc(SLOT_BYTES + LINE_BYTES);
    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    memory += LINE_BYTES - (uintptr_t)memory % LINE_BYTES;
    slots[slot].pages = slots[slot].first = slots[slot].last = memory;
}
#endif

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

/* ---- random signs and rows ----------------------------------------------------------------- */

struct sign_tile random_tile(int64_t n_strips, int64_t n_words, int64_t strip_stride)
{
    const int64_t n_lines = (n_strips - 1) * strip_stride + n_words;
    uint64_t *lines = guarded(SIGNS, (size_t)n_lines * LINE_BYTES, LINE_BYTES);
    random_bits(lines, n_lines * LANES);
    return (struct sign_tile){lines, strip_stride, n_strips, n_words, NULL};
}

int64_t random_stride(int64_t width)
{
    switch (below(8)) {
    case 0: return 0;
    case 1: return -width;
    case 2: return -width - up_to(9);
    case 3: return width + up_to(9);
    default: return width;
    }
}

char *random_rows(enum slot slot, int64_t n_rows, int64_t width, int64_t stride, size_t size,
                  size_t alignment)
{
    const int64_t last = (n_rows > 0 ? n_rows - 1 : 0) * stride;
    const int64_t n_items = (n_rows > 0 ? width : 0) + (last < 0 ? -last : last);
    char *memory = guarded(slot, (size_t)n_items * size, alignment);
    return memory + (last < 0 ? -last : 0) * (int64_t)size;
}

uint64_t *random_words(int64_t n_rows, int64_t n_samples, int64_t row_stride)
{
    const int64_t n_words = (n_samples + WORD_BITS - 1) / WORD_BITS;
    uint64_t *rows = (uint64_t *)random_rows(ROWS, n_rows, n_words, row_stride, 8, 8);
    for (int64_t r = 0; r < n_rows; r++) {
        random_bits(rows + r * row_stride, n_words);
        if (n_samples % WORD_BITS)
            rows[r * row_stride + n_words - 1] &= ~(~(uint64_t)0 << n_samples % WORD_BITS);
    }
    return rows;
}

/* ---- the oracle ---------------------------------------------------------------------------- */

void plain_losses(const uint64_t *words, int64_t n_samples, int32_t *losses)
{
    for (int64_t i = 0; i < n_samples; i++)
        losses[i] = (int32_t)(words[i / WORD_BITS] >> i % WORD_BITS & 1);
}

int64_t plain_total(const int32_t *losses, int64_t n_samples)
{
    int64_t total = 0;
    for (int64_t i = 0; i < n_samples; i++)
        total += losses[i];
    return total;
}

int64_t plain_count(const struct sign_tile *signs, int64_t vector, const int32_t *losses,
                    int64_t n_samples)
{
    const uint64_t *word =
        signs->lines + vector / LANES * signs->strip_stride * LANES + vector % LANES;
    int64_t count = 0;
    for (int64_t i = 0; i < n_samples; i++)
        count += word[i / WORD_BITS * LANES] >> i % WORD_BITS & 1 ? losses[i] : 0;
    return count;
}

static int64_t plain_complexity(const struct extremes *of)
{
    int64_t sum = 0;
    for (int64_t v = 0; v < of->n_vectors; v++)
        sum += of->half_range ? of->maxima[v] - of->minima[v] : of->maxima[v] > 0 ? of->maxima[v] : 0;
    return sum;
}

int64_t plain_widen(const struct sign_tile *signs, const int32_t *losses, int64_t n_samples,
                    int shift, int started, const struct extremes *extremes)
{
    const int64_t before = started ? plain_complexity(extremes) : 0;
    const int64_t total = plain_total(losses, n_samples);
    for (int64_t v = 0; v < signs->n_strips * LANES; v++) {
        const int64_t count = plain_count(signs, v, losses, n_samples);
        const int64_t sum = (2 * count - total) * ((int64_t)1 << shift);
        if (!started || sum > extremes->maxima[v])
            extremes->maxima[v] = sum;
        if (!started || sum < extremes->minima[v])
            extremes->minima[v] = sum;
    }
    return plain_complexity(extremes) - before;
}

/* ---- verdicts ---------------------------------------------------------------------------- */

static struct {
    const char *function, *row;
    uint64_t executions;
} book[64], *now = book;

const struct instruction_set *next_set(const struct instruction_set *set)
{
    int i = 0;
    while (set != NULL && instruction_set_at(i) != set)
        i++;
    for (i += set != NULL; (set = instruction_set_at(i)) != NULL; i++)
        if (set->kernel->supported())
            return set;
    return NULL;
}

void running(const char *function, const struct instruction_set *set)
{
    const char *const row = set->kernel->name;
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
