/* The sign stream: SplitMix64's output function on a counter, so a word is a function of
 * (seed, vector, word) alone.  base = mix64(seed + SIGN_GOLDEN). */
#ifndef RADABOUND_SIGN_STREAM_H
#define RADABOUND_SIGN_STREAM_H

#include <stdint.h>

#include "cpu.h"

#define SIGN_GOLDEN 0x9E3779B97F4A7C15u
#define SIGN_VECTOR_STEP ((uint64_t)1 << 40)
#define MIX_FIRST 0xBF58476D1CE4E5B9u
#define MIX_SECOND 0x94D049BB133111EBu

RB_INLINE uint64_t mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * MIX_FIRST;
    z = (z ^ (z >> 27)) * MIX_SECOND;
    return z ^ (z >> 31);
}

RB_INLINE uint64_t sign_counter(uint64_t base, int64_t vector, int64_t word)
{
    return base + SIGN_GOLDEN * ((uint64_t)vector * SIGN_VECTOR_STEP + (uint64_t)word + 1u);
}

#endif
