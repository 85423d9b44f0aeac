"""The C sources of src/kernels and src/scan, as Cython sees them."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint64_t


cdef extern from "kernels/dispatch.h" nogil:
    const int LANES, WORD_BITS, LINE_BYTES
    struct kernel:
        const char *name
        int (*supported)() noexcept nogil
        ptrdiff_t workspace_bytes
        void (*fill_lines)(uint64_t base, int64_t first_vector, int64_t first_word,
                           ptrdiff_t n_words, uint64_t *lines) noexcept nogil
    uint64_t mix64(uint64_t z)
    const uint64_t SIGN_GOLDEN

    enum value_kind:
        VALUE_F16
    union class_value:
        uint64_t integer
        double real
    struct source:
        value_kind kind
        const char *values
        ptrdiff_t row_stride, stride
        int swapped, is_signed
        int64_t n_samples
        class_value first, last
        const uint64_t *label_bits
        const char *labels
    struct packer:
        int64_t (*pack_row)(const source *, ptrdiff_t, uint64_t *) noexcept nogil
        int64_t (*units_row)(const source *, ptrdiff_t, int32_t *) noexcept nogil
    int value_bytes(value_kind)
    const char *side_by_side(const source *, ptrdiff_t row, int64_t start, int n, size_t size,
                             char *copy)

    uint64_t little_word(const unsigned char *)
    ctypedef void fingerprint_rows_fn(const unsigned char *rows, ptrdiff_t stride,
                                      ptrdiff_t n_rows, ptrdiff_t n_bytes, const uint64_t *key,
                                      uint64_t *hashes, int64_t *totals) noexcept nogil

    struct studentised:
        const double *offsets
        const double *sign_sums
        double *highest
        double *lowest
        const double *means
        const double *scales

    const int SLICED_MOST_SAMPLES
    enum:
        SLICED_MOST_INTO
    struct sliced_kernel:
        int block_rows
        void (*raise_maxima)(const double *sums, const double *others, ptrdiff_t stride,
                             ptrdiff_t n_others, const double *means, const double *scales,
                             const double *sign_sums, ptrdiff_t n, double *maxima) noexcept nogil
    struct sliced_plan:
        pass
    sliced_plan *sliced_plan_new(const sliced_kernel *, const uint64_t *signs, int64_t n_samples,
                                 int64_t n_vectors)
    size_t sliced_plan_bytes(const sliced_plan *)
    void sliced_plan_free(sliced_plan *)
    void *sliced_scratch_new(const sliced_plan *)
    void sliced_scratch_free(void *)

    struct instruction_set:
        const kernel *kernel
        const packer *packer
        const sliced_kernel *sliced
        fingerprint_rows_fn *fingerprint_rows
    const instruction_set *instruction_set_at(int index)


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
    ptrdiff_t studentise_rows(const work_on_rows *, ptrdiff_t first, ptrdiff_t last,
                              const studentised *into, int n_into)
