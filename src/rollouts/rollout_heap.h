/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap, with which rollout buffers order their groups and leases. Its nodes are
 * embedded in other objects. Nodes are ordered by (key, tie), smallest first. A node stores its
 * index in the heap, so any node can be removed. Not thread-safe.
 *
 * Invariants:
 *   H1  nodes[i]->at is i + 1; `at` of a node in no heap is 0;
 *   H2  no node is ordered before its parent, nodes[(i - 1) / 2]. */
#ifndef RP_ROLLOUTS_ROLLOUT_HEAP_H
#define RP_ROLLOUTS_ROLLOUT_HEAP_H

#include "reprise/alloc.h"

typedef struct rp_rollout_node {
    size_t at; /* index in the heap plus 1; 0: in no heap (invariant H1) */
    int64_t key;
    uint64_t tie; /* orders nodes with equal keys */
} rp_rollout_node;

typedef struct rp_rollout_heap {
    rp_rollout_node **nodes;
    size_t count, capacity;
} rp_rollout_heap;

void rp_rollout_heap_deinit(rp_rollout_heap *heap, const rp_allocator *alloc);

/* Makes room for `count` nodes, including those in the heap. Returns false and changes nothing
 * if memory runs out. */
bool rp_rollout_heap_reserve(rp_rollout_heap *heap, const rp_allocator *alloc, size_t count);

/* Adds a node. The node must be in no heap, and the heap must have room. */
void rp_rollout_heap_insert(rp_rollout_heap *heap, rp_rollout_node *node);

/* Removes a node. Does nothing if the node is in no heap. */
void rp_rollout_heap_remove(rp_rollout_heap *heap, rp_rollout_node *node);

/* Changes the key of a node, and its position if it is in the heap. */
void rp_rollout_heap_set_key(rp_rollout_heap *heap, rp_rollout_node *node, int64_t key);

/* Restores invariant H2 after the keys of any nodes have changed. */
void rp_rollout_heap_rebuild(rp_rollout_heap *heap);

/* Returns the first node, or NULL if the heap is empty. */
static inline rp_rollout_node *rp_rollout_heap_first(const rp_rollout_heap *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

/* Returns true if the invariants H1 and H2 hold. */
bool rp_rollout_heap_check(const rp_rollout_heap *heap);

#endif
