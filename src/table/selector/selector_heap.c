/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: the lowest or the highest priority first.
 *
 * A binary heap of (value, turn, slot) with a back-index from slot to node. The value is the
 * priority, negated for a max heap. Every insert and update gets the next turn; among equal
 * values the smallest turn, the least recently set, comes first.
 *
 * Invariants:
 *   H1  no node comes before its parent;
 *   H2  places[nodes[i].slot] == i. */
#include <assert.h>

#include "table/selector/selector.h"
#include "util/mem.h"

typedef struct node {
    double value;
    uint64_t turn;
    uint32_t slot;
} node;

typedef struct heap {
    rp_selector base;
    node *nodes;
    uint32_t *places; /* by slot */
    size_t count;
    size_t capacity, place_capacity; /* of the two arrays, as in a dense set */
    uint64_t turns;                  /* never decreases, not even when cleared */
} heap;

static bool before(const node *a, const node *b)
{
    if (a->value != b->value) return a->value < b->value;
    return a->turn < b->turn;
}

static rp_status reserve(rp_selector *s, size_t slot_count)
{
    heap *h = (heap *)s;

    if (slot_count > h->place_capacity) {
        if (!rp_grow_array(&s->alloc, &h->places, h->place_capacity, slot_count,
                           sizeof *h->places))
            return RP_NO_RESOURCE;
        h->place_capacity = slot_count;
    }
    if (slot_count > h->capacity) {
        if (!rp_grow_array(&s->alloc, &h->nodes, h->capacity, slot_count, sizeof *h->nodes))
            return RP_NO_RESOURCE;
        h->capacity = slot_count;
    }
    return RP_OK;
}

static void put(heap *h, size_t at, node n)
{
    assert(at < h->capacity && n.slot < h->place_capacity);
    h->nodes[at] = n;
    h->places[n.slot] = (uint32_t)at;
}

static void sift_up(heap *h, size_t at, node n)
{
    for (; at > 0 && before(&n, &h->nodes[(at - 1) / 2]); at = (at - 1) / 2)
        put(h, at, h->nodes[(at - 1) / 2]);
    put(h, at, n);
}

/* Puts `n` at `at` and moves it down or up to restore H1. */
static void settle(heap *h, size_t at, node n)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && before(&h->nodes[child + 1], &h->nodes[child])) child++;
        if (!before(&h->nodes[child], &n)) break;
        put(h, at, h->nodes[child]);
        at = child;
    }
    sift_up(h, at, n);
}

static node make_node(heap *h, uint32_t slot, double value)
{
    bool max = h->base.options.kind == RP_MAX_HEAP;
    return (node){max ? -value : value, h->turns++, slot};
}

static void insert(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    heap *h = (heap *)s;

    for (size_t i = 0; i < count; i++) {
        assert(h->count < h->capacity);
        h->count++;
        sift_up(h, h->count - 1, make_node(h, slots[i], values[i]));
    }
}

static void update(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    heap *h = (heap *)s;

    for (size_t i = 0; i < count; i++) {
        assert(h->nodes[h->places[slots[i]]].slot == slots[i]); /* H2 */
        settle(h, h->places[slots[i]], make_node(h, slots[i], values[i]));
    }
}

static void remove_slot(rp_selector *s, uint32_t slot)
{
    heap *h = (heap *)s;
    size_t at = h->places[slot];
    node last = h->nodes[h->count - 1];

    assert(at < h->count && h->nodes[at].slot == slot); /* H2 */
    h->count--;
    if (last.slot != slot) settle(h, at, last);
}

/* Picks the first `count` slots in order: removes them one by one and puts them back with their
 * turns. */
static size_t pick_distinct(heap *h, size_t count, uint32_t *slots)
{
    size_t n = 0;

    /* Removed nodes are stored after the end of the heap, which does not grow meanwhile. */
    for (; n < count && h->count > 0; n++) {
        node first = h->nodes[0];
        slots[n] = first.slot;
        remove_slot(&h->base, first.slot);
        h->nodes[h->count] = first;
    }
    for (size_t i = 0; i < n; i++) {
        node back = h->nodes[h->count];
        h->count++;
        sift_up(h, h->count - 1, back);
    }
    return n;
}

static size_t pick(rp_selector *s, rp_rng *rng, size_t count, bool distinct, uint32_t *slots,
                   double *probabilities)
{
    heap *h = (heap *)s;

    (void)rng;
    if (distinct)
        count = pick_distinct(h, count, slots);
    else
        for (size_t i = 0; i < count; i++) slots[i] = h->nodes[0].slot;
    for (size_t i = 0; i < count; i++) probabilities[i] = 1;
    return count;
}

static void clear(rp_selector *s)
{
    heap *h = (heap *)s;

    rp_release(&s->alloc, h->nodes, h->capacity * sizeof *h->nodes);
    rp_release(&s->alloc, h->places, h->place_capacity * sizeof *h->places);
    h->nodes = NULL;
    h->places = NULL;
    h->count = h->capacity = h->place_capacity = 0;
}

static bool check(rp_selector *s, size_t count)
{
    const heap *h = (const heap *)s;

    for (size_t i = 0; i < h->count; i++) {
        if (h->places[h->nodes[i].slot] != i) return false;
        if (i > 0 && before(&h->nodes[i], &h->nodes[(i - 1) / 2])) return false;
    }
    return h->count == count;
}

static void free_heap(rp_selector *s)
{
    rp_allocator alloc = s->alloc;

    clear(s);
    rp_release(&alloc, s, sizeof(heap));
}

rp_selector *rp_selector_heap_new(const rp_allocator *alloc)
{
    static const rp_selector_ops ops = {
        .reserve = reserve,
        .insert = insert,
        .update = update,
        .remove = remove_slot,
        .pick = pick,
        .clear = clear,
        .check = check,
        .free = free_heap,
    };
    heap *h = rp_alloc_zero(alloc, sizeof *h);

    if (h == NULL) return NULL;
    h->base.ops = &ops;
    return &h->base;
}
