/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that block: an operation on the caller's stack, and a thread that sleeps until the
 * operation is complete.
 *
 * The thread is woken by the completion, by the deadline, or by a cancellation token. In the
 * last two cases it withdraws the operation; if another thread is already completing it, the
 * sleeper waits for the completion. The operation is on the sleeper's stack: the completing
 * thread does not touch it after it has unlocked the sleeper's mutex, and POSIX allows the
 * sleeper to destroy the mutex then. */
#include <assert.h>
#include <string.h>

#include "table/table_log.h"
#include "util/cancel.h"
#include "util/error.h"

enum { PREFETCH_AHEAD = 16 };

typedef struct sleeper {
    rp_cancel_link link; /* first: on_fire gets this */
    rp_mutex mu;         /* rank 60 */
    rp_cond cv;
    bool over RP_GUARDED_BY(mu);
    bool cancelled RP_GUARDED_BY(mu);
} sleeper;

static void cancel_sleeper(rp_cancel_link *link)
{
    sleeper *s = (sleeper *)link;

    rp_mutex_lock(&s->mu);
    s->cancelled = true;
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static void wake_sleeper(rp_op *op)
{
    sleeper *s = op->user;

    rp_mutex_lock(&s->mu);
    s->over = true;
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

/* Sleeps until the operation is complete (RP_OK), or must be withdrawn: returns the reason. */
static rp_status sleep_until(sleeper *s, int64_t until_ns)
{
    rp_status why = RP_OK;

    rp_mutex_lock(&s->mu);
    while (!s->over && why == RP_OK) {
        if (s->cancelled)
            why = RP_CANCELLED;
        else if (!rp_cond_wait(&s->cv, &s->mu, until_ns) && !s->over && !s->cancelled)
            why = RP_DEADLINE;
    }
    rp_mutex_unlock(&s->mu);
    return why;
}

static void wait_over(sleeper *s)
{
    rp_mutex_lock(&s->mu);
    while (!s->over) (void)rp_cond_wait(&s->cv, &s->mu, RP_FOREVER);
    rp_mutex_unlock(&s->mu);
}

/* Runs an operation to completion on this thread. */
static void run(rp_table *t, rp_op *op, rp_wait wait, bool (*start)(rp_table *, rp_op *))
{
    sleeper s = {.link = {.on_fire = cancel_sleeper}};
    rp_status why;

    op->until_ns = wait.until_ns;
    if (wait.until_ns == RP_NOW) {
        (void)start(t, op);
        return;
    }
    rp_mutex_init(&s.mu, RP_RANK_WAITER);
    rp_cond_init(&s.cv);
    op->on_done = wake_sleeper;
    op->user = &s;
    if (!start(t, op)) {
        rp_cancel_join(wait.cancel, &s.link);
        why = sleep_until(&s, wait.until_ns);
        if (why != RP_OK && !rp_op_withdraw(op, why)) wait_over(&s);
        rp_cancel_part(wait.cancel, &s.link);
    }
    assert(!op->parked);
    rp_cond_deinit(&s.cv);
    rp_mutex_deinit(&s.mu);
}

static rp_status report(const rp_op *op, rp_error *err)
{
    if (op->status != RP_OK && err != NULL) *err = op->error;
    return op->status;
}

rp_status rp_table_insert(rp_table *t, const rp_insert *items, size_t count, rp_wait wait,
                          size_t *inserted, rp_error *err)
{
    uint64_t lsn;
    rp_status st;

    if (items == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "table '%s': `items` is NULL, count %zu",
                       t->options.name, count);
    st = rp_table_insert_logged(t, items, count, wait, inserted, &lsn, err);
    return rp_table_wait_durable(t, st, lsn, wait, err);
}

rp_status rp_table_insert_logged(rp_table *t, const rp_insert *items, size_t count,
                                 rp_wait wait, size_t *inserted, uint64_t *lsn, rp_error *err)
{
    rp_op op;

    memset(&op, 0, offsetof(rp_op, error)); /* without the large text */
    op.items = items;
    op.count = count;
    run(t, &op, wait, rp_table_start_insert);
    if (inserted != NULL) *inserted = op.done;
    *lsn = op.lsn;
    return report(&op, err);
}

rp_status rp_table_sample(rp_table *t, const rp_sample_options *options, rp_sample *out,
                          size_t *drawn, rp_wait wait, rp_error *err)
{
    rp_op op;

    if (options == NULL || out == NULL || drawn == NULL)
        return rp_fail(err, RP_INVALID, "table '%s': no %s", t->options.name,
                       options == NULL ? "sample options"
                       : out == NULL   ? "array of samples"
                                       : "`drawn`");
    memset(&op, 0, offsetof(rp_op, error));
    op.options = options;
    op.samples = out;
    run(t, &op, wait, rp_table_start_sample);
    if (op.status != RP_OK) return report(&op, err);
    *drawn = op.done;
    return RP_OK;
}

void rp_samples_release(rp_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i + PREFETCH_AHEAD < count)
            __builtin_prefetch(samples[i + PREFETCH_AHEAD].trajectory, 1);
        rp_trajectory_unref(samples[i].trajectory);
        samples[i].trajectory = NULL;
    }
}
