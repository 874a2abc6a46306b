/* SPDX-License-Identifier: Apache-2.0 */
/* The sum tree kernel in plain C: one lane. It works everywhere, and tests compare the other
 * kernels with it. */
#include <string.h>

#include "table/selector/sumtree_kernel.h"

#define LANES 1
typedef double vec;
typedef int mask;
typedef uint32_t counts;

static inline void gather(const double *children, const uint32_t *groups, vec *x)
{
    memcpy(x, children + (size_t)groups[0] * RP_SUMTREE_K, RP_SUMTREE_K * sizeof *x);
}
static inline vec load(const double *from)
{
    return *from;
}
static inline void store(double *to, vec v)
{
    *to = v;
}
static inline vec all(double x)
{
    return x;
}
static inline vec add(vec a, vec b)
{
    return a + b;
}
static inline vec sub(vec a, vec b)
{
    return a - b;
}
static inline mask at_least(vec a, vec b)
{
    return a >= b;
}
static inline vec pick(mask m, vec a, vec b)
{
    return m ? a : b;
}
static inline vec below_total(vec t, vec total)
{
    uint64_t bits;
    memcpy(&bits, &total, sizeof bits);
    bits--; /* the next float64 towards zero, total being positive */
    memcpy(&total, &bits, sizeof bits);
    return t < total ? t : total;
}
static inline counts no_counts(void)
{
    return 0;
}
static inline counts count(counts c, mask m)
{
    return c + (uint32_t)m;
}
static inline void spread(counts c, uint32_t *to)
{
    *to = c;
}

#include "table/selector/sumtree_lanes.h"

const rp_sumtree_kernel_ops rp_sumtree_plain = {"plain", sum_groups, find};
