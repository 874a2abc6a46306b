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
 * Invariant:
 *   E1  every number that a later update depends on is in a part of get_state() or in the
 *       table. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/dqn_net.h"
#include "agents/learning.h"
#include "agents/place.h"
#include "agents/replay.h"
#include "error/fail.h"
#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "reprise/rl/optimizer.h"

typedef struct dqn_learner {
    rp_learner learner; /* first */
    rp_allocator alloc;
    rp_dqn_settings set;
    rp_env_spec spec;
    size_t batch, actions, numbers;
    rp_replay *replay;
    rp_net *net;
    rp_tape *rating, *training;
    rp_optimizer *optimizer;
    rp_learning learning;
    uint64_t optimizer_steps; /* set when the state is read */

    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *params, *target_params, *grads;
    rp_real *now, *next;      /* batch x numbers, only if observations are bytes */
    rp_real *online, *grad_q; /* batch x actions */
    rp_real *target, *errors; /* batch each */
} dqn_learner;

/* The targets of the batch: R + discount D Q'(o', a'). Its discounts are multiplied. */
static void set_targets(dqn_learner *d, const rp_replay_batch *b)
{
    const rp_real *next =
        rp_dqn_input(&d->spec, b->next_observations, d->batch * d->numbers, d->next);
    const rp_real *online = NULL, *target;

    if (d->set.double_q) {
        online = rp_tape_forward(d->rating, d->params, next, d->batch);
        memcpy(d->online, online, d->batch * d->actions * sizeof *online);
        online = d->online;
    }
    target = rp_tape_forward(d->rating, d->target_params, next, d->batch);
    rp_td_target(d->batch, d->actions, b->rewards, b->discounts, online, target, d->target);
}

/* The mean Q of the actions in a batch. */
static double mean_value(const dqn_learner *d, const rp_loss_rows *rows, const rp_real *q)
{
    double value = 0;

    for (size_t i = 0; i < d->batch; i++)
        value += (double)q[i * d->actions + (size_t)rows->taken[i]];
    return value / (double)d->batch;
}

/* The errors of the batch, its loss, and the gradient by Q. */
static void find_errors(dqn_learner *d, rp_learning_step *step)
{
    const rp_replay_batch *b = rp_replay_get_batch(d->replay);
    const rp_loss_rows rows = {d->batch, d->actions, b->actions,
                               d->set.prioritized || b->left_out > 0 ? b->weights : NULL};
    const rp_real *q;

    set_targets(d, b);
    q = rp_tape_forward(d->training, d->params,
                        rp_dqn_input(&d->spec, b->observations, d->batch * d->numbers, d->now),
                        d->batch);
    step->loss = rp_td_loss(&rows, d->set.huber, q, d->target, d->grad_q, d->errors);
    step->value = mean_value(d, &rows, q);
}

static rp_status update(rp_learner *learner, rp_wait wait, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;
    const rp_replay_batch *b = rp_replay_get_batch(d->replay);
    rp_learning_step step = {.errors = d->errors, .rows = d->batch};
    rp_status st = rp_learning_check(&d->learning, err);

    if (st == RP_OK) st = rp_replay_draw(d->replay, wait, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < d->batch; i++) b->discounts[i] *= (rp_real)d->set.discount;
    find_errors(d, &step);
    if (!(step.loss <= d->set.max_loss) &&
        rp_replay_refuse(d->replay, d->errors,
                         rp_learning_most_error(d->set.max_loss, d->set.huber), wait.cancel))
        find_errors(d, &step);
    rp_tape_backward(d->training, d->params, d->grad_q, d->grads, NULL);
    step.norm = rp_optimizer_step(d->optimizer, d->params, d->grads);
    st = rp_learning_add(&d->learning, &step, err);
    if (st != RP_OK) return st;
    if (d->learning.counts.updates % d->set.target_every == 0)
        rp_polyak(d->target_params, d->params, rp_net_size(d->net), d->set.target_rate);
    if (!d->set.prioritized) return RP_OK;
    return rp_replay_prioritize(d->replay, d->errors, &d->learning.counts.largest_priority,
                                wait.cancel, err);
}

static const rp_real *parameters(const rp_learner *learner)
{
    return ((const dqn_learner *)learner)->params;
}

const double *rp_dqn_learner_largest(const rp_learner *learner)
{
    return &((const dqn_learner *)learner)->learning.counts.largest_priority;
}

static rp_status new_policy(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err)
{
    const dqn_learner *d = (const dqn_learner *)learner;

    return rp_dqn_new_policy(&d->alloc, d->net, &d->spec, rows, out, err);
}

static void get_metrics(rp_learner *learner, rp_agent_metrics *out)
{
    dqn_learner *d = (dqn_learner *)learner;

    rp_learning_metrics(&d->learning, out);
    rp_replay_get_bad(d->replay, out);
}

static size_t get_state(rp_learner *learner, rp_state_part *parts)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_optimizer_state optimizer = rp_optimizer_get_state(d->optimizer);
    size_t size = rp_net_size(d->net) * sizeof(rp_real), count = 0;

    d->optimizer_steps = optimizer.steps;
    parts[count++] = (rp_state_part){"learner", &d->learning.counts, sizeof d->learning.counts};
    parts[count++] =
        (rp_state_part){"optimizer_steps", &d->optimizer_steps, sizeof d->optimizer_steps};
    parts[count++] = (rp_state_part){"params", d->params, size};
    parts[count++] = (rp_state_part){"target", d->target_params, size};
    parts[count++] =
        (rp_state_part){"moments", optimizer.moments, size * optimizer.moment_count};
    return count;
}

static rp_status restored(rp_learner *learner, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;

    rp_optimizer_set_steps(d->optimizer, d->optimizer_steps);
    return rp_learning_restored(
        &d->learning,
        &(rp_restored){.params = d->params,
                       .target = d->target_params,
                       .count = rp_net_size(d->net),
                       .optimizers = {rp_optimizer_get_state(d->optimizer)},
                       .sizes = {rp_net_size(d->net)},
                       .steps = d->optimizer_steps},
        err);
}

static void free_learner(rp_learner *learner)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_allocator alloc = d->alloc;

    rp_replay_free(d->replay);
    rp_optimizer_free(d->optimizer);
    rp_tape_free(d->rating);
    rp_tape_free(d->training);
    rp_net_free(d->net);
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
    size_t p = rp_net_size(d->net), q = d->batch * d->actions, end = 0;
    size_t in = d->spec.observation_dtype == RP_FLOAT32 ? 0 : d->batch * d->numbers;

    d->params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->target_params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->grads = rp_place_array(block, &end, p, sizeof(rp_real));
    d->now = rp_place_array(block, &end, in, sizeof(rp_real));
    d->next = rp_place_array(block, &end, in, sizeof(rp_real));
    d->online = rp_place_array(block, &end, q, sizeof(rp_real));
    d->grad_q = rp_place_array(block, &end, q, sizeof(rp_real));
    d->target = rp_place_array(block, &end, d->batch, sizeof(rp_real));
    d->errors = rp_place_array(block, &end, d->batch, sizeof(rp_real));
    return end;
}

static rp_status make_networks(dqn_learner *d, rp_pcg64 *rng, rp_error *err)
{
    const rp_optimizer_options optimizer = {.kind = d->set.rmsprop ? RP_RMSPROP : RP_ADAM,
                                            .rate = d->set.rate,
                                            .beta2 = d->set.rmsprop ? 0.95 : 0,
                                            .epsilon = d->set.adam_epsilon,
                                            .centred = d->set.rmsprop,
                                            .max_norm = d->set.max_norm};
    const rp_tape_options rows = {.rows = d->batch}, train = {.rows = d->batch, .train = true};
    rp_status st = rp_dqn_new_net(&d->alloc, &d->set, &d->spec, &d->net, err);

    if (st != RP_OK) return st;
    d->learner.parameter_count = rp_net_size(d->net);
    d->numbers = rp_net_in_size(d->net);
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = rp_tape_new(&d->alloc, d->net, rows, &d->rating, err);
    if (st == RP_OK) st = rp_tape_new(&d->alloc, d->net, train, &d->training, err);
    if (st == RP_OK)
        st = rp_optimizer_new(&d->alloc, rp_net_size(d->net), &optimizer, &d->optimizer, err);
    if (st != RP_OK) return st;
    st = rp_net_init(&d->alloc, d->net, RP_INIT_TORCH, rng, d->params);
    if (st != RP_OK) return rp_rl_fail(err, st, "dqn: the network cannot be initialised");
    memcpy(d->target_params, d->params, rp_net_size(d->net) * sizeof(rp_real));
    return RP_OK;
}

rp_status rp_dqn_learner_new(const rp_allocator *alloc, const rp_dqn_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const rp_replay_options replay = {
        .spec = o->spec,
        .client = o->client,
        .store = o->store,
        .batch = (size_t)o->settings->batch,
        .beta = o->settings->prioritized ? o->settings->weight_exponent : 0,
        .mutate_for = o->store != NULL ? 1 : o->mutate_for,
    };
    rp_status st = rp_dqn_settings_check(o->settings, err);
    dqn_learner *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dqn_learner){.learner = {.type = &learner_class},
                       .alloc = a,
                       .set = *o->settings,
                       .spec = *o->spec,
                       .batch = (size_t)o->settings->batch,
                       .actions = (size_t)o->spec->action_count,
                       .learning = {.agent = "dqn",
                                    .rate = o->settings->rate,
                                    .max_loss = o->settings->max_loss,
                                    .counts = {.largest_priority = 1}}};
    st = make_networks(d, o->rng, err);
    if (st == RP_OK) st = rp_replay_new(&a, &replay, &d->replay, err);
    if (st != RP_OK) {
        free_learner(&d->learner);
        return st;
    }
    assert(d->learner.parameter_count > 0);
    *out = &d->learner;
    return RP_OK;
}
