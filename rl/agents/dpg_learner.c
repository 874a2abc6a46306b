/* SPDX-License-Identifier: Apache-2.0 */
/* The learning half of DPG: batches of the replay to updates (dpg_update.h), priorities back,
 * targets moved.
 *
 * Invariant:
 *   L1  every number that a later update depends on is in a part of get_state() or in the
 *       table. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/dpg_net.h"
#include "agents/dpg_update.h"
#include "agents/learning.h"
#include "agents/place.h"
#include "agents/replay.h"
#include "error/fail.h"
#include "reprise/rl/init.h"

typedef struct dpg_learner {
    rp_learner learner; /* first */
    rp_allocator alloc;
    rp_dpg_settings set;
    rp_env_spec spec;
    size_t batch;
    rp_replay *replay;
    rp_dpg_nets nets;
    rp_dpg_update *update;
    rp_learning learning;
    uint64_t optimizer_steps; /* of both; set when the state is read */

    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *params, *target_params; /* the policy's, then the critic's */
    rp_real *now, *next;             /* batch x numbers */
    rp_real *actions;                /* batch x actions, from -1 to 1 */
} dpg_learner;

/* Makes the batch of the replay one for the networks. Its discounts are multiplied. */
static rp_dpg_batch take_batch(dpg_learner *d)
{
    const rp_replay_batch *b = rp_replay_get_batch(d->replay);
    const rp_dpg_nets *n = &d->nets;

    rp_box_to_unit(n->observations, b->observations, d->batch, d->now, n->numbers);
    rp_box_to_unit(n->observations, b->next_observations, d->batch, d->next, n->numbers);
    rp_box_to_unit(n->actions, b->actions, d->batch, d->actions, n->action_count);
    return (rp_dpg_batch){.now = d->now,
                          .actions = d->actions,
                          .reward = b->rewards,
                          .discount = b->discounts,
                          .next = d->next,
                          .weights = d->set.prioritized || b->left_out > 0 ? b->weights : NULL};
}

static rp_status update(rp_learner *learner, rp_wait wait, rp_error *err)
{
    dpg_learner *d = (dpg_learner *)learner;
    const rp_replay_batch *b = rp_replay_get_batch(d->replay);
    rp_dpg_batch batch;
    rp_dpg_found found;
    rp_status st = rp_learning_check(&d->learning, err);

    if (st == RP_OK) st = rp_replay_draw(d->replay, wait, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < d->batch; i++) b->discounts[i] *= (float)d->set.discount;
    batch = take_batch(d);
    (void)rp_dpg_gradients(d->update, d->params, d->target_params, &batch, &found);
    if (!(found.loss <= d->set.max_loss) &&
        rp_replay_refuse(d->replay, found.errors,
                         rp_learning_most_error(d->set.max_loss, d->set.huber), wait.cancel)) {
        batch = take_batch(d);
        (void)rp_dpg_gradients(d->update, d->params, d->target_params, &batch, &found);
    }
    rp_dpg_apply(d->update, d->params, &found);
    st = rp_learning_add(&d->learning,
                         &(rp_learning_step){.loss = found.loss,
                                             .value = found.value,
                                             .norm = hypot(found.norm, found.policy_norm),
                                             .errors = found.errors,
                                             .rows = d->batch},
                         err);
    if (st != RP_OK) return st;
    if (d->learning.counts.updates % d->set.target_every == 0)
        rp_polyak(d->target_params, d->params, d->nets.parameter_count, d->set.target_rate);
    if (!d->set.prioritized && d->set.evict_exponent == 0) return RP_OK;
    return rp_replay_prioritize(d->replay, found.errors, &d->learning.counts.largest_priority,
                                wait.cancel, err);
}

static const rp_real *parameters(const rp_learner *learner)
{
    return ((const dpg_learner *)learner)->params;
}

static rp_status new_policy(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err)
{
    const dpg_learner *d = (const dpg_learner *)learner;

    return rp_dpg_new_policy(&d->alloc, d->nets.policy, &d->set, &d->spec, rows, out, err);
}

static void get_metrics(rp_learner *learner, rp_agent_metrics *out)
{
    dpg_learner *d = (dpg_learner *)learner;

    rp_learning_metrics(&d->learning, out);
    rp_replay_get_bad(d->replay, out);
}

static rp_state_part moments(const char *name, rp_optimizer_state state, size_t size)
{
    return (rp_state_part){name, state.moments, state.moment_count * size * sizeof(rp_real)};
}

static size_t get_state(rp_learner *learner, rp_state_part *parts)
{
    dpg_learner *d = (dpg_learner *)learner;
    rp_optimizer_state policy = rp_optimizer_get_state(rp_dpg_policy_optimizer(d->update));
    rp_optimizer_state critic = rp_optimizer_get_state(rp_dpg_critic_optimizer(d->update));
    size_t size = d->nets.parameter_count * sizeof(rp_real), count = 0;

    assert(policy.steps == critic.steps || d->learning.diverged);
    d->optimizer_steps = critic.steps;
    parts[count++] = (rp_state_part){"learner", &d->learning.counts, sizeof d->learning.counts};
    parts[count++] =
        (rp_state_part){"optimizer_steps", &d->optimizer_steps, sizeof d->optimizer_steps};
    parts[count++] = (rp_state_part){"params", d->params, size};
    parts[count++] = (rp_state_part){"target", d->target_params, size};
    parts[count++] = moments("policy_moments", policy, rp_net_size(d->nets.policy));
    parts[count++] = moments("critic_moments", critic, rp_net_size(d->nets.critic));
    return count;
}

static rp_status restored(rp_learner *learner, rp_error *err)
{
    dpg_learner *d = (dpg_learner *)learner;

    rp_optimizer_set_steps(rp_dpg_policy_optimizer(d->update), d->optimizer_steps);
    rp_optimizer_set_steps(rp_dpg_critic_optimizer(d->update), d->optimizer_steps);
    return rp_learning_restored(
        &d->learning,
        &(rp_restored){
            .params = d->params,
            .target = d->target_params,
            .count = d->nets.parameter_count,
            .optimizers = {rp_optimizer_get_state(rp_dpg_policy_optimizer(d->update)),
                           rp_optimizer_get_state(rp_dpg_critic_optimizer(d->update))},
            .sizes = {rp_net_size(d->nets.policy), rp_net_size(d->nets.critic)},
            .steps = d->optimizer_steps},
        err);
}

static void free_learner(rp_learner *learner)
{
    dpg_learner *d = (dpg_learner *)learner;
    rp_allocator alloc = d->alloc;

    rp_replay_free(d->replay);
    rp_dpg_update_free(d->update);
    rp_dpg_nets_deinit(&d->nets);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_learner_class learner_class = {
    .name = "dpg",
    .update = update,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_learner,
};

static size_t place_arrays(dpg_learner *d, uint8_t *block)
{
    size_t end = 0;

    d->params = rp_place_array(block, &end, d->nets.parameter_count, sizeof(rp_real));
    d->target_params = rp_place_array(block, &end, d->nets.parameter_count, sizeof(rp_real));
    d->now = rp_place_array(block, &end, d->batch * d->nets.numbers, sizeof(rp_real));
    d->next = rp_place_array(block, &end, d->batch * d->nets.numbers, sizeof(rp_real));
    d->actions = rp_place_array(block, &end, d->batch * d->nets.action_count, sizeof(rp_real));
    return end;
}

static rp_status make_arrays(dpg_learner *d, rp_error *err)
{
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    return RP_OK;
}

/* The first parameters, of both networks; the targets equal them. */
static rp_status init_params(dpg_learner *d, rp_pcg64 *rng, rp_error *err)
{
    rp_real *critic = d->params + rp_net_size(d->nets.policy);
    rp_status st = rp_net_init(&d->alloc, d->nets.policy, RP_INIT_TORCH, rng, d->params);

    if (st == RP_OK) st = rp_net_init(&d->alloc, d->nets.critic, RP_INIT_TORCH, rng, critic);
    if (st != RP_OK) return rp_rl_fail(err, st, "dpg: the networks cannot be initialised");
    memcpy(d->target_params, d->params, d->nets.parameter_count * sizeof(rp_real));
    return RP_OK;
}

static rp_status make_parts(dpg_learner *d, const rp_dpg_learner_options *o, rp_error *err)
{
    const rp_replay_options replay = {
        .spec = &d->spec,
        .client = o->client,
        .store = o->store,
        .batch = d->batch,
        .beta = d->set.prioritized ? d->set.weight_exponent : 0,
        .mutate_for = o->store != NULL ? 1 : o->mutate_for,
    };
    rp_dpg_update_options update_options = {
        .rows = d->batch,
        .rate = d->set.rate,
        .policy_rate = d->set.policy_rate,
        .adam_epsilon = d->set.adam_epsilon,
        .max_norm = d->set.max_norm,
        .max_slope = d->set.max_slope,
        .huber = d->set.huber,
    };
    rp_status st = rp_dpg_nets_init(&d->alloc, &d->set, &d->spec, &d->nets, err);

    if (st != RP_OK) return st;
    d->learner.parameter_count = d->nets.parameter_count;
    update_options.policy = d->nets.policy;
    update_options.critic = d->nets.critic;
    st = make_arrays(d, err);
    if (st == RP_OK) st = init_params(d, o->rng, err);
    if (st == RP_OK) st = rp_dpg_update_new(&d->alloc, &update_options, &d->update, err);
    if (st == RP_OK) st = rp_replay_new(&d->alloc, &replay, &d->replay, err);
    return st;
}

rp_status rp_dpg_learner_new(const rp_allocator *alloc, const rp_dpg_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = rp_dpg_settings_check(o->settings, err);
    dpg_learner *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dpg_learner){.learner = {.type = &learner_class},
                       .alloc = a,
                       .set = *o->settings,
                       .spec = *o->spec,
                       .batch = (size_t)o->settings->batch,
                       .learning = {.agent = "dpg",
                                    .rate = o->settings->rate,
                                    .max_loss = o->settings->max_loss,
                                    .counts = {.largest_priority = 1}}};
    st = make_parts(d, o, err);
    if (st != RP_OK) {
        free_learner(&d->learner);
        return st;
    }
    *out = &d->learner;
    return RP_OK;
}
