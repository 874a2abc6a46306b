/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a store as the user configured them before recovery.
 *
 * Recovery gives each table the saved selectors and bounds, because the changes in the journal
 * were made with them. After the redo of the journal, the configured selectors and bounds are
 * compared with the saved ones, and then applied. */
#ifndef RP_DURABLE_RECOVERY_CONFIGURED_H
#define RP_DURABLE_RECOVERY_CONFIGURED_H

#include "store/store.h"

typedef struct rp_configured_table {
    rp_table *table; /* a reference */
    int64_t max_size;
    rp_selector_options sampler, remover;
    int64_t raised_from; /* the saved max_size if the configured max_size has replaced it;
                            otherwise 0 */
} rp_configured_table;

typedef struct rp_configured {
    const rp_allocator *alloc;
    rp_configured_table *tables;
    size_t count;
} rp_configured;

/* Records the configuration of all tables of the store. The store must not be in use yet.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_configured_read(rp_configured *c, const rp_allocator *alloc,
                                          rp_store *store, rp_error *err);
void rp_configured_free(rp_configured *c);

/* Compares the selectors of the tables with the configuration. If they differ for a table,
 * returns RP_PRECONDITION; the error text names both selectors. Changes nothing. */
RP_NODISCARD rp_status rp_configured_compare(const rp_configured *c, rp_store *store,
                                             rp_error *err);
/* Gives the tables their configured selectors, raises max_size to the configured one, and
 * creates tables that the redo has dropped. Sets `*changed` if it changed a table. Returns
 * RP_PRECONDITION if an item has a priority that the new selectors do not accept. */
RP_NODISCARD rp_status rp_configured_apply(rp_configured *c, rp_store *store, bool *changed,
                                           rp_error *err);

#endif
