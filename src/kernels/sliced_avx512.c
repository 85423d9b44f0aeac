/* Bit-sliced blocks with AVX-512: 512 rows to a line.  Two places where intrinsics pay:
 *
 * The full adder is two VPTERNLOG, where gcc 12 makes three operations (1.2 times the time).
 *
 * The transposition moves whole bytes, which shifts and masks cannot (1.3 times the time of a
 * block at l = 32).  It interleaves the bytes of n registers, j with j + n / 2: the top bit of a
 * register's number becomes the lowest bit of the byte's place, and after log2(n) rounds the whole
 * number has moved there.
 *
 *     gather   register j: 16 bytes of row 8i + 7 - j, in further lanes of rows + 128, 256, 384.
 *              Three rounds bring byte b of the eight rows into qword b; GF2P8AFFINEQB transposes
 *              its 8 x 8 bits (the data is the matrix, and its rows count from the top, hence
 *              7 - j): byte s has sample 8b + s of rows 8i .. 8i + 7.
 *     scatter  four rounds over i = 0 .. 15: sixteen finished lines.
 *
 * 64 bytes of each row at a time: rows a multiple of 512 bytes apart share few sets of the first
 * cache, where nothing would stay for a second visit (1.25 times the time at m = 4096, l = 32).
 */
#include "cpu.h"

#if defined(RB_X86_64) && defined(RB_GNU)
#include "x86.h"
#include <stdint.h>

typedef uint64_t line __attribute__((vector_size(64), may_alias));
enum { LINE_WORDS = 8 };
#define TARGET RB_TARGET("avx512f,avx512bw,gfni")

#define TERNARY(a, b, c, table) \
    ((line)_mm512_ternarylogic_epi64((__m512i)(a), (__m512i)(b), (__m512i)(c), table))
#define PARITY(a, b, c) TERNARY(a, b, c, 0x96)
#define MAJORITY(a, b, c) TERNARY(a, b, c, 0xe8)
#define TRANSPOSE

RB_INLINE TARGET void interleave(__m512i *out, const __m512i *in, int n)
{
    RB_UNROLL(8)
    for (int j = 0; j < n / 2; j++) {
        out[2 * j] = _mm512_unpacklo_epi8(in[j], in[j + n / 2]);
        out[2 * j + 1] = _mm512_unpackhi_epi8(in[j], in[j + n / 2]);
    }
}

/* Two words of a row, or only the last one. */
RB_INLINE TARGET __m128i load(const uint64_t *words, int both)
{
    return both ? _mm_loadu_si128((const __m128i *)words)
                : _mm_loadl_epi64((const __m128i *)words);
}

RB_INLINE TARGET void gather(__m512i bits[8][16], int i, const uint64_t *const *rows, int64_t w,
                             int both)
{
    const __m512i units = _mm512_set1_epi64((int64_t)0x8040201008040201);
    __m512i x[8], y[8];
    RB_UNROLL(8)
    for (int j = 0; j < 8; j++) {
        const uint64_t *const *row = rows + 8 * i + 7 - j;
        x[j] = _mm512_castsi128_si512(load(row[0] + w, both));
        x[j] = _mm512_inserti32x4(x[j], load(row[128] + w, both), 1);
        x[j] = _mm512_inserti32x4(x[j], load(row[256] + w, both), 2);
        x[j] = _mm512_inserti32x4(x[j], load(row[384] + w, both), 3);
    }
    interleave(y, x, 8);
    interleave(x, y, 8);
    interleave(y, x, 8);
    RB_UNROLL(8)
    for (int j = 0; j < 8; j++)
        bits[j][i] = _mm512_gf2p8affine_epi64_epi8(units, y[j], 0);
}

RB_INLINE TARGET void scatter(line *lines, const __m512i *bits)
{
    __m512i x[16], y[16];
    interleave(x, bits, 16);
    interleave(y, x, 16);
    interleave(x, y, 16);
    interleave(y, x, 16);
    RB_UNROLL(16)
    for (int j = 0; j < 16; j++)
        lines[j] = (line)y[j];
}

TARGET static void transpose(line *lines, const uint64_t *const *rows, int64_t start,
                             int64_t n_words)
{
    __m512i bits[4][8][16];
    for (int64_t w = start; w < start + n_words; w += 8) {
        const int n = start + n_words - w < 8 ? (int)(start + n_words - w) : 8;
        for (int i = 0; i < 16; i++) {
            for (int c = 0; c < n / 2; c++)
                gather(bits[c], i, rows, w + 2 * c, 1);
            if (n % 2)
                gather(bits[n / 2], i, rows, w + n - 1, 0);
        }
        for (int k = 0; k < 4 * n; k++, lines += 16)
            scatter(lines, bits[k / 8][k % 8]);
    }
}

#include "sliced.inc.h"

const struct sliced_kernel sliced_avx512 = {BLOCK_ROWS, scan, cpu_has_gfni, &sliced_avx2};
#endif
