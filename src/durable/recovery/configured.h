/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a store as the user configured them before recovery.
 *
 * Recovery gives each table the saved selectors and bounds, because the changes in the journal
 * were made with them. After the redo of the journal, different selectors are an error unless
 * the user accepts changes. Then the configured selectors are applied, and a max_size that is
 * larger than the saved one. */
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
/* Gives the tables their configured selectors, and their configured max_size if it is larger.
 * Creates configured tables again that the redo has dropped, except those with extensions. Sets
 * `*changed` if it changed or created a table. Returns RP_PRECONDITION if an item has a
 * priority that a configured selector does not accept. Other errors: those of
 * rp_store_add_table(). */
RP_NODISCARD rp_status rp_configured_apply(rp_configured *c, rp_store *store, bool *changed,
                                           rp_error *err);

#endif
