/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product for AVX-512: tiles of 6 x 64 in 24 registers. */
#include "nn/gemm.h"

#if defined(RP_GEMM_X86)

#include <immintrin.h>

#define LANES 16
#define MOST_ROWS 6
#define MOST_VECS 4
#define ROW_VECS 16
typedef __m512 vec;
typedef __mmask16 mask;

/* Holds x in a register, where the compiler would load it for each use. */
#define keep(x) __asm__("" : "+v"(x))

static inline mask mask_of(size_t n)
{
    return (mask)((1u << n) - 1);
}
static inline vec load(const float *from)
{
    return _mm512_loadu_ps(from);
}
static inline vec load_some(const float *from, mask some)
{
    return _mm512_maskz_loadu_ps(some, from);
}
static inline void store(float *to, vec x)
{
    _mm512_storeu_ps(to, x);
}
static inline void store_some(float *to, mask some, vec x)
{
    _mm512_mask_storeu_ps(to, some, x);
}
static inline vec spread(float x)
{
    return _mm512_set1_ps(x);
}
static inline vec fused(vec a, vec b, vec sum)
{
    return _mm512_fmadd_ps(a, b, sum);
}
static inline vec add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
static inline vec zero(void)
{
    return _mm512_setzero_ps();
}
/* max(0, x) in this order keeps a NaN of x, as PyTorch does. */
static inline vec positive(vec x)
{
    return _mm512_max_ps(_mm512_setzero_ps(), x);
}

/* Adds the upper to the lower half, of a and of b. */
static inline vec add_halves(vec a, vec b)
{
    return add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}
static inline vec sum_lanes(vec p, vec q, vec r, vec s)
{
    vec ab = add_halves(p, q), cd = add_halves(r, s);
    vec all = add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));

    all = add(all, _mm512_permute_ps(all, 0x4e));
    all = add(all, _mm512_permute_ps(all, 0xb1));
    return _mm512_maskz_compress_ps(0x1111, all);
}

/* Transposes a block of 16 x 16: first within blocks of 4 x 4, then the blocks. */
static inline void turn(const float *from, size_t from_row, float *to, size_t to_row)
{
    vec r[16], t[16];

    for (size_t i = 0; i < 16; i++) r[i] = load(from + i * from_row);
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        __m512d c = _mm512_castps_pd(t[i + 2]), d = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    for (size_t c = 0; c < 4; c++) {
        vec even_low = _mm512_shuffle_f32x4(r[c], r[c + 4], 0x88);
        vec even_high = _mm512_shuffle_f32x4(r[c + 8], r[c + 12], 0x88);
        vec odd_low = _mm512_shuffle_f32x4(r[c], r[c + 4], 0xdd);
        vec odd_high = _mm512_shuffle_f32x4(r[c + 8], r[c + 12], 0xdd);
        store(to + c * to_row, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
        store(to + (c + 4) * to_row, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
        store(to + (c + 8) * to_row, _mm512_shuffle_f32x4(even_low, even_high, 0xdd));
        store(to + (c + 12) * to_row, _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
    }
}

#include "nn/gemm_lanes.h"

const rp_gemm_ops rp_gemm_avx512 = {.name = "avx512", .run = run};

#endif
