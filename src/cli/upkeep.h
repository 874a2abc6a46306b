/* SPDX-License-Identifier: Apache-2.0 */
/* What the process does for a store that it serves: trims tables with a soft limit, and counts.
 * Safe while others use the store, make tables and drop them. */
#ifndef RP_CLI_UPKEEP_H
#define RP_CLI_UPKEEP_H

#include "reprise/store.h"

/* Brings every table with a soft limit back to its max_size. What cannot be trimmed for lack of
 * memory waits for the next time. */
void rp_upkeep_trim(rp_store *store);

typedef struct rp_upkeep_totals {
    int64_t items, inserts, samples; /* of all tables there are now */
} rp_upkeep_totals;

rp_upkeep_totals rp_upkeep_count(rp_store *store);

#endif
