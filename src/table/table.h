/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a table, shared by the files that implement it:
 *
 *   table.c          creation, destruction, changes to single items
 *   by_key.c         update, delete, peek
 *   table_admin.c    trim, reset, close, drop, information, rp_table_check()
 *   alter.c          changes to the options of a table in use, pause
 *   events.c         events for extensions
 *   table_log.c      log records for the journal
 *   operation/       inserts and samples
 *     operation.c      start, park, resume, complete
 *     insert.c         inserting items
 *     draw.c           drawing samples
 *     blocking.c       calls that block
 *     load.c           reading samples from disk
 *     table_unlock.c   releasing the lock after a change
 *   snapshot/        the state of a table
 *     cut.c            copying the state of tables at one instant, while they are in use
 *     restore.c        making a table from a state
 *     reselect.c       giving a table other selectors
 *     redo.c           repeating logged changes
 *     digest.c         a hash of the state
 */
#ifndef RP_TABLE_TABLE_H
#define RP_TABLE_TABLE_H

#include "reprise/table.h"
#include "table/account.h"
#include "table/log_record.h"
#include "table/op.h"
#include "table/rate_limiter.h"
#include "table/selector/selector.h"
#include "table/slots.h"
#include "util/map.h"
#include "util/mutex.h"

enum {
    RP_BLOCK = 256,                  /* items processed per acquisition of the lock */
    RP_BLOCK_CHUNKS = 16384,         /* chunks of these items, unless a single item has more */
    RP_MAX_BATCH = 1 << 20,          /* items in one call */
    RP_EVENTS_AT_ONCE = 256,         /* events passed to an atomic extension in one call */
    RP_MAX_DEFERRED_EVENTS = 1 << 16 /* with this many pending, inserts and samples wait */
};

/* A queue of parked operations. Times are sums modulo 2^64: intermediate values may wrap, but
 * differences are right. */
typedef struct rp_queue {
    rp_op *first, *last;
    size_t count;        /* with those that wait behind another (op.h, `after`) */
    size_t behind;       /* of these, the ones behind another */
    int64_t parked;      /* operations ever parked */
    int64_t numbers;     /* the next op.number: one for each move to the end of the queue */
    uint64_t started_ns; /* sum of the start times of the operations in the queue */
    uint64_t waited_ns;  /* sum of the waiting times of operations that have left it */
} rp_queue;

/* Events for the extensions (events.c). */
typedef struct rp_events {
    rp_extension *extensions;
    size_t count;
    bool has_atomic, has_deferred;
    bool delivering; /* a thread is calling deferred extensions */
    bool muted;      /* events are discarded, during a redo */
    size_t atomic_count;
    rp_event atomic[RP_EVENTS_AT_ONCE]; /* to be delivered; trajectories borrowed */
    rp_event *deferred;                 /* to be delivered; trajectories owned */
    size_t deferred_count, deferred_capacity;
    rp_event *delivered; /* the second buffer, used by the delivering thread */
    size_t delivered_capacity;
} rp_events;

/* A priority, and its values in the two selectors: its weight in a prioritized one, the
 * priority itself in others. */
typedef struct rp_weighed {
    double priority;
    double sampler_value, remover_value;
} rp_weighed;

struct rp_table {
    rp_refcount refs; /* held by the store, and by callers that found the table in it */
    /* constant after creation: no lock */
    rp_allocator alloc;
    rp_table_options options; /* name and signature are owned. max_size, max_bytes,
                                 max_times_sampled and limiter can be altered: guarded by mu */
    rp_weighed one;           /* priority 1: the initial value of `max` */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;

    /* In the budget's queue of tables that wait for bytes; guarded by budget.mu. */
    rp_table *prev_waiter, *next_waiter;
    uint64_t retried_for; /* budget.frees when the table was last retried (A7 in account.h) */

    atomic_bool dropped; /* implies `closed`, and that no items are left. Set under mu */

    rp_mutex mu; /* rank 30 */
    rp_selector *sampler RP_GUARDED_BY(mu);
    rp_selector *remover RP_GUARDED_BY(mu);
    rp_rate_limiter limiter RP_GUARDED_BY(mu);
    rp_rng rng RP_GUARDED_BY(mu);
    rp_map keys RP_GUARDED_BY(mu); /* key -> slot */
    rp_slots slots RP_GUARDED_BY(mu);
    rp_account account RP_GUARDED_BY(mu);
    rp_events events RP_GUARDED_BY(mu);
    rp_log_buffer log_buffer;           /* `log` is atomic; the rest is guarded by mu */
    rp_queue inserts RP_GUARDED_BY(mu); /* parked operations */
    rp_queue samples RP_GUARDED_BY(mu);
    rp_op *finished RP_GUARDED_BY(mu); /* completed: on_done must be called. Linked by `next` */
    rp_op *finished_last RP_GUARDED_BY(mu);
    bool calling_back RP_GUARDED_BY(mu); /* a thread is calling on_done functions */
    uint32_t *picked RP_GUARDED_BY(mu);  /* scratch buffer for draws */
    double *picked_probability RP_GUARDED_BY(mu);
    size_t picked_capacity RP_GUARDED_BY(mu);
    rp_weighed max RP_GUARDED_BY(mu);      /* the largest priority so far */
    uint64_t next_turn RP_GUARDED_BY(mu);  /* counts the priorities set, ever */
    rp_retired *retired RP_GUARDED_BY(mu); /* of reclaimed slots: release without the lock */
    size_t retired_count RP_GUARDED_BY(mu), retired_capacity RP_GUARDED_BY(mu);
    /* Chunk references of the items removed since the operation set it to 0. Operations that
     * remove many items release the lock past RP_BLOCK_CHUNKS, so that other threads can
     * acquire it. */
    size_t removed_chunks RP_GUARDED_BY(mu);
    bool pump_again RP_GUARDED_BY(mu);    /* parked operations may proceed; the thread that set
                                             this runs them after other threads could acquire
                                             the lock */
    bool keeps_numbers RP_GUARDED_BY(mu); /* set from a restore until rp_table_set_log(): slot
                                             numbers restart from 0 only where the journal that
                                             is being redone has RP_LOGGED_RENUMBER */
    bool being_cut RP_GUARDED_BY(mu);     /* an rp_cut includes the table */
    int64_t updates RP_GUARDED_BY(mu);
    int64_t evictions RP_GUARDED_BY(mu);
    int64_t unique_samples RP_GUARDED_BY(mu);
    bool waits_for_bytes RP_GUARDED_BY(mu); /* the first parked insert waits for bytes: the
                                               table is in the budget's queue */
    bool times_altered RP_GUARDED_BY(mu);   /* max_times_sampled was altered: items may have
                                               been sampled more often than it allows */
    uint32_t paused RP_GUARDED_BY(mu);      /* RP_SIDE_... */
    bool closed RP_GUARDED_BY(mu);
};

/* The parameters of a new table that come from the store. */
typedef struct rp_table_env {
    rp_budget *budget; /* the table takes a reference */
    uint16_t id;       /* its number in the store, >= 1; reused once the table is dropped */
    uint64_t seed;     /* used unless the options have one */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
} rp_table_env;

/* Makes a table, for the store. As with rp_store_add_table(), on success the table owns the
 * extensions of `options`. Returns owned. */
RP_NODISCARD rp_status rp_table_new(const rp_allocator *alloc, const rp_table_options *options,
                                    const rp_table_env *env, rp_table **out, rp_error *err);

/* Returns true if every invariant of the table holds. Takes time proportional to its size. */
bool rp_table_check(rp_table *t);

/* The id of the table in its store (rp_table_env.id). Constant. */
static inline uint16_t rp_table_id(const rp_table *t) RP_NO_THREAD_SAFETY_ANALYSIS
{
    return t->account.id;
}

/* Closes the table, removes all items, so that the budget no longer counts their bytes, and
 * frees the indexes. If there is an open cut, the indexes are freed when it ends. The last
 * reference frees the remaining memory, which does not depend on the number of items. May be
 * called again. */
void rp_table_drop(rp_table *t);
static inline bool rp_table_is_dropped(const rp_table *t)
{
    return atomic_load_explicit(&t->dropped, memory_order_acquire);
}

/* Computes the values of a priority in both selectors. Needs no lock. RP_INVALID. */
RP_NODISCARD rp_status rp_table_weigh(const rp_table *t, double priority, rp_weighed *out,
                                      rp_error *err);

/* Checks options. RP_INVALID (names the option, the value and the bound). */
RP_NODISCARD rp_status rp_table_check_options(const rp_table_options *o, rp_error *err);

/* Returns the slot of a key, or RP_MAP_NONE. `tag` is the tag of the key in the map. */
uint32_t rp_table_find_locked(const rp_table *t, uint64_t key, uint32_t tag) RP_REQUIRES(t->mu);

/* Raises `max` if the priority is larger. */
void rp_table_update_max_locked(rp_table *t, const rp_weighed *weighed) RP_REQUIRES(t->mu);

void rp_table_set_priority_locked(rp_table *t, uint32_t slot, const rp_weighed *weighed)
    RP_REQUIRES(t->mu);

/* Removes an item: its slot is retired. The account counts its bytes until
 * rp_table_count_out_locked(). */
void rp_table_remove_locked(rp_table *t, uint32_t slot) RP_REQUIRES(t->mu);

/* Removes from the account the first `count` retired items that it still counts. */
void rp_table_count_out_locked(rp_table *t, size_t count) RP_REQUIRES(t->mu);

/* Reclaims all retired slots. Called before slots are taken, so that slot numbers depend only
 * on the sequence of operations and not on when threads release trajectories.
 * RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_table_reclaim_locked(rp_table *t) RP_REQUIRES(t->mu);

/* The number of slots without an item, whose memory the budget counts as idle. 0 for a dropped
 * table. */
size_t rp_table_spare_locked(const rp_table *t) RP_REQUIRES(t->mu);

/* The indexes of a table, detached from it to be freed without its lock. */
typedef struct rp_indexes {
    rp_slots slots;
    rp_map keys;
    rp_allocator alloc;
    uint32_t *picked; /* with the next two: scratch buffers for draws */
    double *picked_probability;
    size_t picked_capacity;
} rp_indexes;

/* Moves the indexes of a table to `*spent`. The table must have no live or retired slots and no
 * open cut. Slot numbers restart from 0: the caller logs a RP_LOGGED_RENUMBER record. */
void rp_table_empty_indexes_locked(rp_table *t, rp_indexes *spent) RP_REQUIRES(t->mu);
void rp_indexes_free(rp_indexes *spent);

/* Removes the item that the remover picks. The table must not be empty. */
void rp_table_evict_locked(rp_table *t) RP_REQUIRES(t->mu);

/* The bytes of memory that evicting all items would release. With a disk tier, only bytes that
 * never go to disk. */
uint64_t rp_table_memory(rp_table *t) RP_EXCLUDES(t->mu);
/* Evicts items until `bytes` of rp_table_memory() are released, at most a block of items.
 * Returns the number of items evicted. */
size_t rp_table_evict_bytes(rp_table *t, uint64_t bytes) RP_EXCLUDES(t->mu);

/* Fails with RP_CANCELLED and a text that says whether the table is closed or dropped. */
rp_status rp_table_refuse_closed(const rp_table *t, rp_error *err);

/* True if T1, T2, T4, T5 and T7 of table.c hold. */
bool rp_table_check_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Releases the lock after a change. Under the lock: delivers events to atomic extensions and
 * resumes parked operations that have become possible. Without it: releases retired
 * trajectories, calls on_done of completed operations, delivers events to deferred extensions
 * and retries tables that wait for bytes. */
void rp_table_unlock(rp_table *t) RP_RELEASE(t->mu);

/* Releases retired trajectories only. Calls no callback, so the caller may hold locks of a
 * lower rank. */
void rp_table_release_retired(rp_table *t) RP_EXCLUDES(t->mu);

/* Bytes were freed: retries the parked inserts of the tables that wait for bytes. Retries each
 * table once, first the one whose last try is longest ago. With no lock held. */
void rp_budget_wake_waiters(rp_budget *b);
/* Bounds the retries by the thread that frees bytes: after a few tables, `on_more` is called,
 * and has to cause a call of rp_budget_retry(), which retries as many again. Thousands of
 * tables may wait, and a peer may free bytes as often as it deletes an item. `on_more` is
 * called with a lock held and must not block or call the library. NULL removes the function if
 * it was set with the same `user`; from then on all tables are retried at once. */
void rp_budget_retry_later(rp_budget *b, void (*on_more)(void *user), void *user);
/* Continues to retry tables, after on_more. With no lock held. */
void rp_budget_retry(rp_budget *b);
/* Sets the memory that is lost to fragmentation. If it has become less, retries tables that
 * wait for bytes. One thread at a time, with no lock held. */
void rp_budget_set_lost(rp_budget *b, uint64_t bytes);

/* Adds the table to the budget's queue of tables that wait for bytes, or removes it. */
void rp_table_wait_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu);
void rp_table_stop_waiting_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Runs parked operations as far as possible. */
void rp_table_pump_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Completes every parked operation of a closed table with RP_CANCELLED. `text` says why the
 * table refuses them, for example "was dropped". Releases and reacquires the lock after each
 * RP_BLOCK of them. */
void rp_table_end_parked_locked(rp_table *t, const char *text) RP_REQUIRES(t->mu);

/* Makes the last steps of an operation that need no lock. */
void rp_op_finish(rp_op *op);

RP_NODISCARD rp_status rp_events_init(rp_events *e, const rp_allocator *alloc,
                                      const rp_extension *extensions, size_t count,
                                      rp_error *err);
/* If `owns`, frees the extensions too. */
void rp_events_deinit(rp_events *e, const rp_allocator *alloc, bool owns);

/* Makes room for `more` events. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_events_reserve_locked(rp_table *t, size_t more) RP_REQUIRES(t->mu);
void rp_events_append_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
    RP_REQUIRES(t->mu);
static inline void rp_events_add_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
    RP_REQUIRES(t->mu);
static inline void rp_events_add_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
{
    if (t->events.count > 0) rp_events_append_locked(t, kind, slot);
}
/* Delivers pending events to atomic extensions. */
void rp_events_flush_locked(rp_table *t) RP_REQUIRES(t->mu);
/* True if so many events are pending for deferred extensions that operations must wait. False
 * on a thread that is running a deferred extension, which would wait for itself. */
bool rp_events_is_behind_locked(const rp_table *t) RP_REQUIRES(t->mu);
/* Delivers pending events to deferred extensions, unless another thread does. */
void rp_events_deliver(rp_table *t) RP_EXCLUDES(t->mu);

#endif
