/* SPDX-License-Identifier: Apache-2.0 */
/* Where a writer's items go: a server, a store of this process, or several shards.
 *
 * A writer gives items to its sink in the order in which they were created, each with a whole
 * trajectory. The sink tells, for every item exactly once, how it ended: confirmed, or refused
 * for good. It never tells of an item that is only delayed: a server that is gone is waited
 * for, and what it had not confirmed is sent again under the same keys. */
#ifndef RP_CLIENT_SINK_SINK_H
#define RP_CLIENT_SINK_SINK_H

#include "reprise/trajectory.h"

typedef struct rp_sink_item {
    uint64_t key;
    const char *table; /* valid as long as the sink: the writer keeps its tables' names */
    double priority;
    rp_trajectory *trajectory; /* the sink takes the reference */
} rp_sink_item;

/* Called on the sink's threads, never from within a call to the sink but push(). `status`
 * RP_OK: these `count` items, in any order, are in their tables. Any other: they will never be,
 * and `text` says why. */
typedef struct rp_sink_events {
    void (*on_settled)(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text);
    void *user;
} rp_sink_events;

typedef struct rp_sink rp_sink;

typedef struct rp_sink_class {
    /* Takes `count` items. Does not wait: the writer bounds what is unsettled. One thread at a
     * time. RP_NO_RESOURCE: none was taken. */
    rp_status (*put)(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err);
    /* What has been put may wait a moment for more. If so many items wait, they go out now, on
     * this thread if that can be. The caller holds no lock, and events may come from within.
     * NULL: nothing ever waits. */
    void (*push)(rp_sink *sink, size_t least);
    /* Why items are not settled yet, as a sentence, "" if nothing is known. Any thread. */
    void (*why)(rp_sink *sink, char *text, size_t size);
    /* Forgets what is unsettled and frees the sink. No events once it returns. Not from a
     * callback. */
    void (*close)(rp_sink *sink);
} rp_sink_class;

struct rp_sink {
    const rp_sink_class *class; /* first in whatever implements it */
};

#endif
