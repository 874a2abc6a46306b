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
        .first_retired = NONE,
        .last_retired = NONE,
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

    assert(s->live == 0 && s->retired == 0 && s->cut == NULL && s->first_uncounted == NONE);
    *out = *s;
    out->used = 0;
    rp_slots_init(s, &out->alloc);
    s->next_sequence = next_sequence;
}

/* Makes room for `blocks` blocks in the list of blocks and in the marks. */
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
    size_t need = s->live + s->retired + more, want;

    if (need <= s->capacity) return RP_OK;
    if (need > (size_t)1 << 31) return RP_NO_RESOURCE;
    want = 2 * s->capacity < most ? 2 * s->capacity : most;
    if (want < need + need / 8) want = need + need / 8; /* grow geometrically */
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
    assert(s->capacity <= s->block_count * RP_SLOTS_PER_BLOCK);
    assert(s->capacity <= s->mark_room * RP_SLOTS_PER_BLOCK);
    return RP_OK;
}

void rp_slots_mark(rp_slots *s, size_t block)
{
    rp_slots_cut *cut = s->cut;
    size_t copy, first;

    assert(block < s->mark_room);
    s->marks[block] = 1;
    if (cut == NULL || block >= cut->block_count || cut->done[block]) return;
    copy = atomic_load_explicit(&cut->copy_count, memory_order_relaxed);
    assert(copy < cut->block_count); /* each block is saved once */
    first = copy * RP_SLOTS_PER_BLOCK;
    memcpy(cut->copies + first, s->blocks[block], BLOCK_BYTES);
    memset(cut->kept + first, 0, RP_SLOTS_PER_BLOCK * sizeof *cut->kept);
    atomic_store_explicit(&cut->copy_count, copy + 1, memory_order_relaxed);
    /* Releases the copy to a reader that has no lock. */
    atomic_store_explicit(&cut->saved[block], (unsigned)copy + 1, memory_order_release);
}

/* True if a cut is open and the item in the slot was live then. */
static bool is_cut(const rp_slots *s, const rp_slot *at)
{
    return s->cut != NULL && at->sequence < s->cut->next_sequence;
}

/* The entry of `kept` of an item for which is_cut() holds and that has been retired since. */
static uint32_t *kept_of(const rp_slots *s, uint32_t slot)
{
    size_t copy = rp_slots_copy_of(s->cut, slot / RP_SLOTS_PER_BLOCK);

    assert(copy != RP_NOT_SAVED);
    return s->cut->kept + copy + slot % RP_SLOTS_PER_BLOCK;
}

size_t rp_slots_reclaim(rp_slots *s, rp_retired *out, size_t count)
{
    size_t n = 0;

    assert(s->first_uncounted == NONE);
    for (; count > 0 && s->retired > 0; count--) {
        uint32_t slot = s->first_retired;
        rp_slot *at = rp_slots_change(s, slot);

        assert(at->state == RP_SLOT_RETIRED);
        if (is_cut(s, at) && !s->cut->done[slot / RP_SLOTS_PER_BLOCK])
            *kept_of(s, slot) = at->references;
        else
            out[n++] = (rp_retired){at->trajectory, at->references};
        s->first_retired = at->next;
        at->trajectory = NULL;
        at->state = RP_SLOT_FREE;
        at->next = s->first_free;
        s->first_free = slot;
        s->retired--;
    }
    return n;
}

size_t rp_slots_release_block(rp_slots_cut *cut, size_t block,
                              rp_retired out[RP_SLOTS_PER_BLOCK])
{
    size_t copy = rp_slots_copy_of(cut, block), n = 0;

    assert(block < cut->block_count);
    cut->done[block] = 1;
    for (size_t i = copy; copy != RP_NOT_SAVED && i < copy + RP_SLOTS_PER_BLOCK; i++) {
        if (cut->kept[i] == 0) continue;
        out[n++] = (rp_retired){cut->copies[i].trajectory, cut->kept[i]};
        cut->kept[i] = 0;
    }
    return n;
}

/* C1 to C3. */
static bool check_cut(const rp_slots *s)
{
    const rp_slots_cut *cut = s->cut;

    if (cut == NULL) return true;
    for (uint32_t i = 0; i < cut->block_count * RP_SLOTS_PER_BLOCK && i < s->used; i++) {
        size_t block = i / RP_SLOTS_PER_BLOCK, first = rp_slots_copy_of(cut, block);
        const rp_slot *at = rp_slots_at(s, i), *copy;

        if (cut->done[block]) {
            if (first != RP_NOT_SAVED && *kept_of(s, i) != 0) return false;
            continue;
        }
        if ((first != RP_NOT_SAVED) != (s->marks[block] != 0)) return false;
        if (first == RP_NOT_SAVED) continue;
        copy = &cut->copies[first + i % RP_SLOTS_PER_BLOCK];
        if (copy->state != RP_SLOT_LIVE) continue;
        if (at->sequence == copy->sequence && at->state != RP_SLOT_FREE) {
            if (*kept_of(s, i) != 0 || at->trajectory != copy->trajectory) return false;
        } else if (*kept_of(s, i) == 0) {
            return false;
        }
    }
    return true;
}

/* True if the list that begins at `slot` has exactly `count` slots, all in one state. */
static bool check_list(const rp_slots *s, uint32_t slot, size_t count, rp_slot_state state)
{
    for (; slot != NONE; slot = rp_slots_at(s, slot)->next, count--)
        if (count == 0 || slot >= s->used || rp_slots_at(s, slot)->state != state) return false;
    return count == 0;
}

bool rp_slots_check(const rp_slots *s)
{
    size_t counts[3] = {0};

    if (s->used > s->capacity) return false; /* S1 */
    for (uint32_t i = 0; i < s->used; i++) {
        if (rp_slots_at(s, i)->state > RP_SLOT_RETIRED) return false;
        counts[rp_slots_at(s, i)->state]++;
    }
    if (counts[RP_SLOT_LIVE] != s->live || counts[RP_SLOT_RETIRED] != s->retired)
        return false; /* S2 */
    if (!check_list(s, s->first_free, counts[RP_SLOT_FREE], RP_SLOT_FREE))
        return false; /* S3 */
    if (s->retired > 0 && rp_slots_at(s, s->last_retired)->next != NONE) return false;
    if (s->first_uncounted != NONE &&
        rp_slots_at(s, s->first_uncounted)->state != RP_SLOT_RETIRED)
        return false;
    return (s->retired == 0 || check_list(s, s->first_retired, s->retired, RP_SLOT_RETIRED)) &&
           check_cut(s); /* S4 */
}
