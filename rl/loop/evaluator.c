/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of an evaluator.
 *
 *   asleep --wake--> awake: fetch parameters; if they are new, judge them --> asleep
 *
 * Invariants, whenever mu is free:
 *   T1  `awake` is set by wake() and cleared by the thread before it fetches: parameters that
 *       are published later set it again;
 *   T2  once verdict.solved, `params` are those of the verdict: the thread has ended. */
#include "reprise/rl/evaluator.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "error/fail.h"

struct rp_evaluator {
    rp_allocator alloc;
    rp_verdict_options options;
    rp_variable_client *variables;
    size_t count;
    rp_real *params; /* of the thread; of everybody once solved (T2) */
    pthread_t thread;
    bool started;
    pthread_mutex_t mu;
    pthread_cond_t cv;
    /* guarded by mu */
    bool awake, busy, closing, has;
    rp_verdict verdict;
    rp_status status;
    rp_error error;
};

/* Fetches and judges. Returns false if there was nothing new. */
static bool work(rp_evaluator *e, rp_verdict *verdict, rp_status *status, rp_error *error)
{
    rp_variables got = {0};

    *status =
        rp_variable_client_update(e->variables, e->params, rp_wait_forever(), &got, error);
    if (*status != RP_OK) return true;
    if (!got.changed) return false;
    *verdict = (rp_verdict){.version = got.version, .note = got.note};
    *status = rp_judge(&e->alloc, &e->options, e->params, verdict, error);
    return true;
}

static void *run(void *ctx)
{
    rp_evaluator *e = ctx;
    rp_verdict verdict;
    rp_status status;
    rp_error error = {0};
    bool is_new;

    (void)pthread_mutex_lock(&e->mu);
    while (!e->closing && !e->verdict.solved && e->status == RP_OK) {
        if (!e->awake) {
            (void)pthread_cond_wait(&e->cv, &e->mu);
            continue;
        }
        e->awake = false; /* T1 */
        e->busy = true;
        (void)pthread_mutex_unlock(&e->mu);
        is_new = work(e, &verdict, &status, &error);
        (void)pthread_mutex_lock(&e->mu);
        e->busy = false;
        if (is_new) {
            e->status = status;
            e->error = error;
            e->verdict = verdict;
            e->has = status == RP_OK;
        }
        (void)pthread_cond_broadcast(&e->cv);
    }
    e->awake = false;
    (void)pthread_cond_broadcast(&e->cv);
    (void)pthread_mutex_unlock(&e->mu);
    return NULL;
}

rp_status rp_evaluator_new(const rp_allocator *alloc, const rp_verdict_options *options,
                           const rp_variable_options *variables, rp_evaluator **out,
                           rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_evaluator *e = a.resize(a.ctx, NULL, 0, sizeof *e);
    rp_status st;

    if (e == NULL) return rp_rl_fail_memory(err, sizeof *e);
    memset(e, 0, sizeof *e);
    e->alloc = a;
    e->options = *options;
    e->count = variables->count;
    assert(options->evaluation.policy->parameter_count == e->count);
    (void)pthread_mutex_init(&e->mu, NULL);
    (void)pthread_cond_init(&e->cv, NULL);
    e->params = a.resize(a.ctx, NULL, 0, e->count * sizeof *e->params);
    st = e->params != NULL ? RP_OK : rp_rl_fail_memory(err, e->count * sizeof *e->params);
    if (st == RP_OK) st = rp_variable_client_new(&a, variables, &e->variables, err);
    if (st == RP_OK) {
        e->started = pthread_create(&e->thread, NULL, run, e) == 0;
        if (!e->started)
            st = rp_rl_fail(err, RP_NO_RESOURCE, "evaluator: no thread could be started");
    }
    if (st != RP_OK) {
        rp_evaluator_free(e);
        return st;
    }
    *out = e;
    return RP_OK;
}

void rp_evaluator_free(rp_evaluator *e)
{
    if (e == NULL) return;
    rp_allocator alloc = e->alloc;
    (void)pthread_mutex_lock(&e->mu);
    e->closing = true;
    (void)pthread_cond_broadcast(&e->cv);
    (void)pthread_mutex_unlock(&e->mu);
    if (e->started) (void)pthread_join(e->thread, NULL);
    rp_variable_client_free(e->variables);
    (void)pthread_cond_destroy(&e->cv);
    (void)pthread_mutex_destroy(&e->mu);
    if (e->params != NULL)
        (void)alloc.resize(alloc.ctx, e->params, e->count * sizeof *e->params, 0);
    (void)alloc.resize(alloc.ctx, e, sizeof *e, 0);
}

void rp_evaluator_wake(rp_evaluator *e)
{
    (void)pthread_mutex_lock(&e->mu);
    e->awake = !e->verdict.solved && e->status == RP_OK;
    (void)pthread_cond_broadcast(&e->cv);
    (void)pthread_mutex_unlock(&e->mu);
}

rp_status rp_evaluator_take(rp_evaluator *e, bool wait, rp_real *params, rp_verdict *out,
                            bool *has, rp_error *err)
{
    rp_status st;

    (void)pthread_mutex_lock(&e->mu);
    while (wait && (e->awake || e->busy)) (void)pthread_cond_wait(&e->cv, &e->mu);
    st = e->status;
    *has = st == RP_OK && e->has;
    if (*has) {
        *out = e->verdict;
        if (e->verdict.solved && params != NULL) /* T2 */
            memcpy(params, e->params, e->count * sizeof *params);
        e->has = false;
    }
    if (st != RP_OK && err != NULL) *err = e->error;
    (void)pthread_mutex_unlock(&e->mu);
    return st;
}
