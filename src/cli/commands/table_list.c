/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/table_list.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text/nearest.h"
#include "reprise/printable.h"
#include "reprise/rollout_calls.h"

rp_status rp_table_list_fetch(rp_table_list *l, rp_client *client, rp_wait wait, rp_error *err)
{
    size_t shards = rp_client_shard_count(client);
    rp_status st;

    *l = (rp_table_list){.client = client};
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

rp_status rp_table_list_fetch_named(rp_table_list *l, rp_client *client, const char *name,
                                    rp_wait wait, rp_error *err)
{
    rp_status st = rp_table_list_fetch(l, client, wait, err);

    if (st == RP_OK && rp_table_list_find(l, name) == NULL)
        st = rp_table_list_missing(l, name, err);
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

/* The rollouts whose name is nearest to a word. */
typedef struct near_rollouts {
    const char *word;
    char best[RP_ROLLOUT_NAME_BYTES + 1]; /* "": none */
    size_t distance;                      /* of `best` */
} near_rollouts;

static void compare_rollouts(void *ctx, const rp_rollouts_entry *entry)
{
    char name[RP_ROLLOUT_NAME_BYTES + 1];
    near_rollouts *near = ctx;
    rp_nearest nearest;

    if (entry->name.size >= sizeof name) return;
    memcpy(name, entry->name.data, entry->name.size);
    name[entry->name.size] = '\0';
    rp_nearest_init(&nearest, near->word);
    rp_nearest_offer(&nearest, name);
    if (strcmp(name, near->word) == 0)
        nearest.distance = 0;
    else if (rp_nearest_get(&nearest) == NULL)
        return;
    if (near->best[0] != '\0' && nearest.distance >= near->distance) return;
    memcpy(near->best, name, sizeof name);
    near->distance = nearest.distance;
}

/* Finds the rollouts that a word may be meant for, within a short time. */
static void find_rollouts(const rp_table_list *l, near_rollouts *near)
{
    enum { MOST_MS = 2000 };
    rp_rollouts_call call = {.action = RP_ROLLOUTS_LIST,
                             .rollouts = {"", 0},
                             .on_entry = compare_rollouts,
                             .ctx = near};
    rp_error err;

    if (l->client != NULL &&
        rp_client_rollouts(l->client, &call, rp_wait_ms(MOST_MS), &err) != RP_OK)
        near->best[0] = '\0'; /* as with a server of Reverb */
}

rp_status rp_table_list_missing(const rp_table_list *l, const char *name, rp_error *err)
{
    near_rollouts rollouts = {.word = name};
    char text[RP_ERROR_TEXT_BYTES];
    rp_nearest nearest;
    const char *best;

    find_rollouts(l, &rollouts);
    rp_nearest_init(&nearest, name);
    for (size_t i = 0; i < l->view.count; i++)
        rp_nearest_offer(&nearest, l->view.tables[i].info.name);
    best = rp_nearest_get(&nearest);
    err->code = RP_NOT_FOUND;
    if (strcmp(rollouts.best, name) == 0)
        (void)snprintf(text, sizeof text,
                       "no table '%.80s': these are rollouts, which reprise rollouts shows",
                       name);
    else if (best != NULL)
        (void)snprintf(text, sizeof text, "no table '%.80s', did you mean '%.80s'?", name,
                       best);
    else if (rollouts.best[0] != '\0')
        (void)snprintf(text, sizeof text,
                       "no table '%.80s', did you mean the rollouts '%.80s'?", name,
                       rollouts.best);
    else
        list_names(l, name, text, sizeof text);
    (void)rp_printable(text, strlen(text), err->text, sizeof err->text);
    return RP_NOT_FOUND;
}

static bool is_left_out(const rp_table_list *l, size_t shard)
{
    for (size_t i = 0; i < l->left_out.count; i++)
        if (l->left_out.list[i].address == l->view.shards[shard]) return true;
    return false;
}

rp_status rp_table_list_check_absent(const rp_table_list *l, const char *name, rp_error *err)
{
    char safe[2 * RP_ERROR_TEXT_BYTES];

    if (rp_table_list_find(l, name) == NULL) return RP_OK;
    for (size_t i = 0; i < l->view.shard_count; i++)
        if (rp_table_list_on_shard(l, name, i) == NULL && !is_left_out(l, i)) return RP_OK;
    (void)rp_printable(name, strlen(name), safe, sizeof safe);
    (void)snprintf(err->text, sizeof err->text, "there is a table '%.200s' already", safe);
    return RP_EXISTS;
}

void rp_table_list_put(rp_text_buffer *out, const rp_table_list *l, const rp_client_table *t)
{
    rp_text_buffer_put_safe(out, t->info.name, strlen(t->info.name));
    if (l->view.shard_count > 1 && t->shard < l->view.shard_count)
        rp_text_buffer_format(out, " on %s", l->view.shards[t->shard]);
}

/* The client's text is "done on A, B, but not on C (reason)". */
static const char done_on[] = "done on ", not_on[] = ", but not on ";

bool rp_done_partly(const rp_error *err)
{
    return strncmp(err->text, done_on, sizeof done_on - 1) == 0;
}

bool rp_table_list_done_on(const rp_table_list *l, const rp_client_table *t,
                           const rp_error *err)
{
    const char *at = err->text + sizeof done_on - 1, *end;
    size_t length;

    if (!rp_done_partly(err) || t->shard >= l->view.shard_count) return true;
    end = strstr(at, not_on);
    if (end == NULL) return true; /* the text is cut */
    length = strlen(l->view.shards[t->shard]);
    while (at < end) {
        size_t size = strcspn(at, ",");

        if (size == length && memcmp(at, l->view.shards[t->shard], length) == 0) return true;
        at += size + 2; /* a comma and a space */
    }
    return false;
}
