/* SPDX-License-Identifier: Apache-2.0 */
/* A sum tree: draws leaves with probability weight / total, in batches.
 *
 * The tree is 8-ary; a node is one cache line of eight float64 sums (docs/sumtree.md has
 * drawings and measurements). A parent is always recomputed from its children, so the tree is a
 * pure function of its leaves: rounding errors do not accumulate, and the same leaves and
 * targets give the same draws on every machine and with every instruction set.
 *
 * Writes are batched: rp_sumtree_set() stores the weights and marks the nodes above them stale.
 * The next rp_sumtree_total() or rp_sumtree_find() recomputes each stale node once.
 *
 * Not thread-safe: the owner serialises all calls. */
#ifndef REPRISE_SUMTREE_H
#define REPRISE_SUMTREE_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef struct rp_sumtree rp_sumtree;

/* Makes a tree with no leaves. RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sumtree_new(const rp_allocator *alloc, rp_sumtree **out);
RP_API void rp_sumtree_free(rp_sumtree *tree); /* NULL is fine */

/* Makes room for leaves 0 .. leaf_count - 1. New leaves have weight 0, others keep their
 * weight; the tree never shrinks. A call that grows the tree copies it, so grow in large steps.
 * On failure nothing has changed.
 * RP_NO_RESOURCE (memory, or more than 2^31 leaves). */
RP_API RP_NODISCARD rp_status rp_sumtree_reserve(rp_sumtree *tree, size_t leaf_count);

/* Sets the weights of `count` leaves. A leaf given twice keeps its last weight. There must be
 * room for every leaf, and every weight must be finite and >= 0; the sum of all must stay
 * finite. */
RP_API void rp_sumtree_set(rp_sumtree *tree, const uint32_t *leaves, const double *weights,
                           size_t count);

/* The weight of a leaf, for which there must be room. */
RP_API double rp_sumtree_get(const rp_sumtree *tree, uint32_t leaf);

/* The sum of all weights. */
RP_API double rp_sumtree_total(rp_sumtree *tree);

/* Finds for each target in [0, total) the leaf on which it falls when the weights are laid end
 * to end, in order of their leaves. A leaf of weight 0 is never found. The total must not be
 * 0. */
RP_API void rp_sumtree_find(rp_sumtree *tree, const double *targets, size_t count,
                            uint32_t *leaves);

RP_END_DECLS

#endif
