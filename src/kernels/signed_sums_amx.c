/* AMX: a product of bytes, 16 rows by 64 samples by 16 vectors at a time.
 *
 *     counts[row][vector]  +=  sum over 64 samples of  losses[row][sample] * signs[sample][vector]
 *
 * One TDPBUUD takes 16 cycles for what would take VPOPCNTQ and its AND and ADD 48, and runs beside
 * the vector ports; but bits must be unpacked to bytes first.
 *
 *     signs    once for all rows of a call, into a workspace: two operands a word.  Row g of one
 *              has samples 4 g .. 4 g + 3 of each vector.
 *     losses   32 rows by one word at a time, into a ring of a few such words in the first cache,
 *              AHEAD words before they are multiplied: what was just stored cannot be loaded yet.
 *
 * A square is 32 rows by 32 vectors: four tiles of sums, and two of each operand.  AVX-512 does
 * what is left of rows and vectors, and all of a call that is too short to pay for unpacked signs.
 */
#include "signed_sums.h"

#if defined(RB_AMX)
#include "x86.h"
#include <string.h>

#define AMX RB_TARGET("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi," \
                      "avx512vpopcntdq,popcnt")

/* GCC 12 does not know that a tile is loaded from memory: what is stored before must be by then. */
#define IN_ORDER __asm__ volatile("" ::: "memory")

enum {
    TILE_BYTES = 1024, /* 16 rows of 64 */
    TILE_ROWS = 16,
    ROWS = 2 * TILE_ROWS,
    STRIPS = 4,            /* of a square; one may be missing */
    LEAST_ROWS = 3 * ROWS, /* that pay for the unpacking of the signs */
    AHEAD = 2, /* words */
    RING = 4,
};

/* Sums of a square: those of the first and of the second half of the vectors. */
struct sums {
    RB_ALIGNED(LINE_BYTES) int32_t of[2][ROWS][TILE_ROWS];
};

/* ---- bits to bytes ----------------------------------------------------------------------- */

RB_INLINE AMX __m512i bytes_of(uint64_t bits) { return _mm512_maskz_set1_epi8(bits, 1); }

/* A word of 16 vectors, eight to a register.  A row of the tile wants one nibble of each: first all
 * even nibbles of two neighbours are made a byte, and all odd ones, then the 8 x 8 bytes of either
 * are transposed. */
AMX static void unpack_signs(__m512i low, __m512i high, uint8_t *tile)
{
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i nibble = _mm512_set1_epi8(0x0f);
    const __m512i column = _mm512_setr_epi64(
        0x3830282018100800, 0x3931292119110901, 0x3a322a221a120a02, 0x3b332b231b130b03,
        0x3c342c241c140c04, 0x3d352d251d150d05, 0x3e362e261e160e06, 0x3f372f271f170f07);
    const __m512i x = _mm512_permutex2var_epi64(low, even, high);
    const __m512i y = _mm512_permutex2var_epi64(low, odd, high);
    /* 0xca: where `nibble` the second operand, else the third */
    const __m512i evens = _mm512_ternarylogic_epi64(nibble, x, _mm512_slli_epi64(y, 4), 0xca);
    const __m512i odds = _mm512_ternarylogic_epi64(nibble, _mm512_srli_epi64(x, 4), y, 0xca);
    RB_ALIGNED(LINE_BYTES) uint64_t bits[2][8];
    _mm512_store_si512(bits[0], _mm512_permutexvar_epi8(column, evens));
    _mm512_store_si512(bits[1], _mm512_permutexvar_epi8(column, odds));
    RB_UNROLL(8)
    for (int g = 0; g < 16; g++)
        _mm512_store_si512(tile + 64 * g, bytes_of(bits[g % 2][g / 2]));
}

/* Three or four strips: two tiles a word.  A vector that is not there has no sign that is +1. */
AMX static void unpack_strips(const struct sign_tile *signs, ptrdiff_t strip, int n_strips,
                              uint8_t *tiles)
{
    const ptrdiff_t stride = signs->strip_stride * LANES;
    const uint64_t *line = signs->lines + strip * stride;
    for (ptrdiff_t w = 0; w < signs->n_words; w++, line += LANES, tiles += 2 * TILE_BYTES) {
        unpack_signs(_mm512_load_si512(line), _mm512_load_si512(line + stride), tiles);
        unpack_signs(_mm512_load_si512(line + 2 * stride),
                     n_strips < STRIPS ? _mm512_setzero_si512()
                                       : _mm512_load_si512(line + 3 * stride),
                     tiles + TILE_BYTES);
    }
}

/* One word of eight rows into an operand, if it is there; returns where the next rows have it.  It
 * stays between the products around it. */
RB_INLINE AMX const uint64_t *unpack_losses(const uint64_t *losses, ptrdiff_t row_stride,
                                            int is_there, uint8_t *tile)
{
    IN_ORDER;
    RB_UNROLL(8)
    for (int r = 0; is_there && r < 8; r++, losses += row_stride)
        _mm512_store_si512(tile + 64 * r, bytes_of(*losses));
    IN_ORDER;
    return losses;
}

/* Every eighth row of the next square, on its way from memory: eight words fetch a line of each. */
RB_INLINE AMX void fetch_next(const uint64_t *losses, ptrdiff_t row_stride, ptrdiff_t word)
{
    losses += (ROWS + word % 8) * row_stride - word % 8;
    for (int r = 0; r < ROWS; r += 8)
        _mm_prefetch((const char *)(losses + r * row_stride), _MM_HINT_T0);
}

/* ---- products ---------------------------------------------------------------------------- */

/* Tile registers: 0 to 3 the sums, first rows and vectors first; 4 and 5 losses; 6 and 7 signs. */
AMX static void set_up_tiles(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t n_rows[16];
    } shape = {
        .palette = 1,
        .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
        .n_rows = {TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS,
                   TILE_ROWS},
    };
    _tile_loadconfig(&shape);
}

/* The unpacking of what comes AHEAD stands between the products, which do not wait for it. */
AMX static void multiply(const uint64_t *rows, ptrdiff_t row_stride, ptrdiff_t n_words,
                         const uint8_t *signs, struct sums *sums)
{
    enum { EIGHT = TILE_BYTES / 2 }; /* rows */
    RB_ALIGNED(LINE_BYTES) uint8_t ring[RING][2 * TILE_BYTES];
    for (ptrdiff_t w = 0; w < AHEAD && w < n_words; w++) {
        const uint64_t *losses = rows + w;
        for (int eight = 0; eight < ROWS / 8; eight++)
            losses = unpack_losses(losses, row_stride, 1, ring[w] + eight * EIGHT);
    }
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (ptrdiff_t w = 0; w < n_words; w++, signs += 2 * TILE_BYTES) {
        const int more = w + AHEAD < n_words;
        const uint64_t *losses = rows + w + AHEAD;
        const uint8_t *unpacked = ring[w % RING];
        uint8_t *next = ring[(w + AHEAD) % RING];
        if (more)
            fetch_next(losses, row_stride, w + AHEAD);
        _tile_loadd(4, unpacked, 64);
        _tile_loadd(6, signs, 64);
        _tile_dpbuud(0, 4, 6);
        losses = unpack_losses(losses, row_stride, more, next);
        _tile_loadd(7, signs + TILE_BYTES, 64);
        _tile_dpbuud(1, 4, 7);
        losses = unpack_losses(losses, row_stride, more, next + EIGHT);
        _tile_loadd(5, unpacked + TILE_BYTES, 64);
        _tile_dpbuud(2, 5, 6);
        losses = unpack_losses(losses, row_stride, more, next + 2 * EIGHT);
        _tile_dpbuud(3, 5, 7);
        unpack_losses(losses, row_stride, more, next + 3 * EIGHT);
    }
    _tile_stored(0, sums->of[0][0], 64);
    _tile_stored(1, sums->of[1][0], 64);
    _tile_stored(2, sums->of[0][TILE_ROWS], 64);
    _tile_stored(3, sums->of[1][TILE_ROWS], 64);
    IN_ORDER;
}

/* totals[r] += ones in row r of a square, which is in the first cache by now. */
AMX static void add_ones(const uint64_t *rows, ptrdiff_t row_stride, ptrdiff_t n_words,
                         int64_t *totals)
{
    const ptrdiff_t whole = n_words / LANES * LANES;
    const __mmask8 rest = (__mmask8)((1 << n_words % LANES) - 1);
    for (int r = 0; r < ROWS; r++, rows += row_stride) {
        const __m512i last = _mm512_maskz_loadu_epi64(rest, rows + whole);
        __m512i ones = _mm512_popcnt_epi64(last);
        for (ptrdiff_t w = 0; w < whole; w += LANES)
            ones = _mm512_add_epi64(ones, _mm512_popcnt_epi64(_mm512_loadu_si512(rows + w)));
        totals[r] += _mm512_reduce_add_epi64(ones);
    }
}

/* ---- what becomes of the sums -------------------------------------------------------------- */

AMX static void add_counts(const struct sums *sums, int n_strips, int64_t *counts,
                           ptrdiff_t counts_stride)
{
    for (int r = 0; r < ROWS; r++, counts += counts_stride)
        for (int i = 0; i < n_strips; i++) {
            const __m256i *sum = (const __m256i *)sums->of[i / 2][r] + i % 2;
            __m512i wide = _mm512_cvtepi32_epi64(_mm256_load_si256(sum));
            __m512i old = _mm512_loadu_si512(counts + i * LANES);
            _mm512_storeu_si512(counts + i * LANES, _mm512_add_epi64(old, wide));
        }
}

/* Extremes of a square's vectors in 32 bits, where the sums of one call have room: what does not
 * fit is beyond every sum.  A vector that is not there moves nothing. */
struct bounds {
    __m512i maxima[2], minima[2];
};

RB_INLINE AMX __m512i narrow(const int64_t *extremes, int n_strips, int64_t none)
{
    const __m512i second = n_strips < 2 ? _mm512_set1_epi64(none)
                                        : _mm512_loadu_si512(extremes + LANES);
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm512_cvtsepi64_epi32(_mm512_loadu_si512(extremes))),
        _mm512_cvtsepi64_epi32(second), 1);
}

AMX static struct bounds bounds_of(const struct extremes *extremes, int n_strips)
{
    struct bounds bounds;
    for (int half = 0; half < 2; half++) {
        const int left = n_strips - 2 * half;
        bounds.maxima[half] = narrow(extremes->maxima + 2 * half * LANES, left, INT64_MAX);
        bounds.minima[half] = narrow(extremes->minima + 2 * half * LANES, left, INT64_MIN);
    }
    return bounds;
}

AMX static void widen(const struct sums *sums, int n_strips, const struct widening *to,
                      struct bounds *bounds)
{
    for (int r = 0; r < ROWS; r++) {
        const __m512i total = _mm512_set1_epi32((int32_t)to->totals[r]);
        __mmask16 beyond = 0;
        RB_UNROLL(2)
        for (int half = 0; half < 2; half++) {
            __m512i count = _mm512_load_si512(sums->of[half][r]);
            __m512i twice = _mm512_sub_epi32(_mm512_add_epi32(count, count), total);
            beyond |= _mm512_cmpgt_epi32_mask(twice, bounds->maxima[half]);
            beyond |= _mm512_cmplt_epi32_mask(twice, bounds->minima[half]);
        }
        if (beyond) { /* rare once a few queries have been seen */
            int64_t counts[STRIPS * LANES] = {0};
            for (int v = 0; v < n_strips * LANES; v++)
                counts[v] = sums->of[v / TILE_ROWS][r][v % TILE_ROWS];
            const struct widening row = {0, to->most, to->extremes, to->totals + r, to->growth + r};
            widen_by_counts_avx512(counts, n_strips, 1, &row);
            *bounds = bounds_of(to->extremes, n_strips);
        }
    }
}

/* ---- the kernel -------------------------------------------------------------------------- */

/* What of a call goes in squares: so many rows of so many strips, or none of none. */
struct squares {
    ptrdiff_t n_rows, n_strips;
};

static struct squares squares_of(const struct sign_tile *signs, ptrdiff_t n_rows)
{
    const ptrdiff_t left = signs->n_strips % STRIPS;
    const ptrdiff_t n_strips = signs->n_strips - (left < STRIPS - 1 ? left : 0);
    if (signs->workspace == NULL || signs->n_words > WORKSPACE_WORDS || n_rows < LEAST_ROWS ||
        n_strips == 0 || !may_use_tiles())
        return (struct squares){0, 0};
    return (struct squares){n_rows / ROWS * ROWS, n_strips};
}

/* The strips from this one on, without a workspace. */
static struct sign_tile strips_from(const struct sign_tile *signs, ptrdiff_t strip)
{
    return (struct sign_tile){signs->lines + strip * signs->strip_stride * LANES,
                              signs->strip_stride, signs->n_strips - strip, signs->n_words, NULL};
}

/* All whole squares of a call, into counts or with `to` into extremes; returns which. */
AMX static struct squares do_squares(const struct sign_tile *signs, const struct packed_rows *rows,
                                     int64_t *counts, ptrdiff_t counts_stride, int64_t *totals,
                                     const struct widening *to)
{
    const struct squares squares = squares_of(signs, rows->n_rows);
    if (squares.n_rows == 0)
        return squares;
    set_up_tiles();
    for (ptrdiff_t s = 0; s < squares.n_strips; s += STRIPS) {
        const int n_strips = squares.n_strips - s < STRIPS ? STRIPS - 1 : STRIPS;
        struct extremes extremes;
        struct bounds bounds;
        if (to) {
            extremes = extremes_from(to->extremes, s * LANES);
            bounds = bounds_of(&extremes, n_strips);
        }
        unpack_strips(signs, s, n_strips, signs->workspace);
        for (ptrdiff_t r = 0; r < squares.n_rows; r += ROWS) {
            const uint64_t *square = rows->words + r * rows->stride;
            struct sums sums;
            multiply(square, rows->stride, signs->n_words, signs->workspace, &sums);
            if (totals && s == 0)
                add_ones(square, rows->stride, signs->n_words, totals + r);
            if (to) {
                const struct widening part = {0, to->most, &extremes, to->totals + r, to->growth + r};
                widen(&sums, n_strips, &part, &bounds);
            } else {
                add_counts(&sums, n_strips, counts + r * counts_stride + s * LANES, counts_stride);
            }
        }
    }
    _tile_release();
    return squares;
}

AMX static void count_bits(const struct sign_tile *signs, const struct packed_rows *rows,
                           int64_t *counts, ptrdiff_t counts_stride, int64_t *totals)
{
    const struct squares done = do_squares(signs, rows, counts, counts_stride, totals, NULL);
    const struct sign_tile left = strips_from(signs, done.n_strips);
    const ptrdiff_t n = done.n_rows;
    const struct packed_rows beside = {rows->words, rows->stride, n};
    const struct packed_rows below = {rows->words + n * rows->stride, rows->stride, rows->n_rows - n};
    count_bits_avx512(&left, &beside, counts + done.n_strips * LANES, counts_stride, NULL);
    count_bits_avx512(signs, &below, counts + n * counts_stride, counts_stride,
                      totals ? totals + n : NULL);
}

/* Vector by vector rows come in order, and that is all that the growth depends on. */
AMX static void widen_extremes(const struct sign_tile *signs, const struct packed_rows *rows,
                               const struct widening *to)
{
    if (to->first) {
        memset(to->totals, 0, (size_t)rows->n_rows * sizeof *to->totals);
        memset(to->growth, 0, (size_t)rows->n_rows * sizeof *to->growth);
    }
    const struct squares done =
        do_squares(signs, rows, NULL, 0, to->first ? to->totals : NULL, to);
    const struct sign_tile left = strips_from(signs, done.n_strips);
    const ptrdiff_t n = done.n_rows;
    const struct extremes part = extremes_from(to->extremes, done.n_strips * LANES);
    const struct packed_rows beside = {rows->words, rows->stride, n};
    const struct packed_rows below = {rows->words + n * rows->stride, rows->stride, rows->n_rows - n};
    const struct widening to_beside = {0, to->most, &part, to->totals, to->growth};
    const struct widening to_below = {to->first, to->most, to->extremes, to->totals + n,
                                      to->growth + n};
    widen_extremes_avx512(&left, &beside, &to_beside);
    widen_extremes_avx512(signs, &below, &to_below);
}

const struct kernel kernel_amx = {
    "amx",
    cpu_has_amx,
    count_bits,
    count_units_avx512,
    raise_extremes_avx512,
    sum_units_avx512,
    fill_lines_avx512,
    widen_extremes,
    WORKSPACE_WORDS * 2 * TILE_BYTES,
    52,
    1900,
};
#endif
