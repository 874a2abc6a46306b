/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/queue_budget.h"

#include "server/bounds/limits.h"
#include "server/core/inside.h"
#include "util/mem.h"

enum {
    PUBLISH_BYTES = 256 << 10, /* that a worker may count without telling the others */
    SHARE_BYTES = 256 << 10,   /* of the last quarter, for one connection, at most */
    SHORT_NS = 1000000000, /* longer than the time between two tries of who waits for room */
    ARRIVING_BYTES = 16 << 10, /* that have to be there before a message has a turn */
};

void rp_queue_publish(rp_worker *worker)
{
    for (int side = 0; side < RP_QUEUE_SIDES; side++) {
        if (worker->queued_unpublished[side] == 0) continue;
        /* Relaxed: a number that nothing else depends on. */
        atomic_fetch_add_explicit(&worker->server->queued_bytes[side],
                                  worker->queued_unpublished[side], memory_order_relaxed);
        worker->queued_unpublished[side] = 0;
    }
}

void rp_queue_count(rp_worker *worker, rp_queue_side side, size_t bytes)
{
    worker->queued_unpublished[side] += bytes;
    rp_counter_add(&worker->metrics->queued_bytes, bytes);
    /* Within PUBLISH_BYTES of 0, on either side of it. */
    if (worker->queued_unpublished[side] + PUBLISH_BYTES > 2 * (size_t)PUBLISH_BYTES)
        rp_queue_publish(worker);
}

/* What others have published and drawn. Workers may have published less than they hold, and
 * taken away more. */
static size_t published(const rp_server *server, rp_queue_side side, size_t unpublished)
{
    size_t all =
        unpublished + atomic_load_explicit(&server->queued_bytes[side], memory_order_relaxed);

    if (side == RP_QUEUE_OUT)
        all += atomic_load_explicit(&server->drawn_bytes, memory_order_relaxed);
    return all > SIZE_MAX / 2 ? 0 : all;
}

size_t rp_queue_bytes(const rp_worker *worker, rp_queue_side side)
{
    return published(worker->server, side, worker->queued_unpublished[side]);
}

size_t rp_queue_published(const rp_server *server)
{
    return published(server, RP_QUEUE_IN, 0) + published(server, RP_QUEUE_OUT, 0);
}

/* The part of the last quarter that one connection may use. */
static size_t share_of(const rp_server *server, size_t limit)
{
    size_t count = atomic_load_explicit(&server->connection_count, memory_order_relaxed);
    size_t share = limit / 4 / (count > 0 ? count : 1);

    return share < SHARE_BYTES ? share : SHARE_BYTES;
}

/* Bytes that a connection may add to a side with this limit that counts `all`, of which the
 * connection holds `own`. */
static size_t room_of(const rp_server *server, size_t limit, size_t all, size_t own)
{
    size_t share, room = 0, open = limit - limit / 4;

    if (all < open) return open - all; /* Q1; never less than Q2 would give by much */
    share = share_of(server, limit);
    if (all < limit && own < share) /* Q2 */
        room = share - own < limit - all ? share - own : limit - all;
    if (own < RP_QUEUE_FLOOR_BYTES && room < RP_QUEUE_FLOOR_BYTES - own) /* Q3 */
        room = RP_QUEUE_FLOOR_BYTES - own;
    return room;
}

/* The same for one message or item, which may pass the limit by Q1. */
static size_t room_for_one(const rp_server *server, size_t limit, size_t all, size_t own)
{
    return all < limit - limit / 4 ? SIZE_MAX : room_of(server, limit, all, own);
}

void rp_queue_note_short(rp_worker *worker, rp_queue_side side)
{
    atomic_int_fast64_t *then_ns = &worker->server->short_ns[side];
    int64_t now_ns = rp_loop_now(worker->loop);

    /* Relaxed: a time that nothing else depends on. */
    if (now_ns - atomic_load_explicit(then_ns, memory_order_relaxed) > SHORT_NS / 8)
        atomic_store_explicit(then_ns, now_ns, memory_order_relaxed);
}

bool rp_queue_is_short(const rp_worker *worker, rp_queue_side side)
{
    int64_t then_ns =
        atomic_load_explicit(&worker->server->short_ns[side], memory_order_relaxed);

    return then_ns != 0 && rp_loop_now(worker->loop) - then_ns < SHORT_NS;
}

static size_t drawn_bytes(const rp_connection *c)
{
    if (c->drawn == NULL) return 0;
    return atomic_load_explicit(&c->drawn->bytes, memory_order_relaxed);
}

static size_t own_bytes(const rp_connection *c, rp_queue_side side)
{
    return c->counted_bytes[side] + (side == RP_QUEUE_OUT ? drawn_bytes(c) : 0);
}

/* Whether a turn (rp_drawn.turn) has room for an item of so many bytes. */
static bool is_lent(size_t turn, size_t bytes)
{
    return turn % 2 == 0 && turn / 2 >= bytes && turn > 0;
}

size_t rp_connection_room(const rp_connection *c, rp_queue_side side)
{
    return room_of(c->worker->server, rp_server_limits_side_bytes(&c->worker->limits),
                   rp_queue_bytes(c->worker, side), own_bytes(c, side));
}

bool rp_connection_has_room(rp_connection *c, rp_queue_side side, size_t bytes)
{
    size_t room =
        room_for_one(c->worker->server, rp_server_limits_side_bytes(&c->worker->limits),
                     rp_queue_bytes(c->worker, side), own_bytes(c, side));

    if (room >= (bytes > 0 ? bytes : 1)) return true;
    if (side == RP_QUEUE_OUT && c->drawn != NULL &&
        is_lent(atomic_load_explicit(&c->drawn->turn, memory_order_relaxed), bytes))
        return true;
    rp_queue_note_short(c->worker, side);
    return false;
}

static void count(rp_connection *c, rp_queue_side side, size_t bytes)
{
    if (bytes == c->counted_bytes[side]) return;
    rp_queue_count(c->worker, side, bytes - c->counted_bytes[side]);
    c->counted_bytes[side] = bytes;
}

static rp_turn_terms terms_of(const rp_connection *c, rp_queue_side side)
{
    const rp_server_limits *limits = &c->worker->limits;
    int64_t longest_ms = side == RP_QUEUE_IN ? limits->message_grace_ms : limits->stall_ms;

    return (rp_turn_terms){.lent_bytes = limits->message_bytes,
                           .longest_ns = longest_ms * 1000000};
}

/* Bytes that the peer has moved on a side, over the life of the connection. */
static uint64_t moved_bytes(const rp_connection *c, rp_queue_side side)
{
    uint64_t arrived;

    if (side == RP_QUEUE_OUT) return rp_h2_left_bytes(c->h2);
    (void)rp_h2_waits_for(c->h2, &arrived);
    return arrived;
}

static bool ask(rp_connection *c, rp_queue_side side, size_t bytes)
{
    rp_turn_terms terms = terms_of(c, side);

    return rp_turn_ask(&c->worker->server->turns[side], &c->turns[side], bytes, &terms,
                       moved_bytes(c, side), rp_loop_now(c->worker->loop));
}

static void end_turn(rp_connection *c, rp_queue_side side)
{
    rp_turn_end(&c->worker->server->turns[side], &c->turns[side]);
}

/* Whether it may add the `wanted` bytes of its messages by a turn. */
static bool may_read_by_turn(rp_connection *c, size_t held, size_t wanted)
{
    size_t enough = wanted < ARRIVING_BYTES ? wanted : ARRIVING_BYTES, all = held + wanted;

    if (!c->turns[RP_QUEUE_IN].has_loan) {
        if (rp_link_waiting(&c->link) < enough) {
            end_turn(c, RP_QUEUE_IN); /* leaves the line */
            return false;
        }
        c->held_before_turn = held;
    }
    return ask(c, RP_QUEUE_IN, all - c->held_before_turn);
}

/* No message is incomplete on calls that are read. By its turn the connection may have more of
 * calls that are paused: it keeps the turn for them. */
static void end_reading_by_turn(rp_connection *c, size_t held)
{
    if (c->turns[RP_QUEUE_IN].has_loan && held > c->held_before_turn + RP_QUEUE_FLOOR_BYTES)
        rp_turn_reduce(&c->worker->server->turns[RP_QUEUE_IN], &c->turns[RP_QUEUE_IN],
                       held - c->held_before_turn);
    else
        end_turn(c, RP_QUEUE_IN);
}

bool rp_connection_may_draw(rp_connection *c)
{
    rp_turn *turn = &c->turns[RP_QUEUE_OUT];

    if (turn->has_loan) return false;
    if (c->wanted_bytes == 0 || rp_h2_queued_bytes(c->h2) > 0) {
        end_turn(c, RP_QUEUE_OUT);
        return false;
    }
    /* Answers that are still to be made are no fault of the peer: it keeps its place. */
    if (c->making_bytes > 0 || drawn_bytes(c) > 0) return false;
    if (!ask(c, RP_QUEUE_OUT, c->wanted_bytes)) return false;
    atomic_store_explicit(&c->drawn->turn, 2 * turn->bytes, memory_order_relaxed);
    return true;
}

void rp_connection_drew(rp_connection *c)
{
    /* Acquire: what was drawn by the turn is counted (take_lent()), else the turn would end. */
    (void)atomic_exchange_explicit(&c->drawn->turn, 0, memory_order_acquire);
    rp_connection_count(c);
}

void rp_connection_leave_line(rp_connection *c)
{
    if (c->turns[RP_QUEUE_OUT].is_waiting) end_turn(c, RP_QUEUE_OUT);
}

bool rp_connection_has_turn(const rp_connection *c)
{
    return c->turns[RP_QUEUE_IN].has_loan || c->turns[RP_QUEUE_OUT].has_loan;
}

void rp_connection_excuse(rp_connection *c, int64_t late_ns)
{
    for (int side = 0; side < RP_QUEUE_SIDES; side++) {
        if (!c->turns[side].has_loan) continue;
        c->turns[side].since_ns += late_ns;
        c->turns[side].paced_ns += late_ns;
    }
}

bool rp_connection_is_behind(rp_connection *c, rp_queue_side side)
{
    rp_turn_terms terms = terms_of(c, side);
    rp_turn *turn = &c->turns[side];
    uint64_t moved = moved_bytes(c, side);
    int64_t now_ns = rp_loop_now(c->worker->loop);

    /* What calls hold that are paused has arrived. */
    if (side == RP_QUEUE_IN && rp_h2_awaited_bytes(c->h2) == 0)
        moved = turn->moved + turn->bytes;
    /* The item that was drawn waits for others of its call, or for the disk. */
    if (side == RP_QUEUE_OUT && rp_h2_queued_bytes(c->h2) == 0)
        rp_turn_rest(turn, moved, now_ns);
    return rp_turn_is_behind(&c->worker->server->turns[side], turn, &terms, moved, now_ns);
}

/* Q6. Returns the bytes of messages, those to come included as far as there is room. */
static size_t reserve(rp_connection *c)
{
    size_t held = rp_h2_held_bytes(c->h2), wanted = rp_h2_awaited_bytes(c->h2), more;
    size_t most = c->worker->limits.message_bytes, counted = c->counted_bytes[RP_QUEUE_IN];

    if (c->state != RP_CONNECTION_H2) wanted = 0; /* it is not read any more */
    if (wanted > most) wanted = most;
    more = held + wanted > counted ? held + wanted - counted : 0;
    if (c->held_before_turn > held) c->held_before_turn = held;
    if (wanted == 0) { /* mostly */
        c->intake.reserved = 0;
        end_reading_by_turn(c, held);
    } else {
        bool has_room = more == 0 || rp_connection_has_room(c, RP_QUEUE_IN, more);

        if (has_room && !c->turns[RP_QUEUE_IN].has_loan) end_turn(c, RP_QUEUE_IN);
        rp_intake_reserve(&c->intake, counted, held, wanted,
                          has_room || may_read_by_turn(c, held, wanted));
    }
    return held + c->intake.reserved;
}

void rp_connection_count(rp_connection *c)
{
    bool is_h2 = c->h2 != NULL;

    count(c, RP_QUEUE_IN, is_h2 ? reserve(c) : 0);
    count(c, RP_QUEUE_OUT, is_h2 ? rp_h2_queued_bytes(c->h2) + c->making_bytes : 0);
    for (rp_queue_side side = 0; side < RP_QUEUE_SIDES && !is_h2; side++) end_turn(c, side);
    if (c->turns[RP_QUEUE_OUT].has_loan && own_bytes(c, RP_QUEUE_OUT) == 0 &&
        atomic_load_explicit(&c->drawn->turn, memory_order_relaxed) == 0)
        end_turn(c, RP_QUEUE_OUT);
}

size_t rp_connection_held(const rp_connection *c)
{
    return rp_h2_queued_bytes(c->h2) + drawn_bytes(c);
}

static size_t take(rp_draw_room *room, size_t least, size_t most)
{
    return rp_drawn_take((rp_drawn *)(void *)room, 0, least, most);
}

static void give(rp_draw_room *room, size_t bytes)
{
    rp_drawn_untake((rp_drawn *)(void *)room, bytes);
}

static size_t left(const rp_draw_room *room)
{
    return rp_drawn_left((const rp_drawn *)(const void *)room, 0);
}

rp_drawn *rp_drawn_new(rp_server *server)
{
    rp_drawn *drawn = rp_alloc_zero(&server->alloc, sizeof *drawn);

    if (drawn == NULL) return NULL;
    drawn->room = (rp_draw_room){.take = take, .give = give, .left = left};
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
    atomic_store_explicit(&c->drawn->counted, c->counted_bytes[RP_QUEUE_OUT],
                          memory_order_relaxed);
    atomic_store_explicit(&c->drawn->limit, rp_server_limits_side_bytes(limits),
                          memory_order_relaxed);
    atomic_store_explicit(&c->drawn->connection_limit, limits->connection_queued_bytes,
                          memory_order_relaxed);
}

/* Q7: takes the room of a turn, from which nothing has been taken. Returns as rp_drawn_take().
 * The bytes are counted before the turn is taken: without them its connection ends the turn. */
static size_t take_lent(rp_drawn *drawn, size_t least, size_t most)
{
    size_t turn = atomic_load_explicit(&drawn->turn, memory_order_relaxed);
    size_t got = most < turn / 2 ? most : turn / 2;

    if (!is_lent(turn, least)) return 0;
    (void)atomic_fetch_add_explicit(&drawn->bytes, got, memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&drawn->turn, &turn, turn + 1,
                                                memory_order_release, memory_order_relaxed))
        return got;
    (void)atomic_fetch_sub_explicit(&drawn->bytes, got, memory_order_relaxed);
    return 0;
}

/* Takes room within the limit. Returns as rp_drawn_take(). */
static size_t take_room(rp_server *server, size_t limit, size_t own, size_t least, size_t most)
{
    size_t all = atomic_load_explicit(&server->drawn_bytes, memory_order_relaxed), got;

    do {
        size_t counted = published(server, RP_QUEUE_OUT, 0);

        if (room_for_one(server, limit, counted, own) < least) return 0;
        got = room_of(server, limit, counted, own);
        if (got > most) got = most;
        if (got < least) got = least;
    } while (!atomic_compare_exchange_weak_explicit(
        &server->drawn_bytes, &all, all + got, memory_order_relaxed, memory_order_relaxed));
    return got;
}

size_t rp_drawn_take(rp_drawn *drawn, size_t mine, size_t least, size_t most)
{
    rp_server *server = drawn->server;
    size_t limit = atomic_load_explicit(&drawn->limit, memory_order_relaxed);
    size_t own = atomic_load_explicit(&drawn->bytes, memory_order_relaxed), got;

    if (own - mine >= atomic_load_explicit(&drawn->connection_limit, memory_order_relaxed))
        return 0;
    own += atomic_load_explicit(&drawn->counted, memory_order_relaxed);
    got = take_room(server, limit, own, least, most);
    if (got > 0) {
        (void)atomic_fetch_add_explicit(&drawn->bytes, got, memory_order_relaxed);
    } else {
        got = take_lent(drawn, least, most);
        (void)atomic_fetch_add_explicit(&server->drawn_bytes, got, memory_order_relaxed);
    }
    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->queued_bytes, got);
    return got;
}

size_t rp_drawn_left(const rp_drawn *drawn, size_t mine)
{
    const rp_server *server = drawn->server;
    size_t limit = atomic_load_explicit(&drawn->limit, memory_order_relaxed);
    size_t own = atomic_load_explicit(&drawn->bytes, memory_order_relaxed), room;
    size_t turn = atomic_load_explicit(&drawn->turn, memory_order_relaxed);

    if (own - mine >= atomic_load_explicit(&drawn->connection_limit, memory_order_relaxed))
        return 0;
    own += atomic_load_explicit(&drawn->counted, memory_order_relaxed);
    room = room_of(server, limit, published(server, RP_QUEUE_OUT, 0), own);
    return is_lent(turn, room) ? turn / 2 : room;
}

void rp_drawn_give(rp_drawn *drawn, size_t bytes)
{
    rp_server *server = drawn->server;

    if (bytes == 0) return;
    (void)atomic_fetch_sub_explicit(&server->drawn_bytes, bytes, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&drawn->bytes, bytes, memory_order_relaxed);
    rp_counter_add_shared(&rp_metrics_shared(server->metrics)->queued_bytes, 0 - bytes);
}

void rp_drawn_untake(rp_drawn *drawn, size_t bytes)
{
    size_t turn = atomic_load_explicit(&drawn->turn, memory_order_relaxed);

    rp_drawn_give(drawn, bytes);
    if (turn % 2 == 1 && atomic_load_explicit(&drawn->bytes, memory_order_relaxed) == 0)
        (void)atomic_compare_exchange_strong_explicit(
            &drawn->turn, &turn, turn - 1, memory_order_relaxed, memory_order_relaxed);
}
