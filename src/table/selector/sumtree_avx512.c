/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree kernel for AVX-512: eight descents a vector. */
#include "table/selector/sumtree_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 8
typedef __m512d vec;
typedef __mmask8 mask;
typedef __m512i counts;

/* A vector of half a line of group a (low half) and half a line of group b (high half). Joining
 * them while loading keeps the first step of the transposition off the shuffle port. */
static inline vec halves(const double *a, const double *b)
{
    return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_load_pd(a)), _mm256_load_pd(b), 1);
}

/* Transposes four vectors, which hold rows i (low half) and i + 4 (high half) of a 4 x 8
 * block. */
static inline void transpose(vec r0, vec r1, vec r2, vec r3, vec *x)
{
    vec lo01 = _mm512_unpacklo_pd(r0, r1), hi01 = _mm512_unpackhi_pd(r0, r1);
    vec lo23 = _mm512_unpacklo_pd(r2, r3), hi23 = _mm512_unpackhi_pd(r2, r3);
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);

    x[0] = _mm512_permutex2var_pd(lo01, even, lo23);
    x[1] = _mm512_permutex2var_pd(hi01, even, hi23);
    x[2] = _mm512_permutex2var_pd(lo01, odd, lo23);
    x[3] = _mm512_permutex2var_pd(hi01, odd, hi23);
}

static inline void gather(const double *children, const uint32_t *groups, vec *x)
{
    const double *r[LANES];

    for (int i = 0; i < LANES; i++) r[i] = children + (size_t)groups[i] * RP_SUMTREE_K;
    transpose(halves(r[0], r[4]), halves(r[1], r[5]), halves(r[2], r[6]), halves(r[3], r[7]),
              x);
    transpose(halves(r[0] + 4, r[4] + 4), halves(r[1] + 4, r[5] + 4),
              halves(r[2] + 4, r[6] + 4), halves(r[3] + 4, r[7] + 4), x + 4);
}
static inline vec load(const double *from)
{
    return _mm512_loadu_pd(from);
}
static inline void store(double *to, vec v)
{
    _mm512_storeu_pd(to, v);
}
static inline vec all(double x)
{
    return _mm512_set1_pd(x);
}
static inline vec add(vec a, vec b)
{
    return _mm512_add_pd(a, b);
}
static inline vec sub(vec a, vec b)
{
    return _mm512_sub_pd(a, b);
}
static inline mask at_least(vec a, vec b)
{
    return _mm512_cmp_pd_mask(a, b, _CMP_GE_OQ);
}
static inline vec pick(mask m, vec a, vec b)
{
    return _mm512_mask_blend_pd(m, b, a);
}
static inline vec below_total(vec t, vec total)
{
    __m512i bits = _mm512_sub_epi64(_mm512_castpd_si512(total), _mm512_set1_epi64(1));
    return _mm512_min_pd(t, _mm512_castsi512_pd(bits));
}
static inline counts no_counts(void)
{
    return _mm512_setzero_si512();
}
static inline counts count(counts c, mask m)
{
    return _mm512_mask_sub_epi64(c, m, c, _mm512_set1_epi64(-1));
}
static inline void spread(counts c, uint32_t *to)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi64_epi32(c));
}

/* A single descent: the running sums of one line within one vector, by the same additions. */
#define HAS_DESCEND_ONE
static inline void descend_one(const double *children, double *target, uint32_t *node)
{
    vec p = _mm512_load_pd(children + (size_t)*node * RP_SUMTREE_K), t, before;
    uint32_t past, chosen;

    p = _mm512_mask_add_pd(p, 0xaa, p, _mm512_movedup_pd(p));
    p = _mm512_mask_add_pd(p, 0xcc, p, _mm512_permutex_pd(p, 0x55));
    p = _mm512_mask_add_pd(p, 0xf0, p, _mm512_permutexvar_pd(_mm512_set1_epi64(3), p));
    t = _mm512_set1_pd(*target);
    past = _cvtmask8_u32(at_least(t, p));
    if (__builtin_expect(past == 0xff, 0)) { /* rare, so kept out of the way of the rest */
        t = below_total(t, _mm512_permutexvar_pd(_mm512_set1_epi64(7), p));
        past = _cvtmask8_u32(at_least(t, p));
    }
    chosen = (uint32_t)__builtin_popcount(past);
    before = _mm512_castsi512_pd(
        _mm512_alignr_epi64(_mm512_castpd_si512(p), _mm512_setzero_si512(), 7));
    before = _mm512_permutexvar_pd(_mm512_set1_epi64(chosen), before);
    *target = _mm512_cvtsd_f64(sub(t, before));
    *node = *node * RP_SUMTREE_K + chosen;
}

#include "table/selector/sumtree_lanes.h"

const rp_sumtree_kernel_ops rp_sumtree_avx512 = {"avx512", sum_groups, find};

#endif
