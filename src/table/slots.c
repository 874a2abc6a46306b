/* SPDX-License-Identifier: Apache-2.0 */
#include "table/slots.h"

#include <assert.h>

#include "util/mem.h"

#define NONE UINT32_MAX

enum { BLOCK_BYTES = RP_SLOTS_PER_BLOCK * sizeof(rp_slot) };

static_assert(sizeof(rp_slot) == RP_CACHE_LINE, "a slot is one cache line");

void rp_slots_init(rp_slots *s, const rp_allocator *alloc)
{
    *s = (rp_slots){.first_free = NONE, .first_dead = NONE, .last_dead = NONE, .alloc = *alloc};
}

void rp_slots_deinit(rp_slots *s)
{
    for (uint32_t i = 0; i < s->used; i++)
        if (rp_slots_at(s, i)->state != RP_SLOT_FREE)
            rp_trajectory_unref(rp_slots_at(s, i)->trajectory);
    for (size_t i = 0; i < s->capacity / RP_SLOTS_PER_BLOCK; i++)
        rp_release_aligned(&s->alloc, s->blocks[i], BLOCK_BYTES);
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
    size_t need = s->live + s->dead + more, want;

    if (need <= s->capacity) return RP_OK;
    if (need > (size_t)1 << 31) return RP_NO_RESOURCE;
    want = 2 * s->capacity < most ? 2 * s->capacity : most;
    if (want < need) want = need;
    if (!reserve_list(s, want / RP_SLOTS_PER_BLOCK + 1)) return RP_NO_RESOURCE;
    while (s->capacity < want) {
        rp_slot *block = rp_alloc_aligned(&s->alloc, BLOCK_BYTES);
        if (block == NULL) break;
        s->blocks[s->capacity / RP_SLOTS_PER_BLOCK] = block;
        s->capacity += RP_SLOTS_PER_BLOCK;
    }
    return need <= s->capacity ? RP_OK : RP_NO_RESOURCE;
}

uint32_t rp_slots_take(rp_slots *s)
{
    uint32_t slot = s->first_free;

    if (slot != NONE)
        s->first_free = rp_slots_at(s, slot)->next;
    else
        slot = (uint32_t)s->used++;
    assert(slot < s->capacity);
    rp_slots_at(s, slot)->state = RP_SLOT_LIVE;
    s->live++;
    return slot;
}

void rp_slots_bury(rp_slots *s, uint32_t slot)
{
    rp_slot *at = rp_slots_at(s, slot);

    at->state = RP_SLOT_DEAD;
    at->next = NONE;
    if (s->first_dead == NONE)
        s->first_dead = slot;
    else
        rp_slots_at(s, s->last_dead)->next = slot;
    s->last_dead = slot;
    s->live--;
    s->dead++;
}

size_t rp_slots_exhume(rp_slots *s, rp_trajectory **out, size_t count)
{
    size_t n = 0;

    for (; n < count && s->dead > 0; n++) {
        uint32_t slot = s->first_dead;
        rp_slot *at = rp_slots_at(s, slot);

        out[n] = at->trajectory;
        s->first_dead = at->next;
        at->trajectory = NULL;
        at->state = RP_SLOT_FREE;
        at->next = s->first_free;
        s->first_free = slot;
        s->dead--;
    }
    return n;
}
