/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/read_moderation.h"

#include <assert.h>

enum {
    SHORTEST_NS = 200000, /* bounds of a full pause */
    LONGEST_NS = 800000,
    ENOUGH = 64,            /* if this many messages follow a pause, it need not be longer */
    HALF_EVERY = 4,         /* every fourth pause is a half one */
    FIRST_LOOK = 3,         /* pauses without an effect that stop the experiment early */
    VERDICT = 32,           /* pauses after which half and full ones are compared */
    BUSY_NS = 2000000,      /* a peer that has been silent for longer is not busy */
    OTHERS_NS = 10000000,   /* no pause for this long after a message whose peer waits */
    SMALL_BYTES = 64 << 10, /* a turn with more bytes has accumulated enough */
    FIRST_BACKOFF = 64,
    MAX_BACKOFF = 4096,
};

enum { NO_REST, FULL_REST, HALF_REST };

static void begin_again(rp_read_moderation *g)
{
    g->full = g->half = 0;
    g->full_messages = g->half_messages = 0;
}

/* Pauses did not help: makes them shorter, or makes none for a while. */
static void fail(rp_read_moderation *g)
{
    begin_again(g);
    if (g->rest_ns > SHORTEST_NS) {
        g->rest_ns /= 2;
        g->longest_ns = g->rest_ns;
        return;
    }
    g->backoff = g->backoff < FIRST_BACKOFF ? FIRST_BACKOFF : 2 * g->backoff;
    if (g->backoff > MAX_BACKOFF) g->backoff = MAX_BACKOFF;
    g->skip = g->backoff;
    assert(g->skip <= MAX_BACKOFF); /* G3 */
    g->longest_ns = LONGEST_NS;
}

static void succeed(rp_read_moderation *g)
{
    if (g->full_messages < (uint64_t)ENOUGH * g->full && 2 * g->rest_ns <= g->longest_ns)
        g->rest_ns *= 2;
    g->backoff = 0;
    begin_again(g);
}

/* Records the messages after a pause, and decides after VERDICT pauses. */
static void learn(rp_read_moderation *g, size_t messages)
{
    assert(g->full + g->half < VERDICT); /* G1 */
    *(g->rested == FULL_REST ? &g->full_messages : &g->half_messages) += messages;
    *(g->rested == FULL_REST ? &g->full : &g->half) += 1;
    if (g->full == FIRST_LOOK && g->half == 0 && g->full_messages <= FIRST_LOOK) {
        fail(g);
    } else if (g->full + g->half == VERDICT) {
        /* If nearly as many messages arrive in half the time, the peer waits for responses. */
        if (4 * g->half_messages * g->full >= 3 * g->full_messages * g->half)
            fail(g);
        else
            succeed(g);
    }
}

int64_t rp_read_moderation_judge(rp_read_moderation *g, const rp_turn_reads *turn,
                                 int64_t now_ns)
{
    bool is_busy = g->last_ns != 0 && now_ns - g->last_ns < BUSY_NS;

    if (!is_busy) {
        g->rest_ns = SHORTEST_NS;
        g->longest_ns = LONGEST_NS;
    }

    g->last_ns = now_ns;
    if (turn->others) g->others_ns = now_ns;
    if (g->rested != NO_REST) learn(g, turn->messages);
    g->rested = NO_REST;
    if (g->skip > 0) {
        g->skip--;
        return 0;
    }
    if (!is_busy || turn->messages == 0 || turn->bytes > SMALL_BYTES ||
        (g->others_ns != 0 && now_ns - g->others_ns < OTHERS_NS))
        return 0;
    assert(g->rest_ns >= SHORTEST_NS && g->rest_ns <= g->longest_ns &&
           g->longest_ns <= LONGEST_NS); /* G2 */
    g->rested = (g->full + g->half + 1) % HALF_EVERY == 0 ? HALF_REST : FULL_REST;
    return g->rested == HALF_REST ? g->rest_ns / 2 : g->rest_ns;
}
