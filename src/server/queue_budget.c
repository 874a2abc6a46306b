/* SPDX-License-Identifier: Apache-2.0 */
#include "server/queue_budget.h"

#include "server/inside.h"
#include "server/limits.h"
#include "util/mem.h"

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

/* What others have published and drawn. Workers may have published less than they hold, and
 * taken away more. */
static size_t published(const rp_server *server, size_t unpublished)
{
    size_t all = unpublished +
                 atomic_load_explicit(&server->queued_bytes, memory_order_relaxed) +
                 atomic_load_explicit(&server->drawn_bytes, memory_order_relaxed);

    return all > SIZE_MAX / 2 ? 0 : all;
}

size_t rp_queue_bytes(const rp_worker *worker)
{
    return published(worker->server, worker->queued_unpublished);
}

/* The part of the last quarter that one connection may use. */
static size_t share_of(const rp_server *server, size_t limit)
{
    size_t count = atomic_load_explicit(&server->connection_count, memory_order_relaxed);
    size_t share = limit / 4 / (count > 0 ? count : 1);

    return share < SHARE_BYTES ? share : SHARE_BYTES;
}

/* `open`: the part of the limit that any connection may add to. */
static size_t room_of(const rp_server *server, size_t limit, size_t open, size_t all,
                      size_t own)
{
    size_t share, room = 0;

    if (all < open) return open - all; /* Q1; never less than Q2 would give by much */
    share = share_of(server, limit);
    if (all < limit && own < share) /* Q2 */
        room = share - own < limit - all ? share - own : limit - all;
    if (own < RP_QUEUE_FLOOR_BYTES && room < RP_QUEUE_FLOOR_BYTES - own) /* Q3 */
        room = RP_QUEUE_FLOOR_BYTES - own;
    return room;
}

size_t rp_queue_room(const rp_worker *worker, size_t own)
{
    size_t limit = worker->limits.queued_bytes;

    return room_of(worker->server, limit, limit - limit / 4, rp_queue_bytes(worker), own);
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
                                rp_connection_read_room(c)))
        rp_queue_note_short(c->worker);
    bytes += c->intake.reserved; /* Q6 */
    if (bytes == c->counted_bytes) return;
    rp_queue_count(c->worker, bytes - c->counted_bytes);
    c->counted_bytes = bytes;
}

static size_t drawn_bytes(const rp_connection *c)
{
    if (c->drawn == NULL) return 0;
    return atomic_load_explicit(&c->drawn->bytes, memory_order_relaxed);
}

size_t rp_connection_room(const rp_connection *c)
{
    return rp_queue_room(c->worker, c->counted_bytes + drawn_bytes(c));
}

size_t rp_connection_read_room(const rp_connection *c)
{
    const rp_server_limits *limits = &c->worker->limits;

    return room_of(c->worker->server, limits->queued_bytes, rp_server_limits_read_bytes(limits),
                   rp_queue_bytes(c->worker), c->counted_bytes + drawn_bytes(c));
}

size_t rp_connection_held(const rp_connection *c)
{
    return rp_h2_queued_bytes(c->h2) + drawn_bytes(c);
}

/* --- items that are drawn ----------------------------------------------------------------------- */

static size_t take(rp_draw_room *room, size_t least, size_t most)
{
    return rp_drawn_take((rp_drawn *)(void *)room, 0, least, most);
}

static void give(rp_draw_room *room, size_t bytes)
{
    rp_drawn_give((rp_drawn *)(void *)room, bytes);
}

rp_drawn *rp_drawn_new(rp_server *server)
{
    rp_drawn *drawn = rp_alloc_zero(&server->alloc, sizeof *drawn);

    if (drawn == NULL) return NULL;
    drawn->room = (rp_draw_room){.take = take, .give = give};
    drawn->server = server;
    drawn->refs = 1;
    return drawn;
}

rp_drawn *rp_drawn_ref(rp_drawn *drawn)
{
    drawn->refs++;
    return drawn;
}

void rp_drawn_unref(rp_drawn *drawn)
{
    if (drawn != NULL && --drawn->refs == 0)
        rp_release(&drawn->server->alloc, drawn, sizeof *drawn);
}

/* Relaxed, here and below: numbers that nothing else depends on. */
void rp_drawn_tell(rp_connection *c)
{
    const rp_server_limits *limits = &c->worker->limits;

    rp_connection_count(c);
    rp_queue_publish(c->worker);
    atomic_store_explicit(&c->drawn->counted, c->counted_bytes, memory_order_relaxed);
    atomic_store_explicit(&c->drawn->limit, limits->queued_bytes, memory_order_relaxed);
    atomic_store_explicit(&c->drawn->connection_limit, limits->connection_queued_bytes,
                          memory_order_relaxed);
}

size_t rp_drawn_take(rp_drawn *drawn, size_t mine, size_t least, size_t most)
{
    rp_server *server = drawn->server;
    size_t limit = atomic_load_explicit(&drawn->limit, memory_order_relaxed);
    size_t own = atomic_load_explicit(&drawn->bytes, memory_order_relaxed);
    size_t all = atomic_load_explicit(&server->drawn_bytes, memory_order_relaxed), got;
    size_t need = least < limit / 4 ? least : limit / 4;

    if (own - mine >= atomic_load_explicit(&drawn->connection_limit, memory_order_relaxed))
        return 0;
    own += atomic_load_explicit(&drawn->counted, memory_order_relaxed);
    do {
        size_t room = room_of(server, limit, limit - limit / 4, published(server, 0), own);

        if (room < need || room == 0) return 0;
        got = room < most ? room : most;
        if (got < least) got = least;
    } while (!atomic_compare_exchange_weak_explicit(
        &server->drawn_bytes, &all, all + got, memory_order_relaxed, memory_order_relaxed));
    (void)atomic_fetch_add_explicit(&drawn->bytes, got, memory_order_relaxed);
    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->queued_bytes, got);
    return got;
}

void rp_drawn_give(rp_drawn *drawn, size_t bytes)
{
    rp_server *server = drawn->server;

    if (bytes == 0) return;
    (void)atomic_fetch_sub_explicit(&server->drawn_bytes, bytes, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&drawn->bytes, bytes, memory_order_relaxed);
    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->queued_bytes, 0 - bytes);
}
