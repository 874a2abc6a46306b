/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples of one table of one server; the header describes its guarantees.
 *
 * want() adds to `wanted` and posts; everything else runs on the loop thread. Numbers of
 * samples:
 *
 *   wish         wanted by the sampler and not delivered
 *   asked        of these, requested on this stream and not delivered
 *   stream_left  may still be requested on this stream
 *
 *   asked <= wish; without a stream asked is 0 */
#include "client/sampler/remote_source.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "wire/request_write.h"
#include "wire/sample_response_read.h"

enum {
    BATCH = 128, /* samples delivered at once */
    DEFAULT_REQUEST = 100,
    MAX_REQUEST = 1 << 20, /* Reverb servers count in 32 bits */
    AHEAD = 2,             /* outstanding requests */
};

#define MIN_PAUSE_NS ((int64_t)2000000)
#define MAX_PAUSE_NS ((int64_t)1000000000)
#define MEMORY_PAUSE_NS ((int64_t)10000000)
#define OLD_NS ((int64_t)2000000000)

typedef enum stream_state {
    STREAM_NONE,
    STREAM_BEGINNING, /* waits for a connection */
    STREAM_OPEN,
} stream_state;

typedef struct remote_source {
    rp_source base;
    rp_runtime *runtime;
    rp_loop *loop;
    rp_channel *channel;
    rp_allocator alloc;
    rp_source_events events;
    rp_source_options options; /* with a copy of `table` */
    uint64_t generation;
    rp_post post;
    atomic_size_t wanted; /* requested and not yet added to `wish` */
    atomic_bool is_posted;

    /* used by the loop thread only */
    rp_channel_call call;
    rp_timer timer; /* always armed, so that moving it cannot fail */
    rp_sample_reader *reader;
    rp_shared_call shared; /* of this stream; without a lease the server sends chunks */
    rp_share_wait share_wait;
    bool is_asking;       /* for a lease: the stream begins after the response */
    bool has_asked_again; /* for a lease, because the server was not reachable before */
    unsigned lost_leases; /* in a row */
    stream_state state;
    size_t wish;         /* samples to deliver */
    size_t asked;        /* of these, requested on this stream; <= wish */
    int64_t stream_left; /* samples until max_per_stream */
    int64_t resume_ns, pause_ns, began_ns;
    bool has_progressed; /* the stream has delivered something */
    bool was_cancelled;  /* the server cancelled the last stream */
    bool is_away;        /* on_reach(false) was the last report */
    bool is_closed;
    rp_sample samples[BATCH];

    rp_mutex mu; /* rank 84: the rest */
    char why[RP_ERROR_TEXT_BYTES] RP_GUARDED_BY(mu);
} remote_source;

static remote_source *source_of(rp_source *source)
{
    return (remote_source *)(void *)source;
}

static remote_source *source_of_call(rp_channel_call *call)
{
    return (remote_source *)(void *)((char *)call - offsetof(remote_source, call));
}

static void wake_at(remote_source *s, int64_t due_ns)
{
    if (due_ns < s->timer.due_ns && rp_loop_arm(s->loop, &s->timer, due_ns) != RP_OK)
        return; /* never: an armed timer needs no memory */
}

static void set_why(remote_source *s, const char *text)
{
    rp_mutex_lock(&s->mu);
    (void)snprintf(s->why, sizeof s->why, "%s", text);
    rp_mutex_unlock(&s->mu);
}

/* Adds new requests of the sampler to the wish. */
static void take_wanted(remote_source *s)
{
    /* Relaxed: no other memory depends on the number. */
    size_t more = atomic_exchange_explicit(&s->wanted, 0, memory_order_relaxed);

    s->wish = more < SIZE_MAX - s->wish ? s->wish + more : SIZE_MAX;
}

/* Resets the state of a stream that has ended. */
static void forget_stream(remote_source *s)
{
    s->state = STREAM_NONE;
    s->asked = 0;
    rp_sample_reader_share(s->reader, NULL);
    rp_shared_call_end(&s->shared);
}

static void end_stream(remote_source *s)
{
    if (s->state != STREAM_NONE) rp_channel_cancel(&s->call);
    forget_stream(s);
}

static void on_no_memory(remote_source *s)
{
    end_stream(s);
    s->resume_ns = rp_loop_now(s->loop) + MEMORY_PAUSE_NS;
    set_why(s, "out of memory");
    wake_at(s, s->resume_ns);
}

/* Returns how many samples to request now. Small requests are collected while others are
 * pending. */
static size_t next_request(const remote_source *s)
{
    size_t most = s->options.request_samples, count = s->wish - s->asked;

    assert(s->asked <= s->wish && s->stream_left >= 0);
    if (count > most) count = most;
    if ((int64_t)count > s->stream_left) return (size_t)s->stream_left;
    if (s->asked > 0 && (s->asked > (AHEAD - 1) * most || count < (most + 1) / 2)) return 0;
    return count;
}

static void send_requests(remote_source *s)
{
    size_t count;

    assert(s->state == STREAM_OPEN);
    while ((count = next_request(s)) > 0) {
        rp_message *reply = rp_channel_new_message(s->channel);

        if (reply != NULL)
            rp_wire_write_sample_request(&reply->bytes, s->options.table, (int64_t)count,
                                         s->options.rate_limiter_timeout_ms);
        if (reply != NULL && s->shared.lease != NULL)
            rp_wire_write_lease(&reply->bytes, rp_shared_lease_id(s->shared.lease),
                                RP_LEASE_BYTES, s->shared.number);
        if (reply == NULL || !rp_message_close(reply)) {
            rp_channel_drop_message(s->channel, reply);
            on_no_memory(s);
            return;
        }
        rp_channel_send(&s->call, reply);
        s->asked += count;
        s->stream_left -= (int64_t)count;
    }
}

/* Gets a lease, if the channel can have one. Returns false if the response must be waited for.
 */
static bool get_lease(remote_source *s)
{
    rp_share *share = rp_channel_share(s->channel);
    rp_shared_lease *lease = NULL;

    s->is_asking = false;
    if (share != NULL) lease = rp_share_get(share, &s->share_wait, &s->is_asking);
    if (s->is_asking) return false;
    if (lease == NULL) return true;
    rp_shared_call_begin(&s->shared, lease);
    rp_shared_lease_unref(lease);
    rp_sample_reader_share(s->reader, &s->shared.source);
    return true;
}

/* Returns true if the stream has begun without a lease only because the server could not be
 * reached when the lease was requested. */
static bool should_ask_again(remote_source *s)
{
    rp_share *share = rp_channel_share(s->channel);
    bool again = s->shared.lease == NULL && share != NULL && share->state == RP_SHARE_NONE &&
                 !s->has_asked_again;

    s->has_asked_again = again;
    return again;
}

/* Returns true if a stream has ended because of its lease: the next one uses another or none.
 */
static bool has_lost_lease(remote_source *s, rp_status status)
{
    if (s->shared.lease == NULL) return false;
    if (status == RP_UNIMPLEMENTED || (status == RP_PRECONDITION && s->lost_leases > 0)) {
        rp_share_lost(rp_channel_share(s->channel), NULL);
        return true;
    }
    if (status != RP_PRECONDITION) return false;
    s->lost_leases++;
    rp_share_lost(rp_channel_share(s->channel), s->shared.lease);
    return true;
}

static const rp_channel_call_class call_class;

/* Returns true if a stream is needed: for samples, or to find out whether a server that was
 * away is back. The sampler may have no requests just because the server is away. */
static bool needs_stream(const remote_source *s)
{
    return s->wish > 0 || s->is_away;
}

/* Opens a stream or sends requests, as far as possible now. */
static void go_on(remote_source *s)
{
    take_wanted(s);
    if (s->state == STREAM_OPEN && s->stream_left == 0 && s->asked == 0) {
        end_stream(s);
        wake_at(s, rp_loop_now(s->loop)); /* this may be a callback of that stream */
        return;
    }
    if (s->state == STREAM_OPEN) send_requests(s);
    if (s->state != STREAM_NONE || !needs_stream(s)) return;
    if (rp_loop_now(s->loop) < s->resume_ns) {
        wake_at(s, s->resume_ns);
        return;
    }
    if (!get_lease(s)) return;
    s->call = (rp_channel_call){
        .class = &call_class,
        .path = s->shared.lease != NULL ? "/reprise.v1.Replay/SampleShared"
                                        : "/deepmind.reverb.ReverbService/SampleStream",
        .deadline_ns = RP_FOREVER,
        .fails_fast = true, /* on_end reports that the server is away */
    };
    s->state = STREAM_BEGINNING;
    rp_channel_begin(s->channel, &s->call);
}

static void on_shared(rp_share_wait *wait)
{
    go_on((remote_source *)(void *)((char *)wait - offsetof(remote_source, share_wait)));
}

static void on_due(rp_timer *timer)
{
    remote_source *s =
        (remote_source *)(void *)((char *)timer - offsetof(remote_source, timer));

    timer->due_ns = INT64_MAX;
    if (rp_loop_arm(s->loop, timer, INT64_MAX) != RP_OK) return; /* never: its place is free */
    go_on(s);
}

static void on_posted(rp_post *post)
{
    remote_source *s = (remote_source *)(void *)((char *)post - offsetof(remote_source, post));

    /* Acquire: go_on() sees the requests of threads that found is_posted set. */
    (void)atomic_exchange_explicit(&s->is_posted, false, memory_order_acq_rel);
    if (!s->is_closed) go_on(s);
}

static void on_begin(rp_channel_call *call)
{
    remote_source *s = source_of_call(call);

    assert(s->state == STREAM_BEGINNING && s->asked == 0);
    if (should_ask_again(s)) {
        end_stream(s);
        wake_at(s, rp_loop_now(s->loop));
        return;
    }
    s->state = STREAM_OPEN;
    s->began_ns = rp_loop_now(s->loop);
    s->has_progressed = false;
    s->stream_left = s->options.max_per_stream > 0 ? s->options.max_per_stream : INT64_MAX;
    set_why(s, ""); /* the server knows */
    if (s->is_away) {
        s->is_away = false;
        s->events.on_reach(s->events.user, true, "");
    }
    go_on(s);
}

/* Ends the stream, forgets all requests and reports the failure. */
static void give_up(remote_source *s, rp_status status, const char *text)
{
    size_t forgotten;

    end_stream(s);
    take_wanted(s);
    forgotten = s->wish;
    s->wish = 0;
    s->was_cancelled = false;
    set_why(s, text);
    s->events.on_end(s->events.user, forgotten, status, text);
}

static void on_message(rp_channel_call *call, const uint8_t *data, size_t size, rp_block *block)
{
    remote_source *s = source_of_call(call);
    rp_error error = {0};
    rp_status st;
    size_t count;

    rp_sample_reader_open(s->reader, data, size, block);
    for (;;) {
        st = rp_sample_reader_next(s->reader, s->samples, BATCH, &count, &error);
        if (st == RP_OK && count > s->asked) {
            rp_samples_release(s->samples, count);
            st =
                rp_fail(&error, RP_CORRUPT, "the server sent more samples than were asked for");
        }
        if (st != RP_OK) {
            give_up(s, st, error.text);
            return;
        }
        if (count == 0) break;
        assert(count <= s->asked && s->asked <= s->wish);
        s->asked -= count;
        s->wish -= count;
        s->has_progressed = true;
        s->was_cancelled = false;
        s->lost_leases = 0;
        s->events.on_samples(s->events.user, s->samples, count);
    }
    go_on(s);
}

/* Returns the pause before the next stream: doubling while streams end early. */
static int64_t pause_after(remote_source *s, bool has_begun)
{
    int64_t lived_ns = rp_loop_now(s->loop) - s->began_ns, pause_ns = s->pause_ns;

    if (!has_begun) return MIN_PAUSE_NS; /* the channel has its own backoff */
    if (s->has_progressed || lived_ns >= OLD_NS) {
        s->pause_ns = MIN_PAUSE_NS;
        return MIN_PAUSE_NS;
    }
    s->pause_ns = pause_ns < MAX_PAUSE_NS / 2 ? 2 * pause_ns : MAX_PAUSE_NS;
    return pause_ns;
}

static void on_end(rp_channel_call *call, rp_status status, const char *text)
{
    remote_source *s = source_of_call(call);
    bool has_begun = s->state == STREAM_OPEN;

    assert(s->state != STREAM_NONE);
    if (text == NULL) text = "";
    if (has_lost_lease(s, status)) status = RP_OK;
    forget_stream(s);
    if ((int)status == 2 && strcmp(text, "Stream removed") == 0) status = RP_UNAVAILABLE;
    if (rp_channel_is_given_up(s->channel)) {
        give_up(s, status, text);
        return;
    }
    if (status == RP_CANCELLED && !s->was_cancelled) {
        s->was_cancelled = true;
    } else if (status == RP_UNAVAILABLE) {
        s->was_cancelled = false;
    } else if (status != RP_OK) {
        give_up(s, status, text);
        return;
    }
    set_why(s, text);
    s->resume_ns = rp_loop_now(s->loop) + pause_after(s, has_begun);
    take_wanted(s);
    /* It may be refused only now: before, it may not have listened yet. */
    if (status == RP_UNAVAILABLE && (!s->is_away || rp_channel_is_refused(s->channel))) {
        s->is_away = true;
        s->events.on_reach(s->events.user, false, text);
    }
    if (needs_stream(s)) wake_at(s, s->resume_ns);
}

static const rp_channel_call_class call_class = {
    .on_begin = on_begin,
    .on_message = on_message,
    .on_end = on_end,
};

static void want(rp_source *source, size_t count)
{
    remote_source *s = source_of(source);

    if (count == 0) return;
    atomic_fetch_add_explicit(&s->wanted, count, memory_order_relaxed);
    /* Release: see on_posted(). */
    if (!atomic_exchange_explicit(&s->is_posted, true, memory_order_acq_rel))
        rp_loop_post(s->loop, &s->post);
}

static void why(rp_source *source, char *text, size_t size)
{
    remote_source *s = source_of(source);

    rp_mutex_lock(&s->mu);
    (void)snprintf(text, size, "%s", s->why);
    rp_mutex_unlock(&s->mu);
}

static void start_on_loop(void *arg)
{
    remote_source *s = arg;

    s->timer.due_ns = INT64_MAX;
    s->is_closed = rp_loop_arm(s->loop, &s->timer, INT64_MAX) != RP_OK;
}

static void close_on_loop(void *arg)
{
    remote_source *s = arg;

    if (s->is_closed) return;
    s->is_closed = true;
    end_stream(s);
    if (rp_channel_share(s->channel) != NULL)
        rp_share_forget(rp_channel_share(s->channel), &s->share_wait);
    rp_loop_disarm(s->loop, &s->timer);
}

static void free_source(remote_source *s)
{
    rp_allocator alloc = s->alloc;

    rp_sample_reader_free(s->reader);
    if (s->options.table != NULL)
        rp_release(&alloc, (void *)(uintptr_t)s->options.table, strlen(s->options.table) + 1);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s);
}

static void close_source(rp_source *source)
{
    remote_source *s = source_of(source);

    /* In the child of a fork the state is unknown, because there is no loop thread: leak it. */
    if (s->generation != rp_runtime_generation()) return;
    do {
        rp_runtime_run_on_loop(s->runtime, close_on_loop, s);
    } while (atomic_load_explicit(&s->is_posted, memory_order_acquire));
    free_source(s);
}

static const rp_source_class source_class = {
    .want = want,
    .why = why,
    .close = close_source,
};

/* Allocates the parts of a source. */
static rp_status equip(remote_source *s, const char *table, rp_error *err)
{
    rp_sample_limits limits = rp_sample_limits_default();
    size_t size = strlen(table) + 1;
    char *name = rp_alloc(&s->alloc, size);

    if (name == NULL) return rp_fail_memory(err, size);
    memcpy(name, table, size);
    s->options.table = name;
    if (s->options.item_bytes > 0) limits.item_bytes = s->options.item_bytes;
    return rp_sample_reader_new(&s->alloc, &limits, &s->reader, err);
}

rp_status rp_remote_source_new(rp_channel *channel, rp_runtime *runtime,
                               const rp_allocator *alloc, const rp_source_options *options,
                               const rp_source_events *events, rp_source **out, rp_error *err)
{
    remote_source *s = rp_alloc_zero(alloc, sizeof *s);
    rp_status st;

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->base.class = &source_class;
    s->runtime = runtime;
    s->loop = rp_runtime_loop(runtime);
    s->channel = channel;
    s->alloc = *alloc;
    s->events = *events;
    s->options = *options;
    s->options.table = NULL;
    if (s->options.request_samples == 0) s->options.request_samples = DEFAULT_REQUEST;
    if (s->options.request_samples > MAX_REQUEST) s->options.request_samples = MAX_REQUEST;
    s->generation = rp_runtime_generation();
    s->post.run = on_posted;
    s->timer.on_due = on_due;
    s->share_wait.on_done = on_shared;
    s->pause_ns = MIN_PAUSE_NS;
    atomic_init(&s->wanted, 0);
    atomic_init(&s->is_posted, false);
    rp_mutex_init(&s->mu, RP_RANK_STREAM);
    st = equip(s, options->table, err);
    if (st == RP_OK) {
        rp_runtime_run_on_loop(runtime, start_on_loop, s);
        if (s->is_closed) st = rp_fail_memory(err, sizeof(rp_timer));
    }
    if (st != RP_OK) {
        free_source(s);
        return st;
    }
    *out = &s->base;
    return RP_OK;
}
