/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection_room.h"

#include <assert.h>

#include "server/bounds/limits.h"

enum { ARRIVING_BYTES = 16 << 10 }; /* that are in the socket before a message gets a loan */

static size_t own_bytes(const rp_connection *c, rp_queue_side side)
{
    return c->counted_bytes[side] + (side == RP_QUEUE_OUT ? rp_drawn_bytes(c->drawn) : 0);
}

size_t rp_connection_room(const rp_connection *c, rp_queue_side side)
{
    return rp_queue_room(&c->worker->server->budget,
                         rp_server_limits_side_bytes(&c->worker->limits),
                         rp_queue_bytes(&c->worker->queue, side), own_bytes(c, side));
}

bool rp_connection_has_room(rp_connection *c, rp_queue_side side, size_t bytes)
{
    size_t room = rp_queue_room_for_one(
        &c->worker->server->budget, rp_server_limits_side_bytes(&c->worker->limits),
        rp_queue_bytes(&c->worker->queue, side), own_bytes(c, side));

    if (room >= (bytes > 0 ? bytes : 1)) return true;
    if (side == RP_QUEUE_OUT && c->drawn != NULL &&
        rp_drawn_loan_has(atomic_load_explicit(&c->drawn->loan, memory_order_relaxed), bytes))
        return true;
    rp_queue_mark_short(&c->worker->server->budget, side, rp_loop_now(c->worker->loop));
    return false;
}

static void count(rp_connection *c, rp_queue_side side, size_t bytes)
{
    if (bytes == c->counted_bytes[side]) return;
    rp_queue_count(&c->worker->queue, side, bytes - c->counted_bytes[side]);
    c->counted_bytes[side] = bytes;
}

static rp_loan_terms terms_of(const rp_connection *c, rp_queue_side side)
{
    const rp_server_limits *limits = &c->worker->limits;
    int64_t longest_ms = side == RP_QUEUE_IN ? limits->message_grace_ms : limits->stall_ms;

    return (rp_loan_terms){.lent_bytes = limits->message_bytes,
                           .longest_ns = longest_ms * 1000000};
}

/* Bytes that the peer has moved on a side, over the life of the connection. */
static uint64_t moved_bytes(const rp_connection *c, rp_queue_side side)
{
    uint64_t arrived;

    assert(c->h2 != NULL); /* C3 */
    if (side == RP_QUEUE_OUT) return rp_h2_left_bytes(c->h2);
    (void)rp_h2_waits_for(c->h2, &arrived);
    return arrived;
}

static bool ask(rp_connection *c, rp_queue_side side, size_t bytes)
{
    rp_loan_terms terms = terms_of(c, side);

    return rp_loan_ask(&c->worker->server->budget.loans[side], &c->loans[side], bytes, &terms,
                       moved_bytes(c, side), rp_loop_now(c->worker->loop));
}

static void end_loan(rp_connection *c, rp_queue_side side)
{
    rp_loan_end(&c->worker->server->budget.loans[side], &c->loans[side]);
}

/* Whether the connection may add the `wanted` bytes of its messages by a loan. */
static bool may_read_by_loan(rp_connection *c, size_t held, size_t wanted)
{
    size_t enough = wanted < ARRIVING_BYTES ? wanted : ARRIVING_BYTES, all = held + wanted;

    if (!c->loans[RP_QUEUE_IN].is_made) {
        if (rp_link_waiting(&c->link) < enough) {
            end_loan(c, RP_QUEUE_IN); /* leaves the queue */
            return false;
        }
        c->held_before_loan = held;
    }
    assert(c->held_before_loan <= held);
    return ask(c, RP_QUEUE_IN, all - c->held_before_loan);
}

/* Called when no call that is not paused has an incomplete message. The loan continues while
 * paused calls hold messages that were read in it. */
static void end_reading_by_loan(rp_connection *c, size_t held)
{
    if (c->loans[RP_QUEUE_IN].is_made && held > c->held_before_loan + RP_QUEUE_FLOOR_BYTES)
        rp_loan_reduce(&c->worker->server->budget.loans[RP_QUEUE_IN], &c->loans[RP_QUEUE_IN],
                       held - c->held_before_loan);
    else
        end_loan(c, RP_QUEUE_IN);
}

bool rp_connection_may_draw(rp_connection *c)
{
    rp_loan *loan = &c->loans[RP_QUEUE_OUT];

    if (loan->is_made) return false;
    if (c->wanted_bytes == 0 || rp_h2_queued_bytes(c->h2) > 0) {
        end_loan(c, RP_QUEUE_OUT);
        return false;
    }
    /* The peer cannot take responses that are still being made, so the connection stays in the
     * queue. */
    if (c->making_bytes > 0 || rp_drawn_bytes(c->drawn) > 0) return false;
    if (!ask(c, RP_QUEUE_OUT, c->wanted_bytes)) return false;
    atomic_store_explicit(&c->drawn->loan, 2 * loan->bytes, memory_order_relaxed);
    return true;
}

void rp_connection_drew(rp_connection *c)
{
    /* Acquire: pairs with take_lent(), so that an item drawn by the loan is counted here.
     * Otherwise rp_connection_count() would end the loan. */
    assert(c->loans[RP_QUEUE_OUT].is_made);
    (void)atomic_exchange_explicit(&c->drawn->loan, 0, memory_order_acquire);
    rp_connection_count(c);
}

void rp_connection_leave_loan_queue(rp_connection *c)
{
    if (c->loans[RP_QUEUE_OUT].is_waiting) end_loan(c, RP_QUEUE_OUT);
}

void rp_connection_add_work(rp_connection *c, const rp_message *response)
{
    enum { UNIT_COPIED = 256, UNIT_BORROWED = 1024 }; /* bytes of one unit */

    c->worker->work +=
        1 + response->bytes.size / UNIT_COPIED + response->borrowed / UNIT_BORROWED;
}

bool rp_connection_has_loan(const rp_connection *c)
{
    return c->loans[RP_QUEUE_IN].is_made || c->loans[RP_QUEUE_OUT].is_made;
}

void rp_connection_excuse(rp_connection *c, int64_t late_ns)
{
    for (int side = 0; side < RP_QUEUE_SIDES; side++) {
        if (!c->loans[side].is_made) continue;
        c->loans[side].since_ns += late_ns;
        c->loans[side].paced_ns += late_ns;
    }
}

bool rp_connection_is_behind(rp_connection *c, rp_queue_side side)
{
    rp_loan_terms terms = terms_of(c, side);
    rp_loan *loan = &c->loans[side];
    uint64_t moved = moved_bytes(c, side);
    int64_t now_ns = rp_loop_now(c->worker->loop);

    /* If no bytes are awaited, all bytes of the loan have arrived. */
    if (side == RP_QUEUE_IN && rp_h2_awaited_bytes(c->h2) == 0)
        moved = loan->moved + loan->bytes;
    /* The drawn item waits for other items of its call, or for the disk, not for the peer. */
    if (side == RP_QUEUE_OUT && rp_h2_queued_bytes(c->h2) == 0)
        rp_loan_rest(loan, moved, now_ns);
    return rp_loan_is_behind(&c->worker->server->budget.loans[side], loan, &terms, moved,
                             now_ns);
}

/* Q6. Returns the bytes of messages that have arrived, plus the reserved bytes. */
static size_t reserve(rp_connection *c)
{
    size_t held = rp_h2_held_bytes(c->h2), wanted = rp_h2_awaited_bytes(c->h2), more;
    size_t most = c->worker->limits.message_bytes, counted = c->counted_bytes[RP_QUEUE_IN];

    if (c->state != RP_CONNECTION_H2) wanted = 0; /* nothing more is read */
    if (wanted > most) wanted = most;
    more = held + wanted > counted ? held + wanted - counted : 0;
    if (c->held_before_loan > held) c->held_before_loan = held;
    if (wanted == 0) { /* the usual case */
        c->intake.reserved = 0;
        end_reading_by_loan(c, held);
    } else {
        bool has_room = more == 0 || rp_connection_has_room(c, RP_QUEUE_IN, more);

        if (has_room && !c->loans[RP_QUEUE_IN].is_made) end_loan(c, RP_QUEUE_IN);
        rp_intake_reserve(&c->intake, counted, held, wanted,
                          has_room || may_read_by_loan(c, held, wanted));
    }
    assert(c->intake.reserved <= wanted);
    return held + c->intake.reserved;
}

void rp_connection_count(rp_connection *c)
{
    bool is_h2 = c->h2 != NULL;

    count(c, RP_QUEUE_IN, is_h2 ? reserve(c) : 0);
    count(c, RP_QUEUE_OUT, is_h2 ? rp_h2_queued_bytes(c->h2) + c->making_bytes : 0);
    for (rp_queue_side side = 0; side < RP_QUEUE_SIDES && !is_h2; side++) end_loan(c, side);
    if (c->loans[RP_QUEUE_OUT].is_made && own_bytes(c, RP_QUEUE_OUT) == 0 &&
        atomic_load_explicit(&c->drawn->loan, memory_order_relaxed) == 0)
        end_loan(c, RP_QUEUE_OUT);
    assert(is_h2 ||
           (c->counted_bytes[RP_QUEUE_IN] == 0 && c->counted_bytes[RP_QUEUE_OUT] == 0));
}

size_t rp_connection_held(const rp_connection *c)
{
    return rp_h2_queued_bytes(c->h2) + rp_drawn_bytes(c->drawn);
}

/* Relaxed: no other memory depends on these numbers. */
void rp_connection_update_drawn(rp_connection *c)
{
    const rp_server_limits *limits = &c->worker->limits;

    rp_connection_count(c);
    rp_queue_publish(&c->worker->queue);
    atomic_store_explicit(&c->drawn->counted, c->counted_bytes[RP_QUEUE_OUT],
                          memory_order_relaxed);
    atomic_store_explicit(&c->drawn->limit, rp_server_limits_side_bytes(limits),
                          memory_order_relaxed);
    atomic_store_explicit(&c->drawn->connection_limit, limits->connection_queued_bytes,
                          memory_order_relaxed);
}

/* Whether calls may add `bytes` of responses. While a long response is being made, no other one
 * is begun, so that at most one passes the limit of the connection. */
static bool has_room(rp_connection *c, size_t bytes)
{
    const rp_server_limits *limits = &c->worker->limits;

    if (c->state == RP_CONNECTION_CLOSED || c->makers > 0 ||
        rp_h2_queued_bytes(c->h2) >= limits->connection_queued_bytes)
        return false;
    if (bytes == 0) return true;
    return rp_connection_held(c) < limits->connection_queued_bytes &&
           rp_connection_has_room(c, RP_QUEUE_OUT, bytes);
}

static void set_starved(rp_connection *c, size_t bytes)
{
    if (!c->is_starved || bytes < c->wanted_bytes) c->wanted_bytes = bytes;
    c->is_starved = true;
}

void rp_connection_wait_for_room(rp_connection *c, size_t bytes)
{
    set_starved(c, bytes);
    if (has_room(c, bytes)) c->fed_from_ns = rp_loop_now(c->worker->loop) + RP_HELD_NS;
}

bool rp_connection_may_feed(rp_connection *c)
{
    return c->is_starved && rp_loop_now(c->worker->loop) >= c->fed_from_ns &&
           has_room(c, c->wanted_bytes);
}

bool rp_connection_may_queue(rp_connection *c, const rp_call *call, size_t bytes)
{
    if (has_room(c, bytes) && !(c->is_starved && rp_call_queued_bytes(call) > 0)) return true;
    set_starved(c, bytes);
    return false;
}

bool rp_connection_is_full(const rp_connection *c, rp_refusal *why)
{
    const rp_server_limits *limits = &c->worker->limits;

    *why = RP_REFUSED_QUEUED;
    if (rp_connection_room(c, RP_QUEUE_OUT) == 0) return true;
    *why = RP_REFUSED_CONNECTION_QUEUED; /* one response may pass the limit by message_bytes */
    return rp_h2_queued_bytes(c->h2) >= limits->connection_queued_bytes + limits->message_bytes;
}
