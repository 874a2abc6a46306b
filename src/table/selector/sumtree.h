/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the sum tree for the prioritized selector, and for tests and benchmarks. */
#ifndef RP_TABLE_SELECTOR_SUMTREE_H
#define RP_TABLE_SELECTOR_SUMTREE_H

#include "reprise/sumtree.h"

/* As rp_sumtree_set() for one leaf. */
void rp_sumtree_set_one(rp_sumtree *tree, uint32_t leaf, double weight);

/* Prefetches the memory that setting these leaves will touch. */
void rp_sumtree_prefetch(const rp_sumtree *tree, const uint32_t *leaves, size_t count);

/* The instruction set in use: "avx512", "avx2", "neon" or "plain". Static. */
const char *rp_sumtree_kernel(const rp_sumtree *tree);

/* Switches to the named kernel, for tests and benchmarks that compare kernels. RP_NOT_FOUND if
 * this machine does not support it. */
RP_NODISCARD rp_status rp_sumtree_use_kernel(rp_sumtree *tree, const char *name);

#endif
