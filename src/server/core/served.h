/* SPDX-License-Identifier: Apache-2.0 */
/* A table as the server sees it: with its metrics, and what streams have to agree on. */
#ifndef RP_SERVER_CORE_SERVED_H
#define RP_SERVER_CORE_SERVED_H

#include <stdatomic.h>

#include "server/core/inside.h"
#include "table/table.h"
#include "util/refcount.h"

typedef struct rp_served {
    rp_refcount refs;
    rp_allocator alloc;
    struct rp_served *next; /* of the server, under its lock */
    rp_table *table;        /* a reference */
    rp_table_metrics *metrics;
    atomic_size_t pending_inserts; /* items that wait for the table, of all streams */
    atomic_size_t max_pending;     /* then streams that insert are not read from */
    atomic_size_t sample_bytes;    /* what a sample has come to lately; 0: not known */
    size_t name_size;
    char name[]; /* with a zero behind it */
} rp_served;

/* The table of that name: a reference, or NULL if there is none or no memory, as `*err` says
 * (RP_NOT_FOUND, RP_NO_RESOURCE). Any thread. Takes a lock: keep it for a stream. */
rp_served *rp_served_find(rp_server *server, rp_string name, rp_error *err);
rp_served *rp_served_ref(rp_served *served);
void rp_served_unref(rp_served *served); /* NULL is fine */

/* The same for a task: NULL with the call ended. */
rp_served *rp_served_of(rp_task *task, rp_string name);

static inline bool rp_served_is(const rp_served *served, rp_string name)
{
    return served != NULL && served->name_size == name.size &&
           (name.size == 0 || memcmp(served->name, name.data, name.size) == 0);
}

static inline bool rp_served_is_dropped(const rp_served *served)
{
    return served != NULL && rp_table_is_dropped(served->table);
}

/* Takes note of bounds that were changed. */
void rp_served_altered(rp_served *served);

/* Forgets a table that was dropped, and its metrics; not one that has its name by now. */
void rp_served_forget(rp_server *server, const char *name);
/* Forgets all; no stream may be left. */
void rp_served_forget_all(rp_server *server);

#endif
