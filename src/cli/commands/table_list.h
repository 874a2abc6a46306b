/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all servers, fetched, as what is to be shown. */
#ifndef RP_CLI_COMMANDS_TABLE_LIST_H
#define RP_CLI_COMMANDS_TABLE_LIST_H

#include "cli/text/info_print.h"
#include "reprise/client.h"

enum { RP_LISTED_SHARDS = 256 };

typedef struct rp_table_list {
    rp_client_tables *tables;
    const char *shards[RP_LISTED_SHARDS];
    rp_client_durability *durability;
    rp_tables_view view; /* of the above */
} rp_table_list;

/* Statuses of rp_client_get_tables(). */
RP_NODISCARD rp_status rp_table_list_fetch(rp_table_list *list, rp_client *client, rp_wait wait,
                                           rp_error *err);
void rp_table_list_deinit(rp_table_list *list);

/* The first table of that name, or NULL. */
const rp_client_table *rp_table_list_find(const rp_table_list *list, const char *name);

/* Says that there is no such table, and which there are. Returns RP_NOT_FOUND. */
rp_status rp_table_list_missing(const rp_table_list *list, const char *name, rp_error *err);

#endif
