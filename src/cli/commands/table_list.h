/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the tables of all servers, for commands that print them. */
#ifndef RP_CLI_COMMANDS_TABLE_LIST_H
#define RP_CLI_COMMANDS_TABLE_LIST_H

#include "cli/commands/left_out.h"
#include "reprise/client.h"

typedef struct rp_table_list {
    rp_client_tables *tables;
    const char *shards[RP_LISTED_SHARDS]; /* addresses */
    rp_client_durability *durability;
    rp_left_out left_out; /* servers that could not be reached during the fetch */
    rp_tables_view view;  /* refers to the fields above; durability_count <= shard_count */
} rp_table_list;

/* Fetches the tables and the durability of all shards. Returns the statuses of
 * rp_client_get_tables(). */
RP_NODISCARD rp_status rp_table_list_fetch(rp_table_list *list, rp_client *client, rp_wait wait,
                                           rp_error *err);
void rp_table_list_deinit(rp_table_list *list);

/* Returns the first table with that name, or NULL. */
const rp_client_table *rp_table_list_find(const rp_table_list *list, const char *name);

/* Returns the table with that name on the shard with index `shard`, or NULL. */
const rp_client_table *rp_table_list_on_shard(const rp_table_list *list, const char *name,
                                              size_t shard);

/* Writes an error with the unknown name and the names of all tables. Returns RP_NOT_FOUND. */
rp_status rp_table_list_missing(const rp_table_list *list, const char *name, rp_error *err);

#endif
