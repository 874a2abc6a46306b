/* SPDX-License-Identifier: Apache-2.0 */
/* A sink: takes the items of a writer and inserts them into the tables of a server, of several
 * shards, or of a store in this process.
 *
 * A writer puts items in the order in which they were created, each with a complete trajectory.
 * The sink settles each item exactly once: it reports the item as confirmed or rejected. While
 * a server cannot be reached, its items wait. When the server is back, the sink sends them
 * again under the same keys. */
#ifndef RP_CLIENT_SINK_SINK_H
#define RP_CLIENT_SINK_SINK_H

#include "reprise/trajectory.h"

typedef struct rp_sink_item {
    uint64_t key;
    const char *table; /* name; the writer owns it and keeps it as long as the sink */
    double priority;
    rp_trajectory *trajectory; /* the sink takes over the reference */
} rp_sink_item;

/* on_settled reports `count` items as settled, in any order. If `status` is RP_OK, the items
 * are in their tables. Otherwise they were rejected, and `text` says why.
 *
 * on_settled is called on threads of the sink, and by put(), push() and await() on the thread
 * of their caller. A sink into a store of this process also calls on_settled on any thread that
 * makes a table insert waiting items, for example a thread that samples. */
typedef struct rp_sink_events {
    void (*on_settled)(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text);
    void *user;
} rp_sink_events;

typedef struct rp_sink rp_sink;

#define RP_AWAIT_ANY UINT64_MAX /* for await() */

typedef struct rp_sink_class {
    /* Takes `count` items. Never waits, because the writer limits the number of unsettled
     * items. Only one thread at a time may call put(), and it must hold no lock that on_settled
     * takes. On RP_NO_RESOURCE, no item was taken. */
    rp_status (*put)(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err);
    /* A sink is allowed to hold items back for a moment, to send more of them at once. If it
     * holds back at least `least` items, push() sends them now, on the caller's thread if
     * possible. The caller must hold no lock, because push() can call on_settled. NULL: the
     * sink holds nothing back. */
    void (*push)(rp_sink *sink, size_t least);
    /* Records that the writer waits until on_settled has reported `settled` items in total
     * since the sink was opened. Until this total is reached, the sink is allowed to delay
     * reports of confirmed items, to report many at once. When the total is reached, the sink
     * must report the items, on the caller's thread if possible. After await(RP_AWAIT_ANY), the
     * sink must not delay reports until the next await(). The caller must hold no lock. NULL:
     * the sink delays no reports. */
    void (*await)(rp_sink *sink, uint64_t settled);
    /* Writes to `text` why items are not settled yet. Writes "" if all are settled, or if the
     * reason is not known. Any thread. */
    void (*why)(rp_sink *sink, char *text, size_t size);
    /* Drops unsettled items and frees the sink. on_settled is not called after close() has
     * returned. Must not be called from a callback. */
    void (*close)(rp_sink *sink);
} rp_sink_class;

struct rp_sink {
    const rp_sink_class *class; /* implementations embed rp_sink as their first member */
};

#endif
