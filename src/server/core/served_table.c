/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/served_table.h"

#include <assert.h>

#include "util/error.h"
#include "util/mem.h"

enum { MAX_PENDING = 1000, MAX_NAME_SHOWN = 128 };

rp_served_table *rp_served_table_ref(rp_served_table *served)
{
    rp_refcount_inc(&served->refs);
    return served;
}

void rp_served_table_unref(rp_served_table *served)
{
    if (served == NULL || !rp_refcount_dec(&served->refs)) return;
    assert(atomic_load(&served->pending_inserts) == 0);
    rp_allocator alloc = served->alloc;
    rp_table_metrics_unref(served->metrics);
    rp_table_unref(served->table);
    rp_release(&alloc, served, sizeof *served + served->name_size + 1);
}

/* A tenth of the table's size, computed as Reverb does, with a 32-bit 0.1. */
static size_t max_pending(const rp_table_info *info)
{
    double tenth = (double)info->max_size * (double)0.1f;

    if (tenth < 1) return 1;
    return tenth > MAX_PENDING ? MAX_PENDING : (size_t)tenth;
}

/* Takes the reference to `table`. */
static rp_served_table *make(rp_server *server, rp_table *table, rp_string name)
{
    size_t bytes = sizeof(rp_served_table) + name.size + 1;
    rp_served_table *served = rp_alloc_zero(&server->alloc, bytes);
    rp_table_info info;

    if (served == NULL) {
        rp_table_unref(table);
        return NULL;
    }
    rp_refcount_init(&served->refs);
    served->alloc = server->alloc;
    served->table = table;
    served->name_size = name.size;
    memcpy(served->name, name.data, name.size);
    rp_table_get_info(table, &info);
    atomic_init(&served->max_pending, max_pending(&info));
    served->metrics = rp_metrics_table(server->metrics, served->name);
    if (served->metrics == NULL) {
        rp_served_table_unref(served);
        return NULL;
    }
    return served;
}

/* The place of a table in server->served. */
static rp_served_table **place_of(rp_server *server, const rp_table *table)
    RP_REQUIRES(server->lock)
{
    unsigned id = rp_table_id(table);

    assert(id >= 1 && id <= RP_MAX_TABLES);
    return &server->served[id - 1];
}

rp_served_table *rp_served_table_find(rp_server *server, rp_string name, rp_error *err)
{
    rp_served_table *served, *stale = NULL, **place;
    rp_table *table;

    /* Under the lock: otherwise the table may be dropped meanwhile, and replace the entry of
     * one that has got its id. */
    rp_mutex_lock(&server->lock);
    table = rp_store_find_table(server->store, name);
    if (table == NULL) {
        int shown = (int)(name.size < MAX_NAME_SHOWN ? name.size : MAX_NAME_SHOWN);

        rp_mutex_unlock(&server->lock);
        (void)rp_fail(err, RP_NOT_FOUND, "Priority table %.*s was not found", shown, name.data);
        return NULL;
    }
    place = place_of(server, table);
    if (*place != NULL && (*place)->table != table) { /* it was dropped, and its id reused */
        stale = *place;
        *place = NULL;
    }
    if (*place != NULL)
        rp_table_unref(table);
    else
        *place = make(server, table, name);
    served = *place;
    assert(served == NULL || (served->table == table && rp_served_table_is(served, name)));
    if (served != NULL) served = rp_served_table_ref(served);
    rp_mutex_unlock(&server->lock);
    rp_served_table_unref(stale);
    if (served == NULL) (void)rp_fail_memory(err, sizeof *served);
    return served;
}

rp_served_table *rp_served_table_of(rp_task *task, rp_string name)
{
    rp_error error;
    rp_served_table *served = rp_served_table_find(rp_task_worker(task)->server, name, &error);

    if (served == NULL) rp_task_finish(task, error.code, error.text);
    return served;
}

void rp_served_table_altered(rp_served_table *served)
{
    rp_table_info info;

    rp_table_get_info(served->table, &info);
    atomic_store_explicit(&served->max_pending, max_pending(&info), memory_order_relaxed);
}

void rp_served_table_forget(rp_server *server, const char *name)
{
    const rp_string key = {name, strlen(name)};
    rp_table *table;

    /* Holds the lock throughout, since rp_served_table_find() adds entries under it. */
    rp_mutex_lock(&server->lock);
    table = rp_store_find_table(server->store, key);
    for (size_t i = 0; i < RP_MAX_TABLES; i++) {
        rp_served_table *served = server->served[i];
        if (!rp_served_table_is(served, key) || served->table == table) continue;
        server->served[i] = NULL;
        rp_served_table_unref(served);
    }
    if (table == NULL) rp_metrics_forget_table(server->metrics, name);
    rp_mutex_unlock(&server->lock);
    rp_table_unref(table);
}

void rp_served_table_forget_all(rp_server *server)
{
    rp_mutex_lock(&server->lock);
    for (size_t i = 0; i < RP_MAX_TABLES; i++) {
        rp_served_table_unref(server->served[i]);
        server->served[i] = NULL;
    }
    rp_mutex_unlock(&server->lock);
}
