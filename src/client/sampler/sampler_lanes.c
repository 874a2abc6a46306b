/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: the samples that have arrived, which of them is next, and how many to request. */
#include "client/sampler/sampler_inside.h"

#include <assert.h>

#include "util/error.h"
#include "util/mem.h"

enum { MAX_AHEAD = 1 << 22 }; /* samples over all lanes */

static rp_status make_lane(rp_sampler *s, size_t index, size_t streams, rp_error *err)
{
    rp_lane *lane = &s->lanes[index];

    lane->feeder_count = s->options.ordered ? 1 : streams;
    lane->first_feeder = index * lane->feeder_count;
    lane->shard = lane->first_feeder / streams;
    lane->capacity = lane->feeder_count * s->max_in_flight;
    for (size_t i = 0; i < lane->feeder_count; i++)
        s->feeders[lane->first_feeder + i] = (rp_feeder){.sampler = s, .lane = index};
    lane->ring = rp_alloc_array(&s->alloc, lane->capacity, sizeof *lane->ring);
    if (lane->ring == NULL) return rp_fail_memory(err, lane->capacity * sizeof *lane->ring);
    return RP_OK;
}

rp_status rp_sampler_make_lanes(rp_sampler *s, size_t streams, rp_error *err)
{
    size_t sources, ahead;
    rp_status st = RP_OK;

    if (!rp_size_mul(s->feed.shard_count, streams, &sources) ||
        !rp_size_mul(sources, s->max_in_flight, &ahead) || ahead > MAX_AHEAD)
        return rp_fail(err, RP_INVALID,
                       "sampler: %zu shards x %zu streams x %zu in flight are over the bound "
                       "%d",
                       s->feed.shard_count, streams, s->max_in_flight, MAX_AHEAD);
    s->feeder_count = sources;
    s->lane_count = s->options.ordered ? sources : s->feed.shard_count;
    s->schedule_capacity = s->lane_count > 1 ? ahead : 1;
    s->feeders = rp_alloc_array(&s->alloc, sources, sizeof *s->feeders);
    s->lanes = rp_alloc_array(&s->alloc, s->lane_count, sizeof *s->lanes);
    s->schedule = rp_alloc_array(&s->alloc, s->schedule_capacity, sizeof *s->schedule);
    s->states = rp_alloc_array(&s->alloc, s->feed.shard_count, sizeof *s->states);
    s->fresh = rp_alloc_array(&s->alloc, s->feed.shard_count, sizeof *s->fresh);
    if (s->feeders == NULL || s->lanes == NULL || s->schedule == NULL || s->states == NULL ||
        s->fresh == NULL)
        return rp_fail_memory(err, ahead * sizeof *s->schedule);
    for (size_t i = 0; st == RP_OK && i < s->lane_count; i++)
        st = make_lane(s, i, streams, err);
    s->mode = s->lane_count == 1         ? RP_MODE_ANY
              : s->feed.shard_count == 1 ? RP_MODE_UNIFORM
                                         : RP_MODE_UNKNOWN;
    return st;
}

static void free_ring(const rp_sampler *s, rp_lane *lane)
{
    if (lane->ring == NULL) return;
    for (; lane->ready > 0; lane->ready--) {
        rp_samples_release(&lane->ring[lane->first], 1);
        lane->first = (lane->first + 1) % lane->capacity;
    }
    rp_release(&s->alloc, lane->ring, lane->capacity * sizeof *lane->ring);
}

void rp_sampler_free_lanes(rp_sampler *s)
{
    for (size_t i = 0; s->lanes != NULL && i < s->lane_count; i++) free_ring(s, &s->lanes[i]);
    rp_release(&s->alloc, s->lanes, s->lane_count * sizeof *s->lanes);
    rp_release(&s->alloc, s->feeders, s->feeder_count * sizeof *s->feeders);
    rp_release(&s->alloc, s->schedule, s->schedule_capacity * sizeof *s->schedule);
    rp_release(&s->alloc, s->states, s->feed.shard_count * sizeof *s->states);
    rp_release(&s->alloc, s->fresh, s->feed.shard_count * sizeof *s->fresh);
}

#ifndef NDEBUG
bool rp_sampler_is_valid_locked(const rp_sampler *s)
{
    const rp_sampler_waiter *prev = NULL;
    size_t picks = 0;

    if (!s->started) return true;
    for (size_t i = 0; i < s->lane_count; i++) {
        const rp_lane *lane = &s->lanes[i];
        size_t wanted = 0, unreached = 0;

        for (size_t k = 0; k < lane->feeder_count; k++) {
            wanted += s->feeders[lane->first_feeder + k].wanted;
            unreached += s->feeders[lane->first_feeder + k].unreached;
        }
        if (wanted != lane->wanted || unreached != lane->unreached) return false; /* S1 */
        if (lane->ready > lane->capacity || lane->picks > lane->capacity) return false;
        picks += lane->picks;
    }
    if (picks != s->schedule_count) return false; /* S2 */
    for (const rp_sampler_waiter *w = s->first; w != NULL; prev = w, w = w->next)
        if (w->prev != prev || !w->in_line) return false; /* S3 */
    return s->last == prev;
}
#endif

static bool is_scheduled(const rp_sampler *s)
{
    return s->mode >= RP_MODE_WEIGHTS;
}

bool rp_sampler_is_open_locked(const rp_sampler *s, const rp_lane *lane)
{
    if (s->feed.shard_count == 1) return true; /* there is no other shard */
    return !lane->gone && lane->unreached < lane->feeder_count;
}

/* Returns the weight of a lane. `by_size`: all weights are 0, so tables are drawn from
 * uniformly. */
static double weight_locked(const rp_sampler *s, const rp_lane *lane, bool by_size)
    RP_REQUIRES(s->mu)
{
    const rp_shard_state *state = &s->states[lane->shard];
    double weight = by_size ? (double)state->size : state->weight;

    return rp_sampler_is_open_locked(s, lane) && weight > 0 ? weight : 0;
}

static double sum_locked(const rp_sampler *s, bool by_size) RP_REQUIRES(s->mu)
{
    double sum = 0;

    for (size_t i = 0; i < s->lane_count; i++) sum += weight_locked(s, &s->lanes[i], by_size);
    return sum;
}

/* Picks a lane with probability proportional to its weight. All shards have the same number of
 * lanes, and all lanes of a shard the same weight: the share of a shard is that of one lane
 * times this number. */
static bool pick_by_weight_locked(rp_sampler *s, rp_lane_pick *out) RP_REQUIRES(s->mu)
{
    size_t of_shard = s->lane_count / s->feed.shard_count, last = s->lane_count;
    bool by_size = !(sum_locked(s, false) > 0);
    double sum = sum_locked(s, by_size), target, own;

    if (!(sum > 0)) return false;
    target = rp_rng_unit(&s->rng) * sum;
    for (size_t i = 0; i < s->lane_count; i++) {
        own = weight_locked(s, &s->lanes[i], by_size);
        if (!(own > 0)) continue;
        last = i;
        target -= own;
        if (target < 0) break;
    }
    assert(last < s->lane_count); /* the sum is positive */
    own = weight_locked(s, &s->lanes[last], by_size);
    *out = (rp_lane_pick){last, own * (double)of_shard / sum};
    if (out->share > 1) out->share = 1;
    return true;
}

/* Returns the next open lane from `turn` on, or lane_count if there is none. */
static size_t next_turn_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    for (size_t i = 0; i < s->lane_count; i++) {
        size_t lane = (s->turn + i) % s->lane_count;

        if (!rp_sampler_is_open_locked(s, &s->lanes[lane])) continue;
        if (s->feed.shard_count > 1 && s->states[s->lanes[lane].shard].size == 0) continue;
        return lane;
    }
    return s->lane_count;
}

static bool pick_locked(rp_sampler *s, rp_lane_pick *out) RP_REQUIRES(s->mu)
{
    size_t lane;

    if (s->mode == RP_MODE_WEIGHTS) return pick_by_weight_locked(s, out);
    if (s->mode == RP_MODE_UNIFORM) {
        *out = (rp_lane_pick){rp_rng_below(&s->rng, s->lane_count), 1};
        return true;
    }
    lane = next_turn_locked(s);
    if (lane == s->lane_count) return false;
    s->turn = (lane + 1) % s->lane_count;
    *out = (rp_lane_pick){lane, 1};
    return true;
}

bool rp_sampler_can_pick_locked(const rp_sampler *s)
{
    switch (s->mode) {
    case RP_MODE_UNKNOWN: return false;
    case RP_MODE_WEIGHTS: return sum_locked(s, false) > 0 || sum_locked(s, true) > 0;
    case RP_MODE_TURNS:
        for (size_t i = 0; i < s->lane_count; i++)
            if (weight_locked(s, &s->lanes[i], true) > 0) return true;
        return false;
    case RP_MODE_ANY:
    case RP_MODE_UNIFORM: break;
    }
    return true;
}

static rp_lane_pick *schedule_at(rp_sampler *s, size_t index)
{
    assert(index < s->schedule_capacity);
    return &s->schedule[(s->schedule_first + index) % s->schedule_capacity];
}

/* Returns how many more samples may be scheduled or requested if `ahead` are already. */
static size_t left_locked(const rp_sampler *s, size_t ahead) RP_REQUIRES(s->mu)
{
    int64_t left;

    if (s->options.max_samples == 0) return SIZE_MAX;
    left = s->options.max_samples - s->taken;
    return left > (int64_t)ahead ? (size_t)left - ahead : 0;
}

/* Draws the schedule as far as there is room. If the lane that was drawn is full, the draw is
 * kept: drawing again would change the probabilities. */
static void extend_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    size_t left = left_locked(s, s->schedule_count);

    for (; left > 0 && s->schedule_count < s->schedule_capacity; left--) {
        rp_lane *lane;

        if (!s->has_next_pick && !pick_locked(s, &s->next_pick)) return;
        s->has_next_pick = true;
        assert(s->next_pick.lane < s->lane_count);
        lane = &s->lanes[s->next_pick.lane];
        if (lane->picks == lane->capacity) return;
        s->schedule_count++;
        *schedule_at(s, s->schedule_count - 1) = s->next_pick;
        s->has_next_pick = false;
        lane->picks++;
        s->picks_since++;
    }
}

void rp_sampler_drop_picks_locked(rp_sampler *s, size_t lane)
{
    size_t kept = 0, covered = s->lanes[lane].ready;

    if (!is_scheduled(s)) return;
    if (s->has_next_pick && s->next_pick.lane == lane) s->has_next_pick = false;
    for (size_t i = 0; i < s->schedule_count; i++) {
        rp_lane_pick pick = *schedule_at(s, i);

        if (pick.lane == lane && covered == 0) continue;
        if (pick.lane == lane) covered--;
        *schedule_at(s, kept++) = pick;
    }
    assert(s->lanes[lane].picks >= s->schedule_count - kept); /* S2 */
    s->lanes[lane].picks -= s->schedule_count - kept;
    s->schedule_count = kept;
}

/* Distributes a request over the sources of a lane, those with the fewest requests first. */
static void ask_locked(rp_sampler *s, rp_lane *lane, size_t count) RP_REQUIRES(s->mu)
{
    while (count > 0) {
        rp_feeder *least = &s->feeders[lane->first_feeder];
        size_t part;

        for (size_t i = 1; i < lane->feeder_count; i++) {
            rp_feeder *other = &s->feeders[lane->first_feeder + i];
            if (other->wanted < least->wanted) least = other;
        }
        if (least->wanted >= s->max_in_flight) return;
        part = s->max_in_flight - least->wanted;
        if (part > count) part = count;
        least->wanted += part;
        least->ask += part;
        lane->wanted += part;
        assert(least->wanted <= lane->wanted); /* S1 */
        count -= part;
    }
}

/* Returns true if the request is at least half of the largest one, or nothing is requested:
 * small requests are collected. */
static bool is_worth_asking(const rp_sampler *s, const rp_lane *lane, size_t count)
{
    return lane->wanted == 0 || 2 * count >= s->max_in_flight;
}

static void ask_scheduled_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    for (size_t i = 0; i < s->lane_count; i++) {
        rp_lane *lane = &s->lanes[i];
        size_t have = lane->ready + lane->wanted;

        if (lane->picks > have && is_worth_asking(s, lane, lane->picks - have))
            ask_locked(s, lane, lane->picks - have);
    }
}

/* Returns true if a lane gets a share of the remaining samples. With `only_full`, lanes of
 * empty shards do not. */
static bool has_share_locked(const rp_sampler *s, const rp_lane *lane, bool only_full)
    RP_REQUIRES(s->mu)
{
    if (!rp_sampler_is_open_locked(s, lane)) return false;
    return !only_full || s->states[lane->shard].size > 0;
}

static size_t count_shares_locked(const rp_sampler *s, bool only_full) RP_REQUIRES(s->mu)
{
    size_t count = 0;

    for (size_t i = 0; i < s->lane_count; i++)
        count += has_share_locked(s, &s->lanes[i], only_full);
    return count;
}

static void ask_any_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    size_t ahead = 0, shares, left;
    bool only_full;

    for (size_t i = 0; i < s->lane_count; i++) {
        ahead += s->lanes[i].ready;
        if (rp_sampler_is_open_locked(s, &s->lanes[i])) ahead += s->lanes[i].wanted;
    }
    left = left_locked(s, ahead);
    only_full = left < SIZE_MAX && count_shares_locked(s, true) > 0;
    shares = count_shares_locked(s, only_full);
    for (size_t i = 0; i < s->lane_count; i++) {
        rp_lane *lane = &s->lanes[(s->turn + i) % s->lane_count];
        size_t room = lane->capacity - lane->ready - lane->wanted, count;

        if (!has_share_locked(s, lane, only_full)) continue;
        assert(shares > 0);
        count = left / shares + (left % shares > 0);
        shares--;
        if (count > room) count = room;
        /* A waiter must not wait for an empty shard while another has items. */
        if (left == 0 && room > 0 && s->lane_count > 1 && s->first != NULL && ahead > 0 &&
            lane->wanted == 0 && lane->ready == 0 && s->states[lane->shard].size > 0)
            count = 1;
        if (count == 0 || !(is_worth_asking(s, lane, count) || count == left)) continue;
        ask_locked(s, lane, count);
        left = left > count ? left - count : 0;
    }
}

/* Calls `want` of the sources without the lock. One thread does it for all. */
static void make_calls_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    bool found = true, has_asked = false;

    if (s->is_asking) return;
    s->is_asking = true;
    s->inside++;
    while (found) {
        found = false;
        for (size_t i = 0; i < s->feeder_count; i++) {
            rp_feeder *feeder = &s->feeders[i];
            size_t count = feeder->ask;

            if (count == 0 || s->closed) continue;
            found = has_asked = true;
            feeder->ask = 0;
            rp_mutex_unlock(&s->mu);
            feeder->source->class->want(feeder->source, count);
            rp_mutex_lock(&s->mu);
        }
    }
    s->is_asking = false;
    /* A caller may have become the first meanwhile, and have dropped requests before this one
     * was made. It looks again. */
    if (has_asked && s->is_direct && s->first != NULL &&
        s->first->lacking < s->lanes[0].wanted) {
        s->first->lacking = 0;
        rp_cond_signal(&s->first->cv);
    }
    rp_sampler_leave_locked(s);
}

/* Requests what the first waiter lacks. */
static void ask_for_waiter_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    rp_lane *lane = &s->lanes[0];
    size_t ahead = lane->ready + lane->wanted, room = lane->capacity - ahead;
    size_t left = left_locked(s, ahead), lack;

    assert(s->is_direct && s->lane_count == 1 && ahead <= lane->capacity);
    if (s->first == NULL || s->first->lacking <= ahead) return;
    lack = s->first->lacking - ahead;
    if (lack > room) lack = room;
    ask_locked(s, lane, lack < left ? lack : left);
}

void rp_sampler_credit_locked(rp_sampler *s)
{
    if (!s->started || s->closed || s->end != RP_OK) return;
    if (s->is_direct) {
        ask_for_waiter_locked(s);
    } else if (is_scheduled(s)) {
        extend_locked(s);
        ask_scheduled_locked(s);
    } else if (s->mode == RP_MODE_ANY) {
        ask_any_locked(s);
    }
    make_calls_locked(s);
}

size_t rp_lane_push(rp_lane *lane, const rp_sample *samples, size_t count)
{
    size_t room = lane->capacity - lane->ready, at, run;

    assert(lane->ready <= lane->capacity);
    if (count > room) count = room;
    if (count == 0) return 0;
    at = (lane->first + lane->ready) % lane->capacity;
    run = count < lane->capacity - at ? count : lane->capacity - at;
    memcpy(&lane->ring[at], samples, run * sizeof *samples);
    if (run < count) memcpy(lane->ring, samples + run, (count - run) * sizeof *samples);
    lane->ready += count;
    return count;
}

static void pop(rp_lane *lane, rp_sample *out, size_t count)
{
    size_t run = lane->capacity - lane->first;

    assert(count <= lane->ready && lane->first < lane->capacity);
    if (run > count) run = count;
    memcpy(out, &lane->ring[lane->first], run * sizeof *out);
    if (run < count) memcpy(out + run, lane->ring, (count - run) * sizeof *out);
    lane->first = (lane->first + count) % lane->capacity;
    lane->ready -= count;
}

/* Adds sizes that servers report, which may be any numbers. */
static int64_t sum_sizes(int64_t a, int64_t b)
{
    if (b < 0) b = 0;
    return a <= INT64_MAX - b ? a + b : INT64_MAX;
}

/* Turns probability and table size within one shard into those over all shards. */
static void globalise_locked(const rp_sampler *s, const rp_lane *lane, double share,
                             rp_sample *sample) RP_REQUIRES(s->mu)
{
    if (s->feed.shard_count == 1) return;
    sample->probability *= share;
    for (size_t i = 0; i < s->feed.shard_count; i++)
        if (i != lane->shard)
            sample->table_size = sum_sizes(sample->table_size, s->states[i].size);
}

static size_t take_returned_locked(rp_sampler *s, rp_sample *out, size_t capacity)
    RP_REQUIRES(s->mu)
{
    size_t n = 0;

    while (n < capacity && s->returned != NULL) {
        rp_returned *r = s->returned;
        size_t count = r->count < capacity - n ? r->count : capacity - n;

        memcpy(out + n, r->samples + r->first, count * sizeof *out);
        n += count;
        r->first += count;
        r->count -= count;
        if (r->count > 0) break;
        s->returned = r->next;
        rp_release(&s->alloc, r, sizeof *r + r->capacity * sizeof *r->samples);
    }
    return n;
}

static size_t take_scheduled_locked(rp_sampler *s, rp_sample *out, size_t capacity)
    RP_REQUIRES(s->mu)
{
    size_t n = 0;

    for (; n < capacity && s->schedule_count > 0; n++) {
        const rp_lane_pick *pick = schedule_at(s, 0);
        rp_lane *lane = &s->lanes[pick->lane];

        if (lane->ready == 0) break;
        pop(lane, &out[n], 1);
        globalise_locked(s, lane, pick->share, &out[n]);
        assert(lane->picks > 0); /* S2 */
        lane->picks--;
        s->schedule_first = (s->schedule_first + 1) % s->schedule_capacity;
        s->schedule_count--;
    }
    return n;
}

static size_t take_any_locked(rp_sampler *s, rp_sample *out, size_t capacity) RP_REQUIRES(s->mu)
{
    size_t n = 0;

    if (s->lane_count == 1) {
        n = capacity < s->lanes[0].ready ? capacity : s->lanes[0].ready;
        pop(&s->lanes[0], out, n);
        return n;
    }
    for (size_t idle = 0; n < capacity && idle < s->lane_count;) {
        rp_lane *lane = &s->lanes[s->turn];

        s->turn = (s->turn + 1) % s->lane_count;
        idle++;
        if (lane->ready == 0) continue;
        idle = 0;
        pop(lane, &out[n], 1);
        globalise_locked(s, lane, 1, &out[n++]);
        s->picks_since++;
    }
    return n;
}

size_t rp_sampler_take_locked(rp_sampler *s, rp_sample *out, size_t capacity)
{
    size_t n = take_returned_locked(s, out, capacity), left = left_locked(s, 0), more;

    if (capacity - n < left) left = capacity - n;
    more = is_scheduled(s) ? take_scheduled_locked(s, out + n, left)
                           : take_any_locked(s, out + n, left);
    s->taken += (int64_t)more;
    assert(n + more <= capacity);
    assert(s->options.max_samples == 0 || s->taken <= s->options.max_samples);
    return n + more;
}

bool rp_sampler_has_samples_locked(const rp_sampler *s)
{
    if (s->returned != NULL) return true;
    if (left_locked(s, 0) == 0) return false;
    if (is_scheduled(s))
        return s->schedule_count > 0 && s->lanes[s->schedule[s->schedule_first].lane].ready > 0;
    for (size_t i = 0; i < s->lane_count; i++)
        if (s->lanes[i].ready > 0) return true;
    return false;
}

bool rp_sampler_awaits_locked(const rp_sampler *s, size_t lane)
{
    if (rp_sampler_has_samples_locked(s)) return false;
    if (!is_scheduled(s)) return true;
    return s->schedule_count > 0 && s->schedule[s->schedule_first].lane == lane;
}
