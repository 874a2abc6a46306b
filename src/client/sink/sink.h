/* SPDX-License-Identifier: Apache-2.0 */
/* A sink takes the items of a writer and inserts them into the tables of a server, of several
 * shards, or of a store of this process.
 *
 * A writer puts items in the order in which they were created, each with a complete trajectory.
 * The sink settles every item exactly once: it reports the item as confirmed or as rejected.
 * While a server cannot be reached, its items wait; when it is back, the sink sends them again
 * under the same keys. */
#ifndef RP_CLIENT_SINK_SINK_H
#define RP_CLIENT_SINK_SINK_H

#include "reprise/trajectory.h"

typedef struct rp_sink_item {
    uint64_t key;
    const char *table; /* valid as long as the sink: the writer owns the names */
    double priority;
    rp_trajectory *trajectory; /* the sink takes the reference */
} rp_sink_item;

/* on_settled is called on threads of the sink; put(), push() and await() also call it on their
 * caller's thread; a sink of this process also on a thread whose call let a table insert items
 * that waited. `status` RP_OK: these `count` items, in any order, are in their tables. Any
 * other status: they were rejected, and `text` says why. */
typedef struct rp_sink_events {
    void (*on_settled)(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text);
    void *user;
} rp_sink_events;

typedef struct rp_sink rp_sink;

#define RP_AWAIT_ANY UINT64_MAX

typedef struct rp_sink_class {
    /* Takes `count` items. Does not wait: the writer bounds the unsettled items. One thread at
     * a time, which holds no lock that on_settled takes. RP_NO_RESOURCE: none was taken. */
    rp_status (*put)(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err);
    /* A sink may hold items back for a moment to send more at once. push() sends them now if
     * there are at least `least`, on this thread if possible. The caller holds no lock;
     * on_settled may be called on this thread. NULL: the sink holds nothing back. */
    void (*push)(rp_sink *sink, size_t least);
    /* The writer waits until on_settled has reported `settled` items in all since the sink was
     * opened. Until then, the sink may keep reports of inserted items back, to make many at
     * once; then it makes them, on this thread if it can. RP_AWAIT_ANY: it reports items as
     * they are settled, until the next call. The caller holds no lock. NULL: the sink keeps no
     * report back. */
    void (*await)(rp_sink *sink, uint64_t settled);
    /* Writes to `text` why items are not settled yet, "" if that is not known or if there are
     * none. Any thread. */
    void (*why)(rp_sink *sink, char *text, size_t size);
    /* Drops unsettled items and frees the sink. on_settled is not called after it returns. Must
     * not be called from a callback. */
    void (*close)(rp_sink *sink);
} rp_sink_class;

struct rp_sink {
    const rp_sink_class *class; /* embed as the first member */
};

#endif
