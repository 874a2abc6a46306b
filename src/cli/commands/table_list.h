/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches the tables of all servers, for commands that print them. */
#ifndef RP_CLI_COMMANDS_TABLE_LIST_H
#define RP_CLI_COMMANDS_TABLE_LIST_H

#include "cli/commands/left_out.h"
#include "reprise/client.h"

typedef struct rp_table_list {
    rp_client *client; /* borrowed; NULL before the fetch */
    rp_client_tables *tables;
    const char *shards[RP_LISTED_SHARDS]; /* addresses of the shards (servers) */
    rp_client_durability *durability;
    rp_left_out left_out; /* servers that could not be reached during the fetch */
    rp_tables_view view;  /* refers to the fields above; durability_count <= shard_count */
} rp_table_list;

/* Fetches the tables and the durability of all shards. Returns the statuses of
 * rp_client_get_tables(). */
RP_NODISCARD rp_status rp_table_list_fetch(rp_table_list *list, rp_client *client, rp_wait wait,
                                           rp_error *err);
/* Like rp_table_list_fetch(), but also returns RP_NOT_FOUND if no server has a table called
 * `name`. */
RP_NODISCARD rp_status rp_table_list_fetch_named(rp_table_list *list, rp_client *client,
                                                 const char *name, rp_wait wait, rp_error *err);
void rp_table_list_deinit(rp_table_list *list);

/* Returns the first table with that name, or NULL. */
const rp_client_table *rp_table_list_find(const rp_table_list *list, const char *name);

/* Returns the table with that name on the shard with index `shard`, or NULL. */
const rp_client_table *rp_table_list_on_shard(const rp_table_list *list, const char *name,
                                              size_t shard);

/* Writes an error about the unknown name `name`. The text suggests a table or rollouts (named
 * buffers of groups of items) with a similar name. If there is no similar name, the text lists
 * the tables. Returns RP_NOT_FOUND. */
rp_status rp_table_list_missing(const rp_table_list *list, const char *name, rp_error *err);

/* Checks whether a table called `name` can be created on at least one server. Returns RP_EXISTS
 * if every server that can be reached has such a table already. Returns RP_OK if some servers
 * do not have it; the creation then succeeds on these servers, and the text of its error names
 * the others. */
rp_status rp_table_list_check_absent(const rp_table_list *list, const char *name,
                                     rp_error *err);

/* Writes the table's name, and its shard if there are several. */
void rp_table_list_put(rp_text_buffer *out, const rp_table_list *list,
                       const rp_client_table *table);

/* Returns true if the text of an error of the client says that some servers have made a change
 * and others have not. */
bool rp_done_partly(const rp_error *err);
/* Returns false if rp_done_partly() is true for `err` and the shard of `table` is not among the
 * servers that have made the change. Otherwise returns true. */
bool rp_table_list_done_on(const rp_table_list *list, const rp_client_table *table,
                           const rp_error *err);

#endif
