/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the sum tree (reprise/sumtree.h) that are not public: for the library itself,
 * tests and benchmarks. The leaves of the tree are the weights of items, and each node is the
 * sum of its children. */
#ifndef RP_TABLE_SELECTOR_SUMTREE_H
#define RP_TABLE_SELECTOR_SUMTREE_H

#include "reprise/sumtree.h"

/* Returns the number of leaves for which the tree has room. A new tree has room for none. */
size_t rp_sumtree_capacity(const rp_sumtree *tree);

/* Sets every weight to 0. */
void rp_sumtree_clear(rp_sumtree *tree);

/* Recomputes the nodes whose leaves have changed, and then returns true if every node is the
 * sum of its children. */
bool rp_sumtree_check(rp_sumtree *tree);

/* Does the same as rp_sumtree_set() for one leaf. */
void rp_sumtree_set_one(rp_sumtree *tree, uint32_t leaf, double weight);

/* Prefetches the memory that setting these leaves will touch. */
void rp_sumtree_prefetch(const rp_sumtree *tree, const uint32_t *leaves, size_t count);

/* Returns the name of the kernel (sumtree_kernel.h) in use: its instruction set, "avx512",
 * "avx2" or "neon", or "plain". The text is static. */
const char *rp_sumtree_kernel(const rp_sumtree *tree);

/* Switches to the named kernel, for tests and benchmarks that compare kernels. Returns
 * RP_NOT_FOUND if this machine does not support the kernel. */
RP_NODISCARD rp_status rp_sumtree_use_kernel(rp_sumtree *tree, const char *name);

#endif
