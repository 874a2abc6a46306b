/* SPDX-License-Identifier: Apache-2.0 */
/* FIFO and LIFO: a doubly linked list of the slots in order of insertion, picked from one end.
 * Priorities do not matter, and an update does not move a slot.
 *
 * Invariant O1: links[links[s].newer].older == s, and likewise the other way. */
#include <assert.h>

#include "table/selector/selector.h"
#include "util/mem.h"

#define NONE UINT32_MAX

typedef struct link {
    uint32_t older, newer; /* NONE at the ends */
} link;

typedef struct order {
    rp_selector base;
    link *links; /* by slot */
    size_t capacity;
    uint32_t oldest, newest;
} order;

static rp_status reserve(rp_selector *s, size_t slot_count)
{
    order *o = (order *)s;

    if (slot_count <= o->capacity) return RP_OK;
    if (!rp_grow_array(&s->alloc, &o->links, o->capacity, slot_count, sizeof *o->links))
        return RP_NO_RESOURCE;
    o->capacity = slot_count;
    return RP_OK;
}

static void insert(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    order *o = (order *)s;

    (void)values;
    for (size_t i = 0; i < count; i++) {
        assert(slots[i] < o->capacity && slots[i] != o->newest);
        o->links[slots[i]] = (link){o->newest, NONE};
        if (o->newest == NONE)
            o->oldest = slots[i];
        else
            o->links[o->newest].newer = slots[i];
        o->newest = slots[i];
    }
}

static void update(rp_selector *s, const uint32_t *slots, const double *values, size_t count)
{
    (void)s, (void)slots, (void)values, (void)count;
}

static void remove_slot(rp_selector *s, uint32_t slot)
{
    order *o = (order *)s;
    link at = o->links[slot];

    assert(at.older == NONE ? o->oldest == slot : o->links[at.older].newer == slot); /* O1 */
    assert(at.newer == NONE ? o->newest == slot : o->links[at.newer].older == slot);
    *(at.older == NONE ? &o->oldest : &o->links[at.older].newer) = at.newer;
    *(at.newer == NONE ? &o->newest : &o->links[at.newer].older) = at.older;
}

static size_t upcoming(const rp_selector *s, size_t count, uint32_t *slots)
{
    const order *o = (const order *)s;
    bool fifo = s->options.kind == RP_FIFO;
    uint32_t slot = fifo ? o->oldest : o->newest;
    size_t n = 0;

    for (; n < count && slot != NONE; n++) {
        slots[n] = slot;
        slot = fifo ? o->links[slot].newer : o->links[slot].older;
    }
    return n;
}

static size_t pick(rp_selector *s, rp_rng *rng, size_t count, bool distinct, uint32_t *slots,
                   double *probabilities)
{
    (void)rng;
    if (distinct)
        count = upcoming(s, count, slots);
    else
        for (size_t i = 0; i < count; i++) (void)upcoming(s, 1, slots + i);
    for (size_t i = 0; i < count; i++) probabilities[i] = 1;
    return count;
}

static void clear(rp_selector *s)
{
    order *o = (order *)s;

    rp_release(&s->alloc, o->links, o->capacity * sizeof *o->links);
    o->links = NULL;
    o->capacity = 0;
    o->oldest = o->newest = NONE;
}

static bool check(rp_selector *s, size_t count)
{
    const order *o = (const order *)s;
    uint32_t before = NONE;
    size_t n = 0;

    for (uint32_t slot = o->oldest; slot != NONE; slot = o->links[slot].newer, n++) {
        if (o->links[slot].older != before || n > count) return false;
        before = slot;
    }
    return n == count && o->newest == before;
}

static void free_order(rp_selector *s)
{
    rp_allocator alloc = s->alloc;

    clear(s);
    rp_release(&alloc, s, sizeof(order));
}

rp_selector *rp_selector_order_new(const rp_allocator *alloc)
{
    static const rp_selector_ops ops = {
        .reserve = reserve,
        .insert = insert,
        .update = update,
        .remove = remove_slot,
        .pick = pick,
        .upcoming = upcoming,
        .clear = clear,
        .check = check,
        .free = free_order,
    };
    order *o = rp_alloc_zero(alloc, sizeof *o);

    if (o == NULL) return NULL;
    o->base.ops = &ops;
    o->oldest = o->newest = NONE;
    return &o->base;
}
