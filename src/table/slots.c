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
    rp_release(&s->alloc, s->marks, s->mark_room);
}

void rp_slots_empty(rp_slots *s, rp_slots *out)
{
    uint64_t next_sequence = s->next_sequence;

    assert(s->live == 0 && s->dead == 0 && s->cut == NULL);
    *out = *s;
    out->used = 0;
    rp_slots_init(s, &out->alloc);
    s->next_sequence = next_sequence;
}

/* Room in the list of blocks, and for marks, for `blocks` of them. */
static bool reserve_list(rp_slots *s, size_t blocks)
{
    size_t count = s->block_count < 8 ? 8 : s->block_count;

    while (count < blocks) count *= 2;
    if (blocks > s->mark_room) {
        if (!rp_resize_array(&s->alloc, &s->marks, s->mark_room, count, 1)) return false;
        s->mark_room = count;
    }
    if (blocks <= s->block_count) return true;
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
    if (want < need + need / 8) want = need + need / 8; /* never creep */
    return rp_slots_add_blocks(s, (want - s->capacity + RP_SLOTS_PER_BLOCK - 1) /
                                      RP_SLOTS_PER_BLOCK);
}

rp_status rp_slots_add_blocks(rp_slots *s, size_t added)
{
    size_t first = s->capacity / RP_SLOTS_PER_BLOCK;
    rp_slot *slots;

    if (s->slab_count == RP_MAX_SLABS) return RP_NO_RESOURCE;
    if (!reserve_list(s, first + added)) return RP_NO_RESOURCE;
    slots = rp_alloc_aligned(&s->alloc, added * BLOCK_BYTES);
    if (slots == NULL) return RP_NO_RESOURCE;
    s->slabs[s->slab_count++] = (rp_slab){slots, added};
    for (size_t i = 0; i < added; i++) s->blocks[first + i] = slots + i * RP_SLOTS_PER_BLOCK;
    s->capacity += added * RP_SLOTS_PER_BLOCK;
    return RP_OK;
}

void rp_slots_mark(rp_slots *s, size_t block)
{
    rp_slots_cut *cut = s->cut;
    size_t copy, first;

    s->marks[block] = 1;
    if (cut == NULL || block >= cut->block_count || cut->done[block]) return;
    copy = atomic_load_explicit(&cut->copy_count, memory_order_relaxed);
    first = copy * RP_SLOTS_PER_BLOCK;
    memcpy(cut->copies + first, s->blocks[block], BLOCK_BYTES);
    memset(cut->limbo + first, 0, RP_SLOTS_PER_BLOCK * sizeof *cut->limbo);
    atomic_store_explicit(&cut->copy_count, copy + 1, memory_order_relaxed);
    /* Releases the copy to a reader that has no lock. */
    atomic_store_explicit(&cut->saved[block], (unsigned)copy + 1, memory_order_release);
}

/* True if the item in the slot was there at the cut that is open. */
static bool is_cut(const rp_slots *s, const rp_slot *at)
{
    return s->cut != NULL && at->sequence < s->cut->next_sequence;
}

/* The place in limbo of an item that is_cut() and has been buried since. */
static uint32_t *limbo_of(const rp_slots *s, uint32_t slot)
{
    size_t copy = rp_slots_copy_of(s->cut, slot / RP_SLOTS_PER_BLOCK);

    assert(copy != RP_NOT_SAVED);
    return s->cut->limbo + copy + slot % RP_SLOTS_PER_BLOCK;
}

size_t rp_slots_exhume(rp_slots *s, rp_remains *out, size_t count)
{
    size_t n = 0;

    assert(s->first_uncounted == NONE);
    for (; count > 0 && s->dead > 0; count--) {
        uint32_t slot = s->first_dead;
        rp_slot *at = rp_slots_change(s, slot);

        if (is_cut(s, at) && !s->cut->done[slot / RP_SLOTS_PER_BLOCK])
            *limbo_of(s, slot) = at->references;
        else
            out[n++] = (rp_remains){at->trajectory, at->references};
        s->first_dead = at->next;
        at->trajectory = NULL;
        at->state = RP_SLOT_FREE;
        at->next = s->first_free;
        s->first_free = slot;
        s->dead--;
    }
    return n;
}

size_t rp_slots_let_go(rp_slots_cut *cut, size_t block, rp_remains out[RP_SLOTS_PER_BLOCK])
{
    size_t copy = rp_slots_copy_of(cut, block), n = 0;

    cut->done[block] = 1;
    for (size_t i = copy; copy != RP_NOT_SAVED && i < copy + RP_SLOTS_PER_BLOCK; i++) {
        if (cut->limbo[i] == 0) continue;
        out[n++] = (rp_remains){cut->copies[i].trajectory, cut->limbo[i]};
        cut->limbo[i] = 0;
    }
    return n;
}

bool rp_slots_check_cut(const rp_slots *s)
{
    const rp_slots_cut *cut = s->cut;

    if (cut == NULL) return true;
    for (uint32_t i = 0; i < cut->block_count * RP_SLOTS_PER_BLOCK && i < s->used; i++) {
        size_t block = i / RP_SLOTS_PER_BLOCK, first = rp_slots_copy_of(cut, block);
        const rp_slot *at = rp_slots_at(s, i), *copy;

        if (cut->done[block]) {
            if (first != RP_NOT_SAVED && *limbo_of(s, i) != 0) return false;
            continue;
        }
        if ((first != RP_NOT_SAVED) != (s->marks[block] != 0)) return false;
        if (first == RP_NOT_SAVED) continue;
        copy = &cut->copies[first + i % RP_SLOTS_PER_BLOCK];
        if (copy->state != RP_SLOT_LIVE) continue;
        if (at->sequence == copy->sequence && at->state != RP_SLOT_FREE) {
            if (*limbo_of(s, i) != 0 || at->trajectory != copy->trajectory) return false;
        } else if (*limbo_of(s, i) == 0) {
            return false;
        }
    }
    return true;
}
