/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the tables of all servers for display. */
#ifndef RP_CLI_COMMANDS_TABLE_LIST_H
#define RP_CLI_COMMANDS_TABLE_LIST_H

#include "cli/commands/left_out.h"
#include "reprise/client.h"

typedef struct rp_table_list {
    rp_client_tables *tables;
    const char *shards[RP_LISTED_SHARDS];
    rp_client_durability *durability;
    rp_left_out left_out; /* servers that could not be reached while it was fetched */
    rp_tables_view view;  /* borrows from the above; durability_count <= shard_count */
} rp_table_list;

/* Fetches the tables and the durability of all shards. Statuses of rp_client_get_tables(). */
RP_NODISCARD rp_status rp_table_list_fetch(rp_table_list *list, rp_client *client, rp_wait wait,
                                           rp_error *err);
void rp_table_list_deinit(rp_table_list *list);

/* Returns the first table of that name, or NULL. */
const rp_client_table *rp_table_list_find(const rp_table_list *list, const char *name);

/* Returns the table of that name on one shard, or NULL. */
const rp_client_table *rp_table_list_on_shard(const rp_table_list *list, const char *name,
                                              size_t shard);

/* Writes an error with the unknown name and the names of the tables. Returns RP_NOT_FOUND. */
rp_status rp_table_list_missing(const rp_table_list *list, const char *name, rp_error *err);

#endif
