/* SPDX-License-Identifier: Apache-2.0 */
/* A sum tree: draws leaves, each with the probability weight / sum of all weights, in batches.
 *
 * The tree is 8-ary. A node is one cache line of eight float64 sums (docs/sumtree.md has
 * drawings and measurements). A parent is always recomputed from its children, so all sums
 * depend only on the present weights of the leaves, and rounding errors do not accumulate. A
 * draw is a lookup of a target, which is a number between 0 and the sum of all weights
 * (rp_sumtree_find()). The same weights and targets give the same leaves on every machine and
 * with every instruction set.
 *
 * Writes are batched: rp_sumtree_set() stores the weights of leaves and marks the nodes above
 * these leaves stale. The next rp_sumtree_total() or rp_sumtree_find() recomputes each stale
 * node once.
 *
 * Not thread-safe: the owner must serialise all calls. */
#ifndef REPRISE_SUMTREE_H
#define REPRISE_SUMTREE_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef struct rp_sumtree rp_sumtree;

/* Makes a tree with no leaves. Errors: RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sumtree_new(const rp_allocator *alloc, rp_sumtree **out);
RP_API void rp_sumtree_free(rp_sumtree *tree); /* NULL is fine */

/* Makes room for the leaves 0 .. leaf_count - 1. New leaves have weight 0. Existing leaves keep
 * their weights. The tree never shrinks. A call that grows the tree copies the tree, so the
 * caller should grow it in large steps. If the call fails, nothing has changed.
 * Errors: RP_NO_RESOURCE (no memory, or more than 2^31 leaves). */
RP_API RP_NODISCARD rp_status rp_sumtree_reserve(rp_sumtree *tree, size_t leaf_count);

/* Sets the weights of `count` leaves. If a leaf is given twice, it gets the last weight. Every
 * leaf must be below the leaf_count of rp_sumtree_reserve(). Every weight must be finite and >=
 * 0, and the sum of all weights in the tree must stay finite. */
RP_API void rp_sumtree_set(rp_sumtree *tree, const uint32_t *leaves, const double *weights,
                           size_t count);

/* Returns the weight of a leaf, which must be below the leaf_count of rp_sumtree_reserve(). */
RP_API double rp_sumtree_get(const rp_sumtree *tree, uint32_t leaf);

/* Returns the sum of all weights. */
RP_API double rp_sumtree_total(rp_sumtree *tree);

/* For each target, finds the first leaf for which the sum of its own weight and the weights of
 * all leaves before it exceeds the target. Targets must be in [0, rp_sumtree_total()), so the
 * total must not be 0. A leaf of weight 0 is never found. */
RP_API void rp_sumtree_find(rp_sumtree *tree, const double *targets, size_t count,
                            uint32_t *leaves);

RP_END_DECLS

#endif
