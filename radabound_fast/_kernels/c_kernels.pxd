"""The C sources of src/kernels, as Cython sees them."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint64_t


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


cdef extern from "kernels/packing.h" nogil:
    enum value_kind:
        VALUE_U8
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


cdef extern from "kernels/fingerprint.h" nogil:
    uint64_t little_word(const unsigned char *)
    ctypedef void fingerprint_rows_fn(const unsigned char *rows, ptrdiff_t stride,
                                      ptrdiff_t n_rows, ptrdiff_t n_bytes, const uint64_t *key,
                                      uint64_t *hashes, int64_t *totals) noexcept nogil


cdef extern from "kernels/studentised.h" nogil:
    struct studentised:
        const double *offsets
        const double *sign_sums
        double *highest
        double *lowest
        const double *means
        const double *scales


cdef extern from "kernels/sliced.h" nogil:
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


cdef extern from "kernels/dispatch.h" nogil:
    struct instruction_set:
        const kernel *kernel
        const packer *packer
        const sliced_kernel *sliced
        fingerprint_rows_fn *fingerprint_rows
    const instruction_set *instruction_set_at(int index)
