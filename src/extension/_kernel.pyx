# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True, freethreading_compatible=True, auto_pickle=False, autotestdict=False
"""Signed sums of losses under random sign vectors: integers in, integers out.

Who does what.  The Python layer says which arguments make sense; here types, lengths and values
are checked, memory is allocated, the GIL is dropped, and C is called.  C neither allocates nor
raises.  Nothing here knows a bound: the budget is an integer that the guard puts in.

scan/scan.h pictures one query from Python to the kernel and back; scan/tiles.h has the words of
size.
"""

import os
from _thread import allocate_lock, start_new_thread

import numpy as np

cimport cython
cimport numpy as cnp
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

cnp.import_array()


cdef extern from "kernels/signed_sums.h" nogil:
    const int LANES, WORD_BITS, LINE_BYTES
    struct kernel:
        const char *name
        int (*supported)() noexcept nogil
        ptrdiff_t workspace_bytes
        void (*fill_lines)(uint64_t base, int64_t first_vector, int64_t first_word,
                           ptrdiff_t n_words, uint64_t *lines) noexcept nogil
    uint64_t mix64(uint64_t z)
    const uint64_t SIGN_GOLDEN


include "_packing.pxi"

cdef extern from "kernels/sliced.h" nogil:
    struct sliced_kernel:
        int block_rows


cdef extern from "kernels/fingerprint.h" nogil:
    uint64_t little_word(const unsigned char *)
    ctypedef void fingerprint_rows_fn(const unsigned char *rows, ptrdiff_t stride,
                                      ptrdiff_t n_rows, ptrdiff_t n_bytes, const uint64_t *key,
                                      uint64_t *hashes, int64_t *totals) noexcept nogil


cdef extern from "kernels/dispatch.h" nogil:
    struct instruction_set:
        const kernel *kernel
        const packer *packer
        const sliced_kernel *sliced
        fingerprint_rows_fn *fingerprint_rows
    const instruction_set *instruction_set_at(int index)


def kernels():
    """Name and usability here of every kernel that was compiled in, fastest first."""
    rows = []
    cdef int i = 0
    while instruction_set_at(i) != NULL:
        kernel = instruction_set_at(i).kernel
        rows.append((kernel.name.decode(), bool(kernel.supported())))
        i += 1
    return rows


def active_kernel():
    """The kernel that objects made from now on will use."""
    return _chosen.kernel.name.decode()


def choose_kernel(name=None):
    """Have objects made from now on use this kernel; None: the fastest (a seam for tests)."""
    global _chosen
    _chosen = _set_named(name)


cdef const instruction_set *_set_named(name) except NULL:
    """The instruction set of that kernel; None: the fastest that runs here."""
    cdef int i = 0
    while instruction_set_at(i) != NULL:
        kernel = instruction_set_at(i).kernel
        if name is None or kernel.name.decode() == name:
            if kernel.supported():
                return instruction_set_at(i)
            if name is not None:
                raise ValueError(f"kernel {name!r} needs instructions that this CPU lacks")
        i += 1
    raise ValueError(f"kernel must be one of {[row[0] for row in kernels()]}, got {name!r}")


# asked once: CPUID takes microseconds, and tens of them in a virtual machine
cdef const instruction_set *_chosen = _set_named(None)

include "_tail.pxi"
include "_scan.pxi"
include "_signs.pxi"
include "_answer.pxi"
include "_sealed.pxi"
include "_quick_lock.pxi"
include "_state.pxi"
include "_named_files.pxi"
include "_state_memory.pxi"
include "_core.pxi"
include "_threads.pxi"
include "_queries.pxi"
include "_sums.pxi"
include "_fingerprint.pxi"
include "_query_table.pxi"

# real-valued losses are counted in units of 2**-UNIT_SHIFT
UNIT_SHIFT = _UNIT_SHIFT
