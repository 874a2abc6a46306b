/* SPDX-License-Identifier: Apache-2.0 */
/* Where a table's items live: fixed-size slots in blocks of 16 KiB, known by number.
 *
 * A slot is free, live or dead. A dead one holds an item that has left the table but whose
 * trajectory has not been let go yet: that happens outside the table's lock (L2), in
 * rp_slots_exhume()'s caller.
 *
 *   take: free or new -> live        bury: live -> dead        exhume: dead -> free
 *
 * Whoever changes a slot gets it from rp_slots_change(), which marks its block as changed.
 * While a cut is open (cut.h), the first change to a block saves it before:
 *   C1  a block that was in use at the cut is saved, or as it was then;
 *   C2  an item that was there at the cut and has been exhumed is in the cut's limbo: the
 *       block is saved, and the references stand beside the copy;
 *   C3  of a block that the cut has let go of, neither holds: nothing is saved any more, and
 *       nothing of it is in limbo.
 * Dead slots are exhumed in the order in which they died, and taken again the last first, so
 * which slot an item gets is decided by what happened to the table, never by when trajectories
 * were let go: see rp_table_exhume_locked(). */
#ifndef RP_TABLE_SLOTS_H
#define RP_TABLE_SLOTS_H

#include <assert.h>
#include <stdatomic.h>

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
    uint64_t turn;          /* when its priority was set: the table's counter of that */
    uint64_t sequence : 56; /* when it was inserted: the slots' counter of that */
    uint64_t state : 8;     /* rp_slot_state */
    int32_t times_sampled;
    uint32_t tag;        /* of the key, in the table's map */
    uint32_t next;       /* in the list of free or of dead slots */
    uint32_t references; /* to the trajectory, >= 1 while live or dead: some to hand out, so
                            that a sample does not touch the trajectory itself */
} rp_slot;

#define RP_MAX_SEQUENCE ((UINT64_C(1) << 56) - 1)

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

/* What an open cut keeps of the slots. Memory for everything is there before it is opened, and
 * touched where it is needed: copies stand in the order in which they were made, so that
 * somebody can touch it ahead of them. Written under the table's lock; a copy may be read
 * without it by who has seen, with acquire, that the block is saved. */
typedef struct rp_slots_cut {
    size_t block_count;       /* blocks in use at the cut */
    uint64_t next_sequence;   /* at the cut: items below it were there */
    rp_slot *copies;          /* of the saved blocks */
    uint32_t *limbo;          /* beside each slot of them: references to its trajectory that
                                 nobody holds any more; 0: none */
    atomic_uint *saved;       /* by block: which of the copies is its, from 1; 0: none */
    uint8_t *done;            /* by block: it was let go of */
    atomic_size_t copy_count; /* blocks */
} rp_slots_cut;

/* Where in `copies` a block begins, or RP_NOT_SAVED. Acquires the copy from who made it. */
#define RP_NOT_SAVED SIZE_MAX
static inline size_t rp_slots_copy_of(const rp_slots_cut *cut, size_t block)
{
    unsigned copy = atomic_load_explicit(&cut->saved[block], memory_order_acquire);
    return copy == 0 ? RP_NOT_SAVED : (size_t)(copy - 1) * RP_SLOTS_PER_BLOCK;
}

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
    uint64_t next_sequence;
    uint8_t *marks;    /* by block: changed since the marks were new */
    size_t mark_room;  /* >= blocks there is memory for */
    rp_slots_cut *cut; /* NULL, or open: borrowed */
    rp_allocator alloc;
} rp_slots;

void rp_slots_init(rp_slots *s, const rp_allocator *alloc);
void rp_slots_deinit(rp_slots *s); /* lets go of the trajectories of live and dead slots */

/* Moves all memory to `*out`, which is as after rp_slots_init() but for that: slots are taken
 * from number 0 on again. None may be live or dead, and no cut open. */
void rp_slots_empty(rp_slots *s, rp_slots *out);

static inline rp_slot *rp_slots_at(const rp_slots *s, uint32_t slot)
{
    return &s->blocks[slot / RP_SLOTS_PER_BLOCK][slot % RP_SLOTS_PER_BLOCK];
}

/* Slots that have been used and have no item: free and dead ones. */
static inline size_t rp_slots_spare(const rp_slots *s)
{
    return s->used - s->live;
}

/* Marks a block that is not marked yet, and saves it if a cut is open. */
void rp_slots_mark(rp_slots *s, size_t block);

/* A slot that is about to be changed. */
static inline rp_slot *rp_slots_change(rp_slots *s, uint32_t slot)
{
    if (s->marks[slot / RP_SLOTS_PER_BLOCK] == 0) rp_slots_mark(s, slot / RP_SLOTS_PER_BLOCK);
    return rp_slots_at(s, slot);
}

/* Makes room for `more` slots to be taken; may make more room than that, but not beyond `most`
 * slots in all unless it must. RP_NO_RESOURCE, with nothing lost. */
RP_NODISCARD rp_status rp_slots_reserve(rp_slots *s, size_t more, size_t most);

/* Exactly so many more blocks, >= 1, in a slab of their own. RP_NO_RESOURCE, with nothing lost.
 */
RP_NODISCARD rp_status rp_slots_add_blocks(rp_slots *s, size_t count);

/* Takes a slot, the one freed last first; there must be room. */
static inline uint32_t rp_slots_take(rp_slots *s)
{
    uint32_t slot = s->first_free;
    rp_slot *at;

    if (slot != RP_SLOT_NONE)
        s->first_free = rp_slots_at(s, slot)->next;
    else
        slot = (uint32_t)s->used++;
    assert(slot < s->capacity);
    at = rp_slots_change(s, slot);
    at->sequence = s->next_sequence++ & RP_MAX_SEQUENCE;
    at->state = RP_SLOT_LIVE;
    s->live++;
    return slot;
}

static inline void rp_slots_bury(rp_slots *s, uint32_t slot)
{
    rp_slot *at = rp_slots_change(s, slot);

    at->state = RP_SLOT_DEAD;
    at->next = RP_SLOT_NONE;
    if (s->first_dead == RP_SLOT_NONE)
        s->first_dead = slot;
    else
        rp_slots_change(s, s->last_dead)->next = slot;
    s->last_dead = slot;
    if (s->first_uncounted == RP_SLOT_NONE) s->first_uncounted = slot;
    s->live--;
    s->dead++;
}

/* Frees up to `count` dead slots, oldest first. Moves their references to `out`, and returns
 * how many that are; those of items that an open cut may still want go to its limbo. */
size_t rp_slots_exhume(rp_slots *s, rp_remains *out, size_t count);

/* The open cut lets go of a block. Moves what it had of it in limbo to `out`, and returns how
 * many that are. */
size_t rp_slots_let_go(rp_slots_cut *cut, size_t block, rp_remains out[RP_SLOTS_PER_BLOCK]);

/* C1 to C3, as far as they can be seen. */
bool rp_slots_check_cut(const rp_slots *s);

#endif
