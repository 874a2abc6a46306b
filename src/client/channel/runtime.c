/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of all clients.
 *
 * Fork. The child has only the thread that forked. The fork handler takes the two locks that
 * outlive a runtime, so the state that they guard is consistent in the child. The child does
 * not use the parent's runtime, because the fork may have interrupted its threads at any point:
 * the child closes its copies of the loop's descriptors and leaks the memory.
 *
 * Fork handlers run in reverse order of registration. The runtime allocates under its locks,
 * which acquires the locks of the memory pool, so the fork handler must acquire the locks of
 * the runtime first. Therefore the pool is used once, and so registers its handlers, before the
 * runtime registers its own.
 *
 * Invariants, while process.mu is free:
 *   R1  process.current is NULL or in process.all, has the generation of this process and at
 *       least one reference;
 *   R2  a runtime in process.all has a loop thread and at least one worker.
 * On the loop thread:
 *   R3  the queue of turn ends is doubly linked, and exactly its members are `queued`. */
#include "client/channel/runtime.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/thread.h"

enum { MAX_WORKERS = 4 };

/* A thread that runs jobs. Each has a condition variable of its own: with several waiters on
 * one, glibc before 2.41 may lose a wake-up (its bug 25847). */
typedef struct worker {
    pthread_t thread;
    rp_runtime *runtime;
    rp_cond cv;
    struct worker *next; /* among the idle; guarded by rp_runtime.mu, as is is_idle */
    bool is_idle;
} worker;

struct rp_runtime {
    uint64_t generation;
    size_t references;       /* guarded by process.mu */
    rp_runtime *prev, *next; /* likewise */
    pthread_t loop_thread;
    worker workers[MAX_WORKERS];
    size_t thread_count; /* that of the loop, and the workers */

    rp_loop *loop;
    uint8_t *read_buffer; /* used by the loop thread only, as is the next line */
    rp_at_turn_end *first, *last;

    rp_mutex mu;                    /* rank 85: the rest */
    worker *idle RP_GUARDED_BY(mu); /* the latest first */
    rp_job *jobs, **jobs_end RP_GUARDED_BY(mu);
    bool stopping RP_GUARDED_BY(mu);
};

/* State that outlives a runtime. `all` includes runtimes that are ending. */
static struct {
    pthread_once_t once;
    rp_mutex clients; /* rank 78 */
    rp_mutex mu;      /* rank 85 */
    rp_runtime *current, *all;
    atomic_uint_fast64_t generation;
} process = {.once = PTHREAD_ONCE_INIT, .generation = 1};

static void before_fork(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex_lock(&process.clients);
    rp_mutex_lock(&process.mu);
}

static void after_fork(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex_unlock(&process.mu);
    rp_mutex_unlock(&process.clients);
}

static void after_fork_in_child(void)
{
    for (rp_runtime *r = process.all; r != NULL; r = r->next) rp_loop_abandon(r->loop);
    process.current = process.all = NULL;
    /* Relaxed: the child has one thread. */
    atomic_fetch_add_explicit(&process.generation, 1, memory_order_relaxed);
    after_fork();
}

static void start_process(void)
{
    const rp_allocator *a = rp_allocator_default();

    rp_mutex_init(&process.clients, RP_RANK_CLIENT);
    rp_mutex_init(&process.mu, RP_RANK_RUNTIME);
    rp_release(a, rp_alloc(a, 1), 1); /* registers the pool's fork handlers first */
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void once(void)
{
    (void)pthread_once(&process.once, start_process);
}

uint64_t rp_runtime_generation(void)
{
    return atomic_load_explicit(&process.generation, memory_order_relaxed);
}

void rp_runtime_lock_clients(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    once();
    rp_mutex_lock(&process.clients);
}

void rp_runtime_unlock_clients(void) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex_unlock(&process.clients);
}

static void end_turn(void *user)
{
    rp_runtime *r = user;

    while (r->first != NULL) {
        rp_at_turn_end *end = r->first;

        rp_runtime_forget_turn_end(r, end);
        end->run(end);
    }
}

void rp_runtime_at_turn_end(rp_runtime *r, rp_at_turn_end *end)
{
    assert(end->run != NULL);
    if (end->queued) return;
    end->queued = true;
    end->prev = r->last;
    end->next = NULL;
    *(r->last == NULL ? &r->first : &r->last->next) = end;
    r->last = end;
}

void rp_runtime_forget_turn_end(rp_runtime *r, rp_at_turn_end *end)
{
    if (!end->queued) return;
    assert(end->prev == NULL ? r->first == end : end->prev->next == end); /* R3 */
    assert(end->next == NULL ? r->last == end : end->next->prev == end);
    end->queued = false;
    *(end->prev == NULL ? &r->first : &end->prev->next) = end->next;
    *(end->next == NULL ? &r->last : &end->next->prev) = end->prev;
}

static void *run_loop(void *user)
{
    rp_runtime *r = user;

    rp_loop_run(r->loop);
    return NULL;
}

typedef struct errand {
    rp_post post; /* first */
    void (*run)(void *arg);
    void *arg;
    rp_mutex mu; /* rank 85 */
    rp_cond cv;
    bool done RP_GUARDED_BY(mu);
} errand;

static void run_errand(rp_post *post)
{
    errand *e = (errand *)post;

    e->run(e->arg);
    rp_mutex_lock(&e->mu);
    e->done = true;
    rp_cond_signal(&e->cv);
    rp_mutex_unlock(&e->mu);
}

void rp_runtime_run_on_loop(rp_runtime *r, void (*run)(void *arg), void *arg)
{
    errand e = {.post.run = run_errand, .run = run, .arg = arg};

    rp_mutex_init(&e.mu, RP_RANK_RUNTIME);
    rp_cond_init(&e.cv);
    rp_loop_post(r->loop, &e.post);
    rp_mutex_lock(&e.mu);
    while (!e.done) (void)rp_cond_wait(&e.cv, &e.mu, INT64_MAX);
    rp_mutex_unlock(&e.mu);
    rp_cond_deinit(&e.cv);
    rp_mutex_deinit(&e.mu);
}

rp_loop *rp_runtime_loop(rp_runtime *r)
{
    return r->loop;
}

uint8_t *rp_runtime_read_buffer(rp_runtime *r)
{
    return r->read_buffer;
}

static void wake_worker_locked(rp_runtime *r) RP_REQUIRES(r->mu)
{
    worker *w = r->idle;

    if (w == NULL) return;
    assert(w->is_idle);
    r->idle = w->next;
    w->is_idle = false;
    rp_cond_signal(&w->cv);
}

void rp_runtime_submit(rp_runtime *r, rp_job *job)
{
    assert(job->run != NULL);
    job->next = NULL;
    rp_mutex_lock(&r->mu);
    assert(*r->jobs_end == NULL);
    *r->jobs_end = job;
    r->jobs_end = &job->next;
    wake_worker_locked(r);
    rp_mutex_unlock(&r->mu);
}

size_t rp_runtime_workers(const rp_runtime *r)
{
    assert(r->thread_count >= 2); /* R2 */
    return r->thread_count - 1;
}

/* Waits for the next job. Returns NULL when the runtime stops and no job is left. */
static rp_job *take_job(rp_runtime *r, worker *w)
{
    rp_job *job;

    rp_mutex_lock(&r->mu);
    while (r->jobs == NULL && !r->stopping) {
        assert(!w->is_idle);
        w->is_idle = true;
        w->next = r->idle;
        r->idle = w;
        while (w->is_idle) (void)rp_cond_wait(&w->cv, &r->mu, INT64_MAX);
    }
    job = r->jobs;
    if (job != NULL) r->jobs = job->next;
    if (r->jobs == NULL) r->jobs_end = &r->jobs;
    rp_mutex_unlock(&r->mu);
    return job;
}

static void *run_jobs(void *user)
{
    worker *w = user;
    rp_runtime *r = w->runtime;

    for (rp_job *job = take_job(r, w); job != NULL; job = take_job(r, w)) job->run(job);
    return NULL;
}

static size_t worker_count(void)
{
    size_t n = rp_thread_processors();

    return n < MAX_WORKERS ? n : MAX_WORKERS;
}

static void start_threads(rp_runtime *r)
{
    if (!rp_thread_start(&r->loop_thread, "reprise-net", run_loop, r)) return;
    r->thread_count = 1;
    for (size_t i = 0; i < worker_count(); i++) {
        worker *w = &r->workers[i];

        w->runtime = r;
        rp_cond_init(&w->cv);
        if (!rp_thread_start(&w->thread, "reprise-work", run_jobs, w)) {
            rp_cond_deinit(&w->cv);
            return;
        }
        r->thread_count++;
    }
}

/* Waits for all jobs and posts, joins the threads and frees the runtime. */
static void end_runtime(rp_runtime *r)
{
    const rp_allocator *a = rp_allocator_default();

    assert(r->references == 0);
    rp_mutex_lock(&r->mu);
    assert(!r->stopping);
    r->stopping = true;
    while (r->idle != NULL) wake_worker_locked(r);
    rp_mutex_unlock(&r->mu);
    /* The workers first: their last jobs may post to the loop. */
    for (size_t i = 0; i + 1 < r->thread_count; i++) {
        (void)pthread_join(r->workers[i].thread, NULL);
        rp_cond_deinit(&r->workers[i].cv);
    }
    if (r->thread_count > 0) {
        rp_loop_stop(r->loop);
        (void)pthread_join(r->loop_thread, NULL);
    }
    /* A fork from here on finds the descriptors closed, or does not find the runtime. */
    rp_mutex_lock(&process.mu);
    if (r->prev != NULL || r->next != NULL || process.all == r) {
        *(r->prev == NULL ? &process.all : &r->prev->next) = r->next;
        if (r->next != NULL) r->next->prev = r->prev;
    }
    rp_mutex_unlock(&process.mu);
    assert(r->jobs == NULL && r->first == NULL);
    rp_loop_free(r->loop);
    rp_release(a, r->read_buffer, RP_RUNTIME_READ_BYTES);
    rp_mutex_deinit(&r->mu);
    rp_release(a, r, sizeof *r);
}

/* Creates a runtime, perhaps with fewer threads than R2 requires. On failure returns NULL and
 * writes the status to `*st`. */
static rp_runtime *make_runtime(rp_status *st, rp_error *err)
{
    const rp_allocator *a = rp_allocator_default();
    rp_runtime *r = rp_alloc_zero(a, sizeof *r);

    if (r == NULL) {
        *st = rp_fail_memory(err, sizeof *r);
        return NULL;
    }
    r->read_buffer = rp_alloc(a, RP_RUNTIME_READ_BYTES);
    *st = r->read_buffer == NULL ? rp_fail_memory(err, RP_RUNTIME_READ_BYTES)
                                 : rp_loop_new(a, &r->loop, err);
    if (*st != RP_OK) {
        rp_release(a, r->read_buffer, RP_RUNTIME_READ_BYTES);
        rp_release(a, r, sizeof *r);
        return NULL;
    }
    r->generation = rp_runtime_generation();
    r->jobs_end = &r->jobs;
    rp_mutex_init(&r->mu, RP_RANK_RUNTIME);
    rp_loop_set_turn_end(r->loop, end_turn, r);
    rp_loop_share(r->loop);
    start_threads(r);
    return r;
}

rp_status rp_runtime_get(rp_runtime **out, rp_error *err)
{
    rp_runtime *r, *broken = NULL;
    rp_status st = RP_OK;

    once();
    rp_mutex_lock(&process.mu);
    r = process.current;
    if (r == NULL) r = make_runtime(&st, err);
    if (r != NULL && r->thread_count < 2) {
        broken = r; /* not in the list yet */
        st = rp_fail(err, RP_NO_RESOURCE, "client: no threads for the network");
    }
    if (r != NULL && st == RP_OK && process.current == NULL) {
        r->next = process.all;
        if (r->next != NULL) r->next->prev = r;
        process.all = process.current = r;
    }
    if (r != NULL && st == RP_OK) {
        assert(r->generation == rp_runtime_generation()); /* R1 */
        r->references++;
    }
    rp_mutex_unlock(&process.mu);
    if (broken != NULL) end_runtime(broken);
    if (st == RP_OK) *out = r;
    return st;
}

void rp_runtime_put(rp_runtime *r)
{
    bool is_last = false;

    if (r == NULL) return;
    rp_mutex_lock(&process.mu);
    if (r->generation == rp_runtime_generation()) { /* otherwise it is the parent's */
        assert(r->references > 0);
        is_last = --r->references == 0;
        if (is_last) process.current = NULL;
    }
    rp_mutex_unlock(&process.mu);
    if (is_last) end_runtime(r);
}
