/* SPDX-License-Identifier: Apache-2.0 */
/* A template of the loops of a sum tree kernel (sumtree_kernel.h), written for any vector type.
 * A file that includes it must first define
 *
 *   LANES                  the number of lanes of a vector. Each lane belongs to one descent,
 *                          the search for the leaf of one draw
 *   vec, mask              a vector of float64, and the result of comparing two
 *   gather(c, g, x)        loads LANES groups of c (a group is eight children, one cache line)
 *                          and transposes them: lane i of x[j] becomes child j of group g[i]
 *   load, store, add, sub  for vectors
 *   all(x)                 x in every lane
 *   at_least(a, b)         a >= b
 *   pick(m, a, b)          a where m is set, else b
 *   below_total(t, total)  the smaller of t and the largest float64 below total (> 0)
 *   counts, no_counts()    a vector of counts, and one of zeros
 *   count(c, m)            adds one to the counts c in the lanes where m is set
 *   spread(c, n)           writes the lanes of the counts c to the uint32_t array n
 *
 * If an instruction set has a faster descend_one() than the plain C function below, the file
 * also defines that function, and HAS_DESCEND_ONE.
 *
 * Lane i of every vector belongs to descent i. Each descent is at some node. Lane i of vector j
 * has child j of the node at which descent i is. So running sums are plain additions of
 * vectors, and no instruction set needs horizontal additions.
 *
 * Each of the eight running sums needs at most three additions after one another (Sklansky's
 * network). All kernels use exactly these additions in this order, both for sums and for
 * descents, so their results agree to the last bit:
 *
 *   x0  x1  x2  x3  x4  x5  x6  x7
 *   |--a01  |--a23  |--a45  |--a67         p1 = a01, p3 = a01 + a23
 *                                          p2 = a01 + x2
 *                                          p4 = p3 + x4,  p5 = p3 + a45
 *                                          p6 = p3 + (a45 + x6),  p7 = p3 + (a45 + a67)
 *
 * Rounding is monotone, so the running sums ascend (p0 <= p1 <= ... <= p7) also in floating
 * point. A child of weight 0 leaves the running sum exactly as it was, so no target can fall on
 * that child. */
#ifndef RP_TABLE_SELECTOR_SUMTREE_LANES_H
#define RP_TABLE_SELECTOR_SUMTREE_LANES_H

#include <math.h>

#include "table/selector/sumtree_kernel.h"

static inline void sum_lanes(const double *children, const uint32_t *groups, double *sums)
{
    vec x[RP_SUMTREE_K];

    gather(children, groups, x);
    store(sums,
          add(add(add(x[0], x[1]), add(x[2], x[3])), add(add(x[4], x[5]), add(x[6], x[7]))));
}

static void sum_groups(const double *children, const uint32_t *groups, size_t n,
                       double *parents)
{
    double sums[LANES];
    uint32_t in_order[LANES];
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        const uint32_t *g = groups != NULL ? groups + i : in_order;
        if (groups == NULL)
            for (size_t j = 0; j < LANES; j++) in_order[j] = (uint32_t)(i + j);
        sum_lanes(children, g, sums);
        for (size_t j = 0; j < LANES; j++) parents[g[j]] = sums[j];
    }
    for (; i < n; i++) {
        size_t g = groups != NULL ? groups[i] : i;
        const double *x = children + g * RP_SUMTREE_K;
        parents[g] = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
    }
}

static inline void running_sums(const vec *x, vec *p)
{
    vec x45 = add(x[4], x[5]);

    p[0] = x[0];
    p[1] = add(x[0], x[1]);
    p[2] = add(p[1], x[2]);
    p[3] = add(p[1], add(x[2], x[3]));
    p[4] = add(p[3], x[4]);
    p[5] = add(p[3], x45);
    p[6] = add(p[3], add(x45, x[6]));
    p[7] = add(p[3], add(x45, add(x[6], x[7])));
}

/* Returns, for each lane, the number of the child on which the target falls. `p` has the
 * running sums of the lane's group. Writes the rest of the target within that child to
 * `left`. */
static inline counts choose(const vec *p, const double *targets, double *left)
{
    vec t = below_total(load(targets), p[7]), base = sub(p[0], p[0]);
    counts chosen = no_counts();

    for (int j = 0; j < RP_SUMTREE_K - 1; j++) {
        mask past = at_least(t, p[j]);
        base = pick(past, p[j], base);
        chosen = count(chosen, past);
    }
    store(left, sub(t, base));
    return chosen;
}

static inline void descend_lanes(const double *children, double *targets, uint32_t *nodes)
{
    vec x[RP_SUMTREE_K], p[RP_SUMTREE_K];
    uint32_t step[LANES];

    gather(children, nodes, x);
    running_sums(x, p);
    spread(choose(p, targets, targets), step);
    for (size_t j = 0; j < LANES; j++) nodes[j] = nodes[j] * RP_SUMTREE_K + step[j];
}

#ifndef HAS_DESCEND_ONE
/* One step of a single descent. Used for the last descents of a batch, if they do not fill a
 * vector. */
static inline void descend_one(const double *children, double *target, uint32_t *node)
{
    const double *x = children + (size_t)*node * RP_SUMTREE_K;
    double p[RP_SUMTREE_K], t = *target, base = 0;
    uint32_t chosen = 0;

    p[0] = x[0];
    p[1] = x[0] + x[1];
    p[2] = p[1] + x[2];
    p[3] = p[1] + (x[2] + x[3]);
    p[4] = p[3] + x[4];
    p[5] = p[3] + (x[4] + x[5]);
    p[6] = p[3] + ((x[4] + x[5]) + x[6]);
    p[7] = p[3] + ((x[4] + x[5]) + (x[6] + x[7]));
    if (__builtin_expect(t >= p[7], 0)) t = nextafter(p[7], 0);
    for (int j = 0; j < RP_SUMTREE_K - 1; j++) chosen += t >= p[j];
    if (chosen > 0) base = p[chosen - 1];
    *target = t - base;
    *node = *node * RP_SUMTREE_K + chosen;
}
#endif

static inline void prefetch_groups(const double *children, const uint32_t *groups, size_t n)
{
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(children + (size_t)groups[i] * RP_SUMTREE_K);
}

/* The first step of all descents. All of them read the one cache line of the top level. */
static inline void enter(const double *top, const double *targets, double *left,
                         uint32_t *nodes, size_t n, const double *below)
{
    vec x[RP_SUMTREE_K], p[RP_SUMTREE_K];
    size_t i = 0;

    for (int j = 0; j < RP_SUMTREE_K; j++) x[j] = all(top[j]);
    running_sums(x, p);
    for (; i + LANES <= n; i += LANES) {
        spread(choose(p, targets + i, left + i), nodes + i);
        prefetch_groups(below, nodes + i, LANES);
    }
    for (; i < n; i++) {
        left[i] = targets[i];
        nodes[i] = 0;
        descend_one(top, left + i, nodes + i);
        prefetch_groups(below, nodes + i, 1);
    }
}

/* One step of all descents. `below` is the level that the next step reads, or NULL. */
static inline void descend(const double *children, double *targets, uint32_t *nodes, size_t n,
                           const double *below)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        descend_lanes(children, targets + i, nodes + i);
        if (below != NULL) prefetch_groups(below, nodes + i, LANES);
    }
    for (; i < n; i++) {
        descend_one(children, targets + i, nodes + i);
        if (below != NULL) prefetch_groups(below, nodes + i, 1);
    }
}

/* The top levels. On these, find_one() prefetches nothing, since the level below is small
 * enough for the caches: the fifth level has at most 256 KiB. */
enum { NEAR_LEVELS = 4 };

/* Runs one descent alone. Each step waits for the previous one, so the state is kept in
 * registers to make a step short. */
static uint32_t find_one(double *const *levels, int level_count, double target)
{
    uint32_t node = 0;

    for (int level = level_count - 1; level >= 0; level--) {
        /* The next step reads one of eight adjacent lines. Below the top levels, prefetch all
         * eight while the current line is being loaded. */
        if (level >= 1 && level_count - level > NEAR_LEVELS)
            for (size_t j = 0; j < RP_SUMTREE_K; j++)
                __builtin_prefetch(levels[level - 1] +
                                   ((size_t)node * RP_SUMTREE_K + j) * RP_SUMTREE_K);
        descend_one(levels[level], &target, &node);
    }
    return node;
}

static void find(double *const *levels, int level_count, const double *targets,
                 uint32_t *leaves, size_t n)
{
    double left[RP_SUMTREE_IN_FLIGHT];
    int level = level_count - 1;

    if (n == 1) {
        leaves[0] = find_one(levels, level_count, targets[0]);
        return;
    }
    enter(levels[level], targets, left, leaves, n, levels[level - 1]);
    for (level--; level > 0; level--)
        descend(levels[level], left, leaves, n, levels[level - 1]);
    descend(levels[0], left, leaves, n, NULL);
}

#endif
