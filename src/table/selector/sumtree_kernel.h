/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel: the two inner loops of the sum tree (reprise/sumtree.h), with one implementation
 * for each instruction set. The leaves of the tree are weights, and each node is the sum of its
 * children. `sum` computes nodes from their children. `find` finds the leaves of a batch of
 * draws.
 *
 * A group is the eight children of one node: eight float64 on one cache line. */
#ifndef RP_TABLE_SELECTOR_SUMTREE_KERNEL_H
#define RP_TABLE_SELECTOR_SUMTREE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

enum {
    RP_SUMTREE_K = 8,
    RP_SUMTREE_IN_FLIGHT = 64, /* the most descents that run together. A descent is the search
                                  for the leaf of one draw, from the root down */
};

typedef struct rp_sumtree_kernel_ops {
    const char *name;

    /* Sets parents[g] to the sum of the eight children of group g of `children`, for each g in
     * the list `groups`. If `groups` is NULL, computes the sums of the first `count` groups. */
    void (*sum)(const double *children, const uint32_t *groups, size_t count, double *parents);

    /* Runs `n` <= RP_SUMTREE_IN_FLIGHT descents from the only group of the top level down to
     * the leaves. Each targets[i] is >= 0 and below the sum of all leaves. Sets leaves[i] to
     * the first leaf for which the sum of the leaves up to and including this leaf exceeds
     * targets[i]. There are at least two levels. */
    void (*find)(double *const *levels, int level_count, const double *targets,
                 uint32_t *leaves, size_t n);
} rp_sumtree_kernel_ops;

extern const rp_sumtree_kernel_ops rp_sumtree_plain;
#if defined(__x86_64__)
extern const rp_sumtree_kernel_ops rp_sumtree_avx2;
extern const rp_sumtree_kernel_ops rp_sumtree_avx512;
#elif defined(__aarch64__)
extern const rp_sumtree_kernel_ops rp_sumtree_neon;
#endif

#endif
