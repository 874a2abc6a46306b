/* SPDX-License-Identifier: Apache-2.0 */
#include "table/dense_set.h"

#include "util/mem.h"

rp_status rp_dense_set_reserve(rp_dense_set *d, const rp_allocator *alloc, size_t slot_count)
{
    uint32_t *slots, *places;
    size_t old_bytes = d->capacity * sizeof *slots, bytes;

    if (slot_count <= d->capacity) return RP_OK;
    if (!rp_size_mul(slot_count, sizeof *slots, &bytes)) return RP_NO_RESOURCE;
    /* Not zeroed: a set that stays nearly empty should not touch its pages. */
    slots = rp_alloc(alloc, bytes);
    places = rp_alloc(alloc, bytes);
    if (slots == NULL || places == NULL) {
        rp_release(alloc, slots, bytes);
        rp_release(alloc, places, bytes);
        return RP_NO_RESOURCE;
    }
    if (d->count > 0) memcpy(slots, d->slots, d->count * sizeof *slots);
    for (size_t i = 0; i < d->count; i++) places[slots[i]] = (uint32_t)i;
    rp_release(alloc, d->slots, old_bytes);
    rp_release(alloc, d->places, old_bytes);
    d->slots = slots;
    d->places = places;
    d->capacity = slot_count;
    return RP_OK;
}

void rp_dense_set_deinit(rp_dense_set *d, const rp_allocator *alloc)
{
    rp_release(alloc, d->slots, d->capacity * sizeof *d->slots);
    rp_release(alloc, d->places, d->capacity * sizeof *d->places);
    *d = (rp_dense_set){0};
}

void rp_dense_set_add(rp_dense_set *d, uint32_t slot)
{
    d->slots[d->count] = slot;
    d->places[slot] = (uint32_t)d->count++;
}

void rp_dense_set_remove(rp_dense_set *d, uint32_t slot)
{
    uint32_t place = d->places[slot], last = d->slots[--d->count];

    d->slots[place] = last;
    d->places[last] = place;
}

/* Exchanges two places. */
static void exchange(rp_dense_set *d, size_t a, size_t b)
{
    uint32_t slot = d->slots[a];

    d->slots[a] = d->slots[b];
    d->slots[b] = slot;
    d->places[d->slots[a]] = (uint32_t)a;
    d->places[d->slots[b]] = (uint32_t)b;
}

size_t rp_dense_set_pick(rp_dense_set *d, rp_rng *rng, size_t count, bool distinct,
                         uint32_t *slots, double *probabilities)
{
    if (distinct && count > d->count) count = d->count;
    for (size_t i = 0; i < count; i++) {
        size_t left = distinct ? d->count - i : d->count; /* those picked gather at the end */
        size_t place = rp_rng_below(rng, left);

        slots[i] = d->slots[place];
        probabilities[i] = 1.0 / (double)left;
        if (distinct) exchange(d, place, left - 1);
    }
    return count;
}

bool rp_dense_set_check(const rp_dense_set *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->slots[i] >= d->capacity || d->places[d->slots[i]] != i) return false;
    return d->count <= d->capacity;
}
