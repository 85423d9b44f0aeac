/* Rows of losses: how they lie, and how some samples of one are read. */
#ifndef RADABOUND_ROWS_H
#define RADABOUND_ROWS_H

#include "kernels/packing.h"
#include "kernels/signed_sums.h"

/* Rows to judge: packed already, or values to be packed on the way. */
struct loss_rows {
    const char *packed;      /* words, at any address; NULL: pack `source` */
    ptrdiff_t packed_stride; /* bytes from row to row */
    int in_place;            /* whether all the words are aligned, and kernels read them there */
    int may_be_real;         /* whether values may be other than 0 and 1: floats, no predictions */
    struct source source;
    const struct packer *packer;
};

RB_INLINE void packed_as_rows(struct loss_rows *rows, const void *packed, ptrdiff_t stride)
{
    rows->packed = packed;
    rows->packed_stride = stride;
    rows->in_place = ((uintptr_t)packed | (uintptr_t)stride) % 8 == 0;
    rows->may_be_real = 0;
}

/* Of rows->source, which is there. */
RB_INLINE void values_as_rows(struct loss_rows *rows, const struct packer *packer)
{
    const struct source *source = &rows->source;
    rows->packed = NULL;
    rows->in_place = 0;
    rows->may_be_real = source->kind >= VALUE_F16 && !source->labels && !source->label_bits;
    rows->packer = packer;
}

/* The values from a word's first sample on, as a source of their own. */
void source_from(const struct loss_rows *rows, ptrdiff_t word, int64_t n_samples,
                 struct source *part);

/* One row's words from `word` on, of n_samples samples, into out.  Returns n_samples, or the
 * first sample that is not 0 or 1, or past the end. */
int64_t read_words(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word, int64_t n_samples,
                   uint64_t *out);

/* n_samples, or n_samples + 1 if a bit stands past them in the last of their words. */
RB_INLINE int64_t check_last_word(uint64_t last, int64_t n_samples)
{
    const int used = (int)(n_samples % WORD_BITS);
    return used && last >> used ? n_samples + 1 : n_samples;
}

#endif
