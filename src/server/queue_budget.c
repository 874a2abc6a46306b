/* SPDX-License-Identifier: Apache-2.0 */
#include "server/queue_budget.h"

#include "server/inside.h"

enum {
    PUBLISH_BYTES = 256 << 10, /* that a worker may count without telling the others */
    SHARE_BYTES = 256 << 10,   /* of the last quarter, for one connection, at most */
};

void rp_queue_publish(rp_worker *worker)
{
    if (worker->queued_unpublished == 0) return;
    /* Relaxed: a number that nothing else depends on. */
    atomic_fetch_add_explicit(&worker->server->queued_bytes, worker->queued_unpublished,
                              memory_order_relaxed);
    worker->queued_unpublished = 0;
}

void rp_queue_count(rp_worker *worker, size_t bytes)
{
    worker->queued_unpublished += bytes;
    rp_counter_add(&worker->metrics->queued_bytes, bytes);
    /* Within PUBLISH_BYTES of 0, on either side. */
    if (worker->queued_unpublished + PUBLISH_BYTES > 2 * (size_t)PUBLISH_BYTES)
        rp_queue_publish(worker);
}

size_t rp_queue_bytes(const rp_worker *worker)
{
    size_t all = worker->queued_unpublished +
                 atomic_load_explicit(&worker->server->queued_bytes, memory_order_relaxed);

    /* Other workers may have published less than they hold, and taken away more. */
    return all > SIZE_MAX / 2 ? 0 : all;
}

/* The part of the last quarter that one connection may use. */
static size_t share_of(const rp_worker *worker)
{
    size_t count =
        atomic_load_explicit(&worker->server->connection_count, memory_order_relaxed);
    size_t share = worker->limits.queued_bytes / 4 / (count > 0 ? count : 1);

    return share < SHARE_BYTES ? share : SHARE_BYTES;
}

size_t rp_queue_room(const rp_worker *worker, size_t own)
{
    size_t all = rp_queue_bytes(worker), limit = worker->limits.queued_bytes;
    size_t open = limit - limit / 4, share, room = 0;

    if (all < open) return open - all; /* Q1; never less than Q2 would give by much */
    share = share_of(worker);
    if (all < limit && own < share) /* Q2 */
        room = share - own < limit - all ? share - own : limit - all;
    if (own < RP_QUEUE_FLOOR_BYTES && room < RP_QUEUE_FLOOR_BYTES - own) /* Q3 */
        room = RP_QUEUE_FLOOR_BYTES - own;
    return room;
}

bool rp_queue_fits(const rp_worker *worker, size_t own)
{
    size_t all = rp_queue_bytes(worker), limit = worker->limits.queued_bytes;

    return all <= limit - limit / 4 || own <= RP_QUEUE_FLOOR_BYTES ||
           (all <= limit && own <= share_of(worker));
}

/* --- connections ------------------------------------------------------------------------------ */

/* Bytes that it holds for its peer. */
static size_t own_bytes(const rp_connection *c)
{
    if (c->h2 == NULL) return 0;
    return rp_h2_held_bytes(c->h2) + rp_h2_queued_bytes(c->h2) + c->making_bytes;
}

void rp_connection_count(rp_connection *c)
{
    size_t bytes = own_bytes(c);

    if (bytes == c->counted_bytes) return;
    rp_queue_count(c->worker, bytes - c->counted_bytes);
    c->counted_bytes = bytes;
}

size_t rp_connection_room(const rp_connection *c)
{
    return rp_queue_room(c->worker, c->counted_bytes);
}
