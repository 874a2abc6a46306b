/* SPDX-License-Identifier: Apache-2.0 */
/* Finds one table among those of the servers. If it does not exist, every call of the client
 * has the same error, which begins as Reverb's does and lists the tables that exist. */
#include <string.h>

#include "client/client.h"
#include "store/no_table.h"
#include "util/error.h"

enum { ASK_MS = 500 }; /* a server that has a connection answers at once */

/* Returns true if a table before it, of another shard, has the same name. */
static bool is_repeated(const rp_client_tables *tables, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(tables->tables[i].info.name, tables->tables[index].info.name) == 0)
            return true;
    return false;
}

typedef struct walk {
    const rp_client_tables *tables;
    size_t at;
} walk;

static const char *next_name(void *ctx)
{
    walk *w = ctx;

    while (w->at < w->tables->count && is_repeated(w->tables, w->at)) w->at++;
    return w->at < w->tables->count ? w->tables->tables[w->at++].info.name : NULL;
}

rp_status rp_client_no_table(const rp_client_tables *tables, const char *name, rp_error *err)
{
    walk w = {.tables = tables};

    return rp_no_table((rp_string){name, strlen(name)}, next_name, &w, err);
}

rp_status rp_client_tables_soon(rp_client *client, rp_wait wait, rp_client_tables **out)
{
    rp_wait soon = rp_wait_ms(ASK_MS);

    if (wait.until_ns < soon.until_ns) soon.until_ns = wait.until_ns;
    soon.cancel = wait.cancel;
    return rp_client_get_tables(client, soon, out, NULL);
}

/* Returns the first shard with the table; one of them has it. */
static size_t shard_with(const rp_client_tables *tables, const char *name)
{
    size_t i = 0;

    while (i + 1 < tables->count && strcmp(tables->tables[i].info.name, name) != 0) i++;
    return tables->tables[i].shard;
}

/* Adds to an error that begins with the address of a shard without the table: which tables that
 * shard has, and which other shard has the table. Other errors stay as they are. */
static void name_other_shard(rp_client *client, const rp_client_tables *tables,
                             const char *name, rp_error *err)
{
    size_t other = shard_with(tables, name);

    for (size_t i = 0; i < rp_client_shard_count(client); i++) {
        const char *address = rp_client_shard_address(client, i);
        size_t length = strlen(address);
        rp_error own = {0};

        if (i == other || strncmp(err->text, address, length) != 0 || err->text[length] != ':')
            continue;
        rp_client_name_shard_tables(tables, i, name, &own);
        (void)rp_fail(err, err->code, "%.60s: %s; %.60s has it", address, own.text,
                      rp_client_shard_address(client, other));
        return;
    }
}

rp_status rp_client_name_tables(rp_client *client, const char *name, rp_wait wait, rp_status st,
                                rp_error *err)
{
    rp_client_tables *tables = NULL;
    bool is_there = false;

    if (st != RP_NOT_FOUND || err == NULL || name == NULL ||
        rp_client_tables_soon(client, wait, &tables) != RP_OK)
        return st;
    for (size_t i = 0; i < tables->count && !is_there; i++)
        is_there = strcmp(tables->tables[i].info.name, name) == 0;
    if (is_there)
        name_other_shard(client, tables, name, err);
    else
        st = rp_client_no_table(tables, name, err);
    rp_client_tables_free(tables);
    return st;
}

void rp_client_name_shard_tables(const rp_client_tables *tables, size_t shard, const char *name,
                                 rp_error *err)
{
    rp_client_tables mine;
    size_t first = 0, end;

    while (first < tables->count && tables->tables[first].shard != shard) first++;
    for (end = first; end < tables->count && tables->tables[end].shard == shard;) end++;
    mine = (rp_client_tables){.tables = tables->tables + first, .count = end - first};
    (void)rp_client_no_table(&mine, name, err);
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
