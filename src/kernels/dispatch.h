/* The table of instruction sets. */
#ifndef RADABOUND_DISPATCH_H
#define RADABOUND_DISPATCH_H

#include "fingerprint.h"
#include "packing.h"
#include "signed_sums.h"
#include "sliced.h"

struct instruction_set {
    const struct kernel *kernel; /* whose name and test of the CPU are the row's */
    const struct packer *packer;
    const struct sliced_kernel *sliced;
    fingerprint_rows_fn *fingerprint_rows;
};

/* Fastest first; NULL past the last. */
const struct instruction_set *instruction_set_at(int index);

#endif
