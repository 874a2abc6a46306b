/* SPDX-License-Identifier: Apache-2.0 */
/* Totals over the tables of a store, for the log lines of the server (log_lines.h). Any thread
 * may call the function, even while other threads create and drop tables. */
#ifndef RP_CLI_SERVE_UPKEEP_H
#define RP_CLI_SERVE_UPKEEP_H

#include "reprise/store.h"

typedef struct rp_upkeep_totals {
    int64_t items, inserts, samples; /* sums over the tables that exist now */
} rp_upkeep_totals;

/* Computes the totals now. */
rp_upkeep_totals rp_upkeep_count(rp_store *store);

#endif
