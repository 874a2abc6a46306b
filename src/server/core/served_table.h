/* SPDX-License-Identifier: Apache-2.0 */
/* A served table: a table, its metrics, and the state that all insert and sample streams of the
 * table share.
 *
 * server->served holds the served tables by table id. To find a served table by name, the
 * server looks up the name in the store and then the table's id in server->served. The entry of
 * a dropped table is removed by rp_served_table_forget(), or replaced when a new table gets the
 * same id.
 *
 * Invariant U1, under the server's lock: server->served[i] is NULL, or belongs to a table with
 * the id i + 1. */
#ifndef RP_SERVER_CORE_SERVED_TABLE_H
#define RP_SERVER_CORE_SERVED_TABLE_H

#include <stdatomic.h>

#include "server/core/task.h"
#include "table/table.h"
#include "util/refcount.h"

typedef struct rp_served_table {
    rp_refcount refs;
    rp_allocator alloc;
    rp_table *table; /* owns a reference */
    rp_table_metrics *metrics;
    atomic_size_t pending_inserts; /* items that wait to be inserted, of all streams */
    atomic_size_t max_pending;     /* insert streams pause when pending_inserts reaches this */
    atomic_size_t sample_bytes;    /* average size of recent samples; 0: not known */
    size_t name_size;
    char name[]; /* followed by a zero byte */
} rp_served_table;

/* Finds the table named `name`. Returns a reference, or NULL with `*err` filled in
 * (RP_NOT_FOUND, RP_NO_RESOURCE). Any thread may call it. The function takes the server's lock,
 * so a stream should keep the result instead of calling the function for each message. */
rp_served_table *rp_served_table_find(rp_server *server, rp_string name, rp_error *err);
rp_served_table *rp_served_table_ref(rp_served_table *served);
void rp_served_table_unref(rp_served_table *served); /* NULL is fine */

/* Finds the table named `name` for a task. Returns a reference. On failure it ends the task's
 * call with the error and returns NULL. */
rp_served_table *rp_served_table_of(rp_task *task, rp_string name);

static inline bool rp_served_table_is(const rp_served_table *served, rp_string name)
{
    return served != NULL && served->name_size == name.size &&
           (name.size == 0 || memcmp(served->name, name.data, name.size) == 0);
}

/* Returns whether the table has been dropped. False for NULL. */
static inline bool rp_served_table_is_dropped(const rp_served_table *served)
{
    return served != NULL && rp_table_is_dropped(served->table);
}

/* Updates max_pending. Must be called after the table was altered. */
void rp_served_table_altered(rp_served_table *served);

/* Removes the entries of dropped tables named `name` from server->served. If no table has
 * this name now, also removes the metrics kept under the name. Must be called after the table
 * was dropped. */
void rp_served_table_forget(rp_server *server, const char *name);
/* Removes all entries. No stream may exist when it is called. */
void rp_served_table_forget_all(rp_server *server);

#endif
