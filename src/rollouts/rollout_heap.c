/* SPDX-License-Identifier: Apache-2.0 */
#include "rollouts/rollout_heap.h"

#include <assert.h>

#include "util/mem.h"

enum { FIRST_CAPACITY = 16 };

static bool precedes(const rp_rollout_node *a, const rp_rollout_node *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void place(rp_rollout_heap *heap, size_t index, rp_rollout_node *node)
{
    heap->nodes[index] = node;
    node->at = index + 1; /* H1 */
}

static void sift_up(rp_rollout_heap *heap, size_t index, rp_rollout_node *node)
{
    while (index > 0 && precedes(node, heap->nodes[(index - 1) / 2])) {
        place(heap, index, heap->nodes[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    place(heap, index, node);
}

static void sift_down(rp_rollout_heap *heap, size_t index, rp_rollout_node *node)
{
    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= heap->count) break;
        if (child + 1 < heap->count && precedes(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!precedes(heap->nodes[child], node)) break;
        place(heap, index, heap->nodes[child]);
        index = child;
    }
    place(heap, index, node);
}

/* Moves the node at `index`, whose key may be wrong there, to its place. */
static void settle(rp_rollout_heap *heap, size_t index, rp_rollout_node *node)
{
    if (index > 0 && precedes(node, heap->nodes[(index - 1) / 2]))
        sift_up(heap, index, node);
    else
        sift_down(heap, index, node);
}

void rp_rollout_heap_deinit(rp_rollout_heap *heap, const rp_allocator *alloc)
{
    rp_release(alloc, heap->nodes, heap->capacity * sizeof(rp_rollout_node *));
    *heap = (rp_rollout_heap){0};
}

bool rp_rollout_heap_reserve(rp_rollout_heap *heap, const rp_allocator *alloc, size_t count)
{
    size_t capacity = heap->capacity;

    assert(heap->count <= heap->capacity);
    if (count <= capacity) return true;
    if (capacity == 0) capacity = FIRST_CAPACITY;
    while (capacity < count) capacity *= 2;
    if (!rp_resize_array(alloc, &heap->nodes, heap->capacity, capacity,
                         sizeof(rp_rollout_node *)))
        return false;
    heap->capacity = capacity;
    return true;
}

void rp_rollout_heap_insert(rp_rollout_heap *heap, rp_rollout_node *node)
{
    assert(node->at == 0 && heap->count < heap->capacity);
    heap->count++;
    sift_up(heap, heap->count - 1, node);
}

void rp_rollout_heap_remove(rp_rollout_heap *heap, rp_rollout_node *node)
{
    size_t index = node->at;
    rp_rollout_node *last;

    if (index-- == 0) return;
    assert(index < heap->count && heap->nodes[index] == node);
    node->at = 0;
    last = heap->nodes[--heap->count];
    if (last != node) settle(heap, index, last);
}

void rp_rollout_heap_set_key(rp_rollout_heap *heap, rp_rollout_node *node, int64_t key)
{
    assert(node->at <= heap->count);
    node->key = key;
    if (node->at > 0) settle(heap, node->at - 1, node);
}

void rp_rollout_heap_rebuild(rp_rollout_heap *heap)
{
    for (size_t i = heap->count / 2; i-- > 0;) sift_down(heap, i, heap->nodes[i]);
}

bool rp_rollout_heap_check(const rp_rollout_heap *heap)
{
    if (heap->count > heap->capacity) return false;
    for (size_t i = 0; i < heap->count; i++) {
        if (heap->nodes[i]->at != i + 1) return false;
        if (i > 0 && precedes(heap->nodes[i], heap->nodes[(i - 1) / 2])) return false;
    }
    return true;
}
