/* Every row of the table of instruction sets that this CPU runs, on random cases.
 *
 *     kernels [--executions N] [--seed S] [--first NUMBER] [--threads 1] [NAME ...]
 *
 * One execution is one case through all rows.  NAME: rows that must be among them.  Threads are
 * for ThreadSanitizer, which has no use for the other cases.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_set_death_callback(callback) ((void)0)
#endif

/* So many of a thousand cases; dear ones are rare. */
static const struct {
    void (*try_it)(void);
    int share;
} targets[] = {
    {try_count_bits, 200}, {try_widen_extremes, 90}, {try_count_units, 150},
    {try_raise_extremes, 80}, {try_sum_units, 80}, {try_fill_lines, 60}, {try_pack_row, 216},
    {try_units_row, 40}, {try_fingerprint_rows, 20}, {try_edge, 20}, {try_scan, 22},
    {try_sliced, 6}, {try_studentise, 4},
    {try_raise_maxima, 10}, {try_blocks, 2},
};

static void one_execution(uint64_t seed, uint64_t number, int threads)
{
    start_case(seed, number);
    int64_t ticket = below(1000);
    int i = 0;
    for (; ticket >= targets[i].share; i++)
        ticket -= targets[i].share;
    if (threads)
        try_threads();
    else
        targets[i].try_it();
}

static uint64_t number_of(const char *text)
{
    char *end;
    errno = 0;
    const uint64_t number = strtoull(text, &end, 10);
    if (errno || *text == '-' || end == text || *end) {
        fprintf(stderr, "kernels: must be a whole number, got %s\n", text);
        exit(2);
    }
    return number;
}

static int runs_here(const char *name)
{
    for (EACH_SET(set))
        if (strcmp(set->kernel->name, name) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--executions", "--seed", "--first", "--threads"};
    enum { N_OPTIONS = sizeof names / sizeof *names };
    uint64_t values[N_OPTIONS] = {100000, 1, 0, 0};
    for (int i = 1; i < argc; i++) {
        int option = 0;
        while (option < N_OPTIONS && strcmp(argv[i], names[option]) != 0)
            option++;
        if (option < N_OPTIONS && i + 1 < argc) {
            values[option] = number_of(argv[++i]);
        } else if (!runs_here(argv[i])) {
            fprintf(stderr, "kernels: no option, and no kernel that runs here: %s\n", argv[i]);
            return 2;
        }
    }
    const uint64_t executions = values[0], seed = values[1], first = values[2];
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    __sanitizer_set_death_callback(print_case);
    for (uint64_t number = first; number < first + executions; number++)
        one_execution(seed, number, values[3] != 0);
    print_counts();
    printf("%" PRIu64 " executions, 0 differences\n", executions);
    return 0;
}
