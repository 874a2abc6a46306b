/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of a store, for the other modules of the library. A store has the
 * tables, the rollouts (rollout buffers) and the runs of one server or program
 * (reprise/store.h). */
#ifndef RP_STORE_STORE_H
#define RP_STORE_STORE_H

#include "reprise/store.h"
#include "table/account.h"
#include "table/log_record.h"
#include "util/rng.h"

enum { RP_MAX_TABLES = 4096 /* the most tables of a store, and the highest id of a table */ };

/* Returns the allocator of the store. The result is valid as long as the store exists. */
const rp_allocator *rp_store_allocator(rp_store *store);

rp_budget *rp_store_budget(rp_store *store);

/* Returns the runs that are reported to the store (runs/runs.h). Their memory has its own bound
 * and does not count against max_bytes. */
typedef struct rp_runs rp_runs;
rp_runs *rp_store_runs(rp_store *store);

/* Returns the rollouts of the store (rollouts/rollout_set.h). Their memory does not count
 * against max_bytes. All rollouts together are allowed to take a third of max_bytes. */
typedef struct rp_rollout_set rp_rollout_set;
rp_rollout_set *rp_store_rollouts(rp_store *store);

/* A callback for changes of rollout buffers that possibly let waiting operations proceed.
 * `changed` is called on the thread that made the change, while a lock is held whose rank is
 * above the ranks of the store and the buffers (util/mutex.h). So `changed` must not call the
 * store or a rollout buffer. `rollouts` is the buffer that has changed; NULL means that any
 * buffer can have changed. A caller embeds the struct in a struct of its own. */
typedef struct rp_rollouts rp_rollouts;
typedef struct rp_rollout_watch rp_rollout_watch;
struct rp_rollout_watch {
    void (*changed)(rp_rollout_watch *watch, rp_rollouts *rollouts);
    rp_rollout_watch *next; /* private */
};
void rp_store_watch_rollouts(rp_store *store, rp_rollout_watch *watch);
/* Removes a callback. When this returns, `changed` is not running, and it is not called
 * again. */
void rp_store_unwatch_rollouts(rp_store *store, rp_rollout_watch *watch);
/* Calls all callbacks. Must be called after a rollout buffer was dropped. */
void rp_store_wake_rollouts(rp_store *store);

/* Sets the journal of the rollouts (store/rollout_journal.h). NULL removes it, and waits until
 * no thread uses the previous journal. */
typedef struct rp_rollout_journal rp_rollout_journal;
void rp_store_set_rollout_journal(rp_store *store, rp_rollout_journal *journal);
/* Returns the journal, or NULL if there is none. The journal is valid until the caller calls
 * rp_store_leave_rollout_journal(). The caller must call rp_store_leave_rollout_journal() soon,
 * even if the result is NULL, since rp_store_set_rollout_journal() waits for it. */
rp_rollout_journal *rp_store_enter_rollout_journal(rp_store *store);
void rp_store_leave_rollout_journal(rp_store *store);

/* Like rp_store_find_tables(), but adds no references: each pointer is valid until its table is
 * dropped or the store is freed. */
size_t rp_store_tables(rp_store *store, rp_table **out, size_t capacity);
/* Writes the error text for a table `name` that rp_store_find_table() has not found
 * (store/no_table.h). Returns RP_NOT_FOUND. */
rp_status rp_store_no_table(rp_store *store, rp_string name, rp_error *err);

/* Draws a key: 64 random bits from the store's generator, which is seeded with the seed of the
 * store and saved by checkpoints. Any thread may call this. */
uint64_t rp_store_new_key(rp_store *store);

/* Evicts items for inserts that wait because memory is lost to fragmentation
 * (rp_budget_set_lost()). Normally, with the policy RP_BUDGET_EVICT, an insert evicts items of
 * its own table. But if its table is small or has too few bytes to evict, the insert waits for
 * this function, so that small tables do not lose items to fragmentation that large tables
 * cause. The function evicts from the largest tables until no insert waits or 1/64 of the
 * store's byte limit is evicted. Must be called with no lock held. */
void rp_store_relieve(rp_store *store);

/* Records that this store has a durable store (reprise/durable.h) in `directory`. A store can
 * have only one durable store. `directory` is borrowed until rp_store_leave_durable(). Returns
 * RP_PRECONDITION if the store has a durable store already; the error text names the directory
 * of the existing durable store. */
RP_NODISCARD rp_status rp_store_enter_durable(rp_store *store, const char *directory,
                                              rp_error *err);
void rp_store_leave_durable(rp_store *store);

/* Sets the log of all present and later tables (table/table_log.h); NULL removes the log. A
 * caller that removes the log must make sure that no thread waits for the log, and must
 * afterwards call rp_table_retry_parked() for each table. */
void rp_store_set_log(rp_store *store, rp_table_log *log);

/* Do the same as rp_store_add_table() and rp_store_drop_table(), but do not wait until the
 * change is durable. The name of the table need not be UTF-8. The change is durable once all
 * records of the log up to the log sequence number `*lsn` are durable. `*lsn` is 0 if there is
 * no log. */
RP_NODISCARD rp_status rp_store_add_table_logged(rp_store *store,
                                                 const rp_table_options *options,
                                                 rp_table **out, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_store_drop_table_logged(rp_store *store, rp_string name,
                                                  uint64_t *lsn, rp_error *err);

/* The part of a store's state that is saved in checkpoints, without its tables: random keys and
 * the seeds of later tables depend on it. */
typedef struct rp_store_state {
    uint64_t seed;
    rp_rng keys; /* the generator of keys */
} rp_store_state;

/* Calls `body` with the tables and the state of the store, under the store's lock (rank 20), so
 * that no table is made or dropped during the call. Returns the status of `body`. */
typedef rp_status rp_store_frozen(void *ctx, rp_table *const *tables, size_t count,
                                  const rp_store_state *state, rp_error *err);
RP_NODISCARD rp_status rp_store_freeze(rp_store *store, rp_store_frozen *body, void *ctx,
                                       rp_error *err);

/* Restores the state of a store that is being loaded. Tables that are made later get their
 * seeds from this state. */
void rp_store_restore(rp_store *store, const rp_store_state *state);

#endif
