/* SPDX-License-Identifier: Apache-2.0 */
/* Finds one table among those of the servers. If it does not exist, every call of the client
 * has the same error, which begins as Reverb's does and lists the tables that exist. */
#include <stdio.h>

#include "client/client.h"
#include "util/error.h"

enum {
    ASK_MS = 500, /* a server that has a connection answers at once */
    LIST_BYTES =
        150, /* of the names: the error has room for the rest of its text beside them */
    SHOWN_BYTES = 60, /* of one name */
};

/* Returns true if a table before it, of another shard, has the same name. */
static bool is_repeated(const rp_client_tables *tables, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(tables->tables[i].info.name, tables->tables[index].info.name) == 0)
            return true;
    return false;
}

/* Writes the names of the tables, as many as fit, and how many more there are. */
static void list_names(const rp_client_tables *tables, char text[2 * LIST_BYTES])
{
    size_t at = 0, left_out = 0;

    text[0] = '\0';
    for (size_t i = 0; i < tables->count; i++) {
        const char *name = tables->tables[i].info.name;
        size_t length = strlen(name);

        if (is_repeated(tables, i)) continue;
        if (length > SHOWN_BYTES) length = SHOWN_BYTES;
        if (left_out > 0 || at + length + 2 > LIST_BYTES) {
            left_out++;
            continue;
        }
        at += (size_t)snprintf(text + at, 2 * LIST_BYTES - at, "%s%.*s", at > 0 ? ", " : "",
                               SHOWN_BYTES, name);
    }
    if (left_out > 0) (void)snprintf(text + at, 2 * LIST_BYTES - at, " and %zu more", left_out);
}

rp_status rp_client_no_table(const rp_client_tables *tables, const char *name, rp_error *err)
{
    char names[2 * LIST_BYTES];

    if (err == NULL) return RP_NOT_FOUND;
    if (tables->count == 0)
        return rp_fail(err, RP_NOT_FOUND,
                       "Priority table %.*s was not found: there are no tables", SHOWN_BYTES,
                       name);
    list_names(tables, names);
    return rp_fail(err, RP_NOT_FOUND, "Priority table %.*s was not found; the tables are: %s",
                   SHOWN_BYTES, name, names);
}

rp_status rp_client_name_tables(rp_client *client, const char *name, rp_status st,
                                rp_error *err)
{
    rp_client_tables *tables = NULL;
    bool is_there = false;

    if (st != RP_NOT_FOUND || err == NULL || name == NULL ||
        rp_client_get_tables(client, rp_wait_ms(ASK_MS), &tables, NULL) != RP_OK)
        return st;
    for (size_t i = 0; i < tables->count && !is_there; i++)
        is_there = strcmp(tables->tables[i].info.name, name) == 0;
    if (!is_there)
        st = rp_client_no_table(tables, name, err); /* else one of the shards has it */
    rp_client_tables_free(tables);
    return st;
}

rp_status rp_client_name_shard_tables(rp_client *client, size_t shard, const char *name,
                                      rp_error *err)
{
    rp_client_tables *tables = NULL;
    rp_client_tables mine;
    size_t first = 0, end;

    if (rp_client_get_tables(client, rp_wait_ms(ASK_MS), &tables, NULL) != RP_OK)
        return RP_NOT_FOUND;
    while (first < tables->count && tables->tables[first].shard != shard) first++;
    for (end = first; end < tables->count && tables->tables[end].shard == shard;) end++;
    mine = (rp_client_tables){.tables = tables->tables + first, .count = end - first};
    (void)rp_client_no_table(&mine, name, err);
    rp_client_tables_free(tables);
    return RP_NOT_FOUND;
}

rp_status rp_client_get_table(rp_client *client, const char *table, rp_wait wait,
                              rp_client_tables **out, rp_error *err)
{
    rp_client_tables *all = NULL, *found = NULL;
    rp_status st;

    if (table == NULL) return rp_fail(err, RP_INVALID, "no table name is given");
    st = rp_client_get_tables(client, wait, &all, err);
    if (st != RP_OK) return st;
    st = rp_client_tables_new(&client->alloc, rp_client_shard_count(client), &found, err);
    for (size_t i = 0; st == RP_OK && i < all->count; i++)
        if (strcmp(all->tables[i].info.name, table) == 0)
            st = rp_client_tables_add(found, all->tables[i].shard, &all->tables[i].info, err);
    if (st == RP_OK && found->count == 0) st = rp_client_no_table(all, table, err);
    rp_client_tables_free(all);
    if (st == RP_OK)
        *out = found;
    else
        rp_client_tables_free(found);
    return st;
}
