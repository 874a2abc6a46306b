/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of nodes that are embedded in other objects. A node knows its place, so any
 * node can be removed. Nodes are in ascending order of (key, tie). A plain value, not
 * thread-safe.
 *
 * Invariants:
 *   H1  nodes[i]->at is i + 1; a node in no heap has at 0;
 *   H2  no node precedes its parent, nodes[(i - 1) / 2]. */
#ifndef RP_ROLLOUTS_ROLLOUT_HEAP_H
#define RP_ROLLOUTS_ROLLOUT_HEAP_H

#include "reprise/alloc.h"

typedef struct rp_rollout_node {
    size_t at; /* H1 */
    int64_t key;
    uint64_t tie;
} rp_rollout_node;

typedef struct rp_rollout_heap {
    rp_rollout_node **nodes;
    size_t count, capacity;
} rp_rollout_heap;

void rp_rollout_heap_deinit(rp_rollout_heap *heap, const rp_allocator *alloc);

/* Makes room for `count` nodes in all. False, with nothing changed, if there is no memory. */
bool rp_rollout_heap_reserve(rp_rollout_heap *heap, const rp_allocator *alloc, size_t count);

/* Adds a node that is in no heap; there must be room. */
void rp_rollout_heap_insert(rp_rollout_heap *heap, rp_rollout_node *node);

/* Removes a node; does nothing if it is in no heap. */
void rp_rollout_heap_remove(rp_rollout_heap *heap, rp_rollout_node *node);

/* Changes the key of a node, which may be in no heap. */
void rp_rollout_heap_set_key(rp_rollout_heap *heap, rp_rollout_node *node, int64_t key);

/* Restores H2 after the keys of any nodes have changed. */
void rp_rollout_heap_rebuild(rp_rollout_heap *heap);

/* The first node. NULL if there is none. */
static inline rp_rollout_node *rp_rollout_heap_first(const rp_rollout_heap *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

/* True if H1 and H2 hold. */
bool rp_rollout_heap_check(const rp_rollout_heap *heap);

#endif
