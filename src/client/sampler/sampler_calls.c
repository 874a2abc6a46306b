/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and frees samplers, and makes threads wait for samples.
 *
 * Callers queue (S3). Each leaves the queue when it has its samples, and wakes the next. With
 * several shards the first in the queue also has the shards weighed while it waits.
 *
 * `inside` counts the threads that use the sampler, calls of the user and callbacks of the
 * sources alike. rp_sampler_free() waits for them, then closes the sources without the lock. */
#include "client/sampler/sampler.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "client/sampler/sampler_inside.h"
#include "table/op.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum { DEFAULT_IN_FLIGHT = 100, MAX_STREAMS = 1024 };

static const int64_t explained_wait_ns = 100 * 1000000LL;
static const int64_t ask_pause_ns = 1000 * 1000000LL;

bool rp_sampler_enter_locked(rp_sampler *s)
{
    if (s->closed) return false;
    s->inside++;
    return true;
}

void rp_sampler_leave_locked(rp_sampler *s)
{
    assert(s->inside > 0);
    s->inside--;
    RP_VERIFY(s->schedule_count + s->feeder_count, rp_sampler_is_valid_locked(s));
    if (s->closed) rp_cond_signal(&s->quiet);
}

/* Fails in the child of a fork, where the lock may be held by a thread that does not exist. */
static rp_status check_process(const rp_sampler *s, rp_error *err)
{
    if (s->generation == rp_runtime_generation()) return RP_OK;
    return rp_fail(err, RP_PRECONDITION, "sampler of '%s' belongs to the parent process",
                   s->table);
}

rp_status rp_sampler_begin_call(rp_sampler *s, rp_error *err)
{
    rp_status st = check_process(s, err);
    bool is_in;

    if (st != RP_OK) return st;
    rp_mutex_lock(&s->mu);
    is_in = rp_sampler_enter_locked(s);
    rp_mutex_unlock(&s->mu);
    if (is_in) return RP_OK;
    return rp_fail(err, RP_CANCELLED, "sampler of '%s' is closed", s->table);
}

void rp_sampler_end_call(rp_sampler *s)
{
    rp_mutex_lock(&s->mu);
    rp_sampler_leave_locked(s);
    rp_mutex_unlock(&s->mu);
}

static void wake_all_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    for (rp_sampler_waiter *w = s->first; w != NULL; w = w->next) rp_cond_signal(&w->cv);
}

void rp_sampler_wake_locked(rp_sampler *s)
{
    if (s->first != NULL && rp_sampler_has_samples_locked(s)) rp_cond_signal(&s->first->cv);
}

void rp_sampler_end_locked(rp_sampler *s, rp_status status, const char *text)
{
    assert(status != RP_OK);
    s->end = status;
    (void)snprintf(s->end_text, sizeof s->end_text, "%s", text);
    wake_all_locked(s);
}

/* Returns RP_OK if more samples may arrive. */
static rp_status over_locked(const rp_sampler *s, rp_error *err) RP_REQUIRES(s->mu)
{
    if (s->closed) return rp_fail(err, RP_CANCELLED, "sampler of '%s' is closed", s->table);
    if (s->options.max_samples > 0 && s->taken >= s->options.max_samples)
        return rp_fail(err, RP_PRECONDITION,
                       "sampler of '%s' is over: all of its %lld samples have been taken",
                       s->table, (long long)s->options.max_samples);
    if (s->end != RP_OK) return rp_fail(err, s->end, "%s", s->end_text);
    return RP_OK;
}

static void on_cancel(rp_cancel_link *link)
{
    rp_sampler_waiter *w =
        (rp_sampler_waiter *)((char *)link - offsetof(rp_sampler_waiter, link));

    rp_mutex_lock(&w->sampler->mu);
    w->cancelled = true;
    rp_cond_signal(&w->cv);
    rp_mutex_unlock(&w->sampler->mu);
}

static void join_line_locked(rp_sampler *s, rp_sampler_waiter *w) RP_REQUIRES(s->mu)
{
    assert(!w->in_line);
    w->in_line = true;
    w->prev = s->last;
    w->next = NULL;
    /* The time without a waiter does not count. */
    if (s->first == NULL) s->last_sample_ns = rp_now_ns() - s->waited_ns;
    *(s->last == NULL ? &s->first : &s->last->next) = w;
    s->last = w;
}

static void leave_line_locked(rp_sampler *s, rp_sampler_waiter *w) RP_REQUIRES(s->mu)
{
    if (!w->in_line) return;
    assert(w->prev == NULL ? s->first == w : w->prev->next == w); /* S3 */
    *(w->prev == NULL ? &s->first : &w->prev->next) = w->next;
    *(w->next == NULL ? &s->last : &w->next->prev) = w->prev;
    w->in_line = false;
    if (s->first == NULL) s->waited_ns = rp_now_ns() - s->last_sample_ns;
    /* Wake the next: only the first in the queue weighs shards and checks timeouts. */
    if (s->first != NULL) rp_cond_signal(&s->first->cv);
}

/* Sleeps until something may have changed. */
static void sleep_locked(rp_sampler *s, rp_sampler_waiter *w, rp_wait wait) RP_REQUIRES(s->mu)
{
    int64_t until_ns = wait.until_ns;

    if (s->first == w) {
        int64_t now_ns = rp_now_ns();
        int64_t weigh_ns = rp_sampler_weigh_locked(s, now_ns);
        int64_t expire_ns = rp_sampler_expire_locked(s, now_ns, wait);

        if (s->end != RP_OK) return;
        if (weigh_ns < until_ns) until_ns = weigh_ns;
        if (expire_ns < until_ns) until_ns = expire_ns;
    }
    (void)rp_cond_wait(&w->cv, &s->mu, until_ns);
}

static rp_status why_not_wait_locked(const rp_sampler *s, const rp_sampler_waiter *w,
                                     int64_t until_ns, rp_error *err) RP_REQUIRES(s->mu)
{
    if (w->cancelled)
        return rp_fail(err, RP_CANCELLED, "sampler of '%s': the wait was cancelled", s->table);
    if (until_ns == RP_NOW || (until_ns != RP_FOREVER && rp_now_ns() >= until_ns))
        return rp_fail(err, RP_DEADLINE, "sampler of '%s': no sample came in time", s->table);
    return RP_OK;
}

/* Joins the cancel token. The lock of the token has a lower rank than that of the sampler,
 * which is released meanwhile. */
static void join_token_locked(rp_sampler *s, rp_sampler_waiter *w, rp_cancel *cancel)
    RP_REQUIRES(s->mu)
{
    w->link.on_fire = on_cancel;
    rp_mutex_unlock(&s->mu);
    rp_cancel_join(cancel, &w->link);
    rp_mutex_lock(&s->mu);
}

/* The samples that a call takes. The call returns once it has `least` of them. */
typedef struct request {
    rp_sample *out;
    size_t least, capacity, count;
    int64_t slept_ns; /* when the call began to sleep; 0: it did not */
    bool is_late;     /* its deadline passed */
} request;

/* Draws samples for the first caller in the queue on this thread, if the source is idle. The
 * lock is released meanwhile. Returns their number. */
static size_t draw_locked(rp_sampler *s, rp_sampler_waiter *w, request *r) RP_REQUIRES(s->mu)
{
    rp_source *source = s->feeders[0].source;
    size_t most = r->capacity - r->count, count;

    assert(s->is_direct && s->feeder_count == 1 && (s->first == NULL || s->first == w));
    if (s->feeders[0].wanted > 0 || s->end != RP_OK) return 0;
    if (s->options.max_samples > 0 && (int64_t)most > s->options.max_samples - s->taken)
        most = (size_t)(s->options.max_samples - s->taken);
    if (most == 0) return 0;
    if (!w->in_line) join_line_locked(s, w); /* other callers wait behind this one */
    w->lacking = 0;                          /* nothing is requested meanwhile */
    rp_mutex_unlock(&s->mu);
    count = source->class->draw(source, r->out + r->count, most);
    rp_mutex_lock(&s->mu);
    assert(count <= most);
    s->taken += (int64_t)count;
    return count;
}

/* Drops requests of a caller that is gone, which may have been for more than the first caller
 * in the queue needs: the source would deliver nothing before it has them all. The lock is
 * released meanwhile. */
static void forget_locked(rp_sampler *s) RP_REQUIRES(s->mu)
{
    rp_feeder *feeder = &s->feeders[0];
    size_t count = feeder->ask;

    assert(s->is_direct);
    feeder->ask = 0;
    rp_sampler_uncount_locked(s, feeder, count);
    rp_mutex_unlock(&s->mu);
    count = feeder->source->class->forget(feeder->source);
    rp_mutex_lock(&s->mu);
    rp_sampler_uncount_locked(s, feeder, count);
}

/* Makes the source draw what the first caller in the queue lacks, once the table has it. The
 * lock may be released meanwhile. Returns true if it was. */
static bool request_locked(rp_sampler *s, rp_sampler_waiter *w, const request *r)
    RP_REQUIRES(s->mu)
{
    size_t lacking = r->least - r->count;

    assert(s->first == w && lacking > 0);
    if (w->lacking == lacking && s->feeders[0].wanted > 0) return false;
    w->lacking = lacking;
    if (s->feeders[0].wanted > lacking) forget_locked(s);
    rp_sampler_credit_locked(s);
    return true;
}

/* Returns why no more samples come to a call that needs more, or RP_OK. */
static rp_status why_no_more_locked(const rp_sampler *s, const request *r, rp_error *err)
    RP_REQUIRES(s->mu)
{
    rp_status st = over_locked(s, err);

    if (r->count == 0 || s->closed || s->options.max_samples == 0 ||
        s->taken < s->options.max_samples)
        return st;
    return rp_fail(
        err, st,
        "sampler of '%s': only %zu of the %zu samples %s left of its max_samples, %lld; "
        "ask for fewer",
        s->table, r->count, r->least, r->count == 1 ? "is" : "are",
        (long long)s->options.max_samples);
}

static rp_status fetch_locked(rp_sampler *s, rp_sampler_waiter *w, request *r, rp_wait wait,
                              rp_error *err) RP_REQUIRES(s->mu)
{
    bool joined = false;
    rp_status st = RP_OK;

    for (;;) {
        if (s->closed) {
            st = over_locked(s, err);
            break;
        }
        if (s->first == NULL || s->first == w) {
            size_t n = rp_sampler_take_locked(s, r->out + r->count, r->capacity - r->count);

            r->count += n;
            if (s->is_direct && r->count < r->least) r->count += draw_locked(s, w, r);
            assert(r->count <= r->capacity);
            /* Keeps the following samples for this call while the lock is released. */
            if (n > 0 && r->count < r->least && !w->in_line) join_line_locked(s, w);
            if (w->lacking > 0) w->lacking = r->count < r->least ? r->least - r->count : 0;
            if (n > 0) rp_sampler_credit_locked(s);
            if (r->count >= r->least) break;
            /* Samples may have arrived while the lock was released. */
            if (n > 0) continue;
            st = why_no_more_locked(s, r, err);
            if (st != RP_OK) break;
        }
        st = why_not_wait_locked(s, w, wait.until_ns, err);
        r->is_late = st == RP_DEADLINE;
        if (st != RP_OK) break;
        if (!w->in_line) {
            join_line_locked(s, w);
            /* All requests may be with an empty shard: with a waiter, others are asked too. */
            if (s->first == w && s->feed.shard_count > 1) {
                rp_sampler_credit_locked(s);
                continue; /* the lock was released */
            }
        }
        if (s->is_direct && s->first == w && request_locked(s, w, r)) continue;
        if (!joined && wait.cancel != NULL) {
            joined = true;
            join_token_locked(s, w, wait.cancel);
            continue;
        }
        if (r->slept_ns == 0) r->slept_ns = rp_now_ns();
        sleep_locked(s, w, wait);
    }
    leave_line_locked(s, w);
    if (joined) {
        rp_mutex_unlock(&s->mu);
        rp_cancel_part(wait.cancel, &w->link);
        rp_mutex_lock(&s->mu);
    }
    return st;
}

static void explain(rp_sampler *s, int64_t waited_ns, char *text, size_t size);

/* Adds to the error of a late call what it waited for. Waits under 0.1 s, usually polls, do not
 * ask. The lock is released meanwhile. */
static void explain_locked(rp_sampler *s, const request *r, rp_error *err) RP_REQUIRES(s->mu)
{
    char why[RP_ERROR_TEXT_BYTES];
    int64_t waited_ns = r->slept_ns != 0 ? rp_now_ns() - r->slept_ns : 0;

    assert(s->inside > 0); /* the sampler is not freed meanwhile */
    if (err == NULL || waited_ns < explained_wait_ns) return;
    rp_mutex_unlock(&s->mu);
    explain(s, waited_ns, why, sizeof why);
    (void)rp_fail(err, RP_DEADLINE, "no sample of '%s' came in time: %s", s->table, why);
    rp_mutex_lock(&s->mu);
}

/* Replaces the error of a table that does not exist. The lock is released meanwhile. */
static void name_tables_locked(rp_sampler *s, rp_error *err) RP_REQUIRES(s->mu)
{
    assert(s->inside > 0); /* the sampler is not freed meanwhile */
    if (err == NULL || s->feed.missing == NULL) return;
    rp_mutex_unlock(&s->mu);
    s->feed.missing(s->feed.ctx, s->table, err);
    rp_mutex_lock(&s->mu);
}

rp_status rp_sampler_fetch(rp_sampler *s, rp_sample *out, size_t least, size_t capacity,
                           size_t *count, rp_wait wait, rp_error *err)
{
    rp_sampler_waiter w = {.sampler = s};
    request r = {.out = out, .least = least, .capacity = capacity};
    rp_status st = check_process(s, err);

    assert(least >= 1 && least <= capacity);
    *count = 0;
    if (st != RP_OK) return st;
    rp_cond_init(&w.cv);
    rp_mutex_lock(&s->mu);
    s->inside++;
    if (s->feed.shard_count > 1 && !s->closed) (void)rp_sampler_weigh_locked(s, rp_now_ns());
    st = fetch_locked(s, &w, &r, wait, err);
    *count = r.count;
    assert(st != RP_OK || r.count >= least);
    if (r.is_late) explain_locked(s, &r, err);
    if (st == RP_NOT_FOUND) name_tables_locked(s, err);
    rp_sampler_leave_locked(s);
    rp_mutex_unlock(&s->mu);
    rp_cond_deinit(&w.cv);
    return st;
}

bool rp_sampler_is_over(rp_sampler *s)
{
    bool is_over;

    rp_mutex_lock(&s->mu);
    is_over = !s->closed && over_locked(s, NULL) != RP_OK;
    rp_mutex_unlock(&s->mu);
    return is_over;
}

void rp_sampler_return(rp_sampler *s, rp_returned *returned)
{
    rp_returned **at;

    assert(returned->count > 0 && returned->first + returned->count <= returned->capacity);
    rp_mutex_lock(&s->mu);
    for (at = &s->returned; *at != NULL;) at = &(*at)->next;
    returned->next = NULL;
    *at = returned;
    rp_sampler_wake_locked(s);
    rp_mutex_unlock(&s->mu);
}

rp_status rp_sampler_next(rp_sampler *s, rp_sample *out, size_t capacity, size_t *count,
                          rp_wait wait, rp_error *err)
{
    double beta = s->options.beta; /* the sampler may be freed at the end of the fetch */
    size_t n;
    rp_status st;

    if (capacity < 1)
        return rp_fail(err, RP_INVALID, "sampler of '%s': capacity must be >= 1, got 0",
                       s->table);
    if (out == NULL || count == NULL)
        return rp_fail(err, RP_INVALID, "sampler of '%s': no %s", s->table,
                       out == NULL ? "array of samples" : "`count`");
    st = rp_sampler_fetch(s, out, 1, capacity, &n, wait, err);
    if (st != RP_OK) return st; /* without a sample */
    if (beta > 0) rp_samples_weigh(out, n, beta);
    *count = n;
    return RP_OK;
}

/* Returns the lane whose source knows why, or lane_count after writing the text. */
static size_t lane_to_ask_locked(rp_sampler *s, char *text, size_t size) RP_REQUIRES(s->mu)
{
    rp_error err;

    if (over_locked(s, &err) != RP_OK) {
        (void)snprintf(text, size, "%s", err.text);
    } else if (rp_sampler_has_samples_locked(s)) {
        (void)snprintf(text, size, "samples of '%s' are there: nothing to wait for", s->table);
    } else if (s->mode == RP_MODE_UNKNOWN || !rp_sampler_can_pick_locked(s)) {
        (void)snprintf(text, size,
                       s->weigh_text[0] != '\0' ? "%s%sno shard is known to have items of '%s'"
                                                : "%s%sno shard is known to have items of "
                                                  "'%s', the first insert into it lets "
                                                  "samples continue",
                       s->weigh_text, s->weigh_text[0] != '\0' ? "; " : "", s->table);
    } else {
        for (size_t i = 0; i < s->lane_count; i++)
            if (rp_sampler_awaits_locked(s, i)) return i;
        (void)snprintf(text, size, "nothing has been asked for of '%s' yet", s->table);
    }
    return s->lane_count;
}

/* Asks the shard, at most once a second: callers may poll. In between, the reason is known
 * unless samples were taken since. The lock is released meanwhile. */
static void ask_locked(rp_sampler *s, size_t shard, int64_t waited_ns, char *text, size_t size)
    RP_REQUIRES(s->mu)
{
    rp_sampler_reason *r = &s->reason;

    if (r->asked_ns == 0 || rp_now_ns() - r->asked_ns >= ask_pause_ns) {
        char why[RP_ERROR_TEXT_BYTES] = "";

        r->asked_ns = rp_now_ns();
        rp_mutex_unlock(&s->mu);
        s->feed.why(s->feed.ctx, s->table, shard, waited_ns, why, sizeof why);
        rp_mutex_lock(&s->mu);
        r->asked_ns = rp_now_ns();
        r->taken = s->taken;
        (void)snprintf(r->text, sizeof r->text, "%s", why);
    }
    if (r->taken == s->taken) (void)snprintf(text, size, "%s", r->text);
}

static void explain(rp_sampler *s, int64_t waited_ns, char *text, size_t size)
{
    char own[RP_ERROR_TEXT_BYTES] = "";
    size_t lane;

    if (size == 0) return;
    if (s->generation != rp_runtime_generation()) {
        (void)snprintf(text, size, "sampler of '%s' belongs to the parent process", s->table);
        return;
    }
    rp_mutex_lock(&s->mu);
    s->inside++;
    lane = lane_to_ask_locked(s, text, size);
    if (lane < s->lane_count) {
        rp_source *source = s->feeders[s->lanes[lane].first_feeder].source;
        size_t shard = s->lanes[lane].shard;

        rp_mutex_unlock(&s->mu);
        source->class->why(source, own, sizeof own);
        rp_mutex_lock(&s->mu);
        if (own[0] == '\0' && s->feed.why != NULL)
            ask_locked(s, shard, waited_ns, own, sizeof own);
        if (s->feed.shard_count > 1)
            (void)snprintf(text, size, "table '%s', shard %zu of %zu: %s", s->table, shard,
                           s->feed.shard_count,
                           own[0] != '\0' ? own : "samples are on their way");
        else
            (void)snprintf(text, size, "%s", own[0] != '\0' ? own : "samples are on their way");
    }
    rp_sampler_leave_locked(s);
    rp_mutex_unlock(&s->mu);
}

void rp_sampler_why(rp_sampler *s, char *text, size_t size)
{
    explain(s, RP_FOREVER, text, size);
}

static rp_status check_options(const rp_sampler_options *o, const rp_sampler_feed *feed,
                               rp_error *err)
{
    if (o->table == NULL) return rp_fail(err, RP_INVALID, "sampler: table must be set");
    if (o->max_samples < 0)
        return rp_fail(err, RP_INVALID, "sampler: max_samples must be >= 0, got %lld",
                       (long long)o->max_samples);
    if (o->max_per_stream < 0)
        return rp_fail(err, RP_INVALID, "sampler: max_per_stream must be >= 0, got %lld",
                       (long long)o->max_per_stream);
    if (o->streams > MAX_STREAMS)
        return rp_fail(err, RP_INVALID, "sampler: streams must be in 0 .. %d, got %zu",
                       MAX_STREAMS, o->streams);
    if (!(o->beta >= 0) || isinf(o->beta))
        return rp_fail(err, RP_INVALID, "sampler: beta must be finite and >= 0, got %g",
                       o->beta);
    if (feed->shard_count < 1 || (feed->shard_count > 1 && feed->weigh == NULL))
        return rp_fail(err, RP_INVALID, "sampler: no shards, or no way to weigh them");
    return RP_OK;
}

/* Returns the number of streams: no more than max_samples can keep busy, as in Reverb. */
static size_t choose_streams(rp_sampler *s)
{
    const rp_sampler_options *o = &s->options;
    size_t streams = o->streams > 0 ? o->streams : 1;
    uint64_t most = (uint64_t)o->max_samples;

    s->max_in_flight = o->max_in_flight > 0 ? o->max_in_flight : DEFAULT_IN_FLIGHT;
    if (most == 0) return streams;
    if (s->max_in_flight > most) s->max_in_flight = (size_t)most;
    if (streams > most / s->max_in_flight) streams = (size_t)(most / s->max_in_flight);
    return streams;
}

/* Returns true if callers draw the samples themselves, provided that the source can do this. */
static bool may_be_direct(const rp_sampler *s)
{
    return s->options.direct && !s->options.checked && s->feeder_count == 1;
}

static rp_status open_sources(rp_sampler *s, rp_error *err)
{
    rp_source_options o = {.table = s->table,
                           .whole = may_be_direct(s),
                           .rate_limiter_timeout_ms = s->options.rate_limiter_timeout_ms,
                           .request_samples = s->max_in_flight,
                           .max_per_stream = s->options.max_per_stream};
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < s->feeder_count; i++) {
        rp_source_events events = rp_sampler_events;

        events.user = &s->feeders[i];
        st = s->feed.open(s->feed.ctx, s->lanes[s->feeders[i].lane].shard, &o, &events,
                          &s->feeders[i].source, err);
    }
    return st;
}

static rp_status prepare(rp_sampler *s, rp_error *err)
{
    size_t streams = choose_streams(s);
    rp_status st;

    s->table_bytes = strlen(s->options.table) + 1;
    s->table = rp_alloc(&s->alloc, s->table_bytes);
    if (s->table == NULL) return rp_fail_memory(err, s->table_bytes);
    memcpy(s->table, s->options.table, s->table_bytes);
    s->options.table = s->table;
    st = rp_cancel_new(&s->cancel);
    if (st != RP_OK) return rp_fail(err, st, "sampler: out of memory");
    st = rp_stack_pool_new(&s->alloc, s->runtime, s->options.decoders, &s->pool);
    if (st != RP_OK) return rp_fail(err, st, "sampler: out of memory");
    return rp_sampler_make_lanes(s, streams, err);
}

static void free_returned(rp_sampler *s)
{
    for (rp_returned *r = s->returned, *next; r != NULL; r = next) {
        next = r->next;
        rp_samples_release(r->samples + r->first, r->count);
        rp_release(&s->alloc, r, sizeof *r + r->capacity * sizeof *r->samples);
    }
}

/* Frees a sampler that no thread uses any more; some of its sources may still be open. */
static void destroy(rp_sampler *s)
{
    rp_allocator alloc = s->alloc;

    for (size_t i = 0; s->feeders != NULL && i < s->feeder_count; i++)
        if (s->feeders[i].source != NULL)
            s->feeders[i].source->class->close(s->feeders[i].source);
    free_returned(s);
    rp_release(&alloc, s->known, s->known_count * sizeof *s->known);
    rp_sampler_free_lanes(s);
    rp_stack_pool_unref(s->pool);
    rp_cancel_free(s->cancel);
    rp_signature_unref(s->feed.signature);
    rp_release(&alloc, s->table, s->table_bytes);
    rp_cond_deinit(&s->quiet);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s, sizeof *s);
}

rp_status rp_sampler_open(const rp_allocator *alloc, rp_runtime *runtime,
                          const rp_sampler_feed *feed, const rp_sampler_options *options,
                          rp_sampler **out, rp_error *err)
{
    rp_status st = check_options(options, feed, err);
    rp_sampler *s;

    if (st != RP_OK) return st;
    s = rp_alloc_zero(alloc, sizeof *s);
    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->alloc = *alloc;
    s->runtime = runtime;
    s->generation = rp_runtime_generation();
    s->feed = *feed;
    if (feed->signature != NULL) (void)rp_signature_ref(feed->signature);
    s->options = *options;
    s->weigh_job.run = rp_sampler_run_weighing;
    rp_rng_init(&s->rng, feed->seed);
    rp_mutex_init(&s->mu, RP_RANK_SAMPLER);
    rp_cond_init(&s->quiet);
    st = prepare(s, err);
    if (st == RP_OK) st = open_sources(s, err);
    if (st != RP_OK) {
        rp_mutex_lock(&s->mu);
        s->closed = true;
        rp_mutex_unlock(&s->mu);
        destroy(s);
        return st;
    }
    rp_mutex_lock(&s->mu);
    s->is_direct = may_be_direct(s) && s->feeders[0].source->class->draw != NULL;
    s->started = true;
    (void)rp_sampler_weigh_locked(s, rp_now_ns());
    rp_sampler_credit_locked(s);
    rp_mutex_unlock(&s->mu);
    *out = s;
    return RP_OK;
}

void rp_sampler_close(rp_sampler *s)
{
    if (s->generation != rp_runtime_generation()) return;
    rp_mutex_lock(&s->mu);
    s->closed = true;
    wake_all_locked(s);
    rp_mutex_unlock(&s->mu);
    rp_cancel_fire(s->cancel);
}

void rp_sampler_free(rp_sampler *s)
{
    if (s == NULL) return;
    /* In the child of a fork the threads that used the sampler do not exist: leak it. */
    if (s->generation != rp_runtime_generation()) return;
    rp_sampler_close(s);
    rp_mutex_lock(&s->mu);
    while (s->inside > 0 || s->is_weighing) (void)rp_cond_wait(&s->quiet, &s->mu, RP_FOREVER);
    rp_mutex_unlock(&s->mu);
    destroy(s);
}
