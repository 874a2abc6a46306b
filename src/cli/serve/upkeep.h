/* SPDX-License-Identifier: Apache-2.0 */
/* What the process counts of a store that it serves. Safe while others use the store, make
 * tables and drop them. */
#ifndef RP_CLI_SERVE_UPKEEP_H
#define RP_CLI_SERVE_UPKEEP_H

#include "reprise/store.h"

typedef struct rp_upkeep_totals {
    int64_t items, inserts, samples; /* of all tables there are now */
} rp_upkeep_totals;

rp_upkeep_totals rp_upkeep_count(rp_store *store);

#endif
