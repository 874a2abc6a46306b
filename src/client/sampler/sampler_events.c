/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of a sampler's sources, and the states of its shards. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "client/sampler/sampler_inside.h"
#include "util/error.h"

enum { WEIGH_PICKS = 1000, WEIGH_WAIT_MS = 2000 };
static const int64_t weigh_pause_ns = 100000000;      /* while samples arrive */
static const int64_t weigh_empty_pause_ns = 10000000; /* while no lane can be picked */

/* Returns how many of the samples, from the first on, fit the signature. If not all do, `err`
 * says why. */
static size_t count_good(const rp_sampler *s, const rp_sample *samples, size_t count,
                         rp_error *err)
{
    if (!s->options.checked || s->feed.signature == NULL) return count;
    for (size_t i = 0; i < count; i++)
        if (rp_trajectory_check(samples[i].trajectory, s->feed.signature, err) != RP_OK)
            return i;
    return count;
}

static void release_all(const rp_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) rp_trajectory_unref(samples[i].trajectory);
}

void rp_sampler_uncount_locked(rp_sampler *s, rp_feeder *feeder, size_t count)
{
    rp_lane *lane = &s->lanes[feeder->lane];

    if (count > feeder->wanted) count = feeder->wanted;
    assert(lane->wanted >= feeder->wanted); /* S1 */
    feeder->wanted -= count;
    lane->wanted -= count;
}

static void on_samples(void *user, const rp_sample *samples, size_t count)
{
    rp_feeder *feeder = user;
    rp_sampler *s = feeder->sampler;
    rp_error err;
    size_t good = count_good(s, samples, count, &err), pushed = 0;

    rp_mutex_lock(&s->mu);
    if (rp_sampler_enter_locked(s)) {
        rp_sampler_uncount_locked(s, feeder, count);
        s->last_sample_ns = rp_now_ns();
        s->waited_ns = 0;
        if (s->end == RP_OK) pushed = rp_lane_push(&s->lanes[feeder->lane], samples, good);
        if (s->end == RP_OK && good < count) rp_sampler_end_locked(s, RP_INVALID, err.text);
        rp_sampler_wake_locked(s);
        rp_sampler_credit_locked(s);
        rp_sampler_leave_locked(s);
    }
    rp_mutex_unlock(&s->mu);
    release_all(samples + pushed, count - pushed);
}

/* Takes a shard out of use until the next weighing. Returns true if another shard is left. */
static bool leave_out_locked(rp_sampler *s, size_t lane) RP_REQUIRES(s->mu)
{
    assert(lane < s->lane_count);
    if (s->feed.shard_count == 1) return false;
    s->lanes[lane].gone = true;
    rp_sampler_drop_picks_locked(s, lane);
    for (size_t i = 0; i < s->lane_count; i++)
        if (!s->lanes[i].gone) return true;
    return false;
}

/* Returns true if a timeout of the rate limiter ends the sampler: a caller waits for the sample
 * that did not come. Without a waiter the samples are requested again, as in Reverb. With a
 * timeout of 0 that would repeat for ever, so it is final, unless shards take turns and another
 * one may have a sample. */
static bool is_timeout_final_locked(rp_sampler *s, size_t lane) RP_REQUIRES(s->mu)
{
    int64_t timeout_ms = s->options.rate_limiter_timeout_ms;

    if (!rp_sampler_is_open_locked(s, &s->lanes[lane])) return false;
    if (timeout_ms == 0) return s->mode != RP_MODE_ANY || !leave_out_locked(s, lane);
    if (s->first == NULL || !rp_sampler_awaits_locked(s, lane)) return false;
    if (s->mode == RP_MODE_ANY && s->lane_count > 1) /* another lane may just have given one */
        return rp_now_ns() - s->last_sample_ns >= timeout_ms * 1000000;
    return true;
}

static void end_feeder_locked(rp_sampler *s, rp_feeder *feeder, rp_status status,
                              const char *text) RP_REQUIRES(s->mu)
{
    bool is_final = true;

    if (status == RP_DEADLINE)
        is_final = is_timeout_final_locked(s, feeder->lane);
    else if (status == RP_CANCELLED || status == RP_NOT_FOUND)
        is_final = !leave_out_locked(s, feeder->lane);
    if (is_final) rp_sampler_end_locked(s, status, text);
}

static void on_end(void *user, size_t forgotten, rp_status status, const char *text)
{
    rp_feeder *feeder = user;
    rp_sampler *s = feeder->sampler;

    rp_mutex_lock(&s->mu);
    if (rp_sampler_enter_locked(s)) {
        rp_sampler_uncount_locked(s, feeder, forgotten);
        if (s->end == RP_OK) end_feeder_locked(s, feeder, status, text);
        rp_sampler_wake_locked(s);
        rp_sampler_credit_locked(s);
        rp_sampler_leave_locked(s);
    }
    rp_mutex_unlock(&s->mu);
}

static void on_reach(void *user, bool reached, const char *text)
{
    rp_feeder *feeder = user;
    rp_sampler *s = feeder->sampler;
    rp_lane *lane;
    char why[RP_ERROR_TEXT_BYTES];
    bool is_refused = !reached && s->feed.is_refused != NULL &&
                      s->feed.is_refused(s->feed.ctx, why, sizeof why);

    (void)text; /* rp_sampler_why() asks the source */
    rp_mutex_lock(&s->mu);
    if (is_refused && s->end == RP_OK && rp_sampler_enter_locked(s)) {
        rp_sampler_end_locked(s, RP_UNAVAILABLE, why);
        rp_sampler_wake_locked(s);
        rp_sampler_leave_locked(s);
    }
    if (feeder->unreached == reached && rp_sampler_enter_locked(s)) {
        lane = &s->lanes[feeder->lane];
        feeder->unreached = !reached;
        assert(!reached || lane->unreached > 0);
        lane->unreached += reached ? (size_t)-1 : 1;
        assert(lane->unreached <= lane->feeder_count);
        if (!rp_sampler_is_open_locked(s, lane)) rp_sampler_drop_picks_locked(s, feeder->lane);
        rp_sampler_credit_locked(s);
        rp_sampler_wake_locked(s); /* the next lane may have changed */
        /* It checks the timeout of the rate limiter while no server does. */
        if (!reached && s->first != NULL) rp_cond_signal(&s->first->cv);
        rp_sampler_leave_locked(s);
    }
    rp_mutex_unlock(&s->mu);
}

const rp_source_events rp_sampler_events = {on_samples, on_end, on_reach, NULL};

int64_t rp_sampler_weigh_locked(rp_sampler *s, int64_t now_ns)
{
    int64_t pause_ns = rp_sampler_can_pick_locked(s) ? weigh_pause_ns : weigh_empty_pause_ns;
    int64_t due_ns = s->weighed_at_ns + pause_ns;

    if (s->feed.shard_count == 1 || s->closed || s->end != RP_OK) return RP_FOREVER;
    if (s->is_weighing) return RP_FOREVER; /* its end wakes the waiter */
    if (s->weighed_at_ns != 0 && now_ns < due_ns && s->picks_since < WEIGH_PICKS) return due_ns;
    s->is_weighing = true;
    s->picks_since = 0;
    rp_runtime_submit(s->runtime, &s->weigh_job);
    return RP_FOREVER;
}

static void choose_mode_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    bool by_turns = false, known = false;

    if (s->mode != RP_MODE_UNKNOWN) return;
    for (size_t i = 0; i < s->feed.shard_count; i++) {
        by_turns |= s->states[i].by_turns;
        known |= s->states[i].by_turns || s->states[i].weight > 0 || s->states[i].size > 0;
    }
    if (!known) return; /* no shard was reached, or all are empty and random */
    if (!by_turns)
        s->mode = RP_MODE_WEIGHTS;
    else
        s->mode = s->options.ordered ? RP_MODE_TURNS : RP_MODE_ANY;
}

static void adopt_states_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    memcpy(s->states, s->fresh, s->feed.shard_count * sizeof *s->states);
    s->weighed = true;
    choose_mode_locked(s);
    for (size_t i = 0; i < s->lane_count; i++) {
        const rp_shard_state *state = &s->states[s->lanes[i].shard];

        s->lanes[i].gone = false;
        if (state->size == 0 && !(state->weight > 0)) rp_sampler_drop_picks_locked(s, i);
    }
}

void rp_sampler_run_weighing(rp_job *job)
{
    rp_sampler *s = (rp_sampler *)((char *)job - offsetof(rp_sampler, weigh_job));
    rp_wait wait = rp_wait_ms(WEIGH_WAIT_MS);
    rp_error err = {.code = RP_OK};
    rp_status st;

    wait.cancel = s->cancel;
    memset(s->fresh, 0, s->feed.shard_count * sizeof *s->fresh);
    st = s->feed.weigh(s->feed.ctx, s->table, wait, s->fresh, &err);
    rp_mutex_lock(&s->mu);
    assert(s->is_weighing);
    if (st == RP_OK)
        adopt_states_locked(s);
    else if ((st == RP_NOT_FOUND || st == RP_CANCELLED) && s->end == RP_OK)
        rp_sampler_end_locked(s, st, err.text);
    (void)snprintf(s->weigh_text, sizeof s->weigh_text, "%s", st == RP_OK ? "" : err.text);
    s->weighed_at_ns = rp_now_ns();
    rp_sampler_credit_locked(s);
    s->is_weighing = false;
    if (s->first != NULL) rp_cond_signal(&s->first->cv); /* its next deadline has changed */
    rp_cond_signal(&s->quiet);
    rp_mutex_unlock(&s->mu);
}
