/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of the events of a table (inserts, samples, removals). The threads that call
 * the table write events; one thread reads them.
 *
 * Writing never waits: if the queue is full, an event is dropped and counted as dropped. The
 * queue holds no reference to a trajectory. Safe from any thread, with the GIL or without. */
#ifndef REPRISE_PYTHON_EVENT_QUEUE_H
#define REPRISE_PYTHON_EVENT_QUEUE_H

#include "core.h"

typedef struct core_event {
    rp_event_kind kind;
    int32_t times_sampled;
    uint64_t key;
    double priority;
} core_event;

typedef struct core_event_counts {
    size_t waiting;         /* events in the queue */
    int64_t taken, dropped; /* totals since the queue was made */
} core_event_counts;

typedef struct core_event_queue core_event_queue;

/* Makes a queue for up to `capacity` (>= 1) events. The queue takes only events of the kinds
 * whose bits are set in `kinds`. Returns NULL, without an exception, if there is no memory. The
 * caller owns the queue. */
core_event_queue *core_event_queue_new(size_t capacity, unsigned kinds);
void core_event_queue_free(core_event_queue *queue); /* NULL is fine */

void core_event_queue_put(core_event_queue *queue, const rp_event *events, size_t count);

/* Waits for an event until the monotonic time `until_ns`, and moves up to `limit` events to
 * `out`. Returns their number. Sets `*ended` to whether the queue is closed and empty. The
 * caller must not hold the GIL. */
size_t core_event_queue_take(core_event_queue *queue, core_event *out, size_t limit,
                             int64_t until_ns, bool *ended);

/* Closes the queue: later events are ignored. With `discard`, the events in the queue are
 * dropped and counted as dropped. */
void core_event_queue_close(core_event_queue *queue, bool discard);

core_event_counts core_event_queue_count(core_event_queue *queue);

#endif
