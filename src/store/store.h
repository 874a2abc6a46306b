/* SPDX-License-Identifier: Apache-2.0 */
/* What the other files of the store module need of a store. */
#ifndef RP_STORE_STORE_H
#define RP_STORE_STORE_H

#include "reprise/store.h"
#include "table/account.h"
#include "table/change.h"
#include "util/rng.h"

/* Valid as long as the store. */
const rp_allocator *rp_store_allocator(rp_store *store);

rp_budget *rp_store_budget(rp_store *store);

/* As rp_store_find_tables(), without references: each pointer is valid until its table is
 * dropped or the store freed. */
size_t rp_store_tables(rp_store *store, rp_table **out, size_t capacity);

/* Draws a key from the store's generator, whose state a checkpoint keeps: 64 random bits that
 * follow from the seed. Safe from any thread. */
uint64_t rp_store_new_key(rp_store *store);

/* With the policy `evict`: evicts items of the largest tables for inserts that wait because
 * memory is lost (rp_budget_set_lost()), until none does, or for a 64th of the limit. They wait
 * if their own table is small or has too little to evict: what is lost lies between items of
 * large tables. With no lock held. */
void rp_store_relieve(rp_store *store);

/* Starts or stops (NULL) telling a log of every table there is, of those that come and of those
 * that go (table/table_log.h). Whoever stops it sees to it that nobody is waiting for the log,
 * and nudges the tables. */
void rp_store_set_log(rp_store *store, rp_table_log *log);

/* rp_store_add_table() and rp_store_drop_table(), which do not wait until it is safe: it is
 * when everything up to `*lsn` is. 0: there is no log. */
RP_NODISCARD rp_status rp_store_add_table_logged(rp_store *store,
                                                 const rp_table_options *options,
                                                 rp_table **out, uint64_t *lsn, rp_error *err);
RP_NODISCARD rp_status rp_store_drop_table_logged(rp_store *store, rp_string name,
                                                  uint64_t *lsn, rp_error *err);

/* What a store has besides its tables that decides later results. */
typedef struct rp_store_state {
    uint64_t seed;
    rp_rng keys; /* the generator of keys */
} rp_store_state;

/* Calls `body` with the tables and the state of one moment, under the store's lock (rank 20):
 * no table is made or dropped meanwhile. Returns its status. */
typedef rp_status rp_store_frozen(void *ctx, rp_table *const *tables, size_t count,
                                  const rp_store_state *state, rp_error *err);
RP_NODISCARD rp_status rp_store_freeze(rp_store *store, rp_store_frozen *body, void *ctx,
                                       rp_error *err);

/* Puts a store that is being loaded into that state: seeds of tables made later come from it.
 */
void rp_store_restore(rp_store *store, const rp_store_state *state);

#endif
