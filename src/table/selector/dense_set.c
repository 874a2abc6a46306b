/* SPDX-License-Identifier: Apache-2.0 */
#include "table/selector/dense_set.h"

#include <assert.h>

#include "util/mem.h"

/* The arrays are not zeroed, so that a nearly empty set does not populate their pages. The
 * whole array of slots is kept, as an open cut may read beyond the present count. */
rp_status rp_dense_set_reserve(rp_dense_set *d, const rp_allocator *alloc, size_t slot_count)
{
    if (slot_count > d->place_capacity) {
        if (!rp_grow_array(alloc, &d->places, d->place_capacity, slot_count, sizeof *d->places))
            return RP_NO_RESOURCE;
        d->place_capacity = slot_count;
    }
    if (slot_count > d->capacity) {
        if (!rp_grow_array(alloc, &d->slots, d->capacity, slot_count, sizeof *d->slots))
            return RP_NO_RESOURCE;
        d->capacity = slot_count;
    }
    return RP_OK;
}

void rp_dense_set_deinit(rp_dense_set *d, const rp_allocator *alloc)
{
    rp_release(alloc, d->slots, d->capacity * sizeof *d->slots);
    rp_release(alloc, d->places, d->place_capacity * sizeof *d->places);
    *d = (rp_dense_set){0};
}

void rp_dense_set_clear(rp_dense_set *d, const rp_allocator *alloc)
{
    if (d->cut == NULL) rp_dense_set_deinit(d, alloc);
    d->count = 0;
}

/* Saves the block of an index that is about to be written (D1). */
static void save(const rp_dense_set *d, size_t place)
{
    rp_dense_cut *cut = d->cut;
    size_t block = place / RP_DENSE_BLOCK, first = block * RP_DENSE_BLOCK;
    size_t left;

    if (place >= cut->count) return;
    if (atomic_load_explicit(&cut->saved[block], memory_order_relaxed) != 0) return;
    left = cut->count - first;
    memcpy(cut->copies + first, d->slots + first,
           (left < RP_DENSE_BLOCK ? left : RP_DENSE_BLOCK) * sizeof *d->slots);
    /* Releases the copy to a reader that has no lock. */
    atomic_store_explicit(&cut->saved[block], 1, memory_order_release);
}

static inline void set_place(rp_dense_set *d, size_t place, uint32_t slot)
{
    assert(place < d->capacity && slot < d->place_capacity);
    if (d->cut != NULL) save(d, place);
    d->slots[place] = slot;
    d->places[slot] = (uint32_t)place;
}

void rp_dense_set_add(rp_dense_set *d, uint32_t slot)
{
    assert(d->count < d->capacity);
    set_place(d, d->count++, slot);
}

void rp_dense_set_remove(rp_dense_set *d, uint32_t slot)
{
    uint32_t place = d->places[slot], last = d->slots[d->count - 1];

    assert(place < d->count && d->slots[place] == slot); /* D2 */
    d->count--;
    set_place(d, place, last);
}

/* Exchanges two slots of the array. */
static void exchange(rp_dense_set *d, size_t a, size_t b)
{
    uint32_t slot = d->slots[a];

    set_place(d, a, d->slots[b]);
    set_place(d, b, slot);
}

size_t rp_dense_set_pick(rp_dense_set *d, rp_rng *rng, size_t count, bool distinct,
                         uint32_t *slots, double *probabilities)
{
    assert(d->count > 0);
    if (distinct && count > d->count) count = d->count;
    for (size_t i = 0; i < count; i++) {
        size_t left = distinct ? d->count - i : d->count; /* picked slots move to the end */
        size_t place = rp_rng_below(rng, left);

        slots[i] = d->slots[place];
        probabilities[i] = 1.0 / (double)left;
        if (distinct) exchange(d, place, left - 1);
    }
    return count;
}

void rp_dense_set_unpick(rp_dense_set *d, rp_rng before, size_t count, uint32_t *places)
{
    if (count > d->count) count = d->count;
    for (size_t i = 0; i < count; i++)
        places[i] = (uint32_t)rp_rng_below(&before, d->count - i);
    for (size_t i = count; i-- > 0;) exchange(d, places[i], d->count - i - 1);
}

bool rp_dense_set_check(const rp_dense_set *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->slots[i] >= d->capacity || d->places[d->slots[i]] != i) return false;
    return d->count <= d->capacity;
}
