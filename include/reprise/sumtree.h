/* SPDX-License-Identifier: Apache-2.0 */
/* A sum tree: draws a leaf with probability weight / total, in batches, at the speed of memory.
 *
 * The tree is 8-ary; a node is one cache line of eight float64 sums (docs/sumtree.md has
 * drawings and measurements). A parent is always recomputed from its children, so the tree is a
 * pure function of its leaves: nothing drifts, and the same leaves and targets give the same
 * draws on every machine, whichever instruction set does the work.
 *
 * Writes are collected: rp_sumtree_set() stores the weights and remembers which nodes are
 * stale; the next rp_sumtree_total() or rp_sumtree_find() brings the sums up to date, each node
 * once.
 *
 * Not thread-safe: the owner serialises all calls. */
#ifndef REPRISE_SUMTREE_H
#define REPRISE_SUMTREE_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

typedef struct rp_sumtree rp_sumtree;

/* An empty tree with no leaves. RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sumtree_new(const rp_allocator *alloc, rp_sumtree **out);
RP_API void rp_sumtree_free(rp_sumtree *tree); /* NULL is fine */

/* Makes room for leaves 0 .. leaf_count - 1. New leaves weigh 0, others keep their weight;
 * never shrinks. Grow in steps: each call that grows copies the tree. On failure nothing has
 * changed.
 * RP_NO_RESOURCE (memory, or more than 2^31 leaves). */
RP_API RP_NODISCARD rp_status rp_sumtree_reserve(rp_sumtree *tree, size_t leaf_count);

/* Leaves there is room for; 0 at first. */
RP_API size_t rp_sumtree_capacity(const rp_sumtree *tree);

/* Sets the weights of `count` leaves. A leaf given twice keeps its last weight. Every leaf must
 * be below the capacity, and every weight finite and >= 0; the sum of all must stay finite. */
RP_API void rp_sumtree_set(rp_sumtree *tree, const uint32_t *leaves, const double *weights,
                           size_t count);

/* The weight of a leaf, which must be below the capacity. */
RP_API double rp_sumtree_get(const rp_sumtree *tree, uint32_t leaf);

/* The sum of all weights. */
RP_API double rp_sumtree_total(rp_sumtree *tree);

/* For each target in [0, total): the leaf on which it falls when the weights are laid end to
 * end in order of their leaves. A leaf of weight 0 is never found. The total must be > 0. */
RP_API void rp_sumtree_find(rp_sumtree *tree, const double *targets, size_t count,
                            uint32_t *leaves);

/* Sets every weight to 0. */
RP_API void rp_sumtree_clear(rp_sumtree *tree);

/* True if every sum equals that of its children and no node is marked stale without being
 * listed: for tests. */
RP_API bool rp_sumtree_check(rp_sumtree *tree);

/* Which instructions it uses: "avx512", "avx2", "neon" or "plain". Static. */
RP_API const char *rp_sumtree_kernel(const rp_sumtree *tree);

/* Makes it use the named kernel instead, so that tests and measurements can compare them.
 * RP_NOT_FOUND if this machine cannot. */
RP_API RP_NODISCARD rp_status rp_sumtree_use_kernel(rp_sumtree *tree, const char *name);

RP_END_DECLS

#endif
