/* SPDX-License-Identifier: Apache-2.0 */
#include "apex/part.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error/fail.h"

enum { FIRST_PAUSE_MS = 20, LONGEST_PAUSE_MS = 2000 };
static const int64_t MOST_STEPS = INT64_C(1) << 53;

bool rp_part_is_stopping(const rp_part *p)
{
    return atomic_load_explicit(&p->apex->is_stopping, memory_order_acquire) ||
           rp_part_is_leaving(p);
}

bool rp_part_is_leaving(const rp_part *p)
{
    return atomic_load_explicit(&p->is_leaving, memory_order_acquire);
}

rp_wait rp_part_wait(const rp_part *p, int64_t ms)
{
    rp_wait wait = rp_wait_ms(ms);

    wait.cancel = p->apex->cancel;
    return wait;
}

void rp_part_sleep(rp_part *p, int64_t ms)
{
    int64_t until_ns = rp_now_ns() + ms * 1000000;
    struct timespec at = {until_ns / 1000000000, until_ns % 1000000000};
    int failed = 0;

    assert(ms >= 0);
    (void)pthread_mutex_lock(&p->apex->mu);
    while (!rp_part_is_stopping(p) && failed == 0)
        failed = pthread_cond_timedwait(&p->apex->cv, &p->apex->mu, &at);
    (void)pthread_mutex_unlock(&p->apex->mu);
}

void rp_part_waits(rp_part *p, const char *format, ...)
{
    rp_apex_part *state = rp_part_lock(p);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(state->waits_for, sizeof state->waits_for, format, args);
    va_end(args);
    if (p->wait_began_ns == 0) p->wait_began_ns = rp_now_ns();
    rp_part_unlock(p);
}

void rp_part_works(rp_part *p)
{
    rp_apex_part *state = rp_part_lock(p);

    p->worked_ns = rp_now_ns();
    if (p->wait_began_ns != 0) p->waited_ns += p->worked_ns - p->wait_began_ns;
    p->wait_began_ns = 0;
    state->waits_for[0] = '\0';
    rp_part_unlock(p);
}

void rp_part_trouble(rp_part *p, const char *format, ...)
{
    rp_apex_part *state = rp_part_lock(p);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(state->trouble, sizeof state->trouble, format, args);
    va_end(args);
    rp_part_unlock(p);
}

rp_status rp_part_pull(rp_part *p, rp_variable_client *variables, rp_real *params, int64_t ms,
                       rp_variables *got, rp_error *err)
{
    rp_status st =
        rp_variable_client_update(variables, params, rp_part_wait(p, ms), got, &p->unfit);

    if (st == RP_CORRUPT) {
        if (p->unfit_ns == 0) p->unfit_ns = rp_now_ns();
        rp_part_trouble(p, "%s: %.120s",
                        p->has_params ? "keeps its parameters" : "has no parameters",
                        p->unfit.text);
        *got = (rp_variables){0};
        return RP_OK;
    }
    if (st != RP_OK && err != NULL) *err = p->unfit;
    if (st != RP_OK) return st;
    if (got->changed) {
        if (p->unfit_ns != 0) rp_part_trouble(p, "%s", "");
        p->unfit_ns = 0;
        p->has_params = true;
        if (got->note < 0 || got->note > MOST_STEPS) got->note = 0; /* not the learner's */
    } else if (p->unfit_ns != 0 && !p->has_params &&
               rp_now_ns() - p->unfit_ns > RP_UNFIT_MS * INT64_C(1000000)) {
        return rp_rl_fail(err, RP_CORRUPT, "%.250s", p->unfit.text);
    }
    return RP_OK;
}

rp_apex_part *rp_part_lock(rp_part *p)
{
    (void)pthread_mutex_lock(&p->apex->mu);
    return &p->state;
}

void rp_part_unlock(rp_part *p)
{
    (void)pthread_mutex_unlock(&p->apex->mu);
}

bool rp_part_is_away(rp_status st)
{
    return st == RP_UNAVAILABLE || st == RP_DEADLINE || st == RP_NOT_FOUND ||
           st == RP_CANCELLED;
}

bool rp_part_is_patient(const rp_part *p)
{
    return rp_now_ns() - p->worked_ns <= p->apex->options.patience_ms * 1000000;
}

rp_status rp_part_outlive(rp_part *p, rp_status (*live)(void *ctx, rp_error *err), void *ctx,
                          rp_error *err)
{
    int64_t pause_ms = FIRST_PAUSE_MS, worked_ns = p->worked_ns = rp_now_ns();

    rp_part_waits(p, "the replay: no complete response yet"); /* each loop says when it works */
    for (;;) {
        rp_status st = live(ctx, err);
        int64_t patience_ms = p->apex->options.patience_ms;

        assert(patience_ms > 0 && p->worked_ns >= worked_ns);
        if (atomic_load_explicit(&p->apex->is_stopping, memory_order_acquire)) return RP_OK;
        if (st == RP_OK || !rp_part_is_away(st)) return st;
        if (p->worked_ns != worked_ns) pause_ms = FIRST_PAUSE_MS;
        worked_ns = p->worked_ns;
        if (!rp_part_is_patient(p))
            return rp_rl_fail(err, RP_UNAVAILABLE,
                              "the replay has been away for %lld s: %.200s",
                              (long long)(patience_ms / 1000),
                              err != NULL ? err->text : "no reason is known");
        rp_part_waits(p, "the replay: %s", err != NULL ? err->text : "it is away");
        rp_part_sleep(p, pause_ms);
        if (rp_part_is_stopping(p)) return RP_OK;
        pause_ms = 2 * pause_ms < LONGEST_PAUSE_MS ? 2 * pause_ms : LONGEST_PAUSE_MS;
    }
}

uint64_t rp_apex_seed(const rp_apex *a, uint32_t part)
{
    const uint32_t words[] = {(uint32_t)a->options.seed, (uint32_t)(a->options.seed >> 32),
                              part};
    uint32_t out[2];

    rp_seed_sequence(words, 3, out, 2);
    return (uint64_t)out[0] << 32 | out[1];
}

rp_apex_making rp_part_making(const rp_part *p, rp_pcg64 *rng)
{
    const rp_apex *a = p->apex;

    assert(a->env != NULL && p->index >= 0 && p->index < a->options.most_actors);
    return (rp_apex_making){.alloc = &a->alloc,
                            .settings = a->options.settings,
                            .spec = rp_env_get_spec(a->env),
                            .client = a->options.client,
                            .index = p->index,
                            .actors = rp_part_actors(p),
                            .rng = rng};
}

rp_apex_making rp_part_table_making(const rp_part *p)
{
    rp_apex_making making = rp_part_making(p, NULL);

    making.actors = p->apex->options.most_actors;
    return making;
}

int64_t rp_part_actors(const rp_part *p)
{
    int64_t actors = atomic_load_explicit(&p->apex->actors, memory_order_relaxed);

    return actors > p->index ? actors : p->index + 1; /* it is about to leave */
}

void rp_part_keep(rp_part *p, const rp_real *params, bool is_solved)
{
    rp_apex *a = p->apex;
    bool is_older = false;

    assert(a->params != NULL);
    (void)pthread_mutex_lock(&a->mu);
    for (size_t i = 0; i < a->part_count && p->role == RP_APEX_EVALUATOR && !is_solved; i++)
        is_older = is_older || a->parts[i]->role == RP_APEX_LEARNER;
    if (!a->is_solved && !is_older) {
        memcpy(a->params, params, a->parameter_count * sizeof *params);
        a->has_params = true;
        a->is_solved = is_solved;
    }
    (void)pthread_mutex_unlock(&a->mu);
}
