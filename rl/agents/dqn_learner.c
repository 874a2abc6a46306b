/* SPDX-License-Identifier: Apache-2.0 */
/* The learning half of DQN.
 *
 * One update, for a batch of items (o, a, R, D, o'), where R is the sum of up to n discounted
 * rewards and D the product of their discounts (adder.h):
 *
 *   target = R + discount D Q'(o', argmax Q(o', .))      Q' is the target network
 *   error  = target - Q(o, a)
 *   loss   = mean of weight * huber(error)               weight = (size * probability)^-beta
 *   params = Adam(params, gradient of the loss, clipped)
 *   priority of the item = |error| + RP_PRIORITY_FLOOR
 *
 * With several learners the batch is drawn once, each learner has a share of its rows, and a
 * team (team.h) adds up the gradients and steps the optimizer in slices. With asynchronous
 * learners each update is one learner's (dqn_async.h).
 *
 * Invariants:
 *   E1  every number that a later update depends on is in a part of get_state() or in the
 *       table;
 *   E2  the shares of the learners are disjoint, and cover the batch. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/dqn_async.h"
#include "agents/dqn_net.h"
#include "agents/dqn_rows.h"
#include "agents/place.h"
#include "error/fail.h"
#include "reprise/rl/init.h"
#include "reprise/rl/team.h"

/* What one learner of a team has found. Written by its thread, on a cache line of its own. */
typedef struct found_line {
    rp_dqn_found found;
    double norm;
    char padding[64 - sizeof(rp_dqn_found) - sizeof(double)];
} found_line;

typedef struct dqn_learner {
    rp_learner learner; /* first */
    rp_allocator alloc;
    rp_dqn_master master;
    size_t batch, count;      /* rows of a batch; learners that share it */
    rp_replay *replay;        /* NULL if asynchronous */
    rp_team *team;            /* NULL: one learner */
    rp_dqn_async *async;      /* NULL: synchronous */
    bool may_refuse;          /* the team leaves a batch whose loss is over its bound */
    double largest_shown;     /* that the actor reads */
    uint64_t optimizer_steps; /* set when the state is read */
    rp_dqn_rows *rows[RP_TEAM_MAX_SIZE];
    rp_real *grads[RP_TEAM_MAX_SIZE]; /* of `rows` */
    found_line found[RP_TEAM_MAX_SIZE];

    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *errors; /* batch */
} dqn_learner;

/* The share of learner `i` (E2). */
static rp_dqn_share share_of(const dqn_learner *d, size_t i)
{
    size_t first = d->batch * i / d->count, end = d->batch * (i + 1) / d->count;

    assert(end > first);
    return (rp_dqn_share){.batch = rp_replay_get_batch(d->replay),
                          .first = first,
                          .rows = end - first,
                          .all = d->batch,
                          .params = d->master.params,
                          .target_params = d->master.target_params,
                          .errors = d->errors + first};
}

static bool is_over_bound(const dqn_learner *d, double loss)
{
    return !(loss <= d->master.set.max_loss);
}

/* Leaves out the rows of the batch that are to blame for such a loss. Returns whether there
 * were any. */
static bool refuse(dqn_learner *d, rp_cancel *cancel)
{
    const rp_dqn_settings *set = &d->master.set;

    return rp_replay_refuse(d->replay, d->errors,
                            rp_learning_most_error(set->max_loss, set->huber), cancel);
}

/* One learner: gradient and step on the caller's thread. */
static void learn_alone(dqn_learner *d, rp_cancel *cancel, rp_learning_step *step)
{
    const rp_dqn_share share = share_of(d, 0);
    rp_dqn_master *m = &d->master;
    rp_dqn_found found = rp_dqn_rows_forward(d->rows[0], &share);

    if (is_over_bound(d, found.loss) && refuse(d, cancel))
        found = rp_dqn_rows_forward(d->rows[0], &share);
    step->loss = found.loss;
    step->value = found.value;
    step->norm =
        rp_optimizer_step(m->optimizer, m->params, rp_dqn_rows_backward(d->rows[0], &share));
    if (rp_dqn_target_is_due(m) && isfinite(step->norm) && !is_over_bound(d, step->loss))
        rp_polyak(m->target_params, m->params, rp_net_size(m->net), m->set.target_rate);
}

/* The sum of what all learners have found. The same for all of them. */
static rp_dqn_found sum_of(const dqn_learner *d)
{
    rp_dqn_found sum = {0};

    for (size_t i = 0; i < d->count; i++) {
        sum.loss += d->found[i].found.loss;
        sum.value += d->found[i].found.value;
    }
    return sum;
}

/* One of several learners: the gradient of its share, the step of its slice. */
static void learn_share(void *ctx, size_t i)
{
    dqn_learner *d = ctx;
    rp_dqn_master *m = &d->master;
    const rp_dqn_share share = share_of(d, i);
    const rp_team_step step = {m->optimizer, m->params, d->grads, rp_net_size(m->net)};
    const rp_slice slice = rp_team_slice(d->team, step.count, i);
    bool is_over;

    d->found[i].found = rp_dqn_rows_forward(d->rows[i], &share);
    (void)rp_dqn_rows_backward(d->rows[i], &share);
    rp_team_meet(d->team, i);
    is_over = is_over_bound(d, sum_of(d).loss);
    if (is_over && d->may_refuse) return; /* all of them do */
    d->found[i].norm = rp_team_step_slice(d->team, i, &step);
    if (rp_dqn_target_is_due(m) && isfinite(d->found[i].norm) && !is_over)
        rp_polyak(m->target_params + slice.first, m->params + slice.first, slice.count,
                  m->set.target_rate);
}

/* Several learners. A batch that they leave is computed once more, without bad rows. */
static void learn_together(dqn_learner *d, rp_cancel *cancel, rp_learning_step *step)
{
    rp_dqn_found found;

    d->may_refuse = true;
    rp_team_run(d->team, learn_share, d);
    found = sum_of(d);
    if (is_over_bound(d, found.loss)) {
        (void)refuse(d, cancel);
        d->may_refuse = false;
        rp_team_run(d->team, learn_share, d);
        found = sum_of(d);
    }
    step->loss = found.loss;
    step->value = found.value;
    step->norm = d->found[0].norm;
    rp_optimizer_end_slices(d->master.optimizer, step->norm);
    if (d->master.set.max_norm == 0 && isfinite(step->norm)) step->norm = 0; /* as alone */
}

static rp_status update(rp_learner *learner, rp_wait wait, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_learning *learning = &d->master.learning;
    rp_learning_step step = {.errors = d->errors, .rows = d->batch};
    const rp_replay_batch *b;
    rp_status st;

    if (d->async != NULL) return rp_dqn_async_update(d->async, wait, &d->largest_shown, err);
    st = rp_learning_check(learning, err);
    if (st == RP_OK) st = rp_replay_draw(d->replay, wait, err);
    if (st != RP_OK) return st;
    b = rp_replay_get_batch(d->replay);
    for (size_t i = 0; i < d->batch; i++) b->discounts[i] *= (rp_real)d->master.set.discount;
    if (d->team != NULL)
        learn_together(d, wait.cancel, &step);
    else
        learn_alone(d, wait.cancel, &step);
    st = rp_learning_add(learning, &step, err);
    if (st != RP_OK || !d->master.set.prioritized) return st;
    st = rp_replay_prioritize(d->replay, d->errors, &learning->counts.largest_priority,
                              wait.cancel, err);
    d->largest_shown = learning->counts.largest_priority;
    return st;
}

static const rp_real *parameters(const rp_learner *learner)
{
    const dqn_learner *d = (const dqn_learner *)learner;

    return d->async != NULL ? rp_dqn_async_parameters(d->async) : d->master.params;
}

const double *rp_dqn_learner_largest(const rp_learner *learner)
{
    return &((const dqn_learner *)learner)->largest_shown;
}

static rp_status new_policy(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err)
{
    const dqn_learner *d = (const dqn_learner *)learner;

    return rp_dqn_new_policy(&d->alloc, d->master.net, &d->master.spec, rows, out, err);
}

static void get_metrics(rp_learner *learner, rp_agent_metrics *out)
{
    dqn_learner *d = (dqn_learner *)learner;

    if (d->async != NULL) {
        rp_dqn_async_metrics(d->async, out);
        return;
    }
    rp_learning_metrics(&d->master.learning, out);
    rp_replay_get_bad(d->replay, out);
}

static size_t get_state(rp_learner *learner, rp_state_part *parts)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_dqn_master *m = &d->master;
    rp_learning_counts *counts = &m->learning.counts;
    size_t size = rp_net_size(m->net) * sizeof(rp_real), count = 0;
    rp_optimizer_state optimizer;

    if (d->async != NULL) rp_dqn_async_pause(d->async);
    optimizer = rp_optimizer_get_state(m->optimizer);
    d->optimizer_steps = optimizer.steps;
    parts[count++] = (rp_state_part){"learner", counts, sizeof *counts};
    parts[count++] =
        (rp_state_part){"optimizer_steps", &d->optimizer_steps, sizeof d->optimizer_steps};
    parts[count++] = (rp_state_part){"params", m->params, size};
    parts[count++] = (rp_state_part){"target", m->target_params, size};
    parts[count++] =
        (rp_state_part){"moments", optimizer.moments, size * optimizer.moment_count};
    return count;
}

static rp_status restored(rp_learner *learner, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_dqn_master *m = &d->master;

    rp_optimizer_set_steps(m->optimizer, d->optimizer_steps);
    d->largest_shown = m->learning.counts.largest_priority;
    if (d->async != NULL) rp_dqn_async_restored(d->async);
    return rp_learning_restored(
        &m->learning,
        &(rp_restored){.params = m->params,
                       .target = m->target_params,
                       .count = rp_net_size(m->net),
                       .optimizers = {rp_optimizer_get_state(m->optimizer)},
                       .sizes = {rp_net_size(m->net)},
                       .steps = d->optimizer_steps},
        err);
}

static void free_learner(rp_learner *learner)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_allocator alloc = d->alloc;

    rp_dqn_async_free(d->async); /* their threads first */
    rp_team_free(d->team);
    for (size_t i = 0; i < d->count; i++) rp_dqn_rows_free(d->rows[i]);
    rp_replay_free(d->replay);
    rp_optimizer_free(d->master.optimizer);
    rp_net_free(d->master.net);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_learner_class learner_class = {
    .name = "dqn",
    .update = update,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_learner,
};

/* Sets the arrays to their places in `block`. Returns the bytes of all. */
static size_t place_arrays(dqn_learner *d, uint8_t *block)
{
    size_t p = rp_net_size(d->master.net), end = 0;

    d->master.params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->master.target_params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->errors = rp_place_array(block, &end, d->batch, sizeof(rp_real));
    return end;
}

static rp_status make_networks(dqn_learner *d, rp_pcg64 *rng, rp_error *err)
{
    rp_dqn_master *m = &d->master;
    const rp_optimizer_options optimizer = {.kind = m->set.rmsprop ? RP_RMSPROP : RP_ADAM,
                                            .rate = m->set.rate,
                                            .beta2 = m->set.rmsprop ? 0.95 : 0,
                                            .epsilon = m->set.adam_epsilon,
                                            .centred = m->set.rmsprop,
                                            .max_norm = m->set.max_norm};
    rp_status st = rp_dqn_new_net(&d->alloc, &m->set, &m->spec, &m->net, err);

    if (st != RP_OK) return st;
    d->learner.parameter_count = rp_net_size(m->net);
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = rp_optimizer_new(&d->alloc, rp_net_size(m->net), &optimizer, &m->optimizer, err);
    if (st != RP_OK) return st;
    st = rp_net_init(&d->alloc, m->net, RP_INIT_TORCH, rng, m->params);
    if (st != RP_OK) return rp_rl_fail(err, st, "dqn: the network cannot be initialised");
    memcpy(m->target_params, m->params, rp_net_size(m->net) * sizeof(rp_real));
    return RP_OK;
}

/* Makes the learners that share batches, and their replay. */
static rp_status make_learners(dqn_learner *d, const rp_replay_options *replay, rp_error *err)
{
    size_t most = (d->batch + d->count - 1) / d->count;
    rp_status st = rp_replay_new(&d->alloc, replay, &d->replay, err);

    for (size_t i = 0; st == RP_OK && i < d->count; i++) {
        st = rp_dqn_rows_new(&d->alloc, &d->master, most, &d->rows[i], err);
        if (st == RP_OK) d->grads[i] = rp_dqn_rows_grads(d->rows[i]);
    }
    if (st == RP_OK && d->count > 1) st = rp_team_new(&d->alloc, d->count, &d->team, err);
    return st;
}

rp_status rp_dqn_learner_new(const rp_allocator *alloc, const rp_dqn_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const rp_dqn_settings *set = o->settings;
    const rp_replay_options replay = {
        .spec = o->spec,
        .client = o->client,
        .store = o->store,
        .batch = (size_t)set->batch,
        .beta = set->prioritized ? set->weight_exponent : 0,
        .mutate_for = o->store != NULL ? 1 : o->mutate_for,
    };
    rp_status st = rp_dqn_settings_check(set, err);
    dqn_learner *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dqn_learner){.learner = {.type = &learner_class},
                       .alloc = a,
                       .master = {.set = *set,
                                  .spec = *o->spec,
                                  .learning = {.agent = "dqn",
                                               .rate = set->rate,
                                               .max_loss = set->max_loss,
                                               .counts = {.largest_priority = 1}}},
                       .batch = (size_t)set->batch,
                       .count = (size_t)set->learners,
                       .largest_shown = 1};
    st = make_networks(d, o->rng, err);
    if (st == RP_OK)
        st = set->async_learners && d->count > 1
                 ? rp_dqn_async_new(&a, &d->master, &replay, d->count, &d->async, err)
                 : make_learners(d, &replay, err);
    if (st != RP_OK) {
        free_learner(&d->learner);
        return st;
    }
    assert(d->learner.parameter_count > 0);
    *out = &d->learner;
    return RP_OK;
}
