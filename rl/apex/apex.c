/* SPDX-License-Identifier: Apache-2.0 */
/* The program of one process: parts on threads of their own.
 *
 * Invariants, whenever mu is free:
 *   X1  is_stopping is set and `cancel` fired exactly if the parts have to end;
 *   X2  the first part that ends the program decides `status` and `error`;
 *   X3  parts[0 .. part_count - 1] have threads until the program is freed; that of an actor
 *       that has left has ended, and is joined when the actor is started again. */
#include "reprise/rl/apex.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apex/part.h"
#include "error/fail.h"

enum {
    PULL_EVERY = 400,
    PUBLISH_EVERY = 50,
    TRIM_EVERY = 100,
    SAVE_EVERY = 2000,
    EVAL_EPISODES = 20,
    CONFIRM_EPISODES = 300,
    PATIENCE_MS = 300000,
    TEND_MS = 2000,
};

const char *rp_apex_role_name(rp_apex_role role)
{
    static const char *const names[] = {"learner", "actor", "evaluator"};

    assert(role <= RP_APEX_EVALUATOR);
    return names[role];
}

static void set_default(int64_t *value, int64_t initial)
{
    if (*value == 0) *value = initial;
}

static rp_status check(const rp_apex_options *o, rp_error *err)
{
    if (o->actors < 1 || o->actors > RP_APEX_MAX_ACTORS)
        return rp_rl_fail(err, RP_INVALID, "apex: actors must be from 1 to %d, got %lld",
                          RP_APEX_MAX_ACTORS, (long long)o->actors);
    if (o->most_actors != 0 &&
        (o->most_actors < o->actors || o->most_actors > RP_APEX_MAX_ACTORS))
        return rp_rl_fail(err, RP_INVALID,
                          "apex: most_actors must be from %lld to %d, got %lld",
                          (long long)o->actors, RP_APEX_MAX_ACTORS, (long long)o->most_actors);
    if (o->pull_every < 0 || o->publish_every < 0 || o->trim_every < 0 || o->save_every < 0 ||
        o->eval_episodes < 0 || o->confirm_episodes < 0 || o->patience_ms < 0 ||
        o->tend_ms < 0 || o->max_steps < 0)
        return rp_rl_fail(err, RP_INVALID, "apex: an option is negative");
    return RP_OK;
}

/* Makes what depends on the environment: its spec, the number of parameters, their memory. */
static rp_status measure(rp_apex *a, rp_error *err)
{
    const rp_env_options one = {.copies = 1};
    rp_apex_making making = {.alloc = &a->alloc, .settings = a->options.settings, .actors = 1};
    rp_policy *policy = NULL;
    rp_status st = rp_env_new(&a->alloc, a->options.env_class, &one, &a->env, err);

    if (st != RP_OK) return st;
    making.spec = rp_env_get_spec(a->env);
    if (a->options.threshold == 0 && !a->options.has_threshold)
        a->options.threshold = making.spec->solved_return;
    st = a->options.algorithm->new_policy(&making, 1, &policy, err);
    if (st != RP_OK) return st;
    a->parameter_count = policy->parameter_count;
    rp_policy_free(policy);
    a->params = a->alloc.resize(a->alloc.ctx, NULL, 0, a->parameter_count * sizeof *a->params);
    if (a->params == NULL)
        return rp_rl_fail_memory(err, a->parameter_count * sizeof *a->params);
    a->parts = a->alloc.resize(a->alloc.ctx, NULL, 0, a->part_room * sizeof a->parts[0]);
    if (a->parts == NULL) return rp_rl_fail_memory(err, a->part_room * sizeof a->parts[0]);
    if (rp_cancel_new(&a->cancel) != RP_OK) return rp_rl_fail_memory(err, sizeof *a);
    return RP_OK;
}

rp_status rp_apex_new(const rp_allocator *alloc, const rp_apex_options *options, rp_apex **out,
                      rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = check(options, err);
    pthread_condattr_t clock;
    rp_apex *x;

    if (st != RP_OK) return st;
    x = a.resize(a.ctx, NULL, 0, sizeof *x);
    if (x == NULL) return rp_rl_fail_memory(err, sizeof *x);
    memset(x, 0, sizeof *x);
    x->alloc = a;
    x->options = *options;
    if (x->options.home == NULL) x->options.home = options->client;
    set_default(&x->options.most_actors, options->actors);
    atomic_init(&x->actors, options->actors);
    x->part_room = (size_t)x->options.most_actors + 2;
    x->began_ns = rp_now_ns();
    set_default(&x->options.pull_every, PULL_EVERY);
    set_default(&x->options.publish_every, PUBLISH_EVERY);
    set_default(&x->options.trim_every, TRIM_EVERY);
    set_default(&x->options.save_every, SAVE_EVERY);
    set_default(&x->options.eval_episodes, EVAL_EPISODES);
    set_default(&x->options.confirm_episodes, CONFIRM_EPISODES);
    set_default(&x->options.patience_ms, PATIENCE_MS);
    set_default(&x->options.tend_ms, TEND_MS);
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC); /* that of rp_now_ns() */
    (void)pthread_mutex_init(&x->mu, NULL);
    (void)pthread_cond_init(&x->cv, &clock);
    (void)pthread_condattr_destroy(&clock);
    st = measure(x, err);
    if (st != RP_OK) {
        rp_apex_free(x);
        return st;
    }
    *out = x;
    return RP_OK;
}

void rp_apex_free(rp_apex *x)
{
    if (x == NULL) return;
    rp_allocator alloc = x->alloc;
    rp_apex_stop(x);
    for (size_t i = 0; i < x->part_count; i++) { /* X3 */
        if (x->parts[i]->has_thread) (void)pthread_join(x->parts[i]->thread, NULL);
        (void)alloc.resize(alloc.ctx, x->parts[i], sizeof *x->parts[i], 0);
    }
    rp_cancel_free(x->cancel);
    rp_env_free(x->env);
    if (x->parts != NULL)
        (void)alloc.resize(alloc.ctx, x->parts, x->part_room * sizeof x->parts[0], 0);
    if (x->params != NULL)
        (void)alloc.resize(alloc.ctx, x->params, x->parameter_count * sizeof *x->params, 0);
    (void)pthread_cond_destroy(&x->cv);
    (void)pthread_mutex_destroy(&x->mu);
    (void)alloc.resize(alloc.ctx, x, sizeof *x, 0);
}

void rp_apex_stop(rp_apex *x)
{
    (void)pthread_mutex_lock(&x->mu);
    atomic_store_explicit(&x->is_stopping, true, memory_order_release);
    x->is_done = true;
    (void)pthread_cond_broadcast(&x->cv);
    (void)pthread_mutex_unlock(&x->mu);
    if (x->cancel != NULL) rp_cancel_fire(x->cancel); /* X1 */
}

/* A part has ended: by itself, by a failure, or because the program stops. */
static void end(rp_part *p, rp_status st, const rp_error *err)
{
    rp_apex *x = p->apex;
    char name[32];

    (void)snprintf(name, sizeof name, p->role == RP_APEX_ACTOR ? "%s %lld" : "%s",
                   rp_apex_role_name(p->role), (long long)p->index);
    (void)pthread_mutex_lock(&x->mu);
    p->state.has_ended = true;
    p->state.waits_for[0] = '\0';
    if (!x->is_done) { /* X2 */
        x->is_done = true;
        x->status = st;
        if (st != RP_OK) (void)rp_rl_fail(&x->error, st, "%s: %.400s", name, err->text);
    }
    (void)pthread_mutex_unlock(&x->mu);
    rp_apex_stop(x);
}

/* Actors until they leave or the program stops. One that was asked to leave may have been asked
 * to stay before it had left. Returns true if it has left. */
static bool run_actor(rp_part *p, rp_status *st, rp_error *err)
{
    bool has_left = false, is_over = false;

    do {
        *st = rp_apex_actor_loop(p, err);
        (void)pthread_mutex_lock(&p->apex->mu);
        is_over = *st != RP_OK || p->apex->is_done;
        has_left = !is_over && rp_part_is_leaving(p);
        p->state.has_left = has_left;
        p->state.waits_for[0] = '\0';
        (void)pthread_mutex_unlock(&p->apex->mu);
    } while (!is_over && !has_left);
    return has_left;
}

static void *run(void *ctx)
{
    rp_part *p = ctx;
    rp_error err = {0};
    rp_status st = RP_OK;

    switch (p->role) {
    case RP_APEX_LEARNER: st = rp_apex_learner_loop(p, &err); break;
    case RP_APEX_ACTOR:
        if (run_actor(p, &st, &err)) return NULL; /* X3 */
        break;
    case RP_APEX_EVALUATOR: st = rp_apex_evaluator_loop(p, &err); break;
    }
    end(p, st, &err);
    return NULL;
}

static rp_status check_part(const rp_apex *x, rp_apex_role role, int64_t index, rp_error *err)
{
    int64_t most = role == RP_APEX_ACTOR ? x->options.most_actors : 1;

    if (index < 0 || index >= most)
        return rp_rl_fail(err, RP_INVALID, "apex: there is no %s %lld of %lld",
                          rp_apex_role_name(role), (long long)index, (long long)most);
    for (size_t i = 0; i < x->part_count; i++)
        if (x->parts[i]->role == role && x->parts[i]->index == index)
            return rp_rl_fail(err, RP_EXISTS, "apex: %s %lld has been started",
                              rp_apex_role_name(role), (long long)index);
    return RP_OK;
}

static rp_status start_thread(rp_part *p, rp_error *err)
{
    p->has_thread = pthread_create(&p->thread, NULL, run, p) == 0;
    return p->has_thread ? RP_OK
                         : rp_rl_fail(err, RP_NO_RESOURCE, "apex: no thread could be started");
}

rp_status rp_apex_start(rp_apex *x, rp_apex_role role, int64_t index, rp_error *err)
{
    rp_part *p = x->alloc.resize(x->alloc.ctx, NULL, 0, sizeof *p);
    rp_status st;

    if (p == NULL) return rp_rl_fail_memory(err, sizeof *p);
    *p = (rp_part){.apex = x, .role = role, .index = index, .counted_ns = rp_now_ns()};
    p->state = (rp_apex_part){.role = role,
                              .index = index,
                              .mean_return = (double)NAN,
                              .mean_length = (double)NAN,
                              .exploration = (double)NAN,
                              .metrics = {.loss = (double)NAN,
                                          .value = (double)NAN,
                                          .error = (double)NAN,
                                          .norm = (double)NAN,
                                          .rate = (double)NAN}};
    (void)pthread_mutex_lock(&x->mu);
    st = check_part(x, role, index, err);
    if (st == RP_OK) st = start_thread(p, err);
    if (st == RP_OK) {
        assert(x->part_count < x->part_room);
        x->parts[x->part_count++] = p;
    }
    (void)pthread_mutex_unlock(&x->mu);
    if (st != RP_OK) (void)x->alloc.resize(x->alloc.ctx, p, sizeof *p, 0);
    return st;
}

/* Asks an actor to leave or to stay. One that has left is started again. Holds mu. */
static rp_status set_leaving_locked(rp_part *p, bool is_leaving, rp_error *err)
{
    if (is_leaving == rp_part_is_leaving(p)) return RP_OK;
    if (!is_leaving && p->state.has_left) {
        if (p->has_thread) (void)pthread_join(p->thread, NULL); /* it needs mu no more */
        p->state.has_left = false;
        p->counted_ns = rp_now_ns();
        p->waited_ns = p->wait_began_ns = 0;
        atomic_store_explicit(&p->is_leaving, false, memory_order_release);
        return start_thread(p, err);
    }
    atomic_store_explicit(&p->is_leaving, is_leaving, memory_order_release);
    return RP_OK;
}

rp_status rp_apex_set_actors(rp_apex *x, int64_t actors, rp_error *err)
{
    int64_t found = 0;
    rp_status st = RP_OK;

    if (actors < 1 || actors > x->options.most_actors)
        return rp_rl_fail(err, RP_INVALID, "apex: actors must be from 1 to %lld, got %lld",
                          (long long)x->options.most_actors, (long long)actors);
    (void)pthread_mutex_lock(&x->mu);
    atomic_store_explicit(&x->actors, actors, memory_order_relaxed);
    for (size_t i = 0; i < x->part_count && !x->is_done; i++) {
        rp_part *p = x->parts[i];

        if (p->role != RP_APEX_ACTOR) continue;
        found = p->index >= found ? p->index + 1 : found;
        if (st == RP_OK) st = set_leaving_locked(p, p->index >= actors, err);
    }
    if (x->is_done) found = actors;
    (void)pthread_cond_broadcast(&x->cv);
    (void)pthread_mutex_unlock(&x->mu);
    for (int64_t i = found; st == RP_OK && i < actors; i++)
        st = rp_apex_start(x, RP_APEX_ACTOR, i, err);
    return st;
}

void rp_apex_set_learners(rp_apex *x, int64_t learners)
{
    atomic_store_explicit(&x->learners, learners, memory_order_relaxed);
}

rp_status rp_apex_wait(rp_apex *x, int64_t ms, bool *done, rp_error *err)
{
    int64_t until_ns = rp_now_ns() + ms * 1000000;
    struct timespec at = {until_ns / 1000000000, until_ns % 1000000000};
    int failed = 0;
    rp_status st;

    (void)pthread_mutex_lock(&x->mu);
    while (!x->is_done && failed == 0) failed = pthread_cond_timedwait(&x->cv, &x->mu, &at);
    *done = x->is_done;
    st = x->status;
    if (st != RP_OK && err != NULL) *err = x->error;
    (void)pthread_mutex_unlock(&x->mu);
    return st;
}

size_t rp_apex_get_parts(rp_apex *x, rp_apex_part *out, size_t capacity)
{
    int64_t now_ns = rp_now_ns();
    size_t count;

    (void)pthread_mutex_lock(&x->mu);
    count = x->part_count < capacity ? x->part_count : capacity;
    for (size_t i = 0; i < count; i++) {
        rp_part *p = x->parts[i];
        int64_t passed_ns = now_ns - p->counted_ns;

        assert(p->waited_ns >= 0);
        if (p->wait_began_ns != 0 && p->wait_began_ns < now_ns) {
            p->waited_ns += now_ns - p->wait_began_ns;
            p->wait_began_ns = now_ns;
        }
        p->state.wait_share =
            passed_ns > 0 ? fmin(1, (double)p->waited_ns / (double)passed_ns) : 0;
        p->waited_ns = 0;
        p->counted_ns = now_ns;
        out[i] = p->state;
    }
    (void)pthread_mutex_unlock(&x->mu);
    return count;
}

bool rp_apex_get_parameters(rp_apex *x, rp_real *out, size_t count)
{
    bool has;

    (void)pthread_mutex_lock(&x->mu);
    assert(count == x->parameter_count);
    has = x->has_params;
    if (has) memcpy(out, x->params, count * sizeof *out);
    (void)pthread_mutex_unlock(&x->mu);
    return has;
}

size_t rp_apex_parameter_count(const rp_apex *x)
{
    return x->parameter_count;
}

double rp_apex_get_threshold(const rp_apex *x)
{
    return x->options.threshold;
}

/* Takes what one part knows. */
static void add_part(rp_run_progress *p, const rp_apex_part *part, double *least)
{
    if (part->learner_steps > p->steps) p->steps = part->learner_steps;
    if (part->role == RP_APEX_ACTOR) {
        p->episodes += part->episodes;
        if (part->has_left) return;
        p->actor_wait = (isfinite(p->actor_wait) ? p->actor_wait : 0) + part->wait_share;
        if (part->exploration <= *least) { /* the greediest: the others explore too much */
            *least = part->exploration;
            p->mean_return = part->mean_return;
            p->mean_length = part->mean_length;
        }
        if (!(part->exploration <= p->epsilon)) p->epsilon = part->exploration;
    } else if (part->role == RP_APEX_LEARNER) {
        const rp_agent_metrics *m = &part->metrics;

        p->updates = m->updates;
        p->learner_wait = part->wait_share;
        p->loss = m->loss;
        p->value = m->value;
        p->error = m->error;
        p->norm = m->norm;
        p->rate = m->rate;
        p->item_size = m->item_size;
        p->samples_per_insert = (double)m->samples / (double)m->inserts;
    } else if (part->verdict.version > 0) {
        p->eval_return = part->mean_return;
        p->eval_steps = part->learner_steps;
    }
}

rp_run_progress rp_apex_progress(const rp_apex *x, const rp_apex_part *parts, size_t count,
                                 const rp_run_progress *last)
{
    const double unknown = (double)NAN;
    double seconds = (double)(rp_now_ns() - x->began_ns) * 1e-9, passed, least = INFINITY;
    rp_run_progress p = {.max_steps = x->options.max_steps,
                         .seconds = seconds,
                         .left_seconds = unknown,
                         .mean_return = unknown,
                         .mean_length = unknown,
                         .eval_return = unknown,
                         .eval_seconds = seconds,
                         .loss = unknown,
                         .value = unknown,
                         .error = unknown,
                         .norm = unknown,
                         .epsilon = unknown,
                         .rate = unknown,
                         .samples_per_insert = unknown,
                         .actor_wait = unknown,
                         .learner_wait = unknown,
                         .actors = unknown,
                         .learners = unknown,
                         .predicted_steps_per_second = unknown};
    size_t actors = 0;

    for (size_t i = 0; i < count; i++) {
        add_part(&p, &parts[i], &least);
        actors += parts[i].role == RP_APEX_ACTOR && !parts[i].has_left;
    }
    if (actors > 0) p.actor_wait /= (double)actors;
    passed = seconds - (last != NULL ? last->seconds : 0);
    p.steps_per_second = (double)(p.steps - (last != NULL ? last->steps : 0)) / passed;
    p.updates_per_second = (double)(p.updates - (last != NULL ? last->updates : 0)) / passed;
    if (p.max_steps > 0) p.left_seconds = (double)(p.max_steps - p.steps) / p.steps_per_second;
    return p;
}
