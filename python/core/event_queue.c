/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of events; see event_queue.h.
 *
 * The mutex is held for copies of events only, never while waiting for the GIL.
 *
 * Invariants, whenever the mutex is free:
 *   V1  count <= capacity; the events are ring[first], ring[first + 1], ... modulo capacity;
 *   V2  once is_closed is set it stays set, and count does not grow. */
#include "event_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct core_event_queue {
    pthread_mutex_t mu;
    pthread_cond_t arrived;
    size_t capacity, first, count;
    unsigned kinds;
    bool is_closed;
    int64_t taken, dropped;
    core_event ring[];
};

core_event_queue *core_event_queue_new(size_t capacity, unsigned kinds)
{
    pthread_condattr_t attr;
    core_event_queue *q;

    assert(capacity >= 1);
    if (capacity > (SIZE_MAX - sizeof *q) / sizeof(core_event)) return NULL;
    q = calloc(1, sizeof *q + capacity * sizeof(core_event));
    if (q == NULL) return NULL;
    q->capacity = capacity;
    q->kinds = kinds;
    (void)pthread_mutex_init(&q->mu, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&q->arrived, &attr);
    (void)pthread_condattr_destroy(&attr);
    return q;
}

void core_event_queue_free(core_event_queue *queue)
{
    if (queue == NULL) return;
    pthread_cond_destroy(&queue->arrived);
    pthread_mutex_destroy(&queue->mu);
    free(queue);
}

void core_event_queue_put(core_event_queue *queue, const rp_event *events, size_t count)
{
    bool was_empty;

    pthread_mutex_lock(&queue->mu);
    was_empty = queue->count == 0;
    for (size_t i = 0; i < count && !queue->is_closed; i++) {
        const rp_event *e = &events[i];

        if ((queue->kinds >> e->kind & 1) == 0) continue;
        if (queue->count == queue->capacity) {
            queue->dropped++;
            continue;
        }
        queue->ring[(queue->first + queue->count++) % queue->capacity] =
            (core_event){.kind = e->kind,
                         .times_sampled = e->times_sampled,
                         .key = e->key,
                         .priority = e->priority};
    }
    assert(queue->count <= queue->capacity); /* V1 */
    if (was_empty && queue->count > 0) pthread_cond_signal(&queue->arrived);
    pthread_mutex_unlock(&queue->mu);
}

size_t core_event_queue_take(core_event_queue *queue, core_event *out, size_t limit,
                             int64_t until_ns, bool *ended)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};
    size_t taken = 0;

    pthread_mutex_lock(&queue->mu);
    while (queue->count == 0 && !queue->is_closed && rp_now_ns() < until_ns)
        (void)pthread_cond_timedwait(&queue->arrived, &queue->mu, &until);
    for (; taken < limit && queue->count > 0; taken++) {
        out[taken] = queue->ring[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
    }
    queue->taken += (int64_t)taken;
    *ended = taken == 0 && queue->is_closed;
    pthread_mutex_unlock(&queue->mu);
    return taken;
}

void core_event_queue_close(core_event_queue *queue, bool discard)
{
    pthread_mutex_lock(&queue->mu);
    queue->is_closed = true; /* V2 */
    if (discard) {
        queue->dropped += (int64_t)queue->count;
        queue->count = 0;
    }
    pthread_cond_broadcast(&queue->arrived);
    pthread_mutex_unlock(&queue->mu);
}

core_event_counts core_event_queue_count(core_event_queue *queue)
{
    core_event_counts counts;

    pthread_mutex_lock(&queue->mu);
    counts = (core_event_counts){queue->count, queue->taken, queue->dropped};
    pthread_mutex_unlock(&queue->mu);
    return counts;
}
