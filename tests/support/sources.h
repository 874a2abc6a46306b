/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that a test controls: they count the samples that a sampler wants, and deliver them
 * when the test calls rp_test_give(). The test's thread is the source's thread. */
#ifndef RP_TEST_SOURCES_H
#define RP_TEST_SOURCES_H

#include <pthread.h>
#include <unistd.h>

#include "client/sampler/sampler_inside.h"
#include "support/fixture.h"

enum { RP_TEST_MAX_SOURCES = 16 };

typedef struct rp_test_source {
    rp_source source; /* first */
    rp_source_events events;
    rp_source_options options;
    size_t shard;
    pthread_mutex_t mu; /* guards the next three */
    size_t wanted, most_wanted;
    bool closed;
    uint64_t given; /* samples so far: the next has the key 1000000 * number + given */
    size_t number;
    int64_t table_size;
    double probability;
    void (*on_want)(void); /* if not NULL: called when something is wanted */
} rp_test_source;

/* All sources of a sampler, and the feed that makes them. */
typedef struct rp_test_sources {
    rp_test_source all[RP_TEST_MAX_SOURCES];
    size_t count;
    size_t fail_at;               /* opening this source fails; SIZE_MAX: none */
    rp_trajectory *trajectory;    /* of every sample; or, */
    rp_trajectory **trajectories; /* if not NULL, those of a source's samples in turn */
    size_t trajectory_count;      /* number of `trajectories` */
    rp_shard_state states[RP_TEST_MAX_SOURCES]; /* the results of weighing; guarded by mu */
    rp_status weigh_status;
    size_t weighed; /* calls that weighed the sources */
    size_t shard_count;
    pthread_mutex_t mu;
} rp_test_sources;

static inline void rp_test_source_want(rp_source *source, size_t count)
{
    rp_test_source *t = (rp_test_source *)source;

    pthread_mutex_lock(&t->mu);
    assert_false(t->closed);
    t->wanted += count;
    if (t->wanted > t->most_wanted) t->most_wanted = t->wanted;
    pthread_mutex_unlock(&t->mu);
    if (t->on_want != NULL) t->on_want();
}

static inline void rp_test_source_why(rp_source *source, char *text, size_t size)
{
    (void)snprintf(text, size, "source %zu rests", ((rp_test_source *)source)->number);
}

static inline void rp_test_source_close(rp_source *source)
{
    rp_test_source *t = (rp_test_source *)source;

    pthread_mutex_lock(&t->mu);
    assert_false(t->closed);
    t->closed = true;
    pthread_mutex_unlock(&t->mu);
}

static inline rp_status rp_test_source_open(void *ctx, size_t shard,
                                            const rp_source_options *options,
                                            const rp_source_events *events, rp_source **out,
                                            rp_error *err)
{
    static const rp_source_class class = {
        .want = rp_test_source_want, .why = rp_test_source_why, .close = rp_test_source_close};
    rp_test_sources *s = ctx;
    rp_test_source *t = &s->all[s->count];

    assert_true(s->count < RP_TEST_MAX_SOURCES);
    if (s->count == s->fail_at) {
        *err = (rp_error){.code = RP_DENIED, .text = "not for you"};
        return RP_DENIED;
    }
    *t = (rp_test_source){.source = {&class},
                          .events = *events,
                          .options = *options,
                          .shard = shard,
                          .number = s->count,
                          .table_size = 10,
                          .probability = 0.5};
    pthread_mutex_init(&t->mu, NULL);
    s->count++;
    *out = &t->source;
    return RP_OK;
}

static inline rp_status rp_test_sources_weigh(void *ctx, const char *table, rp_wait wait,
                                              rp_shard_state *out, rp_error *err)
{
    rp_test_sources *s = ctx;
    rp_status st;

    (void)wait;
    assert_string_equal(table, "t");
    pthread_mutex_lock(&s->mu);
    memcpy(out, s->states, s->shard_count * sizeof *out);
    st = s->weigh_status;
    s->weighed++;
    pthread_mutex_unlock(&s->mu);
    if (st != RP_OK) *err = (rp_error){.code = st, .text = "scales are broken"};
    return st;
}

static inline void rp_test_sources_init(rp_test_sources *s, size_t shards,
                                        rp_trajectory *trajectory)
{
    memset(s, 0, sizeof *s);
    s->fail_at = SIZE_MAX;
    s->trajectory = trajectory;
    s->shard_count = shards;
    pthread_mutex_init(&s->mu, NULL);
    for (size_t i = 0; i < shards; i++)
        s->states[i] = (rp_shard_state){.weight = 1, .size = 10};
}

static inline rp_sampler_feed rp_test_sources_feed(rp_test_sources *s, uint64_t seed)
{
    return (rp_sampler_feed){.shard_count = s->shard_count,
                             .open = rp_test_source_open,
                             .weigh = rp_test_sources_weigh,
                             .ctx = s,
                             .seed = seed};
}

static inline void rp_test_sources_set(rp_test_sources *s, size_t shard, rp_shard_state state)
{
    pthread_mutex_lock(&s->mu);
    s->states[shard] = state;
    pthread_mutex_unlock(&s->mu);
}

static inline size_t rp_test_sources_weighings(rp_test_sources *s)
{
    size_t n;

    pthread_mutex_lock(&s->mu);
    n = s->weighed;
    pthread_mutex_unlock(&s->mu);
    return n;
}

static inline size_t rp_test_wanted(rp_test_source *t)
{
    size_t wanted;

    pthread_mutex_lock(&t->mu);
    wanted = t->wanted;
    pthread_mutex_unlock(&t->mu);
    return wanted;
}

/* Delivers up to `count` of the samples that are wanted. Returns their number. */
static inline size_t rp_test_give(rp_test_sources *s, size_t index, size_t count)
{
    rp_test_source *t = &s->all[index];
    rp_sample samples[64];

    if (count > COUNT_OF(samples)) count = COUNT_OF(samples);
    pthread_mutex_lock(&t->mu);
    if (count > t->wanted) count = t->wanted;
    t->wanted -= count;
    pthread_mutex_unlock(&t->mu);
    for (size_t i = 0; i < count; i++) {
        rp_trajectory *trajectory = s->trajectory;

        if (s->trajectories != NULL)
            trajectory = s->trajectories[t->given % s->trajectory_count];
        samples[i] = (rp_sample){.key = 1000000 * t->number + t->given++,
                                 .priority = 1,
                                 .probability = t->probability,
                                 .weight = 1,
                                 .trajectory = rp_trajectory_ref(trajectory),
                                 .table_size = t->table_size,
                                 .times_sampled = 1};
    }
    if (count > 0) t->events.on_samples(t->events.user, samples, count);
    return count;
}

/* Ends the request of a source with a status. */
static inline void rp_test_end(rp_test_sources *s, size_t index, rp_status status,
                               const char *text)
{
    rp_test_source *t = &s->all[index];
    size_t forgotten;

    pthread_mutex_lock(&t->mu);
    forgotten = t->wanted;
    t->wanted = 0;
    pthread_mutex_unlock(&t->mu);
    t->events.on_end(t->events.user, forgotten, status, text);
}

static inline void rp_test_reach(rp_test_sources *s, size_t index, bool reached)
{
    rp_test_source *t = &s->all[index];

    t->events.on_reach(t->events.user, reached, reached ? "" : "no route");
}

/* Waits until `count` threads wait for the sampler. */
static inline void rp_test_await_line(rp_sampler *sampler, size_t count)
{
    for (int i = 0; i < 100000; i++) {
        size_t n = 0;

        rp_mutex_lock(&sampler->mu);
        for (const rp_sampler_waiter *w = sampler->first; w != NULL; w = w->next) n++;
        rp_mutex_unlock(&sampler->mu);
        if (n == count) return;
        (void)usleep(100);
    }
    fail_msg("nobody waits");
}

#endif
