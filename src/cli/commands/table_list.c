/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/table_list.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "reprise/printable.h"

rp_status rp_table_list_fetch(rp_table_list *l, rp_client *client, rp_wait wait, rp_error *err)
{
    size_t shards = rp_client_shard_count(client);
    rp_status st;

    *l = (rp_table_list){0};
    rp_left_out_begin(&l->left_out, client);
    st = rp_client_get_tables(client, wait, &l->tables, err);
    if (st != RP_OK) return st;
    if (shards > RP_LISTED_SHARDS) shards = RP_LISTED_SHARDS;
    for (size_t i = 0; i < shards; i++) l->shards[i] = rp_client_shard_address(client, i);
    l->view = (rp_tables_view){.tables = l->tables->tables,
                               .count = l->tables->count,
                               .shards = l->shards,
                               .shard_count = shards};
    rp_left_out_end(&l->left_out, client);
    l->view.unreachable = l->left_out.list;
    l->view.unreachable_count = l->left_out.count;
    l->durability = calloc(shards + 1, sizeof *l->durability);
    if (l->durability == NULL) return RP_OK; /* the tables can be shown without it */
    l->view.durability = l->durability;
    st = rp_client_get_durability(client, l->durability, shards, &l->view.durability_count,
                                  wait, err);
    assert(l->view.durability_count <= shards && shards <= RP_LISTED_SHARDS);
    if (st != RP_OK) rp_table_list_deinit(l);
    return st;
}

void rp_table_list_deinit(rp_table_list *l)
{
    rp_client_tables_free(l->tables);
    free(l->durability);
    rp_left_out_deinit(&l->left_out);
    *l = (rp_table_list){0};
}

const rp_client_table *rp_table_list_find(const rp_table_list *l, const char *name)
{
    for (size_t i = 0; i < l->view.count; i++)
        if (strcmp(l->view.tables[i].info.name, name) == 0) return &l->view.tables[i];
    return NULL;
}

const rp_client_table *rp_table_list_on_shard(const rp_table_list *l, const char *name,
                                              size_t shard)
{
    for (size_t i = 0; i < l->view.count; i++)
        if (l->view.tables[i].shard == shard && strcmp(l->view.tables[i].info.name, name) == 0)
            return &l->view.tables[i];
    return NULL;
}

/* Writes that there is no such table, and the names of as many others as fit. */
static void list_names(const rp_table_list *l, const char *name, char *text, size_t size)
{
    enum { REST = 24 }; /* bytes for "and 12345 more" */
    size_t named = 0, distinct = 0;

    (void)snprintf(text, size, "no table '%.80s'; the server has ", name);
    for (size_t i = 0; i < l->view.count; i++) {
        const char *other = l->view.tables[i].info.name;
        size_t used = strlen(text);

        if (rp_table_list_find(l, other) != &l->view.tables[i]) continue; /* of another shard */
        distinct++;
        if (named + 1 < distinct || used + strlen(other) + REST > size) continue;
        (void)snprintf(text + used, size - used, "%s'%s'", named > 0 ? ", " : "", other);
        named++;
    }
    if (distinct == 0)
        (void)snprintf(text + strlen(text), size - strlen(text), "no tables");
    else if (named == 0)
        (void)snprintf(text + strlen(text), size - strlen(text), "%zu table%s", distinct,
                       distinct == 1 ? "" : "s");
    else if (named < distinct)
        (void)snprintf(text + strlen(text), size - strlen(text), " and %zu more",
                       distinct - named);
}

rp_status rp_table_list_missing(const rp_table_list *l, const char *name, rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES];
    rp_nearest nearest;
    const char *best;

    rp_nearest_init(&nearest, name);
    for (size_t i = 0; i < l->view.count; i++)
        rp_nearest_offer(&nearest, l->view.tables[i].info.name);
    best = rp_nearest_get(&nearest);
    err->code = RP_NOT_FOUND;
    if (best != NULL)
        (void)snprintf(text, sizeof text, "no table '%.80s', did you mean '%.80s'?", name,
                       best);
    else
        list_names(l, name, text, sizeof text);
    (void)rp_printable(text, strlen(text), err->text, sizeof err->text);
    return RP_NOT_FOUND;
}
