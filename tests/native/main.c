/* Every row of dispatch.c that this machine runs, against the plain reference.
 *
 *     kernels [name ...]      the rows that must have run; exit 1: one was not, or is wrong
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "kernels/packing.h"
#include "scan/scan.h"
#include "kernels/sliced.h"

static void report(const char *name, const char *part)
{
    printf("%s %s: %ld checks passed\n", name, part, checks_passed());
    fflush(stdout);
}

/* The packer that goes with a kernel: not every kernel has one of its own. */
static const struct packer *packer_of(const struct kernel *kernel)
{
    for (int i = 0; packer_row(i); i++)
        if (strcmp(packer_row(i)->name, kernel->name) == 0)
            return packer_row(i);
    return &packer_portable;
}

static int runs_here(const char *name)
{
    for (int i = 0; kernel_row(i); i++)
        if (strcmp(kernel_row(i)->name, name) == 0)
            return kernel_row(i)->supported() && packer_of(kernel_row(i))->supported();
    return 0;
}

int main(int n_arguments, char **arguments)
{
    for (int i = 1; i < n_arguments; i++)
        if (!runs_here(arguments[i])) {
            fprintf(stderr, "%s: not compiled in, or not for this CPU\n", arguments[i]);
            return 1;
        }
    for (int i = 0; kernel_row(i); i++) {
        const struct kernel *kernel = kernel_row(i);
        if (!kernel->supported()) {
            printf("%s: not run, this CPU lacks its instructions\n", kernel->name);
            continue;
        }
        test_counts(kernel);
        report(kernel->name, "kernel");
        test_blocks(kernel);
        report(kernel->name, "blocks");
        test_packer(packer_of(kernel));
        report(kernel->name, "packer");
        test_scan(kernel, packer_of(kernel));
        report(kernel->name, "scan");
    }
    return 0;
}
