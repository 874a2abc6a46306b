/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a client on a store of this process. They return the statuses that a server
 * would. */
#include <assert.h>
#include <stdio.h>

#include "client/client.h"
#include "rollouts/rollout_set.h"
#include "store/store.h"
#include "util/error.h"
#include "util/mem.h"

/* Gets a reference to a table. RP_NOT_FOUND. */
static rp_status find(rp_client *client, const char *name, rp_table **out, rp_error *err)
{
    const rp_string text = {name, strlen(name)};

    assert(client->store != NULL);
    *out = rp_store_find_table(client->store, text);
    return *out != NULL ? RP_OK : rp_store_no_table(client->store, text, err);
}

typedef struct all_tables {
    rp_table **list; /* references */
    size_t count, capacity;
} all_tables;

static rp_status get_all(rp_client *client, all_tables *all, rp_error *err)
{
    size_t count;

    all->capacity = rp_store_find_tables(client->store, NULL, 0) + 1;
    all->list = rp_alloc_array(&client->alloc, all->capacity, sizeof(rp_table *));
    if (all->list == NULL) return rp_fail_memory(err, all->capacity * sizeof(rp_table *));
    count = rp_store_find_tables(client->store, all->list, all->capacity);
    all->count = count < all->capacity ? count : all->capacity; /* tables may have been added */
    assert(all->count <= all->capacity);
    return RP_OK;
}

static void put_all(rp_client *client, all_tables *all)
{
    for (size_t i = 0; i < all->count; i++) rp_table_unref(all->list[i]);
    rp_release(&client->alloc, all->list, all->capacity * sizeof(rp_table *));
}

rp_status rp_local_tables(rp_client *client, rp_client_tables **out, rp_error *err)
{
    rp_client_tables *tables = NULL;
    all_tables all = {0};
    rp_status st = get_all(client, &all, err);

    if (st != RP_OK) return st;
    st = rp_client_tables_new(&client->alloc, all.count, &tables, err);
    for (size_t i = 0; i < all.count && st == RP_OK; i++) {
        rp_table_info info;

        rp_table_get_info(all.list[i], &info);
        st = rp_client_tables_add(tables, 0, &info, err);
    }
    put_all(client, &all);
    if (st == RP_OK)
        *out = tables;
    else
        rp_client_tables_free(tables);
    return st;
}

rp_status rp_local_mutate(rp_client *client, const char *table, const rp_mutation *mutation,
                          rp_error *err)
{
    rp_table *t;
    rp_status st = find(client, table, &t, err);

    if (st != RP_OK) return st;
    if (mutation->update_count > 0)
        st = rp_table_update(t, mutation->updates, mutation->update_count, NULL, err);
    if (st == RP_OK && mutation->delete_count > 0)
        st = rp_table_delete(t, mutation->deletes, mutation->delete_count, NULL, err);
    rp_table_unref(t);
    return st;
}

rp_status rp_local_reset(rp_client *client, const char *table, rp_error *err)
{
    rp_table *t;
    rp_status st = find(client, table, &t, err);

    if (st != RP_OK) return st;
    st = rp_table_reset(t, err);
    rp_table_unref(t);
    return st;
}

rp_status rp_local_drop(rp_client *client, const char *table, rp_error *err)
{
    return rp_store_drop_table(client->store, (rp_string){table, strlen(table)}, err);
}

rp_status rp_local_alter(rp_client *client, const char *table,
                         const rp_table_alteration *change, rp_error *err)
{
    rp_table *t;
    rp_status st = find(client, table, &t, err);

    if (st != RP_OK) return st;
    st = rp_table_alter(t, change, err);
    rp_table_unref(t);
    return st;
}

rp_status rp_local_pause(rp_client *client, const char *table, uint32_t sides, bool resume,
                         rp_error *err)
{
    rp_table *t;
    rp_status st = find(client, table, &t, err);

    if (st != RP_OK) return st;
    st = resume ? rp_table_resume(t, sides, err) : rp_table_pause(t, sides, err);
    rp_table_unref(t);
    return st;
}

/* Describes blocked calls of one table, or of rollouts if it is NULL, in the rest of the
 * array. */
static rp_status describe(rp_client *client, rp_table *t, rp_rollouts *r,
                          rp_client_blocked *out, rp_error *err)
{
    rp_string name = t != NULL ? (rp_string){rp_table_name(t), strlen(rp_table_name(t))}
                               : rp_rollouts_name(r);
    size_t room = out->capacity - out->count, found;
    rp_waiting *waiting = NULL;

    assert(out->count <= out->capacity);
    if (room > 0) {
        size_t there =
            t != NULL ? rp_table_waiting(t, NULL, 0) : rp_rollouts_waiting(r, NULL, NULL, 0);

        if (room > there) room = there;
    }
    if (room > 0) {
        waiting = rp_alloc_array(&client->alloc, room, sizeof *waiting);
        if (waiting == NULL) return rp_fail_memory(err, room * sizeof *waiting);
    }
    found = t != NULL ? rp_table_waiting(t, waiting, room)
                      : rp_rollouts_waiting(r, waiting, NULL, room);
    out->total += found;
    for (size_t i = 0; i < found && i < room; i++) {
        rp_client_waiting *w = &out->calls[out->count++];

        *w = (rp_client_waiting){.client = "this process", .waiting = waiting[i]};
        (void)snprintf(w->table, sizeof w->table, "%.*s", (int)name.size, name.data);
    }
    rp_release(&client->alloc, waiting, room * sizeof *waiting);
    return RP_OK;
}

rp_status rp_local_why_blocked(rp_client *client, const char *table, rp_client_blocked *out,
                               rp_error *err)
{
    rp_table *t = NULL;
    all_tables all = {0};
    rp_rollouts *rollouts[RP_ROLLOUT_SET_COUNT];
    size_t count = 0;
    rp_status st;

    out->count = out->total = 0;
    if (table != NULL) {
        st = find(client, table, &t, err);
        if (st == RP_NOT_FOUND) {
            const rp_string name = {table, strlen(table)};

            rollouts[0] = rp_rollout_set_find(rp_store_rollouts(client->store), name);
            if (rollouts[0] != NULL) st = describe(client, NULL, rollouts[0], out, err);
            rp_rollouts_unref(rollouts[0]);
        }
        if (t != NULL) st = describe(client, t, NULL, out, err);
        rp_table_unref(t);
        return st;
    }
    st = get_all(client, &all, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < all.count && st == RP_OK; i++)
        st = describe(client, all.list[i], NULL, out, err);
    put_all(client, &all);
    count = rp_rollout_set_list(rp_store_rollouts(client->store), rollouts);
    for (size_t i = 0; i < count; i++) {
        if (st == RP_OK) st = describe(client, NULL, rollouts[i], out, err);
        rp_rollouts_unref(rollouts[i]);
    }
    assert(out->count <= out->capacity && out->count <= out->total);
    return st;
}
