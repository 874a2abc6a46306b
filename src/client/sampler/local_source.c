/* SPDX-License-Identifier: Apache-2.0 */
/* A source of samples of a table in this process.
 *
 *          want                    cannot go ahead
 *   idle -------> queued --> running -----------> parked
 *     ^                       |   ^                  | on_done, the timer or forget()
 *     +-----------------------+   +----- queued <----+
 *          nothing wanted
 *
 * A job on a worker draws samples and delivers them. If the rate limiter refuses, the operation
 * is parked in the table; its end queues the job again, which delivers the samples. So at most
 * one job delivers, and callbacks run one at a time. A job that has parked its operation may
 * still be returning when the next job or a draw_now() begins: `running` counts both.
 *
 * The timer belongs to the loop. It is armed when an operation with a deadline is parked, and
 * stays armed: if it fires before the deadline of the current operation, it is armed again.
 * While the timer or forget() withdraws an operation, no other is started (`withdrawing`), so
 * it withdraws the operation that it checked.
 *
 * Invariants, whenever mu is free:
 *   L1  while busy, exactly one of these holds: queued, parked, over, or a job runs that has
 *       not parked its operation; queued and parked exclude each other;
 *   L2  `wanted` is the number of requested samples neither delivered nor reported as
 *       forgotten;
 *   L3  `running` is the number of jobs and draw_now() calls that have not returned. */
#include "client/sampler/local_source.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"
#include "table/op.h"
#include "table/table.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"

enum { FIRST_BATCH = 16, MAX_BATCH = 1024, RETRY_NS = 1000000 };

typedef struct local_source {
    rp_source source; /* first */
    /* constant */
    rp_allocator alloc;
    rp_runtime *runtime;
    rp_store *store;
    rp_source_events events;
    char *name;
    size_t name_bytes;
    int64_t timeout_ms;
    bool whole;
    size_t capacity; /* of `samples` */

    /* used by the job, or by a thread in draw() while there is none (`busy`) */
    rp_table *table; /* a reference, or NULL */
    rp_sample *samples;
    size_t batch; /* most samples of the next draw */
    rp_sample_options options;
    rp_op op;

    rp_job job;
    rp_post post; /* arms the timer */
    rp_timer timer;

    rp_mutex mu; /* rank 82 */
    rp_cond cv;  /* signalled when one of the flags below becomes false */
    size_t wanted RP_GUARDED_BY(mu);
    int64_t due_ns RP_GUARDED_BY(mu);   /* of the timer that is to be armed */
    int running RP_GUARDED_BY(mu);      /* jobs and draw_now() calls */
    bool busy RP_GUARDED_BY(mu);        /* not in the state idle */
    bool queued RP_GUARDED_BY(mu);      /* the job is submitted */
    bool parked RP_GUARDED_BY(mu);      /* `op` waits in its table, or is about to */
    bool over RP_GUARDED_BY(mu);        /* `op` has ended; its result is not delivered */
    bool withdrawing RP_GUARDED_BY(mu); /* a thread withdraws `op` */
    bool has_timer RP_GUARDED_BY(mu);   /* the timer is armed, or about to be */
    bool posted RP_GUARDED_BY(mu);
    bool closing RP_GUARDED_BY(mu);
} local_source;

static void queue_job_locked(local_source *s) RP_REQUIRES(s->mu)
{
    assert(s->busy && !s->queued && !s->parked); /* L1 */
    s->queued = true;
    rp_runtime_submit(s->runtime, &s->job);
}

static void want(rp_source *source, size_t count)
{
    local_source *s = (local_source *)source;

    rp_mutex_lock(&s->mu);
    s->wanted += count;
    if (count > 0 && !s->busy && !s->closing) {
        s->busy = true;
        queue_job_locked(s);
    }
    rp_mutex_unlock(&s->mu);
}

/* The operation has ended: queues the job, which delivers the result. */
static void end_wait_locked(local_source *s) RP_REQUIRES(s->mu)
{
    assert(s->parked && !s->over); /* L1 */
    s->parked = false;
    s->over = true;
    if (!s->closing && !s->withdrawing) queue_job_locked(s);
    rp_cond_signal(&s->cv);
}

static void on_done(rp_op *op)
{
    local_source *s = op->user;

    rp_mutex_lock(&s->mu);
    end_wait_locked(s);
    rp_mutex_unlock(&s->mu);
}

static void arm_locked(local_source *s, int64_t due_ns) RP_REQUIRES(s->mu)
{
    /* Without memory for the timer this wait has no deadline. */
    s->has_timer = rp_loop_arm(rp_runtime_loop(s->runtime), &s->timer, due_ns) == RP_OK;
}

static void arm_timer(rp_post *post)
{
    local_source *s = (local_source *)((char *)post - offsetof(local_source, post));

    rp_mutex_lock(&s->mu);
    assert(s->posted);
    if (!s->closing) arm_locked(s, s->due_ns);
    s->posted = false;
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static void on_due(rp_timer *timer)
{
    local_source *s = (local_source *)((char *)timer - offsetof(local_source, timer));
    int64_t now_ns = rp_now_ns();
    bool withdraw = false, withdrawn;

    rp_mutex_lock(&s->mu);
    s->has_timer = false;
    if (s->parked && !s->closing && !s->withdrawing) {
        if (s->running > 0) /* its job has not returned from the table yet */
            arm_locked(s, now_ns + RETRY_NS);
        else if (s->op.until_ns > now_ns)
            arm_locked(s, s->op.until_ns);
        else
            withdraw = s->withdrawing = true;
    }
    rp_mutex_unlock(&s->mu);
    if (!withdraw) return;

    withdrawn = rp_op_withdraw(&s->op, RP_DEADLINE);
    rp_mutex_lock(&s->mu);
    assert(s->withdrawing);
    s->withdrawing = false;
    if (withdrawn)
        end_wait_locked(s);
    else if (s->over && !s->closing) /* the operation ended meanwhile */
        queue_job_locked(s);
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static void tell_end(local_source *s, rp_status status, const char *text)
{
    size_t forgotten;

    rp_mutex_lock(&s->mu);
    forgotten = s->wanted;
    s->wanted = 0;
    rp_mutex_unlock(&s->mu);
    s->batch = FIRST_BATCH;
    s->events.on_end(s->events.user, forgotten, status, text);
}

/* Delivers the result of the operation. */
static void tell(local_source *s)
{
    size_t done = s->op.done;

    assert(done <= s->capacity);
    if (s->op.status != RP_OK) {
        if (s->op.status == RP_CANCELLED) { /* the name may belong to a new table */
            rp_table_unref(s->table);
            s->table = NULL;
        }
        tell_end(s, s->op.status, s->op.error.text);
        return;
    }
    if (done == 0) return; /* withdrawn */
    rp_mutex_lock(&s->mu);
    assert(done <= s->wanted); /* L2 */
    s->wanted -= done;
    if (s->wanted == 0) s->batch = FIRST_BATCH;
    rp_mutex_unlock(&s->mu);
    s->op.done = 0; /* the receiver takes the samples */
    s->events.on_samples(s->events.user, s->samples, done);
}

static bool find_table(local_source *s)
{
    rp_string name = {s->name, s->name_bytes - 1};

    if (s->table == NULL) s->table = rp_store_find_table(s->store, name);
    return s->table != NULL;
}

static int64_t deadline(const local_source *s)
{
    if (s->timeout_ms < 0) return RP_FOREVER;
    return rp_wait_ms(s->timeout_ms).until_ns;
}

/* Draws up to `count` samples. Returns false if the operation waits: then the job may only use
 * fields that mu guards. */
static bool draw(local_source *s, size_t count)
{
    rp_table *table = rp_table_ref(s->table); /* s->table may be dropped meanwhile */
    bool is_over;

    assert(count >= 1 && count <= s->capacity);
    s->options = (rp_sample_options){.count = count, .at_least = s->whole ? count : 1};
    s->op = (rp_op){.options = &s->options,
                    .samples = s->samples,
                    .until_ns = deadline(s),
                    .on_done = on_done,
                    .user = s};
    rp_mutex_lock(&s->mu);
    s->parked = true;
    rp_mutex_unlock(&s->mu);
    is_over = rp_table_start_sample(table, &s->op);
    rp_table_unref(table);
    if (!is_over) return false;
    rp_mutex_lock(&s->mu);
    s->parked = false;
    rp_mutex_unlock(&s->mu);
    if (s->batch < MAX_BATCH) s->batch *= 2;
    return true;
}

/* Returns how many samples to draw now; 0: there is nothing more to do. */
static size_t next_batch_locked(local_source *s) RP_REQUIRES(s->mu)
{
    size_t count = s->wanted < s->batch || s->whole ? s->wanted : s->batch;

    if (s->closing) return 0;
    return count < s->capacity ? count : s->capacity;
}

static void leave_parked_locked(local_source *s) RP_REQUIRES(s->mu)
{
    if (s->parked && s->timeout_ms > 0 && !s->has_timer && !s->closing) {
        s->has_timer = s->posted = true;
        s->due_ns = s->op.until_ns;
        rp_loop_post(rp_runtime_loop(s->runtime), &s->post);
    }
    s->running--;
    rp_cond_signal(&s->cv);
}

static void run(rp_job *job)
{
    local_source *s = (local_source *)((char *)job - offsetof(local_source, job));
    size_t count;
    bool was_over;

    rp_mutex_lock(&s->mu);
    s->queued = false;
    s->running++;
    was_over = s->over;
    s->over = false;
    rp_mutex_unlock(&s->mu);
    if (was_over) tell(s);
    for (;;) {
        rp_mutex_lock(&s->mu);
        count = next_batch_locked(s);
        if (count == 0) {
            s->busy = false;
            s->running--;
            rp_cond_signal(&s->cv);
            rp_mutex_unlock(&s->mu);
            return;
        }
        rp_mutex_unlock(&s->mu);
        if (!find_table(s)) {
            rp_error err;
            (void)rp_store_no_table(s->store, (rp_string){s->name, s->name_bytes - 1}, &err);
            tell_end(s, RP_NOT_FOUND, err.text);
            continue;
        }
        if (!draw(s, count)) break;
        tell(s);
    }
    rp_mutex_lock(&s->mu);
    leave_parked_locked(s);
    rp_mutex_unlock(&s->mu);
}

/* Begins a draw on the thread of a caller. As long as the draw lasts, no job is queued. A job
 * that has parked its operation may still be returning. */
static bool begin_draw(local_source *s)
{
    bool is_idle;

    rp_mutex_lock(&s->mu);
    is_idle = !s->busy && !s->closing;
    if (is_idle) {
        s->busy = true;
        s->running++;
    }
    rp_mutex_unlock(&s->mu);
    return is_idle;
}

static void end_draw(local_source *s)
{
    rp_mutex_lock(&s->mu);
    assert(s->busy && !s->queued && !s->parked && s->running >= 1); /* L1 */
    s->running--;
    s->busy = s->wanted > 0 && !s->closing;
    if (s->busy) queue_job_locked(s); /* requested meanwhile */
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

/* Withdraws the operation, which waits in its table. */
static void withdraw_locked(local_source *s) RP_REQUIRES(s->mu)
{
    bool withdrawn;

    assert(s->parked && !s->withdrawing && s->running == 0);
    s->withdrawing = true;
    rp_mutex_unlock(&s->mu);
    withdrawn = rp_op_withdraw(&s->op, RP_CANCELLED);
    rp_mutex_lock(&s->mu);
    s->withdrawing = false;
    if (withdrawn) {
        if (s->op.status != RP_OK) s->op.done = 0; /* it has drawn nothing, and that is all */
        s->op.status = RP_OK;
        end_wait_locked(s);
    } else if (s->over && !s->closing) { /* the operation ended meanwhile */
        queue_job_locked(s);
    }
}

static size_t forget(rp_source *source)
{
    local_source *s = (local_source *)source;
    size_t count = 0;

    rp_mutex_lock(&s->mu);
    while (s->running > 0 || s->withdrawing) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    if (s->parked) withdraw_locked(s);
    /* If it is still parked, it is complete, and on_done() is about to be called. A failure
     * drops all requests. */
    if (!s->parked && !(s->over && s->op.status != RP_OK))
        count = s->wanted - (s->over ? s->op.done : 0);
    assert(count <= s->wanted); /* L2 */
    s->wanted -= count;
    rp_mutex_unlock(&s->mu);
    return count;
}

static size_t draw_now(rp_source *source, rp_sample *out, size_t count)
{
    local_source *s = (local_source *)source;
    const rp_sample_options options = {.count = count < RP_MAX_BATCH ? count : RP_MAX_BATCH,
                                       .at_least = 1};
    rp_op op = {.options = &options, .samples = out, .until_ns = RP_NOW};
    size_t done = 0;
    bool is_over;

    if (!begin_draw(s)) return 0;
    if (find_table(s)) {
        is_over = rp_table_start_sample(s->table, &op);
        assert(is_over); /* RP_NOW */
        (void)is_over;
        if (op.status == RP_OK) done = op.done;
        if (op.status == RP_CANCELLED) { /* the name may belong to a new table */
            rp_table_unref(s->table);
            s->table = NULL;
        }
    }
    end_draw(s);
    return done;
}

static void why(rp_source *source, char *text, size_t size)
{
    local_source *s = (local_source *)source;
    rp_string name = {s->name, s->name_bytes - 1};
    rp_table *table = NULL;
    rp_waiting waiting[16];
    size_t count = 0;
    bool parked;

    rp_mutex_lock(&s->mu);
    parked = s->parked;
    rp_mutex_unlock(&s->mu);
    text[0] = '\0';
    if (parked) table = rp_store_find_table(s->store, name);
    if (table == NULL) return;
    count = rp_table_waiting(table, waiting, sizeof waiting / sizeof waiting[0]);
    for (size_t i = 0; i < count && i < sizeof waiting / sizeof waiting[0]; i++)
        if (!waiting[i].is_insert) {
            (void)snprintf(text, size, "table '%s': %s", s->name, waiting[i].why);
            break;
        }
    rp_table_unref(table);
}

static void disarm(void *arg)
{
    local_source *s = arg;

    rp_loop_disarm(rp_runtime_loop(s->runtime), &s->timer);
}

static void release(local_source *s)
{
    rp_allocator alloc = s->alloc;

    rp_table_unref(s->table);
    rp_cond_deinit(&s->cv);
    rp_mutex_deinit(&s->mu);
    rp_release(&alloc, s->samples, s->capacity * sizeof *s->samples);
    rp_release(&alloc, s->name, s->name_bytes);
    rp_release(&alloc, s, sizeof *s);
}

static void close_source(rp_source *source)
{
    local_source *s = (local_source *)source;

    rp_mutex_lock(&s->mu);
    s->closing = true;
    while (s->posted) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    rp_mutex_unlock(&s->mu);
    /* No thread arms the timer from here on; when this returns, it is not running either. */
    if (s->timeout_ms > 0) rp_runtime_run_on_loop(s->runtime, disarm, s);
    rp_mutex_lock(&s->mu);
    for (;;) {
        bool withdrawn;

        while (s->queued || s->running > 0) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
        if (!s->parked) break;
        rp_mutex_unlock(&s->mu);
        withdrawn = rp_op_withdraw(&s->op, RP_CANCELLED);
        rp_mutex_lock(&s->mu);
        if (withdrawn) s->parked = false;
        while (s->parked) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    }
    rp_mutex_unlock(&s->mu);
    if (s->op.status == RP_OK) rp_samples_release(s->samples, s->op.done); /* not delivered */
    release(s);
}

static const rp_source_class local_class = {
    .want = want, .draw = draw_now, .forget = forget, .why = why, .close = close_source};

rp_status rp_local_source_open(const rp_allocator *alloc, rp_runtime *runtime, rp_store *store,
                               const rp_source_options *options, const rp_source_events *events,
                               rp_source **out, rp_error *err)
{
    size_t most = options->request_samples;
    local_source *s;

    if (most < 1) return rp_fail(err, RP_INVALID, "source: request_samples must be >= 1");
    s = rp_alloc_zero(alloc, sizeof *s);
    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->source.class = &local_class;
    s->alloc = *alloc;
    s->runtime = runtime;
    s->store = store;
    s->events = *events;
    s->timeout_ms = options->rate_limiter_timeout_ms;
    s->whole = options->whole;
    s->batch = FIRST_BATCH;
    s->job.run = run;
    s->post.run = arm_timer;
    s->timer.on_due = on_due;
    rp_mutex_init(&s->mu, RP_RANK_SAMPLER);
    rp_cond_init(&s->cv);
    s->name_bytes = strlen(options->table) + 1;
    s->name = rp_alloc(alloc, s->name_bytes);
    s->capacity = most < MAX_BATCH ? most : MAX_BATCH;
    s->samples = rp_alloc_array(alloc, s->capacity, sizeof *s->samples);
    if (s->name == NULL || s->samples == NULL) {
        release(s);
        return rp_fail_memory(err, most * sizeof *s->samples);
    }
    memcpy(s->name, options->table, s->name_bytes);
    *out = &s->source;
    return RP_OK;
}
