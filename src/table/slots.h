/* SPDX-License-Identifier: Apache-2.0 */
/* Where a table's items live: fixed-size slots in blocks of 16 KiB, known by number.
 *
 * A slot is free, live or dead. A dead one holds an item that has left the table but whose
 * trajectory has not been let go yet: that happens outside the table's lock (L2), in
 * rp_slots_exhume()'s caller.
 *
 *   take: free or new -> live        bury: live -> dead        exhume: dead -> free */
#ifndef RP_TABLE_SLOTS_H
#define RP_TABLE_SLOTS_H

#include <assert.h>

#include "reprise/trajectory.h"

typedef enum rp_slot_state {
    RP_SLOT_FREE = 0,
    RP_SLOT_LIVE = 1,
    RP_SLOT_DEAD = 2
} rp_slot_state;

/* One cache line. */
typedef struct rp_slot {
    uint64_t key;
    double priority;
    rp_trajectory *trajectory;
    int64_t inserted_at_ns;
    int32_t times_sampled;
    uint32_t tag;  /* of the key, in the table's map */
    uint32_t next; /* in the list of free or of dead slots */
    rp_slot_state state;
    uint32_t references; /* to the trajectory, >= 1 while live or dead: some to hand out, so
                            that a sample does not touch the trajectory itself */
    uint32_t unused[3];
} rp_slot;

/* What is left of an item that has gone. */
typedef struct rp_remains {
    rp_trajectory *trajectory;
    uint32_t references; /* to be dropped */
} rp_remains;

#define RP_SLOT_NONE UINT32_MAX

enum { RP_SLOTS_PER_BLOCK = 256 };

/* Blocks are allocated many at a time, so that a large table lies on huge pages. */
typedef struct rp_slab {
    rp_slot *slots;
    size_t block_count;
} rp_slab;

enum { RP_MAX_SLABS = 64 }; /* the table doubles, or grows by what one call needs */

typedef struct rp_slots {
    rp_slot **blocks;
    size_t block_count; /* room in `blocks` */
    rp_slab slabs[RP_MAX_SLABS];
    size_t slab_count;
    size_t capacity; /* slots there is memory for */
    size_t used;     /* slots below this have been live */
    size_t live;
    size_t dead;
    uint32_t first_free, first_dead, last_dead;
    uint32_t first_uncounted; /* dead, and not yet taken out of the account: from here on */
    rp_allocator alloc;
} rp_slots;

void rp_slots_init(rp_slots *s, const rp_allocator *alloc);
void rp_slots_deinit(rp_slots *s); /* lets go of the trajectories of live and dead slots */

static inline rp_slot *rp_slots_at(const rp_slots *s, uint32_t slot)
{
    return &s->blocks[slot / RP_SLOTS_PER_BLOCK][slot % RP_SLOTS_PER_BLOCK];
}

/* Makes room for `more` slots to be taken; may make more room than that, but not beyond `most`
 * slots in all unless it must. RP_NO_RESOURCE, with nothing lost. */
RP_NODISCARD rp_status rp_slots_reserve(rp_slots *s, size_t more, size_t most);

/* Takes a slot, the one freed last first; there must be room. */
static inline uint32_t rp_slots_take(rp_slots *s)
{
    uint32_t slot = s->first_free;

    if (slot != RP_SLOT_NONE)
        s->first_free = rp_slots_at(s, slot)->next;
    else
        slot = (uint32_t)s->used++;
    assert(slot < s->capacity);
    rp_slots_at(s, slot)->state = RP_SLOT_LIVE;
    s->live++;
    return slot;
}

static inline void rp_slots_bury(rp_slots *s, uint32_t slot)
{
    rp_slot *at = rp_slots_at(s, slot);

    at->state = RP_SLOT_DEAD;
    at->next = RP_SLOT_NONE;
    if (s->first_dead == RP_SLOT_NONE)
        s->first_dead = slot;
    else
        rp_slots_at(s, s->last_dead)->next = slot;
    s->last_dead = slot;
    if (s->first_uncounted == RP_SLOT_NONE) s->first_uncounted = slot;
    s->live--;
    s->dead++;
}

/* Frees up to `count` dead slots, oldest first, and moves their references to `out`. Returns
 * how many. */
size_t rp_slots_exhume(rp_slots *s, rp_remains *out, size_t count);

#endif
