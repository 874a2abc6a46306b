/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous learners: see dqn_async.h.
 *
 * A turn of a learner: draw a batch; copy parameters and target network, if there are newer
 * ones, without a lock; gradient; then under the lock a step of the optimizer, counts, the
 * target network if it is due, publication; at last priorities.
 *
 * Invariants:
 *   A1  optimizer and learning of the master change under mu only; or, by others, while the
 *       crew is paused;
 *   A2  `params` and `target` have published what the master has, whenever mu is free, unless
 *       is_open or the run has diverged;
 *   A3  a learner's replay and rows are used by its thread only. */
#include "agents/dqn_async.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "agents/place.h"
#include "error/fail.h"
#include "reprise/rl/crew.h"
#include "reprise/rl/shared_params.h"

enum { TURN_MS = 20 }; /* the longest wait of a turn of the crew for a batch */

typedef struct taker {
    rp_replay *replay;
    rp_dqn_rows *rows;
    uint64_t version, target_version; /* of the copies */
    double largest;                   /* priority that it has set */
    rp_agent_metrics bad;             /* guarded by mu: bad_items and bad_item */
    rp_real *params, *target_params;  /* copies */
    rp_real *errors;
} taker;

struct rp_dqn_async {
    rp_allocator alloc;
    rp_dqn_master *master;
    size_t batch, count;
    pthread_mutex_t mu;
    rp_shared_params *params, *target; /* A2 */
    rp_crew *crew;                     /* learners 1, 2, ... */
    bool is_open;    /* the crew was paused, and the master may have been written to */
    bool has_failed; /* the last update failed; the crew is paused */
    rp_real *shown;
    uint64_t shown_version;
    void *block; /* all arrays */
    size_t block_bytes;
    taker takers[];
};

static size_t async_bytes(size_t count)
{
    return sizeof(rp_dqn_async) + count * sizeof(taker);
}

static size_t place_arrays(rp_dqn_async *a, uint8_t *block)
{
    size_t p = rp_net_size(a->master->net), end = 0;

    a->shown = rp_place_array(block, &end, p, sizeof(rp_real));
    for (size_t i = 0; i < a->count; i++) {
        taker *t = &a->takers[i];

        t->params = rp_place_array(block, &end, p, sizeof(rp_real));
        t->target_params = rp_place_array(block, &end, p, sizeof(rp_real));
        t->errors = rp_place_array(block, &end, a->batch, sizeof(rp_real));
    }
    return end;
}

/* Makes the step of a gradient, and publishes (A1, A2). Holds mu. */
static rp_status apply_locked(rp_dqn_async *a, rp_real *grads, rp_learning_step *step,
                              rp_error *err)
{
    rp_dqn_master *m = a->master;
    rp_learning *l = &m->learning;
    bool is_due = rp_learning_target_is_due(l, m->set.target_every);
    rp_status st = rp_learning_check(l, err);

    if (st != RP_OK) return st;
    step->norm = rp_optimizer_step(m->optimizer, l->params, grads);
    st = rp_learning_add(l, step, err);
    if (st != RP_OK) return st;
    (void)rp_shared_params_publish(a->params, l->params);
    if (!is_due) return RP_OK;
    rp_polyak(l->target_params, l->params, l->count, m->set.target_rate);
    (void)rp_shared_params_publish(a->target, l->target_params);
    return RP_OK;
}

static rp_status apply(rp_dqn_async *a, taker *t, rp_real *grads, rp_learning_step *step,
                       rp_error *err)
{
    double *largest = &a->master->learning.counts.largest_priority;
    rp_status st;

    (void)pthread_mutex_lock(&a->mu);
    st = apply_locked(a, grads, step, err);
    if (t->largest > *largest) *largest = t->largest;
    rp_replay_get_bad(t->replay, &t->bad);
    (void)pthread_mutex_unlock(&a->mu);
    return st;
}

static rp_status take_turn(rp_dqn_async *a, size_t index, rp_wait wait, rp_error *err)
{
    taker *t = &a->takers[index];
    const rp_dqn_settings *set = &a->master->set;
    const rp_replay_batch *b = rp_replay_get_batch(t->replay);
    const rp_dqn_share share = {.batch = b,
                                .rows = a->batch,
                                .all = a->batch,
                                .params = t->params,
                                .target_params = t->target_params,
                                .errors = t->errors};
    rp_learning_step step = {.errors = t->errors, .rows = a->batch};
    rp_update_found found;
    rp_status st = rp_replay_draw(t->replay, wait, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; i < a->batch; i++) b->discounts[i] *= (rp_real)set->discount;
    t->version = rp_shared_params_read(a->params, t->version, t->params);
    t->target_version = rp_shared_params_read(a->target, t->target_version, t->target_params);
    assert(t->version > 0 && t->target_version > 0); /* A2 */
    found = rp_dqn_rows_forward(t->rows, &share);
    if (!(found.loss <= set->max_loss) &&
        rp_replay_refuse(t->replay, t->errors,
                         rp_learning_most_error(set->max_loss, set->huber), wait.cancel))
        found = rp_dqn_rows_forward(t->rows, &share);
    step.loss = found.loss;
    step.value = found.value;
    st = apply(a, t, rp_dqn_rows_backward(t->rows, &share), &step, err);
    if (st != RP_OK || !set->prioritized) return st;
    return rp_replay_prioritize(t->replay, t->errors, &t->largest, wait.cancel, err);
}

static rp_status crew_turn(void *ctx, size_t member, rp_error *err)
{
    return take_turn(ctx, member + 1, rp_wait_ms(TURN_MS), err);
}

static void show(rp_dqn_async *a)
{
    a->shown_version = rp_shared_params_read(a->params, a->shown_version, a->shown);
}

/* Takes what was written to the master while the crew was paused. */
static void close_master(rp_dqn_async *a)
{
    if (!a->is_open) return;
    a->is_open = false;
    (void)rp_shared_params_publish(a->params, a->master->learning.params);
    (void)rp_shared_params_publish(a->target, a->master->learning.target_params);
    show(a);
}

rp_status rp_dqn_async_update(rp_dqn_async *a, rp_wait wait, double *largest, rp_error *err)
{
    /* What the crew found until it was paused after a failure has the reason of that one, which
     * was reported. */
    rp_status st = a->has_failed ? RP_OK : rp_crew_check(a->crew, err);

    if (st == RP_OK) {
        close_master(a);
        rp_crew_resume(a->crew); /* those that failed try again */
        st = take_turn(a, 0, wait, err);
    }
    a->has_failed = st != RP_OK && st != RP_DEADLINE;
    if (a->has_failed) rp_crew_pause(a->crew);
    show(a);
    (void)pthread_mutex_lock(&a->mu);
    *largest = a->master->learning.counts.largest_priority;
    (void)pthread_mutex_unlock(&a->mu);
    return st;
}

const rp_real *rp_dqn_async_parameters(rp_dqn_async *a)
{
    close_master(a);
    return a->shown;
}

int64_t rp_dqn_async_updates(rp_dqn_async *a)
{
    int64_t updates;

    (void)pthread_mutex_lock(&a->mu);
    updates = a->master->learning.counts.updates;
    (void)pthread_mutex_unlock(&a->mu);
    return updates;
}

void rp_dqn_async_metrics(rp_dqn_async *a, rp_agent_metrics *out)
{
    (void)pthread_mutex_lock(&a->mu);
    rp_learning_metrics(&a->master->learning, out);
    for (size_t i = 0; i < a->count; i++) {
        const rp_agent_metrics *bad = &a->takers[i].bad;

        out->bad_items += bad->bad_items;
        if (bad->bad_items > 0) memcpy(out->bad_item, bad->bad_item, sizeof out->bad_item);
    }
    (void)pthread_mutex_unlock(&a->mu);
}

void rp_dqn_async_open(rp_dqn_async *a)
{
    rp_crew_pause(a->crew);
    a->is_open = true;
}

void rp_dqn_async_free(rp_dqn_async *a)
{
    if (a == NULL) return;
    rp_allocator alloc = a->alloc;
    rp_crew_free(a->crew);
    for (size_t i = 0; i < a->count; i++) {
        rp_dqn_rows_free(a->takers[i].rows);
        rp_replay_free(a->takers[i].replay);
    }
    rp_shared_params_free(a->params);
    rp_shared_params_free(a->target);
    (void)pthread_mutex_destroy(&a->mu);
    if (a->block != NULL) (void)alloc.resize(alloc.ctx, a->block, a->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, a, async_bytes(a->count), 0);
}

static rp_status fill_in(rp_dqn_async *a, const rp_replay_options *replay, rp_error *err)
{
    size_t p = rp_net_size(a->master->net);
    rp_status st;

    a->block_bytes = place_arrays(a, NULL);
    a->block = a->alloc.resize(a->alloc.ctx, NULL, 0, a->block_bytes);
    if (a->block == NULL) return rp_rl_fail_memory(err, a->block_bytes);
    memset(a->block, 0, a->block_bytes);
    (void)place_arrays(a, a->block);
    st = rp_shared_params_new(&a->alloc, p, &a->params, err);
    if (st == RP_OK) st = rp_shared_params_new(&a->alloc, p, &a->target, err);
    for (size_t i = 0; st == RP_OK && i < a->count; i++) {
        st = rp_replay_new(&a->alloc, replay, &a->takers[i].replay, err);
        if (st == RP_OK)
            st = rp_dqn_rows_new(&a->alloc, a->master, a->batch, &a->takers[i].rows, err);
    }
    if (st == RP_OK) st = rp_crew_new(&a->alloc, a->count - 1, crew_turn, a, &a->crew, err);
    a->is_open = true; /* nothing is published yet */
    if (st == RP_OK) close_master(a);
    return st;
}

rp_status rp_dqn_async_new(const rp_allocator *alloc, rp_dqn_master *master,
                           const rp_replay_options *replay, size_t count, rp_dqn_async **out,
                           rp_error *err)
{
    rp_dqn_async *a = alloc->resize(alloc->ctx, NULL, 0, async_bytes(count));
    rp_status st;

    assert(count >= 2);
    if (a == NULL) return rp_rl_fail_memory(err, async_bytes(count));
    memset(a, 0, async_bytes(count));
    a->alloc = *alloc;
    a->master = master;
    a->batch = replay->batch;
    a->count = count;
    (void)pthread_mutex_init(&a->mu, NULL);
    st = fill_in(a, replay, err);
    if (st != RP_OK) {
        rp_dqn_async_free(a);
        return st;
    }
    *out = a;
    return RP_OK;
}
