/* Every row of the tables of src/ that this CPU runs, on random cases: `make fuzz`.
 *
 *     kernels_fuzz [--executions N] [--seed S] [--first NUMBER]
 *
 * One execution is one case through all rows of its kind.  The portable row is compared with a
 * plain loop over bits or values, the others with the portable row.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

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
    {try_count_bits, 210}, {try_find_moves, 80}, {try_count_units, 150}, {try_raise_extremes, 80},
    {try_sum_units, 80},   {try_fill_lines, 60}, {try_pack_row, 230},    {try_units_row, 80},
    {try_scan, 22},        {try_sliced, 6},      {try_blocks, 2},
};

static void one_execution(uint64_t seed, uint64_t number)
{
    start_case(seed, number);
    int64_t ticket = below(1000);
    int i = 0;
    for (; ticket >= targets[i].share; i++)
        ticket -= targets[i].share;
    targets[i].try_it();
}

static uint64_t number_of(const char *text)
{
    char *end;
    errno = 0;
    const uint64_t number = strtoull(text, &end, 10);
    if (errno || *text == '-' || end == text || *end) {
        fprintf(stderr, "kernels_fuzz: must be a whole number, got %s\n", text);
        exit(2);
    }
    return number;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--executions", "--seed", "--first"};
    uint64_t values[] = {100000, 1, 0};
    for (int i = 1; i < argc; i += 2) {
        int option = 0;
        while (option < 3 && strcmp(argv[i], names[option]) != 0)
            option++;
        if (option == 3 || i + 1 == argc) {
            fprintf(stderr, "usage: kernels_fuzz [--executions N] [--seed S] [--first NUMBER]\n");
            return 2;
        }
        values[option] = number_of(argv[i + 1]);
    }
    const uint64_t executions = values[0], seed = values[1], first = values[2];
    printf("seed %" PRIu64 "\n", seed);
    fflush(stdout);
    __sanitizer_set_death_callback(print_case);
    for (uint64_t number = first; number < first + executions; number++)
        one_execution(seed, number);
    print_counts();
    printf("%" PRIu64 " executions, 0 differences\n", executions);
    return 0;
}
