/* SPDX-License-Identifier: Apache-2.0 */
#include "table/slots.h"

#include <assert.h>

#include "chunk/trajectory.h"
#include "util/mem.h"

#define NONE RP_SLOT_NONE

enum { BLOCK_BYTES = RP_SLOTS_PER_BLOCK * sizeof(rp_slot) };

static_assert(sizeof(rp_slot) == RP_CACHE_LINE, "a slot is one cache line");

void rp_slots_init(rp_slots *s, const rp_allocator *alloc)
{
    *s = (rp_slots){
        .first_free = NONE,
        .first_dead = NONE,
        .last_dead = NONE,
        .first_uncounted = NONE,
        .alloc = *alloc,
    };
}

void rp_slots_deinit(rp_slots *s)
{
    for (uint32_t i = 0; i < s->used; i++)
        if (rp_slots_at(s, i)->state != RP_SLOT_FREE)
            rp_trajectory_unref_many(rp_slots_at(s, i)->trajectory,
                                     rp_slots_at(s, i)->references);
    for (size_t i = 0; i < s->slab_count; i++)
        rp_release_aligned(&s->alloc, s->slabs[i].slots, s->slabs[i].block_count * BLOCK_BYTES);
    rp_release(&s->alloc, s->blocks, s->block_count * sizeof(rp_slot *));
}

/* Room in the list of blocks for `blocks` of them. */
static bool reserve_list(rp_slots *s, size_t blocks)
{
    size_t count = s->block_count < 8 ? 8 : s->block_count;

    if (blocks <= s->block_count) return true;
    while (count < blocks) count *= 2;
    if (!rp_resize_array(&s->alloc, &s->blocks, s->block_count, count, sizeof(rp_slot *)))
        return false;
    s->block_count = count;
    return true;
}

rp_status rp_slots_reserve(rp_slots *s, size_t more, size_t most)
{
    size_t need = s->live + s->dead + more, want, first, added;
    rp_slot *slots;

    if (need <= s->capacity) return RP_OK;
    if (need > (size_t)1 << 31 || s->slab_count == RP_MAX_SLABS) return RP_NO_RESOURCE;
    want = 2 * s->capacity < most ? 2 * s->capacity : most;
    if (want < need + need / 8) want = need + need / 8; /* never creep */
    first = s->capacity / RP_SLOTS_PER_BLOCK;
    added = (want - s->capacity + RP_SLOTS_PER_BLOCK - 1) / RP_SLOTS_PER_BLOCK;
    if (!reserve_list(s, first + added)) return RP_NO_RESOURCE;
    slots = rp_alloc_aligned(&s->alloc, added * BLOCK_BYTES);
    if (slots == NULL) return RP_NO_RESOURCE;
    s->slabs[s->slab_count++] = (rp_slab){slots, added};
    for (size_t i = 0; i < added; i++) s->blocks[first + i] = slots + i * RP_SLOTS_PER_BLOCK;
    s->capacity += added * RP_SLOTS_PER_BLOCK;
    return RP_OK;
}

size_t rp_slots_exhume(rp_slots *s, rp_remains *out, size_t count)
{
    size_t n = 0;

    assert(s->first_uncounted == NONE);
    for (; n < count && s->dead > 0; n++) {
        uint32_t slot = s->first_dead;
        rp_slot *at = rp_slots_at(s, slot);

        out[n] = (rp_remains){at->trajectory, at->references};
        s->first_dead = at->next;
        at->trajectory = NULL;
        at->state = RP_SLOT_FREE;
        at->next = s->first_free;
        s->first_free = slot;
        s->dead--;
    }
    return n;
}
