/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a table, which stores items for sampling. It is shared by the files that
 * implement tables:
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
 *     digest.c         a hash of the state */
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
    RP_BLOCK = 256,          /* the most items processed per acquisition of the lock */
    RP_BLOCK_CHUNKS = 16384, /* the most chunks of these items; one item alone may have more */
    RP_MAX_BATCH = 1 << 20,  /* the most items in one call */
    RP_EVENTS_AT_ONCE = 256, /* the most events in one call of an atomic extension */
    /* If so many events are pending, inserts and samples wait. */
    RP_MAX_DEFERRED_EVENTS = 1 << 16
};

/* A queue of parked operations, inserts or samples that wait (op.h). The sums of times are
 * modulo 2^64, so a sum may wrap, but differences of sums are right. */
typedef struct rp_queue {
    rp_op *first, *last;
    size_t count;        /* including those behind another operation (rp_op.after) */
    size_t behind;       /* parked operations that wait behind another operation */
    int64_t parked;      /* number of operations ever parked */
    int64_t numbers;     /* the next rp_op.number, which an operation gets at the end of the
                            queue */
    uint64_t started_ns; /* sum of the start times of the operations in the queue */
    uint64_t waited_ns;  /* sum of the waiting times of operations that have left the queue */
} rp_queue;

/* The extensions of a table, and the events to deliver to them (events.c). */
typedef struct rp_events {
    rp_extension *extensions;
    size_t count;
    bool has_atomic, has_deferred;
    bool delivering; /* a thread is calling deferred extensions */
    bool muted;      /* new events are discarded, as during a redo */
    size_t atomic_count;
    rp_event atomic[RP_EVENTS_AT_ONCE]; /* events to deliver; their trajectories are borrowed */
    rp_event *deferred; /* events to deliver; they own references to their trajectories */
    size_t deferred_count, deferred_capacity;
    /* Second buffer: the thread that delivers exchanges it with `deferred`. */
    rp_event *delivered;
    size_t delivered_capacity;
} rp_events;

/* A priority, and its values in the two selectors (selector/selector.h): its weight in a
 * prioritized selector, the priority itself in others. */
typedef struct rp_weighed {
    double priority;
    double sampler_value, remover_value;
} rp_weighed;

struct rp_table {
    rp_refcount refs; /* of the store, and of callers that found the table */
    /* Constant after creation: read without a lock. */
    rp_allocator alloc;
    /* Owns the name and the signature. max_size, max_bytes, max_times_sampled and limiter can
     * be altered, so mu guards them. */
    rp_table_options options;
    rp_weighed one; /* the values of priority 1, which is the initial `max` */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;

    /* Links in the budget's queue of tables that wait for bytes. budget.mu guards them. */
    rp_table *prev_waiter, *next_waiter;
    uint64_t retried_for; /* budget.frees at the last retry (invariant A7 in account.h) */

    atomic_bool dropped; /* if set, the table is closed and has no items. Written under mu */

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
    rp_op *finished RP_GUARDED_BY(mu); /* list of the complete operations whose on_done must be
                                          called, linked by `next` */
    rp_op *finished_last RP_GUARDED_BY(mu);
    bool calling_back RP_GUARDED_BY(mu); /* a thread is calling on_done functions */
    uint32_t *picked RP_GUARDED_BY(mu);  /* scratch buffer for draws */
    double *picked_probability RP_GUARDED_BY(mu);
    size_t picked_capacity RP_GUARDED_BY(mu);
    rp_weighed max RP_GUARDED_BY(mu);     /* the largest priority so far */
    uint64_t next_turn RP_GUARDED_BY(mu); /* number of priorities ever set */
    /* Trajectories of reclaimed slots, to be released without the lock. */
    rp_retired *retired RP_GUARDED_BY(mu);
    size_t retired_count RP_GUARDED_BY(mu), retired_capacity RP_GUARDED_BY(mu);
    /* Number of chunk references of the items removed since an operation last set this field to
     * 0. If the number exceeds RP_BLOCK_CHUNKS, the operation releases the lock for a moment,
     * so that other threads can acquire it. */
    size_t removed_chunks RP_GUARDED_BY(mu);
    /* Some parked operations can possibly proceed. The thread that set this releases the lock
     * for a moment and then runs them. */
    bool pump_again RP_GUARDED_BY(mu);
    /* Set by a restore, cleared by rp_table_set_log(). While it is set, slot numbers restart
     * from 0 only when an RP_LOGGED_RENUMBER record (log_record.h) is redone. */
    bool keeps_numbers RP_GUARDED_BY(mu);
    bool being_cut RP_GUARDED_BY(mu); /* an rp_cut includes the table */
    int64_t updates RP_GUARDED_BY(mu);
    int64_t evictions RP_GUARDED_BY(mu);
    int64_t unique_samples RP_GUARDED_BY(mu);
    bool waits_for_bytes RP_GUARDED_BY(mu); /* the first parked insert waits for bytes, and the
                                               table is in the budget's queue */
    bool times_altered RP_GUARDED_BY(mu); /* max_times_sampled was altered: items were possibly
                                             sampled more often than it permits */
    uint32_t paused RP_GUARDED_BY(mu);    /* the sides that are paused, bits RP_SIDE_... */
    bool closed RP_GUARDED_BY(mu);
};

/* What a new table gets from its store. */
typedef struct rp_table_env {
    rp_budget *budget; /* the table adds a reference */
    uint16_t id;   /* id of the table in the store, >= 1. Reused after the table is dropped */
    uint64_t seed; /* seed of the random generator if the options have no seed */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
} rp_table_env;

/* Makes a table for a store. The caller owns the table. As with rp_store_add_table(), on
 * success the table owns the extensions of `options`. */
RP_NODISCARD rp_status rp_table_new(const rp_allocator *alloc, const rp_table_options *options,
                                    const rp_table_env *env, rp_table **out, rp_error *err);

/* Returns true if every invariant of the table holds. Takes time proportional to the size of
 * the table. */
bool rp_table_check(rp_table *t);

/* Returns the id of the table in its store (rp_table_env.id), which is constant. */
static inline uint16_t rp_table_id(const rp_table *t) RP_NO_THREAD_SAFETY_ANALYSIS
{
    return t->account.id;
}

/* Closes the table, removes all items, so that the budget no longer counts their bytes, and
 * frees the indexes. If a cut of the table is open, the indexes are freed when the cut ends.
 * The last reference frees the remaining memory, whose size does not depend on the number of
 * items. May be called more than once. */
void rp_table_drop(rp_table *t);
static inline bool rp_table_is_dropped(const rp_table *t)
{
    return atomic_load_explicit(&t->dropped, memory_order_acquire);
}

/* Writes an error of a selector to `err`: the name of the table, `role` ("sampler" or
 * "remover"), and the text of `why`, the error that the selector has returned. Returns `st`. */
rp_status rp_table_name_selector(const rp_table *t, const char *role, rp_status st,
                                 const rp_error *why, rp_error *err);
/* Computes the values of a priority in both selectors. Needs no lock. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_table_weigh(const rp_table *t, double priority, rp_weighed *out,
                                      rp_error *err);

/* Checks options. Returns RP_INVALID, with a text that names the option, the value and the
 * bound, if one is out of range. */
RP_NODISCARD rp_status rp_table_check_options(const rp_table_options *o, rp_error *err);

/* Returns the slot of a key, or RP_MAP_NONE if the table has no such key. `tag` is the tag of
 * the key in the map. */
uint32_t rp_table_find_locked(const rp_table *t, uint64_t key, uint32_t tag) RP_REQUIRES(t->mu);

/* Raises t->max if the priority is larger. */
void rp_table_update_max_locked(rp_table *t, const rp_weighed *weighed) RP_REQUIRES(t->mu);

void rp_table_set_priority_locked(rp_table *t, uint32_t slot, const rp_weighed *weighed)
    RP_REQUIRES(t->mu);

/* Removes an item: retires its slot (slots.h). The table's account (account.h) counts the
 * item's bytes until rp_table_count_out_locked() removes them. */
void rp_table_remove_locked(rp_table *t, uint32_t slot) RP_REQUIRES(t->mu);

/* Removes the next `count` retired items from the account, in the order in which they were
 * retired. */
void rp_table_count_out_locked(rp_table *t, size_t count) RP_REQUIRES(t->mu);

/* Reclaims all retired slots (slots.h). Must be called before slots are taken, so that slot
 * numbers depend only on the sequence of operations and not on when threads release
 * trajectories. On RP_NO_RESOURCE nothing has changed. */
RP_NODISCARD rp_status rp_table_reclaim_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Returns the number of slots without an item, whose index memory the budget counts as idle
 * (account.h). Returns 0 for a dropped table. */
size_t rp_table_spare_locked(const rp_table *t) RP_REQUIRES(t->mu);

/* The indexes of a table, detached from the table, so that they can be freed without its lock.
 */
typedef struct rp_indexes {
    rp_slots slots;
    rp_map keys;
    rp_allocator alloc;
    uint32_t *picked; /* this and the next two fields: scratch buffers for draws */
    double *picked_probability;
    size_t picked_capacity;
} rp_indexes;

/* Moves the indexes of a table to `*spent`. The table must have no live or retired slots and no
 * open cut. Slot numbers restart from 0, so the caller must log an RP_LOGGED_RENUMBER record.
 */
void rp_table_empty_indexes_locked(rp_table *t, rp_indexes *spent) RP_REQUIRES(t->mu);
void rp_indexes_free(rp_indexes *spent);

/* Evicts the item that the remover picks. The table must not be empty. */
void rp_table_evict_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Returns the bytes of memory that evicting all items would release. In a store with a disk
 * tier (spill.h), these are only the bytes that never go to disk. */
uint64_t rp_table_memory(rp_table *t) RP_EXCLUDES(t->mu);
/* Evicts items until the bytes that rp_table_memory() counts have shrunk by `bytes`, but at
 * most RP_BLOCK items. Returns the number of evicted items. */
size_t rp_table_evict_bytes(rp_table *t, uint64_t bytes) RP_EXCLUDES(t->mu);

/* Fails with RP_CANCELLED and a text that says whether the table is closed or dropped. */
rp_status rp_table_refuse_closed(const rp_table *t, rp_error *err);

/* Returns true if the invariants T1, T2, T4, T5 and T7 of table.c hold. */
bool rp_table_check_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Releases the lock after a change. Before the release, delivers events to atomic extensions
 * and resumes parked operations that can now proceed. After the release, releases retired
 * trajectories, calls on_done of completed operations, delivers events to deferred extensions,
 * and retries tables that wait for bytes. */
void rp_table_unlock(rp_table *t) RP_RELEASE(t->mu);

/* Releases retired trajectories and does nothing else. Calls no callback, so the caller may
 * hold locks of a lower rank. */
void rp_table_release_retired(rp_table *t) RP_EXCLUDES(t->mu);

/* Retries the parked inserts of the tables that wait for bytes. Called after bytes were freed,
 * with no lock held. Retries each table once, beginning with the table whose last try is
 * longest ago. */
void rp_budget_wake_waiters(rp_budget *b);
/* Bounds the number of tables that a thread retries when it frees bytes. Without a bound, a
 * client could make a server thread retry thousands of waiting tables by deleting one item.
 * After a few tables, the thread calls `on_more`, which must cause a later call of
 * rp_budget_retry() for the next few tables. `on_more` is called with a lock held, and must not
 * block or call the library. If `on_more` is NULL, removes the function that was set with the
 * same `user`. While no function is set, all tables are retried at once. */
void rp_budget_retry_later(rp_budget *b, void (*on_more)(void *user), void *user);
/* Retries the next tables after a call of `on_more`. Must be called with no lock held. */
void rp_budget_retry(rp_budget *b);
/* Sets the number of bytes that are lost to fragmentation. If the number has decreased, retries
 * the tables that wait for bytes. Must be called by one thread at a time, with no lock held. */
void rp_budget_set_lost(rp_budget *b, uint64_t bytes);

/* Add the table to the budget's queue of tables that wait for bytes, or remove it from the
 * queue. */
void rp_table_wait_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu);
void rp_table_stop_waiting_for_bytes_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Runs parked operations as far as possible. */
void rp_table_pump_locked(rp_table *t) RP_REQUIRES(t->mu);

/* Completes every parked operation of a closed table with RP_CANCELLED. `text` becomes part of
 * the error text and names the reason, for example "was dropped". After every RP_BLOCK
 * operations, releases and reacquires the lock. */
void rp_table_end_parked_locked(rp_table *t, const char *text) RP_REQUIRES(t->mu);

/* Does the last steps of a completed operation, which need no lock. */
void rp_op_finish(rp_op *op);

RP_NODISCARD rp_status rp_events_init(rp_events *e, const rp_allocator *alloc,
                                      const rp_extension *extensions, size_t count,
                                      rp_error *err);
/* Frees the events. If `owns`, also frees the extensions. */
void rp_events_deinit(rp_events *e, const rp_allocator *alloc, bool owns);

/* Makes room for `more` events. On RP_NO_RESOURCE nothing has changed. */
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
/* Returns true if so many events are pending for deferred extensions that operations must wait.
 * Returns false on a thread that is running a deferred extension, since that thread would wait
 * for itself. */
bool rp_events_is_behind_locked(const rp_table *t) RP_REQUIRES(t->mu);
/* Delivers pending events to deferred extensions. Does nothing if another thread is delivering
 * them. */
void rp_events_deliver(rp_table *t) RP_EXCLUDES(t->mu);

#endif
