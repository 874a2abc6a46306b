/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for the log of `reprise serve` about the tables of its store. */
#ifndef RP_CLI_SERVE_SERVED_TABLES_H
#define RP_CLI_SERVE_SERVED_TABLES_H

#include <stddef.h>

#include "cli/serve/table_spec.h"
#include "reprise/store.h"

/* Writes the names of the first few tables with their samplers and max_size, and then how many
 * more tables there are. Writes "none" if the store has no tables. Returns `text`. */
char *rp_served_tables_list(rp_store *store, char *text, size_t size);

/* Compares the max_size and rate limiter of a configured table with those of the store's table
 * with the same name, which the store has possibly loaded from the data directory. If they
 * differ, writes the store's values to `used` and the configured values to `configured`, and
 * returns true. Returns false if they are equal, or if the store has no such table. */
bool rp_served_table_differs(rp_store *store, const rp_table_settings *configured_table,
                             char *used, char *configured, size_t size);

#endif
