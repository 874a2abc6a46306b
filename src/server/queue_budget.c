/* SPDX-License-Identifier: Apache-2.0 */
#include "server/queue_budget.h"

#include "server/inside.h"
#include "server/limits.h"

enum {
    PUBLISH_BYTES = 256 << 10, /* that a worker may count without telling the others */
    SHARE_BYTES = 256 << 10,   /* of the last quarter, for one connection, at most */
    SHORT_NS = 1000000000, /* longer than the time between two tries of who waits for room */
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
    size_t open = rp_server_limits_open_bytes(&worker->limits), share, room = 0;

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

    return all <= rp_server_limits_open_bytes(&worker->limits) || own <= RP_QUEUE_FLOOR_BYTES ||
           (all <= limit && own <= share_of(worker));
}

void rp_queue_note_short(rp_worker *worker)
{
    int64_t now_ns = rp_loop_now(worker->loop);

    /* Relaxed: a time that nothing else depends on. */
    if (now_ns - atomic_load_explicit(&worker->server->short_ns, memory_order_relaxed) >
        SHORT_NS / 8)
        atomic_store_explicit(&worker->server->short_ns, now_ns, memory_order_relaxed);
}

bool rp_queue_is_short(const rp_worker *worker)
{
    int64_t then_ns = atomic_load_explicit(&worker->server->short_ns, memory_order_relaxed);

    return then_ns != 0 && rp_loop_now(worker->loop) - then_ns < SHORT_NS;
}

/* --- connections ------------------------------------------------------------------------------ */

void rp_connection_count(rp_connection *c)
{
    size_t bytes = 0, wanted = 0, most = c->worker->limits.message_bytes;

    if (c->h2 != NULL) {
        bytes = rp_h2_held_bytes(c->h2) + rp_h2_queued_bytes(c->h2) + c->making_bytes;
        wanted = rp_h2_awaited_bytes(c->h2);
    }
    if (wanted > most) wanted = most;
    if (wanted == 0) /* mostly */
        c->intake.reserved = 0;
    else if (!rp_intake_reserve(&c->intake, c->counted_bytes, bytes, wanted,
                                rp_connection_room(c)))
        rp_queue_note_short(c->worker);
    bytes += c->intake.reserved; /* Q5 */
    if (bytes == c->counted_bytes) return;
    rp_queue_count(c->worker, bytes - c->counted_bytes);
    c->counted_bytes = bytes;
}

size_t rp_connection_room(const rp_connection *c)
{
    return rp_queue_room(c->worker, c->counted_bytes);
}
