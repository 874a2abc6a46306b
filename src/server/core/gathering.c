/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/gathering.h"

enum {
    SHORTEST_NS = 200000, /* of full rests */
    LONGEST_NS = 800000,
    ENOUGH = 64,            /* messages: no need to rest longer */
    HALF_EVERY = 4,         /* rests */
    FIRST_LOOK = 3,         /* rests after which it is clear if nothing gathers at all */
    VERDICT = 32,           /* rests after which the halves are held against the rest */
    BUSY_NS = 2000000,      /* a peer that has been silent for longer is not busy */
    OTHERS_NS = 10000000,   /* how long a message that waits for an answer keeps us awake */
    SMALL_BYTES = 64 << 10, /* a turn that brings more has gathered enough */
    FIRST_BACKOFF = 64,
    MAX_BACKOFF = 4096,
};

enum { NO_REST, FULL_REST, HALF_REST };

static void begin_again(rp_gathering *g)
{
    g->full = g->half = 0;
    g->full_messages = g->half_messages = 0;
}

/* Resting was no use: less of it, or none for a while. */
static void fail(rp_gathering *g)
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
    g->longest_ns = LONGEST_NS;
}

static void succeed(rp_gathering *g)
{
    if (g->full_messages < (uint64_t)ENOUGH * g->full && 2 * g->rest_ns <= g->longest_ns)
        g->rest_ns *= 2;
    g->backoff = 0;
    begin_again(g);
}

/* What the rest before this turn has shown. */
static void learn(rp_gathering *g, size_t messages)
{
    *(g->rested == FULL_REST ? &g->full_messages : &g->half_messages) += messages;
    *(g->rested == FULL_REST ? &g->full : &g->half) += 1;
    if (g->full == FIRST_LOOK && g->half == 0 && g->full_messages <= FIRST_LOOK) {
        fail(g);
    } else if (g->full + g->half == VERDICT) {
        /* As much in half the time, or nearly: it would not have sent more. */
        if (4 * g->half_messages * g->full >= 3 * g->full_messages * g->half)
            fail(g);
        else
            succeed(g);
    }
}

int64_t rp_gathering_judge(rp_gathering *g, const rp_gathered *turn, int64_t now_ns)
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
    g->rested = (g->full + g->half + 1) % HALF_EVERY == 0 ? HALF_REST : FULL_REST;
    return g->rested == HALF_REST ? g->rest_ns / 2 : g->rest_ns;
}
