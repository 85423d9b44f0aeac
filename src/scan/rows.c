#include "rows.h"

#include <string.h>

void source_from(const struct loss_rows *rows, ptrdiff_t word, int64_t n_samples,
                 struct source *part)
{
    *part = rows->source;
    part->values += word * WORD_BITS * part->stride;
    if (part->labels)
        part->labels += word * WORD_BITS * value_bytes(part->kind);
    if (part->label_bits)
        part->label_bits += word;
    part->n_samples = n_samples;
}

int64_t read_words(const struct loss_rows *rows, ptrdiff_t row, ptrdiff_t word, int64_t n_samples,
                   uint64_t *out)
{
    if (!rows->packed) {
        struct source part;
        const int is_whole = n_samples == rows->source.n_samples;
        if (!is_whole)
            source_from(rows, word, n_samples, &part);
        return rows->packer->pack_row(is_whole ? &rows->source : &part, row, out);
    }
    const ptrdiff_t n_words = (ptrdiff_t)((n_samples + WORD_BITS - 1) / WORD_BITS);
    memcpy(out, rows->packed + row * rows->packed_stride + word * 8, (size_t)n_words * 8);
    return check_last_word(out[n_words - 1], n_samples);
}
