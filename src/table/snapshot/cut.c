/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts: steps and locks.
 *
 *   new      allocate memory for copies of all blocks           a table's lock, briefly
 *   take     swap marks, attach the cut to slots and sets       all locks at once, O(tables)
 *   read     copy saved blocks, or blocks of the table          none, or the table's for 16 KiB
 *   release  drop the trajectories kept for one block           the table's, briefly
 *   free     detach; drop the trajectories that are kept        the table's, then none
 *
 * The marks of a table's blocks serve two purposes. Before a cut they say which blocks have
 * changed since the last cut that was kept. At the cut these marks move to the cut, and the
 * table gets new marks, which also say which blocks are saved. If the cut is kept, the new
 * marks are already right for the next cut; if not, the marks of the cut are added to them.
 *
 * Locks: a table is in one cut at a time, so two threads that take cuts never want a lock that
 * the other holds, and no other code acquires two table locks. */
#include "table/snapshot/cut.h"

#include <assert.h>

#include "chunk/trajectory.h"
#include "table/table_log.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    FEW_RETIRED = 1024, /* if a table has more retired slots, they are reclaimed before */
    MAX_TRIES = 16,
    LOCK_TRIES = 256,
    FIRST_COPIES = 2048, /* blocks whose memory is populated in advance: 32 MiB */
    MORE_COPIES = 2048,  /* blocks to populate ahead of those in use, during reads */
    SETS = 2,            /* of the sampler and of the remover */
};

/* One table of a cut. */
typedef struct part {
    rp_table *table;
    rp_table_state state;
    rp_slots_cut slots;
    rp_dense_cut sets[SETS];
    size_t slot_room;      /* slots that `slots` has memory for */
    size_t set_room[SETS]; /* slots that the sets have memory for */
    atomic_size_t touched; /* blocks of copies whose memory is populated */
    uint8_t *marks;        /* new marks for the table; after the cut, those the table had */
    size_t mark_room;
} part;

struct rp_cut {
    rp_allocator alloc;
    size_t room;  /* parts that have memory */
    size_t count; /* tables that this cut has claimed */
    bool taken;
    part parts[];
};

static size_t block_count(size_t slots, size_t per_block)
{
    return slots / per_block + (slots % per_block != 0);
}

static rp_dense_set *set_of(const rp_table *t, int which) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_selector *s = which == 0 ? t->sampler : t->remover; /* constant */

    return s->ops->dense != NULL ? s->ops->dense(s) : NULL;
}

static void release_slots(const rp_allocator *alloc, part *p)
{
    size_t blocks = block_count(p->slot_room, RP_SLOTS_PER_BLOCK);

    rp_release(alloc, p->slots.copies, p->slot_room * sizeof *p->slots.copies);
    rp_release(alloc, p->slots.kept, p->slot_room * sizeof *p->slots.kept);
    rp_release(alloc, p->slots.saved, blocks * sizeof *p->slots.saved);
    rp_release(alloc, p->slots.done, blocks);
    rp_release(alloc, p->marks, p->mark_room);
    p->slots = (rp_slots_cut){0};
    atomic_store_explicit(&p->touched, 0, memory_order_relaxed);
    p->marks = NULL;
    p->slot_room = p->mark_room = 0;
}

static void release_set(const rp_allocator *alloc, part *p, int which)
{
    rp_dense_cut *set = &p->sets[which];

    rp_release(alloc, set->copies, p->set_room[which] * sizeof *set->copies);
    rp_release(alloc, set->saved, block_count(p->set_room[which], RP_DENSE_BLOCK));
    *set = (rp_dense_cut){0};
    p->set_room[which] = 0;
}

/* Populates the memory of `blocks` more copies, so that a thread that makes one under the
 * table's lock causes no page fault. */
static void touch_ahead(part *p, size_t blocks)
{
    size_t from = atomic_fetch_add_explicit(&p->touched, blocks, memory_order_relaxed);
    size_t most = p->slot_room / RP_SLOTS_PER_BLOCK;

    if (from >= most) return;
    if (blocks > most - from) blocks = most - from;
    rp_touch(p->slots.copies + from * RP_SLOTS_PER_BLOCK,
             blocks * RP_SLOTS_PER_BLOCK * sizeof *p->slots.copies);
    rp_touch(p->slots.kept + from * RP_SLOTS_PER_BLOCK,
             blocks * RP_SLOTS_PER_BLOCK * sizeof *p->slots.kept);
}

/* Most of the memory is not populated: blocks that are never saved cost address space only. */
static bool reserve_slots(const rp_allocator *alloc, part *p, size_t slots)
{
    size_t blocks = block_count(slots, RP_SLOTS_PER_BLOCK);

    if (slots <= p->slot_room) return true;
    release_slots(alloc, p);
    p->slot_room = slots;
    p->slots.copies = rp_alloc(alloc, slots * sizeof *p->slots.copies);
    p->slots.kept = rp_alloc(alloc, slots * sizeof *p->slots.kept);
    p->slots.saved = rp_alloc_array(alloc, blocks, sizeof *p->slots.saved);
    p->slots.done = rp_alloc_array(alloc, blocks, 1);
    p->marks = rp_alloc_array(alloc, blocks, 1);
    p->mark_room = blocks;
    if (p->slots.copies != NULL && p->slots.kept != NULL && p->slots.saved != NULL &&
        p->slots.done != NULL && p->marks != NULL) {
        touch_ahead(p, FIRST_COPIES);
        return true;
    }
    release_slots(alloc, p);
    return false;
}

static bool reserve_set(const rp_allocator *alloc, part *p, int which, size_t slots)
{
    rp_dense_cut *set = &p->sets[which];

    if (slots <= p->set_room[which]) return true;
    release_set(alloc, p, which);
    p->set_room[which] = slots;
    set->copies = rp_alloc(alloc, slots * sizeof *set->copies);
    set->saved = rp_alloc_array(alloc, block_count(slots, RP_DENSE_BLOCK), 1);
    if (set->copies != NULL && set->saved != NULL) return true;
    release_set(alloc, p, which);
    return false;
}

/* Allocates memory for the present size of the table. */
static rp_status prepare(const rp_allocator *alloc, part *p, rp_error *err)
{
    rp_table *t = p->table;
    size_t slots, sets[SETS] = {0};
    bool ok;

    rp_mutex_lock(&t->mu);
    slots = t->slots.capacity;
    for (int i = 0; i < SETS; i++)
        if (set_of(t, i) != NULL) sets[i] = set_of(t, i)->capacity;
    rp_mutex_unlock(&t->mu);
    ok = reserve_slots(alloc, p, slots);
    for (int i = 0; i < SETS && ok; i++) ok = reserve_set(alloc, p, i, sets[i]);
    if (ok) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE, "table '%s': out of memory for a cut of %zu slots",
                   t->options.name, slots);
}

/* Claims the table for a cut. False if another cut includes it. */
static bool claim(rp_table *t)
{
    bool is_free;

    rp_mutex_lock(&t->mu);
    is_free = !t->being_cut;
    t->being_cut = true;
    rp_mutex_unlock(&t->mu);
    return is_free;
}

rp_status rp_cut_new(const rp_allocator *alloc, rp_table *const *tables, size_t count,
                     rp_cut **out, rp_error *err)
{
    size_t bytes = SIZE_MAX;
    rp_cut *cut = NULL;
    rp_status st = RP_OK;

    if (rp_size_mul(count, sizeof(part), &bytes) && rp_size_add(bytes, sizeof *cut, &bytes))
        cut = rp_alloc_zero(alloc, bytes);
    if (cut == NULL) return rp_fail_memory(err, bytes);
    cut->alloc = *alloc;
    cut->room = count;
    for (size_t i = 0; i < count && st == RP_OK; i++) {
        if (!claim(tables[i])) {
            st = rp_fail(err, RP_PRECONDITION, "table '%s' is being cut already",
                         rp_table_name(tables[i]));
            break;
        }
        cut->parts[i].table = rp_table_ref(tables[i]);
        cut->count++;
        (void)atomic_fetch_add(&tables[i]->account.budget->cuts, 1);
        st = prepare(alloc, &cut->parts[i], err);
    }
    if (st == RP_OK)
        *out = cut;
    else
        rp_cut_free(cut, false);
    return st;
}

/* Detaches the cut from the table. */
static void detach_locked(part *p, bool kept) RP_REQUIRES(p->table->mu)
{
    rp_table *t = p->table;
    rp_slots *s = &t->slots;

    assert(t->being_cut && (s->cut == NULL || s->cut == &p->slots));
    if (s->cut != NULL && !kept)
        for (size_t i = 0; i < p->slots.block_count; i++) s->marks[i] |= p->marks[i];
    s->cut = NULL;
    for (int i = 0; i < SETS; i++)
        if (set_of(t, i) != NULL) set_of(t, i)->cut = NULL;
    t->being_cut = false;
}

/* Drops the trajectories that the cut keeps. No other thread can access them. */
static void release_kept(const part *p)
{
    const rp_slots_cut *c = &p->slots;

    size_t slots = atomic_load_explicit(&c->copy_count, memory_order_relaxed);

    slots *= RP_SLOTS_PER_BLOCK;
    for (size_t i = 0; i < slots; i++)
        if (c->kept[i] != 0) rp_trajectory_unref_many(c->copies[i].trajectory, c->kept[i]);
}

void rp_cut_free(rp_cut *cut, bool kept)
{
    rp_allocator alloc;

    if (cut == NULL) return;
    alloc = cut->alloc;
    for (size_t i = 0; i < cut->count; i++) {
        part *p = &cut->parts[i];

        rp_mutex_lock(&p->table->mu);
        detach_locked(p, kept);
        if (rp_table_log_of(p->table) != NULL || rp_table_is_dropped(p->table))
            rp_table_unlock(p->table); /* frees the indexes if the table has become empty */
        else
            rp_mutex_unlock(&p->table->mu); /* a new log may start from the state of the cut */
        release_kept(p);
        release_slots(&alloc, p);
        for (int j = 0; j < SETS; j++) release_set(&alloc, p, j);
        (void)atomic_fetch_sub(&p->table->account.budget->cuts, 1);
        rp_table_unref(p->table);
    }
    rp_release(&alloc, cut, sizeof *cut + cut->room * sizeof(part));
}

/* Releases retired trajectories, if there are more than `few`. */
static void release_many_retired(rp_table *t, size_t few)
{
    bool many;

    rp_mutex_lock(&t->mu);
    many = t->slots.retired + t->retired_count > few;
    rp_mutex_unlock(&t->mu);
    if (many) rp_table_release_retired(t);
}

/* Tries to acquire all locks, number `*first` before the others, without sleeping while it
 * holds one. If a lock is not free, releases all and sets `*first` to its number. */
static bool try_lock_all(const rp_cut *cut, size_t *first,
                         int64_t *since_ns) RP_NO_THREAD_SAFETY_ANALYSIS
{
    size_t had = 0;

    rp_mutex_lock(&cut->parts[*first].table->mu);
    *since_ns = rp_now_ns();
    for (; had < cut->count; had++)
        if (had != *first && !rp_mutex_try_lock_beside(&cut->parts[had].table->mu)) break;
    if (had == cut->count) return true;
    for (size_t i = had; i-- > 0;)
        if (i != *first) rp_mutex_unlock(&cut->parts[i].table->mu);
    rp_mutex_unlock(&cut->parts[*first].table->mu);
    *first = had;
    return false;
}

/* Acquires all locks. Holds no lock while it waits for another, unless that has failed
 * LOCK_TRIES times. Returns the time at which it acquired the first. */
static int64_t lock_all(const rp_cut *cut) RP_NO_THREAD_SAFETY_ANALYSIS
{
    size_t first = 0;
    int64_t since_ns;

    if (cut->count == 0) return rp_now_ns();
    for (int try = 0; try < LOCK_TRIES; try++)
        if (try_lock_all(cut, &first, &since_ns)) return since_ns;
    rp_mutex_lock(&cut->parts[0].table->mu);
    since_ns = rp_now_ns();
    for (size_t i = 1; i < cut->count; i++) rp_mutex_lock_beside(&cut->parts[i].table->mu);
    return since_ns;
}

static void unlock_all(const rp_cut *cut) RP_NO_THREAD_SAFETY_ANALYSIS
{
    for (size_t i = cut->count; i-- > 0;) rp_mutex_unlock(&cut->parts[i].table->mu);
}

static bool fits_locked(const part *p) RP_REQUIRES(p->table->mu)
{
    const rp_table *t = p->table;

    if (t->slots.capacity > p->slot_room) return false;
    for (int i = 0; i < SETS; i++)
        if (set_of(t, i) != NULL && set_of(t, i)->capacity > p->set_room[i]) return false;
    return true;
}

static void copy_state_locked(const rp_table *t, rp_table_state *out) RP_REQUIRES(t->mu)
{
    *out = (rp_table_state){
        .options = t->options,
        .limiter = t->limiter,
        .rng = t->rng,
        .max_priority = t->max.priority,
        .updates = t->updates,
        .evictions = t->evictions,
        .unique_samples = t->unique_samples,
        .deleted_episodes = t->account.deleted_episodes,
        .next_sequence = t->slots.next_sequence,
        .next_turn = t->next_turn,
        .paused = t->paused,
        .times_altered = t->times_altered,
        .slot_capacity = t->slots.capacity,
        .slots_used = t->slots.used,
        .live = t->slots.live,
        .first_free = t->slots.first_free,
    };
    out->options.extensions = NULL;
    out->options.extension_count = 0;
    out->options.seed = 0;
}

void rp_table_get_state(rp_table *t, rp_table_state *out)
{
    rp_mutex_lock(&t->mu);
    copy_state_locked(t, out);
    for (int i = 0; i < SETS; i++) {
        const rp_dense_set *set = set_of(t, i);

        out->set_counts[i] = set != NULL ? set->count : 0;
    }
    rp_mutex_unlock(&t->mu);
}

static void attach_locked(part *p) RP_REQUIRES(p->table->mu)
{
    rp_slots *s = &p->table->slots;
    uint8_t *marks = s->marks;
    size_t mark_room = s->mark_room;

    assert(p->table->being_cut && s->cut == NULL && s->retired == 0);
    copy_state_locked(p->table, &p->state);
    s->marks = p->marks;
    s->mark_room = p->mark_room;
    p->marks = marks;
    p->mark_room = mark_room;
    p->slots.block_count = block_count(s->used, RP_SLOTS_PER_BLOCK);
    p->slots.next_sequence = s->next_sequence;
    s->cut = &p->slots;
    for (int i = 0; i < SETS; i++) {
        rp_dense_set *set = set_of(p->table, i);

        if (set == NULL) continue;
        p->state.set_counts[i] = p->sets[i].count = set->count;
        set->cut = &p->sets[i];
    }
}

/* Takes the cut of all tables, or of none. Returns RP_PRECONDITION if the caller should try
 * again: a table has grown or, with `patient`, has many retired slots to reclaim under the
 * locks. */
static rp_status take_locked(rp_cut *cut, bool patient) RP_NO_THREAD_SAFETY_ANALYSIS
{
    for (size_t i = 0; i < cut->count; i++) {
        const part *p = &cut->parts[i];

        if (!fits_locked(p)) return RP_PRECONDITION;
        if (patient && p->table->slots.retired > FEW_RETIRED) return RP_PRECONDITION;
    }
    for (size_t i = 0; i < cut->count; i++)
        if (rp_table_reclaim_locked(cut->parts[i].table) != RP_OK) return RP_NO_RESOURCE;
    for (size_t i = 0; i < cut->count; i++) attach_locked(&cut->parts[i]);
    return RP_OK;
}

rp_status rp_cut_take(rp_cut *cut, void (*at_cut)(void *ctx), void *ctx, int64_t *held_ns,
                      rp_error *err) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_status st = RP_PRECONDITION;

    if (cut->taken) return rp_fail(err, RP_PRECONDITION, "the cut has been taken already");
    for (int try = 0; st == RP_PRECONDITION && try < MAX_TRIES; try++) {
        int64_t since_ns;

        for (size_t i = 0; i < cut->count; i++) {
            st = prepare(&cut->alloc, &cut->parts[i], err);
            if (st != RP_OK) return st;
            release_many_retired(cut->parts[i].table, FEW_RETIRED);
        }
        since_ns = lock_all(cut);
        st = take_locked(cut, try < MAX_TRIES - 1);
        if (st == RP_OK && at_cut != NULL) at_cut(ctx);
        unlock_all(cut);
        if (held_ns != NULL) *held_ns = rp_now_ns() - since_ns;
        for (size_t i = 0; i < cut->count; i++) release_many_retired(cut->parts[i].table, 0);
    }
    cut->taken = st == RP_OK;
    if (st == RP_OK) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE, "%s",
                   st == RP_PRECONDITION ? "tables grow faster than a cut of them can be taken"
                                         : "out of memory for a cut");
}

const rp_table_state *rp_cut_state(const rp_cut *cut, size_t table)
{
    assert(cut->taken && table < cut->count);
    return &cut->parts[table].state;
}

size_t rp_cut_block_count(const rp_cut *cut, size_t table)
{
    assert(table < cut->count);
    return cut->parts[table].slots.block_count;
}

size_t rp_cut_saved_blocks(const rp_cut *cut)
{
    size_t count = 0;

    /* Relaxed: an estimate that guards no data. */
    for (size_t i = 0; i < cut->count; i++)
        count += atomic_load_explicit(&cut->parts[i].slots.copy_count, memory_order_relaxed);
    return count;
}

bool rp_cut_block_changed(const rp_cut *cut, size_t table, size_t block)
{
    assert(table < cut->count && block < cut->parts[table].slots.block_count);
    return cut->parts[table].marks[block] != 0;
}

/* Acquires the copy from the thread that saved it. */
static bool is_saved(const atomic_uchar *saved, size_t block)
{
    return atomic_load_explicit(&saved[block], memory_order_acquire) != 0;
}

/* The reader populates memory for threads that save blocks under the table's lock. */
static void help_writers(part *p)
{
    size_t made = atomic_load_explicit(&p->slots.copy_count, memory_order_relaxed);

    if (made + MORE_COPIES > atomic_load_explicit(&p->touched, memory_order_relaxed))
        touch_ahead(p, MORE_COPIES);
}

void rp_cut_read_block(rp_cut *cut, size_t table, size_t block, rp_slot out[RP_SLOTS_PER_BLOCK])
{
    part *p = &cut->parts[table];
    rp_table *t = p->table;
    size_t copy = rp_slots_copy_of(&p->slots, block), bytes = RP_SLOTS_PER_BLOCK * sizeof *out;

    assert(block < p->slots.block_count && !p->slots.done[block]);
    if (copy == RP_NOT_SAVED) {
        rp_mutex_lock(&t->mu);
        copy = rp_slots_copy_of(&p->slots, block);
        if (copy == RP_NOT_SAVED) memcpy(out, t->slots.blocks[block], bytes);
        rp_mutex_unlock_and_pause(&t->mu);
    }
    if (copy != RP_NOT_SAVED) memcpy(out, p->slots.copies + copy, bytes);
    help_writers(p);
}

void rp_cut_release_block(rp_cut *cut, size_t table, size_t block)
{
    part *p = &cut->parts[table];
    rp_retired gone[RP_SLOTS_PER_BLOCK];
    size_t count;

    rp_mutex_lock(&p->table->mu);
    count = rp_slots_release_block(&p->slots, block, gone);
    rp_mutex_unlock(&p->table->mu);
    for (size_t i = 0; i < count; i++)
        rp_trajectory_unref_many(gone[i].trajectory, gone[i].references);
}

/* Reads part of one block of a set. */
static void read_set_block(part *p, int which, size_t from, size_t count, uint32_t *out)
{
    rp_table *t = p->table;
    const rp_dense_cut *set = &p->sets[which];
    size_t block = from / RP_DENSE_BLOCK;

    if (is_saved(set->saved, block)) {
        memcpy(out, set->copies + from, count * sizeof *out);
        return;
    }
    rp_mutex_lock(&t->mu);
    memcpy(out, (is_saved(set->saved, block) ? set->copies : set_of(t, which)->slots) + from,
           count * sizeof *out);
    rp_mutex_unlock_and_pause(&t->mu);
}

void rp_cut_read_set(rp_cut *cut, size_t table, int which, size_t from, size_t count,
                     uint32_t *out)
{
    while (count > 0) {
        size_t n = RP_DENSE_BLOCK - from % RP_DENSE_BLOCK;

        if (n > count) n = count;
        read_set_block(&cut->parts[table], which, from, n, out);
        from += n, out += n, count -= n;
    }
}
