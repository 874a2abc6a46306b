/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product for AVX2 with FMA: tiles of 6 x 16 in 12 registers. */
#include "nn/gemm.h"

#if defined(RP_GEMM_X86)

#include <immintrin.h>

#define LANES 8
#define MOST_ROWS 6
#define MOST_VECS 2
#define ROW_VECS 8
typedef __m256 vec;
typedef __m256i mask;

/* Holds x in a register, where the compiler would load it for each use. */
#define keep(x) __asm__("" : "+x"(x))

static inline mask mask_of(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec load(const float *from)
{
    return _mm256_loadu_ps(from);
}
static inline vec load_some(const float *from, mask some)
{
    return _mm256_maskload_ps(from, some);
}
static inline void store(float *to, vec x)
{
    _mm256_storeu_ps(to, x);
}
static inline void store_some(float *to, mask some, vec x)
{
    _mm256_maskstore_ps(to, some, x);
}
static inline vec spread(float x)
{
    return _mm256_set1_ps(x);
}
static inline vec fused(vec a, vec b, vec sum)
{
    return _mm256_fmadd_ps(a, b, sum);
}
static inline vec add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
static inline vec zero(void)
{
    return _mm256_setzero_ps();
}
/* max(0, x) in this order keeps a NaN of x, as PyTorch does. */
static inline vec positive(vec x)
{
    return _mm256_max_ps(_mm256_setzero_ps(), x);
}

static inline __m128 half_sum(vec x)
{
    return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}
static inline vec sum_lanes(vec p, vec q, vec r, vec s)
{
    __m128 a = half_sum(p), b = half_sum(q), c = half_sum(r), d = half_sum(s);
    __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b));
    __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c, d), _mm_unpackhi_ps(c, d));

    return _mm256_castps128_ps256(_mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)));
}

/* Transposes a block of 8 x 8: first within blocks of 4 x 4, then the blocks. */
static inline void turn(const float *from, size_t from_row, float *to, size_t to_row)
{
    vec r[8], t[8];

    for (size_t i = 0; i < 8; i++) r[i] = load(from + i * from_row);
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (size_t c = 0; c < 4; c++) {
        store(to + c * to_row, _mm256_permute2f128_ps(r[c], r[c + 4], 0x20));
        store(to + (c + 4) * to_row, _mm256_permute2f128_ps(r[c], r[c + 4], 0x31));
    }
}

#include "nn/gemm_lanes.h"

const rp_gemm_ops rp_gemm_avx2 = {.name = "avx2", .run = run};

#endif
