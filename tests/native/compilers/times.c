/* How long the portable kernels take, as this compiler has made them: name, nanoseconds of a row of
 * N_SAMPLES losses and N_VECTORS vectors, the best of some seconds' tries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/dispatch.h"

enum { N_SAMPLES = 4096, N_VECTORS = 32, N_WORDS = N_SAMPLES / WORD_BITS, N_STRIPS = N_VECTORS / LANES };
enum { MOST_ROWS = 1024 };

static RB_ALIGNED(64) uint64_t signs[N_STRIPS * N_WORDS * LANES];
static uint64_t rows[MOST_ROWS * N_WORDS], words[N_WORDS];
static int32_t units[N_SAMPLES];
static int64_t counts[N_VECTORS], maxima[N_VECTORS], minima[N_VECTORS];
static int64_t totals[MOST_ROWS], growth[MOST_ROWS];
static uint8_t bytes[N_SAMPLES];
static double doubles[N_SAMPLES];
static float floats[N_SAMPLES];
static struct sign_tile tile = {signs, N_WORDS, N_STRIPS, N_WORDS, NULL};
static struct extremes extremes = {.maxima = maxima, .minima = minima, .n_vectors = N_VECTORS};
static struct source source = {.n_samples = N_SAMPLES};
static struct sliced_plan *plan;
static void *scratch;
static volatile int64_t kept; /* so that nothing is left out */

static void count_bits(void)
{
    const struct packed_rows one = {rows, N_WORDS, 1};
    kernel_portable.count_bits(&tile, &one, counts, N_VECTORS, totals);
}

static void count_units(void)
{
    kernel_portable.count_units(&tile, units, N_SAMPLES, 1, counts, N_VECTORS);
}

static void sum_units(void) { kept = kernel_portable.sum_units(units, N_WORDS); }

static void raise_extremes(void)
{
    kept = kernel_portable.raise_extremes(counts, kept & 63, N_STRIPS, maxima, minima);
}

static void fill_lines(void)
{
    for (int s = 0; s < N_STRIPS; s++)
        kernel_portable.fill_lines((uint64_t)kept, s * LANES, 0, N_WORDS,
                                   signs + s * N_WORDS * LANES);
}

static void pack(enum value_kind kind, const void *values, int size)
{
    source.kind = kind;
    source.values = values;
    source.stride = size;
    if (kind >= VALUE_F16)
        source.last.real = 1.0;
    else
        source.last.integer = 1;
    kept = packer_portable.pack_row(&source, 0, words);
}

static void pack_bytes(void) { pack(VALUE_U8, bytes, 1); }
static void pack_doubles(void) { pack(VALUE_F64, doubles, 8); }

static void units_row(void)
{
    source.kind = VALUE_F32;
    source.values = (const char *)floats;
    source.stride = 4;
    kept = packer_portable.units_row(&source, 0, units);
}

static void sliced_scan(void)
{
    sliced_portable.scan(plan, scratch, rows, N_WORDS, sliced_portable.block_rows, &extremes, totals,
                         growth);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static double best_of(void (*tried)(void))
{
    double best = 1e18;
    int times = 1;
    for (double spent = 0; spent < 2e5; times *= 2) { /* until the clock is fine enough */
        const double before = now();
        for (int i = 0; i < times; i++)
            tried();
        spent = now() - before;
    }
    for (int i = 0; i < 100; i++) {
        const double before = now();
        for (int j = 0; j < times; j++)
            tried();
        const double each = (now() - before) / times;
        best = each < best ? each : best;
    }
    return best;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int n_rows;
    } all[] = {
        {"count_bits", count_bits, 1}, {"count_units", count_units, 1},
        {"sum_units", sum_units, 1}, {"raise_extremes", raise_extremes, 1},
        {"fill_lines", fill_lines, 1}, {"pack_row of bytes", pack_bytes, 1},
        {"pack_row of doubles", pack_doubles, 1}, {"units_row of floats", units_row, 1},
        {"sliced scan", sliced_scan, 0},
    };
    fill_lines();
    for (int i = 0; i < MOST_ROWS * N_WORDS; i++)
        rows[i] = mix64((uint64_t)i) & mix64((uint64_t)i + 1000000);
    for (int i = 0; i < N_SAMPLES; i++) {
        units[i] = (int32_t)(mix64((uint64_t)i) >> 40);
        bytes[i] = mix64((uint64_t)i) % 4 == 0;
        doubles[i] = bytes[i];
        floats[i] = (float)units[i] * 0x1p-24f;
    }
    plan = sliced_plan_new(&sliced_portable, signs, N_SAMPLES, N_VECTORS);
    scratch = plan ? sliced_scratch_new(plan) : NULL;
    if (scratch == NULL || sliced_portable.block_rows > MOST_ROWS)
        return 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        printf("%s: %.0f\n", all[i].name,
               best_of(all[i].run) / (all[i].n_rows ? all[i].n_rows : sliced_portable.block_rows));
    sliced_scratch_free(scratch);
    sliced_plan_free(plan);
    return 0;
}
