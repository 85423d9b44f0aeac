/* What the bit-sliced kernels can know before they see a row: which samples form which class. */
#include "sliced_plan.h"

#include <stdlib.h>
#include <string.h>

enum { CLASS_SAMPLES = 96 }; /* at most, on average: groups that leave at least half of that */

static void find_classes(const struct sliced_plan *plan, const uint64_t *signs, int64_t group,
                         int64_t start, int64_t n_words, uint8_t *class)
{
    const int64_t first = sliced_group(plan, group), end = sliced_group(plan, group + 1);
    for (int64_t w = start; w < start + n_words; w++, class += 64) {
        uint64_t word[SLICED_MOST_VECTORS] = {0};
        for (int64_t j = first; j < end; j++)
            word[j - first] = signs[(j / 8 * plan->n_words + w) * 8 + j % 8];
        sliced_columns(word, class);
    }
}

/* Makes room for so many more indices; false if there is none. */
static int reserve(struct sliced_plan *plan, size_t more)
{
    if (plan->n_indices + more <= plan->capacity)
        return 1;
    const size_t capacity = 2 * plan->capacity + more;
    uint16_t *classes = realloc(plan->classes, capacity * sizeof *classes);
    if (classes == NULL)
        return 0;
    plan->classes = classes;
    plan->capacity = capacity;
    return 1;
}

static size_t most_indices(int size, int64_t n_samples)
{
    return ((size_t)8 << size) + (size_t)n_samples;
}

static int append_classes(struct sliced_plan *plan, const uint8_t *class, int64_t n_samples,
                          int size)
{
    int64_t count[1 << SLICED_MOST_VECTORS] = {0};
    size_t next[1 << SLICED_MOST_VECTORS];
    if (!reserve(plan, most_indices(size, n_samples)))
        return 0;
    for (int64_t i = 0; i < n_samples; i++)
        count[class[i]]++;

    uint16_t *const indices = plan->classes, *out = indices + plan->n_indices;
    for (int i = 0; i < 1 << size; i++) {
        const int c = sliced_class(i, size);
        const int64_t n_chunks = (count[c] + 7) / 8;
        *out++ = (uint16_t)n_chunks;
        memset(out, 0, 8 * (size_t)n_chunks * sizeof *out);
        next[c] = (size_t)(out - indices);
        out += 8 * n_chunks;
    }
    plan->n_indices = (size_t)(out - indices);
    for (int64_t i = 0; i < n_samples; i++)
        indices[next[class[i]]++] = (uint16_t)((1 + i) * plan->line_words);
    return 1;
}

static int append_tiles(struct sliced_plan *plan, const uint64_t *signs, uint8_t *class)
{
    for (int64_t start = 0; start < plan->n_words; start += plan->tile_words) {
        const int64_t n_words = smaller(plan->tile_words, plan->n_words - start);
        const int64_t n_samples = smaller(64 * n_words, plan->n_samples - 64 * start);
        for (int64_t g = 0; g < plan->n_groups; g++) {
            const int size = (int)(sliced_group(plan, g + 1) - sliced_group(plan, g));
            find_classes(plan, signs, g, start, n_words, class);
            if (!append_classes(plan, class, n_samples, size))
                return 0;
        }
    }
    if (!reserve(plan, SLICED_AHEAD + 4))
        return 0;
    memset(plan->classes + plan->n_indices, 0, (SLICED_AHEAD + 4) * sizeof *plan->classes);
    return 1;
}

struct sliced_plan *sliced_plan_new(const struct sliced_kernel *kernel, const uint64_t *signs,
                                    int64_t n_samples, int64_t n_vectors)
{
    struct sliced_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return NULL;
    plan->n_samples = n_samples;
    plan->n_vectors = n_vectors;
    plan->line_words = kernel->block_rows / 64;
    plan->n_words = (n_samples + 63) / 64;
    plan->n_tiles = (plan->n_words + SLICED_TILE_WORDS - 1) / SLICED_TILE_WORDS;
    plan->tile_words = (plan->n_words + plan->n_tiles - 1) / plan->n_tiles;

    const int64_t tile_samples = 64 * plan->tile_words;
    int size = 1;
    while ((int64_t)CLASS_SAMPLES << size < tile_samples)
        size++;
    plan->n_groups = n_vectors < size ? 1 : (n_vectors + size / 2) / size;
    for (int64_t g = 0; g < plan->n_groups; g++)
        plan->n_classes += (int64_t)1 << (sliced_group(plan, g + 1) - sliced_group(plan, g));

    uint8_t *class = malloc((size_t)tile_samples);
    const size_t n_parts = (size_t)plan->n_tiles * (size_t)plan->n_groups;
    const int done = class != NULL && reserve(plan, n_parts * most_indices(size, tile_samples)) &&
                     append_tiles(plan, signs, class);
    free(class);
    if (done)
        return plan;
    sliced_plan_free(plan);
    return NULL;
}

size_t sliced_plan_bytes(const struct sliced_plan *plan)
{
    return sizeof *plan + plan->capacity * sizeof *plan->classes;
}

void sliced_plan_free(struct sliced_plan *plan)
{
    if (plan != NULL)
        free(plan->classes);
    free(plan);
}

size_t sliced_scratch_bytes(const struct sliced_plan *plan)
{
    int64_t lines = 1 + 64 * plan->tile_words + (SLICED_MOST_VECTORS + 1) * SLICED_PLANES;
    if (plan->n_tiles > 1)
        lines += (plan->n_vectors + plan->n_groups) * sliced_sum_planes(plan);
    return (size_t)(lines * plan->line_words) * sizeof(uint64_t);
}

/* aligned_alloc is not everywhere: what malloc returned is noted just before the scratch. */
void *sliced_scratch_new(const struct sliced_plan *plan)
{
    void *block = malloc(sliced_scratch_bytes(plan) + sizeof block + 63);
    if (block == NULL)
        return NULL;
    void **scratch = (void **)(((uintptr_t)block + sizeof block + 63) & ~(uintptr_t)63);
    scratch[-1] = block;
    return scratch;
}

void sliced_scratch_free(void *scratch)
{
    if (scratch != NULL)
        free(((void **)scratch)[-1]);
}
