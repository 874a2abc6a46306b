/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection_watch.h"

#include "server/core/lease_link.h"

enum {
    READ_WINDOWS = 4 /* in stall_ms: a reader may rest for one while others wait for room */
};

static rp_connection *connection_of_timer(rp_timer *timer)
{
    return (rp_connection *)((char *)timer - offsetof(rp_connection, timer));
}

/* What the peer has begun must go on. True if it does not. */
static bool is_slow(rp_connection *c, int64_t now_ns, rp_refusal *why)
{
    const rp_server_limits *limits = &c->worker->limits;
    uint64_t arrived;
    rp_h2_wait wait = rp_h2_waits_for(c->h2, &arrived);
    const rp_intake_look look = {
        .reads = rp_connection_may_read(c),
        .in_message = wait == RP_H2_WAITS_FOR_MESSAGE || rp_h2_awaited_bytes(c->h2) > 0,
        .is_short = rp_queue_is_short(c->worker, RP_QUEUE_IN),
        .is_late = now_ns - c->timer.due_ns > RP_LOOK_NS,
        .partial = rp_h2_partial_bytes(c->h2),
        .awaited = rp_h2_awaited_bytes(c->h2),
        .arrived = arrived,
    };

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

/* True if the peer has not shown a sign of life when asked for one. */
static bool is_dead(rp_connection *c, int64_t now_ns)
{
    const rp_server_limits *limits = &c->worker->limits;

    if (!rp_connection_may_read(c)) { /* we do not listen: the time begins when we do */
        c->heard_ns = now_ns;
        c->pinged_ns = 0;
        return false;
    }
    if (c->pinged_ns != 0) return now_ns - c->pinged_ns > rp_ms(limits->ping_timeout_ms);
    if (now_ns - c->heard_ns < rp_ms(limits->ping_ms)) return false;
    rp_h2_ping(c->h2);
    c->pinged_ns = now_ns;
    rp_connection_touch(c);
    return false;
}

/* True if the peer takes nothing of what we have to say, answers or otherwise; or takes so
 * little while others wait for the room of its answers that these take longer than stall_ms. */
static bool is_stalled(rp_connection *c, int64_t now_ns)
{
    int64_t longest_ns = rp_ms(c->worker->limits.stall_ms);
    bool matters = rp_h2_queued_bytes(c->h2) > 0 &&
                   rp_queue_is_short(c->worker, RP_QUEUE_OUT) &&
                   now_ns - c->timer.due_ns <= RP_LOOK_NS; /* else we may not have written */

    if (rp_pace_is_behind(&c->reading, matters, rp_h2_left_bytes(c->h2),
                          rp_h2_queued_bytes(c->h2), longest_ns / READ_WINDOWS, longest_ns,
                          now_ns))
        return true;
    if (rp_connection_is_behind(c, RP_QUEUE_OUT)) return true;
    if (c->blocked_since_ns != 0 && now_ns - c->blocked_since_ns > longest_ns) return true;
    return (rp_h2_queued_bytes(c->h2) > 0 || c->state == RP_CONNECTION_CLOSING) &&
           now_ns - c->moved_ns > longest_ns;
}

static int64_t next_look(const rp_connection *c, int64_t now_ns)
{
    const rp_server_limits *limits = &c->worker->limits;
    int64_t due_ns = c->pinged_ns != 0 ? c->pinged_ns + rp_ms(limits->ping_timeout_ms) + 1
                                       : c->heard_ns + rp_ms(limits->ping_ms);

    if (rp_connection_is_held_up(c)) return now_ns + RP_HELD_NS;
    if (rp_connection_takes_time(c, false) && due_ns > now_ns + RP_LOOK_NS)
        due_ns = now_ns + RP_LOOK_NS;
    return due_ns > now_ns ? due_ns : now_ns + RP_LOOK_NS;
}

void rp_connection_look_after(rp_timer *timer)
{
    rp_connection *c = connection_of_timer(timer);
    const rp_server_limits *limits = &c->worker->limits;
    int64_t now_ns = rp_loop_now(c->worker->loop);
    rp_refusal why = RP_REFUSED_HANDSHAKE;
    bool is_bad = false;

    rp_connection_excuse(c, now_ns - timer->due_ns);
    if (c->state == RP_CONNECTION_LEASE && !rp_lease_link_is_greeting(c)) return;
    if (c->in_handshakes) { /* the time that it waits is ours */
        rp_connection_look_at(c, now_ns + rp_ms(limits->handshake_ms));
        return;
    }
    if (c->h2 == NULL) {
        if ((c->state == RP_CONNECTION_SNIFF || c->state == RP_CONNECTION_LEASE) &&
            now_ns - c->opened_ns < rp_ms(limits->handshake_ms)) {
            rp_loop_change(c->worker->loop, &c->watch, RP_READABLE);
            rp_connection_look_at(c, c->opened_ns + rp_ms(limits->handshake_ms));
            return;
        }
        is_bad = true;
    } else if (is_stalled(c, now_ns)) {
        why = RP_REFUSED_STALL;
        is_bad = true;
    } else if (is_slow(c, now_ns, &why)) {
        is_bad = true;
    } else if (is_dead(c, now_ns)) {
        why = RP_REFUSED_PING_TIMEOUT;
        is_bad = true;
    }
    if (is_bad) {
        rp_connection_refused(c, why);
        rp_connection_close(c);
        return;
    }
    if (c->is_draining) {
        rp_h2_go_away(c->h2);
        c->is_draining = false;
    }
    rp_h2_sweep(c->h2);
    rp_connection_touch(c);
    rp_connection_look_at(c, next_look(c, now_ns));
}
