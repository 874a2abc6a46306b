/* SPDX-License-Identifier: Apache-2.0 */
/* Two calls of the sum tree that only the prioritized selector makes. */
#ifndef RP_TABLE_SELECTOR_SUMTREE_H
#define RP_TABLE_SELECTOR_SUMTREE_H

#include "reprise/sumtree.h"

/* As rp_sumtree_set() for one leaf. */
void rp_sumtree_set_one(rp_sumtree *tree, uint32_t leaf, double weight);

/* Prefetches the memory that setting these leaves will touch. */
void rp_sumtree_prefetch(const rp_sumtree *tree, const uint32_t *leaves, size_t count);

#endif
