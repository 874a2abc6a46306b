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

static rp_served_table **find_locked(rp_server *server, rp_string name)
    RP_REQUIRES(server->lock)
{
    rp_served_table **link = &server->served;

    while (*link != NULL && !rp_served_table_is(*link, name)) link = &(*link)->next;
    return link;
}

rp_served_table *rp_served_table_find(rp_server *server, rp_string name, rp_error *err)
{
    rp_table *table = rp_store_find_table(server->store, name);
    rp_served_table *served, *stale = NULL, **link;

    if (table == NULL) {
        int shown = (int)(name.size < MAX_NAME_SHOWN ? name.size : MAX_NAME_SHOWN);
        (void)rp_fail(err, RP_NOT_FOUND, "Priority table %.*s was not found", shown, name.data);
        return NULL;
    }
    rp_mutex_lock(&server->lock);
    link = find_locked(server, name);
    served = *link;
    if (served != NULL && served->table != table) { /* dropped, and a new one was created */
        stale = served;
        *link = served->next;
        served = NULL;
    }
    if (served != NULL) {
        rp_table_unref(table);
    } else {
        served = make(server, table, name);
        if (served != NULL) {
            assert(*find_locked(server, name) == NULL); /* U1 */
            served->next = server->served;
            server->served = served;
        }
    }
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
    rp_served_table *served, **link;
    rp_table *table;

    /* Holds the lock throughout, since rp_served_table_find() adds entries under it. */
    rp_mutex_lock(&server->lock);
    table = rp_store_find_table(server->store, key);
    link = find_locked(server, key);
    served = *link;
    if (served != NULL && served->table != table)
        *link = served->next;
    else
        served = NULL;
    if (table == NULL) rp_metrics_forget_table(server->metrics, name);
    rp_mutex_unlock(&server->lock);
    rp_table_unref(table);
    rp_served_table_unref(served);
}

void rp_served_table_forget_all(rp_server *server)
{
    rp_served_table *served;

    rp_mutex_lock(&server->lock);
    served = server->served;
    server->served = NULL;
    rp_mutex_unlock(&server->lock);
    while (served != NULL) {
        rp_served_table *next = served->next;
        rp_served_table_unref(served);
        served = next;
    }
}
