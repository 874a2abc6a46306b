/* SPDX-License-Identifier: Apache-2.0 */
#include "server/gathering.h"

enum {
    REST_NS = 200000,
    HALF_EVERY = 8,         /* rests */
    BUSY_NS = 1000000,      /* a peer that has been silent for longer is not busy */
    OTHERS_NS = 10000000,   /* how long a message that waits for an answer keeps us awake */
    SMALL_BYTES = 64 << 10, /* a turn that brings more has gathered enough */
    FIRST_BACKOFF = 64,
    MAX_BACKOFF = 4096,
};

enum { NO_REST, FULL_REST, HALF_REST };

static void fail(rp_gathering *g)
{
    g->backoff = g->backoff < FIRST_BACKOFF ? FIRST_BACKOFF : 2 * g->backoff;
    if (g->backoff > MAX_BACKOFF) g->backoff = MAX_BACKOFF;
    g->skip = g->backoff;
    g->usual = g->rests = 0;
}

/* What the rest before this turn has shown. */
static void learn(rp_gathering *g, size_t messages)
{
    uint32_t now = messages < 65536 ? (uint32_t)messages * 16 : 65536 * 16;

    if (messages <= 1) {
        fail(g);
    } else if (g->rested == FULL_REST) {
        g->usual = g->usual == 0 ? now : g->usual - g->usual / 8 + now / 8;
    } else if ((uint64_t)now * 4 >= (uint64_t)g->usual * 3) {
        fail(g); /* it would not have sent more */
    } else {
        g->backoff = 0;
    }
}

int64_t rp_gathering_judge(rp_gathering *g, const rp_gathered *turn, int64_t now_ns)
{
    bool is_busy = g->last_ns != 0 && now_ns - g->last_ns < BUSY_NS;

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
    g->rests++;
    g->rested = g->rests % HALF_EVERY == 0 ? HALF_REST : FULL_REST;
    return g->rested == HALF_REST ? REST_NS / 2 : REST_NS;
}
