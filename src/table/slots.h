/* SPDX-License-Identifier: Apache-2.0 */
/* Slots hold the items of a table: one item in each slot. Slots have a fixed size and lie in
 * blocks of 16 KiB. Each slot has a number.
 *
 * A slot is free, live or retired. A live slot holds an item of the table. A retired slot holds
 * an item that was removed from the table and whose trajectory is not released yet. To reclaim
 * a retired slot means to make it free: rp_slots_reclaim() hands the trajectory to its caller,
 * who must release the trajectory without the table's lock.
 *
 *   take: free or new -> live     retire: live -> retired     reclaim: retired -> free
 *
 * Invariants:
 *   S1  used <= capacity. Slots from `used` on have never been taken;
 *   S2  `live` and `retired` count the slots below `used` in these states;
 *   S3  the free list holds exactly the free slots below `used`;
 *   S4  the retired list holds exactly the retired slots, in the order of their removal.
 *       first_uncounted is one of them, or RP_SLOT_NONE.
 *
 * Code that changes a slot must get it from rp_slots_change(), which marks the slot's block as
 * changed. A cut (snapshot/cut.h) is a copy of the table's state at one instant, which is read
 * while the table stays in use. While a cut is open, each block is saved (copied) before its
 * first change:
 *   C1  a block that was in use when the cut was taken is saved, or has not changed since the
 *       cut;
 *   C2  if an item that was live when the cut was taken has been reclaimed, the item's block is
 *       saved, and the cut keeps the references to the item's trajectory (rp_slots_cut.kept);
 *   C3  after the cut has released a block, C1 and C2 no longer apply to this block: it is no
 *       longer saved before a change, and the cut keeps no references for its items.
 *
 * Retired slots are reclaimed in the order in which they were retired. An insert takes the free
 * slot that was reclaimed last. rp_table_reclaim_locked() reclaims all retired slots before an
 * operation takes slots. So slot numbers depend only on the sequence of operations, and not on
 * when trajectories are released. */
#ifndef RP_TABLE_SLOTS_H
#define RP_TABLE_SLOTS_H

#include <assert.h>
#include <stdatomic.h>

#include "reprise/trajectory.h"

typedef enum rp_slot_state {
    RP_SLOT_FREE = 0,
    RP_SLOT_LIVE = 1,
    RP_SLOT_RETIRED = 2
} rp_slot_state;

/* A slot: one cache line. */
typedef struct rp_slot {
    uint64_t key;
    double priority;
    rp_trajectory *trajectory;
    int64_t inserted_at_ns;
    uint64_t turn;          /* value of rp_table.next_turn when the priority was last set */
    uint64_t sequence : 56; /* the value of rp_slots.next_sequence when the item was inserted */
    uint64_t state : 8;     /* rp_slot_state */
    int32_t times_sampled;
    uint32_t tag;  /* tag of the key in the table's map */
    uint32_t next; /* the next slot in the list of free or of retired slots */
    /* Number of references to the trajectory that the slot holds, >= 1 unless the slot is free.
     * The slot holds some references in advance: a sample takes one of them instead of writing
     * to the trajectory's refcount. */
    uint32_t references;
} rp_slot;

#define RP_MAX_SEQUENCE ((UINT64_C(1) << 56) - 1)

/* The trajectory of a removed item, and the references to it that the caller must drop. */
typedef struct rp_retired {
    rp_trajectory *trajectory;
    uint32_t references; /* number of references; drop them without the table's lock */
} rp_retired;

#define RP_SLOT_NONE UINT32_MAX

enum { RP_SLOTS_PER_BLOCK = 256 };

/* Blocks are allocated many at a time, so that a large table uses huge pages. */
typedef struct rp_slab {
    rp_slot *slots;
    size_t block_count;
} rp_slab;

/* The copies that an open cut needs. The address space is allocated before the cut is opened,
 * but the system provides a page of memory only when the page is first written. Copies are
 * stored in the order in which they are made, so that another thread can touch the next pages
 * in advance. The struct is changed under the table's lock. A thread that has read the entry of
 * a block in `saved` with acquire order may read the block's copy without the lock. */
typedef struct rp_slots_cut {
    size_t block_count;     /* blocks in use at the cut */
    uint64_t next_sequence; /* rp_slots.next_sequence when the cut was taken: items with a lower
                               sequence were inserted before the cut */
    rp_slot *copies;        /* copies of the saved blocks */
    uint32_t *kept; /* for each slot of `copies`: number of references to the trajectory of an
                       item that has been reclaimed since the cut (invariant C2), or 0 */
    atomic_uint *saved;       /* for each block: the index of its copy + 1, or 0 */
    uint8_t *done;            /* for each block: 1 if the cut has released it (invariant C3) */
    atomic_size_t copy_count; /* number of copied blocks */
} rp_slots_cut;

/* Returns the index in `copies` of the first slot of a block's copy, or RP_NOT_SAVED if the
 * block was not copied. The caller may then read the copy without the lock. */
#define RP_NOT_SAVED SIZE_MAX
static inline size_t rp_slots_copy_of(const rp_slots_cut *cut, size_t block)
{
    unsigned copy = atomic_load_explicit(&cut->saved[block], memory_order_acquire);
    return copy == 0 ? RP_NOT_SAVED : (size_t)(copy - 1) * RP_SLOTS_PER_BLOCK;
}

enum {
    RP_MAX_SLABS = 64,    /* enough, since each slab doubles the capacity */
    RP_RECENT_SLOTS = 16, /* a power of two */
};

typedef struct rp_slots {
    rp_slot **blocks;
    size_t block_count; /* capacity of `blocks` */
    rp_slab slabs[RP_MAX_SLABS];
    size_t slab_count;
    size_t capacity; /* slots that have memory */
    size_t used;     /* slots that were ever taken (invariant S1) */
    size_t live;
    size_t retired;
    uint32_t first_free, first_retired, last_retired;
    uint32_t first_uncounted; /* first retired slot whose item the table's account (account.h)
                                 still counts; RP_SLOT_NONE: there is none */
    uint64_t next_sequence;
    /* At index n % RP_RECENT_SLOTS: the slot of the item with sequence n, if that item was
     * inserted since the table was made. */
    uint32_t recent[RP_RECENT_SLOTS];
    uint8_t *marks;   /* for each block: 1 if the block has changed since the open cut was taken
                         or, if no cut is open, since the last cut that was kept
                         (rp_cut_free()) */
    size_t mark_room; /* >= the number of blocks */
    rp_slots_cut *cut; /* the open cut, borrowed; NULL if there is none */
    rp_allocator alloc;
} rp_slots;

void rp_slots_init(rp_slots *s, const rp_allocator *alloc);
void rp_slots_deinit(rp_slots *s); /* drops the trajectories of live and retired slots */

/* Moves all memory of `s` to `*out`, which the caller must pass to rp_slots_deinit(). Slot
 * numbers start from 0 again. No slot may be live or retired, and no cut may be open. */
void rp_slots_empty(rp_slots *s, rp_slots *out);

static inline rp_slot *rp_slots_at(const rp_slots *s, uint32_t slot)
{
    assert(slot < s->capacity);
    return &s->blocks[slot / RP_SLOTS_PER_BLOCK][slot % RP_SLOTS_PER_BLOCK];
}

/* Returns the number of used slots that have no item of the table: free and retired slots. */
static inline size_t rp_slots_spare(const rp_slots *s)
{
    return s->used - s->live;
}

/* Marks an unmarked block, and saves it if a cut is open. */
void rp_slots_mark(rp_slots *s, size_t block);

/* Returns a slot for writing. */
static inline rp_slot *rp_slots_change(rp_slots *s, uint32_t slot)
{
    if (s->marks[slot / RP_SLOTS_PER_BLOCK] == 0) rp_slots_mark(s, slot / RP_SLOTS_PER_BLOCK);
    return rp_slots_at(s, slot);
}

/* Makes room for taking `more` slots. To reserve less often, it possibly makes room for further
 * slots: up to `most` slots in total, or an eighth more than needed. On RP_NO_RESOURCE the
 * slots are unchanged. */
RP_NODISCARD rp_status rp_slots_reserve(rp_slots *s, size_t more, size_t most);

/* Adds exactly `count` (>= 1) blocks in one slab. On RP_NO_RESOURCE the slots are unchanged. */
RP_NODISCARD rp_status rp_slots_add_blocks(rp_slots *s, size_t count);

/* Takes a slot for an item: the free slot that was reclaimed last, or a new one. The caller
 * must have made room with rp_slots_reserve(). */
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
    s->recent[s->next_sequence % RP_RECENT_SLOTS] = slot;
    at->sequence = s->next_sequence++ & RP_MAX_SEQUENCE;
    at->state = RP_SLOT_LIVE;
    s->live++;
    return slot;
}

/* Retires a live slot. */
static inline void rp_slots_retire(rp_slots *s, uint32_t slot)
{
    rp_slot *at = rp_slots_change(s, slot);

    assert(at->state == RP_SLOT_LIVE && s->live > 0);
    at->state = RP_SLOT_RETIRED;
    at->next = RP_SLOT_NONE;
    if (s->first_retired == RP_SLOT_NONE)
        s->first_retired = slot;
    else
        rp_slots_change(s, s->last_retired)->next = slot;
    s->last_retired = slot;
    if (s->first_uncounted == RP_SLOT_NONE) s->first_uncounted = slot;
    s->live--;
    s->retired++;
}

/* Reclaims up to `count` retired slots, in the order in which they were retired. Moves the
 * references of each slot to an entry of `out`, and returns the number of entries. If an open
 * cut can still read the item, its references go to the cut instead (invariant C2). */
size_t rp_slots_reclaim(rp_slots *s, rp_retired *out, size_t count);

/* Releases a block of an open cut (invariant C3). For each slot of the block whose references
 * the cut keeps, moves the references to an entry of `out`. Returns the number of entries. */
size_t rp_slots_release_block(rp_slots_cut *cut, size_t block,
                              rp_retired out[RP_SLOTS_PER_BLOCK]);

/* Returns true if the invariants S1 to S4 hold, and C1 to C3 as far as they can be tested. */
bool rp_slots_check(const rp_slots *s);

#endif
