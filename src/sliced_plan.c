/* The part of the bit-sliced kernel that depends on the signs alone; see sliced.h, sliced.inc.h. */
#include <stdlib.h>
#include <string.h>

#include "sliced.h"

enum { TILE_WORDS = 94 };

/* 8 x 8 bits: bit j of byte i goes to bit i of byte j. */
static uint64_t transpose_8x8(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aa;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000cccc;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0;
    return x ^ t ^ t << 28;
}

/* The class of a sample: bit k is its sign in vector first + k. */
static void find_classes(uint8_t *class, const uint64_t *signs, const struct sliced_plan *plan,
                         int64_t group, int64_t start, int64_t n_words)
{
    int64_t first = sliced_group(plan, group), end = sliced_group(plan, group + 1);
    for (int64_t w = 0; w < n_words; w++)
        for (int byte = 0; byte < 8; byte++) {
            uint64_t x = 0;
            for (int64_t j = first; j < end; j++) {
                uint64_t word = signs[(j / 8 * plan->n_words + start + w) * 8 + j % 8];
                x |= (word >> 8 * byte & 0xff) << 8 * (j - first);
            }
            x = transpose_8x8(x);
            for (int i = 0; i < 8; i++)
                *class++ = (uint8_t)(x >> 8 * i);
        }
}

/* Writes one tile of one group:
 *
 *     bits that hold any class's count;
 *     for every class in order: the number of chunks, then chunks of 8 indices of lines.
 *
 * An index is in units of 8 bytes.  Line 0 is zero and fills the last chunk, sample i is line
 * 1 + i.  Returns the end of what was written.
 */
static uint16_t *write_classes(uint16_t *out, const uint8_t *class, int64_t n_samples, int size,
                               int line_words)
{
    int64_t count[256] = {0}, largest = 0;
    uint16_t *next[256];
    for (int64_t i = 0; i < n_samples; i++)
        count[class[i]]++;
    uint16_t *width = out++;
    for (int c = 0; c < 1 << size; c++) {
        int64_t n_chunks = (count[c] + 7) / 8;
        *out++ = (uint16_t)n_chunks;
        memset(out, 0, 8 * n_chunks * sizeof *out);
        next[c] = out;
        out += 8 * n_chunks;
        largest = count[c] > largest ? count[c] : largest;
    }
    *width = (uint16_t)sliced_planes(largest);
    for (int64_t i = 0; i < n_samples; i++)
        *next[class[i]]++ = (uint16_t)((1 + i) * line_words);
    return out;
}

/* Vectors in a group.  Each class should have some 30 samples or more, since folding the classes
 * into sums costs as much as counting that many. */
static int group_size(int64_t n_samples)
{
    int size = 1;
    while (size < SLICED_GROUP && (int64_t)48 << size < n_samples)
        size++;
    return size;
}

struct sliced_plan *sliced_plan_new(const struct sliced_kernel *kernel, const uint64_t *signs,
                                    int64_t n_samples, int64_t n_vectors)
{
    struct sliced_plan *plan = malloc(sizeof *plan);
    if (plan == NULL)
        return NULL;
    plan->n_samples = n_samples;
    plan->n_vectors = n_vectors;
    plan->n_words = (n_samples + 63) / 64;
    plan->n_tiles = (plan->n_words + TILE_WORDS - 1) / TILE_WORDS;
    plan->tile_words = (plan->n_words + plan->n_tiles - 1) / plan->n_tiles;
    plan->line_bytes = kernel->block_rows / 8;
    int64_t tile_samples = sliced_tile_samples(plan);
    int size = group_size(tile_samples);
    plan->n_groups = (n_vectors + size - 1) / size;

    int64_t most = 1 + ((int64_t)8 << size) + tile_samples;
    plan->classes_bytes = plan->n_tiles * plan->n_groups * most * sizeof *plan->classes;
    plan->classes = malloc(plan->classes_bytes);
    uint8_t *class = malloc(64 * plan->tile_words);
    if (plan->classes == NULL || class == NULL) {
        free(class);
        sliced_plan_free(plan);
        return NULL;
    }
    uint16_t *out = plan->classes;
    for (int64_t start = 0; start < plan->n_words; start += plan->tile_words) {
        int64_t words = plan->n_words - start, samples = n_samples - 64 * start;
        words = words < plan->tile_words ? words : plan->tile_words;
        samples = samples < 64 * words ? samples : 64 * words;
        for (int64_t g = 0; g < plan->n_groups; g++) {
            find_classes(class, signs, plan, g, start, words);
            out = write_classes(out, class, samples,
                                (int)(sliced_group(plan, g + 1) - sliced_group(plan, g)),
                                plan->line_bytes / 8);
        }
    }
    free(class);
    return plan;
}

void sliced_plan_free(struct sliced_plan *plan)
{
    if (plan != NULL)
        free(plan->classes);
    free(plan);
}

size_t sliced_scratch_bytes(const struct sliced_plan *plan)
{
    int64_t lines = 1 + 64 * plan->tile_words;
    lines += SLICED_NODE_NUMBERS * sliced_planes(sliced_tile_samples(plan));
    if (plan->n_tiles > 1)
        lines += (plan->n_vectors + plan->n_groups) * sliced_planes(plan->n_samples);
    return lines * plan->line_bytes;
}

/* aligned_alloc is not everywhere: the block that malloc returned is noted just before ours. */
void *sliced_scratch_new(const struct sliced_plan *plan)
{
    void *block = malloc(sliced_scratch_bytes(plan) + 64 + sizeof block);
    if (block == NULL)
        return NULL;
    void **scratch = (void **)(((uintptr_t)block + 64 + sizeof block) / 64 * 64);
    scratch[-1] = block;
    return scratch;
}

void sliced_scratch_free(void *scratch)
{
    if (scratch != NULL)
        free(((void **)scratch)[-1]);
}
