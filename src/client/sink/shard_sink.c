/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes items over shards; the header describes its guarantees.
 *
 * put() first chooses a shard for each item, then reserves room in all of these shards, then
 * puts the items, so that either all items are taken or none. A single item needs no
 * reservation. The writer and the loop, which moves the items of an unreachable shard, may put
 * at the same time; a lock guards the arrays that they use for this. */
#include "client/sink/shard_sink.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/rng.h"

enum {
    DEFAULT_GIVE_UP_MS = 30000,
    BATCH = 256, /* items moved at once */
};

#define MAX_LOOK_NS ((int64_t)1000000000)

typedef struct shard {
    rp_sink *sink;
    size_t count; /* items of this put() for the shard */
    size_t at;    /* the end of its items in `sorted`, once sorted */
} shard;

typedef struct shard_sink {
    rp_sink base;
    rp_runtime *runtime;
    rp_loop *loop;
    rp_allocator alloc;
    uint64_t generation;
    rp_spread spread;
    uint64_t seed;
    int64_t give_up_ns;
    size_t shard_count;
    atomic_size_t turn; /* the shard that is next */

    /* used by the loop thread only */
    rp_timer timer;               /* always armed */
    rp_sink_item homeless[BATCH]; /* items of a shard that is away, not yet put elsewhere */
    size_t homeless_count;
    bool is_closed;

    rp_mutex mu; /* rank 83; guards the fields below; acquired before the locks of the sinks */
    rp_sink_item *sorted RP_GUARDED_BY(mu);
    uint32_t *targets RP_GUARDED_BY(mu);
    size_t capacity RP_GUARDED_BY(mu); /* of `sorted` and `targets` */
    shard shards[];
} shard_sink;

static shard_sink *sink_of(rp_sink *sink)
{
    return (shard_sink *)(void *)sink;
}

static bool is_away(const shard_sink *s, size_t shard_index)
{
    return rp_remote_sink_away_since(s->shards[shard_index].sink) != 0;
}

static size_t shard_after(const shard_sink *s, size_t index)
{
    assert(index < s->shard_count);
    return index + 1 < s->shard_count ? index + 1 : 0;
}

/* Relaxed: if the loop moves items at the same moment, two go to the same shard. */
static size_t take_turn(shard_sink *s)
{
    size_t turn = atomic_load_explicit(&s->turn, memory_order_relaxed);

    atomic_store_explicit(&s->turn, shard_after(s, turn), memory_order_relaxed);
    return turn;
}

static size_t shard_of_key(const shard_sink *s, uint64_t key)
{
    uint64_t state = s->seed ^ key;

    assert(s->shard_count > 0);
    return (size_t)(rp_splitmix64(&state) % s->shard_count);
}

/* Returns the shard for an item: the one it hashes to or whose turn it is, or the next one that
 * can be reached. */
static size_t choose(shard_sink *s, const rp_sink_item *item)
{
    size_t first = s->spread == RP_SPREAD_KEYS ? shard_of_key(s, item->key) : take_turn(s);
    size_t index = first;

    while (is_away(s, index)) {
        index = shard_after(s, index);
        if (index == first) break;
    }
    return index;
}

static bool make_room_locked(shard_sink *s, size_t count) RP_REQUIRES(s->mu)
{
    rp_sink_item *sorted;

    if (count <= s->capacity) return true;
    sorted = rp_alloc_array(&s->alloc, count, sizeof *sorted);
    if (sorted == NULL) return false;
    if (!rp_resize_array(&s->alloc, &s->targets, s->capacity, count, sizeof *s->targets)) {
        rp_release(&s->alloc, sorted, count * sizeof *sorted);
        return false;
    }
    rp_release(&s->alloc, s->sorted, s->capacity * sizeof *sorted);
    s->sorted = sorted;
    s->capacity = count;
    return true;
}

/* Sorts the items by shard, keeping their order within each shard. */
static void sort_locked(shard_sink *s, const rp_sink_item *items, size_t count)
    RP_REQUIRES(s->mu)
{
    size_t at = 0;

    assert(count <= s->capacity);
    for (size_t i = 0; i < s->shard_count; i++) s->shards[i].count = 0;
    for (size_t i = 0; i < count; i++) {
        s->targets[i] = (uint32_t)choose(s, &items[i]);
        s->shards[s->targets[i]].count++;
    }
    for (size_t i = 0; i < s->shard_count; i++) {
        s->shards[i].at = at;
        at += s->shards[i].count;
    }
    assert(at == count);
    for (size_t i = 0; i < count; i++) s->sorted[s->shards[s->targets[i]].at++] = items[i];
}

/* Reserves room in every shard that gets items. Without memory returns false, with nothing
 * changed. */
static bool reserve_locked(shard_sink *s) RP_REQUIRES(s->mu)
{
    for (size_t i = 0; i < s->shard_count; i++) {
        if (s->shards[i].count == 0 ||
            rp_remote_sink_reserve(s->shards[i].sink, s->shards[i].count))
            continue;
        while (i-- > 0)
            if (s->shards[i].count > 0) rp_remote_sink_put_reserved(s->shards[i].sink, NULL, 0);
        return false;
    }
    return true;
}

static rp_status put(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err)
{
    shard_sink *s = sink_of(sink);
    rp_status st = RP_OK;

    if (count == 1) {
        rp_sink *to = s->shards[choose(s, items)].sink;
        return to->class->put(to, items, 1, err);
    }
    rp_mutex_lock(&s->mu);
    if (!make_room_locked(s, count)) {
        st = rp_fail_memory(err, count * sizeof *items);
        goto out;
    }
    sort_locked(s, items, count);
    if (!reserve_locked(s)) {
        st = rp_fail_memory(err, count * sizeof *items);
        goto out;
    }
    for (size_t i = 0; i < s->shard_count; i++) {
        const shard *to = &s->shards[i];
        const rp_sink_item *first = s->sorted + (to->at - to->count);

        if (to->count > 0) rp_remote_sink_put_reserved(to->sink, first, to->count);
    }
out:
    rp_mutex_unlock(&s->mu);
    return st;
}

static void push(rp_sink *sink, size_t least)
{
    shard_sink *s = sink_of(sink);

    for (size_t i = 0; i < s->shard_count; i++)
        s->shards[i].sink->class->push(s->shards[i].sink, least);
}

static bool can_reach_another(const shard_sink *s, size_t than)
{
    for (size_t i = 0; i < s->shard_count; i++)
        if (i != than && !is_away(s, i)) return true;
    return false;
}

/* Puts the items of `homeless` into other shards. */
static bool find_homes(shard_sink *s)
{
    if (s->homeless_count > 0 && put(&s->base, s->homeless, s->homeless_count, NULL) != RP_OK)
        return false;
    s->homeless_count = 0;
    return true;
}

/* Moves the items of a shard that is away to the others: all of them, or those that it cannot
 * have. */
static void move_items(shard_sink *s, size_t from, bool is_all)
{
    rp_sink *sink = s->shards[from].sink;

    while (can_reach_another(s, from) && find_homes(s)) {
        s->homeless_count = is_all ? rp_remote_sink_give_back(sink, s->homeless, BATCH)
                                   : rp_remote_sink_give_unsent(sink, s->homeless, BATCH);
        if (s->homeless_count == 0) return;
    }
}

static void look(shard_sink *s)
{
    int64_t now_ns = rp_loop_now(s->loop), next_ns = s->give_up_ns / 4;

    (void)find_homes(s);
    for (size_t i = 0; i < s->shard_count; i++) {
        int64_t since_ns = rp_remote_sink_away_since(s->shards[i].sink);
        if (since_ns != 0) move_items(s, i, now_ns - since_ns >= s->give_up_ns);
    }
    if (next_ns > MAX_LOOK_NS) next_ns = MAX_LOOK_NS;
    /* It cannot fail: the timer has just freed its place. */
    if (rp_loop_arm(s->loop, &s->timer, now_ns + next_ns + 1) != RP_OK) s->timer.place = 0;
}

static void on_due(rp_timer *timer)
{
    look((shard_sink *)(void *)((char *)timer - offsetof(shard_sink, timer)));
}

/* A shard has items that it cannot have got: looks as soon as the sink of the shard is done. */
static void on_refused(void *user)
{
    shard_sink *s = user;

    if (s->is_closed || !can_reach_another(s, s->shard_count)) return;
    /* It cannot fail: the timer has a place. */
    if (rp_loop_arm(s->loop, &s->timer, rp_loop_now(s->loop)) != RP_OK) return;
}

static void why(rp_sink *sink, char *text, size_t size)
{
    shard_sink *s = sink_of(sink);
    char part[RP_ERROR_TEXT_BYTES];
    size_t used = 0;

    if (size > 0) text[0] = '\0';
    for (size_t i = 0; i < s->shard_count && used < size; i++) {
        int length;

        s->shards[i].sink->class->why(s->shards[i].sink, part, sizeof part);
        if (part[0] == '\0') continue;
        length = snprintf(text + used, size - used, "%sshard %zu: %s", used > 0 ? "; " : "", i,
                          part);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void start_on_loop(void *arg)
{
    shard_sink *s = arg;

    s->is_closed =
        rp_loop_arm(s->loop, &s->timer, rp_loop_now(s->loop) + s->give_up_ns / 4 + 1) != RP_OK;
}

static void close_on_loop(void *arg)
{
    shard_sink *s = arg;

    s->is_closed = true;
    rp_loop_disarm(s->loop, &s->timer);
}

static void free_sink(shard_sink *s) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_allocator alloc = s->alloc;

    for (size_t i = 0; i < s->homeless_count; i++)
        rp_trajectory_unref(s->homeless[i].trajectory);
    rp_release(&alloc, s->sorted, s->capacity * sizeof *s->sorted);
    rp_release(&alloc, s->targets, s->capacity * sizeof *s->targets);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s + s->shard_count * sizeof *s->shards);
}

static void close_sink(rp_sink *sink)
{
    shard_sink *s = sink_of(sink);

    if (s->generation != rp_runtime_generation()) return; /* as in remote_sink_stream.c */
    rp_runtime_run_on_loop(s->runtime, close_on_loop, s);
    for (size_t i = 0; i < s->shard_count; i++)
        s->shards[i].sink->class->close(s->shards[i].sink);
    free_sink(s);
}

static const rp_sink_class sink_class = {
    .put = put,
    .push = push,
    .why = why,
    .close = close_sink,
};

rp_status rp_shard_sink_new(rp_sink *const *sinks, size_t count, rp_runtime *runtime,
                            const rp_allocator *alloc, const rp_shard_options *options,
                            rp_sink **out, rp_error *err)
{
    int64_t give_up_ms = options->give_up_ms > 0 ? options->give_up_ms : DEFAULT_GIVE_UP_MS;
    uint64_t state = options->seed;
    size_t bytes = sizeof(shard_sink) + count * sizeof(shard);
    shard_sink *s = rp_alloc_zero(alloc, bytes);

    assert(count > 0);
    if (s == NULL) return rp_fail_memory(err, bytes);
    s->base.class = &sink_class;
    s->runtime = runtime;
    s->loop = rp_runtime_loop(runtime);
    s->alloc = *alloc;
    s->generation = rp_runtime_generation();
    s->spread = options->spread;
    s->seed = rp_splitmix64(&state);
    atomic_init(&s->turn, (size_t)(rp_splitmix64(&state) % count));
    s->give_up_ns = give_up_ms < INT64_MAX / 1000000 ? give_up_ms * 1000000 : INT64_MAX / 2;
    s->shard_count = count;
    for (size_t i = 0; i < count; i++) s->shards[i].sink = sinks[i];
    s->timer.on_due = on_due;
    rp_mutex_init(&s->mu, RP_RANK_SHARDS);
    rp_runtime_run_on_loop(runtime, start_on_loop, s);
    if (s->is_closed) {
        free_sink(s);
        return rp_fail_memory(err, sizeof(rp_timer));
    }
    for (size_t i = 0; i < count; i++) rp_remote_sink_on_refused(sinks[i], on_refused, s);
    *out = &s->base;
    return RP_OK;
}
