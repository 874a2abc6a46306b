/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that wait, for threads of this process. A waiting thread has a sleeper in the list
 * of the rollouts while it tries and sleeps, so it misses no change. It also applies
 * RP_ROLLOUT_EXPIRE, so that the leases of a consumer that died are released.
 *
 * A sleeper has a lock of its own (rank RP_RANK_WAITER): it is woken with the lock of the
 * rollouts held, or with that of a cancel token. */
#include "rollouts/rollouts_calls.h"
#include "util/cancel.h"
#include "util/error.h"

struct rp_rollout_sleeper {
    rp_cancel_link link; /* first: on_fire gets this */
    rp_rollout_sleeper *prev, *next;
    rp_mutex mu;
    rp_cond woken;
    bool is_woken, is_cancelled; /* under mu */
};

static void on_fire(rp_cancel_link *link)
{
    rp_rollout_sleeper *s = (rp_rollout_sleeper *)(void *)link;

    rp_mutex_lock(&s->mu);
    s->is_cancelled = true;
    rp_cond_signal(&s->woken);
    rp_mutex_unlock(&s->mu);
}

void rp_rollout_wake(rp_rollouts *r)
{
    for (rp_rollout_sleeper *s = r->sleepers; s != NULL; s = s->next) {
        rp_mutex_lock(&s->mu);
        s->is_woken = true;
        rp_cond_signal(&s->woken);
        rp_mutex_unlock(&s->mu);
    }
}

static void begin(rp_rollouts *r, rp_rollout_sleeper *s, rp_cancel *cancel)
{
    *s = (rp_rollout_sleeper){.link = {.on_fire = on_fire}};
    rp_mutex_init(&s->mu, RP_RANK_WAITER);
    rp_cond_init(&s->woken);
    rp_mutex_lock(&r->mu);
    s->next = r->sleepers;
    if (s->next != NULL) s->next->prev = s;
    r->sleepers = s;
    rp_mutex_unlock(&r->mu);
    rp_cancel_join(cancel, &s->link);
}

static void end(rp_rollouts *r, rp_rollout_sleeper *s, rp_cancel *cancel)
{
    rp_cancel_part(cancel, &s->link);
    rp_mutex_lock(&r->mu);
    if (s->prev != NULL)
        s->prev->next = s->next;
    else
        r->sleepers = s->next;
    if (s->next != NULL) s->next->prev = s->prev;
    rp_mutex_unlock(&r->mu);
    rp_cond_deinit(&s->woken);
    rp_mutex_deinit(&s->mu);
}

/* Sleeps until a change, or the monotonic time `until_ns`. False if the wait was cancelled. */
static bool sleep_until(rp_rollout_sleeper *s, int64_t until_ns)
{
    bool in_time = true, go_on;

    rp_mutex_lock(&s->mu);
    while (in_time && !s->is_woken && !s->is_cancelled)
        in_time = rp_cond_wait(&s->woken, &s->mu, until_ns);
    s->is_woken = false;
    go_on = !s->is_cancelled;
    rp_mutex_unlock(&s->mu);
    return go_on;
}

rp_status rp_rollouts_apply_wait(rp_rollouts *r, const rp_rollout_op *op, rp_wait wait,
                                 rp_rollout_result *result, rp_error *err)
{
    int64_t started_ns = rp_now_ns();
    rp_rollout_op attempt = *op;
    rp_rollout_parked parked = {0};
    rp_rollout_sleeper s;
    rp_error error = {0};
    rp_status st = rp_rollouts_apply(r, &attempt, result, err);

    if (st != RP_DEADLINE || wait.until_ns == RP_NOW) return st;
    parked.waiting = result->waiting;
    rp_rollouts_park(r, &parked, op, wait.until_ns);
    attempt.parked = &parked;
    begin(r, &s, wait.cancel);
    for (;;) {
        /* The clock of the operations and the monotonic one differ by a constant. */
        int64_t until_ns, next_ns;

        attempt.now_ns = op->now_ns + (rp_now_ns() - started_ns);
        while (rp_rollouts_expire(r, attempt.now_ns) > 0) continue;
        error.text[0] = '\0';
        st = rp_rollouts_apply(r, &attempt, result, &error);
        if (st != RP_DEADLINE) break;
        if (wait.until_ns != RP_FOREVER && rp_now_ns() >= wait.until_ns) break;
        next_ns = rp_rollouts_next_expiry(r);
        until_ns = wait.until_ns;
        if (next_ns != INT64_MAX && next_ns - op->now_ns + started_ns < until_ns)
            until_ns = next_ns - op->now_ns + started_ns;
        if (sleep_until(&s, until_ns)) continue;
        st = rp_fail(&error, RP_CANCELLED, "the wait was cancelled");
        break;
    }
    end(r, &s, wait.cancel);
    if (st == RP_DEADLINE && error.text[0] == '\0') (void)rp_rollouts_why(r, &parked, &error);
    rp_rollouts_unpark(r, &parked);
    if (st != RP_OK && err != NULL) *err = error;
    return st;
}
