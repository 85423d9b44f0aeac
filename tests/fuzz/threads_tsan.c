/* Threads that scan segments as src/extension/_threads.pxi has them do: for ThreadSanitizer.
 *
 * Kernel, signs, plan, rows and the array of totals are shared; every thread has a state, a chunk
 * and a scratch of its own.  What they find, merged, must be what one thread finds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scan/scan.h"
#include "kernels/sliced.h"

enum { N_THREADS = 4, N_SAMPLES = 203, N_VECTORS = 40, N_ROWS = 8192, ROUNDS = 20 };

static const ptrdiff_t n_words = (N_SAMPLES + 63) / 64, n_strips = N_VECTORS / LANES;

static const struct kernel *kernel;
static struct sliced_plan *plan;
static struct sign_store store;
static struct loss_rows rows;
static int in_blocks;
static int64_t totals[N_ROWS];

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (p == NULL)
        abort();
    return memset(p, 0, (bytes + 63) / 64 * 64);
}

struct segment {
    ptrdiff_t first, last;
    struct guard_state state;
    struct chunk chunk;
    struct sliced_memory slices;
    enum verdict verdict;
};

static void begin(struct segment *segment, ptrdiff_t first, ptrdiff_t last)
{
    const ptrdiff_t n_lanes = n_strips * LANES;
    const struct sliced_kernel *sliced = sliced_row(kernel);
    *segment = (struct segment){.first = first, .last = last};
    segment->state = (struct guard_state){.maxima = memory(2 * n_lanes * sizeof(int64_t)),
                                    .n_vectors = N_VECTORS,
                                    .n_strips = n_strips,
                                    .budget = INT64_MAX,
                                    .priced = INT64_MAX,
                                    .priced_rows = INT64_MAX};
    segment->state.minima = segment->state.maxima + n_lanes;
    segment->chunk = (struct chunk){.counts = memory(CHUNK_ROWS * n_lanes * sizeof(int64_t)),
                                    .totals = memory(CHUNK_ROWS * sizeof(int64_t)),
                                    .workspace = memory((size_t)kernel->workspace_bytes),
                                    .tile = memory(CHUNK_ROWS * TILE_WORDS * 8),
                                    .capacity = CHUNK_ROWS};
    segment->slices =
        (struct sliced_memory){.kernel = sliced,
                        .plan = plan,
                        .scratch = sliced_scratch_new(plan),
                        .growth = memory((size_t)sliced->block_rows * sizeof(int64_t)),
                        .totals = memory((size_t)sliced->block_rows * sizeof(int64_t)),
                        .before = memory(2 * n_lanes * sizeof(int64_t)),
                        .packed = memory((size_t)(sliced->block_rows * n_words) * 8)};
}

static void end(struct segment *segment)
{
    free(segment->state.maxima);
    free(segment->chunk.counts);
    free(segment->chunk.totals);
    free(segment->chunk.workspace);
    free(segment->chunk.tile);
    free(segment->slices.growth);
    free(segment->slices.totals);
    free(segment->slices.before);
    free(segment->slices.packed);
    sliced_scratch_free(segment->slices.scratch);
}

static void *scan(void *argument)
{
    struct segment *s = argument;
    scan_rows(kernel, &store, &rows, s->first, s->last, &s->state, &s->chunk,
              in_blocks ? &s->slices : NULL, totals, NULL, &s->verdict);
    return NULL;
}

/* One round: segments in threads, merged in order, against the whole on this thread. */
static int one_round(void)
{
    struct segment segments[N_THREADS], whole;
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        begin(&segments[i], i * N_ROWS / N_THREADS, (i + 1) * N_ROWS / N_THREADS);
        if (pthread_create(&threads[i], NULL, scan, &segments[i]))
            abort();
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    int64_t *found = memory(sizeof totals);
    memcpy(found, totals, sizeof totals);
    for (int i = 1; i < N_THREADS; i++)
        merge_state(&segments[0].state, &segments[i].state);
    begin(&whole, 0, N_ROWS);
    scan(&whole);
    const size_t bytes = N_VECTORS * sizeof(int64_t);
    const int same = memcmp(found, totals, sizeof totals) == 0 &&
                     segments[0].state.complexity == whole.state.complexity &&
                     memcmp(segments[0].state.maxima, whole.state.maxima, bytes) == 0 &&
                     memcmp(segments[0].state.minima, whole.state.minima, bytes) == 0;
    free(found);
    end(&whole);
    for (int i = 0; i < N_THREADS; i++)
        end(&segments[i]);
    return same;
}

/* Rows and signs are words of the stream; the last of each row ends with zeros. */
static void make_shared(int in_place)
{
    const uint64_t last = ((uint64_t)1 << N_SAMPLES % 64) - 1;
    uint64_t *words = memory(N_ROWS * (size_t)n_words * 8);
    uint64_t *lines = memory(n_strips * n_words * LINE_BYTES);
    for (ptrdiff_t i = 0; i < N_ROWS * n_words; i++)
        words[i] = mix64((uint64_t)i) & (i % n_words == n_words - 1 ? last : ~(uint64_t)0);
    for (ptrdiff_t i = 0; i < n_strips * n_words * LANES; i++)
        lines[i] = mix64(~(uint64_t)i);
    store = (struct sign_store){.lines = lines, .n_vectors = N_VECTORS, .n_strips = n_strips,
                                .n_words = n_words, .n_samples = N_SAMPLES};
    rows = (struct loss_rows){.packed = (const char *)words, .packed_stride = 8 * n_words,
                         .packed_bytes = in_place ? 8 * n_words : (N_SAMPLES + 7) / 8};
}

int main(void)
{
    for (int i = 0; (kernel = kernel_row(i)) != NULL; i++)
        for (int in_place = 0; in_place < 2 && kernel->supported(); in_place++) {
            make_shared(in_place);
            plan = sliced_plan_new(sliced_row(kernel), store.lines, N_SAMPLES, N_VECTORS);
            if (plan == NULL)
                abort();
            const uint64_t *const lines = store.lines;
            for (int round = 0; round < ROUNDS; round++) {
                in_blocks = round % 4 < 2;
                store.lines = round % 4 == 3 ? NULL : lines; /* NULL: generated tile by tile */
                if (!one_round()) {
                    printf("%s: the threads found something else\n", kernel->name);
                    return 1;
                }
            }
            printf("%-10s %s: %d rounds of %d threads on %d rows agree with one thread\n",
                   kernel->name, in_place ? "rows in place" : "rows copied  ", ROUNDS, N_THREADS,
                   N_ROWS);
            sliced_plan_free(plan);
            free((void *)lines);
            free((void *)rows.packed);
        }
    return 0;
}
