/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree kernel for NEON: two descents a vector. The processor runs two vectors at a
 * time. */
#include "table/selector/sumtree_kernel.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#define LANES 2
typedef float64x2_t vec;
typedef uint64x2_t mask;
typedef uint64x2_t counts;

static inline void gather(const double *children, const uint32_t *groups, vec *x)
{
    const double *a = children + (size_t)groups[0] * RP_SUMTREE_K;
    const double *b = children + (size_t)groups[1] * RP_SUMTREE_K;

    for (int j = 0; j < RP_SUMTREE_K; j += 2) {
        vec from_a = vld1q_f64(a + j), from_b = vld1q_f64(b + j);
        x[j] = vtrn1q_f64(from_a, from_b);
        x[j + 1] = vtrn2q_f64(from_a, from_b);
    }
}
static inline vec load(const double *from)
{
    return vld1q_f64(from);
}
static inline void store(double *to, vec v)
{
    vst1q_f64(to, v);
}
static inline vec all(double x)
{
    return vdupq_n_f64(x);
}
static inline vec add(vec a, vec b)
{
    return vaddq_f64(a, b);
}
static inline vec sub(vec a, vec b)
{
    return vsubq_f64(a, b);
}
static inline mask at_least(vec a, vec b)
{
    return vcgeq_f64(a, b);
}
static inline vec pick(mask m, vec a, vec b)
{
    return vbslq_f64(m, a, b);
}
static inline vec below_total(vec t, vec total)
{
    uint64x2_t bits = vsubq_u64(vreinterpretq_u64_f64(total), vdupq_n_u64(1));
    return vminq_f64(t, vreinterpretq_f64_u64(bits));
}
static inline counts no_counts(void)
{
    return vdupq_n_u64(0);
}
static inline counts count(counts c, mask m)
{
    return vsubq_u64(c, m); /* a set lane is -1 */
}
static inline void spread(counts c, uint32_t *to)
{
    vst1_u32(to, vmovn_u64(c));
}

#include "table/selector/sumtree_lanes.h"

const rp_sumtree_kernel_ops rp_sumtree_neon = {"neon", sum_groups, find};

#endif
