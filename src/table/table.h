/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a table, shared by the files that implement it:
 *
 *   table.c       birth and death, changing one item, the calls by key
 *   whole.c       the calls about the whole table
 *   cut.c         the state of tables at one instant, while they go on
 *   restore.c     a table from such a state
 *   digest.c      a hash over all that decides later results
 *   alter.c       changing its options, pausing it
 *   leave.c       leaving the lock
 *   operation.c   inserts and samples: start, park, resume, end
 *   insert.c      how items go in
 *   draw.c        how samples are drawn
 *   blocking.c    threads that wait for an operation
 *   load.c        samples that come from disk
 *   events.c      telling extensions
 *   table_log.c   telling the log
 *   replay.c      making again what a log was told
 */
#ifndef RP_TABLE_TABLE_H
#define RP_TABLE_TABLE_H

#include "reprise/op.h"
#include "reprise/table.h"
#include "table/account.h"
#include "table/change.h"
#include "table/rate_limiter.h"
#include "table/selector/selector.h"
#include "table/slots.h"
#include "util/map.h"
#include "util/mutex.h"

enum {
    RP_BLOCK = 256,                  /* items dealt with under one lock */
    RP_BLOCK_CHUNKS = 16384,         /* chunks of theirs, unless one item alone has more */
    RP_MAX_BATCH = 1 << 20,          /* items in one call */
    RP_EVENTS_AT_ONCE = 256,         /* handed to an atomic extension in one call */
    RP_MAX_DEFERRED_EVENTS = 1 << 16 /* then inserts and samples wait for deferred extensions */
};

/* Parked operations, and for how long. Times are sums modulo 2^64: they may wrap on the way,
 * but their differences are right. */
typedef struct rp_queue {
    rp_op *first, *last;
    size_t count;
    int64_t parked;      /* ever */
    uint64_t started_ns; /* sum over those in the queue of when they were parked */
    uint64_t waited_ns;  /* by those that have left it */
} rp_queue;

/* Events on their way to the extensions (events.c). */
typedef struct rp_events {
    rp_extension *extensions;
    size_t count;
    bool has_atomic, has_deferred;
    bool delivering; /* a thread is calling deferred extensions */
    bool muted;      /* nothing is told: what happens has happened before */
    size_t atomic_count;
    rp_event atomic[RP_EVENTS_AT_ONCE]; /* not yet told; trajectories borrowed */
    rp_event *deferred;                 /* not yet told; trajectories owned */
    size_t deferred_count, deferred_capacity;
    rp_event *delivered; /* the other buffer, in the hands of the delivering thread */
    size_t delivered_capacity;
} rp_events;

/* A priority as both selectors see it. */
typedef struct rp_weighed {
    double priority;
    double sampler_value, remover_value;
} rp_weighed;

struct rp_table {
    rp_refcount refs; /* the store's, and those of whoever found it */
    /* fixed at birth: no lock */
    rp_allocator alloc;
    rp_table_options options; /* name and signature are ours. max_size, max_bytes,
                                 max_times_sampled and limiter can be altered: guarded by mu */
    rp_weighed one;           /* the least that the largest priority can be */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;

    rp_table *prev_waiter, *next_waiter; /* in the budget's line; guarded by its lock */
    atomic_bool dropped; /* closed too, and for good without items. Set under mu */

    rp_mutex mu; /* rank 30 */
    rp_selector *sampler RP_GUARDED_BY(mu);
    rp_selector *remover RP_GUARDED_BY(mu);
    rp_rate_limiter limiter RP_GUARDED_BY(mu);
    rp_rng rng RP_GUARDED_BY(mu);
    rp_map keys RP_GUARDED_BY(mu); /* key -> slot */
    rp_slots slots RP_GUARDED_BY(mu);
    rp_account account RP_GUARDED_BY(mu);
    rp_events events RP_GUARDED_BY(mu);
    rp_telling telling;                 /* `log` is atomic; the rest is guarded by mu */
    rp_queue inserts RP_GUARDED_BY(mu); /* parked, first come first served */
    rp_queue samples RP_GUARDED_BY(mu);
    rp_op *finished RP_GUARDED_BY(mu); /* operations to be told that they are over, by `next` */
    rp_op *finished_last RP_GUARDED_BY(mu);
    bool calling_back RP_GUARDED_BY(mu); /* a thread is telling them */
    uint32_t *picked RP_GUARDED_BY(mu);  /* scratch for draws */
    double *picked_probability RP_GUARDED_BY(mu);
    size_t picked_capacity RP_GUARDED_BY(mu);
    rp_weighed max RP_GUARDED_BY(mu);     /* the largest priority so far */
    uint64_t next_turn RP_GUARDED_BY(mu); /* raised with every priority that is set, as heaps do
                                             with theirs; never goes back */
    rp_remains *grave RP_GUARDED_BY(mu);  /* exhumed, and to be let go without the lock */
    size_t grave_count RP_GUARDED_BY(mu), grave_capacity RP_GUARDED_BY(mu);
    /* Chunk references of the items removed since the lock was taken, by whoever counts them.
     * What removes many stops past RP_BLOCK_CHUNKS, so that others get a turn. */
    size_t removed_chunks RP_GUARDED_BY(mu);
    bool pump_again RP_GUARDED_BY(mu); /* parked operations may go on, once others had a turn */
    bool keeps_numbers RP_GUARDED_BY(mu); /* slots are not numbered from 0 again: a journal that
                                             is to be redone knows nothing of it */
    bool being_cut RP_GUARDED_BY(mu);     /* there is an rp_cut of it */
    int64_t updates RP_GUARDED_BY(mu);
    int64_t evictions RP_GUARDED_BY(mu);
    int64_t unique_samples RP_GUARDED_BY(mu);
    bool waits_for_bytes RP_GUARDED_BY(mu); /* the first insert in line does: the table stands
                                               in the budget's line */
    bool times_altered RP_GUARDED_BY(mu);   /* items may have passed max_times_sampled before */
    uint32_t paused RP_GUARDED_BY(mu);      /* RP_SIDE_... */
    bool closed RP_GUARDED_BY(mu);
};

/* What the store hands a new table besides its options. */
typedef struct rp_table_birth {
    rp_budget *budget; /* the table takes a reference */
    uint16_t id;       /* its number in the store, from 1; free again once it is dropped */
    uint64_t seed;     /* used unless the options have one */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
} rp_table_birth;

/* For the store. `options` as in reprise/store.h: on success the table owns the extensions.
 * Returns owned. */
RP_NODISCARD rp_status rp_table_new(const rp_allocator *alloc, const rp_table_options *options,
                                    const rp_table_birth *birth, rp_table **out, rp_error *err);

/* Closes the table for good and removes all items: their bytes leave the budget, and the
 * indexes are freed, after an open cut if there is one. What little memory is left goes with
 * the last reference. May be called again. */
void rp_table_drop(rp_table *t);
static inline bool rp_table_is_dropped(const rp_table *t)
{
    return atomic_load_explicit(&t->dropped, memory_order_acquire);
}

/* Pure: needs no lock. RP_INVALID. */
RP_NODISCARD rp_status rp_table_weigh(const rp_table *t, double priority, rp_weighed *out,
                                      rp_error *err);

/* RP_INVALID, naming the option, the value and the bound. */
RP_NODISCARD rp_status rp_table_check_options(const rp_table_options *o, rp_error *err);

/* The slot of a key, or RP_MAP_NONE. */
uint32_t rp_table_find_locked(const rp_table *t, uint64_t key, uint32_t tag) RP_REQUIRES(t->mu);

/* Remembers the largest priority. */
void rp_table_note_priority_locked(rp_table *t, const rp_weighed *weighed) RP_REQUIRES(t->mu);

void rp_table_set_priority_locked(rp_table *t, uint32_t slot, const rp_weighed *weighed)
    RP_REQUIRES(t->mu);

/* Takes an item out: it is dead until the lock is left, and its bytes count until
 * rp_table_count_out_locked(). */
void rp_table_remove_locked(rp_table *t, uint32_t slot) RP_REQUIRES(t->mu);

/* Takes the first `count` of the dead that still count out of the account. */
void rp_table_count_out_locked(rp_table *t, size_t count) RP_REQUIRES(t->mu);

/* Exhumes all dead slots. Before slots are taken, so that those of whatever was removed earlier
 * can be: then two tables to which the same happens give the same slots to the same items,
 * whichever threads let go of what when. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_table_exhume_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Slots without an item that the budget is charged for. A dropped table is charged for none:
 * their memory is about to go. */
size_t rp_table_spare_locked(const rp_table *t) RP_REQUIRES(t->mu);

/* Memory of the indexes of a table, taken out of it to be freed without its lock. */
typedef struct rp_indexes {
    rp_slots slots;
    rp_map keys;
    rp_allocator alloc;
    uint32_t *picked; /* and the scratch of draws */
    double *picked_probability;
    size_t picked_capacity;
} rp_indexes;

/* Moves the memory of the indexes of a table without live and dead slots, and without an open
 * cut, to `*spent`. Slots are numbered from 0 again: the log has to be told. */
void rp_table_empty_indexes_locked(rp_table *t, rp_indexes *spent) RP_REQUIRES(t->mu);
void rp_indexes_free(rp_indexes *spent);

/* Takes out what the remover picks. The table must not be empty. */
void rp_table_evict_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Bytes that evicting all items would release from memory: with a disk tier those that never go
 * to disk. */
uint64_t rp_table_memory(rp_table *t) RP_EXCLUDES(t->mu);
/* Evicts items until so many of them are released, or a block of items. Returns how many. */
size_t rp_table_evict_bytes(rp_table *t, uint64_t bytes) RP_EXCLUDES(t->mu);

/* RP_CANCELLED, with a sentence. */
rp_status rp_table_refuse_closed(const rp_table *t, rp_error *err);

/* Leaves the lock after a change: tells atomic extensions, resumes parked operations that have
 * become possible, unlocks; then, without the lock, lets go of what died, calls back what is
 * over, tells deferred extensions and wakes tables that wait for bytes. */
void rp_table_leave(rp_table *t) RP_RELEASE(t->mu);

/* Lets go of what died, and does nothing else: nobody is called back, so locks of a lower rank
 * may be held. */
void rp_table_let_go(rp_table *t) RP_EXCLUDES(t->mu);

/* Gives tables that wait for bytes another try. With no lock held. */
void rp_budget_wake_waiters(rp_budget *b);
/* Says how much memory is lost to the budget. If that is less than before, gives tables that
 * wait for bytes another try. One thread at a time, with no lock held. */
void rp_budget_set_lost(rp_budget *b, uint64_t bytes);

/* The first insert in line waits for bytes, or nobody does any more. */
void rp_table_wait_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu);
void rp_table_stop_waiting_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Runs parked operations as far as they get. */
void rp_table_pump_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Ends every parked operation of a closed table with RP_CANCELLED; `text` says what was done to
 * the table. Leaves the lock and takes it again after each RP_BLOCK of them. */
void rp_table_end_parked_locked(rp_table *t, const char *text) RP_REQUIRES(t->mu);

/* What is left to do for an operation that is over, without a lock. */
void rp_op_finish(rp_op *op);

RP_NODISCARD rp_status rp_events_init(rp_events *e, const rp_allocator *alloc,
                                      const rp_extension *extensions, size_t count,
                                      rp_error *err);
/* Frees the extensions too if `owns`. */
void rp_events_deinit(rp_events *e, const rp_allocator *alloc, bool owns);

/* Room for `more` events. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_events_reserve_locked(rp_table *t, size_t more) RP_REQUIRES(t->mu);
void rp_events_tell_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
    RP_REQUIRES(t->mu);
static inline void rp_events_add_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
    RP_REQUIRES(t->mu);
static inline void rp_events_add_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
{
    if (t->events.count > 0) rp_events_tell_locked(t, kind, slot);
}
/* Tells atomic extensions what they have not been told. */
void rp_events_flush_locked(rp_table *t) RP_REQUIRES(t->mu);
/* True if deferred extensions have so much to catch up with that operations wait; but not those
 * that an extension starts itself, for it would wait for itself. */
bool rp_events_is_behind_locked(const rp_table *t) RP_REQUIRES(t->mu);
/* Tells deferred extensions, unless another thread is at it. */
void rp_events_deliver(rp_table *t) RP_EXCLUDES(t->mu);

#endif
