/* SPDX-License-Identifier: Apache-2.0 */
/* Totals over the tables of a store. Safe from any thread, also while tables are created and
 * dropped. */
#ifndef RP_CLI_SERVE_UPKEEP_H
#define RP_CLI_SERVE_UPKEEP_H

#include "reprise/store.h"

typedef struct rp_upkeep_totals {
    int64_t items, inserts, samples; /* of all tables that exist now */
} rp_upkeep_totals;

rp_upkeep_totals rp_upkeep_count(rp_store *store);

#endif
