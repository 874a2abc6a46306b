/* SPDX-License-Identifier: Apache-2.0 */
/* The timeout of the rate limiter, where no server applies it. A server ends a request that it
 * has when the timeout has passed. The sampler itself ends the wait
 *
 *   - if no server is reached, or none has a request, when the timeout has passed;
 *   - if no server with a request responds. From the timeout on, the sampler asks these servers
 *     one after the other whether they respond. It ends when each was asked and all have been
 *     silent for patience_of(). A server that is frozen for a shorter time ends nothing. */
#include <stdio.h>

#include "client/sampler/sampler_inside.h"

/* From the timeout to the first question, so that the response of a server comes first. */
static const int64_t grace_ns = 100 * 1000000LL;
/* No question is asked before, even if the timeout is shorter: a connection takes its time. */
static const int64_t least_silence_ns = 500 * 1000000LL;
static const int64_t least_patience_ns = 2000 * 1000000LL, most_patience_ns = 10000 * 1000000LL;
static const int64_t probe_pause_ns = 1000 * 1000000LL; /* after a question with a response */
static const int64_t retry_pause_ns = 50 * 1000000LL;   /* after a question without one */

/* Returns true if no server responds that could apply the timeout of the rate limiter. */
static bool is_alone_locked(const rp_sampler *s) RP_REQUIRES(s->mu)
{
    for (size_t i = 0; i < s->lane_count; i++)
        if (s->lanes[i].unreached < s->lanes[i].feeder_count) return false;
    return true;
}

/* Returns true if all of several shards are empty, so that no source has a request. */
static bool is_idle_locked(const rp_sampler *s) RP_REQUIRES(s->mu)
{
    if (s->feed.shard_count == 1 || !s->weighed || rp_sampler_can_pick_locked(s) ||
        s->schedule_count > 0)
        return false;
    for (size_t i = 0; i < s->lane_count; i++)
        if (rp_sampler_is_open_locked(s, &s->lanes[i])) return true;
    return false;
}

/* Ends the sampler because no server has given a sample in time. */
static void end_unreached_locked(rp_sampler *s, const char *why) RP_REQUIRES(s->mu)
{
    char text[RP_ERROR_TEXT_BYTES];

    (void)snprintf(
        text, sizeof text,
        "no sample of '%.40s' within %lld ms, the timeout of the rate limiter: %.139s",
        s->table, (long long)s->options.rate_limiter_timeout_ms, why);
    rp_sampler_end_locked(s, RP_UNAVAILABLE, text);
}

/* Returns true if the lane's server may have the request that the first caller waits for. */
static bool has_request_locked(const rp_sampler *s, size_t lane) RP_REQUIRES(s->mu)
{
    const rp_lane *l = &s->lanes[lane];

    return l->unreached < l->feeder_count && !l->gone &&
           (s->schedule_count == 0 || rp_sampler_awaits_locked(s, lane));
}

/* Returns for how long servers must be silent: as long as the timeout, within bounds. */
static int64_t patience_of(const rp_sampler *s)
{
    int64_t timeout_ns = s->options.rate_limiter_timeout_ms * 1000000;

    if (timeout_ns < least_patience_ns) return least_patience_ns;
    return timeout_ns < most_patience_ns ? timeout_ns : most_patience_ns;
}

/* Returns the first lane from `lane` on with a request, or lane_count. */
static size_t next_asked_locked(const rp_sampler *s, size_t lane) RP_REQUIRES(s->mu)
{
    while (lane < s->lane_count && !has_request_locked(s, lane)) lane++;
    return lane;
}

/* Asks one of the servers with requests whether it responds. Ends the sampler if all of them
 * have been silent for long enough. The lock is released meanwhile; samples and reports of the
 * sources that come then are kept. */
static void probe_locked(rp_sampler *s, rp_wait wait) RP_REQUIRES(s->mu)
{
    int64_t last_sample_ns = s->last_sample_ns, since_ns, now_ns = rp_now_ns();
    size_t lane = next_asked_locked(s, s->probe_lane), shard;
    char why[RP_ERROR_TEXT_BYTES] = "";
    bool responds;

    if (lane == s->lane_count) lane = next_asked_locked(s, 0);
    if (lane == s->lane_count) return;
    shard = s->lanes[lane].shard;
    if (s->silent_ns == 0) s->silent_ns = now_ns;
    since_ns = s->silent_ns;
    rp_mutex_unlock(&s->mu);
    responds = s->feed.responds(s->feed.ctx, s->table, shard, since_ns, wait, why, sizeof why);
    rp_mutex_lock(&s->mu);
    now_ns = rp_now_ns();
    if (responds || s->closed || s->end != RP_OK || s->last_sample_ns != last_sample_ns ||
        rp_sampler_has_samples_locked(s)) {
        s->silent_ns = 0;
        s->probe_lane = 0;
        s->probe_ns = now_ns + probe_pause_ns;
        return;
    }
    /* Lanes of a shard follow each other. */
    while (lane < s->lane_count && s->lanes[lane].shard == shard) lane++;
    s->probe_lane = next_asked_locked(s, lane);
    s->probe_ns = now_ns + retry_pause_ns;
    if (s->probe_lane < s->lane_count) return;
    s->probe_lane = 0;
    if (now_ns - since_ns >= patience_of(s)) end_unreached_locked(s, why);
}

/* Returns when the timeout is due, `timeout_ns` after the last sample. */
static int64_t due_after(const rp_sampler *s, int64_t timeout_ns) RP_REQUIRES(s->mu)
{
    return timeout_ns > RP_FOREVER - s->last_sample_ns ? RP_FOREVER
                                                       : s->last_sample_ns + timeout_ns;
}

/* As rp_sampler_expire_locked(), while servers may have requests. */
static int64_t expire_silent_locked(rp_sampler *s, int64_t timeout_ns, int64_t now_ns,
                                    rp_wait wait) RP_REQUIRES(s->mu)
{
    int64_t due_ns;

    if (s->feed.responds == NULL || timeout_ns > RP_FOREVER - grace_ns) return RP_FOREVER;
    timeout_ns += grace_ns;
    due_ns = due_after(s, timeout_ns > least_silence_ns ? timeout_ns : least_silence_ns);
    if (due_ns < s->probe_ns) due_ns = s->probe_ns;
    if (now_ns >= due_ns) probe_locked(s, wait);
    return due_ns;
}

int64_t rp_sampler_expire_locked(rp_sampler *s, int64_t now_ns, rp_wait wait)
{
    int64_t timeout_ms = s->options.rate_limiter_timeout_ms, due_ns;
    bool is_alone = is_alone_locked(s);
    char text[RP_ERROR_TEXT_BYTES], why[140];

    if (timeout_ms < 0 || timeout_ms > RP_FOREVER / 1000000) return RP_FOREVER;
    if (!is_alone && !is_idle_locked(s))
        return expire_silent_locked(s, timeout_ms * 1000000, now_ns, wait);
    due_ns = due_after(s, timeout_ms * 1000000);
    if (now_ns < due_ns) return due_ns;
    if (is_alone) {
        s->feeders[0].source->class->why(s->feeders[0].source, why, sizeof why);
        end_unreached_locked(s, why);
    } else {
        (void)snprintf(text, sizeof text,
                       "table '%s' timed out: no shard has an item that could be drawn",
                       s->table);
        rp_sampler_end_locked(s, RP_DEADLINE, text);
    }
    return due_ns;
}
