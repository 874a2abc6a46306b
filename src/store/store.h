/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of a store. */
#ifndef RP_STORE_STORE_H
#define RP_STORE_STORE_H

#include "reprise/store.h"
#include "table/account.h"
#include "table/log_record.h"
#include "util/rng.h"

enum { RP_MAX_TABLES = 4096 /* of a store; also the highest id of a table */ };

/* The allocator of the store, valid as long as the store. */
const rp_allocator *rp_store_allocator(rp_store *store);

rp_budget *rp_store_budget(rp_store *store);

/* The runs that are reported to the store (runs/runs.h). Their memory does not count against
 * max_bytes; they have a bound of their own. */
typedef struct rp_runs rp_runs;
rp_runs *rp_store_runs(rp_store *store);

/* The rollouts of the store (rollouts/rollout_set.h). Their memory does not count against
 * max_bytes; all of them together are bounded by a third of it. */
typedef struct rp_rollout_set rp_rollout_set;
rp_rollout_set *rp_store_rollouts(rp_store *store);

/* A function that is called after a change of rollouts that may release operations that wait.
 * It is called on the thread of the change, with a lock that orders after all others, so it
 * must not call the store or rollouts. `rollouts` may be NULL. Embed it in another struct. */
typedef struct rp_rollouts rp_rollouts;
typedef struct rp_rollout_watch rp_rollout_watch;
struct rp_rollout_watch {
    void (*changed)(rp_rollout_watch *watch, rp_rollouts *rollouts);
    rp_rollout_watch *next; /* private */
};
void rp_store_watch_rollouts(rp_store *store, rp_rollout_watch *watch);
/* Afterwards the function is not called any more, and does not run. */
void rp_store_unwatch_rollouts(rp_store *store, rp_rollout_watch *watch);
/* Calls the functions. Call it after rollouts were dropped. */
void rp_store_wake_rollouts(rp_store *store);

/* Sets the journal of the rollouts (store/rollout_journal.h). NULL: none; then waits until no
 * thread uses the one before. */
typedef struct rp_rollout_journal rp_rollout_journal;
void rp_store_set_rollout_journal(rp_store *store, rp_rollout_journal *journal);
/* Returns the journal, valid until rp_store_leave_rollout_journal(), which is called also if
 * there is none (NULL). In between, a thread sleeps for a moment only. */
rp_rollout_journal *rp_store_enter_rollout_journal(rp_store *store);
void rp_store_leave_rollout_journal(rp_store *store);

/* As rp_store_find_tables(), without references: each pointer is valid until its table is
 * dropped or the store freed. */
size_t rp_store_tables(rp_store *store, rp_table **out, size_t capacity);

/* Draws a key: 64 random bits from the store's generator, which is seeded with the seed of the
 * store and saved by checkpoints. Safe from any thread. */
uint64_t rp_store_new_key(rp_store *store);

/* With RP_BUDGET_EVICT, evicts items of the largest tables for inserts that wait because of
 * lost memory (rp_budget_set_lost()), until no insert waits or 1/64 of the limit is evicted. An
 * insert into a table that is small, or that has too little to evict, waits for this instead of
 * evicting from its own table: that table should not lose items because of fragmentation that
 * the large tables cause. To be called with no lock held. */
void rp_store_relieve(rp_store *store);

/* Makes the durable store in `directory`, which is borrowed until rp_store_leave_durable(), the
 * only one of the store. RP_PRECONDITION: the store has one already; the text names its
 * directory. */
RP_NODISCARD rp_status rp_store_enter_durable(rp_store *store, const char *directory,
                                              rp_error *err);
void rp_store_leave_durable(rp_store *store);

/* Sets the log of all present and later tables, or removes it (NULL): table/table_log.h. The
 * caller that removes it makes sure that no thread waits for the log, and then calls
 * rp_table_retry_parked() for the tables. */
void rp_store_set_log(rp_store *store, rp_table_log *log);

/* As rp_store_add_table() and rp_store_drop_table(), without waiting until the change is
 * durable. The name of the table need not be UTF-8. The change is durable once all records up
 * to `*lsn` are. `*lsn` is 0 if there is no log. */
RP_NODISCARD rp_status rp_store_add_table_logged(rp_store *store,
                                                 const rp_table_options *options,
                                                 rp_table **out, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_store_drop_table_logged(rp_store *store, rp_string name,
                                                  uint64_t *lsn, rp_error *err);

/* The state of a store, besides its tables, that later results depend on. */
typedef struct rp_store_state {
    uint64_t seed;
    rp_rng keys; /* the generator of keys */
} rp_store_state;

/* Calls `body` with the tables and the state, under the store's lock (rank 20): no table is
 * made or dropped meanwhile. Returns the status of `body`. */
typedef rp_status rp_store_frozen(void *ctx, rp_table *const *tables, size_t count,
                                  const rp_store_state *state, rp_error *err);
RP_NODISCARD rp_status rp_store_freeze(rp_store *store, rp_store_frozen *body, void *ctx,
                                       rp_error *err);

/* Restores the state of a store that is being loaded: tables made later get their seeds from
 * it. */
void rp_store_restore(rp_store *store, const rp_store_state *state);

#endif
