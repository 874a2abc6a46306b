/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection_watch.h"

#include <assert.h>

#include "server/core/connection_room.h"
#include "server/core/lease_link.h"

enum {
    READ_WINDOWS = 4 /* in stall_ms: a reader may pause for one while room is short */
};

/* True if responses wait for a window update, which may be among the bytes that were not read.
 */
static bool waits_for_window(const rp_connection *c)
{
    return rp_h2_queued_bytes(c->h2) > 0 && rp_h2_held_bytes(c->h2) < RP_QUEUE_FLOOR_BYTES &&
           rp_loop_now(c->worker->loop) - c->moved_ns >= RP_HELD_NS;
}

bool rp_connection_may_read(const rp_connection *c)
{
    if (c->state != RP_CONNECTION_H2) return false;
    if (c->intake.reserved > 0 || waits_for_window(c)) return true;
    return rp_h2_awaited_bytes(c->h2) == 0 && rp_connection_room(c, RP_QUEUE_IN) > 0;
}

bool rp_connection_is_held_up(const rp_connection *c)
{
    return !rp_connection_may_read(c) || c->is_starved || rp_connection_has_loan(c);
}

bool rp_connection_takes_time(const rp_connection *c, bool is_blocked)
{
    uint64_t bytes;

    return is_blocked || rp_h2_queued_bytes(c->h2) > 0 || rp_connection_is_held_up(c) ||
           rp_h2_waits_for(c->h2, &bytes) != RP_H2_WAITS_FOR_NOTHING;
}

/* True if the peer has begun a message or headers and does not continue fast enough. */
static bool is_slow(rp_connection *c, int64_t now_ns, rp_refusal *why)
{
    const rp_server_limits *limits = &c->worker->limits;
    uint64_t arrived;
    rp_h2_wait wait = rp_h2_waits_for(c->h2, &arrived);
    const rp_intake_look look = {
        .reads = rp_connection_may_read(c),
        .in_message = wait == RP_H2_WAITS_FOR_MESSAGE || rp_h2_awaited_bytes(c->h2) > 0,
        .is_short = rp_queue_is_short(&c->worker->server->budget, RP_QUEUE_IN, now_ns),
        .is_late = now_ns - c->timer.due_ns > RP_CHECK_NS,
        .partial = rp_h2_partial_bytes(c->h2),
        .awaited = rp_h2_awaited_bytes(c->h2),
        .arrived = arrived,
    };

    if (c->is_unread) return false; /* the server delays the read */
    *why = RP_REFUSED_HANDSHAKE;
    if (rp_lasts_ns(look.reads &&
                        (wait == RP_H2_WAITS_FOR_GREETING || wait == RP_H2_WAITS_FOR_HEADERS),
                    &c->headers_since_ns, now_ns) > rp_ms(limits->handshake_ms))
        return true;
    if (rp_connection_is_behind(c, RP_QUEUE_IN)) {
        *why = look.in_message ? RP_REFUSED_SLOW_MESSAGE : RP_REFUSED_QUEUED;
        return true;
    }
    switch (rp_intake_judge(&c->intake, &look, rp_ms(limits->message_grace_ms), now_ns)) {
    case RP_INTAKE_FINE: return false;
    case RP_INTAKE_HELD: *why = RP_REFUSED_QUEUED; return true;
    case RP_INTAKE_SLOW: *why = RP_REFUSED_SLOW_MESSAGE; return true;
    }
    return false;
}

/* True if the peer has not acknowledged a ping in time. Sends a ping to a peer that has been
 * silent. */
static bool is_dead(rp_connection *c, int64_t now_ns)
{
    const rp_server_limits *limits = &c->worker->limits;

    if (!rp_connection_may_read(c) ||
        c->is_unread) { /* the time starts when the connection is read again */
        c->heard_ns = now_ns;
        c->pinged_ns = 0;
        return false;
    }
    if (c->pinged_ns != 0) return now_ns - c->pinged_ns > rp_ms(limits->ping_timeout_ms);
    if (now_ns - c->heard_ns < rp_ms(limits->ping_ms)) return false;
    rp_h2_ping(c->h2);
    c->pinged_ns = now_ns;
    return false;
}

/* True if the peer has read nothing for stall_ms; or if other connections wait for room and the
 * peer reads so slowly that its responses would take longer than stall_ms. */
static bool is_stalled(rp_connection *c, int64_t now_ns)
{
    int64_t longest_ns = rp_ms(c->worker->limits.stall_ms);
    bool matters =
        rp_h2_queued_bytes(c->h2) > 0 &&
        rp_queue_is_short(&c->worker->server->budget, RP_QUEUE_OUT, now_ns) &&
        now_ns - c->timer.due_ns <= RP_CHECK_NS; /* else the worker may not have written */

    if (rp_pace_is_behind(&c->reading, matters, rp_h2_left_bytes(c->h2),
                          rp_h2_queued_bytes(c->h2), longest_ns / READ_WINDOWS, longest_ns,
                          now_ns))
        return true;
    if (rp_connection_is_behind(c, RP_QUEUE_OUT)) return true;
    if (c->blocked_since_ns != 0 && now_ns - c->blocked_since_ns > longest_ns) return true;
    return (rp_h2_queued_bytes(c->h2) > 0 || c->state == RP_CONNECTION_CLOSING) &&
           now_ns - c->moved_ns > longest_ns;
}

static int64_t next_check(const rp_connection *c, int64_t now_ns)
{
    const rp_server_limits *limits = &c->worker->limits;
    int64_t due_ns = c->pinged_ns != 0 ? c->pinged_ns + rp_ms(limits->ping_timeout_ms) + 1
                                       : c->heard_ns + rp_ms(limits->ping_ms);

    if (rp_connection_is_held_up(c)) return now_ns + RP_HELD_NS;
    if (rp_connection_takes_time(c, false) && due_ns > now_ns + RP_CHECK_NS)
        due_ns = now_ns + RP_CHECK_NS;
    return due_ns > now_ns ? due_ns : now_ns + RP_CHECK_NS;
}

rp_connection_verdict rp_connection_check(rp_connection *c, int64_t now_ns, int64_t *due_ns,
                                          rp_refusal *why)
{
    const rp_server_limits *limits = &c->worker->limits;

    assert(c->state != RP_CONNECTION_CLOSED);
    rp_connection_excuse(c, now_ns - c->timer.due_ns);
    *why = RP_REFUSED_HANDSHAKE;
    if (c->state == RP_CONNECTION_LEASE && !rp_lease_link_is_greeting(c)) return RP_CHECK_NEVER;
    if (rp_handshake_is_late(&c->handshake)) return RP_CHECK_TOO_SLOW;
    if (c->handshake.is_queued) { /* the server delays the handshake, not the peer */
        *due_ns = now_ns + rp_ms(limits->handshake_ms);
        return RP_CHECK_AGAIN;
    }
    if (c->h2 == NULL) {
        if ((c->state != RP_CONNECTION_SNIFF && c->state != RP_CONNECTION_LEASE) ||
            now_ns - c->opened_ns >= rp_ms(limits->handshake_ms))
            return RP_CHECK_TOO_SLOW;
        *due_ns = c->opened_ns + rp_ms(limits->handshake_ms);
        return RP_CHECK_READ;
    }
    if (is_stalled(c, now_ns)) {
        *why = RP_REFUSED_STALL;
        return RP_CHECK_TOO_SLOW;
    }
    if (is_slow(c, now_ns, why)) return RP_CHECK_TOO_SLOW;
    if (is_dead(c, now_ns)) {
        *why = RP_REFUSED_PING_TIMEOUT;
        return RP_CHECK_TOO_SLOW;
    }
    *due_ns = next_check(c, now_ns);
    return RP_CHECK_FINE;
}
