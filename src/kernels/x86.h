/* The intrinsics of x86-64, all of them. */
#ifndef RADABOUND_X86_H
#define RADABOUND_X86_H

#include <immintrin.h>

/* Clang in the manner of MSVC leaves out of immintrin.h what the command line does not allow: but
 * here the function says what it may use. */
#if defined(__clang__) && defined(_MSC_VER)
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <avx512fintrin.h>
#include <avx512vlintrin.h>
#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vlbwintrin.h>
#include <avx512vldqintrin.h>
#include <avx512vbmiintrin.h>
#include <avx512vpopcntdqintrin.h>
#include <avx512vpopcntdqvlintrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#include <popcntintrin.h>
#endif

#endif
