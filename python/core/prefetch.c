/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that prefetches batches; see prefetch.h.
 *
 * Batches are numbered. Batch n is made in slot n mod (depth + reuse), once n - depth batches
 * have been taken. So the slot is unused, or holds batch n - depth - reuse, after which at
 * least `reuse` batches have been taken.
 *
 *   EMPTY   the thread may fill the slot
 *   READY   a batch, or a status, can be taken
 *   TAKEN   a caller of take() makes arrays of the batch, with the GIL
 *
 * `mu` guards states and numbers. The state of a slot decides which thread uses its contents.
 * `mu` is held briefly, and never while waiting for the GIL, so a thread may lock it while it
 * holds the GIL.
 *
 * Invariants, whenever `mu` is free:
 *   F1  taken <= made <= taken + depth;
 *   F2  batches taken .. made - 1 are in slots that are READY;
 *   F3  is_over and stopped are never cleared; after that no batch is made. */
#include "prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum slot_state { EMPTY = 0, READY, TAKEN } slot_state;

typedef struct slot {
    slot_state state;
    rp_status status;
    rp_error err;
    core_stacked stacked;
} slot;

struct core_prefetch {
    rp_sampler *sampler;
    core_pool *pool;
    core_prefetch_options options;
    size_t slot_count;
    slot *slots;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mu;
    pthread_cond_t ready, room;
    uint64_t made, taken;
    bool stopped, is_over; /* is_over: the last slot has the reason */
};

static void fill(core_prefetch *p, slot *s)
{
    const core_prefetch_options *o = &p->options;

    rp_batch_free(s->stacked.batch);
    s->stacked.batch = NULL;
    s->status = rp_sampler_batch(p->sampler, o->size, o->ragged, o->whole, rp_wait_forever(),
                                 &s->stacked.batch, &s->err);
    if (s->status == RP_OK) s->status = core_stacked_fill(&s->stacked, p->pool, &s->err);
}

static void *run(void *arg)
{
    core_prefetch *p = arg;

    pthread_mutex_lock(&p->mu);
    while (!p->stopped && !p->is_over) {
        slot *s = &p->slots[p->made % p->slot_count];

        if (p->made >= p->taken + p->options.depth || s->state != EMPTY) {
            pthread_cond_wait(&p->room, &p->mu);
            continue;
        }
        pthread_mutex_unlock(&p->mu);
        fill(p, s);
        pthread_mutex_lock(&p->mu);
        assert(s->state == EMPTY && p->made < p->taken + p->options.depth); /* F1 */
        s->state = READY;
        p->made++;
        /* After RP_INVALID (items that cannot be stacked), the next batch may succeed. */
        p->is_over = s->status != RP_OK && s->status != RP_INVALID;
        pthread_cond_signal(&p->ready);
    }
    pthread_cond_broadcast(&p->ready);
    pthread_mutex_unlock(&p->mu);
    return NULL;
}

void core_prefetch_stop(core_prefetch *p)
{
    if (p == NULL) return;
    pthread_mutex_lock(&p->mu);
    p->stopped = true;
    pthread_cond_broadcast(&p->room);
    pthread_cond_broadcast(&p->ready);
    pthread_mutex_unlock(&p->mu);
    if (!p->has_thread) return;
    p->has_thread = false;
    Py_BEGIN_ALLOW_THREADS;
    pthread_join(p->thread, NULL);
    Py_END_ALLOW_THREADS;
}

void core_prefetch_free(core_prefetch *p)
{
    if (p == NULL) return;
    assert(!p->has_thread);
    for (size_t i = 0; i < p->slot_count; i++) {
        core_stacked_clear(&p->slots[i].stacked);
        core_given_free((core_given *)p->slots[i].stacked.given, p->options.set_columns);
    }
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->mu);
    free(p->slots);
    free(p);
}

static void init_locks(core_prefetch *p)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->mu, NULL);
    (void)pthread_cond_init(&p->ready, &attr);
    (void)pthread_cond_init(&p->room, &attr);
    (void)pthread_condattr_destroy(&attr);
}

/* Starts the thread with all signals blocked, since Python's threads handle them. */
static int start_thread(core_prefetch *p)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&p->thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int core_prefetch_new(rp_sampler *sampler, core_pool *pool,
                      const core_prefetch_options *options, core_prefetch **out)
{
    core_prefetch *p = calloc(1, sizeof *p);
    size_t slot_count = options->depth + options->reuse;

    assert(options->depth > 0 && (options->sets == NULL || options->reuse > 0));

    if (p != NULL) p->slots = calloc(slot_count, sizeof *p->slots);
    if (p == NULL || p->slots == NULL) {
        free(p);
        PyErr_NoMemory();
        return -1;
    }
    p->sampler = sampler;
    p->pool = pool;
    p->options = *options;
    p->options.sets = NULL;
    p->slot_count = slot_count;
    init_locks(p);
    for (size_t i = 0; i < slot_count; i++) {
        p->slots[i].stacked.keeps_blocks = options->reuse > 0;
        if (options->sets == NULL) continue;
        p->slots[i].stacked.given = options->sets[i];
        p->slots[i].stacked.given_count = options->set_columns;
    }
    if (start_thread(p) != 0) {
        for (size_t i = 0; i < slot_count; i++) p->slots[i].stacked.given = NULL;
        core_prefetch_free(p);
        PyErr_SetString(PyExc_RuntimeError, "no thread could be made to prefetch batches");
        return -1;
    }
    p->has_thread = true;
    *out = p;
    return 0;
}

typedef struct taking {
    core_prefetch *p;
    slot *slot;
} taking;

static void wait_until(pthread_cond_t *cond, pthread_mutex_t *mu, int64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};

    if (until_ns == RP_FOREVER)
        (void)pthread_cond_wait(cond, mu);
    else
        (void)pthread_cond_timedwait(cond, mu, &until);
}

static rp_status take_call(void *arg, rp_wait wait, rp_error *err)
{
    taking *t = arg;
    core_prefetch *p = t->p;
    rp_status st = RP_OK;

    pthread_mutex_lock(&p->mu);
    for (;;) {
        slot *s = &p->slots[p->taken % p->slot_count];

        assert(p->taken <= p->made); /* F1 */
        if (p->stopped) {
            st = RP_CANCELLED;
            if (err != NULL) {
                err->code = st;
                (void)snprintf(err->text, sizeof err->text, "the sampler is closed");
            }
            break;
        }
        if (p->taken < p->made && s->state == READY) {
            t->slot = s;
            if (s->status != RP_OK && p->is_over && p->taken + 1 == p->made)
                break; /* the slot stays READY for the next call */
            s->state = TAKEN;
            p->taken++;
            if (p->taken < p->made) pthread_cond_signal(&p->ready);
            break;
        }
        if (wait.until_ns <= rp_now_ns()) {
            st = RP_DEADLINE;
            break;
        }
        wait_until(&p->ready, &p->mu, wait.until_ns);
    }
    pthread_mutex_unlock(&p->mu);
    return st;
}

/* Marks a slot EMPTY, so that the thread may use it again. */
static void give_back(core_prefetch *p, slot *s)
{
    pthread_mutex_lock(&p->mu);
    if (s->state == TAKEN) s->state = EMPTY;
    pthread_cond_signal(&p->room);
    pthread_mutex_unlock(&p->mu);
}

/* Returns None if the slot has the end of the sequence. Otherwise sets its exception. */
static PyObject *end_of(const slot *s, const char **ended)
{
    if (s->status == RP_PRECONDITION)
        *ended = "samples";
    else if (s->status == RP_DEADLINE)
        *ended = "timeout"; /* of the rate limiter: the thread itself waits without one */
    else
        return core_raise(s->status, &s->err);
    Py_RETURN_NONE;
}

static void explain_take(void *arg, char *text, size_t size)
{
    core_sampler_why(((taking *)arg)->p->sampler, -1, text, size);
}

PyObject *core_prefetch_take(core_prefetch *p, int64_t timeout_ms, const char **ended)
{
    taking t = {.p = p};
    rp_error err = {0};
    rp_status st;
    PyObject *batch;

    if (core_wait(take_call, &t, timeout_ms, explain_take, true, &st, &err) != 0) return NULL;
    if (st == RP_DEADLINE) {
        char why[RP_ERROR_TEXT_BYTES - 64];

        core_sampler_why(p->sampler, timeout_ms, why, sizeof why);
        (void)snprintf(err.text, sizeof err.text, "no batch within %lld ms: %s",
                       (long long)timeout_ms, why);
        err.code = st;
    }
    if (st != RP_OK) return core_raise(st, &err);
    if (t.slot->status != RP_OK)
        batch = end_of(t.slot, ended);
    else
        batch = core_batch_new(&t.slot->stacked, p->options.ragged == RP_RAGGED_OFFSETS);
    give_back(p, t.slot);
    return batch;
}
