"""The C sources of src/scan, as Cython sees them."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint64_t

from radabound_fast._kernels.c_kernels cimport (
    kernel, packer, sliced_kernel, sliced_plan, source, studentised,
)


cdef extern from "scan/scan.h" nogil:
    const int ROW_TILE_WORDS, TOO_LARGE
    const int _UNIT_SHIFT "UNIT_SHIFT"
    const int TILE_WORDS, CHUNK_ROWS, UNIT_TILE_ROWS

    struct loss_rows:
        const char *packed
        int in_place, may_be_real
        source source
    void packed_as_rows(loss_rows *, const void *packed, ptrdiff_t stride)
    void values_as_rows(loss_rows *, const packer *)

    struct sign_store:
        const uint64_t *lines
        uint64_t base
        int64_t first_vector, first_word
        int64_t n_vectors, n_strips, n_words, n_samples

    struct chunk_of_rows "chunk":
        int64_t *counts
        int64_t *totals
        int64_t *before
        void *workspace
        void *tile
        ptrdiff_t capacity, tile_rows
        ptrdiff_t n_rows
        int in_units
        int64_t bad_sample

    void count_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                    ptrdiff_t n_rows, int in_units, chunk_of_rows *)
    void count_any_rows(const kernel *, const sign_store *, const loss_rows *, ptrdiff_t first,
                        ptrdiff_t n_rows, chunk_of_rows *)
    int units_fit(const sign_store *)
    int64_t check_last_word(uint64_t last, int64_t n_samples)

    enum verdict:
        ANSWERED, WITHHELD, NEEDS_UNITS, NEEDS_PRICE, UNREADABLE

    struct free_range:
        int64_t low, high

    struct guard_state:
        int64_t *maxima
        int64_t *minima
        int64_t n_vectors, n_strips, n_rows, complexity
        int64_t budget, priced, priced_rows, wanted
        free_range declared, real
        int started, half_range, unit_shift

    void rescale_state(guard_state *)
    void merge_state(guard_state *, const guard_state *)
    ptrdiff_t judge_merged(guard_state *, const int64_t *totals, ptrdiff_t n_rows, int may_be_real,
                           verdict *)
    ptrdiff_t judge_rows(const kernel *, guard_state *, chunk_of_rows *, int64_t *totals_out,
                         int64_t *trace_out, verdict *)

    struct sliced_memory:
        const sliced_kernel *kernel
        const sliced_plan *plan
        void *scratch
        int64_t *totals
        int64_t *growth
        uint64_t *packed

    struct work_on_rows "work":
        const kernel *kernel
        const sign_store *signs
        const loss_rows *rows
        guard_state *state
        chunk_of_rows *chunk
        const sliced_memory *sliced
        int64_t *totals
        int64_t *trace

    bint judge_row(const work_on_rows *, int64_t *total, verdict *)
    int sliced_pays(const kernel *, const sliced_kernel *, const sign_store *, const loss_rows *,
                    ptrdiff_t n_rows)
    ptrdiff_t scan_rows(const work_on_rows *, ptrdiff_t first, ptrdiff_t last, verdict *)


cdef extern from "scan/studentise.h" nogil:
    ptrdiff_t studentise_rows(const work_on_rows *, ptrdiff_t first, ptrdiff_t last,
                              const studentised *into, int n_into)
