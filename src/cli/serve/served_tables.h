/* SPDX-License-Identifier: Apache-2.0 */
/* What serve logs about the tables of a store, whether they were configured or loaded. */
#ifndef RP_CLI_SERVE_SERVED_TABLES_H
#define RP_CLI_SERVE_SERVED_TABLES_H

#include <stddef.h>

#include "cli/serve/table_spec.h"
#include "reprise/store.h"

/* Writes the first tables of the store with their sampler and max_size, and how many more there
 * are; "none" without tables. Returns `text`. */
char *rp_served_tables_list(rp_store *store, char *text, size_t size);

/* Compares max_size and the limiter of a configured table with those of the store's table.
 * Where they differ, writes them to `used` and `configured` and returns true. False if they
 * are equal, or if the store has no table of this name. */
bool rp_served_table_differs(rp_store *store, const rp_table_settings *configured_table,
                             char *used, char *configured, size_t size);

#endif
