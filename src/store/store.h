/* SPDX-License-Identifier: Apache-2.0 */
/* What the other files of the store module need of a store. */
#ifndef RP_STORE_STORE_H
#define RP_STORE_STORE_H

#include "reprise/store.h"
#include "util/rng.h"

/* Valid as long as the store. */
const rp_allocator *rp_store_allocator(rp_store *store);

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
