/* AMX in plain C, for a CPU that has AVX-512 and no tiles: what signed_sums_amx.c takes of it.
 *
 * Included before that file, in place of the intrinsics.  Tiles are as it configures them: 16 rows
 * of 64 bytes, which are 64 unsigned bytes or 16 sums. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu.h"

static _Thread_local union {
    uint8_t bytes[16][64];
    uint32_t sums[16][16];
} emulated_tile[8];

static inline void emulated_loadd(int tile, const void *from, long stride)
{
    for (int row = 0; row < 16; row++)
        memcpy(emulated_tile[tile].bytes[row], (const char *)from + row * stride, 64);
}

static inline void emulated_stored(int tile, void *to, long stride)
{
    for (int row = 0; row < 16; row++)
        memcpy((char *)to + row * stride, emulated_tile[tile].bytes[row], 64);
}

/* Byte k of row r of a, times byte k % 4 of column n of row k / 4 of b. */
static inline void emulated_dpbuud(int sums, int a, int b)
{
    for (int r = 0; r < 16; r++)
        for (int n = 0; n < 16; n++)
            for (int k = 0; k < 64; k++)
                emulated_tile[sums].sums[r][n] += (uint32_t)emulated_tile[a].bytes[r][k] *
                                                  emulated_tile[b].bytes[k / 4][4 * n + k % 4];
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbuud
#define _tile_loadconfig(shape) ((void)(shape))
#define _tile_release() ((void)0)
#define _tile_zero(tile) memset(&emulated_tile[tile], 0, sizeof emulated_tile[tile])
#define _tile_loadd(tile, from, stride) emulated_loadd(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_stored(tile, to, stride)
#define _tile_dpbuud(sums, a, b) emulated_dpbuud(sums, a, b)
#define cpu_has_amx cpu_has_avx512
#define may_use_tiles() 1
