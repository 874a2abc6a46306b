/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree kernel for AVX2: four descents a vector. */
#include "table/selector/sumtree_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 4
typedef __m256d vec;
typedef __m256d mask;
typedef __m256i counts;

/* Transposes four half lines. */
static inline void transpose(const double *r0, const double *r1, const double *r2,
                             const double *r3, vec *x)
{
    vec a = _mm256_load_pd(r0), b = _mm256_load_pd(r1);
    vec c = _mm256_load_pd(r2), d = _mm256_load_pd(r3);
    vec lo01 = _mm256_unpacklo_pd(a, b), hi01 = _mm256_unpackhi_pd(a, b);
    vec lo23 = _mm256_unpacklo_pd(c, d), hi23 = _mm256_unpackhi_pd(c, d);

    x[0] = _mm256_permute2f128_pd(lo01, lo23, 0x20);
    x[1] = _mm256_permute2f128_pd(hi01, hi23, 0x20);
    x[2] = _mm256_permute2f128_pd(lo01, lo23, 0x31);
    x[3] = _mm256_permute2f128_pd(hi01, hi23, 0x31);
}

static inline void gather(const double *children, const uint32_t *groups, vec *x)
{
    const double *r[LANES];

    for (int i = 0; i < LANES; i++) r[i] = children + (size_t)groups[i] * RP_SUMTREE_K;
    transpose(r[0], r[1], r[2], r[3], x);
    transpose(r[0] + 4, r[1] + 4, r[2] + 4, r[3] + 4, x + 4);
}
static inline vec load(const double *from)
{
    return _mm256_loadu_pd(from);
}
static inline void store(double *to, vec v)
{
    _mm256_storeu_pd(to, v);
}
static inline vec all(double x)
{
    return _mm256_set1_pd(x);
}
static inline vec add(vec a, vec b)
{
    return _mm256_add_pd(a, b);
}
static inline vec sub(vec a, vec b)
{
    return _mm256_sub_pd(a, b);
}
static inline mask at_least(vec a, vec b)
{
    return _mm256_cmp_pd(a, b, _CMP_GE_OQ);
}
static inline vec pick(mask m, vec a, vec b)
{
    return _mm256_blendv_pd(b, a, m);
}
static inline vec below_total(vec t, vec total)
{
    __m256i bits = _mm256_sub_epi64(_mm256_castpd_si256(total), _mm256_set1_epi64x(1));
    return _mm256_min_pd(t, _mm256_castsi256_pd(bits));
}
static inline counts no_counts(void)
{
    return _mm256_setzero_si256();
}
static inline counts count(counts c, mask m)
{
    return _mm256_sub_epi64(c, _mm256_castpd_si256(m)); /* a set lane is -1 */
}
static inline void spread(counts c, uint32_t *to)
{
    const __m256i low_words = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    __m256i packed = _mm256_permutevar8x32_epi32(c, low_words);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(packed));
}

#include "table/selector/sumtree_lanes.h"

const rp_sumtree_kernel_ops rp_sumtree_avx2 = {"avx2", sum_groups, find};

#endif
